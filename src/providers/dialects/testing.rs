//! What the tests of all dialects share: answers fed in every possible cut, histories of every
//! kind, and a provider's way to the mock server.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::{StreamExt, stream};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::exchange::{Framing, framed};
use super::{Decoder, Progress, Timeouts};
use crate::base::ModelId;
use crate::config::{ProviderConfig, Secret};
use crate::http;
use crate::llm::{
    Delta, DeltaStream, Image, LlmError, Message, Part, Replay, Request, Role, StopReason, ToolSpec, Usage,
};
use crate::providers::errors::{Fault, Origin};

#[path = "../../../tests/support/mock_llm.rs"]
pub(super) mod mock_llm;

use mock_llm::HANG_GUARD;

pub(super) const KEY: &str = "sk-very-secret";
pub(super) const END: Delta = Delta::Stop(StopReason::EndTurn);
pub(super) const CALLS: Delta = Delta::Stop(StopReason::ToolCalls);

/// A name, a body, and what it means.
pub(super) type Answer = (&'static str, String, Vec<Delta>);

/// Decodes a body that arrives in these pieces, as the exchange does it.
pub(super) async fn decode_pieces(
    framing: Framing,
    mut decoder: impl Decoder,
    pieces: Vec<Bytes>,
) -> (Vec<Delta>, Result<(), Fault>) {
    let mut out = Vec::new();
    let origin = Arc::new(Origin::new("acme", "m", "", Vec::new()));
    let mut events = framed(framing, stream::iter(pieces.into_iter().map(Ok)).boxed(), &origin);
    while let Some(event) = events.next().await {
        let event = event.unwrap();
        match decoder.event(&event, &mut out) {
            Ok(Progress::More) => {}
            Ok(Progress::Complete) => break,
            Err(Fault::Protocol(_)) if !event.terminated => break,
            Err(fault) => return (out, Err(fault)),
        }
    }
    let end = decoder.end(&mut out);
    (out, end)
}

/// Every answer whole, split at every byte and truncated at every byte. A cut answer gives a
/// beginning of what the whole one gives, with reasoning closed, and ends either well or as a
/// premature stop; never as a success without a stop.
pub(super) async fn check_answers<D: Decoder>(framing: Framing, decoder: impl Fn() -> D, answers: Vec<Answer>) {
    for (label, body, expected) in answers {
        let bytes = Bytes::from(body);
        let whole = decode_pieces(framing, decoder(), vec![bytes.clone()]).await;
        assert_eq!(whole, (expected.clone(), Ok(())), "{label}");
        for at in 1..bytes.len() {
            let pieces = vec![bytes.slice(..at), bytes.slice(at..)];
            let found = decode_pieces(framing, decoder(), pieces).await;
            assert_eq!(found, (expected.clone(), Ok(())), "{label} split at {at}");
        }
        for end in 0..bytes.len() {
            let (found, result) = decode_pieces(framing, decoder(), vec![bytes.slice(..end)]).await;
            check_cut(&format!("{label} cut at {end}"), &found, result, &expected);
        }
    }
}

fn check_cut(label: &str, found: &[Delta], result: Result<(), Fault>, expected: &[Delta]) {
    let stops = found.iter().filter(|delta| matches!(delta, Delta::Stop(_))).count();
    match result {
        Ok(()) => assert!(stops == 1 && matches!(found.last(), Some(Delta::Stop(_))), "{label}"),
        Err(fault) => assert_eq!((stops, fault), (0, Fault::PrematureStop), "{label}"),
    }
    let visible = |deltas: &[Delta]| -> String {
        deltas.iter().map(|delta| if let Delta::Text(text) = delta { text.as_str() } else { "" }).collect()
    };
    assert!(visible(expected).starts_with(&visible(found)), "{label}");
    let mut open = false;
    for delta in found {
        match delta {
            Delta::Reasoning(_) => open = true,
            Delta::ReasoningEnd { .. } => assert!(std::mem::take(&mut open), "{label}: closed twice"),
            _ => assert!(!open, "{label}: {delta:?} inside of reasoning"),
        }
    }
    assert!(!open, "{label}: reasoning left open");
}

/// Feeds an answer in one piece.
pub(super) fn decode_whole(mut decoder: impl Decoder, body: &Value) -> (Vec<Delta>, Result<(), Fault>) {
    let mut out = Vec::new();
    let result = decoder.whole(body.to_string().as_bytes(), &mut out).and_then(|()| decoder.end(&mut out));
    (out, result)
}

pub(super) fn text(text: &str) -> Delta {
    Delta::Text(text.to_owned())
}

pub(super) fn thought(text: &str) -> Delta {
    Delta::Reasoning(text.to_owned())
}

pub(super) fn call(index: usize, id: &str, name: &str) -> Delta {
    Delta::ToolCallStart { index, id: id.to_owned(), name: name.to_owned() }
}

pub(super) fn arguments(index: usize, text: &str) -> Delta {
    Delta::ToolCallArguments { index, text: text.to_owned() }
}

pub(super) fn usage(input: u64, output: u64, cache_read: u64) -> Delta {
    Delta::Usage(Usage { input, output, cache_read, cache_write: 0 })
}

pub(super) fn replay(dialect: &str, data: Value) -> Replay {
    Replay { dialect: dialect.to_owned(), data }
}

pub(super) fn request(model: &str, messages: Vec<Message>) -> Request {
    Request { messages, ..Request::to(ModelId::new("acme", model)) }
}

pub(super) fn user(parts: Vec<Part>) -> Message {
    Message { role: Role::User, parts }
}

pub(super) fn assistant(parts: Vec<Part>) -> Message {
    Message { role: Role::Assistant, parts }
}

pub(super) fn said(text: &str) -> Part {
    Part::Text(text.to_owned())
}

pub(super) fn image(base64: &str) -> Image {
    Image { media_type: "image/png".to_owned(), base64: base64.to_owned() }
}

pub(super) fn called(id: &str, arguments: &str, replay: Option<Replay>) -> Part {
    Part::ToolCall { id: id.to_owned(), name: "ls".to_owned(), arguments: arguments.to_owned(), replay }
}

pub(super) fn result(id: &str, text: &str, images: Vec<Image>) -> Part {
    Part::ToolResult { call_id: id.to_owned(), text: text.to_owned(), images, error: false }
}

pub(super) fn tool(name: &str, parameters: Value) -> ToolSpec {
    ToolSpec { name: name.to_owned(), description: "Does".to_owned(), parameters }
}

/// A conversation with everything in it, in the order that the engine writes it.
pub(super) fn conversation(dialect: &str, thought: Value, on_call: Option<Value>) -> Vec<Message> {
    let foreign = replay("other", json!({"source": "acme/m", "item": {"type": "reasoning"}, "signature": "x"}));
    vec![
        user(vec![said("look"), Part::Image(image("QUJD"))]),
        assistant(vec![
            Part::Reasoning { text: "foreign".to_owned(), replay: Some(foreign.clone()) },
            Part::Opaque(foreign),
            Part::Reasoning { text: "hm".to_owned(), replay: Some(replay(dialect, thought)) },
            said("sure"),
            called("a", "{\"p\":1}", on_call.map(|data| replay(dialect, data))),
            called("b", "{\"p\":", None),
        ]),
        user(vec![result("b", "bad", vec![]), result("a", "", vec![image("REVG")])]),
        assistant(vec![said("done")]),
        user(vec![said("thanks")]),
    ]
}

/// A provider's settings for the mock at `url`.
pub(super) fn settings(url: &str) -> ProviderConfig {
    ProviderConfig { url: Some(url.to_owned()), ..ProviderConfig::default() }
}

/// What every provider is made of.
pub(super) fn parts() -> (Option<Secret>, http::Client, Timeouts) {
    let http = http::Client::new(http::Settings { connect_timeout: Duration::from_secs(5) });
    (Some(Secret::new(KEY)), http, Timeouts::new(HANG_GUARD))
}

pub(super) async fn all(mut stream: DeltaStream) -> (Vec<Delta>, Option<LlmError>) {
    let mut deltas = Vec::new();
    loop {
        match tokio::time::timeout(HANG_GUARD, stream.next()).await.expect("the stream is stuck") {
            None => return (deltas, None),
            Some(Ok(delta)) => deltas.push(delta),
            Some(Err(error)) => return (deltas, Some(error)),
        }
    }
}

/// An answer as the engine keeps it: texts joined, thoughts where they ended, calls last.
pub(super) fn kept(deltas: Vec<Delta>) -> Message {
    let (mut parts, mut calls, mut thoughts) = (Vec::new(), Vec::new(), String::new());
    for delta in deltas {
        match delta {
            Delta::Text(text) => match parts.last_mut() {
                Some(Part::Text(last)) => last.push_str(&text),
                _ => parts.push(Part::Text(text)),
            },
            Delta::Reasoning(text) => thoughts.push_str(&text),
            Delta::ReasoningEnd { replay } => {
                parts.push(Part::Reasoning { text: std::mem::take(&mut thoughts), replay });
            }
            Delta::Image(image) => parts.push(Part::Image(image)),
            Delta::Opaque(replay) => parts.push(Part::Opaque(replay)),
            Delta::ToolCallStart { id, name, .. } => {
                calls.push(Part::ToolCall { id, name, arguments: String::new(), replay: None });
            }
            Delta::ToolCallArguments { index, text } => {
                if let Part::ToolCall { arguments, .. } = &mut calls[index] {
                    arguments.push_str(&text);
                }
            }
            Delta::ToolCallReplay { index, replay: given } => {
                if let Part::ToolCall { replay, .. } = &mut calls[index] {
                    *replay = Some(given);
                }
            }
            _ => {}
        }
    }
    parts.extend(calls);
    assistant(parts)
}

/// How many pictures the given side put into a history; results are the user's.
pub(super) fn pictures(messages: &[Message], role: Role) -> usize {
    let parts = messages.iter().filter(|message| message.role == role).flat_map(|message| &message.parts);
    parts
        .map(|part| match part {
            Part::Image(_) => 1,
            Part::ToolResult { images, .. } if role == Role::User => images.len(),
            _ => 0,
        })
        .sum()
}

/// Any history that a chat may have come to, mostly broken ones.
pub(super) fn any_history() -> impl Strategy<Value = Vec<Message>> {
    let role = prop_oneof![Just(Role::User), Just(Role::Assistant)];
    let message = (role, prop::collection::vec(any_part(), 0..5)).prop_map(|(role, parts)| Message { role, parts });
    prop::collection::vec(message, 0..8)
}

fn any_part() -> impl Strategy<Value = Part> {
    let words = prop_oneof![Just(String::new()), Just(" ".to_owned()), Just("a".to_owned()), Just("é€😀".to_owned())];
    // Mostly the same one, so that calls and results meet.
    let ids = prop_oneof![
        6 => Just("a".to_owned()),
        3 => prop_oneof![Just(""), Just("b"), Just("call_1")].prop_map(str::to_owned),
        1 => prop_oneof![Just("é/ x".to_owned()), Just("i".repeat(100))],
    ];
    let names =
        prop_oneof![Just("ls".to_owned()), Just(String::new()), Just("1 é.x/y".to_owned()), Just("n".repeat(99))];
    let given =
        prop_oneof![Just("{}"), Just("{\"a\":1}"), Just(""), Just("[1]"), Just("{\"a\"")].prop_map(str::to_owned);
    let images = || prop::collection::vec(Just(image("QUJD")), 0..2);
    let maybe = || prop::option::of(any_replay());
    prop_oneof![
        words.clone().prop_map(Part::Text),
        Just(Part::Image(image("QUJD"))),
        (words.clone(), maybe()).prop_map(|(text, replay)| Part::Reasoning { text, replay }),
        (ids.clone(), names, given, maybe()).prop_map(|(id, name, arguments, replay)| Part::ToolCall {
            id,
            name,
            arguments,
            replay
        }),
        (ids, words, images(), any::<bool>()).prop_map(|(call_id, text, images, error)| Part::ToolResult {
            call_id,
            text,
            images,
            error
        }),
        any_replay().prop_map(Part::Opaque),
    ]
}

/// Replays of every dialect and of none, whole and mangled.
fn any_replay() -> impl Strategy<Value = Replay> {
    let dialects = prop_oneof![
        Just("openai-responses"),
        Just("gemini"),
        Just("ollama"),
        Just("openai-chat"),
        Just("anthropic"),
        Just("")
    ];
    let data = prop_oneof![
        Just(json!({"item": {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "e"}})),
        Just(json!({"item": {"type": "reasoning", "id": "rs_1", "summary": []}})),
        Just(json!({"item": {"type": "reasoning", "encrypted_content": "e"}})),
        Just(json!({"item": {"type": "web_search_call", "id": "ws_1", "status": "completed"}})),
        Just(json!({"item": {"type": "message"}})),
        Just(json!({"item": 7, "signature": 7, "part": 7})),
        Just(json!({"signature": "s", "id": "given"})),
        (0..5u64).prop_map(|bytes| json!({"signature": "s", "on": "text", "bytes": bytes})),
        Just(json!({"signature": "s", "on": "image"})),
        Just(json!({"part": {"toolCall": {"id": "x"}}})),
        Just(json!({})),
        Just(json!(null)),
    ];
    let sources = prop_oneof![3 => Just(Some("acme/m")), 1 => Just(Some("acme/other")), 1 => Just(None)];
    (dialects, data, sources).prop_map(|(dialect, mut data, source)| {
        if let (Some(data), Some(source)) = (data.as_object_mut(), source) {
            data.insert("source".to_owned(), json!(source));
        }
        replay(dialect, data)
    })
}
