//! Files of the workspace, and versions by which a client notices that somebody else changed them.

use std::fs;

use serde_json::{Value, json};

use super::Draft;
use crate::mock_llm::{MockLlm, Script};

fn of(path: impl serde::Serialize) -> Value {
    json!({"threadId": "t", "path": path})
}

#[tokio::test]
async fn every_method_about_files_answers_as_the_document_says() {
    let model = MockLlm::start().await;
    let mut draft = Draft::with(&model);
    let (text, binary) = (draft.path("a.txt"), draft.path("b.bin"));
    fs::write(&text, "one\ntwo\nthree\n").unwrap();
    fs::write(&binary, [0, 1, 2, 255]).unwrap();
    let part = json!({"threadId": "t", "path": text, "lineOffset": 1, "lineLimit": 1});
    assert_eq!(draft.call("readTextFile", part).await, json!({"version": 0, "content": "two\n"}));
    let part = json!({"threadId": "t", "path": binary, "byteOffset": 1, "byteLimit": 2});
    assert_eq!(draft.call("readBinaryFile", part).await, json!({"version": 0, "content": "AQI="}));
    for (path, exists, folder) in [("a.txt", true, false), (".", true, true), ("no", false, false)] {
        let found = draft.call("stat", of(draft.path(path))).await;
        assert_eq!(found, json!({"exists": exists, "isDirectory": folder}), "{path}");
    }
    let found = draft.call("globSearch", json!({"threadId": "t", "pattern": "*.{txt,bin}"})).await;
    assert_eq!(found, json!({"matches": [text, binary]}));
    for (method, path, code) in [
        ("readTextFile", "/etc/passwd", -32602),
        ("readBinaryFile", "../config/eca/config.json", -32602),
        ("stat", "/", -32602),
        ("readTextFile", "no", -32603),
        ("readTextFile", "b.bin", -32603),
        ("readBinaryFile", ".", -32603),
    ] {
        assert_eq!(draft.fails(method, of(path)).await.0, code, "{method} {path}");
    }
    draft.finish().await;
}

#[tokio::test]
async fn a_version_grows_when_a_tool_or_anybody_else_changes_the_file() {
    let model = MockLlm::start().await;
    let config = json!({"acpDraft": {"agent": "code"}, "toolCall": {"approval": {"allow": {"eca__write_file": {}}}}});
    let mut draft = Draft::configured(&model, config);
    let file = draft.path("a.txt");
    fs::write(&file, "mine").unwrap();
    let seen = |answer: Value| (answer["version"].as_u64().unwrap(), answer["content"].as_str().unwrap().to_owned());
    assert_eq!(seen(draft.call("readTextFile", of(&file)).await), (0, "mine".into()));
    assert_eq!(seen(draft.call("readTextFile", of(&file)).await), (0, "mine".into()), "nothing has happened");
    let thread = draft.thread().await;
    let arguments = json!({"path": file, "content": "the model's"}).to_string();
    model.push(Script::tool_call("w", "eca__write_file", &[&arguments]));
    model.push(Script::text_stream(&["done"]));
    draft.turn(&thread, "write").await;
    assert_eq!(seen(draft.call("readTextFile", of(&file)).await), (1, "the model's".into()));
    fs::write(&file, "somebody's").unwrap();
    assert_eq!(draft.call("readBinaryFile", of(&file)).await["version"], 2, "however it is read");
    assert_eq!(draft.call("readTextFile", of("a.txt")).await["version"], 2, "whatever it is called");
    draft.finish().await;
}

#[tokio::test]
async fn many_questions_at_once_are_all_answered() {
    let model = MockLlm::start().await;
    let mut draft = Draft::with(&model);
    fs::write(draft.path("a.txt"), "x".repeat(100_000)).unwrap();
    let ids: Vec<i64> = (0..50).map(|_| draft.start_raw("readTextFile", Some(of("a.txt")))).collect();
    for id in ids {
        assert_eq!(draft.response_raw(id).await["result"]["version"], 0);
    }
    draft.finish().await;
}
