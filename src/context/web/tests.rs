//! Pages of all sorts, from a server of the test's own and from memory.

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use super::*;
use crate::http::Settings;

fn document(media_type: &str, charset: Option<&str>, body: &[u8]) -> Document {
    Document {
        url: "http://x/".into(),
        media_type: media_type.into(),
        charset: charset.map(Into::into),
        body: body.into(),
        is_cut: false,
    }
}

fn text(media_type: &str, charset: Option<&str>, body: &[u8]) -> Result<String, String> {
    convert(document(media_type, charset, body)).map(|page| page.text)
}

#[test]
fn html_becomes_readable() {
    let page = convert(document(
        "text/html",
        None,
        b"<!doctype html><html><head><title>A &amp; B</title><style>x{}</style></head><body><nav><a href=/>Home</a></nav>\
          <h1>Head</h1><p>Some <b>bold</b> and <a href='/more'>more</a>.</p><ul><li>one<li>two</ul>\
          <pre><code class='language-rust'>fn main() {}\n</code></pre><script>alert(1)</script>\
          <p>This paragraph makes the page long enough for its surroundings to be left out, which takes a number of \
          words that say nothing else. And then some more of them, until there are two hundred.</p>\
          <footer>Imprint</footer></body></html>",
    ))
    .unwrap();
    assert_eq!(page.title.as_deref(), Some("A & B"));
    for part in ["# Head", "Some **bold** and [more](/more).", "one", "two", "```rust\nfn main() {}\n```"] {
        assert!(page.text.contains(part), "{part:?} in {:?}", page.text);
    }
    for part in ["alert", "x{}", "Home", "Imprint", "\n\n\n"] {
        assert!(!page.text.contains(part), "{part:?} in {:?}", page.text);
    }
    let short = text("text/html", None, b"<nav>Home</nav><p>Hi</p>").unwrap();
    assert!(short.contains("Home") && short.contains("Hi"), "a short page is read whole: {short:?}");
}

#[test]
fn texts_are_passed_on_and_others_are_named() {
    for (media_type, body, expected) in [
        ("text/plain", &b"  a <b> c\n"[..], Ok("a <b> c")),
        ("text/markdown", b"# x", Ok("# x")),
        ("application/json", b"{\"a\": 1}", Ok("{\"a\": 1}")),
        ("application/ld+json", b"{}", Ok("{}")),
        ("application/x-yaml", b"a: 1", Ok("a: 1")),
        ("", b"plain", Ok("plain")),
        ("", b" <!DOCTYPE html><p>x</p>", Ok("x")),
        ("application/octet-stream", b"text after all", Ok("text after all")),
        ("", b"\0\x01", Err("it is a binary file")),
        ("text/plain", b"\0\x01", Err("it is of type text/plain, which cannot be read as text")),
        ("application/pdf", b"%PDF-1.7", Err("it is a PDF, which cannot be read as text")),
        ("image/png", b"\x89PNG", Err("it is of type image/png, which cannot be read as text")),
        ("text/html", b"<script>x</script>", Err("the page has no text")),
    ] {
        let expected = expected.map(str::to_owned).map_err(str::to_owned);
        assert_eq!(text(media_type, None, body), expected, "{media_type}");
    }
}

#[test]
fn charsets_are_understood() {
    for (media_type, charset, body) in [
        ("text/plain", None, "café".as_bytes()),
        ("text/plain", None, b"\xef\xbb\xbfcaf\xc3\xa9"),
        ("text/plain", None, b"caf\xe9"),
        ("text/plain", Some("latin1"), b"caf\xe9"),
        ("text/plain", Some("no-such-charset"), "café".as_bytes()),
        ("text/plain", None, b"\xff\xfec\0a\0f\0\xe9\0"),
        ("text/html", None, b"<meta charset='iso-8859-1'>caf\xe9"),
        ("text/html", None, b"<meta http-equiv=x content=\"text/html; charset=windows-1252\">caf\xe9"),
        ("text/html", Some("utf-8"), "<meta charset='iso-8859-1'>café".as_bytes()),
    ] {
        assert_eq!(text(media_type, charset, body).as_deref(), Ok("café"), "{media_type} {charset:?} {body:?}");
    }
}

#[test]
fn hostile_pages_are_survived() {
    let deep = |open: &str, close: &str| format!("{}x{}", open.repeat(5_000), close.repeat(5_000));
    let many = deep("<div>", "</div>");
    assert_eq!(text("text/html", None, many.as_bytes()).as_deref(), Ok("x"));
    for html in [
        deep("<div>", "</div>"),
        deep("<b>", "</b>"),
        deep("<ul><li>", ""),
        deep("<table><tr><td>", ""),
        deep("<p><b>", "</p>"),
        deep("<svg>", ""),
        deep("<a href=x>", ""),
        deep("<blockquote><p><b><i><code>", ""),
        deep("</div>", "<"),
        deep("<!-", "->"),
        deep("<x y='", ""),
    ] {
        let converted = std::thread::spawn(move || text("text/html", None, html.as_bytes())).join();
        // Whatever comes of it, the thread had enough stack and came to an end.
        assert!(converted.is_ok());
    }
}

#[test]
fn long_texts_are_cut() {
    let page = convert(document("text/plain", None, "é".repeat(MAX_TEXT).as_bytes())).unwrap();
    assert!(page.is_cut && page.text.len() <= MAX_TEXT);
    let cut = Document { is_cut: true, ..document("text/plain", None, b"x") };
    assert!(convert(cut).unwrap().is_cut);
}

#[tokio::test]
async fn a_page_comes_over_the_network() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/page", listener.local_addr().unwrap());
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut request = [0; 2048];
        let _ = stream.read(&mut request).await;
        let body = "<title>T</title><h2>Over the wire</h2>";
        let answer = format!(
            "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
            body.len()
        );
        stream.write_all(answer.as_bytes()).await.unwrap();
    });
    let http = Client::new(Settings { connect_timeout: Duration::from_secs(5) });
    let page = read(&http, &url).await.unwrap();
    let expected =
        WebText { url: url.clone(), title: Some("T".into()), text: "## Over the wire".into(), is_cut: false };
    assert_eq!(page, expected);
    let error = read(&http, &url).await.unwrap_err();
    assert!(error.starts_with("the connection failed"), "{error}");
    assert!(read(&http, "ftp://x/").await.is_err());
}
