//! Request bodies, as whole JSON values, and what Google checks of their contents.

use proptest::prelude::*;
use serde_json::{Map, Value, json};

use crate::config::ModelConfig;
use crate::llm::{Part, Request, Role};
use crate::providers::dialects::gemini::body::build;
use crate::providers::dialects::gemini::generation;
use crate::providers::dialects::testing::{
    any_history, assistant, called, conversation, image, pictures, replay, request, result, said, tool, user,
};

fn body(request: &Request) -> Value {
    Value::Object(build(request, &ModelConfig::default(), None))
}

fn contents(request: &Request) -> Value {
    let contents = body(request)["contents"].clone();
    if let Err(problem) = check(&contents) {
        panic!("{problem}: {contents}");
    }
    contents
}

/// What the vendor refuses, as far as it is known.
fn check(contents: &Value) -> Result<(), String> {
    let mut calls: Vec<(Value, Value)> = Vec::new();
    for (at, content) in contents.as_array().ok_or("not a list")?.iter().enumerate() {
        let role = if at % 2 == 0 { "user" } else { "model" };
        if content["role"] != role {
            return Err(format!("content {at} is not the {role}'s"));
        }
        let parts = content["parts"].as_array().filter(|parts| !parts.is_empty()).ok_or("no parts")?;
        let named = |key: &str| -> Vec<(Value, Value)> {
            let found = parts.iter().filter_map(|part| part.get(key));
            found.map(|part| (part["name"].clone(), part["id"].clone())).collect()
        };
        let answers = named("functionResponse");
        if answers != calls {
            return Err(format!("{calls:?} are answered by {answers:?}"));
        }
        calls = named("functionCall");
        if role == "user" && !calls.is_empty() {
            return Err("a call by the user".into());
        }
        for part in parts {
            let keys = ["text", "inlineData", "functionCall", "functionResponse", "toolCall"];
            if keys.iter().filter(|key| part.get(**key).is_some()).count() != 1 {
                return Err(format!("not one kind of data: {part}"));
            }
            let signed = part.get("thoughtSignature").is_some();
            if part["text"] == "" && !signed {
                return Err("an empty text".into());
            }
            if role == "user" && (signed || part.get("thought").is_some()) {
                return Err(format!("thoughts of the user: {part}"));
            }
            if let Some(call) = part.get("functionCall").filter(|call| !call["args"].is_object()) {
                return Err(format!("arguments are no object: {call}"));
            }
            if let Some(answer) = part.get("functionResponse").filter(|answer| !answer["response"].is_object()) {
                return Err(format!("a response is no object: {answer}"));
            }
        }
    }
    if calls.is_empty() { Ok(()) } else { Err("calls without answers at the end".into()) }
}

#[test]
fn the_smallest_body() {
    let request = request("gemini-2.0-flash", vec![user(vec![said("hi")])]);
    assert_eq!(body(&request), json!({"contents": [{"role": "user", "parts": [{"text": "hi"}]}]}));
}

#[test]
fn a_full_body() {
    let mut request = request("m", vec![user(vec![said("hi")])]);
    request.system = "Be brief.".to_owned();
    request.max_output_tokens = Some(500);
    request.web_search = true;
    request.tools =
        vec![tool("ls", json!({"$schema": "x", "type": "object", "properties": {"p": {"type": "string"}}}))];
    let extra = json!({"generationConfig": {"thinkingConfig": {"thinkingLevel": "low"}, "maxOutputTokens": null}});
    let model = ModelConfig {
        model_name: Some("gemini-3-pro-preview".to_owned()),
        extra_payload: extra.as_object().unwrap().clone(),
        ..ModelConfig::default()
    };
    let expected = json!({
        "contents": [{"role": "user", "parts": [{"text": "hi"}]}],
        "systemInstruction": {"parts": [{"text": "Be brief."}]},
        "tools": [
            {"functionDeclarations": [{"name": "ls", "description": "Does",
                "parametersJsonSchema": {"type": "object", "properties": {"p": {"type": "string"}}}}]},
            {"googleSearch": {}},
        ],
        "toolConfig": {"includeServerSideToolInvocations": true},
        "generationConfig": {"thinkingConfig": {"includeThoughts": true, "thinkingLevel": "low"}},
    });
    assert_eq!(Value::Object(build(&request, &model, None)), expected);
}

#[test]
fn what_older_models_refuse_is_not_sent() {
    let mut request = request("gemini-2.5-flash", vec![]);
    request.web_search = true;
    assert_eq!(body(&request)["tools"], json!([{"googleSearch": {}}]));
    request.tools = vec![tool("ls", Value::Null)];
    assert_eq!(body(&request)["tools"].as_array().unwrap().len(), 1, "no search beside functions");
    request.model = crate::base::ModelId::new("acme", "gemini-1.5-pro");
    assert!(body(&request)["tools"][0]["functionDeclarations"][0].get("parameters").is_some());
}

#[test]
fn thoughts_are_asked_for_where_there_are_some() {
    let asked = |model: &str, known: Option<bool>, reasoning: bool| {
        let request = Request { reasoning, ..request(model, vec![]) };
        build(&request, &ModelConfig::default(), known).contains_key("generationConfig")
    };
    for (model, expected) in [
        ("gemini-2.5-pro", true),
        ("gemini-3-flash-preview", true),
        ("gemini-flash-latest", true),
        ("gemini-2.0-flash", false),
        ("gemini-2.5-flash-image", false),
        ("gemma-3-27b-it", false),
    ] {
        assert_eq!(asked(model, None, true), expected, "{model}");
        assert!(asked(model, Some(true), true) && !asked(model, Some(false), true), "{model}");
        assert!(!asked(model, Some(true), false), "{model}");
    }
}

#[test]
fn generations() {
    for (model, expected) in [
        ("gemini-2.5-pro", Some(25)),
        ("gemini-3-pro", Some(30)),
        ("models/gemini-3.1-flash-lite", Some(31)),
        ("gemini-pro", None),
        ("gemini-99999999999-x", None),
        ("gemma-3", None),
        ("", None),
    ] {
        assert_eq!(generation(model), expected, "{model}");
    }
}

#[test]
fn a_conversation_with_everything_in_it() {
    let own = |data: Value| {
        let mut data = data;
        data["source"] = json!("acme/gemini-3-pro");
        data
    };
    let messages =
        conversation("gemini", own(json!({"signature": "s1"})), Some(own(json!({"id": "i1", "signature": "s2"}))));
    let picture = |data: &str| json!({"inlineData": {"mimeType": "image/png", "data": data}});
    let expected = json!([
        {"role": "user", "parts": [{"text": "look"}, picture("QUJD")]},
        {"role": "model", "parts": [
            {"text": "hm", "thought": true, "thoughtSignature": "s1"},
            {"text": "sure"},
            {"functionCall": {"name": "ls", "args": {"p": 1}, "id": "i1"}, "thoughtSignature": "s2"},
            {"functionCall": {"name": "ls", "args": {}}},
        ]},
        {"role": "user", "parts": [
            {"functionResponse": {"name": "ls", "id": "i1", "response": {"output": "(no output)"}, "parts": [picture("REVG")]}},
            {"functionResponse": {"name": "ls", "response": {"output": "bad"}}},
        ]},
        {"role": "model", "parts": [{"text": "done"}]},
        {"role": "user", "parts": [{"text": "thanks"}]},
    ]);
    assert_eq!(contents(&request("gemini-3-pro", messages.clone())), expected);
    let older = contents(&request("gemini-2.5-pro", messages));
    assert_eq!(
        older[1]["parts"][1],
        json!({"functionCall": {"name": "ls", "args": {"p": 1}}}),
        "nothing of another model's"
    );
    assert_eq!(older[2]["parts"][2], picture("REVG"), "pictures beside the results");
}

#[test]
fn calls_of_another_model_pass_the_newest() {
    let messages = vec![
        user(vec![said("x")]),
        assistant(vec![called("a", "{}", None), called("b", "{}", None)]),
        user(vec![
            result("a", "r", vec![]),
            Part::ToolResult { call_id: "b".into(), text: "no".into(), images: vec![], error: true },
        ]),
    ];
    let found = contents(&request("gemini-3-pro", messages.clone()));
    assert_eq!(found[1]["parts"][0]["thoughtSignature"], "skip_thought_signature_validator");
    assert!(found[1]["parts"][1].get("thoughtSignature").is_none());
    assert_eq!(found[2]["parts"][1]["functionResponse"]["response"], json!({"error": "no"}));
    assert!(!contents(&request("gemini-2.5-pro", messages)).to_string().contains("thoughtSignature"));
}

#[test]
fn signatures_return_to_their_place() {
    let own = |data: Value| {
        let mut data = data;
        data["source"] = json!("acme/m");
        Part::Opaque(replay("gemini", data))
    };
    let parts = |parts: Vec<Part>| contents(&request("m", vec![assistant(parts)]))[1]["parts"].clone();
    let text = |bytes: u64| own(json!({"signature": "s", "on": "text", "bytes": bytes}));
    let signed = |text: &str| json!({"text": text, "thoughtSignature": "s"});
    assert_eq!(parts(vec![said("aé"), text(3)]), json!([signed("aé")]));
    assert_eq!(parts(vec![said("aé"), text(2)]), json!([{"text": "a"}, signed("é")]));
    assert_eq!(parts(vec![said("aé"), text(1)]), json!([{"text": "aé"}, signed("")]), "not inside a character");
    assert_eq!(parts(vec![said("aé"), text(9)]), json!([{"text": "aé"}, signed("")]));
    let image_part = json!({"inlineData": {"mimeType": "image/png", "data": "QUJD"}, "thoughtSignature": "s"});
    let on_image = own(json!({"signature": "s", "on": "image"}));
    assert_eq!(parts(vec![Part::Image(image("QUJD")), on_image]), json!([image_part]));
    let raw = json!({"toolCall": {"id": "x"}, "thoughtSignature": "t"});
    assert_eq!(parts(vec![own(json!({"part": raw})), said("y")]), json!([raw, {"text": "y"}]));
}

proptest! {
    #[test]
    fn any_history_is_accepted(messages in any_history(), newest in any::<bool>()) {
        let pictures = pictures(&messages, Role::User) + pictures(&messages, Role::Assistant);
        let model_name = newest.then(|| "gemini-3-pro".to_owned());
        let model = ModelConfig { model_name, ..ModelConfig::default() };
        let contents = build(&request("m", messages), &model, None)["contents"].clone();
        let calls = |content: &Value| {
            content["parts"].as_array().unwrap().iter().find(|part| part.get("functionCall").is_some()).cloned()
        };
        for call in contents.as_array().unwrap().iter().filter_map(calls).filter(|_| newest) {
            prop_assert!(call["thoughtSignature"].is_string(), "the first call of a step is signed: {}", call);
        }
        prop_assert_eq!(contents.to_string().matches("QUJD").count(), pictures);
        prop_assert!(check(&contents).is_ok(), "{:?}: {}", check(&contents), contents);
    }
}

#[test]
fn the_checker_can_fail() {
    let bad = json!([{"role": "user", "parts": [{"text": ""}]}]);
    assert!(check(&bad).is_err());
    let unanswered = json!([{"role": "user", "parts": [{"text": "x"}]},
        {"role": "model", "parts": [{"functionCall": {"name": "x", "args": Map::new()}}]}]);
    assert!(check(&unanswered).is_err());
}
