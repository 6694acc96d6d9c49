//! Recorded shapes of streams: whole, split at every byte, cut after every event.

use bytes::Bytes;
use futures_util::{StreamExt, stream};
use serde_json::{Value, json};

use crate::base::ModelId;
use crate::llm::{Delta, ErrorClass, Replay, ServerTool, StopReason, Usage};
use crate::providers::dialects::anthropic::AnthropicDecoder;
use crate::providers::dialects::{Decoder, Progress};
use crate::providers::errors::{Fault, Origin};
use crate::providers::sse::Events;

type Outcome = (Vec<Delta>, Option<Fault>);

fn decoder() -> AnthropicDecoder {
    AnthropicDecoder::new(&ModelId::new("anthropic", "claude-x"))
}

/// The events as they go over the wire.
fn wire(events: &[Value]) -> Vec<Vec<u8>> {
    events
        .iter()
        .map(|event| format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap()).into_bytes())
        .collect()
}

async fn decode(chunks: Vec<Bytes>) -> Outcome {
    let mut events = Events::new(stream::iter(chunks.into_iter().map(Ok)));
    let mut decoder = decoder();
    let mut out = Vec::new();
    while let Some(event) = events.next().await {
        let event = event.unwrap();
        match decoder.event(&event, &mut out) {
            Ok(Progress::More) => {}
            Ok(Progress::Complete) => break,
            Err(Fault::Protocol(_)) if !event.terminated => break,
            Err(fault) => return (out, Some(fault)),
        }
    }
    let end = decoder.end(&mut out);
    (out, end.err())
}

async fn run(events: &[Value]) -> Outcome {
    decode(vec![Bytes::from(wire(events).concat())]).await
}

/// Runs the events whole, in two pieces at every byte, and byte by byte; all must agree.
async fn run_split(events: &[Value]) -> Outcome {
    let bytes = wire(events).concat();
    let whole = run(events).await;
    for at in 0..=bytes.len() {
        let halves = vec![Bytes::copy_from_slice(&bytes[..at]), Bytes::copy_from_slice(&bytes[at..])];
        assert_eq!(decode(halves).await, whole, "split at {at}");
    }
    assert_eq!(decode(bytes.iter().map(|byte| Bytes::copy_from_slice(&[*byte])).collect()).await, whole);
    whole
}

fn start() -> Value {
    json!({"type": "message_start", "message": {"id": "msg_1", "type": "message", "role": "assistant", "content": [],
        "model": "claude-x", "stop_reason": null, "usage": {"input_tokens": 10, "cache_read_input_tokens": 200,
        "cache_creation_input_tokens": 30, "output_tokens": 1}}})
}

fn block(index: u64, block: Value) -> Value {
    json!({"type": "content_block_start", "index": index, "content_block": block})
}

fn delta(index: u64, delta: Value) -> Value {
    json!({"type": "content_block_delta", "index": index, "delta": delta})
}

fn stop(index: u64) -> Value {
    json!({"type": "content_block_stop", "index": index})
}

fn finish(reason: &str) -> Vec<Value> {
    let end = json!({"type": "message_delta", "delta": {"stop_reason": reason, "stop_sequence": null},
        "usage": {"output_tokens": 42}});
    vec![end, json!({"type": "message_stop"})]
}

const FIRST_USAGE: Delta = Delta::Usage(Usage { input: 10, output: 1, cache_read: 200, cache_write: 30 });
const LAST_USAGE: Delta = Delta::Usage(Usage { input: 10, output: 42, cache_read: 200, cache_write: 30 });

fn text(text: &str) -> Delta {
    Delta::Text(text.to_owned())
}

fn opaque(block: Value) -> Delta {
    let data = json!({"model": "anthropic/claude-x", "block": block});
    Delta::Opaque(Replay { dialect: "anthropic".to_owned(), data })
}

fn signed(signature: &str) -> Delta {
    let data = json!({"model": "anthropic/claude-x", "signature": signature});
    Delta::ReasoningEnd { replay: Some(Replay { dialect: "anthropic".to_owned(), data }) }
}

/// Thinks, speaks, calls two tools in parallel.
fn tools() -> Vec<Value> {
    let mut events = vec![
        start(),
        block(0, json!({"type": "thinking", "thinking": "", "signature": ""})),
        json!({"type": "ping"}),
        delta(0, json!({"type": "thinking_delta", "thinking": "Let me "})),
        delta(0, json!({"type": "thinking_delta", "thinking": "see… é"})),
        delta(0, json!({"type": "signature_delta", "signature": "EqQB"})),
        stop(0),
        block(1, json!({"type": "redacted_thinking", "data": "enc"})),
        stop(1),
        block(2, json!({"type": "text", "text": ""})),
        delta(2, json!({"type": "text_delta", "text": "I look. "})),
        stop(2),
        block(3, json!({"type": "tool_use", "id": "toolu_1", "name": "read", "input": {}})),
        delta(3, json!({"type": "input_json_delta", "partial_json": ""})),
        delta(3, json!({"type": "input_json_delta", "partial_json": "{\"path\": \"a"})),
        delta(3, json!({"type": "input_json_delta", "partial_json": ".txt\"}"})),
        stop(3),
        block(4, json!({"type": "tool_use", "id": "toolu_2", "name": "now", "input": {}})),
        stop(4),
    ];
    events.extend(finish("tool_use"));
    events
}

#[tokio::test]
async fn thinking_text_and_parallel_calls() {
    let (deltas, fault) = run_split(&tools()).await;
    let arguments = |index: usize, text: &str| Delta::ToolCallArguments { index, text: text.to_owned() };
    let expected = vec![
        FIRST_USAGE,
        Delta::Reasoning("Let me ".to_owned()),
        Delta::Reasoning("see… é".to_owned()),
        signed("EqQB"),
        opaque(json!({"type": "redacted_thinking", "data": "enc"})),
        text("I look. "),
        Delta::ToolCallStart { index: 0, id: "toolu_1".to_owned(), name: "read".to_owned() },
        arguments(0, "{\"path\": \"a"),
        arguments(0, ".txt\"}"),
        Delta::ToolCallStart { index: 1, id: "toolu_2".to_owned(), name: "now".to_owned() },
        arguments(1, "{}"),
        LAST_USAGE,
        Delta::Stop(StopReason::ToolCalls),
    ];
    assert_eq!((deltas, fault), (expected, None));
}

/// Searches, and cites what it found.
fn search() -> Vec<Value> {
    let found = json!([
        {"type": "web_search_result", "title": "One", "url": "https://one.test", "encrypted_content": "e1", "page_age": null},
        {"type": "web_search_result", "title": "", "url": "https://two.test", "encrypted_content": "e2"},
    ]);
    let cited = json!({"type": "web_search_result_location", "url": "https://one.test", "title": "One",
        "cited_text": "…", "encrypted_index": "i"});
    let mut events = vec![
        start(),
        block(0, json!({"type": "server_tool_use", "id": "srv_1", "name": "web_search", "input": {}})),
        delta(0, json!({"type": "input_json_delta", "partial_json": "{\"query\":"})),
        delta(0, json!({"type": "input_json_delta", "partial_json": "\"rust\"}"})),
        stop(0),
        block(1, json!({"type": "web_search_tool_result", "tool_use_id": "srv_1", "content": found})),
        stop(1),
        block(2, json!({"type": "text", "text": "", "citations": []})),
        delta(2, json!({"type": "citations_delta", "citation": cited})),
        delta(2, json!({"type": "text_delta", "text": "Found."})),
        stop(2),
    ];
    events.extend(finish("end_turn"));
    events
}

#[tokio::test]
async fn a_search_of_the_provider() {
    let (deltas, fault) = run_split(&search()).await;
    let input = json!({"query": "rust"});
    let expected = vec![
        FIRST_USAGE,
        Delta::ServerTool(ServerTool::Started { id: "srv_1".to_owned(), name: "web_search".to_owned() }),
        opaque(json!({"type": "server_tool_use", "id": "srv_1", "name": "web_search", "input": input})),
        Delta::ServerTool(ServerTool::Finished {
            id: "srv_1".to_owned(),
            name: "web_search".to_owned(),
            input: input.as_object().unwrap().clone(),
            output: "One: https://one.test\nhttps://two.test".to_owned(),
            error: false,
        }),
        opaque(search()[5]["content_block"].clone()),
        Delta::Citation { title: "One".to_owned(), url: "https://one.test".to_owned() },
        text("Found."),
        LAST_USAGE,
        Delta::Stop(StopReason::EndTurn),
    ];
    assert_eq!((deltas, fault), (expected, None));
}

#[tokio::test]
async fn a_search_that_failed() {
    let failed = json!({"type": "web_search_tool_result", "tool_use_id": "s",
        "content": {"type": "web_search_tool_result_error", "error_code": "max_uses_exceeded"}});
    let (deltas, _) = run(&[block(0, failed)]).await;
    let Delta::ServerTool(ServerTool::Finished { name, output, error, .. }) = &deltas[0] else { panic!("{deltas:?}") };
    assert_eq!((name.as_str(), output.as_str(), *error), ("web_search", "failed: max_uses_exceeded", true));
}

#[tokio::test]
async fn a_stream_that_is_cut_after_any_event_is_premature_and_sends_nothing_half_back() {
    for events in [tools(), search()] {
        let whole = run(&events).await.0;
        // The last two say that the answer is complete.
        for count in 0..events.len() - 2 {
            let (deltas, fault) = run(&events[..count]).await;
            assert_eq!(fault, Some(Fault::PrematureStop), "{count}");
            let ends = |deltas: &[Delta]| {
                deltas.iter().filter(|d| matches!(d, Delta::Reasoning(_))).count() > 0
                    && !deltas.iter().any(|d| matches!(d, Delta::ReasoningEnd { .. }))
            };
            assert!(!ends(&deltas), "reasoning stays open: {count}");
            let rest: Vec<&Delta> = deltas.iter().filter(|d| **d != (Delta::ReasoningEnd { replay: None })).collect();
            assert!(whole.iter().zip(&rest).all(|(a, b)| a == *b), "{count}: {deltas:?}");
        }
        let (deltas, fault) = run(&events[..events.len() - 1]).await;
        assert_eq!((deltas, fault), (whole, None), "the reason to stop is enough");
    }
}

#[tokio::test]
async fn bytes_cut_anywhere_never_give_a_wrong_end() {
    let bytes = wire(&tools()).concat();
    let complete = bytes.len() - wire(&finish("tool_use"))[1].len();
    for end in 0..bytes.len() {
        let (deltas, fault) = decode(vec![Bytes::copy_from_slice(&bytes[..end])]).await;
        let stopped = matches!(deltas.last(), Some(Delta::Stop(_)));
        assert_eq!(stopped, fault.is_none(), "{end}");
        assert!(end + 2 >= complete || !stopped, "{end}");
    }
}

#[tokio::test]
async fn reasons_to_stop() {
    let said = |reason: &str| {
        let mut events = vec![start(), block(0, json!({"type": "text", "text": "x"})), stop(0)];
        events.extend(finish(reason));
        events
    };
    for (reason, expected) in [
        ("end_turn", StopReason::EndTurn),
        ("stop_sequence", StopReason::EndTurn),
        ("something_new", StopReason::EndTurn),
        ("max_tokens", StopReason::MaxTokens),
        ("model_context_window_exceeded", StopReason::MaxTokens),
        ("refusal", StopReason::Refusal),
        ("pause_turn", StopReason::EndTurn),
    ] {
        let (deltas, fault) = run(&said(reason)).await;
        assert_eq!((deltas.last(), fault), (Some(&Delta::Stop(expected)), None), "{reason}");
    }
    // Nothing was said.
    for (reason, expected) in [
        ("end_turn", None),
        ("pause_turn", None),
        ("refusal", Some(StopReason::Refusal)),
        ("max_tokens", Some(StopReason::MaxTokens)),
    ] {
        let (deltas, fault) = run(&finish(reason)).await;
        assert_eq!(fault.is_some(), expected.is_none(), "{reason}");
        assert_eq!(deltas.last() == expected.map(Delta::Stop).as_ref(), expected.is_some(), "{reason}");
    }
    // Imitators end a turn with calls in it.
    let mut calls = vec![block(0, json!({"type": "tool_use", "id": "t", "name": "ls", "input": {"a": 1}})), stop(0)];
    calls.extend(finish("end_turn"));
    let (deltas, _) = run(&calls).await;
    assert_eq!(deltas[1], Delta::ToolCallArguments { index: 0, text: "{\"a\":1}".to_owned() });
    assert_eq!(deltas.last(), Some(&Delta::Stop(StopReason::ToolCalls)));
    // No reason at all is no end.
    let events = [block(0, json!({"type": "text", "text": "x"})), json!({"type": "message_stop"})];
    assert_eq!(run(&events).await.1, Some(Fault::PrematureStop));
}

#[tokio::test]
async fn a_pause_is_told_apart() {
    for (reason, expected) in [("pause_turn", true), ("end_turn", false)] {
        let mut decoder = decoder();
        let paused = decoder.paused();
        let body = json!({"content": [{"type": "text", "text": "x"}], "stop_reason": reason});
        let mut out = Vec::new();
        decoder.whole(body.to_string().as_bytes(), &mut out).unwrap();
        decoder.end(&mut out).unwrap();
        assert_eq!(paused.load(std::sync::atomic::Ordering::Acquire), expected, "{reason}");
    }
}

#[tokio::test]
async fn thoughts_that_are_not_shown_come_back() {
    let events = [
        block(0, json!({"type": "thinking", "thinking": ""})),
        delta(0, json!({"type": "signature_delta", "signature": "s1"})),
        delta(0, json!({"type": "signature_delta", "signature": "s2"})),
        stop(0),
        block(1, json!({"type": "thinking", "thinking": "no signature"})),
        stop(1),
    ];
    let (deltas, _) = run(&events).await;
    let expected = [
        opaque(json!({"type": "thinking", "thinking": "", "signature": "s1s2"})),
        Delta::Reasoning("no signature".to_owned()),
        Delta::ReasoningEnd { replay: None },
    ];
    assert_eq!(deltas, expected);
}

#[tokio::test]
async fn errors_have_classes() {
    let origin = Origin::new("anthropic", "claude-x", "https://api.anthropic.com", Vec::new());
    for (kind, class) in [
        ("overloaded_error", ErrorClass::Overloaded),
        ("api_error", ErrorClass::Overloaded),
        ("timeout_error", ErrorClass::Overloaded),
        ("rate_limit_error", ErrorClass::RateLimited),
        ("authentication_error", ErrorClass::Auth),
        ("permission_error", ErrorClass::Auth),
        ("billing_error", ErrorClass::Auth),
        ("invalid_request_error", ErrorClass::BadRequest),
        ("not_found_error", ErrorClass::BadRequest),
        ("request_too_large", ErrorClass::ContextOverflow),
        ("something_new", ErrorClass::Unknown),
    ] {
        let error = json!({"type": "error", "error": {"type": kind, "message": "the words"}});
        let (deltas, fault) = run(&[start(), error.clone()]).await;
        assert_eq!(deltas, vec![FIRST_USAGE], "{kind}");
        let found = origin.fault(fault.unwrap());
        assert_eq!(found.class, class, "{kind}");
        assert!(found.user_text.contains("the words"), "{}", found.user_text);
        let whole = decoder().whole(error.to_string().as_bytes(), &mut Vec::new()).unwrap_err();
        assert_eq!(origin.fault(whole).class, class, "{kind} in one piece");
    }
    let long =
        json!({"type": "error", "error": {"type": "invalid_request_error", "message": "prompt is too long: 9 > 8"}});
    assert_eq!(origin.fault(run(&[long]).await.1.unwrap()).class, ErrorClass::ContextOverflow);
}

#[test]
fn an_answer_in_one_piece() {
    let body = json!({
        "id": "msg", "type": "message", "role": "assistant", "stop_reason": "tool_use",
        "content": [
            {"type": "thinking", "thinking": "hm", "signature": "s"},
            {"type": "text", "text": "hello", "citations": [{"url": "https://x.test"}]},
            {"type": "tool_use", "id": "t", "name": "ls", "input": {"p": 1}},
            {"type": "unheard_of"},
        ],
        "usage": {"input_tokens": 3, "output_tokens": 4},
    });
    let mut decoder = decoder();
    let mut out = Vec::new();
    decoder.whole(body.to_string().as_bytes(), &mut out).unwrap();
    decoder.end(&mut out).unwrap();
    let expected = vec![
        Delta::Reasoning("hm".to_owned()),
        signed("s"),
        text("hello"),
        Delta::Citation { title: "https://x.test".to_owned(), url: "https://x.test".to_owned() },
        Delta::ToolCallStart { index: 0, id: "t".to_owned(), name: "ls".to_owned() },
        Delta::ToolCallArguments { index: 0, text: "{\"p\":1}".to_owned() },
        Delta::Usage(Usage { input: 3, output: 4, ..Usage::default() }),
        Delta::Stop(StopReason::ToolCalls),
    ];
    assert_eq!(out, expected);
}

#[tokio::test]
async fn usage_of_imitators_and_of_searches_comes_late() {
    let early = json!({"type": "message_start", "message": {"usage": {"input_tokens": 0, "output_tokens": 0}}});
    let late = json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"},
        "usage": {"input_tokens": 7, "output_tokens": 9, "cache_read_input_tokens": 5, "cache_creation_input_tokens": null}});
    let (deltas, _) = run(&[early, block(0, json!({"type": "text", "text": "x"})), late]).await;
    let expected = Delta::Usage(Usage { input: 7, output: 9, cache_read: 5, cache_write: 0 });
    assert_eq!(deltas, vec![text("x"), expected, Delta::Stop(StopReason::EndTurn)]);
}

#[tokio::test]
async fn oddities_are_passed_over_and_nonsense_is_reported() {
    let odd = [
        json!({"type": "content_block_stop", "index": 9}),
        json!({"type": "content_block_delta", "index": 9, "delta": {"type": "input_json_delta", "partial_json": "{"}}),
        json!({"type": "content_block_delta", "index": 9}),
        json!({"type": "content_block_start"}),
        json!({"type": "message_delta"}),
        json!({"type": "brand_new_event", "index": -1}),
        delta(3, json!({"type": "thinking_delta", "thinking": "unannounced"})),
        delta(3, json!({"type": "signature_delta", "signature": "s"})),
        block(3, json!({"type": "text", "text": "hi"})),
    ];
    let (deltas, _) = run(&odd).await;
    assert_eq!(deltas, vec![Delta::Reasoning("unannounced".to_owned()), signed("s"), text("hi")]);
    for data in ["nonsense", "[]", "7"] {
        let (_, fault) = decode(vec![Bytes::from(format!("data: {data}\n\n"))]).await;
        assert!(matches!(fault, Some(Fault::Protocol(_))), "{data}: {fault:?}");
    }
    let many: Vec<Value> = (0..2000).map(|index| block(index, json!({"type": "text"}))).collect();
    assert!(matches!(run(&many).await.1, Some(Fault::Protocol(_))));
    let endless =
        std::iter::repeat_n(delta(0, json!({"type": "signature_delta", "signature": "s".repeat(100_000)})), 100);
    let events: Vec<Value> = std::iter::once(block(0, json!({"type": "thinking"}))).chain(endless).collect();
    assert!(matches!(run(&events).await.1, Some(Fault::Protocol(_))));
}
