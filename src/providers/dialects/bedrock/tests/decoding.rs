//! Recorded shapes of streams as frames: whole, split at every byte, cut after every event.

use bytes::Bytes;
use futures_util::{StreamExt, stream};
use serde_json::{Value, json};

use crate::base::ModelId;
use crate::llm::{Delta, ErrorClass, Replay, StopReason, Usage};
use crate::providers::dialects::bedrock::BedrockDecoder;
use crate::providers::dialects::event_stream::{self, FrameError};
use crate::providers::dialects::{Decoder, Progress};
use crate::providers::errors::{Fault, Origin};

type Outcome = (Vec<Delta>, Option<Fault>);

fn decoder() -> BedrockDecoder {
    BedrockDecoder::new(&ModelId::new("bedrock", "claude-x"))
}

pub(super) fn frame(kind: &str, payload: &Value) -> Vec<u8> {
    let headers = [(":event-type", kind), (":content-type", "application/json"), (":message-type", "event")];
    event_stream::frame(&headers, &payload.to_string())
}

pub(super) fn exception(kind: &str, payload: &str) -> Vec<u8> {
    let headers = [(":exception-type", kind), (":content-type", "application/json"), (":message-type", "exception")];
    event_stream::frame(&headers, payload)
}

async fn decode(chunks: Vec<Bytes>) -> Outcome {
    let mut events = Box::pin(event_stream::events(stream::iter(chunks.into_iter().map(Ok)).boxed()));
    let mut decoder = decoder();
    let mut out = Vec::new();
    while let Some(event) = events.next().await {
        let event = match event {
            Ok(event) => event,
            Err(FrameError::Malformed(what)) => return (out, Some(Fault::Protocol(what.to_owned()))),
            Err(FrameError::Source(error)) => panic!("{error}"),
        };
        match decoder.event(&event, &mut out) {
            Ok(Progress::More) => {}
            Ok(Progress::Complete) => break,
            Err(fault) => return (out, Some(fault)),
        }
    }
    let end = decoder.end(&mut out);
    (out, end.err())
}

async fn run(frames: &[Vec<u8>]) -> Outcome {
    decode(vec![Bytes::from(frames.concat())]).await
}

fn delta(index: u64, delta: Value) -> Vec<u8> {
    frame("contentBlockDelta", &json!({"contentBlockIndex": index, "delta": delta, "p": "abcdefg"}))
}

fn stop(index: u64) -> Vec<u8> {
    frame("contentBlockStop", &json!({"contentBlockIndex": index, "p": "ab"}))
}

fn call(index: u64, id: &str, name: &str) -> Vec<u8> {
    let start = json!({"toolUse": {"toolUseId": id, "name": name}});
    frame("contentBlockStart", &json!({"contentBlockIndex": index, "start": start}))
}

fn end(reason: &str) -> Vec<u8> {
    frame("messageStop", &json!({"stopReason": reason}))
}

fn metadata() -> Vec<u8> {
    let usage = json!({"inputTokens": 10, "outputTokens": 42, "totalTokens": 282, "cacheReadInputTokens": 200,
        "cacheWriteInputTokens": 30});
    frame("metadata", &json!({"usage": usage, "metrics": {"latencyMs": 7}}))
}

const USAGE: Delta = Delta::Usage(Usage { input: 10, output: 42, cache_read: 200, cache_write: 30 });

fn text(text: &str) -> Delta {
    Delta::Text(text.to_owned())
}

fn replay(data: Value) -> Replay {
    Replay { dialect: "bedrock".to_owned(), data }
}

fn signed(signature: &str) -> Delta {
    Delta::ReasoningEnd { replay: Some(replay(json!({"model": "bedrock/claude-x", "signature": signature}))) }
}

fn opaque(block: Value) -> Delta {
    Delta::Opaque(replay(json!({"model": "bedrock/claude-x", "block": block})))
}

/// Thinks, speaks, calls two tools in parallel.
fn tools() -> Vec<Vec<u8>> {
    vec![
        frame("messageStart", &json!({"role": "assistant"})),
        delta(0, json!({"reasoningContent": {"text": "Let me "}})),
        delta(0, json!({"reasoningContent": {"text": "see… é"}})),
        delta(0, json!({"reasoningContent": {"signature": "EqQB"}})),
        stop(0),
        delta(1, json!({"reasoningContent": {"redactedContent": "ZW5j"}})),
        stop(1),
        delta(2, json!({"text": "I look. "})),
        stop(2),
        call(3, "tooluse_1", "read"),
        delta(3, json!({"toolUse": {"input": "{\"path\": \"a"}})),
        delta(3, json!({"toolUse": {"input": ".txt\"}"}})),
        stop(3),
        call(4, "tooluse_2", "now"),
        delta(4, json!({"toolUse": {"input": ""}})),
        stop(4),
        end("tool_use"),
        metadata(),
    ]
}

#[tokio::test]
async fn thinking_text_and_parallel_calls_split_at_every_byte() {
    let arguments = |index: usize, text: &str| Delta::ToolCallArguments { index, text: text.to_owned() };
    let expected = vec![
        Delta::Reasoning("Let me ".to_owned()),
        Delta::Reasoning("see… é".to_owned()),
        signed("EqQB"),
        opaque(json!({"reasoningContent": {"redactedContent": "ZW5j"}})),
        text("I look. "),
        Delta::ToolCallStart { index: 0, id: "tooluse_1".to_owned(), name: "read".to_owned() },
        arguments(0, "{\"path\": \"a"),
        arguments(0, ".txt\"}"),
        Delta::ToolCallStart { index: 1, id: "tooluse_2".to_owned(), name: "now".to_owned() },
        arguments(1, "{}"),
        USAGE,
        Delta::Stop(StopReason::ToolCalls),
    ];
    assert_eq!(run(&tools()).await, (expected.clone(), None));
    let bytes = tools().concat();
    for at in 0..=bytes.len() {
        let halves = vec![Bytes::copy_from_slice(&bytes[..at]), Bytes::copy_from_slice(&bytes[at..])];
        assert_eq!(decode(halves).await, (expected.clone(), None), "split at {at}");
    }
    let single = bytes.iter().map(|byte| Bytes::copy_from_slice(&[*byte])).collect();
    assert_eq!(decode(single).await, (expected, None));
}

#[tokio::test]
async fn a_stream_that_is_cut_after_any_event_is_premature() {
    let frames = tools();
    let whole = run(&frames).await.0;
    for count in 0..frames.len() - 2 {
        let (deltas, fault) = run(&frames[..count]).await;
        assert_eq!(fault, Some(Fault::PrematureStop), "{count}");
        let open = Delta::ReasoningEnd { replay: None };
        let rest: Vec<&Delta> = deltas.iter().filter(|delta| **delta != open).collect();
        assert!(whole.iter().zip(&rest).all(|(a, b)| a == *b), "{count}: {deltas:?}");
        assert_eq!(deltas.contains(&open), matches!(count, 2..=4), "{count}");
    }
    let (deltas, fault) = run(&frames[..frames.len() - 1]).await;
    assert_eq!(
        (deltas.last(), fault),
        (Some(&Delta::Stop(StopReason::ToolCalls)), None),
        "only the counts are missing"
    );
}

#[tokio::test]
async fn reasons_to_stop() {
    for (reason, expected) in [
        ("end_turn", Some(StopReason::EndTurn)),
        ("stop_sequence", Some(StopReason::EndTurn)),
        ("max_tokens", Some(StopReason::MaxTokens)),
        ("model_context_window_exceeded", Some(StopReason::MaxTokens)),
        ("guardrail_intervened", Some(StopReason::Refusal)),
        ("content_filtered", Some(StopReason::Refusal)),
        ("malformed_tool_use", None),
        ("malformed_model_output", None),
    ] {
        let (deltas, fault) = run(&[delta(0, json!({"text": "x"})), stop(0), end(reason), metadata()]).await;
        match expected {
            Some(stop) => assert_eq!((deltas.last(), fault), (Some(&Delta::Stop(stop)), None), "{reason}"),
            None => assert_eq!(fault, Some(Fault::PrematureStop), "{reason}"),
        }
    }
    assert_eq!(run(&[end("end_turn"), metadata()]).await.1, Some(Fault::PrematureStop), "nothing was said");
    let (deltas, _) = run(&[call(0, "t", "ls"), stop(0), end("end_turn")]).await;
    assert_eq!(deltas.last(), Some(&Delta::Stop(StopReason::ToolCalls)));
}

#[tokio::test]
async fn exceptions_have_classes() {
    let origin = Origin::new("bedrock", "claude-x", "https://bedrock-runtime.us-east-1.amazonaws.com", Vec::new());
    for (kind, class) in [
        ("throttlingException", ErrorClass::RateLimited),
        ("serviceUnavailableException", ErrorClass::Overloaded),
        ("internalServerException", ErrorClass::Overloaded),
        ("modelStreamErrorException", ErrorClass::Overloaded),
        ("modelTimeoutException", ErrorClass::Overloaded),
        ("validationException", ErrorClass::BadRequest),
        ("accessDeniedException", ErrorClass::Auth),
        ("resourceNotFoundException", ErrorClass::BadRequest),
        ("somethingNewException", ErrorClass::Unknown),
    ] {
        let frames = [delta(0, json!({"text": "x"})), exception(kind, r#"{"message":"the words"}"#)];
        let (deltas, fault) = run(&frames).await;
        assert_eq!(deltas, vec![text("x")]);
        let error = origin.fault(fault.unwrap());
        assert_eq!(error.class, class, "{kind}");
        assert!(error.user_text.contains("the words"), "{}", error.user_text);
    }
    let long = exception("validationException", r#"{"message":"Input is too long for requested model."}"#);
    assert_eq!(origin.fault(run(&[long]).await.1.unwrap()).class, ErrorClass::ContextOverflow);
    let bare =
        event_stream::frame(&[(":message-type", "error"), (":error-code", "Odd"), (":error-message", "bad luck")], "");
    assert!(origin.fault(run(&[bare]).await.1.unwrap()).user_text.contains("bad luck"));
    let empty = exception("throttlingException", "{}");
    assert!(origin.fault(run(&[empty]).await.1.unwrap()).user_text.contains("throttlingException"));
}

#[test]
fn an_answer_in_one_piece() {
    let content = json!([
        {"reasoningContent": {"reasoningText": {"text": "hm", "signature": "s"}}},
        {"reasoningContent": {"redactedContent": "ZW5j"}},
        {"reasoningContent": {"reasoningText": {"text": "", "signature": "quiet"}}},
        {"text": "hello"},
        {"citationsContent": {"content": [{"text": " cited"}], "citations": [
            {"title": "T", "location": {"web": {"url": "https://x.test"}}}]}},
        {"toolUse": {"toolUseId": "t", "name": "ls", "input": {"p": 1}}},
    ]);
    let body = json!({
        "output": {"message": {"role": "assistant", "content": content}},
        "stopReason": "tool_use", "usage": {"inputTokens": 3, "outputTokens": 4},
    });
    let mut decoder = decoder();
    let mut out = Vec::new();
    decoder.whole(body.to_string().as_bytes(), &mut out).unwrap();
    decoder.end(&mut out).unwrap();
    let expected = vec![
        Delta::Reasoning("hm".to_owned()),
        signed("s"),
        opaque(content[1].clone()),
        opaque(content[2].clone()),
        text("hello"),
        text(" cited"),
        Delta::Citation { title: "T".to_owned(), url: "https://x.test".to_owned() },
        Delta::ToolCallStart { index: 0, id: "t".to_owned(), name: "ls".to_owned() },
        Delta::ToolCallArguments { index: 0, text: "{\"p\":1}".to_owned() },
        Delta::Usage(Usage { input: 3, output: 4, ..Usage::default() }),
        Delta::Stop(StopReason::ToolCalls),
    ];
    assert_eq!(out, expected);
    let fault =
        |body: &str| super::super::BedrockDecoder::new(&ModelId::new("b", "m")).whole(body.as_bytes(), &mut Vec::new());
    assert!(matches!(fault(r#"{"message":"no"}"#), Err(Fault::Reported(_))));
    assert!(matches!(fault("{}"), Err(Fault::Protocol(_))));
    assert!(matches!(fault("x"), Err(Fault::Protocol(_))));
}

#[tokio::test]
async fn oddities_are_passed_over_and_nonsense_is_reported() {
    let odd = [
        frame("brandNewEvent", &json!({"x": 1})),
        frame("contentBlockDelta", &json!({})),
        frame("contentBlockStart", &json!({"contentBlockIndex": 0, "start": {}})),
        delta(7, json!({"toolUse": {"input": "lost"}})),
        stop(9),
        metadata(),
        delta(0, json!({"citation": {"location": {"web": {"url": "https://x.test"}}}})),
        delta(0, json!({"text": "x"})),
    ];
    let cited = Delta::Citation { title: "https://x.test".to_owned(), url: "https://x.test".to_owned() };
    assert_eq!(run(&odd).await, (vec![USAGE, cited, text("x")], Some(Fault::PrematureStop)));
    let headers = [(":event-type", "metadata"), (":message-type", "event")];
    let nonsense = event_stream::frame(&headers, "not JSON");
    assert!(matches!(run(&[nonsense]).await.1, Some(Fault::Protocol(_))));
    let large = "s".repeat(1024 * 1024);
    let endless: Vec<Vec<u8>> = (0..6).map(|_| delta(0, json!({"reasoningContent": {"signature": large}}))).collect();
    assert!(matches!(run(&endless).await.1, Some(Fault::Protocol(_))));
    let many: Vec<Vec<u8>> = (0..1001).map(|index| call(index, "t", "ls")).collect();
    assert!(matches!(run(&many).await.1, Some(Fault::Protocol(_))));
}
