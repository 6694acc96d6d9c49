//! Tools that need more than files, as a client meets them: commands, jobs, questions, the editor's own
//! knowledge, hooks around calls, plans, and changes that are taken back after a restart.

use std::fs;

use custom_methods::chat::{ChatRollbackParams, ChatToolCallApproveParams};
use custom_methods::methods::{ChatRollback, ChatToolCallApprove};
use eca::process::guard;
use serde_json::{Value, json};

use crate::mock_llm::{MockLlm, Script};
use crate::peer::outline::{contents, text_by};
use crate::server::{Builder, TestServer, presets};

fn builder(model: &MockLlm) -> Builder {
    guard::use_executable(env!("CARGO_BIN_EXE_eca").into());
    TestServer::with(model)
}

fn trusting() -> Value {
    json!({"toolCall": {"approval": {"byDefault": "allow"}}})
}

fn call(name: &str, arguments: &Value) -> Script {
    Script::tool_call("t", &format!("eca__{name}"), &[&arguments.to_string()])
}

/// What the model got as the result of its call.
async fn result(model: &MockLlm) -> String {
    model.next_request().await;
    let request = model.next_request().await;
    request.body["messages"].as_array().unwrap().iter().rfind(|message| message["role"] == "tool").unwrap()["content"]
        .to_string()
}

async fn request_of(server: &mut TestServer, method: &str) -> Value {
    server.find(method, |message| message["method"] == method).await
}

#[tokio::test]
async fn a_command_is_taken_apart_for_the_user_and_its_output_reaches_the_model() {
    let model = MockLlm::start().await;
    let mut server = builder(&model).start().await;
    model.push(call("shell_command", &json!({"command": "echo one && echo two >&2; exit 3"})));
    model.push(Script::text_stream(&["done"]));
    server.prompt(Some("c"), "run").await;
    let asked =
        server.everything_until("the question", |message| message["params"]["content"]["manualApproval"] == true);
    let asked = asked.await;
    let run = contents("toolCallRun", &asked)[0];
    assert_eq!(run["details"]["type"], "shellCommand");
    let commands: Vec<&Value> =
        run["details"]["commands"].as_array().unwrap().iter().map(|unit| &unit["command"]).collect();
    assert_eq!(commands, ["echo", "echo", "exit"]);
    server.notify::<ChatToolCallApprove>(ChatToolCallApproveParams {
        chat_id: "c".into(),
        tool_call_id: "t".into(),
        save: None,
    });
    let rest = server.collect_turn("c").await;
    let called = contents("toolCalled", &rest)[0];
    assert_eq!(called["error"], true);
    let told = result(&model).await;
    assert!(told.contains('3') && told.contains("one") && told.contains("two"), "{told}");
    server.finish().await;
}

#[tokio::test]
async fn a_job_is_listed_read_and_killed_by_the_client() {
    let model = MockLlm::start().await;
    let mut server = builder(&model).config(trusting()).start().await;
    let command = json!({"command": "echo started; sleep 1000", "background": "watcher"});
    model.push(call("shell_command", &command));
    model.push(Script::text_stream(&["runs"]));
    server.turn("c", "start it").await;
    assert!(result(&model).await.contains("job-1"));
    let updated = request_of(&mut server, "jobs/updated").await;
    let job = &updated["params"]["jobs"][0];
    assert_eq!((&job["id"], &job["label"], &job["status"]), (&json!("job-1"), &json!("watcher"), &json!("running")));
    let read = server.request_raw("jobs/readOutput", Some(json!({"jobId": "job-1"}))).await;
    assert_eq!(read["result"]["lines"][0], json!({"text": "started", "stream": "stdout"}), "{read}");
    let killed = server.request_raw("jobs/kill", Some(json!({"jobId": "job-1"}))).await;
    assert_eq!(killed["result"], json!({"killed": true}));
    server.ignore_rest();
    server.finish().await;
}

#[tokio::test]
async fn the_editor_and_the_user_are_asked_on_behalf_of_the_model() {
    let model = MockLlm::start().await;
    let mut server = builder(&model).client(presets::emacs).config(trusting()).start().await;
    let file = server.dirs.file("a.rs", "fn main() { helper() }\n");
    let uri = format!("file://{file}");
    let range = json!({"start": {"line": 1, "character": 4}, "end": {"line": 1, "character": 8}});

    model.push(call("editor_diagnostics", &json!({"path": file})));
    model.push(Script::text_stream(&["ok"]));
    server.prompt(Some("c"), "check").await;
    let asked = request_of(&mut server, "editor/getDiagnostics").await;
    assert_eq!(asked["params"], json!({"uri": uri}));
    server.answer(
        &asked,
        json!({"diagnostics": [{"uri": uri, "severity": "error", "code": "E1", "range": range,
        "source": null, "message": "no such helper"}]}),
    );
    server.collect_turn("c").await;
    let told = result(&model).await;
    assert!(told.contains(&format!("{file}:1:4: error: [E1] no such helper")), "{told}");

    model.push(call("editor_definition", &json!({"path": file, "line": 1, "symbol": "helper"})));
    model.push(Script::text_stream(&["ok"]));
    server.prompt(Some("d"), "where").await;
    let asked = request_of(&mut server, "editor/getDefinition").await;
    assert_eq!(asked["params"]["position"], json!({"line": 1, "character": 13}));
    server.answer(&asked, json!({"status": "no-server"}));
    let turn = server.collect_turn("d").await;
    assert_eq!(contents("toolCalled", &turn)[0]["error"], true);
    assert!(result(&model).await.contains("grep"), "what to do instead");

    model.push(call("ask_user", &json!({"question": "Which one?", "options": [{"label": "this"}]})));
    model.push(Script::text_stream(&["ok"]));
    server.prompt(Some("e"), "ask me").await;
    let asked = request_of(&mut server, "chat/askQuestion").await;
    assert_eq!((&asked["params"]["chatId"], &asked["params"]["question"]), (&json!("e"), &json!("Which one?")));
    assert_eq!(asked["params"]["toolCallId"], "t");
    server.answer(&asked, json!({"answer": "that", "cancelled": false}));
    server.collect_turn("e").await;
    assert!(result(&model).await.contains("that"));
    server.finish().await;
}

#[tokio::test]
async fn hooks_stand_before_and_behind_a_call() {
    let model = MockLlm::start().await;
    let hook = |kind: &str, tool: &str, script: &str| json!({"type": kind, "matcher": format!("eca__{tool}"), "actions": [{"type": "shell", "shell": script}]});
    let hooks = json!({
        "guard": hook("preToolCall", "write_file", "echo 'not on Sundays' >&2; exit 2"),
        "stamp": hook("postToolCall", "read_file", r#"echo '{"additionalContext": "stamped by the hook"}'"#),
    });
    let config = json!({"hooks": hooks, "toolCall": {"approval": {"byDefault": "allow"}}});
    let mut server = builder(&model).config(config).start().await;
    let file = server.dirs.file("a.txt", "text\n");
    model.push(call("write_file", &json!({"path": file, "content": "x"})));
    model.push(Script::text_stream(&["well"]));
    let turn = server.turn("c", "write").await;
    assert_eq!(contents("toolCallRejected", &turn)[0]["reason"], "hook-rejected");
    assert_eq!(text_by("assistant", &turn), "well", "the model goes on");
    assert!(result(&model).await.contains("not on Sundays"));
    assert_eq!(fs::read_to_string(&file).unwrap(), "text\n");

    model.push(call("read_file", &json!({"path": file})));
    model.push(Script::text_stream(&["read"]));
    let turn = server.turn("d", "read").await;
    assert_eq!(contents("toolCalled", &turn)[0]["error"], false);
    let told = result(&model).await;
    assert!(told.contains("text") && told.contains("stamped by the hook"), "{told}");
    server.finish().await;
}

#[tokio::test]
async fn a_plan_changes_nothing() {
    let model = MockLlm::start().await;
    let mut server = builder(&model).start().await;
    let file = server.dirs.file("a.txt", "text\n");
    let plan = json!({"chatId": "c", "message": "plan", "agent": "plan"});
    for (name, arguments) in [
        ("shell_command", json!({"command": "echo x > a.txt"})),
        ("shell_command", json!({"command": "ls; rm -rf a.txt"})),
        ("write_file", json!({"path": file, "content": "x"})),
    ] {
        model.push(call(name, &arguments));
        model.push(Script::text_stream(&["hm"]));
        server.request_raw("chat/prompt", Some(plan.clone())).await;
        let turn = server.collect_turn("c").await;
        let ran = contents("toolCalled", &turn).iter().any(|called| called["error"] == false);
        assert!(!ran, "{name} {arguments}");
        assert_eq!(fs::read_to_string(&file).unwrap(), "text\n");
    }
    model.push(call("preview_file_change", &json!({"path": file, "original_content": "text", "new_content": "new"})));
    model.push(Script::text_stream(&["look"]));
    server.request_raw("chat/prompt", Some(plan)).await;
    let turn = server.collect_turn("c").await;
    let called = contents("toolCalled", &turn)[0];
    assert!(called["details"]["diff"].as_str().unwrap().contains("-text\n+new"), "{called}");
    assert_eq!(fs::read_to_string(&file).unwrap(), "text\n");
    server.finish().await;
}

#[tokio::test]
async fn the_first_version_approves_a_change_of_a_file_by_its_id_and_nothing_else() {
    let model = MockLlm::start().await;
    let mut server = builder(&model).client(presets::seed_000).start().await;
    let file = server.dirs.file("a.txt", "old\n");
    model.push(call("edit_file", &json!({"path": file, "original_content": "old", "new_content": "new"})));
    model.push(Script::text_stream(&["done"]));
    server.request_raw("chat/prompt", Some(json!({"chatId": "c", "message": "edit"}))).await;
    let shown = server.find("the change", |message| message["params"]["content"]["type"] == "fileChange").await;
    let content = &shown["params"]["content"];
    assert_eq!((&content["id"], &content["manualApproval"]), (&json!("t"), &json!(true)));
    assert!(content["changes"][0]["content"].as_str().unwrap().contains("-old\n+new"), "{content}");
    assert_eq!(fs::read_to_string(&file).unwrap(), "old\n");
    server.notify_raw("chat/toolCallApprove", Some(json!({"chatId": "c", "toolCallId": "t"})));
    let over = |message: &Value| message["params"]["isComplete"] == true;
    server.everything_until("the end", over).await;
    assert_eq!(fs::read_to_string(&file).unwrap(), "new\n");
    // What cannot be shown is not run.
    model.push(call("shell_command", &json!({"command": format!("rm {file}")})));
    model.push(Script::text_stream(&["sorry"]));
    server.request_raw("chat/prompt", Some(json!({"chatId": "c", "message": "remove"}))).await;
    server.everything_until("the end", over).await;
    assert!(fs::exists(&file).unwrap());
    server.finish().await;
}

#[tokio::test]
async fn a_change_is_taken_back_by_the_next_server() {
    let model = MockLlm::start().await;
    let mut first = builder(&model).config(trusting()).start().await;
    let file = first.dirs.file("a.txt", "\u{feff}old\r\nno end");
    let before = fs::read(&file).unwrap();
    model.push(call("write_file", &json!({"path": file, "content": "new"})));
    model.push(Script::text_stream(&["done"]));
    let turn = first.turn("c", "write").await;
    let content_id = contents("text", &turn)[0]["contentId"].as_str().unwrap().to_owned();
    assert_ne!(fs::read(&file).unwrap(), before);
    let dirs = first.dirs.clone();
    first.finish().await;
    let mut second = builder(&model).dirs(&dirs).config(trusting()).start().await;
    let params = ChatRollbackParams {
        chat_id: "c".into(),
        content_id: content_id.as_str().into(),
        include: vec![custom_methods::chat::RollbackInclude::Tools],
        force: None,
    };
    second.request::<ChatRollback>(params).await;
    assert_eq!(fs::read(&file).unwrap(), before);
    second.ignore_rest();
    second.finish().await;
}

#[tokio::test]
async fn the_doctor_says_what_the_kernel_can_do() {
    let model = MockLlm::start().await;
    let mut server = builder(&model).start().await;
    let turn = server.turn("c", "/doctor").await;
    let said = text_by("system", &turn);
    assert!(said.contains("- sandbox: "), "{said}");
    assert!(said.contains("Landlock") || said.contains("not"), "{said}");
    server.finish().await;
}
