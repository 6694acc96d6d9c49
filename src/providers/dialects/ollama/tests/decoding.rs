//! Answers: whole, split at every byte, truncated at every byte.

use serde_json::{Value, json};

use crate::llm::{Delta, StopReason};
use crate::providers::dialects::exchange::Framing;
use crate::providers::dialects::ollama::OllamaDecoder;
use crate::providers::dialects::testing::{
    Answer, CALLS, END, arguments, call, check_answers, decode_pieces, decode_whole, replay, text, thought, usage,
};
use crate::providers::errors::Fault;

fn lines(values: &[Value]) -> String {
    values.iter().map(|value| format!("{value}\n")).collect()
}

fn message(message: Value) -> Value {
    json!({"model": "m", "created_at": "2025-01-01T00:00:00Z", "message": message, "done": false})
}

fn last(reason: &str) -> Value {
    json!({"model": "m", "message": {"role": "assistant", "content": ""}, "done_reason": reason, "done": true,
        "total_duration": 9, "prompt_eval_count": 10, "eval_count": 3})
}

fn end_of_thought() -> Delta {
    Delta::ReasoningEnd { replay: Some(replay("ollama", json!({}))) }
}

fn answers() -> Vec<Answer> {
    vec![
        (
            "thinking, then text",
            lines(&[
                message(json!({"role": "assistant", "content": "", "thinking": "h"})),
                message(json!({"role": "assistant", "content": "", "thinking": "m"})),
                message(json!({"role": "assistant", "content": "Hé"})),
                message(json!({"role": "assistant", "content": "llo"})),
                last("stop"),
            ]),
            vec![thought("h"), thought("m"), end_of_thought(), text("Hé"), text("llo"), usage(10, 3, 0), END],
        ),
        (
            "several calls in one line and in several, with and without ids",
            lines(&[
                message(json!({"thinking": "hm", "tool_calls": [
                    {"id": "x", "function": {"index": 0, "name": "ls", "arguments": {"p": 1}}},
                    {"function": {"index": 0, "name": "now", "arguments": {}}}]})),
                message(json!({"tool_calls": [{"function": {"name": "cat", "arguments": "{\"q\":2}"}}]})),
                last("stop"),
            ]),
            vec![
                thought("hm"),
                end_of_thought(),
                call(0, "x", "ls"),
                arguments(0, "{\"p\":1}"),
                call(1, "call_1", "now"),
                arguments(1, "{}"),
                call(2, "call_2", "cat"),
                arguments(2, "{\"q\":2}"),
                usage(10, 3, 0),
                CALLS,
            ],
        ),
        (
            "cut by the limit, no line feed at the end",
            lines(&[message(json!({"content": "on and on"})), last("length")]).trim_end().to_owned(),
            vec![text("on and on"), usage(10, 3, 0), Delta::Stop(StopReason::MaxTokens)],
        ),
    ]
}

#[tokio::test]
async fn whole_split_and_truncated() {
    check_answers(Framing::Lines, OllamaDecoder::default, answers()).await;
}

async fn decode(body: String) -> (Vec<Delta>, Result<(), Fault>) {
    decode_pieces(Framing::Lines, OllamaDecoder::default(), vec![body.into()]).await
}

#[tokio::test]
async fn failures_and_odd_values() {
    let error = json!({"error": "model runner has unexpectedly stopped"});
    let found = decode(lines(&[message(json!({"content": "x"})), error.clone()])).await;
    assert_eq!(found, (vec![text("x")], Err(Fault::Reported(error))));
    for bad in ["nonsense\n", "[1]\n", "7\n"] {
        assert!(matches!(decode(bad.to_owned()).await.1, Err(Fault::Protocol(_))), "{bad}");
    }
    let odd = lines(&[
        json!({}),
        message(json!(7)),
        message(json!({"content": 7, "thinking": [], "tool_calls": [7, {"function": 7}]})),
        json!({"done": true, "eval_count": "x"}),
    ]);
    assert_eq!(decode(odd).await, (vec![END], Ok(())));
    assert_eq!(decode(String::new()).await.1, Err(Fault::PrematureStop));
}

#[test]
fn an_answer_in_one_piece() {
    let body = json!({"message": {"content": "x"}, "done": true, "done_reason": "stop", "eval_count": 1});
    assert_eq!(decode_whole(OllamaDecoder::default(), &body), (vec![text("x"), usage(0, 1, 0), END], Ok(())));
    assert!(matches!(decode_whole(OllamaDecoder::default(), &json!({"error": "m"})).1, Err(Fault::Reported(_))));
}
