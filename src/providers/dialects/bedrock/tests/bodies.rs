//! Request bodies, as whole JSON values.

use proptest::prelude::*;
use serde_json::{Map, Value, json};

use crate::base::ModelId;
use crate::config::ModelConfig;
use crate::llm::{Image, Message, Part, Replay, Request, Role, ToolSpec};
use crate::providers::dialects::bedrock::body::build;
use crate::providers::dialects::turns::tests::{Seen, assert_strict, history, model};

const CLAUDE: &str = "us.anthropic.claude-sonnet-4-6";
const LLAMA: &str = "meta.llama4-maverick-17b-instruct-v1:0";

fn request(name: &str, messages: Vec<Message>) -> Request {
    Request { messages, ..Request::to(ModelId::new("bedrock", name)) }
}

fn user(parts: Vec<Part>) -> Message {
    Message { role: Role::User, parts }
}

fn text(text: &str) -> Part {
    Part::Text(text.to_owned())
}

fn hi(name: &str) -> Request {
    request(name, vec![user(vec![text("hi")])])
}

fn object(value: Value) -> Map<String, Value> {
    value.as_object().unwrap().clone()
}

fn built(request: &Request, extra: Value) -> Value {
    let model = ModelConfig { extra_payload: object(extra), ..ModelConfig::default() };
    Value::Object(build(request, &model).1)
}

fn ls() -> ToolSpec {
    ToolSpec { name: "ls".to_owned(), description: "Lists".to_owned(), parameters: json!({"type": "object"}) }
}

fn png() -> Image {
    Image { media_type: "image/png".to_owned(), base64: "QUJD".to_owned() }
}

/// A conversation with everything in it.
fn full(name: &str) -> Request {
    let from = format!("bedrock/{name}");
    let replay = |data: Value| Replay { dialect: "bedrock".to_owned(), data };
    let mut request = request(
        name,
        vec![
            user(vec![text("look"), Part::Image(png())]),
            Message {
                role: Role::Assistant,
                parts: vec![
                    Part::Reasoning {
                        text: "hm".to_owned(),
                        replay: Some(replay(json!({"model": from, "signature": "sig"}))),
                    },
                    Part::Opaque(replay(
                        json!({"model": from, "block": {"reasoningContent": {"redactedContent": "ZW5j"}}}),
                    )),
                    Part::ToolCall { id: "t1".into(), name: "ls".into(), arguments: "{\"x\":1}".into(), replay: None },
                    Part::ToolCall { id: "t2".into(), name: "ls".into(), arguments: "no".into(), replay: None },
                ],
            },
            user(vec![
                Part::ToolResult { call_id: "t1".into(), text: "here".into(), images: vec![png()], error: false },
                Part::ToolResult { call_id: "t2".into(), text: "bad".into(), images: vec![], error: true },
            ]),
        ],
    );
    request.system = "Be brief.".to_owned();
    request.max_output_tokens = Some(5000);
    request.tools = vec![ls()];
    request
}

#[test]
fn the_smallest_body() {
    let (streamed, body) = build(&hi(LLAMA), &ModelConfig::default());
    assert!(streamed);
    assert_eq!(Value::Object(body), json!({"messages": [{"role": "user", "content": [{"text": "hi"}]}]}));
}

#[test]
fn a_full_body_for_claude() {
    let image = json!({"image": {"format": "png", "source": {"bytes": "QUJD"}}});
    let point = json!({"cachePoint": {"type": "default"}});
    let schema = json!({"json": {"type": "object", "properties": {}}});
    let expected = json!({
        "inferenceConfig": {"maxTokens": 5000},
        "system": [{"text": "Be brief."}, point],
        "toolConfig": {"tools": [{"toolSpec": {"name": "ls", "description": "Lists", "inputSchema": schema}}, point]},
        "messages": [
            {"role": "user", "content": [{"text": "look"}, image]},
            {"role": "assistant", "content": [
                {"reasoningContent": {"reasoningText": {"text": "hm", "signature": "sig"}}},
                {"reasoningContent": {"redactedContent": "ZW5j"}},
                {"toolUse": {"toolUseId": "t1", "name": "ls", "input": {"x": 1}}},
                {"toolUse": {"toolUseId": "t2", "name": "ls", "input": {}}},
            ]},
            {"role": "user", "content": [
                {"toolResult": {"toolUseId": "t1", "content": [{"text": "here"}, image]}},
                {"toolResult": {"toolUseId": "t2", "content": [{"text": "bad"}], "status": "error"}},
                point,
            ]},
        ],
    });
    assert_eq!(built(&full(CLAUDE), json!({})), expected);
}

#[test]
fn other_vendors_get_what_they_take() {
    let body = built(&full(LLAMA), json!({}));
    assert_eq!(body["system"], json!([{"text": "Be brief."}]));
    let expected = json!([
        {"toolResult": {"toolUseId": "t1", "content": [{"text": "here"}]}},
        {"toolResult": {"toolUseId": "t2", "content": [{"text": "Error: bad"}]}},
        {"image": {"format": "png", "source": {"bytes": "QUJD"}}},
    ]);
    assert_eq!(body["messages"][2]["content"], expected);
}

#[test]
fn where_the_cache_is_marked() {
    let marks = |name: &str| {
        let body = built(&full(name), json!({}));
        let marked = |list: &Value| list.as_array().unwrap().iter().any(|entry| entry.get("cachePoint").is_some());
        let last = body["messages"].as_array().unwrap().last().unwrap();
        (marked(&body["system"]), marked(&last["content"]), marked(&body["toolConfig"]["tools"]))
    };
    for (name, expected) in [
        ("anthropic.claude-3-7-sonnet-20250219-v1:0", (true, true, true)),
        ("anthropic.claude-3-5-haiku-20241022-v1:0", (true, true, true)),
        ("global.anthropic.claude-opus-4-7", (true, true, true)),
        ("anthropic.claude-3-5-sonnet-20240620-v1:0", (false, false, false)),
        ("anthropic.claude-v2:1", (false, false, false)),
        ("eu.amazon.nova-pro-v1:0", (true, true, false)),
        ("amazon.nova-sonic-v1:0", (false, false, false)),
        (LLAMA, (false, false, false)),
        ("arn:aws:bedrock:us-east-1:1:application-inference-profile/abc", (false, false, false)),
    ] {
        assert_eq!(marks(name), expected, "{name}");
    }
}

#[test]
fn calls_are_told_when_there_are_no_tools() {
    let body = built(&Request { tools: Vec::new(), ..full(LLAMA) }, json!({}));
    assert_eq!(body.get("toolConfig"), None);
    let text = body["messages"].to_string();
    assert!(!text.contains("toolUse") && !text.contains("toolResult"), "{text}");
    assert!(text.contains("Called the tool ls with") && text.contains("here"), "{text}");
}

#[test]
fn what_the_user_adds_is_translated_merged_and_filtered() {
    let mut request = hi(CLAUDE);
    request.payload = object(json!({"thinking": {"type": "adaptive"}, "output_config": {"effort": "high"}}));
    let extra = json!({
        "thinking": {"type": "enabled", "budget_tokens": 9},
        "additionalModelRequestFields": {"top_k": 5, "gone": null},
        "inferenceConfig": {"temperature": 0.5},
        "guardrailConfig": {"guardrailIdentifier": "g"},
        "max_tokens": 7, "stream": true, "temperature": 1,
    });
    let body = built(&request, extra);
    let fields = json!({"thinking": {"type": "adaptive"}, "output_config": {"effort": "high"}, "top_k": 5});
    assert_eq!(body["additionalModelRequestFields"], fields);
    assert_eq!(body["inferenceConfig"], json!({"temperature": 0.5}));
    assert_eq!(body["guardrailConfig"], json!({"guardrailIdentifier": "g"}));
    for key in ["max_tokens", "stream", "temperature", "thinking", "output_config"] {
        assert_eq!(body.get(key), None, "{key}");
    }
    let removed = built(&Request { max_output_tokens: Some(5), ..hi(CLAUDE) }, json!({"inferenceConfig": null}));
    assert_eq!(removed.get("inferenceConfig"), None);
}

#[test]
fn thinking_is_taken_back_where_it_must_not_be() {
    let thinking = json!({"thinking": {"type": "enabled", "budget_tokens": 2048}, "output_config": {"effort": "low"}});
    let quiet = Request { reasoning: false, ..hi(CLAUDE) };
    assert_eq!(built(&quiet, thinking.clone()).get("additionalModelRequestFields"), None);
    assert_eq!(built(&hi(CLAUDE), thinking.clone())["additionalModelRequestFields"], thinking);
    // The calls were made by a model that did not think.
    let mut foreign = full(CLAUDE);
    foreign.messages[1].parts.drain(..2);
    assert_eq!(
        built(&foreign, thinking.clone())["additionalModelRequestFields"],
        json!({"output_config": {"effort": "low"}})
    );
    assert_eq!(built(&full(CLAUDE), thinking.clone())["additionalModelRequestFields"], thinking);
}

#[test]
fn streams_unless_told_otherwise() {
    let streamed = |extra: Value, payload: Value| {
        let model = ModelConfig { extra_payload: object(extra), ..ModelConfig::default() };
        build(&Request { payload: object(payload), ..hi(CLAUDE) }, &model).0
    };
    assert!(streamed(json!({}), json!({})));
    assert!(!streamed(json!({"stream": false}), json!({})));
    assert!(streamed(json!({"stream": false}), json!({"stream": true})));
}

fn seen(messages: &Value) -> Vec<(String, Vec<Seen>)> {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let block = |block: &Value| {
        let (key, value) = block.as_object().unwrap().iter().next().unwrap();
        match key.as_str() {
            "text" => Seen::Text(text(value)),
            "image" => Seen::Picture,
            "toolUse" => {
                assert!(value["input"].is_object() && value["name"].as_str().unwrap().len() <= 64);
                Seen::Call { id: text(&value["toolUseId"]), name: text(&value["name"]) }
            }
            "toolResult" => {
                let content = value["content"].as_array().unwrap();
                assert!(!content.is_empty());
                assert!(
                    content
                        .iter()
                        .all(|part| part["text"].is_null() || !part["text"].as_str().unwrap().trim().is_empty())
                );
                Seen::Answer { id: text(&value["toolUseId"]) }
            }
            "reasoningContent" => Seen::Thinking,
            other => panic!("an unknown block {other}"),
        }
    };
    let not_mark = |block: &&Value| block.get("cachePoint").is_none();
    let message = |message: &Value| {
        let blocks = message["content"].as_array().unwrap().iter().filter(not_mark).map(block).collect();
        (text(&message["role"]), blocks)
    };
    messages.as_array().unwrap().iter().map(message).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]
    #[test]
    fn any_history_becomes_a_valid_one(messages in history(), tools in any::<bool>(), hidden in any::<bool>()) {
        let mut request = Request { messages, ..Request::to(model()) };
        request.tools = if tools { vec![ls()] } else { Vec::new() };
        let model_name = hidden.then(|| LLAMA.to_owned());
        let body = build(&request, &ModelConfig { model_name, ..ModelConfig::default() }).1;
        let seen = seen(&body["messages"]);
        assert_strict(&seen);
        let uses_tools = seen.iter().any(|(_, blocks)| blocks.iter().any(|block| matches!(block, Seen::Call { .. } | Seen::Answer { .. })));
        prop_assert!(tools || !uses_tools);
    }
}
