//! The editor's side: buffers that are not saved, terminals, questions to the user.

use std::fs;

use serde_json::{Value, json};

use super::{Acp, selected};
use crate::mock_llm::{MockLlm, Script};

fn files() -> Value {
    json!({"fs": {"readTextFile": true, "writeTextFile": true}})
}

async fn allowed(model: &MockLlm, capabilities: Value) -> Acp {
    Acp::configured(model, capabilities, json!({"toolCall": {"approval": {"byDefault": "allow"}}})).await
}

#[tokio::test]
async fn an_unsaved_buffer_is_read_and_changed_through_the_editor() {
    let model = MockLlm::start().await;
    let mut acp = allowed(&model, files()).await;
    let file = acp.dirs.file("a.txt", "saved\n");
    let buffer = "saved\nand not saved\n";
    model.push(Script::tool_call("r", "eca__read_file", &[&json!({"path": file}).to_string()]));
    let edit = json!({"path": file, "original_content": "and not saved", "new_content": "changed"}).to_string();
    model.push(Script::tool_call("e", "eca__edit_file", &[&edit]));
    model.push(Script::text_stream(&["done"]));
    let session = acp.session().await;
    let id = acp.start_prompt(&session, "change it");
    let turn = acp
        .rest_with(id, |request| match request["method"].as_str().unwrap() {
            "fs/read_text_file" => Ok(json!({"content": buffer})),
            "fs/write_text_file" => Ok(json!({})),
            "session/request_permission" => Ok(selected("allow_once")),
            other => panic!("{other}"),
        })
        .await;
    assert_eq!(turn.stop_reason(), "end_turn");
    assert_eq!(turn.call("e").pop().unwrap()["status"], "completed", "{:?}", turn.call("e"));
    let written = acp.asked_for("fs/write_text_file");
    assert_eq!(written, [&json!({"sessionId": session, "path": file, "content": "saved\nchanged\n"})]);
    assert_eq!(fs::read_to_string(&file).unwrap(), "saved\n", "saving is the editor's affair");
    model.next_request().await;
    let told = model.next_request().await.body["messages"].to_string();
    assert!(told.contains("and not saved"), "{told}");
    assert!(acp.asked_for("fs/read_text_file").iter().all(|params| params["sessionId"] == session));
    acp.finish().await;
}

#[tokio::test]
async fn an_editor_that_cannot_is_asked_once_and_the_disk_is_used() {
    let model = MockLlm::start().await;
    let mut acp = allowed(&model, files()).await;
    let file = acp.dirs.file("a.txt", "one\n");
    model.push(Script::tool_call("r", "eca__read_file", &[&json!({"path": file}).to_string()]));
    model.push(Script::tool_call("w", "eca__write_file", &[&json!({"path": file, "content": "two\n"}).to_string()]));
    model.push(Script::text_stream(&["done"]));
    let session = acp.session().await;
    let id = acp.start_prompt(&session, "change it");
    let turn = acp
        .rest_with(id, |request| match request["method"].as_str().unwrap() {
            "session/request_permission" => Ok(selected("allow_once")),
            _ => Err(-32601),
        })
        .await;
    assert_eq!(turn.stop_reason(), "end_turn");
    assert_eq!(acp.asked_for("fs/read_text_file").len(), 1);
    assert_eq!(acp.asked_for("fs/write_text_file").len(), 1);
    assert_eq!(fs::read_to_string(&file).unwrap(), "two\n");
    acp.finish().await;
}

#[tokio::test]
async fn an_editor_that_offers_no_files_is_never_asked() {
    let model = MockLlm::start().await;
    let mut acp = allowed(&model, json!({})).await;
    let file = acp.dirs.file("a.txt", "one\n");
    model.push(Script::tool_call("r", "eca__read_file", &[&json!({"path": file}).to_string()]));
    let command = json!({"command": "echo local"}).to_string();
    model.push(Script::tool_call("s", "eca__shell_command", &[&command]));
    model.push(Script::text_stream(&["done"]));
    let session = acp.session().await;
    let turn = acp.turn(&session, "do it").await;
    assert_eq!(turn.stop_reason(), "end_turn");
    let output = turn.call("s").pop().unwrap()["rawOutput"].as_str().unwrap().to_owned();
    assert!(output.contains("Exit code: 0") && output.contains("local"), "{output}");
    acp.finish().await;
}

#[tokio::test]
async fn a_command_runs_in_a_terminal_of_the_editor() {
    let model = MockLlm::start().await;
    let mut acp = allowed(&model, json!({"terminal": true})).await;
    let command = json!({"command": "make test"}).to_string();
    model.push(Script::tool_call("s", "eca__shell_command", &[&command]));
    model.push(Script::text_stream(&["it failed"]));
    let session = acp.session().await;
    let id = acp.start_prompt(&session, "test it");
    let turn = acp
        .rest_with(id, |request| match request["method"].as_str().unwrap() {
            "terminal/create" => Ok(json!({"terminalId": "t1"})),
            "terminal/wait_for_exit" => Ok(json!({"exitCode": 3, "signal": null})),
            "terminal/output" => Ok(json!({"output": "\u{1b}[31mtwo tests failed\u{1b}[0m\n", "truncated": false})),
            "terminal/release" => Ok(Value::Null),
            other => panic!("{other}"),
        })
        .await;
    assert_eq!(turn.stop_reason(), "end_turn");
    let created = acp.asked_for("terminal/create")[0];
    assert_eq!((&created["sessionId"], &created["cwd"]), (&json!(session), &json!(acp.workspace())));
    assert_eq!(created["args"].as_array().unwrap().last().unwrap(), "make test");
    assert_eq!(acp.asked_for("terminal/release"), [&json!({"sessionId": session, "terminalId": "t1"})]);
    let shown = json!([{"type": "terminal", "terminalId": "t1"}]);
    let call = turn.call("s");
    assert!(call.iter().any(|update| update["content"] == shown), "{call:?}");
    assert_eq!((&call.last().unwrap()["status"], &call.last().unwrap()["content"]), (&json!("failed"), &shown));
    model.next_request().await;
    let told = model.next_request().await.body["messages"].to_string();
    assert!(told.contains("Exit code: 3") && told.contains("two tests failed") && !told.contains("[31m"), "{told}");
    acp.finish().await;
}

#[tokio::test]
async fn a_stop_kills_what_runs_in_a_terminal() {
    let model = MockLlm::start().await;
    let mut acp = allowed(&model, json!({"terminal": true})).await;
    model.push(Script::tool_call("s", "eca__shell_command", &[&json!({"command": "sleep 60"}).to_string()]));
    let session = acp.session().await;
    let id = acp.start_prompt(&session, "sleep");
    let asks = |method: &'static str| move |message: &Value| message["method"] == method;
    let create = acp.find("a terminal", asks("terminal/create")).await;
    acp.answer(&create, json!({"terminalId": "t1"}));
    acp.find("a wait", asks("terminal/wait_for_exit")).await;
    acp.cancel(&session);
    let kill = acp.find("a kill", asks("terminal/kill")).await;
    assert_eq!(kill["params"]["terminalId"], "t1");
    acp.answer(&kill, json!({}));
    let response = acp.find("the response", |message| message["id"] == id && message.get("method").is_none()).await;
    assert_eq!(response["result"]["stopReason"], "cancelled");
    acp.take_unread();
    acp.finish().await;
}

#[tokio::test]
async fn an_editor_without_terminals_after_all_runs_nothing_twice() {
    let model = MockLlm::start().await;
    let mut acp = allowed(&model, json!({"terminal": true})).await;
    let mark = acp.workspace().join("mark").display().to_string();
    let command = json!({"command": format!("echo x >> {mark}")}).to_string();
    model.push(Script::tool_call("s1", "eca__shell_command", &[&command]));
    model.push(Script::tool_call("s2", "eca__shell_command", &[&command]));
    model.push(Script::text_stream(&["done"]));
    let session = acp.session().await;
    let id = acp.start_prompt(&session, "do it");
    acp.rest_with(id, |_| Err(-32601)).await;
    assert_eq!(acp.asked_for("terminal/create").len(), 1);
    assert_eq!(fs::read_to_string(&mark).unwrap(), "x\nx\n");
    acp.finish().await;
}

#[tokio::test]
async fn a_question_of_the_model_is_a_form() {
    let model = MockLlm::start().await;
    let mut acp = allowed(&model, json!({"elicitation": {"form": {}}})).await;
    let question =
        json!({"question": "Which one?", "options": [{"label": "A", "description": "first"}, {"label": "B"}]});
    model.push(Script::tool_call("q", "eca__ask_user", &[&question.to_string()]));
    model.push(Script::text_stream(&["B it is"]));
    let session = acp.session().await;
    let id = acp.start_prompt(&session, "ask me");
    let accept = json!({"action": "accept", "content": {"choice": "B"}});
    let turn = acp.rest_with(id, |_| Ok(accept.clone())).await;
    assert_eq!((turn.stop_reason(), turn.text().as_str()), ("end_turn", "B it is"));
    let asked = acp.asked_for("elicitation/create")[0];
    assert_eq!((&asked["message"], &asked["mode"]), (&json!("Which one?"), &json!("form")));
    assert_eq!((&asked["sessionId"], &asked["toolCallId"]), (&json!(session), &json!("q")));
    let choices = &asked["requestedSchema"]["properties"]["choice"]["oneOf"];
    assert_eq!((&choices[0]["const"], &choices[1]["title"]), (&json!("A"), &json!("B")), "{asked}");
    model.next_request().await;
    let told = model.next_request().await.body["messages"].as_array().unwrap().last().unwrap().to_string();
    assert!(told.contains('B'), "{told}");
    acp.finish().await;
}

#[tokio::test]
async fn a_question_is_withdrawn_when_the_turn_ends() {
    let model = MockLlm::start().await;
    let mut acp = allowed(&model, json!({"elicitation": {"form": {}}})).await;
    model.push(Script::tool_call("q", "eca__ask_user", &[&json!({"question": "Well?"}).to_string()]));
    let session = acp.session().await;
    let id = acp.start_prompt(&session, "ask me");
    let asked = acp.find("the question", |message| message["method"] == "elicitation/create").await;
    acp.cancel(&session);
    let turn = acp.rest_of(id).await;
    assert_eq!(turn.stop_reason(), "cancelled");
    let withdrawn = turn.messages.iter().find(|message| message["method"] == "$/cancel_request").unwrap();
    assert_eq!(withdrawn["params"]["requestId"], asked["id"]);
    acp.finish().await;
}

#[tokio::test]
async fn without_forms_the_model_has_no_way_to_ask() {
    let model = MockLlm::start().await;
    let mut acp = allowed(&model, json!({})).await;
    model.push(Script::text_stream(&["hello"]));
    let session = acp.session().await;
    acp.turn(&session, "hi").await;
    let tools = model.next_request().await.body["tools"].to_string();
    assert!(tools.contains("eca__read_file") && !tools.contains("ask_user"), "{tools}");
    acp.finish().await;
}
