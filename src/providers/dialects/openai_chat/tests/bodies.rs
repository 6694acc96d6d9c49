//! Request bodies, as whole JSON values.

use serde_json::{Value, json};

use crate::base::ModelId;
use crate::config::{ModelConfig, ReasoningHistory};
use crate::llm::{Image, Message, Part, Replay, Request, Role, ToolSpec};
use crate::providers::dialects::openai_chat::body::build;

fn request(messages: Vec<Message>) -> Request {
    Request {
        model: ModelId::new("acme", "org/gpt-x"),
        system: String::new(),
        messages,
        tools: Vec::new(),
        max_output_tokens: None,
        reasoning: true,
        web_search: false,
        payload: serde_json::Map::new(),
        cache_key: None,
    }
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

fn call(id: &str, arguments: &str) -> Part {
    Part::ToolCall { id: id.to_owned(), name: "ls".to_owned(), arguments: arguments.to_owned(), replay: None }
}

fn result(id: &str, text: &str) -> Part {
    Part::ToolResult { call_id: id.to_owned(), text: text.to_owned(), images: Vec::new(), error: false }
}

fn sent_call(id: &str, arguments: &str) -> Value {
    json!({"id": id, "type": "function", "function": {"name": "ls", "arguments": arguments}})
}

fn messages(input: Vec<Message>) -> Value {
    let body = build(&request(input), &ModelConfig::default());
    assert_valid(&body["messages"]);
    body["messages"].clone()
}

/// What strict servers check.
fn assert_valid(messages: &Value) {
    let mut open: Vec<String> = Vec::new();
    let mut last_role = String::new();
    for message in messages.as_array().unwrap() {
        let role = message["role"].as_str().unwrap();
        if role == "tool" {
            let id = message["tool_call_id"].as_str().unwrap();
            let at = open.iter().position(|open| open == id).expect("a tool message has an open call");
            open.remove(at);
        } else {
            assert!(open.is_empty(), "calls without results before {message}");
            assert_ne!(role, last_role, "two messages of the same role");
        }
        let calls = message["tool_calls"].as_array().cloned().unwrap_or_default();
        assert!(!message["content"].is_null() || !calls.is_empty(), "an empty message");
        open = open.into_iter().chain(calls.iter().map(|call| call["id"].as_str().unwrap().to_owned())).collect();
        last_role = role.to_owned();
    }
    assert!(open.is_empty(), "calls without results at the end");
}

#[test]
fn the_smallest_body() {
    let body = build(&request(vec![user(vec![text("hi")])]), &ModelConfig::default());
    let expected = json!({
        "model": "org/gpt-x",
        "messages": [{"role": "user", "content": "hi"}],
        "stream": true,
        "stream_options": {"include_usage": true},
    });
    assert_eq!(Value::Object(body), expected);
}

#[test]
fn a_full_body() {
    let mut request = request(vec![user(vec![
        text("what is this?"),
        Part::Image(Image { media_type: "image/png".to_owned(), base64: "QUJD".to_owned() }),
    ])]);
    request.system = "Be brief.".to_owned();
    request.max_output_tokens = Some(5000);
    request.tools = vec![
        ToolSpec { name: "ls".to_owned(), description: "Lists".to_owned(), parameters: json!({"type": "object"}) },
        ToolSpec { name: "now".to_owned(), description: String::new(), parameters: Value::Null },
    ];
    let extra = json!({"temperature": 0.5, "stream_options": {"x": 1}, "max_completion_tokens": null, "max_tokens": 9});
    let model = ModelConfig {
        model_name: Some("real".to_owned()),
        output_limit: Some(4000),
        extra_payload: extra.as_object().unwrap().clone(),
        ..ModelConfig::default()
    };
    let expected = json!({
        "model": "real",
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": [
                {"type": "text", "text": "what is this?"},
                {"type": "image_url", "image_url": {"url": "data:image/png;base64,QUJD"}},
            ]},
        ],
        "stream": true,
        "stream_options": {"include_usage": true, "x": 1},
        "temperature": 0.5,
        "max_tokens": 9,
        "tools": [
            {"type": "function", "function": {"name": "ls", "description": "Lists", "parameters": {"type": "object"}}},
            {"type": "function", "function": {
                "name": "now", "description": "", "parameters": {"type": "object", "properties": {}}}},
        ],
    });
    assert_eq!(Value::Object(build(&request, &model)), expected);
}

#[test]
fn the_output_limit_is_the_smaller_one_that_is_known() {
    let limit = |wanted, possible| {
        let mut request = request(vec![]);
        request.max_output_tokens = wanted;
        let model = ModelConfig { output_limit: possible, ..ModelConfig::default() };
        build(&request, &model).get("max_completion_tokens").cloned()
    };
    assert_eq!(limit(None, None), None);
    assert_eq!(limit(Some(10), None), Some(json!(10)));
    assert_eq!(limit(None, Some(20)), Some(json!(20)));
    assert_eq!(limit(Some(10), Some(5)), Some(json!(5)));
}

#[test]
fn without_a_stream_there_are_no_stream_options() {
    let extra = json!({"stream": false});
    let model = ModelConfig { extra_payload: extra.as_object().unwrap().clone(), ..ModelConfig::default() };
    let body = build(&request(vec![]), &model);
    assert_eq!(body["stream"], json!(false));
    assert!(!body.contains_key("stream_options"));
}

#[test]
fn images_become_words_for_a_model_that_takes_none() {
    let image = Part::Image(Image { media_type: "image/png".to_owned(), base64: "QUJD".to_owned() });
    let model = ModelConfig { image_input: Some(false), ..ModelConfig::default() };
    let body = build(&request(vec![user(vec![text("look"), image])]), &model);
    assert_eq!(body["messages"][0]["content"], json!("look\n\n[an image that this model cannot see]"));
}

#[test]
fn tool_calls_and_results() {
    let found = messages(vec![
        user(vec![text("list")]),
        assistant(vec![text("sure"), call("a", "{\"p\":1}"), call("b", "{\"p\":")]),
        user(vec![result("b", "bad arguments"), result("a", "")]),
        assistant(vec![text("done")]),
    ]);
    let expected = json!([
        {"role": "user", "content": "list"},
        {"role": "assistant", "content": "sure", "tool_calls": [sent_call("a", "{\"p\":1}"), sent_call("b", "{}")]},
        {"role": "tool", "tool_call_id": "b", "content": "bad arguments"},
        {"role": "tool", "tool_call_id": "a", "content": "(no output)"},
        {"role": "assistant", "content": "done"},
    ]);
    assert_eq!(found, expected);
}

#[test]
fn arguments_are_always_an_object() {
    for bad in ["", "nonsense", "[1]", "\"x\"", "null", "{\"a\":1", "{} trailing"] {
        let found = messages(vec![assistant(vec![call("a", bad)]), user(vec![result("a", "r")])]);
        assert_eq!(found[0]["tool_calls"][0], sent_call("a", "{}"), "{bad}");
    }
}

#[test]
fn a_call_without_a_result_gets_one() {
    let interrupted = json!({
        "role": "tool", "tool_call_id": "b", "content": "(the call was interrupted and has no result)"});
    let found = messages(vec![
        assistant(vec![call("a", "{}"), call("b", "{}")]),
        user(vec![text("and now?"), result("a", "r")]),
        assistant(vec![text("x")]),
    ]);
    let expected = json!([
        {"role": "assistant", "content": null, "tool_calls": [sent_call("a", "{}"), sent_call("b", "{}")]},
        {"role": "tool", "tool_call_id": "a", "content": "r"},
        interrupted,
        {"role": "user", "content": "and now?"},
        {"role": "assistant", "content": "x"},
    ]);
    assert_eq!(found, expected);
    let at_the_end = messages(vec![assistant(vec![call("b", "{}")])]);
    assert_eq!(at_the_end[1], interrupted);
}

#[test]
fn results_in_separate_messages_stay_behind_their_calls() {
    let found = messages(vec![
        assistant(vec![call("a", "{}"), call("b", "{}")]),
        user(vec![result("a", "1")]),
        user(vec![text("hurry")]),
        user(vec![result("b", "2")]),
    ]);
    let roles: Vec<&str> = found.as_array().unwrap().iter().map(|m| m["role"].as_str().unwrap()).collect();
    assert_eq!(roles, ["assistant", "tool", "tool", "user"]);
    assert_eq!(found[3]["content"], "hurry");
}

#[test]
fn ids_that_repeat_or_are_missing() {
    let round = || vec![assistant(vec![call("", "{}"), call("", "{}")]), user(vec![result("", "1"), result("", "2")])];
    let found = messages([round(), round()].concat());
    assert_eq!(found[1], json!({"role": "tool", "tool_call_id": "call_1", "content": "1"}));
    assert_eq!(found[5], json!({"role": "tool", "tool_call_id": "call_4", "content": "2"}));
    let again = || vec![assistant(vec![call("call_0", "{}")]), user(vec![result("call_0", "r")])];
    assert_eq!(messages([again(), again()].concat()).as_array().unwrap().len(), 4);
}

#[test]
fn a_result_without_a_call_is_told_in_words() {
    let found = messages(vec![user(vec![result("gone", "42")])]);
    assert_eq!(found, json!([{"role": "user", "content": "Result of an earlier tool call: 42"}]));
}

#[test]
fn neighbours_of_the_same_role_are_merged() {
    let found = messages(vec![
        user(vec![text("a")]),
        user(vec![text("b")]),
        assistant(vec![text("c")]),
        assistant(vec![text("d"), call("x", "{}")]),
        user(vec![result("x", "r")]),
    ]);
    let expected = json!([
        {"role": "user", "content": "a\n\nb"},
        {"role": "assistant", "content": "c\n\nd", "tool_calls": [sent_call("x", "{}")]},
        {"role": "tool", "tool_call_id": "x", "content": "r"},
    ]);
    assert_eq!(found, expected);
}

#[test]
fn reasoning_goes_back_only_the_way_it_came() {
    let thought = |replay: Option<(&str, Value)>| Part::Reasoning {
        text: "hm".to_owned(),
        replay: replay.map(|(dialect, data)| Replay { dialect: dialect.to_owned(), data }),
    };
    let first = |part: Part| messages(vec![assistant(vec![part, text("x")])])[0].clone();
    let plain = json!({"role": "assistant", "content": "x"});
    assert_eq!(first(thought(None)), plain);
    assert_eq!(first(thought(Some(("anthropic", json!({"signature": "s"}))))), plain);
    assert_eq!(
        first(thought(Some(("openai-chat", json!({"field": "reasoning_content"}))))),
        json!({"role": "assistant", "content": "x", "reasoning_content": "hm"})
    );
    let alone = messages(vec![user(vec![text("a")]), assistant(vec![thought(None)]), user(vec![text("b")])]);
    assert_eq!(alone, json!([{"role": "user", "content": "a\n\nb"}]));
}

#[test]
fn the_user_decides_which_thoughts_go_back() {
    let thought = |text: &str| Part::Reasoning {
        text: text.to_owned(),
        replay: Some(Replay { dialect: "openai-chat".to_owned(), data: json!({"field": "reasoning_content"}) }),
    };
    let history = vec![
        user(vec![text("a")]),
        assistant(vec![thought("old"), text("x")]),
        user(vec![text("b")]),
        assistant(vec![thought("new"), call("c1", "{}")]),
        user(vec![result("c1", "r")]),
    ];
    for (wish, expected) in [
        (ReasoningHistory::All, vec!["old", "new"]),
        (ReasoningHistory::Turn, vec!["new"]),
        (ReasoningHistory::Off, vec![]),
    ] {
        let model = ModelConfig { reasoning_history: wish, ..ModelConfig::default() };
        let body = build(&request(history.clone()), &model);
        let messages = body["messages"].as_array().unwrap();
        assert_eq!(messages.len(), 5, "{wish:?}");
        let sent: Vec<&str> = messages.iter().filter_map(|message| message["reasoning_content"].as_str()).collect();
        assert_eq!(sent, expected, "{wish:?}");
    }
}
