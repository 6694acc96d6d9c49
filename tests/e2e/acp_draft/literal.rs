//! A client that reads the document's headings by the letter: it streams to us, asks us for files and
//! keeps the threads; we answer with messages of our own.

use std::fs;

use serde_json::{Value, json};

use super::{Draft, entry, text};
use crate::mock_llm::{MockLlm, Script};

fn quick() -> Value {
    json!({"acpDraft": {"messagePauseMs": 30}})
}

async fn stream(draft: &mut Draft, thread: &str, pieces: &[&str]) {
    let ids: Vec<i64> = pieces
        .iter()
        .map(|piece| draft.start_raw("streamMessageChunk", Some(json!({"threadId": thread, "chunk": text(piece)}))))
        .collect();
    for id in ids {
        assert_eq!(draft.response_raw(id).await.get("result"), Some(&Value::Null));
    }
}

/// The next request of the server, which must be this one.
async fn asked(draft: &mut Draft, method: &str) -> Value {
    let request = draft.next().await;
    assert_eq!(request["method"], method, "{request}");
    request
}

/// The text of a message of ours.
async fn answer(draft: &mut Draft, thread: &str) -> String {
    let request = asked(draft, "sendMessage").await;
    assert_eq!(
        (&request["params"]["threadId"], &request["params"]["message"]["role"]),
        (&json!(thread), &json!("assistant"))
    );
    draft.answer(&request, Value::Null);
    let chunks = request["params"]["message"]["chunks"].as_array().unwrap();
    chunks.iter().map(|chunk| chunk["chunk"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn a_streamed_message_is_answered_with_a_message() {
    let model = MockLlm::start().await;
    model.push(Script::text_stream(&["This is ", "a response."]));
    let mut draft = Draft::configured(&model, quick());
    stream(&mut draft, "thread-123", &["Hello", ", ", "world!"]).await;
    // It is the client who knows what was said before.
    let question = asked(&mut draft, "getThreadEntries").await;
    assert_eq!(question["params"], json!({"threadId": "thread-123"}));
    let kept = [
        entry("user", &["an earlier ", "question"]),
        entry("assistant", &["an earlier answer"]),
        json!({"type": "readFile", "path": "/path/to/file.txt", "content": "File content goes here."}),
        entry("user", &["Hello, world!"]),
    ];
    draft.answer(&question, json!({"entries": kept}));
    assert_eq!(answer(&mut draft, "thread-123").await, "This is a response.");
    let body = model.next_request().await.body;
    let told = body["messages"].to_string();
    for part in ["an earlier question", "an earlier answer", "File content goes here."] {
        assert!(told.contains(part), "{part:?} is not in {told}");
    }
    assert_eq!(told.matches("Hello, world!").count(), 1, "said once: {told}");
    // From now on we know the thread ourselves.
    model.push(Script::text_stream(&["two"]));
    stream(&mut draft, "thread-123", &["again"]).await;
    assert_eq!(answer(&mut draft, "thread-123").await, "two");
    let told = model.next_request().await.body["messages"].to_string();
    assert!(told.contains("This is a response.") && told.contains("an earlier question"), "{told}");
    draft.finish().await;
}

#[tokio::test]
async fn a_client_that_does_not_tell_its_threads_is_answered_all_the_same() {
    let model = MockLlm::start().await;
    let mut draft = Draft::configured(&model, quick());
    for (thread, refusal) in [("a", json!({"code": -32601, "message": "no"})), ("b", json!({"code": 1, "message": ""}))]
    {
        model.push(Script::text_stream(&["hi"]));
        stream(&mut draft, thread, &["hello"]).await;
        let question = asked(&mut draft, "getThreadEntries").await;
        draft.send(&json!({"id": question["id"], "error": refusal}));
        assert_eq!(answer(&mut draft, thread).await, "hi");
    }
    draft.finish().await;
}

#[tokio::test]
async fn what_goes_wrong_is_said_in_the_message() {
    let model = MockLlm::start().await;
    model.push(Script::status(400, &[], "{\"error\": {\"message\": \"too hot\"}}"));
    let mut draft = Draft::configured(&model, quick());
    stream(&mut draft, "t", &["hi"]).await;
    let question = asked(&mut draft, "getThreadEntries").await;
    draft.answer(&question, json!({"entries": []}));
    let said = answer(&mut draft, "t").await;
    assert!(said.contains("too hot"), "{said}");
    draft.finish().await;
}

#[tokio::test]
async fn its_files_are_ours_to_read_and_it_is_asked_for_none() {
    let model = MockLlm::start().await;
    let mut draft = Draft::configured(&model, quick());
    let file = draft.path("a.txt");
    fs::write(&file, "on the disk\n").unwrap();
    let seen = draft.call("readTextFile", json!({"threadId": "t", "path": file})).await;
    assert_eq!(seen, json!({"version": 0, "content": "on the disk\n"}));
    model.push(Script::tool_call("r", "eca__read_file", &[&json!({"path": file}).to_string()]));
    model.push(Script::text_stream(&["I see"]));
    stream(&mut draft, "t", &["read it"]).await;
    let question = asked(&mut draft, "getThreadEntries").await;
    draft.answer(&question, json!({"entries": []}));
    assert_eq!(answer(&mut draft, "t").await, "I see");
    model.next_request().await;
    assert!(model.next_request().await.body["messages"].to_string().contains("on the disk"));
    draft.finish().await;
}

#[tokio::test]
async fn the_methods_of_the_other_reading_work_too() {
    let model = MockLlm::start().await;
    let mut draft = Draft::configured(&model, quick());
    stream(&mut draft, "t", &[""]).await;
    let thread = draft.thread().await;
    model.push(Script::text_stream(&["streamed"]));
    let turn = draft.turn(&thread, "hi").await;
    assert_eq!((turn.text().as_str(), turn.response.get("result")), ("streamed", Some(&Value::Null)));
    model.push(Script::text_stream(&["whole"]));
    stream(&mut draft, &thread, &["hi again"]).await;
    assert_eq!(answer(&mut draft, &thread).await, "whole", "a thread that is known is not asked for");
    draft.finish().await;
}
