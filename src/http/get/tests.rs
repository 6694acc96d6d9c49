//! Downloads from a server of the test's own, byte for byte.

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use super::*;
use crate::http::Settings;

const LIMITS: GetLimits = GetLimits { bytes: 1_000, time: Duration::from_secs(10), redirects: 3 };

/// Answers each path with what `answer` says, and closes; an empty answer leaves the client waiting.
async fn serve(answer: fn(&str) -> Vec<u8>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                let mut request = vec![0; 4096];
                let length = stream.read(&mut request).await.unwrap_or_default();
                let request = String::from_utf8_lossy(&request[..length]).into_owned();
                let answer = answer(request.split(' ').nth(1).unwrap_or_default());
                if answer.is_empty() {
                    return std::future::pending().await;
                }
                let _ = stream.write_all(&answer).await;
                let _ = stream.shutdown().await;
            });
        }
    });
    address
}

fn ok(headers: &str, body: &[u8]) -> Vec<u8> {
    let mut answer = format!("HTTP/1.1 200 OK\r\n{headers}Connection: close\r\n\r\n").into_bytes();
    answer.extend_from_slice(body);
    answer
}

fn to(place: &str) -> Vec<u8> {
    format!("HTTP/1.1 302 Found\r\nLocation: {place}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n").into_bytes()
}

fn client() -> Client {
    Client::new(Settings { connect_timeout: Duration::from_secs(5) })
}

#[tokio::test]
async fn a_document_comes_with_its_type_and_its_last_address() {
    let address = serve(|path| match path {
        "/start" => to("/page?x=1"),
        "/page?x=1" => ok("Content-Type: Text/HTML; Charset=\"ISO-8859-1\"\r\n", b"caf\xe9"),
        _ => b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n".to_vec(),
    })
    .await;
    let with_password = address.replace("http://", "http://me:secret@");
    let document = client().get(&format!("{with_password}/start"), LIMITS).await.unwrap();
    assert_eq!(document.media_type, "text/html");
    assert_eq!(document.charset.as_deref(), Some("ISO-8859-1"));
    assert_eq!((&document.body[..], document.is_cut), (&b"caf\xe9"[..], false));
    assert_eq!(document.url, format!("{address}/page?x=1"));
    assert_eq!(
        client().get(&format!("{address}/missing"), LIMITS).await.unwrap_err().to_string(),
        "the server answered 404 Not Found"
    );
}

#[tokio::test]
async fn size_time_and_redirects_are_bounded() {
    let address = serve(|path| match path {
        "/large" => ok("", &[b'x'; 5_000]),
        "/exact" => ok("", &[b'x'; 1_000]),
        "/silent" => Vec::new(),
        "/round" => to("/round"),
        "/nowhere" => b"HTTP/1.1 302 Found\r\nContent-Length: 0\r\n\r\n".to_vec(),
        "/file" => to("file:///etc/passwd"),
        _ => b"nonsense\r\n\r\n".to_vec(),
    })
    .await;
    let get = async |path: &str, limits: GetLimits| client().get(&format!("{address}{path}"), limits).await;
    let large = get("/large", LIMITS).await.unwrap();
    assert_eq!((large.body.len(), large.is_cut), (1_000, true));
    let exact = get("/exact", LIMITS).await.unwrap();
    assert_eq!((exact.body.len(), exact.is_cut), (1_000, false));
    let brief = GetLimits { time: Duration::from_millis(50), ..LIMITS };
    assert_eq!(get("/silent", brief).await, Err(GetError::Timeout(brief.time)));
    assert_eq!(get("/round", LIMITS).await, Err(GetError::Redirects));
    assert!(matches!(get("/nowhere", LIMITS).await, Err(GetError::Status(_))));
    assert!(matches!(get("/file", LIMITS).await, Err(GetError::Unusable(HttpError::BadUrl(_)))));
    assert!(matches!(get("/bad", LIMITS).await, Err(GetError::Connection(_))));
}

#[tokio::test]
async fn only_web_addresses_are_visited() {
    for url in ["", "file:///etc/passwd", "ftp://example.org/", "example.org", "http://"] {
        let error = client().get(url, LIMITS).await.unwrap_err();
        assert!(matches!(error, GetError::Unusable(HttpError::BadUrl(_))), "{url}: {error}");
    }
}

#[test]
fn addresses_inside_are_known_by_number_and_by_name() {
    let inside = |url: &str| is_inside_by_name(&parse(url).unwrap());
    for url in [
        "http://localhost/",
        "http://127.0.0.1:80/",
        "http://10.1.2.3/",
        "http://172.16.0.1/",
        "http://192.168.1.1/",
        "http://169.254.169.254/latest/meta-data",
        "http://100.64.0.1/",
        "http://0.0.0.0/",
        "http://2130706433/",
        "http://0x7f.1/",
        "http://[::1]/",
        "http://[fe80::1]/",
        "http://[fd00::1]/",
        "http://[::ffff:10.0.0.1]/",
        "http://[64:ff9b::a00:1]/",
        "http://[::]/",
        "http://router/",
        "http://printer.local/",
        "http://wiki.lan./",
        "http://metadata.google.internal/",
        "http://a.localhost/",
    ] {
        assert!(inside(url), "{url}");
    }
    for url in [
        "http://example.org/",
        "http://8.8.8.8/",
        "http://172.32.0.1/",
        "http://100.128.0.1/",
        "http://[2606:4700::1]/",
        "http://localhost.example.org/",
        "http://[::ffff:8.8.8.8]/",
    ] {
        assert!(!inside(url), "{url}");
    }
}

#[tokio::test]
async fn nobody_outside_leads_inside() {
    for (from, to, expected) in [
        ("http://8.8.8.8/", "http://10.0.0.1/", true),
        ("http://8.8.8.8/", "http://localhost/", true),
        ("http://8.8.8.8/", "http://1.1.1.1/", false),
        ("http://localhost/", "http://10.0.0.1/", false),
        ("http://10.0.0.1/", "http://8.8.8.8/", false),
    ] {
        assert_eq!(is_led_inside(&parse(from).unwrap(), &parse(to).unwrap()).await, expected, "{from} {to}");
    }
}

#[tokio::test]
async fn names_are_looked_up() {
    assert_eq!(leads_inside("http://localhost:1/").await, Ok(true));
    assert_eq!(leads_inside("http://no-such-name.invalid/").await, Ok(false));
    assert!(leads_inside("nothing").await.is_err());
}

#[test]
fn content_types_are_taken_apart() {
    for (header, media_type, charset) in [
        ("", "", None),
        ("TEXT/html", "text/html", None),
        ("text/html; charset=utf-8", "text/html", Some("utf-8")),
        ("text/html;x=1; CHARSET = 'koi8-r' ", "text/html", Some("koi8-r")),
        ("text/html; charset=", "text/html", None),
    ] {
        assert_eq!(content_type(header), (media_type.to_owned(), charset.map(str::to_owned)), "{header}");
    }
}
