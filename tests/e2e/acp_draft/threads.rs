//! Threads: made, listed, opened, read, and still there after a restart.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{Draft, entry, message, text};
use crate::mock_llm::{Gate, MockLlm, Script};
use crate::server::TestServer;

#[tokio::test]
async fn the_lines_of_a_conversation_are_those_of_the_document() {
    let model = MockLlm::start().await;
    let gate = Gate::new();
    model.push(Script::stream().text("This is ").gate(&gate).text("a response.").finish("stop"));
    let mut draft = Draft::with(&model);
    let say = |draft: &Draft, line: &str| draft.raw_send(format!("{line}\n"));
    say(&draft, r#"{ "id": 0, "method": "getThreads", "params": null }"#);
    assert_eq!(draft.next().await, json!({"id": 0, "result": {"threads": []}}));
    say(&draft, r#"{ "id": 1, "method": "createThread", "params": null }"#);
    let created = draft.next().await;
    let thread = created["result"]["threadId"].as_str().unwrap().to_owned();
    assert_eq!(created, json!({"id": 1, "result": {"threadId": thread}}));
    say(&draft, &format!(r#"{{"id":2,"method":"openThread","params":{{"threadId":"{thread}"}}}}"#));
    assert_eq!(draft.next().await, json!({"id": 2, "result": null}));
    draft.send(&json!({"id": 3, "method": "sendMessage", "params": message(&thread, "user", "Hello, world!")}));
    // The ids of the two directions are counted apart.
    for (id, chunk) in [(1, "This is "), (2, "a response.")] {
        let params = json!({"threadId": thread, "chunk": text(chunk)});
        assert_eq!(draft.next().await, json!({"id": id, "method": "streamMessageChunk", "params": params}));
        draft.send(&json!({"id": id, "result": null}));
        gate.open();
    }
    assert_eq!(draft.next().await, json!({"id": 3, "result": null}));
    draft.send(&json!({"id": 4, "method": "getThreadEntries", "params": {"threadId": thread}}));
    let entries = [entry("user", &["Hello, world!"]), entry("assistant", &["This is a response."])];
    assert_eq!(draft.next().await, json!({"id": 4, "result": {"entries": entries}}));
    say(&draft, r#"{"id":5,"method":"nonExistentMethod","params":null}"#);
    let error = json!({"code": -32601, "message": "Method not found - 'nonExistentMethod'"});
    assert_eq!(draft.next().await, json!({"id": 5, "error": error}));
    draft.finish().await;
}

#[tokio::test]
async fn threads_are_listed_newest_first_with_a_title_and_a_time() {
    let model = MockLlm::start().await;
    // Titles are made beside the answer, so both may come in any order.
    model.respond_with(|request| {
        let is_title = !request.body["messages"].to_string().contains("hello there");
        Script::text_stream(&[if is_title { "no title" } else { "hi" }])
    });
    let mut draft = Draft::with(&model);
    let first = draft.thread().await;
    let second = draft.thread().await;
    draft.turn(&first, "hello there").await;
    for params in [Value::Null, json!({}), json!({"unknown": 1})] {
        let found = draft.call("getThreads", params).await;
        let threads = found["threads"].as_array().unwrap();
        let ids: Vec<&str> = threads.iter().map(|thread| thread["id"].as_str().unwrap()).collect();
        assert_eq!(ids, [first.as_str(), &second], "{found}");
        for thread in threads {
            assert_eq!(thread.as_object().unwrap().len(), 3);
            assert_eq!(thread["title"], "New thread");
            let time = thread["modifiedAt"].as_str().unwrap();
            assert!(time.ends_with('Z') && time.parse::<jiff::Timestamp>().is_ok(), "{time}");
        }
    }
    let without_params = draft.request_raw("getThreads", None).await;
    assert_eq!(without_params["result"]["threads"].as_array().unwrap().len(), 2);
    draft.finish().await;
}

#[tokio::test]
async fn what_was_said_is_there_after_a_restart() {
    let model = MockLlm::start().await;
    let mut draft = Draft::with(&model);
    let dirs = Arc::clone(&draft.dirs);
    let thread = draft.thread().await;
    let empty = draft.thread().await;
    model.push(Script::text_stream(&["one"]));
    draft.turn(&thread, "first").await;
    draft.finish().await;

    let mut draft = Draft::at_home(TestServer::with(&model).dirs(&dirs));
    assert_eq!(draft.call("getThreads", Value::Null).await["threads"].as_array().unwrap().len(), 2);
    for known in [&thread, &empty] {
        assert_eq!(draft.call("openThread", json!({"threadId": known})).await, Value::Null);
    }
    assert_eq!(draft.call("getThreadEntries", json!({"threadId": empty})).await, json!({"entries": []}));
    model.push(Script::text_stream(&["two"]));
    assert_eq!(draft.turn(&thread, "second").await.text(), "two");
    let entries = draft.call("getThreadEntries", json!({"threadId": thread})).await;
    let expected = [
        entry("user", &["first"]),
        entry("assistant", &["one"]),
        entry("user", &["second"]),
        entry("assistant", &["two"]),
    ];
    assert_eq!(entries, json!({"entries": expected}));
    model.next_request().await;
    let told = model.next_request().await.body["messages"].to_string();
    assert!(told.contains("first") && told.contains("one"), "{told}");
    draft.finish().await;
}

#[tokio::test]
async fn a_thread_that_nobody_made_is_named_in_the_error() {
    let model = MockLlm::start().await;
    let mut draft = Draft::with(&model);
    for (method, params) in [
        ("openThread", json!({"threadId": "no-such"})),
        ("getThreadEntries", json!({"threadId": "no-such"})),
        ("sendMessage", message("no-such", "user", "hi")),
        ("sendMessage", message("no-such", "assistant", "hi")),
    ] {
        let (code, problem) = draft.fails(method, params).await;
        assert!(code == -32602 && problem.contains("no-such"), "{method}: {code} {problem}");
    }
    assert_eq!(draft.call("getThreads", json!(null)).await, json!({"threads": []}), "nothing was made by that");
    assert!(model.try_next_request().await.is_none());
    draft.finish().await;
}

#[tokio::test]
async fn what_the_client_says_for_the_assistant_is_kept_and_answered_by_nobody() {
    let model = MockLlm::start().await;
    let mut draft = Draft::with(&model);
    let thread = draft.thread().await;
    assert_eq!(draft.call("sendMessage", message(&thread, "assistant", "I was here")).await, Value::Null);
    assert!(model.try_next_request().await.is_none());
    model.push(Script::text_stream(&["yes"]));
    draft.turn(&thread, "were you?").await;
    let told = model.next_request().await.body["messages"].to_string();
    assert!(told.contains("I was here"), "{told}");
    let entries = draft.call("getThreadEntries", json!({"threadId": thread})).await;
    let expected = [entry("assistant", &["I was here"]), entry("user", &["were you?"]), entry("assistant", &["yes"])];
    assert_eq!(entries, json!({"entries": expected}));
    draft.finish().await;
}
