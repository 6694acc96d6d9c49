//! A model server under the test's control: it answers by script, keeps what it was asked, and
//! notices when the client hangs up.
//!
//! Plain HTTP/1.1 over tokio sockets, so that a test can cut, stall and split an answer at any
//! byte. Used by integration tests as a module and by unit tests through `#[path]`.
#![allow(dead_code, unreachable_pub, unused_imports, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "mock_llm/script.rs"]
mod script;

use std::collections::VecDeque;
use std::fmt;
use std::io::ErrorKind;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::Value;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::task::{AbortHandle, JoinSet};

pub use script::{Gate, Script, Step, Transfer};

/// How long a test waits for something that must happen before it is declared stuck.
pub const HANG_GUARD: Duration = Duration::from_secs(10);

/// A running mock. Dropping it closes everything.
pub struct MockLlm {
    url: String,
    shared: Arc<Shared>,
    requests: tokio::sync::Mutex<mpsc::UnboundedReceiver<CapturedRequest>>,
    closed: tokio::sync::Mutex<mpsc::UnboundedReceiver<()>>,
    server: AbortHandle,
}

/// What a client sent.
#[derive(Debug, Clone, PartialEq)]
pub struct CapturedRequest {
    pub method: String,
    /// With the query.
    pub path: String,
    /// Names in lower case.
    pub headers: Vec<(String, String)>,
    /// `Null` when the body is not JSON.
    pub body: Value,
    pub raw_body: Vec<u8>,
    /// Which connection it came on, counted from zero.
    pub connection: usize,
}

impl CapturedRequest {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(key, _)| key == &name.to_lowercase()).map(|(_, value)| value.as_str())
    }
}

type Responder = Box<dyn Fn(&CapturedRequest) -> Script + Send + Sync>;

struct Shared {
    queue: Mutex<VecDeque<Script>>,
    responder: Mutex<Option<Responder>>,
    requests: mpsc::UnboundedSender<CapturedRequest>,
    closed: mpsc::UnboundedSender<()>,
    connections: AtomicUsize,
    answered: AtomicUsize,
}

impl MockLlm {
    pub async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("bind a free port");
        let url = format!("http://{}", listener.local_addr().expect("the bound address"));
        let (request_sender, requests) = mpsc::unbounded_channel();
        let (closed_sender, closed) = mpsc::unbounded_channel();
        let shared = Arc::new(Shared {
            queue: Mutex::default(),
            responder: Mutex::default(),
            requests: request_sender,
            closed: closed_sender,
            connections: AtomicUsize::new(0),
            answered: AtomicUsize::new(0),
        });
        let server = tokio::spawn(accept(listener, Arc::clone(&shared))).abort_handle();
        Self {
            url,
            shared,
            requests: tokio::sync::Mutex::new(requests),
            closed: tokio::sync::Mutex::new(closed),
            server,
        }
    }

    /// `http://127.0.0.1:<port>`, without a slash at the end.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Queues the answer to the next request that has none yet.
    pub fn push(&self, script: Script) {
        self.shared.queue.lock().unwrap().push_back(script);
    }

    /// Answers every request for which nothing is queued.
    pub fn respond_with(&self, responder: impl Fn(&CapturedRequest) -> Script + Send + Sync + 'static) {
        *self.shared.responder.lock().unwrap() = Some(Box::new(responder));
    }

    /// The next request that arrives, in order of arrival.
    pub async fn next_request(&self) -> CapturedRequest {
        let mut requests = self.requests.lock().await;
        tokio::time::timeout(HANG_GUARD, requests.recv())
            .await
            .expect("no request reached the mock model in time")
            .expect("the mock is running")
    }

    /// A request that already arrived.
    pub async fn try_next_request(&self) -> Option<CapturedRequest> {
        self.requests.lock().await.try_recv().ok()
    }

    /// Returns when a client has closed its connection before its answer was complete.
    pub async fn connection_closed(&self) {
        let mut closed = self.closed.lock().await;
        tokio::time::timeout(HANG_GUARD, closed.recv())
            .await
            .expect("no client closed its connection in time")
            .expect("the mock is running");
    }

    /// How many connections were opened so far.
    pub fn connections(&self) -> usize {
        self.shared.connections.load(Ordering::SeqCst)
    }

    /// How many answers were written to their end.
    pub fn answered(&self) -> usize {
        self.shared.answered.load(Ordering::SeqCst)
    }
}

impl Drop for MockLlm {
    fn drop(&mut self) {
        self.server.abort();
    }
}

impl fmt::Debug for MockLlm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MockLlm").field("url", &self.url).finish_non_exhaustive()
    }
}

async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    // Owned here, so that aborting this task ends every connection.
    let mut connections = JoinSet::new();
    loop {
        // Running out of descriptors passes when connections end.
        let Ok((socket, _)) = listener.accept().await else {
            tokio::task::yield_now().await;
            continue;
        };
        let _ = socket.set_nodelay(true);
        let number = shared.connections.fetch_add(1, Ordering::SeqCst);
        connections.spawn(serve(socket, number, Arc::clone(&shared)));
        while connections.try_join_next().is_some() {}
    }
}

/// Answers the requests of one connection until either side closes it.
async fn serve(socket: TcpStream, number: usize, shared: Arc<Shared>) {
    let mut connection = Connection { socket, number, unread: Vec::new() };
    while let Some(request) = connection.read_request().await {
        let queued = shared.queue.lock().unwrap().pop_front();
        let script = queued.unwrap_or_else(|| match &*shared.responder.lock().unwrap() {
            Some(responder) => responder(&request),
            None => Script::status(500, &[], "the mock model has no script for this request"),
        });
        let _ = shared.requests.send(request);
        match connection.write_answer(script).await {
            Outcome::Complete => {
                shared.answered.fetch_add(1, Ordering::SeqCst);
            }
            Outcome::Cut => return,
            Outcome::ClientGone => {
                let _ = shared.closed.send(());
                return;
            }
        }
    }
}

struct Connection {
    socket: TcpStream,
    number: usize,
    unread: Vec<u8>,
}

enum Outcome {
    Complete,
    /// The script says to hang up.
    Cut,
    ClientGone,
}

impl Connection {
    async fn read_request(&mut self) -> Option<CapturedRequest> {
        let head_end = loop {
            if let Some(at) = self.unread.windows(4).position(|window| window == b"\r\n\r\n") {
                break at + 4;
            }
            self.read_more().await?;
        };
        let head = String::from_utf8_lossy(&self.unread[..head_end]).into_owned();
        let mut lines = head.lines();
        let mut first = lines.next()?.split(' ').map(str::to_owned);
        let (method, path) = (first.next()?, first.next()?);
        let headers: Vec<(String, String)> = lines
            .filter_map(|line| line.split_once(':'))
            .map(|(name, value)| (name.trim().to_lowercase(), value.trim().to_owned()))
            .collect();
        let length = headers.iter().find(|(name, _)| name == "content-length");
        let length: usize = length.and_then(|(_, value)| value.parse().ok()).unwrap_or(0);
        while self.unread.len() < head_end + length {
            self.read_more().await?;
        }
        let raw_body = self.unread[head_end..head_end + length].to_vec();
        self.unread.drain(..head_end + length);
        let body = serde_json::from_slice(&raw_body).unwrap_or(Value::Null);
        Some(CapturedRequest { method, path, headers, body, raw_body, connection: self.number })
    }

    /// `None` when the client closed the connection.
    async fn read_more(&mut self) -> Option<()> {
        let mut buffer = [0; 16 * 1024];
        loop {
            self.socket.readable().await.ok()?;
            match self.socket.try_read(&mut buffer) {
                Ok(0) => return None,
                Ok(count) => {
                    self.unread.extend_from_slice(&buffer[..count]);
                    return Some(());
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Err(_) => return None,
            }
        }
    }

    async fn write_answer(&mut self, script: Script) -> Outcome {
        let mut budget = script.cut_after;
        if self.write(script.head().as_bytes()).await.is_none() {
            return Outcome::ClientGone;
        }
        for step in &script.steps {
            let (times, chunk) = match step {
                Step::Bytes(bytes) => (1, bytes),
                Step::Repeat { times, chunk } => (*times, chunk),
                Step::Cut => return Outcome::Cut,
                Step::Gate(gate) => {
                    if self.unless_gone(gate.pass()).await.is_none() {
                        return Outcome::ClientGone;
                    }
                    continue;
                }
                Step::Hang => {
                    let _: Option<()> = self.unless_gone(std::future::pending()).await;
                    return Outcome::ClientGone;
                }
            };
            for _ in 0..times {
                let allowed = budget.map_or(chunk.len(), |left| left.min(chunk.len()));
                if self.write(&script.framed(&chunk[..allowed])).await.is_none() {
                    return Outcome::ClientGone;
                }
                if let Some(left) = &mut budget {
                    *left -= allowed;
                    if *left == 0 {
                        return Outcome::Cut;
                    }
                }
            }
        }
        match self.write(script.tail()).await {
            None => Outcome::ClientGone,
            Some(()) if script.transfer == Transfer::UntilClose => Outcome::Cut,
            Some(()) => Outcome::Complete,
        }
    }

    /// `None` when the client is gone.
    async fn write(&mut self, mut bytes: &[u8]) -> Option<()> {
        while !bytes.is_empty() {
            let written = loop {
                self.socket.writable().await.ok()?;
                match self.socket.try_write(bytes) {
                    Ok(written) => break written,
                    Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                    Err(_) => return None,
                }
            };
            bytes = &bytes[written..];
        }
        Some(())
    }

    /// Waits for `future`; `None` when the client closes the connection first.
    async fn unless_gone<T>(&mut self, future: impl Future<Output = T>) -> Option<T> {
        let mut future = std::pin::pin!(future);
        loop {
            tokio::select! {
                output = &mut future => return Some(output),
                more = self.read_more() => more?,
            }
        }
    }
}
