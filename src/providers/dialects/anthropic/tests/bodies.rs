//! Request bodies, as whole JSON values.

use proptest::prelude::*;
use serde_json::{Map, Value, json};

use crate::base::ModelId;
use crate::config::ModelConfig;
use crate::llm::{Image, Message, Part, Replay, Request, Role, ToolSpec};
use crate::providers::dialects::anthropic::body::{Options, build};
use crate::providers::dialects::turns::tests::{Seen, assert_strict, history, model};

fn request(messages: Vec<Message>) -> Request {
    Request { messages, ..Request::to(ModelId::new("anthropic", "claude-sonnet-4-6")) }
}

fn user(parts: Vec<Part>) -> Message {
    Message { role: Role::User, parts }
}

fn assistant(parts: Vec<Part>) -> Message {
    Message { role: Role::Assistant, parts }
}

fn text(text: &str) -> Part {
    Part::Text(text.to_owned())
}

fn hi() -> Request {
    request(vec![user(vec![text("hi")])])
}

fn object(value: Value) -> Map<String, Value> {
    value.as_object().unwrap().clone()
}

fn built(request: &Request) -> Value {
    Value::Object(build(request, &ModelConfig::default(), Options::default()))
}

fn with_extra(request: &Request, extra: Value) -> Value {
    let model = ModelConfig { extra_payload: object(extra), ..ModelConfig::default() };
    Value::Object(build(request, &model, Options::default()))
}

#[test]
fn the_smallest_body() {
    let expected = json!({
        "model": "claude-sonnet-4-6",
        "max_tokens": 32000,
        "stream": true,
        "messages": [{"role": "user", "content": [
            {"type": "text", "text": "hi", "cache_control": {"type": "ephemeral"}}
        ]}],
        "thinking": {"type": "enabled", "budget_tokens": 2048},
    });
    assert_eq!(built(&hi()), expected);
}

#[test]
fn a_full_body() {
    let png = || Image { media_type: "image/png".to_owned(), base64: "QUJD".to_owned() };
    let replay = |data: Value| Replay { dialect: "anthropic".to_owned(), data };
    let from = "anthropic/claude-sonnet-4-6";
    let mut request = request(vec![
        user(vec![text("look"), Part::Image(png())]),
        assistant(vec![
            Part::Reasoning { text: "hm".to_owned(), replay: Some(replay(json!({"model": from, "signature": "sig"}))) },
            Part::Opaque(replay(json!({"model": from, "block": {"type": "redacted_thinking", "data": "enc"}}))),
            text("I will"),
            Part::ToolCall {
                id: "t1".to_owned(),
                name: "shot".to_owned(),
                arguments: "{\"x\":1}".to_owned(),
                replay: None,
            },
            Part::ToolCall { id: "t2".to_owned(), name: "ls".to_owned(), arguments: "{bad".to_owned(), replay: None },
        ]),
        user(vec![
            Part::ToolResult { call_id: "t2".to_owned(), text: "bad JSON".to_owned(), images: vec![], error: true },
            Part::ToolResult { call_id: "t1".to_owned(), text: "here".to_owned(), images: vec![png()], error: false },
        ]),
    ]);
    request.system = "Be brief.".to_owned();
    request.web_search = true;
    request.tools = vec![
        ToolSpec { name: "ls".to_owned(), description: "Lists".to_owned(), parameters: json!({"type": "object"}) },
        ToolSpec { name: "now".to_owned(), description: " ".to_owned(), parameters: Value::Null },
    ];
    let model =
        ModelConfig { output_limit: Some(64_000), model_name: Some("real".to_owned()), ..ModelConfig::default() };
    let body = Value::Object(build(&request, &model, Options { long_cache: true, resumed: false }));
    let image = json!({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "QUJD"}});
    let mark = json!({"type": "ephemeral", "ttl": "1h"});
    let expected = json!({
        "model": "real",
        "max_tokens": 64000,
        "stream": true,
        "system": [{"type": "text", "text": "Be brief.", "cache_control": mark}],
        "tools": [
            {"name": "ls", "description": "Lists", "input_schema": {"type": "object", "properties": {}}},
            {"name": "now", "input_schema": {"type": "object", "properties": {}}},
            {"type": "web_search_20250305", "name": "web_search", "max_uses": 10, "cache_control": mark},
        ],
        "thinking": {"type": "enabled", "budget_tokens": 2048},
        "messages": [
            {"role": "user", "content": [{"type": "text", "text": "look"}, image]},
            {"role": "assistant", "content": [
                {"type": "thinking", "thinking": "hm", "signature": "sig"},
                {"type": "redacted_thinking", "data": "enc"},
                {"type": "text", "text": "I will"},
                {"type": "tool_use", "id": "t1", "name": "shot", "input": {"x": 1}},
                {"type": "tool_use", "id": "t2", "name": "ls", "input": {}},
            ]},
            {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "t1", "content": [{"type": "text", "text": "here"}, image]},
                {"type": "tool_result", "tool_use_id": "t2", "content": "bad JSON", "is_error": true, "cache_control": mark},
            ]},
        ],
    });
    assert_eq!(body, expected);
}

#[test]
fn how_much_may_be_written() {
    let limit = |wanted: Option<u64>, possible: Option<u64>, name: &str| {
        let mut request = hi();
        request.model = ModelId::new("anthropic", name);
        request.max_output_tokens = wanted;
        let model = ModelConfig { output_limit: possible, ..ModelConfig::default() };
        build(&request, &model, Options::default())["max_tokens"].as_u64().unwrap()
    };
    assert_eq!(limit(None, None, "claude-sonnet-4-6"), 32_000);
    assert_eq!(limit(Some(100), Some(50), "x"), 50);
    assert_eq!(limit(Some(100), Some(500), "x"), 100);
    assert_eq!(limit(Some(100), None, "x"), 100);
    assert_eq!(limit(None, Some(64_000), "x"), 64_000);
    assert_eq!(limit(None, None, "claude-3-5-haiku-20241022"), 8192);
}

#[test]
fn how_to_think() {
    let thinking = |request: &Request| built(request).get("thinking").cloned().unwrap_or_default();
    let named = |name: &str| Request { model: ModelId::new("anthropic", name), ..hi() };
    let budget = json!({"type": "enabled", "budget_tokens": 2048});
    assert_eq!(thinking(&named("claude-opus-4-7")), json!({"type": "adaptive", "display": "summarized"}));
    assert_eq!(thinking(&named("claude-3-5-haiku-20241022")), Value::Null);
    assert_eq!(thinking(&named("glm-4.6")), budget);
    assert_eq!(thinking(&Request { reasoning: false, ..hi() }), Value::Null);
    assert_eq!(thinking(&Request { max_output_tokens: Some(2048), ..hi() }), Value::Null, "no room");
    // The user's own words count, and are taken back when nobody may think.
    let adaptive = json!({"thinking": {"type": "adaptive"}, "output_config": {"effort": "high"}});
    let variant = Request { payload: object(adaptive.clone()), ..hi() };
    assert_eq!(thinking(&variant), json!({"type": "adaptive"}));
    let quiet = Request { reasoning: false, ..variant };
    assert_eq!((thinking(&quiet), &built(&quiet)["output_config"]), (Value::Null, &json!({"effort": "high"})));
    assert_eq!(with_extra(&hi(), json!({"output_config": {"effort": "low"}})).get("thinking"), None);
    assert_eq!(with_extra(&hi(), json!({"thinking": null})).get("thinking"), None);
}

#[test]
fn no_thinking_about_calls_that_were_made_without() {
    let messages = vec![
        user(vec![text("1")]),
        assistant(vec![Part::ToolCall { id: "a".into(), name: "ls".into(), arguments: "{}".into(), replay: None }]),
        user(vec![Part::ToolResult { call_id: "a".into(), text: "r".into(), images: vec![], error: false }]),
    ];
    assert_eq!(built(&request(messages.clone())).get("thinking"), None);
    // One that decides for itself may.
    let adaptive = Request { model: ModelId::new("anthropic", "claude-opus-4-8"), ..request(messages.clone()) };
    assert_eq!(built(&adaptive)["thinking"]["type"], "adaptive");
    let asked_again = [messages, vec![assistant(vec![text("ok")]), user(vec![text("2")])]].concat();
    assert_eq!(built(&request(asked_again))["thinking"]["type"], "enabled");
}

#[test]
fn extra_payload_replaces_whole_keys_and_the_variant_goes_into_it() {
    let mut request = hi();
    request.payload = object(json!({"metadata": {"b": 2}, "stop_sequences": null, "thinking": {"type": "adaptive"}}));
    let extra = json!({
        "metadata": {"a": 1}, "stop_sequences": ["x"], "max_tokens": 5, "stream": false,
        "thinking": {"type": "enabled", "budget_tokens": 9999}, "top_k": 3,
    });
    let body = with_extra(&request, extra);
    assert_eq!(body["metadata"], json!({"a": 1, "b": 2}));
    assert_eq!(body.get("stop_sequences"), None);
    assert_eq!(body["thinking"], json!({"type": "adaptive"}));
    assert_eq!((&body["max_tokens"], &body["stream"], &body["top_k"]), (&json!(5), &json!(false), &json!(3)));
}

#[test]
fn our_own_search_comes_before_the_providers() {
    let mut request = hi();
    request.web_search = true;
    assert_eq!(built(&request)["tools"][0]["type"], "web_search_20250305");
    request.tools =
        vec![ToolSpec { name: "web_search".to_owned(), description: "Ours".to_owned(), parameters: Value::Null }];
    let tools = built(&request)["tools"].clone();
    assert_eq!(tools.as_array().unwrap().len(), 1);
    assert_eq!(tools[0]["description"], "Ours");
}

#[test]
fn a_model_that_cannot_see_gets_words() {
    let image = Part::Image(Image { media_type: "image/png".to_owned(), base64: "QUJD".to_owned() });
    let model = ModelConfig { image_input: Some(false), ..ModelConfig::default() };
    let body = build(&request(vec![user(vec![image])]), &model, Options::default());
    assert_eq!(body["messages"][0]["content"][0]["type"], "text");
}

#[test]
fn an_answer_to_be_continued_stays_last_and_is_not_marked() {
    let unfinished = request(vec![user(vec![text("1")]), assistant(vec![text("so far ")])]);
    let body = build(&unfinished, &ModelConfig::default(), Options { resumed: true, long_cache: false });
    assert_eq!(body["messages"][1], json!({"role": "assistant", "content": [{"type": "text", "text": "so far"}]}));
    assert_eq!(built(&unfinished)["messages"][2]["content"][0]["text"], "Continue.");
}

/// The messages of a body as the checker sees them.
fn seen(messages: &Value) -> Vec<(String, Vec<Seen>)> {
    let id = |block: &Value, key: &str| block[key].as_str().unwrap().to_owned();
    let block = |block: &Value| match block["type"].as_str().unwrap() {
        "text" => Seen::Text(id(block, "text")),
        "image" => Seen::Picture,
        "tool_use" => {
            assert!(block["input"].is_object());
            Seen::Call { id: id(block, "id"), name: id(block, "name") }
        }
        "tool_result" => {
            let content = &block["content"];
            let texts: Vec<&str> = match content {
                Value::String(text) => vec![text],
                parts => parts.as_array().unwrap().iter().filter_map(|part| part["text"].as_str()).collect(),
            };
            assert!(texts.iter().all(|text| !text.trim().is_empty()) && content != &json!([]), "{block}");
            assert!(block["is_error"].is_null() || content.is_string(), "an error with pictures: {block}");
            Seen::Answer { id: id(block, "tool_use_id") }
        }
        "thinking" | "redacted_thinking" => Seen::Thinking,
        "server_tool_use" => Seen::ServerCall(id(block, "id")),
        "web_search_tool_result" => Seen::ServerAnswer(id(block, "tool_use_id")),
        other => panic!("an unknown block {other}"),
    };
    let message = |message: &Value| {
        let blocks = message["content"].as_array().unwrap().iter().map(block).collect();
        (id(message, "role"), blocks)
    };
    messages.as_array().unwrap().iter().map(message).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]
    #[test]
    fn any_history_becomes_a_valid_one(messages in history(), images in any::<bool>()) {
        let request = Request { messages, ..Request::to(model()) };
        let config = ModelConfig { image_input: Some(images), ..ModelConfig::default() };
        let body = build(&request, &config, Options::default());
        let mut marks = 0;
        for message in body["messages"].as_array().unwrap() {
            marks += message["content"].as_array().unwrap().iter().filter(|block| !block["cache_control"].is_null()).count();
        }
        prop_assert_eq!(marks, 1);
        assert_strict(&seen(&body["messages"]));
    }
}
