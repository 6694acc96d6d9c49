//! A client that stops reading: the model is slowed down, nothing grows, and a stop still works.

use std::io::ErrorKind;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use custom_methods::chat::ChatPromptParams;
use custom_methods::methods::ChatPrompt;
use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;

use crate::mock_llm::Gate;
use crate::peer::outline::text_by;
use crate::peer::{HANG_GUARD, is_finished, outline};
use crate::server::{TestServer, prompt};

/// What lies between a model and a client that does not read may hold so much: the outbox, two
/// pipes and the sockets' buffers.
const MOST_IN_FLIGHT: usize = 24 * 1024 * 1024;
/// A socket that takes nothing for so long is full. Only how strict the test is depends on it.
const STALL: Duration = Duration::from_millis(400);

/// A model that talks without end and counts what it got rid of.
struct Flood {
    url: String,
    accepted: Arc<AtomicUsize>,
    stalled: Arc<Notify>,
    closed: Arc<Notify>,
}

impl Flood {
    async fn start() -> Self {
        Self::after(None).await
    }

    /// Thinks until the gate is open, then talks.
    async fn after(thinking: Option<Gate>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let flood = Self {
            url: format!("http://{}", listener.local_addr().unwrap()),
            accepted: Arc::default(),
            stalled: Arc::default(),
            closed: Arc::default(),
        };
        let (accepted, stalled, closed) =
            (Arc::clone(&flood.accepted), Arc::clone(&flood.stalled), Arc::clone(&flood.closed));
        tokio::spawn(async move {
            let (socket, _) = listener.accept().await.unwrap();
            pour(&socket, thinking, &accepted, &stalled).await;
            closed.notify_one();
        });
        flood
    }
}

/// Numbered pieces, so that a lost or doubled one is seen.
fn piece(number: usize) -> String {
    format!("{number:08} {}\n", "é\\\"".repeat(200))
}

async fn pour(socket: &TcpStream, thinking: Option<Gate>, accepted: &AtomicUsize, stalled: &Notify) {
    // An answer that comes before its request breaks the connection; readiness may be a false alarm.
    let mut request = [0; 64 * 1024];
    while socket.readable().await.is_ok() && socket.try_read(&mut request).is_err() {}
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
    let mut bytes = head.as_bytes().to_vec();
    if let Some(gate) = thinking {
        bytes.extend(event(&json!({"reasoning_content": "hm"})));
        let _ = socket.try_write(&std::mem::take(&mut bytes));
        gate.pass().await;
    }
    for number in 0.. {
        bytes.extend(event(&json!({"content": piece(number)})));
        while !bytes.is_empty() {
            match socket.try_write(&bytes) {
                Ok(written) => {
                    bytes.drain(..written);
                    accepted.fetch_add(written, Ordering::SeqCst);
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    if tokio::time::timeout(STALL, socket.writable()).await.is_err() {
                        stalled.notify_one();
                    }
                }
                Err(_) => return,
            }
        }
        if number % 16 == 0 {
            tokio::task::yield_now().await;
        }
    }
}

fn event(delta: &Value) -> Vec<u8> {
    let event = format!("data: {}\n\n", json!({"choices": [{"index": 0, "delta": delta}]}));
    format!("{:x}\r\n{event}\r\n", event.len()).into_bytes()
}

async fn within_guard(what: &str, future: impl Future<Output = ()>) {
    tokio::time::timeout(HANG_GUARD, future).await.unwrap_or_else(|_| panic!("{what} did not happen"));
}

#[tokio::test]
async fn the_model_is_slowed_down_a_stop_works_and_nothing_is_lost() {
    let flood = Flood::start().await;
    let mut server = TestServer::at(&flood.url).start().await;
    server.prompt(Some("c"), "hi").await;
    server.everything_until("the first words", |message| message["params"]["role"] == "assistant").await;
    server.stop_reading();
    within_guard("back-pressure", flood.stalled.notified()).await;
    assert!(flood.accepted.load(Ordering::SeqCst) < MOST_IN_FLIGHT);
    server.stop("c");
    within_guard("the end of the connection to the model", flood.closed.notified()).await;
    let accepted = flood.accepted.load(Ordering::SeqCst);
    assert!(accepted < MOST_IN_FLIGHT, "{accepted} bytes were taken for a client that does not read");
    server.go_on_reading();
    let messages = server.everything_until("the end", |message| is_finished(message, "c")).await;
    assert_eq!(outline(&messages)[1..], ["system text", "status stopping", "status idle", "finished"]);
    // The first piece was read above, perhaps with more of them in the same message.
    let text = text_by("assistant", &messages);
    let first: usize = text[..8].parse().unwrap();
    let mut expected = String::with_capacity(text.len() + 1000);
    for number in first.. {
        expected.push_str(&piece(number));
        if expected.len() >= text.len() {
            break;
        }
    }
    assert!(expected.starts_with(&text), "pieces were lost, doubled or reordered");
    assert!(server.largest_frame() <= 64 * 1024, "{} bytes in one frame", server.largest_frame());
    server.finish().await;
}

#[tokio::test]
async fn requests_are_answered_once_the_client_reads_again() {
    let flood = Flood::start().await;
    let mut server = TestServer::at(&flood.url).start().await;
    server.prompt(Some("c"), "hi").await;
    server.stop_reading();
    within_guard("back-pressure", flood.stalled.notified()).await;
    let ids: Vec<i64> = (0..20).map(|_| server.start_raw("jobs/list", None)).collect();
    server.stop("c");
    within_guard("the end of the connection to the model", flood.closed.notified()).await;
    server.go_on_reading();
    for id in ids {
        assert!(server.response_raw(id).await["result"].is_object());
    }
    server.collect_turn("c").await;
    server.finish().await;
}

#[tokio::test]
async fn a_reason_that_ends_while_the_client_does_not_read_is_still_finished() {
    let gate = Gate::new();
    let (talker, thinker) = (Flood::start().await, Flood::after(Some(gate.clone())).await);
    let provider = json!({"api": "openai-chat", "url": thinker.url, "fetchModels": false, "models": {"m": {}}});
    let mut server = TestServer::at(&talker.url).config(json!({"providers": {"thinker": provider}})).start().await;
    let params = ChatPromptParams { model: Some("thinker/m".into()), ..prompt(Some("thinker"), "think") };
    server.request::<ChatPrompt>(params).await;
    server.find("a thought", |message| message["params"]["content"]["type"] == "reasonText").await;
    server.stop_reading();
    server.start_prompt(Some("talker"), "talk");
    within_guard("a full queue", talker.stalled.notified()).await;
    // Now the end of the reason finds no room, and the words behind it are not read either.
    gate.open();
    within_guard("back-pressure", thinker.stalled.notified()).await;
    server.stop("thinker");
    within_guard("the end of the connection", thinker.closed.notified()).await;
    server.stop("talker");
    server.go_on_reading();
    let turn = server.collect_turn("thinker").await;
    let lines = outline(&turn);
    assert_eq!(
        lines[lines.len() - 5..],
        ["system text", "reasonFinished", "status stopping", "status idle", "finished"]
    );
    server.collect_turn("talker").await;
    server.find("the response", |message| message.get("method").is_none()).await;
    server.finish().await;
}
