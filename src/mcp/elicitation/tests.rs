//! Forms, the questions they become, and the answers that fit.

use std::sync::Arc;

use rmcp::model::{NumberOrString, ProgressToken};
use serde_json::json;

use super::*;
use crate::mcp::calls::Calls;
use crate::mcp::testing::{Watched, context};

async fn answered(request: Value, answers: &[&str]) -> (ElicitResult, Arc<Watched>) {
    let calls = Arc::new(Calls::default());
    let (context, watched) = context();
    watched.will_answer(answers);
    let open = calls.open(NumberOrString::Number(1), ProgressToken(NumberOrString::Number(1)), context);
    let request = serde_json::from_value(request).expect("a request");
    (ask("srv", request, &open.call).await, watched)
}

fn form(properties: Value, required: &[&str]) -> Value {
    json!({"message": "Please.", "requestedSchema": {"type": "object", "properties": properties, "required": required}})
}

#[tokio::test]
async fn each_field_is_a_question() {
    let properties = json!({
        "name": {"type": "string", "title": "Name", "description": "who you are", "minLength": 2},
        "age": {"type": "integer", "minimum": 0, "maximum": 150},
        "ok": {"type": "boolean"},
        "size": {"type": "string", "enum": ["s", "m"], "enumNames": ["small", "medium"]},
        "nick": {"type": "string"},
    });
    let answers = ["A", "Ada", "36", "yes", "MEDIUM", "Skip"];
    let (result, watched) = answered(form(properties, &["name", "age", "ok", "size"]), &answers).await;
    assert_eq!(result.action, ElicitationAction::Accept);
    assert_eq!(result.content, Some(json!({"name": "Ada", "age": 36, "ok": true, "size": "m"})));
    let questions = watched.questions.lock().unwrap();
    assert_eq!(questions.len(), 6, "the first answer was too short");
    assert!(questions[0].text.starts_with("The MCP server srv asks: Please."), "{}", questions[0].text);
    assert!(questions[0].text.contains("Name: who you are"));
    assert!(questions[1].text.contains("That does not fit"), "{}", questions[1].text);
    assert!(questions[2].text.contains("a whole number") && !questions[2].text.contains("Please."));
    let labels = |index: usize| questions[index].options.iter().map(|option| option.label.as_str()).collect::<Vec<_>>();
    assert_eq!((labels(3), labels(4), labels(5)), (vec!["Yes", "No"], vec!["small", "medium"], vec!["Skip"]));
    assert!(!questions[4].allow_freeform && questions[5].allow_freeform);
    assert_eq!((questions[0].chat.as_str(), questions[0].call.as_ref().unwrap().as_str()), ("chat", "call"));
}

#[tokio::test]
async fn several_choices_and_titles() {
    let properties = json!({
        "many": {"type": "array", "items": {"anyOf": [{"const": "a", "title": "Alpha"}, {"const": "b", "title": "Beta"}]}},
        "one": {"type": "string", "oneOf": [{"const": "x", "title": "Ex"}, {"const": "y", "title": "Why"}]},
    });
    let (result, _) = answered(form(properties, &["many", "one"]), &["Alpha, b", "why"]).await;
    assert_eq!(result.content, Some(json!({"many": ["a", "b"], "one": "y"})));
}

#[tokio::test]
async fn confirmations_refusals_and_addresses() {
    let empty = form(json!({}), &[]);
    assert_eq!(answered(empty.clone(), &["Yes"]).await.0.action, ElicitationAction::Accept);
    assert_eq!(answered(empty.clone(), &["No"]).await.0.action, ElicitationAction::Decline);
    let number = form(json!({"n": {"type": "number", "maximum": 1}}), &["n"]);
    assert_eq!(answered(number.clone(), &["x", "2", "NaN"]).await.0.action, ElicitationAction::Decline);
    assert_eq!(answered(number, &["0.5"]).await.0.content, Some(json!({"n": 0.5})));
    let address = |url: &str| json!({"mode": "url", "message": "Log in", "url": url, "elicitationId": "1"});
    let (result, watched) = answered(address("https://x/login"), &["done"]).await;
    assert_eq!(result.action, ElicitationAction::Accept);
    assert!(watched.questions.lock().unwrap()[0].text.contains("https://x/login"));
    assert_eq!(answered(address("https://x/"), &["Decline"]).await.0.action, ElicitationAction::Decline);
    let (result, watched) = answered(address("file:///etc/passwd"), &["Done"]).await;
    assert_eq!(result.action, ElicitationAction::Decline);
    assert!(watched.questions.lock().unwrap().is_empty());
}

#[tokio::test]
async fn a_closed_question_cancels() {
    let calls = Arc::new(Calls::default());
    let (context, watched) = context();
    watched.answers.lock().unwrap().push_back(Reply::Cancelled);
    let open = calls.open(NumberOrString::Number(1), ProgressToken(NumberOrString::Number(1)), context);
    let request = serde_json::from_value(form(json!({"a": {"type": "string"}}), &[])).unwrap();
    assert_eq!(ask("s", request, &open.call).await.action, ElicitationAction::Cancel);
}

#[test]
fn forms_that_cannot_be_asked() {
    let many: Map<String, Value> = (0..21).map(|n| (n.to_string(), json!({"type": "string"}))).collect();
    assert_eq!(fields(&json!({"properties": many}), None), None);
    assert_eq!(fields(&json!({"properties": {"a": {"type": "object"}}}), None), None);
    assert_eq!(fields(&json!({"properties": {"a": {"type": "string", "enum": []}}}), None), None);
    assert_eq!(fields(&json!({}), None), Some(vec![]));
    let order = vec!["b".to_owned(), "a".to_owned(), "gone".to_owned()];
    let two = json!({"properties": {"a": {"type": "boolean"}, "b": {"type": "boolean"}}});
    let names: Vec<String> = fields(&two, Some(order)).unwrap().into_iter().map(|field| field.name).collect();
    assert_eq!(names, ["b", "a"]);
}
