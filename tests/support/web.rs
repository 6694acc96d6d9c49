//! A small HTTP server, so that tests decide every byte of an answer.
#![allow(dead_code, unreachable_pub, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;

use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

#[derive(Debug, Clone)]
pub struct Request {
    pub method: String,
    /// Without the query.
    pub path: String,
    pub query: BTreeMap<String, String>,
    /// By their names in lower case.
    pub headers: BTreeMap<String, String>,
    pub body: String,
}

impl Request {
    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", String::as_str)
    }

    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or(Value::Null)
    }

    /// The fields of a form.
    pub fn form(&self) -> BTreeMap<String, String> {
        pairs(&self.body)
    }
}

#[derive(Debug)]
pub struct Response {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: Body,
}

#[derive(Debug)]
pub enum Body {
    Whole(Vec<u8>),
    /// Ends when the sender is dropped.
    Pieces(mpsc::Receiver<String>),
}

impl Response {
    pub fn empty(status: u16) -> Self {
        Self { status, headers: Vec::new(), body: Body::Whole(Vec::new()) }
    }

    pub fn json(value: &Value) -> Self {
        Self::text("application/json", value.to_string())
    }

    pub fn text(kind: &str, text: String) -> Self {
        Self { body: Body::Whole(text.into_bytes()), ..Self::empty(200).with("Content-Type", kind) }
    }

    pub fn events(pieces: mpsc::Receiver<String>) -> Self {
        Self { body: Body::Pieces(pieces), ..Self::empty(200).with("Content-Type", "text/event-stream") }
    }

    pub fn with(mut self, name: &str, value: impl Into<String>) -> Self {
        self.headers.push((name.to_owned(), value.into()));
        self
    }
}

/// Listens until it is dropped.
pub struct Web {
    pub address: SocketAddr,
    task: JoinHandle<()>,
}

impl Drop for Web {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Web {
    pub async fn serve(answer: impl Fn(Request) -> Response + Send + Sync + 'static) -> Self {
        Self::at("127.0.0.1:0".parse().unwrap(), answer).await
    }

    pub async fn at(address: SocketAddr, answer: impl Fn(Request) -> Response + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind(address).await.unwrap();
        let address = listener.local_addr().unwrap();
        let answer = Arc::new(answer);
        let task = tokio::spawn(async move {
            // What is in the set ends with the server.
            let mut visits = tokio::task::JoinSet::new();
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let answer = Arc::clone(&answer);
                visits.spawn(async move {
                    let _ = visit(stream, &*answer).await;
                });
                while visits.try_join_next().is_some() {}
            }
        });
        Self { address, task }
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }
}

async fn visit(stream: TcpStream, answer: &(impl Fn(Request) -> Response + ?Sized)) -> std::io::Result<()> {
    let (read, mut write) = stream.into_split();
    let mut read = BufReader::new(read);
    let Some(request) = request(&mut read).await? else { return Ok(()) };
    let response = answer(request);
    let mut head = format!("HTTP/1.1 {} Status\r\nConnection: close\r\n", response.status);
    for (name, value) in &response.headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    match response.body {
        Body::Whole(body) => {
            head.push_str(&format!("Content-Length: {}\r\n\r\n", body.len()));
            write.write_all(head.as_bytes()).await?;
            write.write_all(&body).await?;
        }
        Body::Pieces(mut pieces) => {
            head.push_str("\r\n");
            write.write_all(head.as_bytes()).await?;
            while let Some(piece) = pieces.recv().await {
                write.write_all(piece.as_bytes()).await?;
            }
        }
    }
    write.shutdown().await
}

async fn request(read: &mut (impl AsyncBufReadExt + Unpin)) -> std::io::Result<Option<Request>> {
    let mut line = String::new();
    if read.read_line(&mut line).await? == 0 {
        return Ok(None);
    }
    let mut words = line.split_whitespace().map(str::to_owned);
    let (method, target) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let mut headers = BTreeMap::new();
    loop {
        let mut line = String::new();
        read.read_line(&mut line).await?;
        let Some((name, value)) = line.trim_end().split_once(':') else { break };
        headers.insert(name.to_lowercase(), value.trim().to_owned());
    }
    let length = headers.get("content-length").and_then(|length| length.parse().ok()).unwrap_or(0);
    let mut body = vec![0; length];
    read.read_exact(&mut body).await?;
    let (path, query) = target.split_once('?').unwrap_or((&target, ""));
    let body = String::from_utf8_lossy(&body).into_owned();
    Ok(Some(Request { method, path: path.to_owned(), query: pairs(query), headers, body }))
}

/// `a=b&c=d` as a table.
pub fn pairs(text: &str) -> BTreeMap<String, String> {
    let decode = |text: &str| {
        let bytes = text.replace('+', " ").into_bytes();
        let mut out = Vec::new();
        let mut at = 0;
        while at < bytes.len() {
            let hex = bytes.get(at + 1..at + 3).and_then(|hex| std::str::from_utf8(hex).ok());
            match hex.and_then(|hex| u8::from_str_radix(hex, 16).ok()).filter(|_| bytes[at] == b'%') {
                Some(byte) => {
                    out.push(byte);
                    at += 3;
                }
                None => {
                    out.push(bytes[at]);
                    at += 1;
                }
            }
        }
        String::from_utf8_lossy(&out).into_owned()
    };
    let split = text.split('&').filter_map(|pair| pair.split_once('='));
    split.map(|(name, value)| (decode(name), decode(value))).collect()
}

/// A GET as a browser makes it: the status, where it leads, and the page.
pub async fn get(url: &str) -> (u16, Option<String>, String) {
    let rest = url.strip_prefix("http://").unwrap();
    let (host, target) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let mut stream = TcpStream::connect(host).await.unwrap();
    let head = format!("GET {target} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    let (head, page) = answer.split_once("\r\n\r\n").unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    let location = head.lines().find_map(|line| line.strip_prefix("Location: ")).map(str::to_owned);
    (status, location, page.to_owned())
}
