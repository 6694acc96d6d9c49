//! One turn: pieces, tools, what goes wrong, and what ends it.

use std::fs;

use serde_json::{Value, json};

use super::{Draft, entry};
use crate::mock_llm::{MockLlm, Script};

fn read_call(path: &std::path::Path) -> Script {
    Script::tool_call("r", "eca__read_file", &[&json!({"path": path}).to_string()])
}

fn write_call(path: &std::path::Path) -> Script {
    Script::tool_call("w", "eca__write_file", &[&json!({"path": path, "content": "x"}).to_string()])
}

/// What the model was told about the only tool call of its last request.
async fn tool_result(model: &MockLlm) -> String {
    let body = model.next_request().await.body;
    let messages = body["messages"].as_array().unwrap();
    let result = messages.iter().rev().find(|message| message["role"] == "tool").expect("a result");
    result["content"].to_string()
}

#[tokio::test]
async fn pieces_come_in_order_and_the_result_comes_last() {
    let model = MockLlm::start().await;
    let pieces: Vec<String> = (0..300).map(|number| format!("{number} é\\\"\n")).collect();
    let texts: Vec<&str> = pieces.iter().map(String::as_str).collect();
    model.push(Script::text_stream(&texts));
    let mut draft = Draft::with(&model);
    let thread = draft.thread().await;
    let turn = draft.turn(&thread, "count").await;
    assert_eq!(turn.text(), pieces.concat());
    assert_eq!(turn.response.get("result"), Some(&Value::Null));
    assert_eq!(turn.asked, [] as [Value; 0]);
    draft.finish().await;
}

#[tokio::test]
async fn a_client_that_never_acknowledges_a_piece_gets_all_of_them() {
    let model = MockLlm::start().await;
    // More than the number of questions that may be open.
    model.push(Script::stream().flood(3_000, "x").finish("stop"));
    let mut draft = Draft::with(&model);
    let thread = draft.thread().await;
    let id = draft.say(&thread, "go");
    let seen = draft.everything_until("the result", |message| message["id"] == id && message.get("method").is_none());
    let mut seen = seen.await;
    assert_eq!(seen.pop().unwrap().get("result"), Some(&Value::Null));
    let mut ids: Vec<i64> = seen.iter().map(|message| message["id"].as_i64().unwrap()).collect();
    let said: String = seen.iter().map(|message| message["params"]["chunk"]["chunk"].as_str().unwrap()).collect();
    assert_eq!(said, "x".repeat(3_000));
    ids.dedup();
    assert!(ids.is_sorted() && ids.len() == seen.len(), "every request has an id of its own");
    // Late, refused and odd acknowledgements are all the same.
    draft.send(&json!({"id": ids[0], "error": {"code": -32603, "message": "no"}}));
    draft.send(&json!({"id": ids[1], "result": {"odd": true}}));
    draft.send(&json!({"id": 999_999, "result": null}));
    model.push(Script::text_stream(&["fine"]));
    assert_eq!(draft.turn(&thread, "still there?").await.text(), "fine");
    draft.finish().await;
}

#[tokio::test]
async fn a_model_that_fails_is_an_error_and_the_thread_goes_on() {
    let model = MockLlm::start().await;
    let body = json!({"error": {"message": "Incorrect API key provided"}}).to_string();
    model.push(Script::status(401, &[], &body));
    let mut draft = Draft::with(&model);
    let thread = draft.thread().await;
    let turn = draft.turn(&thread, "hi").await;
    assert_eq!(turn.response["error"]["code"], -32603);
    assert!(turn.failed().unwrap().contains("Incorrect API key provided"), "{turn:?}");
    assert_eq!(turn.text(), "");
    model.push(Script::text_stream(&["better"]));
    assert_eq!(draft.turn(&thread, "again").await.text(), "better");
    draft.finish().await;
}

#[tokio::test]
async fn a_newer_message_ends_the_turn_before_it() {
    let model = MockLlm::start().await;
    model.push(Script::stream().text("endless").hang_here());
    let mut draft = Draft::with(&model);
    let thread = draft.thread().await;
    let first = draft.say(&thread, "one");
    draft.find("the first words", |message| message["method"] == "streamMessageChunk").await;
    model.push(Script::text_stream(&["second"]));
    let second = draft.say(&thread, "two");
    let ended = draft.answered(first, |_, _| Value::Null).await;
    assert!(ended.response.get("result").is_some() && ended.text().contains("Stopped"), "{ended:?}");
    assert_eq!(draft.answered(second, |_, _| Value::Null).await.text(), "second");
    model.connection_closed().await;
    draft.finish().await;
}

#[tokio::test]
async fn two_threads_may_be_answered_at_the_same_time() {
    let model = MockLlm::start().await;
    model.respond_with(|request| {
        let text = if request.body["messages"].to_string().contains("alpha") { "for alpha" } else { "for beta" };
        Script::text_stream(&[text])
    });
    let mut draft = Draft::with(&model);
    let (one, two) = (draft.thread().await, draft.thread().await);
    let ids = [draft.say(&one, "alpha"), draft.say(&two, "beta")];
    for (id, thread, text) in [(ids[0], one, "for alpha"), (ids[1], two, "for beta")] {
        let chunk = draft.find("a piece", |message| message["params"]["threadId"] == thread).await;
        assert_eq!(chunk["params"]["chunk"]["chunk"], text);
        assert_eq!(draft.response_raw(id).await.get("result"), Some(&Value::Null));
    }
    draft.finish().await;
}

#[tokio::test]
async fn a_file_is_read_as_the_editor_shows_it_and_is_an_entry() {
    let model = MockLlm::start().await;
    let mut draft = Draft::with(&model);
    let file = draft.path("a.txt");
    fs::write(&file, "saved\n").unwrap();
    let thread = draft.thread().await;
    model.push(read_call(&file));
    model.push(Script::text_stream(&["I see"]));
    let id = draft.say(&thread, "read it");
    let turn = draft.answered(id, |_, _| json!({"version": 4, "content": "not saved\n"})).await;
    assert_eq!((turn.text().as_str(), turn.response.get("result")), ("I see", Some(&Value::Null)));
    let [question] = &turn.asked[..] else { panic!("{:?}", turn.asked) };
    assert_eq!(question["method"], "readTextFile");
    assert_eq!(question["params"], json!({"threadId": thread, "path": file}));
    model.next_request().await;
    assert!(tool_result(&model).await.contains("not saved"));
    let entries = draft.call("getThreadEntries", json!({"threadId": thread})).await;
    let expected = [
        entry("user", &["read it"]),
        json!({"type": "readFile", "path": file, "content": "not saved"}),
        entry("assistant", &["I see"]),
    ];
    assert_eq!(entries, json!({"entries": expected}));
    draft.finish().await;
}

#[tokio::test]
async fn an_editor_that_knows_no_files_is_asked_once_and_the_disk_counts() {
    let model = MockLlm::start().await;
    let mut draft = Draft::with(&model);
    let file = draft.path("a.txt");
    fs::write(&file, "on the disk\n").unwrap();
    let thread = draft.thread().await;
    for expected_questions in [1, 0] {
        model.push(read_call(&file));
        model.push(Script::text_stream(&["I see"]));
        let id = draft.say(&thread, "read it");
        let turn = draft.answered(id, |_, _| json!({"code": -32601, "message": "Method not found"})).await;
        assert_eq!(turn.asked.len(), expected_questions);
        model.next_request().await;
        assert!(tool_result(&model).await.contains("on the disk"));
    }
    draft.finish().await;
}

#[tokio::test]
async fn by_default_nothing_can_be_changed() {
    let model = MockLlm::start().await;
    model.push(Script::text_stream(&["hi"]));
    let mut draft = Draft::with(&model);
    let thread = draft.thread().await;
    draft.turn(&thread, "hi").await;
    let body = model.next_request().await.body;
    let offered: Vec<&str> =
        body["tools"].as_array().unwrap().iter().map(|tool| tool["function"]["name"].as_str().unwrap()).collect();
    assert!(offered.contains(&"eca__read_file"), "{offered:?}");
    for changing in ["eca__write_file", "eca__edit_file", "eca__move_file"] {
        assert!(!offered.contains(&changing), "{offered:?}");
    }
    draft.finish().await;
}

#[tokio::test]
async fn what_would_be_asked_about_does_not_run_and_the_user_and_the_model_know() {
    let model = MockLlm::start().await;
    let mut draft = Draft::configured(&model, json!({"acpDraft": {"agent": "code"}}));
    let file = draft.path("new.txt");
    let thread = draft.thread().await;
    model.push(write_call(&file));
    model.push(Script::text_stream(&["then not"]));
    let id = draft.say(&thread, "write");
    let turn = draft.answered(id, |_, _| json!({"exists": false, "isDirectory": false})).await;
    assert!(!file.exists());
    assert!(
        turn.text().contains("`write_file` was not allowed to run") && turn.text().ends_with("then not"),
        "{turn:?}"
    );
    model.next_request().await;
    assert!(tool_result(&model).await.contains("cannot ask"));
    draft.finish().await;
}

#[tokio::test]
async fn what_is_allowed_runs_unless_the_editor_has_something_else() {
    let model = MockLlm::start().await;
    let config = json!({"acpDraft": {"agent": "code"}, "toolCall": {"approval": {"allow": {"eca__write_file": {}}}}});
    let mut draft = Draft::configured(&model, config);
    let (open, saved) = (draft.path("open.txt"), draft.path("saved.txt"));
    fs::write(&open, "on the disk").unwrap();
    fs::write(&saved, "same").unwrap();
    let thread = draft.thread().await;
    for (file, written) in [(&open, false), (&saved, true)] {
        model.push(write_call(file));
        model.push(Script::text_stream(&["done"]));
        let id = draft.say(&thread, "write");
        let answer = |_: &str, params: &Value| {
            let is_open = params["path"].as_str().unwrap().ends_with("open.txt");
            json!({"version": 1, "content": if is_open { "being typed" } else { "same" }})
        };
        draft.answered(id, answer).await;
        model.next_request().await;
        let result = tool_result(&model).await;
        assert_eq!(result.contains("not saved"), !written, "{result}");
        assert_eq!(fs::read_to_string(file).unwrap() == "x", written);
    }
    draft.finish().await;
}

#[tokio::test]
async fn leaving_in_the_middle_answers_what_is_open() {
    let model = MockLlm::start().await;
    model.push(Script::stream().text("endless").hang_here());
    let mut draft = Draft::with(&model);
    let thread = draft.thread().await;
    let id = draft.say(&thread, "go");
    draft.find("the first words", |message| message["method"] == "streamMessageChunk").await;
    draft.close_input();
    let turn = draft.answered(id, |_, _| Value::Null).await;
    assert!(turn.response.get("result").is_some() || turn.failed().is_some());
    model.connection_closed().await;
    draft.finish().await;
}
