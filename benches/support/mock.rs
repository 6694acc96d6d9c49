//! A model server made for flooding: the prompt itself says what to answer.
//!
//! One thread with its own runtime, one task per connection, one `write` per chunk. The scripted
//! mock of the tests records and gates everything, which costs more than the server under test.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;

use super::Outcome;

/// What a prompt asks the mock to answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Plan {
    pub(crate) chunks: u32,
    /// Characters of text per chunk, at least the eight of its number.
    pub(crate) size: usize,
    /// Pause before each chunk.
    pub(crate) gap: Duration,
    /// The answer starts when so many are asked for.
    pub(crate) together: usize,
}

/// A chunk's text starts with this and its number in seven digits.
pub(crate) const MARK: char = '~';
const NUMBER_DIGITS: usize = 7;

impl Plan {
    pub(crate) fn flood(chunks: u32) -> Self {
        Self { chunks, size: 8, gap: Duration::ZERO, together: 1 }
    }

    /// The prompt that asks for this.
    pub(crate) fn prompt(self) -> String {
        format!("plan={},{},{},{};", self.chunks, self.size, self.gap.as_micros(), self.together)
    }

    /// The last plan of a request body; earlier ones belong to the history.
    fn find(body: &str) -> Option<Self> {
        let (_, rest) = body.rsplit_once("plan=")?;
        let mut numbers = rest.split_once(';')?.0.split(',').map(str::parse::<u64>);
        let mut number = || numbers.next()?.ok();
        Some(Self {
            chunks: u32::try_from(number()?).ok()?,
            size: usize::try_from(number()?).ok()?,
            gap: Duration::from_micros(number()?),
            together: usize::try_from(number()?).ok()?,
        })
    }
}

/// The numbers of the chunks in a piece of text, in order.
pub(crate) fn chunk_numbers(text: &str) -> impl Iterator<Item = Option<u32>> + '_ {
    text.match_indices(MARK).map(|(at, _)| text.get(at + 1..at + 1 + NUMBER_DIGITS)?.parse().ok())
}

pub(crate) struct Mock {
    shared: Arc<Shared>,
    address: SocketAddr,
}

struct Shared {
    started: Instant,
    /// When each chunk of the last paced answer was sent, in nanoseconds since `started`.
    sent: Vec<AtomicU64>,
    /// When the last request was here as a whole, in nanoseconds since `started`, and its size.
    received: AtomicU64,
    received_bytes: AtomicUsize,
    waiting: AtomicUsize,
    arrived: Notify,
    bytes: AtomicU64,
    /// What the first answer of a chat calls, if anything.
    call: Mutex<Option<ToolCall>>,
    /// When the last call was handed to the kernel, in nanoseconds since `started`.
    called: AtomicU64,
}

/// A tool that the model calls once in a chat, before it answers.
#[derive(Debug, Clone)]
pub(crate) struct ToolCall {
    pub(crate) name: &'static str,
    /// A JSON object.
    pub(crate) arguments: String,
}

impl Mock {
    pub(crate) fn start() -> Outcome<Self> {
        let listener = std::net::TcpListener::bind("127.0.0.1:0")?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared {
            started: Instant::now(),
            sent: std::iter::repeat_with(|| AtomicU64::new(0)).take(10_000).collect(),
            received: AtomicU64::new(0),
            received_bytes: AtomicUsize::new(0),
            waiting: AtomicUsize::new(0),
            arrived: Notify::new(),
            bytes: AtomicU64::new(0),
            call: Mutex::default(),
            called: AtomicU64::new(0),
        });
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let for_thread = Arc::clone(&shared);
        // Never joined: it ends with the process.
        std::thread::Builder::new().name("mock".into()).spawn(move || {
            runtime.block_on(async {
                if let Ok(listener) = TcpListener::from_std(listener) {
                    accept(listener, for_thread).await;
                }
            });
        })?;
        Ok(Self { shared, address })
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// When the chunk of this number was handed to the kernel, in the last answer with a pace.
    pub(crate) fn sent_at(&self, chunk: u32) -> Option<Instant> {
        let nanoseconds = self.shared.sent.get(chunk as usize)?.load(Ordering::Acquire);
        Some(self.shared.started + Duration::from_nanos(nanoseconds))
    }

    /// When the last request was here as a whole, and how long its body is.
    pub(crate) fn last_request(&self) -> (Instant, usize) {
        let nanoseconds = self.shared.received.load(Ordering::Acquire);
        let bytes = self.shared.received_bytes.load(Ordering::Acquire);
        (self.shared.started + Duration::from_nanos(nanoseconds), bytes)
    }

    /// From now on, chats begin with this call.
    pub(crate) fn call(&self, call: Option<ToolCall>) {
        *self.shared.call.lock().unwrap_or_else(PoisonError::into_inner) = call;
    }

    /// How long the result of the last call took to come back.
    pub(crate) fn call_took(&self) -> Outcome<Duration> {
        let called = Duration::from_nanos(self.shared.called.load(Ordering::Acquire));
        let (received, _) = self.last_request();
        Ok(received.checked_duration_since(self.shared.started + called).ok_or("the call has no result")?)
    }

    /// Bytes of all answers so far.
    pub(crate) fn bytes(&self) -> u64 {
        self.shared.bytes.load(Ordering::Acquire)
    }
}

async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    loop {
        let Ok((socket, _)) = listener.accept().await else {
            tokio::task::yield_now().await;
            continue;
        };
        let _ = socket.set_nodelay(true);
        let shared = Arc::clone(&shared);
        tokio::spawn(async move {
            let mut unread = Vec::new();
            while let Some(body) = read_request(&socket, &mut unread).await {
                shared.received.store(nanoseconds_since(shared.started), Ordering::Release);
                shared.received_bytes.store(body.len(), Ordering::Release);
                let call = shared.call.lock().unwrap_or_else(PoisonError::into_inner).clone();
                let call = call.filter(|_| !body.contains("\"tool_call_id\""));
                let done = match (call, Plan::find(&body)) {
                    (Some(call), _) => answer_with_call(&socket, &call, &shared).await,
                    (None, Some(plan)) => answer(&socket, plan, &shared).await,
                    (None, None) => write(&socket, b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n").await,
                };
                if done.is_none() {
                    return;
                }
            }
        });
    }
}

async fn read_request(socket: &TcpStream, unread: &mut Vec<u8>) -> Option<String> {
    let head_end = loop {
        if let Some(at) = unread.windows(4).position(|window| window == b"\r\n\r\n") {
            break at + 4;
        }
        read_more(socket, unread).await?;
    };
    let head = String::from_utf8_lossy(unread.get(..head_end)?).to_ascii_lowercase();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length:"));
    let length: usize = length.and_then(|value| value.trim().parse().ok()).unwrap_or(0);
    while unread.len() < head_end + length {
        read_more(socket, unread).await?;
    }
    let body = String::from_utf8_lossy(unread.get(head_end..head_end + length)?).into_owned();
    unread.drain(..head_end + length);
    Some(body)
}

async fn read_more(socket: &TcpStream, unread: &mut Vec<u8>) -> Option<()> {
    let mut buffer = [0; 16 * 1024];
    loop {
        socket.readable().await.ok()?;
        match socket.try_read(&mut buffer) {
            Ok(0) => return None,
            Ok(count) => {
                unread.extend_from_slice(buffer.get(..count)?);
                return Some(());
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(_) => return None,
        }
    }
}

const HEAD: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
const END: &str = "e\r\ndata: [DONE]\n\n\r\n0\r\n\r\n";

async fn answer_with_call(socket: &TcpStream, call: &ToolCall, shared: &Shared) -> Option<()> {
    let ToolCall { name, arguments } = call;
    let function = serde_json::json!({"name": name, "arguments": arguments});
    let delta = serde_json::json!({"tool_calls": [{"index": 0, "id": "call_1", "type": "function",
        "function": function}]});
    let (mut whole, mut chunk) = (String::from_utf8_lossy(HEAD).into_owned(), String::new());
    event(&mut chunk, &delta.to_string(), "null");
    whole.push_str(&chunk);
    event(&mut chunk, "{}", "\"tool_calls\"");
    whole.push_str(&chunk);
    whole.push_str(END);
    shared.called.store(nanoseconds_since(shared.started), Ordering::Release);
    write(socket, whole.as_bytes()).await
}

/// `None` when the client hung up before the end.
async fn answer(socket: &TcpStream, plan: Plan, shared: &Shared) -> Option<()> {
    write(socket, HEAD).await?;
    if plan.together > 1 {
        let mut everybody = std::pin::pin!(shared.arrived.notified());
        everybody.as_mut().enable();
        if shared.waiting.fetch_add(1, Ordering::AcqRel) + 1 >= plan.together {
            shared.waiting.store(0, Ordering::Release);
            shared.arrived.notify_waiters();
        } else {
            everybody.await;
        }
    }
    let padding = "x".repeat(plan.size.saturating_sub(1 + NUMBER_DIGITS));
    let mut tick = (!plan.gap.is_zero()).then(|| tokio::time::interval(plan.gap));
    let mut chunk = String::new();
    for number in 0..plan.chunks {
        if let Some(tick) = &mut tick {
            tick.tick().await;
        }
        event(&mut chunk, &format!(r#"{{"content":"{MARK}{number:07}{padding}"}}"#), "null");
        if tick.is_some()
            && let Some(slot) = shared.sent.get(number as usize)
        {
            slot.store(nanoseconds_since(shared.started), Ordering::Release);
        }
        write(socket, chunk.as_bytes()).await?;
        shared.bytes.fetch_add(chunk.len() as u64, Ordering::Relaxed);
        if tick.is_none() && number % 64 == 63 {
            // Many answers share this thread.
            tokio::task::yield_now().await;
        }
    }
    event(&mut chunk, "{}", "\"stop\"");
    chunk.push_str(END);
    write(socket, chunk.as_bytes()).await
}

fn nanoseconds_since(started: Instant) -> u64 {
    u64::try_from(started.elapsed().as_nanos()).unwrap_or(u64::MAX)
}

/// One chunk as public servers send it, in one HTTP chunk.
fn event(out: &mut String, delta: &str, finish: &str) {
    const START: &str =
        r#"data: {"id":"chatcmpl-BhTgE1kPq0xN7","object":"chat.completion.chunk","created":1750000000,"#;
    const MODEL: &str = r#""model":"bench-1","system_fingerprint":"fp_0f1e2d","choices":[{"index":0,"delta":"#;
    const FINISH: &str = r#","logprobs":null,"finish_reason":"#;
    let length = START.len() + MODEL.len() + delta.len() + FINISH.len() + finish.len() + "}]}\n\n".len();
    out.clear();
    // Writing into a string cannot fail.
    let _ = write!(out, "{length:x}\r\n{START}{MODEL}{delta}{FINISH}{finish}}}]}}\n\n\r\n");
}

async fn write(socket: &TcpStream, mut bytes: &[u8]) -> Option<()> {
    while !bytes.is_empty() {
        match socket.try_write(bytes) {
            Ok(written) => bytes = bytes.get(written..)?,
            Err(error) if error.kind() == ErrorKind::WouldBlock => socket.writable().await.ok()?,
            Err(_) => return None,
        }
    }
    Some(())
}

/// Checks that each chat's chunks come complete and in order.
#[derive(Debug, Default)]
pub(crate) struct Ledger(Mutex<HashMap<String, u32>>);

impl Ledger {
    /// Takes a piece of a chat's text; the error names the first gap.
    pub(crate) fn take(&self, chat: &str, text: &str) -> Outcome<u32> {
        let mut chats = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !chats.contains_key(chat) {
            chats.insert(chat.to_owned(), 0);
        }
        let next = chats.get_mut(chat).ok_or("just inserted")?;
        let mut taken = 0;
        for number in chunk_numbers(text) {
            if number != Some(*next) {
                return Err(format!("chat {chat}: chunk {number:?} came where {next} was due").into());
            }
            *next += 1;
            taken += 1;
        }
        Ok(taken)
    }

    pub(crate) fn seen(&self, chat: &str) -> u32 {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(chat).copied().unwrap_or(0)
    }
}
