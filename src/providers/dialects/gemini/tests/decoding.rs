//! Answers: whole, split at every byte, truncated at every byte.

use serde_json::{Value, json};

use crate::config::ModelConfig;
use crate::llm::{Delta, Image, Replay, ServerTool, StopReason};
use crate::providers::dialects::exchange::Framing;
use crate::providers::dialects::gemini::GeminiDecoder;
use crate::providers::dialects::gemini::body::build;
use crate::providers::dialects::testing::{
    Answer, CALLS, END, arguments, call, check_answers, decode_pieces, decode_whole, kept, replay, request, said, text,
    thought, usage, user,
};
use crate::providers::errors::Fault;

fn decoder() -> GeminiDecoder {
    GeminiDecoder::new("acme/m")
}

fn sse(chunks: &[Value]) -> String {
    // Google ends its lines with both characters.
    chunks.iter().map(|chunk| format!("data: {chunk}\r\n\r\n")).collect()
}

fn parts(parts: Value) -> Value {
    json!({"candidates": [{"content": {"role": "model", "parts": parts}, "index": 0}], "modelVersion": "m"})
}

fn finish(reason: &str) -> Value {
    json!({"candidates": [{"content": {"role": "model"}, "finishReason": reason, "index": 0}]})
}

fn own(data: Value) -> Replay {
    let mut data = data;
    data["source"] = json!("acme/m");
    replay("gemini", data)
}

fn answers() -> Vec<Answer> {
    vec![thoughts_and_text(), calls(), search_and_picture(), blocked(), limit()]
}

fn thoughts_and_text() -> Answer {
    let body = sse(&[
        parts(json!([{"text": "h", "thought": true}])),
        parts(json!([{"text": "m", "thought": true, "thoughtSignature": "s0"}])),
        parts(json!([{"text": "Hé"}])),
        json!({"candidates": [{"content": {"parts": [{"text": "llo", "thoughtSignature": "s1"}]}}],
            "usageMetadata": {"promptTokenCount": 10, "candidatesTokenCount": 2, "thoughtsTokenCount": 3}}),
        json!({"candidates": [{"content": {"parts": [{"text": "", "thoughtSignature": "s2"}]}, "finishReason": "STOP"}],
            "usageMetadata": {"promptTokenCount": 10, "cachedContentTokenCount": 4, "candidatesTokenCount": 5,
                "thoughtsTokenCount": 3, "totalTokenCount": 18}}),
    ]);
    let expected = vec![
        thought("h"),
        thought("m"),
        Delta::ReasoningEnd { replay: Some(own(json!({"signature": "s0"}))) },
        text("Hé"),
        text("llo"),
        Delta::Opaque(own(json!({"signature": "s1", "on": "text", "bytes": 3}))),
        usage(10, 5, 0),
        Delta::Opaque(own(json!({"signature": "s2", "on": "text", "bytes": 0}))),
        usage(6, 8, 4),
        END,
    ];
    ("thoughts, text, signatures, usage that grows", body, expected)
}

fn calls() -> Answer {
    let body = sse(&[
        parts(json!([{"text": "hm", "thought": true}])),
        parts(json!([
            {"functionCall": {"name": "ls", "args": {"p": 1}, "id": "i1"}, "thoughtSignature": "s"},
            {"functionCall": {"name": "now"}},
        ])),
        finish("STOP"),
    ]);
    let expected = vec![
        thought("hm"),
        Delta::ReasoningEnd { replay: None },
        call(0, "i1", "ls"),
        arguments(0, "{\"p\":1}"),
        Delta::ToolCallReplay { index: 0, replay: own(json!({"id": "i1", "signature": "s"})) },
        call(1, "call_1", "now"),
        arguments(1, "{}"),
        CALLS,
    ];
    ("parallel calls, with and without id and arguments", body, expected)
}

fn search_and_picture() -> Answer {
    let grounding = json!({"webSearchQueries": ["q"], "groundingChunks": [
        {"web": {"uri": "https://a.test", "title": "A"}}, {"web": {"uri": "https://a.test", "title": "A"}}, {}]});
    let step = json!({"toolCall": {"toolType": "GOOGLE_SEARCH_WEB", "id": "t"}, "thoughtSignature": "s"});
    let body = sse(&[
        parts(json!([step, {"inlineData": {"mimeType": "image/png", "data": "QUJD"}, "thoughtSignature": "p"}])),
        json!({"candidates": [{"content": {"parts": [{"text": "x"}]}, "groundingMetadata": grounding}]}),
        json!({"candidates": [{"finishReason": "STOP", "groundingMetadata": grounding}]}),
    ]);
    let expected = vec![
        Delta::Opaque(own(json!({"part": step}))),
        Delta::Image(Image { media_type: "image/png".into(), base64: "QUJD".into() }),
        Delta::Opaque(own(json!({"signature": "p", "on": "image", "bytes": 0}))),
        text("x"),
        Delta::ServerTool(ServerTool::Finished {
            id: "google_search".into(),
            name: "web_search".into(),
            input: json!({"queries": ["q"]}).as_object().unwrap().clone(),
            output: String::new(),
            error: false,
        }),
        Delta::Citation { title: "A".into(), url: "https://a.test".into() },
        END,
    ];
    ("a search, a picture, a step of the provider's own", body, expected)
}

fn blocked() -> Answer {
    let body = sse(&[json!({"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"},
        "usageMetadata": {"promptTokenCount": 3}})]);
    ("a prompt that is refused", body, vec![usage(3, 0, 0), Delta::Stop(StopReason::Refusal)])
}

fn limit() -> Answer {
    let body = sse(&[parts(json!([{"text": "on and on", "thought": true}])), finish("MAX_TOKENS")]);
    let end = Delta::ReasoningEnd { replay: None };
    ("only thoughts, cut by the limit", body, vec![thought("on and on"), end, Delta::Stop(StopReason::MaxTokens)])
}

#[tokio::test]
async fn whole_split_and_truncated() {
    check_answers(Framing::Sse, decoder, answers()).await;
}

/// What Gemini said goes back part by part as it came.
#[test]
fn an_answer_goes_back_as_it_came() {
    let sent = |answer: Answer| {
        let request = request("m", vec![user(vec![said("x")]), kept(answer.2)]);
        build(&request, &ModelConfig::default(), None)["contents"][1]["parts"].clone()
    };
    let expected = json!([
        {"text": "hm", "thought": true, "thoughtSignature": "s0"},
        {"text": "Hé"},
        {"text": "llo", "thoughtSignature": "s1"},
        {"text": "", "thoughtSignature": "s2"},
    ]);
    assert_eq!(sent(thoughts_and_text()), expected);
    let expected = json!([
        {"functionCall": {"name": "ls", "args": {"p": 1}, "id": "i1"}, "thoughtSignature": "s"},
        {"functionCall": {"name": "now", "args": {}}},
    ]);
    assert_eq!(sent(calls()), expected);
    let expected = json!([
        {"toolCall": {"toolType": "GOOGLE_SEARCH_WEB", "id": "t"}, "thoughtSignature": "s"},
        {"inlineData": {"mimeType": "image/png", "data": "QUJD"}, "thoughtSignature": "p"},
        {"text": "x"},
    ]);
    assert_eq!(sent(search_and_picture()), expected);
}

async fn decode(chunks: &[Value]) -> (Vec<Delta>, Result<(), Fault>) {
    decode_pieces(Framing::Sse, decoder(), vec![sse(chunks).into()]).await
}

#[tokio::test]
async fn reasons_to_finish() {
    for (reason, expected) in [
        ("SAFETY", Ok(StopReason::Refusal)),
        ("RECITATION", Ok(StopReason::Refusal)),
        ("SPII", Ok(StopReason::Refusal)),
        ("MALFORMED_FUNCTION_CALL", Err(Fault::PrematureStop)),
        ("UNEXPECTED_TOOL_CALL", Err(Fault::PrematureStop)),
        ("OTHER", Err(Fault::PrematureStop)),
    ] {
        let (found, result) = decode(&[finish(reason)]).await;
        match expected {
            Ok(stop) => assert_eq!((found, result), (vec![Delta::Stop(stop)], Ok(())), "{reason}"),
            Err(fault) => assert_eq!((found, result), (vec![], Err(fault)), "{reason}"),
        }
    }
    assert!(matches!(decode(&[finish("MISSING_THOUGHT_SIGNATURE")]).await.1, Err(Fault::Reported(_))));
    assert_eq!(decode(&[parts(json!([{"text": "x"}]))]).await, (vec![text("x")], Err(Fault::PrematureStop)));
}

#[tokio::test]
async fn failures_and_odd_values() {
    let error = json!({"code": 503, "message": "The model is overloaded.", "status": "UNAVAILABLE"});
    let found = decode(&[parts(json!([{"text": "x"}])), json!({"error": error})]).await;
    assert_eq!(found, (vec![text("x")], Err(Fault::Reported(error))));
    let odd = [
        json!({"candidates": 7}),
        json!({"candidates": [7, {"content": 7}, {"content": {"parts": [7, null, "x"]}}, {"index": 1, "finishReason": "X"}]}),
        parts(json!([{"text": 7}, {"functionCall": 7}, {"inlineData": {"mimeType": "audio/wav", "data": "x"}}])),
        json!({"usageMetadata": 7, "promptFeedback": {"safetyRatings": []}}),
        finish("STOP"),
    ];
    let (found, result) = decode(&odd).await;
    assert_eq!((found.last(), result), (Some(&END), Ok(())));
    let bad = decode_pieces(Framing::Sse, decoder(), vec!["data: [1]\n\n".into()]).await.1;
    assert!(matches!(bad, Err(Fault::Protocol(_))));
}

#[test]
fn an_answer_in_one_piece() {
    let body = json!({"candidates": [{"content": {"parts": [{"text": "x"}]}, "finishReason": "STOP"}]});
    assert_eq!(decode_whole(decoder(), &body), (vec![text("x"), END], Ok(())));
    let list = json!([parts(json!([{"text": "x"}])), finish("STOP")]);
    assert_eq!(decode_whole(decoder(), &list), (vec![text("x"), END], Ok(())));
    assert!(matches!(decode_whole(decoder(), &json!("x")).1, Err(Fault::Protocol(_))));
    assert!(matches!(decode_whole(decoder(), &json!([{"error": {"code": 400}}])).1, Err(Fault::Reported(_))));
}
