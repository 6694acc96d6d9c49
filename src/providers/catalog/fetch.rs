//! Asks models.dev for its catalogue, bounded in time and size.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use reqwest::header::{ETAG, HeaderMap, IF_NONE_MATCH};
use reqwest::{Method, StatusCode};

use super::MAX_BYTES;
use crate::http;

const ADDRESS: &str = "https://models.dev/api.json";
const PATIENCE: Duration = Duration::from_secs(5);

/// What the catalogue's server said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fetched {
    /// What we have is what there is.
    Unchanged,
    Body {
        body: Vec<u8>,
        etag: Option<String>,
    },
}

/// Fetches the catalogue unless it still has the given tag. Tests put their own here.
pub type Fetch = Arc<dyn Fn(Option<String>) -> BoxFuture<'static, Result<Fetched, String>> + Send + Sync>;

/// From the real place.
pub fn from_models_dev(http: http::Client) -> Fetch {
    Arc::new(move |etag| {
        let http = http.clone();
        Box::pin(async move {
            let work = fetch(&http, ADDRESS, etag.as_deref());
            tokio::time::timeout(PATIENCE, work).await.unwrap_or_else(|_| Err("no answer in time".to_owned()))
        })
    })
}

async fn fetch(http: &http::Client, url: &str, etag: Option<&str>) -> Result<Fetched, String> {
    let mut request = http.request(Method::GET, url).map_err(|error| error.to_string())?;
    if let Some(etag) = etag {
        request = request.header(IF_NONE_MATCH, etag);
    }
    let mut response = request.send().await.map_err(|error| error.to_string())?;
    if response.status() == StatusCode::NOT_MODIFIED {
        return Ok(Fetched::Unchanged);
    }
    if !response.status().is_success() {
        return Err(format!("status {}", response.status()));
    }
    let etag = tag(response.headers());
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(|error| error.to_string())? {
        if body.len() + chunk.len() > MAX_BYTES {
            return Err("the catalogue is too large".to_owned());
        }
        body.extend_from_slice(&chunk);
    }
    Ok(Fetched::Body { body, etag })
}

/// A tag that fits into one line of our cache and back into a header.
fn tag(headers: &HeaderMap) -> Option<String> {
    let text = headers.get(ETAG)?.to_str().ok()?;
    (text.len() <= 256 && text.chars().all(|c| c.is_ascii_graphic())).then(|| text.to_owned())
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    use super::*;

    /// Answers one request with `answer` and returns what was asked.
    async fn ask(answer: Vec<u8>, etag: Option<&str>) -> (Result<Fetched, String>, String) {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("http://{}/api.json", listener.local_addr().expect("an address"));
        let server = tokio::spawn(async move {
            let (mut socket, _) = listener.accept().await.expect("a client");
            let mut asked = Vec::new();
            while !asked.ends_with(b"\r\n\r\n") {
                let mut piece = [0; 1024];
                let read = socket.read(&mut piece).await.expect("bytes");
                asked.extend_from_slice(&piece[..read]);
            }
            // The client may have heard enough before the end.
            let _ = socket.write_all(&answer).await;
            String::from_utf8(asked).expect("text")
        });
        let http = http::Client::new(http::Settings { connect_timeout: PATIENCE });
        let fetched = fetch(&http, &url, etag).await;
        (fetched, server.await.expect("no panic"))
    }

    fn response(status: &str, headers: &str, body: &[u8]) -> Vec<u8> {
        let head = format!("HTTP/1.1 {status}\r\n{headers}content-length: {}\r\n\r\n", body.len());
        [head.as_bytes(), body].concat()
    }

    #[tokio::test]
    async fn a_body_comes_with_its_tag() {
        let (fetched, asked) = ask(response("200 OK", "etag: \"a\"\r\n", b"{}"), None).await;
        assert_eq!(fetched, Ok(Fetched::Body { body: b"{}".to_vec(), etag: Some("\"a\"".into()) }));
        assert!(!asked.contains("if-none-match"), "{asked}");
        let (fetched, _) = ask(response("200 OK", "etag: \"a b\"\r\n", b"{}"), None).await;
        assert_eq!(fetched, Ok(Fetched::Body { body: b"{}".to_vec(), etag: None }), "a tag that would break our file");
    }

    #[tokio::test]
    async fn a_known_tag_is_asked_about() {
        let (fetched, asked) = ask(response("304 Not Modified", "", b""), Some("\"a\"")).await;
        assert_eq!(fetched, Ok(Fetched::Unchanged));
        assert!(asked.contains("if-none-match: \"a\""), "{asked}");
    }

    #[tokio::test]
    async fn failures_and_floods_are_errors() {
        assert!(ask(response("500 Oops", "", b"no"), None).await.0.is_err());
        assert!(ask(response("302 Found", "location: http://elsewhere/\r\n", b""), None).await.0.is_err());
        assert!(ask(response("200 OK", "", &vec![b' '; MAX_BYTES + 1]), None).await.0.is_err());
    }
}
