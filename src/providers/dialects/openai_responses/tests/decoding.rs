//! Answers of several servers: whole, split at every byte, truncated at every byte.

use serde_json::{Value, json};

use crate::config::ModelConfig;
use crate::llm::{Delta, Image, ServerTool, StopReason};
use crate::providers::dialects::exchange::Framing;
use crate::providers::dialects::openai_responses::ResponsesDecoder;
use crate::providers::dialects::openai_responses::body::build;
use crate::providers::dialects::testing::{
    Answer, CALLS, END, arguments, call, check_answers, decode_pieces, decode_whole, kept, replay, request, text,
    thought, usage,
};
use crate::providers::errors::Fault;

fn decoder() -> ResponsesDecoder {
    ResponsesDecoder::new("acme/m")
}

/// Named events, as OpenAI sends them.
fn sse(events: &[Value]) -> String {
    events.iter().map(|event| format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap())).collect()
}

fn added(place: u64, item: Value) -> Value {
    json!({"type": "response.output_item.added", "output_index": place, "item": item})
}

fn done(place: u64, item: Value) -> Value {
    json!({"type": "response.output_item.done", "output_index": place, "item": item})
}

fn delta(kind: &str, item_id: &str, place: u64, text: &str) -> Value {
    json!({"type": format!("response.{kind}.delta"), "item_id": item_id, "output_index": place, "delta": text})
}

fn completed(output: Value, usage: Value) -> Value {
    json!({"type": "response.completed", "response": {
        "id": "resp_1", "status": "completed", "error": null, "output": output, "usage": usage}})
}

fn message(id: &str, words: &str) -> Value {
    json!({"id": id, "type": "message", "role": "assistant", "status": "completed",
        "content": [{"type": "output_text", "text": words, "annotations": []}]})
}

fn own(item: Value) -> crate::llm::Replay {
    replay("openai-responses", json!({"source": "acme/m", "item": item}))
}

fn answers() -> Vec<Answer> {
    vec![reasoning_and_calls(), search_and_picture(), local_server(), only_at_the_end(), copied_ids(), refusal(), cut()]
}

fn reasoning_and_calls() -> Answer {
    let thoughts = json!({"id": "rs_1", "type": "reasoning", "status": null, "encrypted_content": "enc",
        "summary": [{"type": "summary_text", "text": "one"}, {"type": "summary_text", "text": "two"}]});
    let hidden = json!({"id": "rs_2", "type": "reasoning", "encrypted_content": "more", "summary": []});
    let first = json!({"id": "fc_1", "type": "function_call", "call_id": "call_a", "name": "ls", "arguments": "{}"});
    let begun = |item: &Value| {
        let mut item = item.clone();
        item["arguments"] = json!("");
        item
    };
    let second =
        json!({"id": "fc_2", "type": "function_call", "call_id": "call_b", "name": "cat", "arguments": "{\"p\":1}"});
    let part_done =
        json!({"type": "response.reasoning_summary_text.done", "item_id": "rs_1", "output_index": 0, "text": "one"});
    let body = sse(&[
        json!({"type": "response.created", "response": {"id": "resp_1", "status": "in_progress", "output": []}}),
        added(0, json!({"id": "rs_1", "type": "reasoning", "summary": []})),
        delta("reasoning_summary_text", "rs_1", 0, "on"),
        delta("reasoning_summary_text", "rs_1", 0, "e"),
        part_done,
        delta("reasoning_summary_text", "rs_1", 0, "two"),
        done(0, thoughts.clone()),
        added(1, json!({"id": "rs_2", "type": "reasoning", "summary": []})),
        done(1, hidden.clone()),
        added(2, begun(&first)),
        added(3, begun(&second)),
        delta("function_call_arguments", "fc_2", 3, "{\"p\""),
        delta("function_call_arguments", "fc_1", 2, "{}"),
        delta("function_call_arguments", "fc_2", 3, ":1}"),
        json!({"type": "response.function_call_arguments.done", "item_id": "fc_1", "output_index": 2, "arguments": "{}"}),
        done(2, first.clone()),
        done(3, second.clone()),
        completed(
            json!([thoughts, hidden, first, second]),
            json!({"input_tokens": 10, "input_tokens_details": {"cached_tokens": 4}, "output_tokens": 7}),
        ),
    ]);
    let item = json!({"id": "rs_1", "type": "reasoning", "encrypted_content": "enc", "summary": thoughts["summary"]});
    let expected = vec![
        thought("on"),
        thought("e"),
        thought("\n\ntwo"),
        Delta::ReasoningEnd { replay: Some(own(item)) },
        Delta::Opaque(own(hidden)),
        call(0, "call_a", "ls"),
        call(1, "call_b", "cat"),
        arguments(1, "{\"p\""),
        arguments(0, "{}"),
        arguments(1, ":1}"),
        usage(6, 7, 4),
        CALLS,
    ];
    ("OpenAI: reasoning, hidden reasoning, parallel calls", body, expected)
}

fn search_and_picture() -> Answer {
    let search = json!({"id": "ws_1", "type": "web_search_call", "status": "completed",
        "action": {"type": "search", "query": "q"}});
    let note = json!({"type": "url_citation", "url": "https://a.test", "title": "A", "start_index": 0, "end_index": 1});
    let words = json!({"id": "msg_1", "type": "message", "content": [
        {"type": "output_text", "text": "Hé!", "annotations": [note]}]});
    let picture = json!({"id": "ig_1", "type": "image_generation_call", "status": "completed", "result": "QUJD",
        "output_format": "webp"});
    let body = sse(&[
        added(0, json!({"id": "ws_1", "type": "web_search_call", "status": "in_progress"})),
        json!({"type": "response.web_search_call.searching", "item_id": "ws_1", "output_index": 0}),
        done(0, search.clone()),
        added(1, json!({"id": "msg_1", "type": "message", "content": []})),
        delta("output_text", "msg_1", 1, "Hé"),
        json!({"type": "response.output_text.annotation.added", "item_id": "msg_1", "output_index": 1, "annotation": note}),
        delta("output_text", "msg_1", 1, "!"),
        done(1, words.clone()),
        added(2, json!({"id": "ig_1", "type": "image_generation_call", "status": "in_progress"})),
        done(2, picture.clone()),
        completed(json!([search, words, picture]), Value::Null),
    ]);
    let tool = |id: &str, name: &str, input: Value| {
        let input = input.as_object().unwrap().clone();
        let finished =
            ServerTool::Finished { id: id.into(), name: name.into(), input, output: String::new(), error: false };
        [ServerTool::Started { id: id.into(), name: name.into() }, finished].map(Delta::ServerTool).to_vec()
    };
    let mut expected = tool("ws_1", "web_search", json!({"type": "search", "query": "q"}));
    expected.push(Delta::Opaque(own(search)));
    expected.extend([text("Hé"), Delta::Citation { title: "A".into(), url: "https://a.test".into() }, text("!")]);
    expected.extend(tool("ig_1", "image_generation", json!({})));
    expected.push(Delta::Image(Image { media_type: "image/webp".into(), base64: "QUJD".into() }));
    expected.push(END);
    ("OpenAI: a search, citations, a picture", body, expected)
}

/// As llama.cpp does it: no places, readable reasoning, a name for each event only in the data.
fn local_server() -> Answer {
    let thoughts = json!({"id": "rs_1", "type": "reasoning", "encrypted_content": "", "summary": [],
        "content": [{"type": "reasoning_text", "text": "hm"}], "status": "completed"});
    let events = [
        json!({"type": "response.output_item.added", "item": {"id": "rs_1", "type": "reasoning", "summary": []}}),
        json!({"type": "response.reasoning_text.delta", "item_id": "rs_1", "delta": "hm"}),
        json!({"type": "response.output_text.delta", "delta": "yes"}),
        json!({"type": "response.output_item.done", "item": thoughts}),
        json!({"type": "response.completed", "response": {"status": "completed",
            "output": [thoughts, message("msg_1", "yes")], "usage": {"input_tokens": 3, "output_tokens": 2}}}),
    ];
    let body: String = events.iter().map(|event| format!("data: {event}\n\n")).collect();
    let expected = vec![thought("hm"), Delta::ReasoningEnd { replay: None }, text("yes"), usage(3, 2, 0), END];
    ("a local server: no places, text before the reasoning is done", body + "data: [DONE]\n\n", expected)
}

fn only_at_the_end() -> Answer {
    let thoughts = json!({"type": "reasoning", "summary": [], "content": [{"type": "reasoning_text", "text": "hm"}]});
    let one = json!({"type": "function_call", "call_id": "a", "name": "ls", "arguments": {"p": 1}});
    let two = json!({"type": "function_call", "call_id": "b", "name": "ls", "arguments": ""});
    let body = sse(&[completed(json!([thoughts, message("", "x"), one, two, {"type": "unheard_of"}]), Value::Null)]);
    let end = Delta::ReasoningEnd { replay: Some(own(thoughts)) };
    let calls = [call(0, "a", "ls"), arguments(0, "{\"p\":1}"), call(1, "b", "ls")];
    (
        "output only in the last event, no ids",
        body,
        [vec![thought("hm"), end, text("x")], calls.to_vec(), vec![CALLS]].concat(),
    )
}

/// Some gateways give an item another id in every event.
fn copied_ids() -> Answer {
    let item = |id: &str, arguments: &str| json!({"id": id, "type": "function_call", "call_id": "c", "name": "ls", "arguments": arguments});
    let body = sse(&[
        added(0, item("x1", "")),
        delta("function_call_arguments", "x2", 0, "{}"),
        done(0, item("x3", "{}")),
        added(1, json!({"id": "y1", "type": "message"})),
        delta("output_text", "y2", 1, "a"),
        delta("output_text", "y3", 1, "b"),
        done(1, message("y4", "ab")),
        completed(json!([item("x5", "{}"), message("y5", "ab")]), Value::Null),
    ]);
    let expected = vec![call(0, "c", "ls"), arguments(0, "{}"), text("a"), text("b"), CALLS];
    ("a gateway: another id in every event", body, expected)
}

fn refusal() -> Answer {
    let item = json!({"id": "m", "type": "message", "content": [{"type": "refusal", "refusal": "I will not."}]});
    let body = sse(&[
        added(0, json!({"id": "m", "type": "message"})),
        delta("refusal", "m", 0, "I will not."),
        done(0, item.clone()),
        completed(json!([item]), Value::Null),
    ]);
    ("a refusal", body, vec![text("I will not."), Delta::Stop(StopReason::Refusal)])
}

fn cut() -> Answer {
    let body = sse(&[
        delta("output_text", "m", 0, "on and on"),
        json!({"type": "response.incomplete", "response": {"status": "incomplete",
            "incomplete_details": {"reason": "max_output_tokens"}, "output": [message("m", "on and on")],
            "usage": {"input_tokens": 1, "output_tokens": 2}}}),
    ]);
    ("cut by the limit", body, vec![text("on and on"), usage(1, 2, 0), Delta::Stop(StopReason::MaxTokens)])
}

#[tokio::test]
async fn whole_split_and_truncated() {
    check_answers(Framing::Sse, decoder, answers()).await;
}

/// What the model did goes back item by item as it came, without what only the server needs.
#[test]
fn an_answer_goes_back_as_it_came() {
    let sent = |answer: Answer| {
        let input = build(&request("m", vec![kept(answer.2)]), &ModelConfig::default())["input"].clone();
        input.as_array().unwrap().iter().map(|item| item["type"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let calls = ["reasoning", "reasoning", "function_call", "function_call", "function_call_output"];
    assert_eq!(sent(reasoning_and_calls())[..5], calls);
    // The picture that the model made follows as the user's.
    assert_eq!(sent(search_and_picture()), ["web_search_call", "message", "message"]);
    assert_eq!(sent(only_at_the_end())[..2], ["reasoning", "message"], "readable thoughts of a local server");
    assert_eq!(sent(local_server()), ["message"]);
}

async fn decode(body: String) -> (Vec<Delta>, Result<(), Fault>) {
    decode_pieces(Framing::Sse, decoder(), vec![body.into()]).await
}

#[tokio::test]
async fn failures() {
    let said = delta("output_text", "m", 0, "x");
    let error = json!({"code": "server_error", "message": "m"});
    let reported = Err(Fault::Reported(error.clone()));
    let failed = json!({"type": "response.failed", "response": {"status": "failed", "error": error}});
    assert_eq!(decode(sse(&[said.clone(), failed])).await, (vec![text("x")], reported.clone()));
    let nested = json!({"type": "error", "error": error});
    assert_eq!(decode(sse(&[nested])).await.1, reported);
    let flat = json!({"type": "error", "code": "rate_limit_exceeded", "message": "m"});
    assert_eq!(decode(sse(std::slice::from_ref(&flat))).await.1, Err(Fault::Reported(flat)));
    assert_eq!(decode(format!("data: {}\n\n", json!({"error": error}))).await.1, reported);
    let nameless = json!({"type": "response.failed", "response": {"status": "failed", "error": null}});
    assert!(matches!(decode(sse(&[nameless])).await.1, Err(Fault::Reported(_))));
    for bad in ["nonsense", "[1]", "7"] {
        assert!(matches!(decode(format!("data: {bad}\n\n")).await.1, Err(Fault::Protocol(_))), "{bad}");
    }
}

#[tokio::test]
async fn ends_that_come_too_early() {
    let incomplete = |reason: &str| {
        json!({"type": "response.incomplete", "response": {
        "status": "incomplete", "incomplete_details": {"reason": reason}, "output": []}})
    };
    for body in [
        String::new(),
        "data: [DONE]\n\n".to_owned(),
        sse(&[delta("output_text", "m", 0, "x")]),
        sse(&[incomplete("who knows")]),
        sse(&[json!({"type": "response.cancelled", "response": {}})]),
    ] {
        assert_eq!(decode(body.clone()).await.1, Err(Fault::PrematureStop), "{body}");
    }
    let filtered = decode(sse(&[incomplete("content_filter")])).await;
    assert_eq!(filtered, (vec![Delta::Stop(StopReason::Refusal)], Ok(())));
}

#[tokio::test]
async fn odd_values_do_no_harm() {
    let body = sse(&[
        json!({"type": "response.output_item.added"}),
        json!({"type": "response.output_item.done", "item": 7}),
        json!({"type": "response.output_text.delta", "delta": 7}),
        json!({"type": "response.function_call_arguments.delta", "delta": "{", "output_index": "x"}),
        json!({"type": "response.output_text.annotation.added", "annotation": {"type": "file_citation"}}),
        json!({"type": "response.unheard_of"}),
        completed(
            json!([7, {"type": "message", "content": 7}, {"type": "reasoning"}, {"type": "web_search_call"}]),
            json!(7),
        ),
    ]);
    let (found, result) = decode(body).await;
    assert_eq!(result, Ok(()));
    assert!(matches!(found.last(), Some(Delta::Stop(StopReason::EndTurn))), "{found:?}");
}

#[test]
fn an_answer_in_one_piece() {
    let output = json!([message("m", "x"), {"type": "function_call", "call_id": "a", "name": "ls", "arguments": "{}"}]);
    let body = json!({"object": "response", "status": "completed", "error": null, "output": output,
        "usage": {"input_tokens": 1, "output_tokens": 2}});
    let expected = vec![text("x"), call(0, "a", "ls"), arguments(0, "{}"), usage(1, 2, 0), CALLS];
    assert_eq!(decode_whole(decoder(), &body), (expected, Ok(())));
    assert!(matches!(decode_whole(decoder(), &json!({"hello": 1})).1, Err(Fault::Protocol(_))));
    assert!(matches!(decode_whole(decoder(), &json!({"error": {"message": "m"}})).1, Err(Fault::Reported(_))));
}
