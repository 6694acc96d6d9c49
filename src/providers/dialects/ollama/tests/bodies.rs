//! Request bodies, as whole JSON values, and what a chat template needs of their messages.

use proptest::prelude::*;
use serde_json::{Value, json};

use crate::config::ModelConfig;
use crate::llm::{Part, Request, Role};
use crate::providers::dialects::Capabilities;
use crate::providers::dialects::ollama::body::build;
use crate::providers::dialects::testing::{
    any_history, assistant, called, conversation, image, pictures, request, result, said, tool, user,
};

const ALL: Capabilities = Capabilities { tools: true, reasoning: true, vision: true };

fn body(request: &Request, can: Option<Capabilities>) -> Value {
    Value::Object(build(request, &ModelConfig::default(), can))
}

/// Roles alternate, every call has its result right behind it and in order, nothing is empty.
fn check(messages: &Value) -> Result<(), String> {
    let mut open: Vec<(Value, Value)> = Vec::new();
    let mut last = String::new();
    for message in messages.as_array().ok_or("not a list")? {
        let role = message["role"].as_str().ok_or("no role")?;
        let content = message["content"].as_str().ok_or("content is no text")?;
        if role == "tool" {
            if open.is_empty() || content.is_empty() {
                return Err(format!("a result without its call: {message}"));
            }
            let (name, id) = open.remove(0);
            if message["tool_name"] != name || message["tool_call_id"] != id {
                return Err(format!("results out of order: {message}"));
            }
        } else if !open.is_empty() || role == last {
            return Err(format!("out of turn: {message}"));
        }
        let calls = message["tool_calls"].as_array().cloned().unwrap_or_default();
        if content.is_empty() && calls.is_empty() && message["images"].as_array().is_none_or(Vec::is_empty) {
            return Err("an empty message".into());
        }
        for call in calls {
            let function = &call["function"];
            if !function["arguments"].is_object() || function["name"].as_str().is_none_or(str::is_empty) {
                return Err(format!("bad call {call}"));
            }
            open.push((function["name"].clone(), call["id"].clone()));
        }
        last = role.to_owned();
    }
    if open.is_empty() { Ok(()) } else { Err("calls without results at the end".into()) }
}

#[test]
fn the_smallest_body() {
    let request = request("m", vec![user(vec![said("hi")])]);
    let expected = json!({"model": "m", "messages": [{"role": "user", "content": "hi"}], "stream": true});
    assert_eq!(body(&request, None), expected);
}

#[test]
fn a_full_body() {
    let mut request = request("m", vec![user(vec![said("hi")])]);
    request.system = "Be brief.".to_owned();
    request.max_output_tokens = Some(500);
    request.tools = vec![tool("ls", json!({"type": "object"}))];
    request.payload = json!({"think": "high", "options": {"num_predict": null}}).as_object().unwrap().clone();
    let model = ModelConfig {
        model_name: Some("gpt-oss:20b".to_owned()),
        context_limit: Some(32_768),
        extra_payload: json!({"keep_alive": "5m", "options": {"temperature": 0}}).as_object().unwrap().clone(),
        ..ModelConfig::default()
    };
    let expected = json!({
        "model": "gpt-oss:20b",
        "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "hi"}],
        "stream": true,
        "think": "high",
        "keep_alive": "5m",
        "options": {"num_ctx": 32_768, "temperature": 0},
        "tools": [{"type": "function", "function": {
            "name": "ls", "description": "Does", "parameters": {"type": "object"}}}],
    });
    assert_eq!(Value::Object(build(&request, &model, Some(ALL))), expected);
}

#[test]
fn only_what_the_model_can_is_asked_of_it() {
    let nothing = Capabilities { tools: false, reasoning: false, vision: false };
    let mut request = request("m", vec![user(vec![said("look"), Part::Image(image("QUJD"))])]);
    request.tools = vec![tool("ls", Value::Null)];
    let keys = |request: &Request, can| {
        let body = body(request, can);
        (body.get("think").cloned(), body.get("tools").is_some(), body["messages"][0].get("images").is_some())
    };
    assert_eq!(keys(&request, None), (None, true, true));
    assert_eq!(keys(&request, Some(ALL)), (Some(json!(true)), true, true));
    assert_eq!(keys(&request, Some(nothing)), (None, false, false));
    request.reasoning = false;
    request.payload = json!({"think": "high"}).as_object().unwrap().clone();
    assert_eq!(keys(&request, None).0, None);
    assert_eq!(keys(&request, Some(ALL)).0, Some(json!(false)));
}

#[test]
fn a_conversation_with_everything_in_it() {
    let messages = conversation("ollama", json!({}), None);
    let found = body(&request("m", messages), None)["messages"].clone();
    let expected = json!([
        {"role": "user", "content": "look", "images": ["QUJD"]},
        {"role": "assistant", "content": "sure", "thinking": "hm", "tool_calls": [
            {"id": "a", "function": {"name": "ls", "arguments": {"p": 1}}},
            {"id": "b", "function": {"name": "ls", "arguments": {}}},
        ]},
        {"role": "tool", "tool_name": "ls", "tool_call_id": "a", "content": "(no output)"},
        {"role": "tool", "tool_name": "ls", "tool_call_id": "b", "content": "bad"},
        {"role": "user", "content": "(images from the tool results above)", "images": ["REVG"]},
        {"role": "assistant", "content": "done"},
        {"role": "user", "content": "thanks"},
    ]);
    assert_eq!(found, expected);
    check(&found).unwrap();
}

#[test]
fn pictures_of_the_last_results_are_sent() {
    let messages = vec![
        assistant(vec![called("a", "{}", None)]),
        user(vec![result("a", "r", vec![image("REVG"), image("QUJD")])]),
    ];
    let found = body(&request("m", messages), None)["messages"].clone();
    assert_eq!(found[2]["images"], json!(["REVG", "QUJD"]));
}

proptest! {
    #[test]
    fn any_history_is_accepted(messages in any_history()) {
        let pictures = pictures(&messages, Role::User);
        let messages = body(&request("m", messages), None)["messages"].clone();
        prop_assert_eq!(messages.to_string().matches("QUJD").count(), pictures);
        prop_assert!(check(&messages).is_ok(), "{:?}: {}", check(&messages), messages);
    }
}
