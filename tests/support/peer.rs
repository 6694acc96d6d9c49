//! The client's end of a connection, as strict as the strictest real client: it reads exact
//! frames, checks every envelope, remembers everything, and never waits for ever.
//!
//! Reading and writing are threads of their own, so that a test can stop reading (the server then
//! has a slow client) and never blocks on a full pipe.
#![allow(dead_code, unreachable_pub, unused_imports, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "peer/frames.rs"]
pub mod frames;
#[path = "peer/outline.rs"]
pub mod outline;

use std::collections::VecDeque;
use std::io::{Read, Write};
use std::sync::{Arc, Condvar, Mutex, mpsc};
use std::time::Duration;

use lsp_types::notification::Notification;
use lsp_types::request::Request;
use serde_json::{Value, json};
use tokio::sync::mpsc as async_mpsc;

pub use frames::{Cutter, FrameParser, LineParser, frame};
pub use outline::{is_finished, outline};

/// How long a test waits for something that must come before it is declared stuck.
pub const HANG_GUARD: Duration = Duration::from_secs(20);

/// How a client writes what is optional in the protocol.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Style {
    /// What stands for "no params"; absent when `None`.
    pub no_params: Option<Value>,
    /// Emacs ends every body with a line break and counts it.
    pub trailing_newline: bool,
}

/// A JSON-RPC error, as the client got it.
#[derive(Debug, Clone, PartialEq)]
pub struct RpcError {
    pub code: i64,
    pub message: String,
    pub data: Option<Value>,
}

/// A client.
pub struct Peer {
    incoming: async_mpsc::UnboundedReceiver<Result<Value, String>>,
    outgoing: Option<mpsc::Sender<Vec<u8>>>,
    reading: Arc<Pause>,
    largest_frame: Arc<Mutex<usize>>,
    unread: VecDeque<Value>,
    arrived: Vec<String>,
    next_id: i64,
    /// One message per line instead of frames.
    lines: bool,
    /// Messages name no version.
    bare: bool,
    pub style: Style,
}

impl Peer {
    pub fn new(from_server: impl Read + Send + 'static, to_server: impl Write + Send + 'static) -> Self {
        Self::with(Cutter::Frames(FrameParser::default()), from_server, to_server)
    }

    /// A client of a contract whose messages are lines.
    pub fn of_lines(from_server: impl Read + Send + 'static, to_server: impl Write + Send + 'static) -> Self {
        Self::with(Cutter::Lines(LineParser::default()), from_server, to_server)
    }

    /// The same for a contract that names no version.
    pub fn of_bare_lines(from_server: impl Read + Send + 'static, to_server: impl Write + Send + 'static) -> Self {
        Self::with(Cutter::BareLines(LineParser::default()), from_server, to_server)
    }

    fn with(cutter: Cutter, from_server: impl Read + Send + 'static, to_server: impl Write + Send + 'static) -> Self {
        let bare = matches!(cutter, Cutter::BareLines(_));
        let lines = bare || matches!(cutter, Cutter::Lines(_));
        let (arrived, incoming) = async_mpsc::unbounded_channel();
        let (outgoing, to_write) = mpsc::channel::<Vec<u8>>();
        let reading = Arc::new(Pause::default());
        let largest_frame = Arc::new(Mutex::new(0));
        let (pause, largest) = (Arc::clone(&reading), Arc::clone(&largest_frame));
        std::thread::spawn(move || read_messages(cutter, from_server, &pause, &largest, &arrived));
        std::thread::spawn(move || write_all(to_server, &to_write));
        Self {
            incoming,
            outgoing: Some(outgoing),
            reading,
            largest_frame,
            unread: VecDeque::new(),
            arrived: Vec::new(),
            next_id: 1,
            lines,
            bare,
            style: Style::default(),
        }
    }

    /// One `write` with these bytes.
    pub fn raw_send(&self, bytes: impl Into<Vec<u8>>) {
        if let Some(outgoing) = &self.outgoing {
            let _ = outgoing.send(bytes.into());
        }
    }

    /// One frame, in one `write`.
    pub fn send(&self, message: &Value) {
        self.raw_send(self.framed(message));
    }

    /// Several frames, all in one `write`.
    pub fn send_together(&self, messages: &[Value]) {
        self.raw_send(messages.iter().flat_map(|message| self.framed(message)).collect::<Vec<u8>>());
    }

    /// Ends the server's input.
    pub fn close_input(&mut self) {
        self.outgoing = None;
    }

    /// From now on the server's output is not read; what is on its way may still arrive.
    pub fn stop_reading(&self) {
        self.reading.set(true);
    }

    pub fn go_on_reading(&self) {
        self.reading.set(false);
    }

    /// The body of the largest frame so far, in bytes.
    pub fn largest_frame(&self) -> usize {
        *self.largest_frame.lock().unwrap()
    }

    fn framed(&self, message: &Value) -> Vec<u8> {
        let mut body = message.to_string();
        if self.bare {
            let mut message = message.clone();
            message.as_object_mut().unwrap().remove("jsonrpc");
            body = message.to_string();
        }
        if self.style.trailing_newline || self.lines {
            body.push('\n');
        }
        if self.lines { body.into_bytes() } else { frame(&body) }
    }
}

/// Building and sending messages.
impl Peer {
    /// A request as a message, and the id that its response will have.
    pub fn request_message<M: Request>(&mut self, params: M::Params) -> (i64, Value) {
        let id = self.fresh_id();
        let params = serde_json::to_value(params).unwrap();
        (id, json!({"jsonrpc": "2.0", "id": id, "method": M::METHOD, "params": params}))
    }

    pub fn notification_message<N: Notification>(&self, params: N::Params) -> Value {
        json!({"jsonrpc": "2.0", "method": N::METHOD, "params": serde_json::to_value(params).unwrap()})
    }

    /// Sends a request; see [`response`](Self::response).
    pub fn start<M: Request>(&mut self, params: M::Params) -> i64 {
        let (id, message) = self.request_message::<M>(params);
        self.send(&message);
        id
    }

    /// Sends a request with params of any shape; `None` leaves them out.
    pub fn start_raw(&mut self, method: &str, params: Option<Value>) -> i64 {
        let id = self.fresh_id();
        self.send(&with_params(json!({"jsonrpc": "2.0", "id": id, "method": method}), params));
        id
    }

    pub fn notify<N: Notification>(&self, params: N::Params) {
        self.send(&self.notification_message::<N>(params));
    }

    pub fn notify_raw(&self, method: &str, params: Option<Value>) {
        self.send(&with_params(json!({"jsonrpc": "2.0", "method": method}), params));
    }

    /// Answers a request of the server.
    pub fn answer(&self, request: &Value, result: Value) {
        self.send(&json!({"jsonrpc": "2.0", "id": request["id"], "result": result}));
    }

    fn fresh_id(&mut self) -> i64 {
        self.next_id += 1;
        self.next_id - 1
    }
}

/// Waiting for messages. Whatever is not asked for stays unread, in its order.
impl Peer {
    /// The next message of any kind.
    pub async fn next(&mut self) -> Value {
        match self.unread.pop_front() {
            Some(message) => message,
            None => self.receive("any message").await,
        }
    }

    /// The first unread message that fits.
    pub async fn find(&mut self, what: &str, fits: impl Fn(&Value) -> bool) -> Value {
        let mut from = 0;
        loop {
            if let Some(at) = self.unread.iter().skip(from).position(&fits) {
                return self.unread.remove(from + at).unwrap();
            }
            from = self.unread.len();
            let message = self.receive(what).await;
            self.unread.push_back(message);
        }
    }

    /// Every message up to and including the first that fits, in order.
    pub async fn everything_until(&mut self, what: &str, fits: impl Fn(&Value) -> bool) -> Vec<Value> {
        let mut messages = Vec::new();
        loop {
            let message = match self.unread.pop_front() {
                Some(message) => message,
                None => self.receive(what).await,
            };
            messages.push(message);
            if messages.last().is_some_and(&fits) {
                return messages;
            }
        }
    }

    /// The messages of one chat up to the end of its turn; those of others stay unread.
    pub async fn collect_turn(&mut self, chat: &str) -> Vec<Value> {
        let mut messages = Vec::new();
        loop {
            let message = self.find(&format!("the end of {chat}"), |message| message["params"]["chatId"] == chat).await;
            let over = is_finished(&message, chat);
            messages.push(message);
            if over {
                return messages;
            }
        }
    }

    pub async fn next_notification<N: Notification>(&mut self) -> N::Params {
        let message = self.find(N::METHOD, |message| message["method"] == N::METHOD).await;
        serde_json::from_value(message["params"].clone()).unwrap()
    }

    /// The first unread content of a chat for which `pick` finds something.
    pub async fn expect_content<T>(&mut self, what: &str, pick: impl Fn(&Value) -> Option<T>) -> T {
        let content =
            |message: &Value| (message["method"] == "chat/contentReceived").then(|| pick(&message["params"])).flatten();
        let message = self.find(what, |message| content(message).is_some()).await;
        content(&message).unwrap()
    }

    /// The whole response to a request.
    pub async fn response_raw(&mut self, id: impl Into<Value>) -> Value {
        let id = id.into();
        let what = format!("the response to {id}");
        self.find(&what, |message| message.get("method").is_none() && message["id"] == id).await
    }

    pub async fn response<M: Request>(&mut self, id: i64) -> Result<M::Result, RpcError> {
        let response = self.response_raw(id).await;
        match response.get("error") {
            Some(error) => Err(RpcError {
                code: error["code"].as_i64().expect("an error code is a whole number"),
                message: error["message"].as_str().expect("an error has a message").to_owned(),
                data: error.get("data").cloned(),
            }),
            None => Ok(serde_json::from_value(response["result"].clone()).unwrap()),
        }
    }

    /// A request that must succeed.
    pub async fn request<M: Request>(&mut self, params: M::Params) -> M::Result {
        let id = self.start::<M>(params);
        self.response::<M>(id).await.unwrap_or_else(|error| panic!("{}: {error:?}", M::METHOD))
    }

    /// A request with params of any shape, and its whole response.
    pub async fn request_raw(&mut self, method: &str, params: Option<Value>) -> Value {
        let id = self.start_raw(method, params);
        self.response_raw(id).await
    }

    /// Everything that the server had said when it answered a request sent now: since it answers
    /// in order, nothing that was caused before can still be missing.
    pub async fn settled(&mut self) -> Vec<Value> {
        let id = self.start_raw("jobs/list", Some(json!({})));
        let mut messages = self.everything_until("jobs/list", |message| message["id"] == id).await;
        messages.pop();
        messages
    }

    /// Waits until the server has closed its output.
    pub async fn end_of_output(&mut self) {
        loop {
            match self.try_receive("the end of the output").await {
                Some(message) => self.unread.push_back(message),
                None => return,
            }
        }
    }

    /// What was sent and not asked for. Empties it.
    pub fn take_unread(&mut self) -> Vec<Value> {
        while let Ok(message) = self.incoming.try_recv() {
            let message = message.unwrap_or_else(|problem| panic!("{problem}"));
            self.unread.push_back(message);
        }
        self.unread.drain(..).collect()
    }

    async fn receive(&mut self, what: &str) -> Value {
        match self.try_receive(what).await {
            Some(message) => message,
            None => self.fail(&format!("the server closed its output; expected {what}")),
        }
    }

    async fn try_receive(&mut self, what: &str) -> Option<Value> {
        match tokio::time::timeout(HANG_GUARD, self.incoming.recv()).await {
            Err(_) => self.fail(&format!("nothing came for {HANG_GUARD:?}; expected {what}")),
            Ok(None) => None,
            Ok(Some(Err(problem))) => self.fail(&problem),
            Ok(Some(Ok(message))) => {
                self.arrived.push(text_of(&message));
                Some(message)
            }
        }
    }

    fn fail(&self, problem: &str) -> ! {
        let shown = 60;
        let skipped = self.arrived.len().saturating_sub(shown);
        let unread: Vec<String> = self.unread.iter().map(text_of).collect();
        panic!(
            "{problem}\nunread:\n  {}\narrived so far ({skipped} earlier ones left out):\n  {}",
            unread.join("\n  "),
            self.arrived[skipped..].join("\n  ")
        )
    }
}

/// A message, short enough to be read in a failure.
pub fn text_of(message: &Value) -> String {
    let text = message.to_string();
    match text.char_indices().nth(300) {
        Some((at, _)) => format!("{}… ({} bytes)", &text[..at], text.len()),
        None => text,
    }
}

fn with_params(mut message: Value, params: Option<Value>) -> Value {
    if let Some(params) = params {
        message["params"] = params;
    }
    message
}

#[derive(Default)]
struct Pause {
    paused: Mutex<bool>,
    changed: Condvar,
}

impl Pause {
    fn set(&self, paused: bool) {
        *self.paused.lock().unwrap() = paused;
        self.changed.notify_all();
    }

    fn wait(&self) {
        let mut paused = self.paused.lock().unwrap();
        while *paused {
            paused = self.changed.wait(paused).unwrap();
        }
    }
}

fn write_all(mut to_server: impl Write, to_write: &mpsc::Receiver<Vec<u8>>) {
    while let Ok(bytes) = to_write.recv() {
        // A server that has ended reads nothing more; whether it should have is the test's affair.
        if to_server.write_all(&bytes).and_then(|()| to_server.flush()).is_err() {
            return;
        }
    }
}

fn read_messages(
    mut cutter: Cutter,
    mut from_server: impl Read,
    pause: &Pause,
    largest: &Mutex<usize>,
    arrived: &async_mpsc::UnboundedSender<Result<Value, String>>,
) {
    let mut chunk = vec![0; 64 * 1024];
    loop {
        pause.wait();
        let length = match from_server.read(&mut chunk) {
            Ok(0) | Err(_) => {
                if !cutter.is_empty() {
                    let _ = arrived.send(Err("the output ended inside a message".into()));
                }
                return;
            }
            Ok(length) => length,
        };
        cutter.push(&chunk[..length]);
        loop {
            let message = match cutter.next() {
                Ok(None) => break,
                Ok(Some(body)) => {
                    let mut largest = largest.lock().unwrap();
                    *largest = (*largest).max(body.len());
                    cutter.checked(&body)
                }
                Err(problem) => Err(problem),
            };
            let broken = message.is_err();
            if arrived.send(message).is_err() || broken {
                return;
            }
        }
    }
}
