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

use crate::mock_llm::{Gate, MockLlm, Script};
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
        Self::of(talk, None).await
    }

    /// Sends these chunks; before that one other, and waits until the gate is open.
    async fn of(chunk: fn(usize) -> Value, before: Option<(Value, Gate)>) -> Self {
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
            pour(&socket, chunk, before, &accepted, &stalled).await;
            closed.notify_one();
        });
        flood
    }
}

fn talk(number: usize) -> Value {
    delta(&json!({"content": piece(number)}))
}

/// The arguments of a call that never ends. Each piece is a message of its own, so they fill the
/// queue by their number and leave no room for anything else.
fn call(number: usize) -> Value {
    let id = if number == 0 { json!("call_1") } else { Value::Null };
    let name = if number == 0 { json!("grep") } else { Value::Null };
    delta(&json!({"tool_calls": [{"index": 0, "id": id, "function": {"name": name, "arguments": "x"}}]}))
}

fn give_up(_: usize) -> Value {
    json!({"error": {"message": "out of luck", "code": 400}})
}

fn delta(delta: &Value) -> Value {
    json!({"choices": [{"index": 0, "delta": delta}]})
}

/// Numbered pieces, so that a lost or doubled one is seen.
fn piece(number: usize) -> String {
    format!("{number:08} {}\n", "é\\\"".repeat(200))
}

async fn pour(
    socket: &TcpStream,
    chunk: fn(usize) -> Value,
    before: Option<(Value, Gate)>,
    accepted: &AtomicUsize,
    stalled: &Notify,
) {
    // An answer that comes before its request breaks the connection; readiness may be a false alarm.
    let mut request = [0; 64 * 1024];
    while socket.readable().await.is_ok() && socket.try_read(&mut request).is_err() {}
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
    let mut bytes = head.as_bytes().to_vec();
    if let Some((first, gate)) = before {
        bytes.extend(event(&first));
        let _ = socket.try_write(&std::mem::take(&mut bytes));
        gate.pass().await;
    }
    for number in 0.. {
        bytes.extend(event(&chunk(number)));
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

fn event(chunk: &Value) -> Vec<u8> {
    let event = format!("data: {chunk}\n\n");
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

/// Stops a model that has begun something while the queue to the client is full, and returns its
/// turn. `then` is what the model sends when the queue is full.
async fn stopped_behind_a_full_queue(first: Value, then: fn(usize) -> Value) -> Vec<String> {
    let gate = Gate::new();
    let (talker, other) = (Flood::of(call, None).await, Flood::of(then, Some((first, gate.clone()))).await);
    let provider = json!({"api": "openai-chat", "url": other.url, "fetchModels": false, "models": {"m": {}}});
    let mut server = TestServer::at(&talker.url).config(json!({"providers": {"other": provider}})).start().await;
    let params = ChatPromptParams { model: Some("other/m".into()), ..prompt(Some("other"), "begin") };
    server.request::<ChatPrompt>(params).await;
    let begun = |message: &Value| {
        matches!(message["params"]["content"]["type"].as_str(), Some("reasonText" | "toolCallPrepare"))
    };
    let mut turn = server.everything_until("a beginning", begun).await;
    server.stop_reading();
    server.start_prompt(Some("talker"), "talk");
    within_guard("a full queue", talker.stalled.notified()).await;
    // What ends the beginning finds no room now: either what follows is not read, or the model is
    // given up, and both can be seen from the model's side.
    gate.open();
    within_guard("a model in trouble", async {
        tokio::select! {
            () = other.stalled.notified() => {}
            () = other.closed.notified() => other.closed.notify_one(),
        }
    })
    .await;
    server.stop("other");
    within_guard("the end of the connection", other.closed.notified()).await;
    // Notifications are handled in order, so this end shows that the first stop has been handled.
    server.stop("talker");
    within_guard("the end of the talk", talker.closed.notified()).await;
    server.go_on_reading();
    turn.extend(server.collect_turn("other").await);
    server.collect_turn("talker").await;
    server.find("the response", |message| message.get("method").is_none()).await;
    server.finish().await;
    outline(&turn)
}

fn thought() -> Value {
    delta(&json!({"reasoning_content": "hm"}))
}

#[tokio::test]
async fn a_reason_that_ends_while_the_client_does_not_read_is_still_finished() {
    let lines = stopped_behind_a_full_queue(thought(), talk).await;
    assert_eq!(
        lines[lines.len() - 5..],
        ["system text", "reasonFinished", "status stopping", "status idle", "finished"]
    );
}

#[tokio::test]
async fn what_a_failed_model_left_open_is_closed_although_the_client_does_not_read() {
    for (first, end) in [(thought(), "reasonFinished"), (call(0), "toolCallRejected call_1")] {
        let lines = stopped_behind_a_full_queue(first, give_up).await;
        assert_eq!(lines.iter().filter(|line| *line == end).count(), 1, "{lines:?}");
        assert_eq!(lines.last().map(String::as_str), Some("finished"));
    }
}

#[tokio::test]
async fn a_client_that_does_not_read_cannot_keep_the_server_from_ending() {
    let flood = Flood::start().await;
    let mut server = TestServer::at(&flood.url).start().await;
    server.prompt(Some("c"), "hi").await;
    server.stop_reading();
    within_guard("back-pressure", flood.stalled.notified()).await;
    server.close_input();
    within_guard("the end of the connection to the model", flood.closed.notified()).await;
    // It ends with unwritten messages; only then the client looks again.
    server.ended().await;
    server.go_on_reading();
    server.ignore_rest();
    server.wait_for_end().await;
}

#[tokio::test]
async fn responses_keep_their_place_in_a_chat_while_the_queue_is_full() {
    const CHATS: usize = 60;
    let flood = Flood::of(call, None).await;
    let model = MockLlm::start().await;
    model.respond_with(|_| Script::text_stream(&["ok"]));
    let quick = json!({"api": "openai-chat", "url": model.url(), "fetchModels": false, "models": {"m": {}}});
    let mut server = TestServer::at(&flood.url).config(json!({"providers": {"quick": quick}})).start().await;
    server.prompt(Some("flood"), "hi").await;
    server.stop_reading();
    within_guard("a full queue", flood.stalled.notified()).await;
    let asked: Vec<(String, i64)> = (0..CHATS)
        .map(|number| {
            let chat = format!("c{number}");
            let params = ChatPromptParams { model: Some("quick/m".into()), ..prompt(Some(&chat), "hi") };
            let id = server.start::<ChatPrompt>(params);
            (chat, id)
        })
        .collect();
    // The flood goes on, so that everything has to fight for its place.
    server.go_on_reading();
    let mut open = CHATS;
    let mut seen = Vec::new();
    while open > 0 {
        let message = server.next().await;
        let of_flood = message["params"]["chatId"] == "flood";
        open -= usize::from(!of_flood && message["params"]["content"]["state"] == "finished");
        if !of_flood {
            seen.push(message);
        }
    }
    server.stop("flood");
    server.collect_turn("flood").await;
    for (chat, id) in asked {
        let own = |message: &&Value| message["params"]["chatId"] == chat.as_str() || message["id"] == id;
        let own: Vec<Value> = seen.iter().filter(own).cloned().collect();
        assert_eq!(
            outline(&own)[..5],
            ["chat/opened", "progress Starting", "user \"hi\\n\"", "response", "status running"],
            "{chat}"
        );
    }
    server.finish().await;
}
