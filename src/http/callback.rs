//! The place on this machine to which the browser comes back after a login. It listens for one
//! answer and hears nothing else.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::time::Duration;

use reqwest::Url;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// What a browser calls the first address of this machine.
const LOCALHOST: &str = "localhost";
const FIRST_ADDRESS: &str = "127.0.0.1";
const PATH: &str = "/auth/callback";
/// A browser's request has fewer bytes.
const MOST_HEAD: usize = 32 * 1024;
const HEAD_PATIENCE: Duration = Duration::from_secs(10);
const MOST_REASON: usize = 300;

/// Where an authorization server sends a browser back to: a place on this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Redirect {
    host: &'static str,
    /// Any free one when absent.
    port: Option<u16>,
    /// As it is written: an authorization server compares letter by letter.
    path: String,
}

impl Default for Redirect {
    /// By its number, which no name service can lead astray.
    fn default() -> Self {
        Self { host: FIRST_ADDRESS, port: None, path: PATH.to_owned() }
    }
}

impl Redirect {
    /// By its name, which some authorization servers insist on.
    pub fn to_localhost(port: Option<u16>) -> Self {
        Self { host: LOCALHOST, port, ..Self::default() }
    }

    /// Reads an address such as `http://127.0.0.1:8765/callback`.
    pub fn parse(text: &str) -> Result<Self, &'static str> {
        const WRONG: &str = "it must be an address such as http://127.0.0.1:8765/callback";
        let url = Url::parse(text).map_err(|_| WRONG)?;
        let host = [FIRST_ADDRESS, LOCALHOST].into_iter().find(|host| url.host_str() == Some(host)).ok_or(WRONG)?;
        let is_plain = url.scheme() == "http" && url.username().is_empty() && url.password().is_none();
        if !is_plain || url.query().is_some() || url.fragment().is_some() {
            return Err(WRONG);
        }
        let path = if url.path() == "/" && !text.ends_with('/') { "" } else { url.path() };
        Ok(Self { host, port: url.port(), path: path.to_owned() })
    }
}

/// Listens for the browser.
#[derive(Debug)]
pub struct Listener {
    first: TcpListener,
    /// Some systems look for `localhost` here first.
    second: Option<TcpListener>,
    redirect: Redirect,
    port: u16,
}

/// What the authorization server sent along.
#[derive(Clone, PartialEq, Eq)]
pub struct Answer {
    pub code: String,
    pub state: String,
    pub issuer: Option<String>,
}

impl std::fmt::Debug for Answer {
    // Whoever has the code may have the tokens.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Answer").field("issuer", &self.issuer).finish_non_exhaustive()
    }
}

/// What a request to us means.
#[derive(Debug, PartialEq, Eq)]
enum Visit {
    Answered(Answer),
    /// The user or the authorization server said no.
    Refused(String),
    /// Somebody else; what they are told.
    Stranger(u16),
}

impl Listener {
    /// Listens on this machine alone.
    pub async fn bind(redirect: &Redirect) -> Result<Self, String> {
        let first = TcpListener::bind((Ipv4Addr::LOCALHOST, redirect.port.unwrap_or(0))).await;
        let first = first.map_err(|error| match redirect.port {
            Some(port) => format!("port {port} cannot be used for the login ({})", error.kind()),
            None => format!("no port can be opened for the login ({})", error.kind()),
        })?;
        let port = first.local_addr().map_err(|error| error.to_string())?.port();
        let second = match redirect.host {
            LOCALHOST => TcpListener::bind((Ipv6Addr::LOCALHOST, port)).await.ok(),
            _ => None,
        };
        Ok(Self { first, second, redirect: redirect.clone(), port })
    }

    pub fn redirect_uri(&self) -> String {
        format!("http://{}:{}{}", self.redirect.host, self.port, self.redirect.path)
    }

    /// Waits for the answer to the question that is asked at `address`. Every other visitor is sent
    /// away, so that nobody can end the login by guessing.
    pub async fn callback(&self, address: &str) -> Result<Answer, String> {
        let state = Url::parse(address).ok().and_then(|url| parameter(&url, "state")).unwrap_or_default();
        loop {
            let accepted = match &self.second {
                Some(second) => tokio::select! {
                    accepted = self.first.accept() => accepted,
                    accepted = second.accept() => accepted,
                },
                None => self.first.accept().await,
            };
            let Ok((stream, _)) = accepted else {
                // Nothing to do about it but not to spin.
                tokio::time::sleep(Duration::from_millis(100)).await;
                continue;
            };
            let visit = tokio::time::timeout(HEAD_PATIENCE, serve(stream, self.path(), &state)).await;
            match visit {
                Ok(Visit::Answered(answer)) => return Ok(answer),
                Ok(Visit::Refused(reason)) => return Err(reason),
                Ok(Visit::Stranger(_)) | Err(_) => {}
            }
        }
    }

    fn path(&self) -> &str {
        if self.redirect.path.is_empty() { "/" } else { &self.redirect.path }
    }
}

/// What a user copied out of a browser that could not come back by itself: the address it ended
/// at, or the code alone.
pub fn read_pasted(text: &str, state: &str) -> Result<Answer, String> {
    let text = text.trim();
    if let Ok(url) = Url::parse(text)
        && url.host_str().is_some()
    {
        return match read_address(&url, state) {
            Visit::Answered(answer) => Ok(answer),
            Visit::Refused(reason) => Err(reason),
            Visit::Stranger(_) => Err("that address does not belong to this login".to_owned()),
        };
    }
    // Some pages show both, with this between them.
    let (code, of) = text.split_once('#').unwrap_or((text, state));
    if code.is_empty() || code.contains(char::is_whitespace) || of != state {
        return Err("that is no code of this login".to_owned());
    }
    Ok(Answer { code: code.to_owned(), state: state.to_owned(), issuer: None })
}

async fn serve(mut stream: TcpStream, path: &str, state: &str) -> Visit {
    let visit = match target(&mut stream).await {
        Some(target) => read_target(&target, path, state),
        None => Visit::Stranger(400),
    };
    let (status, text) = match &visit {
        Visit::Answered(_) => (200, "You are logged in. You can close this window.".to_owned()),
        Visit::Refused(reason) => (200, format!("The login was not completed: {reason}")),
        Visit::Stranger(status) => (*status, "There is nothing here.".to_owned()),
    };
    answer(&mut stream, status, &text).await;
    visit
}

/// The target of a GET request.
async fn target(stream: &mut (impl AsyncRead + Unpin)) -> Option<String> {
    let mut head = Vec::new();
    let mut piece = [0; 4096];
    while !head.windows(4).any(|end| end == b"\r\n\r\n") {
        let length = stream.read(&mut piece).await.ok()?;
        if length == 0 || head.len() + length > MOST_HEAD {
            return None;
        }
        head.extend_from_slice(&piece[..length]);
    }
    let head = String::from_utf8(head).ok()?;
    let mut words = head.lines().next()?.split(' ');
    (words.next() == Some("GET")).then(|| words.next().map(str::to_owned)).flatten()
}

fn read_target(target: &str, path: &str, state: &str) -> Visit {
    let Ok(url) = Url::parse("http://localhost/").and_then(|base| base.join(target)) else {
        return Visit::Stranger(400);
    };
    if url.path() != path {
        return Visit::Stranger(404);
    }
    read_address(&url, state)
}

fn read_address(url: &Url, state: &str) -> Visit {
    // The state is a secret of this login: who does not know it does not come from there.
    if state.is_empty() || parameter(url, "state").as_deref() != Some(state) {
        return Visit::Stranger(400);
    }
    if let Some(error) = parameter(url, "error") {
        let reason = parameter(url, "error_description").unwrap_or(error);
        return Visit::Refused(crate::base::text::one_line(&reason, MOST_REASON));
    }
    match parameter(url, "code").filter(|code| !code.is_empty()) {
        Some(code) => Visit::Answered(Answer { code, state: state.to_owned(), issuer: parameter(url, "iss") }),
        None => Visit::Stranger(400),
    }
}

fn parameter(url: &Url, name: &str) -> Option<String> {
    url.query_pairs().find(|(key, _)| key == name).map(|(_, value)| value.into_owned())
}

async fn answer(stream: &mut (impl AsyncWrite + Unpin), status: u16, text: &str) {
    let reason = if status == 200 { "OK" } else { "Error" };
    let text = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    let page = format!("<!doctype html><meta charset=\"utf-8\"><title>ECA</title><p>{text}</p>\n");
    let head = format!(
        "HTTP/1.1 {status} {reason}\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: {}\r\n\
         Cache-Control: no-store\r\nReferrer-Policy: no-referrer\r\nConnection: close\r\n\r\n",
        page.len()
    );
    let _ = stream.write_all(format!("{head}{page}").as_bytes()).await;
    let _ = stream.shutdown().await;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_awaited_answer_counts() {
        let read = |target: &str| read_target(target, PATH, "s3");
        let answer = |issuer: Option<&str>| {
            Visit::Answered(Answer { code: "c d".into(), state: "s3".into(), issuer: issuer.map(Into::into) })
        };
        assert_eq!(read("/auth/callback?code=c%20d&state=s3"), answer(None));
        assert_eq!(read("/auth/callback?iss=https%3A%2F%2Fas&state=s3&code=c+d"), answer(Some("https://as")));
        assert_eq!(read("/auth/callback?error=access_denied&state=s3"), Visit::Refused("access_denied".into()));
        assert_eq!(read("/auth/callback?error=x&error_description=not+now&state=s3"), Visit::Refused("not now".into()));
        for (target, status) in [
            ("/auth/callback?code=c&state=other", 400),
            ("/auth/callback?error=access_denied", 400),
            ("/auth/callback?state=s3", 400),
            ("/auth/callback?state=s3&code=", 400),
            ("/favicon.ico", 404),
            ("/auth/callback/..?code=c&state=s3", 404),
            ("http://[", 400),
            ("", 404),
        ] {
            assert_eq!(read(target), Visit::Stranger(status), "{target}");
        }
        assert_eq!(read_target("/auth/callback?code=c&state=", PATH, ""), Visit::Stranger(400));
    }

    #[test]
    fn only_this_machine_is_a_place_to_come_back_to() {
        let read = |text: &str| Redirect::parse(text).map(|redirect| (redirect.host, redirect.port, redirect.path));
        assert_eq!(read("http://127.0.0.1:8765/cb"), Ok(("127.0.0.1", Some(8765), "/cb".into())));
        assert_eq!(read("http://localhost"), Ok(("localhost", None, String::new())));
        assert_eq!(read("http://localhost/"), Ok(("localhost", None, "/".into())));
        for text in [
            "",
            "127.0.0.1:1",
            "https://127.0.0.1/cb",
            "http://example.org/cb",
            "http://127.0.0.1.example.org/",
            "http://me@127.0.0.1/",
            "http://127.0.0.1/cb?x=1",
        ] {
            assert!(read(text).is_err(), "{text}");
        }
    }

    #[test]
    fn what_was_copied_from_a_browser_belongs_to_this_login_or_not() {
        let code = |text: &str| read_pasted(text, "s3").map(|answer| answer.code);
        for text in [" c1\n", "c1#s3", "http://127.0.0.1:9/cb?code=c1&state=s3", "https://else.where/?state=s3&code=c1"]
        {
            assert_eq!(code(text), Ok("c1".into()), "{text}");
        }
        assert_eq!(code("http://x/?error=no&state=s3"), Err("no".into()));
        for text in ["", "two words", "c1#other", "http://x/?code=c1", "http://x/?code=c1&state=other"] {
            assert!(code(text).is_err(), "{text}");
        }
    }

    async fn visit(port: u16, request: &str) -> String {
        let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await.unwrap();
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        let _ = stream.read_to_string(&mut answer).await;
        answer
    }

    #[tokio::test]
    async fn strangers_are_sent_away_and_the_browser_is_heard() {
        let listener = Listener::bind(&Redirect::to_localhost(None)).await.unwrap();
        let port = listener.port;
        assert_eq!(listener.redirect_uri(), format!("http://localhost:{port}/auth/callback"));
        let waiting = tokio::spawn(async move { listener.callback("https://as/authorize?state=abc").await });
        assert!(visit(port, "nonsense\r\n\r\n").await.starts_with("HTTP/1.1 400"));
        assert!(visit(port, "POST /auth/callback?code=1&state=abc HTTP/1.1\r\n\r\n").await.starts_with("HTTP/1.1 400"));
        assert!(visit(port, "GET /auth/callback?code=1&state=no HTTP/1.1\r\n\r\n").await.starts_with("HTTP/1.1 400"));
        assert!(visit(port, &format!("GET /{} HTTP/1.1\r\n", "x".repeat(MOST_HEAD))).await.starts_with("HTTP/1.1 400"));
        drop(TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await.unwrap());
        let page = visit(port, "GET /auth/callback?code=1&state=abc HTTP/1.1\r\nHost: x\r\n\r\n").await;
        assert!(page.starts_with("HTTP/1.1 200") && page.contains("logged in"), "{page}");
        let answer = waiting.await.unwrap().unwrap();
        assert_eq!((answer.code.as_str(), answer.state.as_str()), ("1", "abc"));
    }

    #[tokio::test]
    async fn a_refusal_is_shown_without_its_markup() {
        let listener = Listener::bind(&Redirect::to_localhost(None)).await.unwrap();
        let port = listener.port;
        let waiting = tokio::spawn(async move { listener.callback("https://as/?state=abc").await });
        let page = visit(port, "GET /auth/callback?state=abc&error=%3Cscript%3E HTTP/1.1\r\nHost: x\r\n\r\n").await;
        assert!(!page.contains("<script>"), "{page}");
        assert_eq!(waiting.await.unwrap(), Err("<script>".to_owned()));
    }

    #[tokio::test]
    async fn a_port_that_is_taken_is_named() {
        let first = Listener::bind(&Redirect::to_localhost(None)).await.unwrap();
        let error = Listener::bind(&Redirect::to_localhost(Some(first.port))).await.err().unwrap();
        assert!(error.contains(&first.port.to_string()), "{error}");
    }
}
