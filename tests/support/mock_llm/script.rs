//! What the mock answers: a head, and steps that write, wait or hang up.

use std::sync::Arc;

use bytes::Bytes;
use serde_json::{Value, json};
use tokio::sync::Semaphore;

/// One answer.
#[derive(Debug, Clone)]
pub struct Script {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub transfer: Transfer,
    pub steps: Vec<Step>,
    /// Hangs up after so many bytes of the body.
    pub cut_after: Option<usize>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transfer {
    /// Every step is one chunk.
    Chunked,
    /// The body ends when the connection does.
    UntilClose,
    /// With a content length, taken from the steps.
    Length,
}

#[derive(Debug, Clone)]
pub enum Step {
    Bytes(Bytes),
    /// Waits until the test opens it.
    Gate(Gate),
    /// A flood that takes no memory.
    Repeat {
        times: usize,
        chunk: Bytes,
    },
    /// Sends nothing until the client closes the connection.
    Hang,
    /// Hangs up.
    Cut,
}

/// Holds an answer back. Each `open` lets one step pass, before or after it is reached.
#[derive(Debug, Clone)]
pub struct Gate(Arc<Semaphore>);

impl Gate {
    pub fn new() -> Self {
        Self(Arc::new(Semaphore::new(0)))
    }

    pub fn open(&self) {
        self.0.add_permits(1);
    }

    pub async fn pass(&self) {
        self.0.acquire().await.expect("gates are never closed").forget();
    }
}

impl Default for Gate {
    fn default() -> Self {
        Self::new()
    }
}

/// Whole answers.
impl Script {
    /// A chat completion that streams these texts.
    pub fn text_stream(texts: &[&str]) -> Self {
        texts.iter().fold(Self::stream(), |script, text| script.text(text)).finish("stop")
    }

    /// A chat completion that thinks, then answers.
    pub fn reasoning(thoughts: &[&str], texts: &[&str]) -> Self {
        let script = thoughts.iter().fold(Self::stream(), |script, text| script.thought(text));
        texts.iter().fold(script, |script, text| script.text(text)).finish("stop")
    }

    /// A chat completion that calls one tool, its arguments in pieces.
    pub fn tool_call(id: &str, name: &str, arguments: &[&str]) -> Self {
        Self::stream().call(0, id, name, arguments).finish("tool_calls")
    }

    /// Events with the given data, then the end of the body.
    pub fn sse(events: &[&str]) -> Self {
        events.iter().fold(Self::stream(), |script, data| script.data(data))
    }

    pub fn json(body: &Value) -> Self {
        Self::status(200, &[("content-type", "application/json")], &body.to_string())
    }

    /// A list of models.
    pub fn models(names: &[&str]) -> Self {
        let data: Vec<Value> = names.iter().map(|name| json!({"id": name, "object": "model"})).collect();
        Self::json(&json!({"object": "list", "data": data}))
    }

    pub fn status(code: u16, headers: &[(&str, &str)], body: &str) -> Self {
        Self {
            status: code,
            headers: headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect(),
            transfer: Transfer::Length,
            steps: vec![Step::Bytes(Bytes::copy_from_slice(body.as_bytes()))],
            cut_after: None,
        }
    }

    /// Takes the request and never answers.
    pub fn hang() -> Self {
        Self { transfer: Transfer::UntilClose, status: 0, steps: vec![Step::Hang], ..Self::stream() }
    }
}

/// Answers put together from parts.
impl Script {
    /// The head of a stream of events, and nothing in it yet.
    pub fn stream() -> Self {
        Self {
            status: 200,
            headers: vec![("content-type".to_owned(), "text/event-stream".to_owned())],
            transfer: Transfer::Chunked,
            steps: Vec::new(),
            cut_after: None,
        }
    }

    pub fn step(mut self, step: Step) -> Self {
        self.steps.push(step);
        self
    }

    pub fn bytes(self, bytes: impl AsRef<[u8]>) -> Self {
        self.step(Step::Bytes(Bytes::copy_from_slice(bytes.as_ref())))
    }

    pub fn gate(self, gate: &Gate) -> Self {
        self.step(Step::Gate(gate.clone()))
    }

    /// One event with this data.
    pub fn data(self, data: &str) -> Self {
        self.bytes(format!("data: {data}\n\n"))
    }

    /// One chunk of a chat completion whose first choice has this delta.
    pub fn delta(self, delta: Value) -> Self {
        self.data(&chunk(delta, None).to_string())
    }

    pub fn text(self, text: &str) -> Self {
        self.delta(json!({"content": text}))
    }

    pub fn thought(self, text: &str) -> Self {
        self.delta(json!({"reasoning_content": text}))
    }

    pub fn call(self, index: usize, id: &str, name: &str, arguments: &[&str]) -> Self {
        let first = json!({"tool_calls": [
            {"index": index, "id": id, "type": "function", "function": {"name": name, "arguments": ""}}
        ]});
        arguments.iter().fold(self.delta(first), |script, text| {
            script.delta(json!({"tool_calls": [{"index": index, "function": {"arguments": text}}]}))
        })
    }

    /// The same text over and over.
    pub fn flood(self, times: usize, text: &str) -> Self {
        let chunk = format!("data: {}\n\n", chunk(json!({"content": text}), None));
        self.step(Step::Repeat { times, chunk: Bytes::from(chunk) })
    }

    /// The end of a chat completion: reason, usage (12 in, 4 of them cached; 7 out), `[DONE]`.
    pub fn finish(self, reason: &str) -> Self {
        let usage = json!({
            "id": "chatcmpl-mock", "object": "chat.completion.chunk", "model": "mock", "choices": [],
            "usage": {"prompt_tokens": 12, "completion_tokens": 7, "total_tokens": 19,
                "prompt_tokens_details": {"cached_tokens": 4}},
        });
        self.data(&chunk(json!({}), Some(reason)).to_string()).data(&usage.to_string()).data("[DONE]")
    }

    pub fn hang_here(self) -> Self {
        self.step(Step::Hang)
    }

    pub fn cut_after(mut self, bytes: usize) -> Self {
        self.cut_after = Some(bytes);
        self
    }

    /// Writes the same bytes in pieces of `size`.
    pub fn split_every(mut self, size: usize) -> Self {
        self.steps = std::mem::take(&mut self.steps)
            .into_iter()
            .flat_map(|step| match step {
                Step::Bytes(bytes) => {
                    bytes.chunks(size.max(1)).map(|piece| Step::Bytes(Bytes::copy_from_slice(piece))).collect()
                }
                other => vec![other],
            })
            .collect();
        self
    }
}

/// How it is written.
impl Script {
    pub(super) fn head(&self) -> String {
        if self.status == 0 {
            return String::new();
        }
        let mut head = format!("HTTP/1.1 {} Mock\r\n", self.status);
        for (name, value) in &self.headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        match self.transfer {
            Transfer::Chunked => head.push_str("transfer-encoding: chunked\r\n"),
            Transfer::UntilClose => head.push_str("connection: close\r\n"),
            Transfer::Length => {
                let length: usize = self.steps.iter().map(Step::length).sum();
                head.push_str(&format!("content-length: {length}\r\n"));
            }
        }
        head + "\r\n"
    }

    pub(super) fn framed(&self, bytes: &[u8]) -> Vec<u8> {
        if self.transfer != Transfer::Chunked || bytes.is_empty() {
            return bytes.to_vec();
        }
        let mut chunk = format!("{:x}\r\n", bytes.len()).into_bytes();
        chunk.extend_from_slice(bytes);
        chunk.extend_from_slice(b"\r\n");
        chunk
    }

    pub(super) fn tail(&self) -> &'static [u8] {
        if self.transfer == Transfer::Chunked { b"0\r\n\r\n" } else { b"" }
    }
}

impl Step {
    fn length(&self) -> usize {
        match self {
            Self::Bytes(bytes) => bytes.len(),
            Self::Repeat { times, chunk } => times * chunk.len(),
            Self::Gate(_) | Self::Hang | Self::Cut => 0,
        }
    }
}

fn chunk(delta: Value, finish_reason: Option<&str>) -> Value {
    json!({
        "id": "chatcmpl-mock",
        "object": "chat.completion.chunk",
        "created": 1,
        "model": "mock",
        "choices": [{"index": 0, "delta": delta, "finish_reason": finish_reason}],
    })
}
