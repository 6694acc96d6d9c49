//! Answers of many servers: whole, split at every byte, truncated at every byte.

use bytes::Bytes;
use futures_util::{StreamExt, stream};
use serde_json::{Value, json};

use crate::llm::{Delta, Replay, StopReason, Usage};
use crate::providers::dialects::openai_chat::ChatDecoder;
use crate::providers::dialects::{Decoder, Progress};
use crate::providers::errors::Fault;
use crate::providers::sse::Events;

/// Decodes a body that arrives in these pieces, as the exchange does it.
async fn decode_pieces(pieces: Vec<Bytes>) -> (Vec<Delta>, Result<(), Fault>) {
    let mut decoder = ChatDecoder::new(None, None);
    let mut out = Vec::new();
    let mut events = Events::new(stream::iter(pieces.into_iter().map(Ok)));
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

async fn decode(body: &str) -> (Vec<Delta>, Result<(), Fault>) {
    decode_pieces(vec![Bytes::copy_from_slice(body.as_bytes())]).await
}

fn sse(chunks: &[Value]) -> String {
    chunks.iter().map(|chunk| format!("data: {chunk}\n\n")).collect()
}

fn delta(delta: Value) -> Value {
    json!({"id": "x", "object": "chat.completion.chunk", "choices": [{"index": 0, "delta": delta, "finish_reason": null}]})
}

fn finish(reason: &str) -> Value {
    json!({"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]})
}

fn text(text: &str) -> Delta {
    Delta::Text(text.to_owned())
}

fn thought(text: &str) -> Delta {
    Delta::Reasoning(text.to_owned())
}

fn end_of(field: Option<&str>) -> Delta {
    let replay = field.map(|field| Replay { dialect: "openai-chat".to_owned(), data: json!({"field": field}) });
    Delta::ReasoningEnd { replay }
}

fn call(index: usize, id: &str, name: &str) -> Delta {
    Delta::ToolCallStart { index, id: id.to_owned(), name: name.to_owned() }
}

fn arguments(index: usize, text: &str) -> Delta {
    Delta::ToolCallArguments { index, text: text.to_owned() }
}

fn usage(input: u64, output: u64, cache_read: u64) -> Delta {
    Delta::Usage(Usage { input, output, cache_read, cache_write: 0 })
}

const END: Delta = Delta::Stop(StopReason::EndTurn);
const CALLS: Delta = Delta::Stop(StopReason::ToolCalls);

const DONE: &str = "data: [DONE]\n\n";

/// A name, a body, and what it means.
type Answer = (&'static str, String, Vec<Delta>);

/// Complete answers as they come from real servers.
fn answers() -> Vec<Answer> {
    [openai(), local_servers(), other_vendors(), odd_ends()].concat()
}

fn openai() -> Vec<Answer> {
    let tool = |value: Value| delta(json!({"tool_calls": [value]}));
    vec![
        (
            "OpenAI: role first, usage in a chunk without choices",
            sse(&[
                delta(json!({"role": "assistant", "content": "", "refusal": null})),
                delta(json!({"content": "Hé"})),
                delta(json!({"content": "llo"})),
                finish("stop"),
                json!({"choices": [], "usage": {"prompt_tokens": 10, "completion_tokens": 3,
                    "prompt_tokens_details": {"cached_tokens": 4}}}),
            ]) + DONE,
            vec![text("Hé"), text("llo"), usage(6, 3, 4), END],
        ),
        (
            "OpenAI: parallel tool calls",
            sse(&[
                tool(json!({"index": 0, "id": "a", "type": "function", "function": {"name": "ls", "arguments": ""}})),
                tool(json!({"index": 0, "function": {"arguments": "{}"}})),
                tool(json!({"index": 1, "id": "b", "type": "function", "function": {"name": "cat", "arguments": ""}})),
                tool(json!({"index": 1, "function": {"arguments": "{}"}})),
                finish("tool_calls"),
            ]) + DONE,
            vec![call(0, "a", "ls"), arguments(0, "{}"), call(1, "b", "cat"), arguments(1, "{}"), CALLS],
        ),
    ]
}

fn local_servers() -> Vec<Answer> {
    vec![
        (
            "llama.cpp: null content, reasoning_content, timings, usage with the end",
            sse(&[
                delta(json!({"role": "assistant", "content": null})),
                delta(json!({"reasoning_content": "hm "})),
                delta(json!({"reasoning_content": "ok"})),
                delta(json!({"content": "yes"})),
                json!({"choices": [{"finish_reason": "stop", "index": 0, "delta": {}}],
                    "usage": {"prompt_tokens": 5, "completion_tokens": 2, "total_tokens": 7},
                    "timings": {"prompt_n": 5}}),
            ]) + DONE,
            vec![thought("hm "), thought("ok"), end_of(Some("reasoning_content")), text("yes"), usage(5, 2, 0), END],
        ),
        (
            "vLLM: the same thought under two names, usage in every chunk",
            sse(&[
                json!({"choices": [{"index": 0, "delta": {"reasoning": "a", "reasoning_content": "a"}}],
                    "usage": {"prompt_tokens": 3, "completion_tokens": 1}}),
                json!({"choices": [{"index": 0, "delta": {"content": "b"}}],
                    "usage": {"prompt_tokens": 3, "completion_tokens": 2}}),
                json!({"choices": [{"index": 0, "delta": {"content": ""}, "finish_reason": "stop", "stop_reason": null}],
                    "usage": {"prompt_tokens": 3, "completion_tokens": 2}}),
            ]) + DONE,
            vec![thought("a"), usage(3, 1, 0), end_of(Some("reasoning_content")), text("b"), usage(3, 2, 0), END],
        ),
        (
            "Ollama: whole call at once, finish says stop",
            sse(&[
                delta(json!({"role": "assistant", "content": "", "reasoning": "think"})),
                delta(json!({"content": "", "tool_calls": [
                    {"id": "c1", "index": 0, "type": "function", "function": {"name": "ls", "arguments": "{\"a\":1}"}}]})),
                finish("stop"),
            ]) + DONE,
            vec![thought("think"), end_of(Some("reasoning")), call(0, "c1", "ls"), arguments(0, "{\"a\":1}"), CALLS],
        ),
        (
            "LM Studio: think tags in the content, CRLF, no [DONE]",
            sse(&[
                delta(json!({"content": "<think>"})),
                delta(json!({"content": "hm</thi"})),
                delta(json!({"content": "nk>\n\nyes"})),
                finish("stop"),
            ])
            .replace('\n', "\r\n"),
            vec![thought("hm"), end_of(None), text("yes"), END],
        ),
    ]
}

fn other_vendors() -> Vec<Answer> {
    vec![
        (
            "OpenRouter: comments, reasoning, cache writes",
            format!(
                ": OPENROUTER PROCESSING\n\n{}: OPENROUTER PROCESSING\n\n{DONE}",
                sse(&[
                    delta(json!({"content": "", "reasoning": "r"})),
                    json!({"choices": [{"index": 0, "delta": {"content": "x"}, "finish_reason": "stop"}], "usage": {
                    "prompt_tokens": 10, "completion_tokens": 1,
                    "prompt_tokens_details": {"cached_tokens": 2, "cache_write_tokens": 3}}}),
                ])
            ),
            vec![
                thought("r"),
                end_of(Some("reasoning")),
                text("x"),
                Delta::Usage(Usage { input: 5, output: 1, cache_read: 2, cache_write: 3 }),
                END,
            ],
        ),
        (
            "Mistral: blocks of thinking and text",
            sse(&[
                delta(json!({"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}]})),
                delta(json!({"content": [{"type": "text", "text": "yes"}]})),
                finish("stop"),
            ]) + DONE,
            vec![thought("hm"), end_of(None), text("yes"), END],
        ),
        (
            "DeepSeek: cache hits beside the details; a last event without its blank line",
            sse(&[
                delta(json!({"content": "x"})),
                finish("length"),
                json!({"choices": [],
                "usage": {"prompt_tokens": 10, "completion_tokens": 1, "prompt_cache_hit_tokens": 8}}),
            ]) + "data: [DONE]",
            vec![text("x"), usage(2, 1, 8), Delta::Stop(StopReason::MaxTokens)],
        ),
    ]
}

fn odd_ends() -> Vec<Answer> {
    vec![
        (
            "only thinking, cut by the limit",
            sse(&[delta(json!({"reasoning_content": "on and on"})), finish("length")]) + DONE,
            vec![thought("on and on"), end_of(Some("reasoning_content")), Delta::Stop(StopReason::MaxTokens)],
        ),
        (
            "a refusal",
            sse(&[delta(json!({"refusal": "I will not."})), finish("stop")]) + DONE,
            vec![text("I will not."), Delta::Stop(StopReason::Refusal)],
        ),
        ("filtered", sse(&[finish("content_filter")]) + DONE, vec![Delta::Stop(StopReason::Refusal)]),
        (
            "[DONE] without a reason, a second choice, odd values",
            sse(&[
                json!({"choices": [{"index": 1, "delta": {"content": "other"}}]}),
                json!({"choices": null, "usage": null}),
                json!({"choices": [7, {"delta": null}, {"delta": {"content": 5, "tool_calls": {}, "reasoning": []}}]}),
                json!({"prompt_filter_results": []}),
                delta(json!({"content": "x"})),
            ]) + DONE,
            vec![text("x"), END],
        ),
        (
            "tool_calls as the reason, but none came",
            sse(&[delta(json!({"content": "x"})), finish("tool_calls")]) + DONE,
            vec![text("x"), END],
        ),
    ]
}

#[tokio::test]
async fn whole_answers() {
    for (label, body, expected) in answers() {
        assert_eq!(decode(&body).await, (expected, Ok(())), "{label}");
    }
}

#[tokio::test]
async fn split_at_every_byte() {
    for (label, body, expected) in answers() {
        for at in 0..=body.len() {
            let (a, b) = body.as_bytes().split_at(at);
            let pieces = vec![Bytes::copy_from_slice(a), Bytes::copy_from_slice(b)];
            assert_eq!(decode_pieces(pieces).await, (expected.clone(), Ok(())), "{label} at {at}");
        }
        let single = body.bytes().map(|byte| Bytes::copy_from_slice(&[byte])).collect();
        assert_eq!(decode_pieces(single).await, (expected, Ok(())), "{label} byte by byte");
    }
}

/// A cut answer gives a beginning of what the whole one gives, with reasoning closed, and ends
/// either well (the reason was there) or as a premature stop; never as a success without a stop.
#[tokio::test]
async fn truncated_at_every_byte() {
    for (label, body, expected) in answers() {
        for end in 0..body.len() {
            let piece = Bytes::copy_from_slice(&body.as_bytes()[..end]);
            let (found, result) = decode_pieces(vec![piece]).await;
            let stops = found.iter().filter(|delta| matches!(delta, Delta::Stop(_))).count();
            match result {
                Ok(()) => assert!(stops == 1 && matches!(found.last(), Some(Delta::Stop(_))), "{label} at {end}"),
                Err(fault) => {
                    assert_eq!((stops, fault), (0, Fault::PrematureStop), "{label} at {end}");
                }
            }
            let visible = |deltas: &[Delta]| -> String {
                deltas.iter().map(|delta| if let Delta::Text(text) = delta { text.as_str() } else { "" }).collect()
            };
            let whole = visible(&expected);
            let seen = visible(&found);
            let plausible = whole.starts_with(&seen) || seen.starts_with('<') || seen.trim().is_empty();
            assert!(plausible, "{label} at {end}: {seen:?}");
            let opened = found.iter().any(|delta| matches!(delta, Delta::Reasoning(_)));
            let closed = found.iter().any(|delta| matches!(delta, Delta::ReasoningEnd { .. }));
            assert_eq!(opened, closed, "{label} at {end}");
        }
    }
}

#[tokio::test]
async fn faults_come_after_what_was_decoded() {
    let body = sse(&[delta(json!({"content": "x"})), json!({"error": {"message": "m", "code": 502}})]);
    assert_eq!(decode(&body).await, (vec![text("x")], Err(Fault::Reported(json!({"message": "m", "code": 502})))));
    let named = "event: error\ndata: {\"message\":\"m\"}\n\n";
    assert_eq!(decode(named).await.1, Err(Fault::Reported(json!({"message": "m"}))));
    for bad in ["nonsense", "[1]", "7", "{\"a\":"] {
        let (_, result) = decode(&format!("data: {bad}\n\n")).await;
        let Err(Fault::Protocol(message)) = result else { panic!("{bad}: {result:?}") };
        assert!(message.contains(bad), "{message}");
    }
    let long = format!("data: {}\n\n", "y".repeat(100_000));
    let Err(Fault::Protocol(message)) = decode(&long).await.1 else { panic!() };
    assert!(message.len() < 200);
}

#[tokio::test]
async fn ends_that_come_too_early() {
    for body in [
        String::new(),
        "data: [DONE]\n\n".to_owned(),
        sse(&[delta(json!({"content": "x"}))]),
        sse(&[delta(json!({"content": "x"})), finish("insufficient_system_resource")]),
        sse(&[delta(json!({"content": "<think>x"}))]),
    ] {
        let (_, result) = decode(&body).await;
        assert_eq!(result, Err(Fault::PrematureStop), "{body}");
    }
}

#[test]
fn an_answer_in_one_piece() {
    let body = json!({"choices": [{"index": 0, "finish_reason": "tool_calls", "message": {
        "role": "assistant", "content": "<think>hm</think>x",
        "tool_calls": [{"id": "a", "type": "function", "function": {"name": "ls", "arguments": "{}"}},
            {"id": "b", "type": "function", "function": {"name": "ls", "arguments": "{}"}}]}}],
        "usage": {"prompt_tokens": 1, "completion_tokens": 2}});
    let mut decoder = ChatDecoder::new(None, None);
    let mut out = Vec::new();
    decoder.whole(body.to_string().as_bytes(), &mut out).unwrap();
    decoder.end(&mut out).unwrap();
    let expected = vec![
        thought("hm"),
        end_of(None),
        text("x"),
        call(0, "a", "ls"),
        arguments(0, "{}"),
        call(1, "b", "ls"),
        arguments(1, "{}"),
        usage(1, 2, 0),
        CALLS,
    ];
    assert_eq!(out, expected);
}
