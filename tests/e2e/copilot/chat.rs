//! Questions, what is remembered of them, and requests that come inside of messages.

use serde_json::{Value, json};

use super::{Copilot, MODULE, content, petstore};
use crate::mock_llm::{MockLlm, Script};

#[tokio::test]
async fn an_answer_has_suggestions_whatever_the_model_says() {
    let model = MockLlm::start().await;
    let mut copilot = Copilot::with(&model);
    model.push(Script::text_stream(&["{\"message\": \"Three of them.\", ", "\"suggestions\": [\"Ask more\"]}"]));
    let context = json!({"tabId": "t", "hasActiveSpec": true, "hasActiveInterface": true});
    let answered = copilot.call("chat", json!({"message": "What formats do you support?", "context": context})).await;
    assert_eq!(answered.result(), &json!({"message": "Three of them.", "suggestions": ["Ask more"]}));
    assert!(content(&model.next_request().await.body["messages"][0]).contains("its interface is shown"));
    model.push(Script::text_stream(&["Plain ", "words."]));
    let answered = copilot.call("chat", json!({"message": "Hello"})).await;
    assert_eq!(answered.result()["message"], "Plain words.");
    assert_eq!(answered.result()["suggestions"].as_array().unwrap().len(), 3);
    assert!(content(&model.next_request().await.body["messages"][0]).contains("No specification is loaded"));
    copilot.finish().await;
}

#[tokio::test]
async fn a_tab_remembers_what_was_said_in_it() {
    let model = MockLlm::start().await;
    model.respond_with(|_| Script::text_stream(&["An answer."]));
    let mut copilot = Copilot::with(&model);
    for (message, tab) in [("one", json!("a")), ("two", json!("a")), ("three", json!("b")), ("four", Value::Null)] {
        copilot.call("chat", json!({"message": message, "context": {"tabId": tab}})).await.result();
        let request = model.next_request().await;
        let said: Vec<String> = request.body["messages"].as_array().unwrap()[1..].iter().map(content).collect();
        let expected: &[&str] = if message == "two" { &["one", "An answer.", "two"] } else { &[message] };
        assert_eq!(said, expected);
    }
    copilot.finish().await;
}

#[tokio::test]
async fn words_are_streamed_to_who_asks_for_them() {
    let model = MockLlm::start().await;
    model.push(Script::text_stream(&[" One", " two ", "three\n"]));
    let mut copilot = Copilot::with(&model);
    let answered = copilot.call("chat", json!({"message": "Count", "stream": true})).await;
    assert_eq!(answered.streamed(), " One two three\n");
    assert_eq!(answered.result()["message"], " One two three\n");
    copilot.finish().await;
}

#[tokio::test]
async fn a_message_may_hold_another_request() {
    let model = MockLlm::start().await;
    model.respond_with(|_| Script::text_stream(&[MODULE]));
    let mut copilot = Copilot::with(&model);
    let inside = json!({"jsonrpc": "2.0", "method": "generate", "params": {"spec": petstore()}});
    let answered = copilot.call("chat", json!({"message": inside.to_string()})).await;
    let result = answered.result();
    assert_eq!((&result["code"], &result["componentCount"]), (&json!(MODULE), &json!(2)));
    assert_eq!(result["message"], result["description"]);
    assert_eq!(answered.streamed(), MODULE);
    let flat = json!({"method": "customize", "currentCode": "x", "prompt": "p"}).to_string();
    let result = copilot.call("chat", json!({"message": flat})).await;
    assert_eq!((&result.result()["clarificationNeeded"], &result.result()["code"]), (&json!(false), &json!(MODULE)));
    model.push(Script::text_stream(&["{\"kind\":\"clarify\",\"question\":\"Which?\",\"options\":[]}"]));
    let result = copilot.call("chat", json!({"message": flat})).await;
    assert_eq!(result.result()["message"], "Which?");
    // Its errors are those of the request inside.
    let broken = json!({"method": "generate", "params": {"spec": {}}}).to_string();
    assert_eq!(copilot.call("chat", json!({"message": broken})).await.error().0, -32002);
    let nothing = json!({"method": "customize"}).to_string();
    assert_eq!(copilot.call("chat", json!({"message": nothing})).await.error().0, -32602);
    // Other JSON is a message like any other.
    model.push(Script::text_stream(&["That is JSON."]));
    let result = copilot.call("chat", json!({"message": "{\"a\": 1}"})).await;
    assert_eq!(result.result()["message"], "That is JSON.");
    copilot.finish().await;
}
