//! Request bodies, as whole JSON values, and what OpenAI checks of their input.

use std::collections::HashSet;

use proptest::prelude::*;
use serde_json::{Map, Value, json};

use crate::config::ModelConfig;
use crate::llm::{Part, Request, Role};
use crate::providers::dialects::openai_responses::body::build;
use crate::providers::dialects::testing::{
    any_history, assistant, called, conversation, image, pictures, replay, request, result, said, tool, user,
};

fn object(value: Value) -> Map<String, Value> {
    value.as_object().unwrap().clone()
}

fn body(request: &Request) -> Value {
    Value::Object(build(request, &ModelConfig::default()))
}

fn input(request: &Request) -> Value {
    let input = body(request)["input"].clone();
    if let Err(problem) = check(&input) {
        panic!("{problem}: {input}");
    }
    input
}

/// What the vendor refuses, as far as it is known.
fn check(input: &Value) -> Result<(), String> {
    let mut called = HashSet::new();
    let mut open: Vec<String> = Vec::new();
    let mut thinking = false;
    for item in input.as_array().ok_or("not a list")? {
        let kind = item["type"].as_str().ok_or("an item without type")?;
        let call_id = item["call_id"].as_str().unwrap_or_default();
        if thinking && (item["role"] == "user" || kind == "function_call_output") {
            return Err("reasoning without what follows from it".into());
        }
        thinking = kind == "reasoning";
        if !open.is_empty() && item["role"] == "user" {
            return Err(format!("no output for {open:?} before the user speaks"));
        }
        match kind {
            "message" => {
                let (role, content) = (&item["role"], item["content"].as_array().ok_or("no content")?);
                let texts = if *role == "assistant" { "output_text" } else { "input_text" };
                let good = |block: &Value| {
                    (block["type"] == texts && block["text"].as_str().is_some_and(|text| !text.is_empty()))
                        || (*role == "user" && block["type"] == "input_image" && block["image_url"].is_string())
                };
                if content.is_empty() || !content.iter().all(good) {
                    return Err(format!("bad content {item}"));
                }
            }
            "reasoning" => {
                let usable =
                    item["summary"].is_array() && (item["encrypted_content"].is_string() || item["content"].is_array());
                if !usable {
                    return Err(format!("reasoning that cannot be read {item}"));
                }
            }
            "function_call" => {
                let name = item["name"].as_str().unwrap_or_default();
                let plain = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-');
                let arguments = serde_json::from_str::<Map<String, Value>>(item["arguments"].as_str().unwrap_or("x"));
                if name.is_empty() || name.len() > 64 || !plain || arguments.is_err() || call_id.len() > 64 {
                    return Err(format!("bad call {item}"));
                }
                if call_id.is_empty() || !called.insert(call_id.to_owned()) {
                    return Err(format!("an id twice {item}"));
                }
                open.push(call_id.to_owned());
            }
            "function_call_output" => {
                let at = open.iter().position(|id| id == call_id).ok_or("an output without its call")?;
                open.remove(at);
                if item["output"].as_str().is_none_or(str::is_empty) {
                    return Err("an empty output".into());
                }
            }
            "web_search_call" if item["id"].is_string() => {}
            _ => return Err(format!("unknown item {item}")),
        }
    }
    if thinking { Err("reasoning at the end".into()) } else { Ok(()) }.and(if open.is_empty() {
        Ok(())
    } else {
        Err("calls without output at the end".into())
    })
}

#[test]
fn the_smallest_body() {
    let mut request = request("gpt-4.1", vec![user(vec![said("hi")])]);
    let expected = json!({
        "model": "gpt-4.1",
        "input": [{"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hi"}]}],
        "store": false,
        "stream": true,
    });
    assert_eq!(body(&request), expected, "a model that does not reason is not asked to");
    request.model = crate::base::ModelId::new("acme", "gpt-5");
    request.reasoning = false;
    assert_eq!(body(&request).as_object().unwrap().len(), 4);
}

#[test]
fn a_full_body() {
    let mut request = request("m", vec![user(vec![said("hi")])]);
    request.system = "Be brief.".to_owned();
    request.max_output_tokens = Some(5);
    request.web_search = true;
    request.cache_key = Some("k".repeat(70));
    request.tools = vec![tool("ls", json!({"type": "object"})), tool("now", Value::Null)];
    let model = ModelConfig {
        model_name: Some("gpt-5".to_owned()),
        output_limit: Some(4000),
        extra_payload: object(json!({"text": {"verbosity": "low"}, "store": null})),
        ..ModelConfig::default()
    };
    request.payload = object(json!({"text": {"format": 1}}));
    let expected = json!({
        "model": "gpt-5",
        "input": [{"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hi"}]}],
        "instructions": "Be brief.",
        "stream": true,
        "max_output_tokens": 16,
        "prompt_cache_key": "k".repeat(64),
        "parallel_tool_calls": true,
        "tools": [
            {"type": "function", "name": "ls", "description": "Does", "parameters": {"type": "object"}, "strict": false},
            {"type": "function", "name": "now", "description": "Does",
                "parameters": {"type": "object", "properties": {}}, "strict": false},
            {"type": "web_search"},
        ],
        "reasoning": {"effort": "medium", "summary": "auto"},
        "include": ["reasoning.encrypted_content"],
        "text": {"format": 1},
    });
    assert_eq!(Value::Object(build(&request, &model)), expected);
}

#[test]
fn the_users_word_on_reasoning_counts() {
    let sent = |payload: Value, reasoning: bool| {
        let request = Request { payload: object(payload), reasoning, ..request("gpt-5", vec![]) };
        let body = body(&request);
        (body["reasoning"].clone(), body["include"].clone())
    };
    let include = json!(["reasoning.encrypted_content"]);
    assert_eq!(sent(json!({"reasoning": {"effort": "high"}}), true), (json!({"effort": "high"}), include.clone()));
    assert_eq!(sent(json!({"reasoning": null}), true), (Value::Null, Value::Null));
    assert_eq!(sent(json!({"reasoning": {"effort": "high"}}), false), (Value::Null, Value::Null));
    assert_eq!(sent(json!({"include": []}), true).1, json!([]));
}

#[test]
fn a_conversation_with_everything_in_it() {
    let item = json!({"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "e"});
    let messages = conversation("openai-responses", json!({"source": "acme/m", "item": item}), None);
    let text = |text: &str| json!({"type": "input_text", "text": text});
    let expected = json!([
        {"type": "message", "role": "user", "content": [
            text("look"), {"type": "input_image", "image_url": "data:image/png;base64,QUJD"}]},
        item,
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "sure"}]},
        {"type": "function_call", "call_id": "a", "name": "ls", "arguments": "{\"p\":1}"},
        {"type": "function_call", "call_id": "b", "name": "ls", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "a", "output": "(no output)"},
        {"type": "function_call_output", "call_id": "b", "output": "bad"},
        {"type": "message", "role": "user", "content": [
            {"type": "input_image", "image_url": "data:image/png;base64,REVG"}]},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "done"}]},
        {"type": "message", "role": "user", "content": [text("thanks")]},
    ]);
    assert_eq!(input(&request("m", messages.clone())), expected);
    let elsewhere = input(&request("other", messages));
    assert!(!elsewhere.to_string().contains("reasoning"), "another model does not get the thoughts");
}

#[test]
fn searches_go_back_with_their_thoughts_or_not_at_all() {
    let data = |item: Value| replay("openai-responses", json!({"source": "acme/m", "item": item}));
    let search = json!({"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {"type": "search"}});
    let hidden = json!({"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "e"});
    let parts = vec![Part::Opaque(data(hidden.clone())), Part::Opaque(data(search.clone())), said("x")];
    let found = input(&request("m", vec![assistant(parts)]));
    assert_eq!((&found[0], &found[1], found.as_array().unwrap().len()), (&hidden, &search, 3));
    let lost = json!({"type": "reasoning", "id": "rs_1", "summary": []});
    let thought = Part::Reasoning { text: "hm".to_owned(), replay: Some(data(lost)) };
    let found = input(&request("m", vec![assistant(vec![thought, Part::Opaque(data(search)), said("x")])]));
    assert_eq!(found.as_array().unwrap().len(), 1);
}

#[test]
fn thoughts_that_led_to_nothing_stay_here() {
    let item = json!({"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "e"});
    let data = replay("openai-responses", json!({"source": "acme/m", "item": item}));
    let parts = vec![said("x"), Part::Reasoning { text: "hm".to_owned(), replay: Some(data) }];
    assert_eq!(input(&request("m", vec![assistant(parts)])).as_array().unwrap().len(), 1);
}

#[test]
fn pictures_that_the_model_made_follow_as_the_users() {
    let messages = vec![
        assistant(vec![Part::Image(image("QUJD")), called("a", "{}", None)]),
        user(vec![result("a", "r", vec![])]),
    ];
    let found = input(&request("m", messages));
    assert_eq!(found[2]["content"][0]["image_url"], "data:image/png;base64,QUJD");
}

proptest! {
    #[test]
    fn any_history_is_accepted(messages in any_history()) {
        let pictures = pictures(&messages, Role::User) + pictures(&messages, Role::Assistant);
        let input = body(&request("m", messages))["input"].clone();
        prop_assert_eq!(input.to_string().matches("QUJD").count(), pictures);
        prop_assert!(check(&input).is_ok(), "{:?}: {}", check(&input), input);
    }
}
