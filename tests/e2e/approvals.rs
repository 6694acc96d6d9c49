//! Tools with hands on files: what runs by itself, what is asked about, and what a stop leaves.

use std::fs;
use std::path::PathBuf;

use custom_methods::chat::{
    ChatPromptSteerParams, ChatRollbackParams, ChatToolCallApproveParams, ChatToolCallRejectParams, ToolCallApproveSave,
};
use custom_methods::methods::{ChatPromptSteer, ChatRollback, ChatToolCallApprove, ChatToolCallReject};
use serde_json::{Value, json};

use crate::mock_llm::{Gate, MockLlm, Script};
use crate::peer::outline::contents;
use crate::peer::{is_finished, outline};
use crate::server::TestServer;

fn workspace(server: &TestServer) -> PathBuf {
    server.dirs.workspace.clone()
}

fn approve(server: &TestServer, call: &str, save: Option<ToolCallApproveSave>) {
    server.notify::<ChatToolCallApprove>(ChatToolCallApproveParams {
        chat_id: "c".into(),
        tool_call_id: call.into(),
        save,
    });
}

fn reject(server: &TestServer, call: &str) {
    server.notify::<ChatToolCallReject>(ChatToolCallRejectParams { chat_id: "c".into(), tool_call_id: call.into() });
}

async fn until_asked(server: &mut TestServer, call: &str) -> Vec<Value> {
    let fits = |message: &Value| {
        let content = &message["params"]["content"];
        content["type"] == "progress" && content["text"] == "Waiting for tool call approval"
    };
    let seen = server.everything_until("the question", fits).await;
    let runs = contents("toolCallRun", &seen);
    let last = runs.last().expect("a call to be asked about");
    assert_eq!((&last["id"], &last["manualApproval"]), (&json!(call), &json!(true)), "{last}");
    seen
}

fn write_call(id: &str, path: &std::path::Path, content: &str) -> Script {
    let arguments = json!({"path": path, "content": content}).to_string();
    Script::tool_call(id, "eca__write_file", &[&arguments])
}

#[tokio::test]
async fn reading_runs_by_itself_and_its_result_reaches_the_model() {
    let model = MockLlm::start().await;
    let mut server = TestServer::with(&model).start().await;
    let file = workspace(&server).join("a.txt");
    fs::write(&file, "one\ntwo\n").unwrap();
    model.push(Script::tool_call("r", "eca__read_file", &[&json!({"path": file}).to_string()]));
    model.push(Script::text_stream(&["it says one"]));
    let turn = server.turn("c", "read it").await;
    let names: Vec<String> =
        outline(&turn).into_iter().filter(|line| line.ends_with(" r") || line.starts_with("progress")).collect();
    assert_eq!(
        names[names.len() - 7..],
        [
            "progress Generating",
            "toolCallPrepare r",
            "toolCallRun r",
            "toolCallRunning r",
            "progress Calling tool",
            "toolCalled r",
            "progress Generating",
        ]
    );
    let called = contents("toolCalled", &turn)[0];
    assert_eq!(called["summary"], "Reading a.txt");
    assert_eq!(called["error"], false);
    let first = model.next_request().await;
    let offered: Vec<&str> =
        first.body["tools"].as_array().unwrap().iter().map(|tool| tool["function"]["name"].as_str().unwrap()).collect();
    assert!(offered.contains(&"eca__read_file") && offered.contains(&"eca__edit_file"), "{offered:?}");
    let second = model.next_request().await;
    let result = second.body["messages"].as_array().unwrap().last().unwrap().clone();
    assert_eq!((&result["role"], &result["tool_call_id"]), (&json!("tool"), &json!("r")));
    assert!(result["content"].to_string().contains("one"), "{result}");
    server.finish().await;
}

#[tokio::test]
async fn a_change_is_shown_before_it_is_made_and_made_when_approved() {
    let model = MockLlm::start().await;
    let mut server = TestServer::with(&model).start().await;
    let file = workspace(&server).join("a.txt");
    fs::write(&file, "old\n").unwrap();
    model.push(write_call("w", &file, "new\n"));
    model.push(Script::text_stream(&["done"]));
    server.prompt(Some("c"), "change it").await;
    let asked = until_asked(&mut server, "w").await;
    let details = &contents("toolCallRun", &asked)[0]["details"];
    assert_eq!(details["type"], "fileChange");
    assert_eq!((&details["linesAdded"], &details["linesRemoved"]), (&json!(1), &json!(1)));
    assert!(details["diff"].as_str().unwrap().contains("-old\n+new"), "{details}");
    assert_eq!(fs::read_to_string(&file).unwrap(), "old\n", "nothing is written before the user agrees");
    approve(&server, "w", None);
    // Twice is harmless.
    approve(&server, "w", None);
    let rest = server.collect_turn("c").await;
    assert_eq!(contents("toolCalled", &rest)[0]["error"], false);
    assert_eq!(fs::read_to_string(&file).unwrap(), "new\n");
    server.finish().await;
}

#[tokio::test]
async fn after_a_rejection_nothing_ran_and_the_model_goes_on_knowing_it() {
    let model = MockLlm::start().await;
    let mut server = TestServer::with(&model).start().await;
    let file = workspace(&server).join("new.txt");
    model.push(write_call("w", &file, "x"));
    model.push(Script::text_stream(&["all right"]));
    server.prompt(Some("c"), "write").await;
    until_asked(&mut server, "w").await;
    reject(&server, "w");
    let rest = server.collect_turn("c").await;
    assert_eq!(contents("toolCallRejected", &rest)[0]["reason"], "user-choice");
    assert!(contents("toolCalled", &rest).is_empty() && !file.exists());
    model.next_request().await;
    let result = model.next_request().await.body["messages"].as_array().unwrap().last().unwrap().clone();
    assert!(result["content"].to_string().contains("rejected"), "{result}");
    server.finish().await;
}

#[tokio::test]
async fn a_remembered_consent_covers_the_next_calls_of_this_chat() {
    let model = MockLlm::start().await;
    let mut server = TestServer::with(&model).start().await;
    let (one, two) = (workspace(&server).join("1"), workspace(&server).join("2"));
    model.push(write_call("w1", &one, "x"));
    model.push(write_call("w2", &two, "x"));
    model.push(Script::text_stream(&["done"]));
    server.prompt(Some("c"), "write").await;
    until_asked(&mut server, "w1").await;
    approve(&server, "w1", Some(ToolCallApproveSave::Session));
    let rest = server.collect_turn("c").await;
    assert_eq!(contents("toolCallRun", &rest)[0]["manualApproval"], false);
    assert!(one.exists() && two.exists());
    server.finish().await;
}

#[tokio::test]
async fn a_consent_for_the_server_covers_the_other_chats_too() {
    for (scope, asks_again) in [("chat", true), ("server", false)] {
        let model = MockLlm::start().await;
        let config = json!({"toolCall": {"approval": {"rememberFor": scope}}});
        let mut server = TestServer::with(&model).config(config).start().await;
        let (one, two) = (workspace(&server).join("1"), workspace(&server).join("2"));
        model.push(write_call("w1", &one, "x"));
        model.push(Script::text_stream(&["done"]));
        server.prompt(Some("c"), "write").await;
        until_asked(&mut server, "w1").await;
        approve(&server, "w1", Some(ToolCallApproveSave::Session));
        server.collect_turn("c").await;
        model.push(write_call("w2", &two, "x"));
        model.push(Script::text_stream(&["done"]));
        server.prompt(Some("other"), "write").await;
        let fits = |message: &Value| message["params"]["content"]["type"] == "toolCallRun";
        let run = server.everything_until("the call", fits).await;
        assert_eq!(contents("toolCallRun", &run)[0]["manualApproval"], asks_again, "{scope}");
        server.stop("other");
        server.ignore_rest();
        server.finish().await;
    }
}

#[tokio::test]
async fn a_call_says_what_it_is_about_as_soon_as_its_arguments_do() {
    let model = MockLlm::start().await;
    let mut server = TestServer::with(&model).start().await;
    let file = workspace(&server).join("notes.txt");
    let path = format!("{{\"path\": {}", json!(file));
    model.push(Script::tool_call("w", "eca__write_file", &["", &path, ", \"content\": \"lo", "ng\"}"]));
    model.push(Script::tool_call("s", "eca__shell_command", &["{\"command\": \"ls -l\"", "}"]));
    model.push(Script::text_stream(&["done"]));
    server.prompt(Some("c"), "write").await;
    let mut seen = until_asked(&mut server, "w").await;
    approve(&server, "w", None);
    seen.extend(until_asked(&mut server, "s").await);
    approve(&server, "s", None);
    seen.extend(server.collect_turn("c").await);
    let summaries = |kind: &str, id: &str| -> Vec<String> {
        let calls = contents(kind, &seen).into_iter().filter(|call| call["id"] == *id);
        let mut all: Vec<String> = calls.map(|call| call["summary"].as_str().unwrap().to_owned()).collect();
        all.dedup();
        all
    };
    assert_eq!(summaries("toolCallPrepare", "w"), ["Writing file", "Writing notes.txt"]);
    assert_eq!(summaries("toolCallRun", "w"), ["Creating notes.txt"]);
    assert_eq!(summaries("toolCalled", "w"), ["Creating notes.txt"]);
    assert_eq!(summaries("toolCallPrepare", "s"), ["Preparing shell command", "$ ls -l"]);
    server.finish().await;
}

#[tokio::test]
async fn questions_come_one_at_a_time_and_what_is_allowed_runs_meanwhile() {
    let model = MockLlm::start().await;
    let mut server = TestServer::with(&model).start().await;
    let folder = workspace(&server);
    fs::write(folder.join("r"), "text").unwrap();
    let write = |name: &str| json!({"path": folder.join(name), "content": "x"}).to_string();
    model.push(
        Script::stream()
            .call(0, "read", "eca__read_file", &[&json!({"path": folder.join("r")}).to_string()])
            .call(1, "w1", "eca__write_file", &[&write("1")])
            .call(2, "w2", "eca__write_file", &[&write("2")])
            .finish("tool_calls"),
    );
    model.push(Script::text_stream(&["done"]));
    server.prompt(Some("c"), "go").await;
    let first = until_asked(&mut server, "w1").await;
    assert!(!outline(&first).contains(&"toolCallRun w2".to_owned()));
    approve(&server, "w1", None);
    let second = until_asked(&mut server, "w2").await;
    reject(&server, "w2");
    let rest = server.collect_turn("c").await;
    let all: Vec<Value> = [first, second, rest].concat();
    let mut called: Vec<&str> = contents("toolCalled", &all).iter().map(|call| call["id"].as_str().unwrap()).collect();
    called.sort_unstable();
    assert_eq!(called, ["read", "w1"]);
    assert_eq!(contents("toolCallRejected", &all)[0]["id"], "w2");
    let second = {
        model.next_request().await;
        model.next_request().await
    };
    let results =
        second.body["messages"].as_array().unwrap().iter().filter(|message| message["role"] == "tool").count();
    assert_eq!(results, 3);
    server.finish().await;
}

#[tokio::test]
async fn a_stop_while_the_user_is_asked_closes_the_call_and_the_chat_goes_on() {
    let model = MockLlm::start().await;
    let mut server = TestServer::with(&model).start().await;
    let file = workspace(&server).join("f");
    model.push(write_call("w", &file, "x"));
    server.prompt(Some("c"), "write").await;
    until_asked(&mut server, "w").await;
    server.stop("c");
    let rest = server.collect_turn("c").await;
    assert_eq!(outline(&rest), ["system text", "toolCallRejected w", "status stopping", "status idle", "finished"]);
    assert_eq!(contents("toolCallRejected", &rest)[0]["reason"], "user-prompt-stop");
    // A late word is ignored.
    approve(&server, "w", None);
    model.push(Script::text_stream(&["again"]));
    server.turn("c", "and now?").await;
    model.next_request().await;
    let second = model.next_request().await;
    let roles: Vec<&str> =
        second.body["messages"].as_array().unwrap().iter().map(|message| message["role"].as_str().unwrap()).collect();
    assert!(roles.contains(&"tool"), "the call has its result: {roles:?}");
    assert!(!file.exists());
    server.finish().await;
}

#[tokio::test]
async fn a_word_on_the_way_reaches_the_model_with_the_results() {
    let model = MockLlm::start().await;
    let mut server = TestServer::with(&model).start().await;
    let file = workspace(&server).join("f");
    model.push(write_call("w", &file, "x"));
    model.push(Script::text_stream(&["as you wish"]));
    server.prompt(Some("c"), "write").await;
    until_asked(&mut server, "w").await;
    for message in ["use tabs", "and be quick"] {
        server.notify::<ChatPromptSteer>(ChatPromptSteerParams { chat_id: "c".into(), message: message.into() });
    }
    approve(&server, "w", None);
    let rest = server.collect_turn("c").await;
    assert!(
        outline(&rest).iter().any(|line| line.starts_with("user") && line.contains("use tabs")),
        "{:?}",
        outline(&rest)
    );
    model.next_request().await;
    let messages = model.next_request().await.body["messages"].clone();
    let last = messages.as_array().unwrap().last().unwrap().clone();
    assert_eq!(last["role"], "user");
    assert!(last["content"].to_string().contains("use tabs\\nand be quick"), "{last}");
    server.finish().await;
}

#[tokio::test]
async fn a_rollback_restores_files_byte_for_byte_and_refuses_what_somebody_else_changed() {
    let model = MockLlm::start().await;
    let mut server =
        TestServer::with(&model).config(json!({"toolCall": {"approval": {"byDefault": "allow"}}})).start().await;
    let (old, new) = (workspace(&server).join("old.txt"), workspace(&server).join("new.txt"));
    fs::write(&old, "\u{feff}a\r\nb").unwrap();
    let calls = |text: &str| {
        let arguments = |path: &std::path::Path| json!({"path": path, "content": text}).to_string();
        Script::stream()
            .call(0, "", "eca__write_file", &[&arguments(&old)])
            .call(1, "", "eca__write_file", &[&arguments(&new)])
            .finish("tool_calls")
    };
    for text in ["first", "second"] {
        model.push(calls(text));
        model.push(Script::text_stream(&["done"]));
    }
    let turn = server.turn("c", "one").await;
    let content_id = contents("text", &turn)[0]["contentId"].as_str().unwrap().to_owned();
    server.turn("c", "two").await;
    let roll = |include: Vec<custom_methods::chat::RollbackInclude>, force: Option<bool>| ChatRollbackParams {
        chat_id: "c".into(),
        content_id: content_id.as_str().into(),
        include,
        force,
    };
    fs::write(&new, "by hand").unwrap();
    let id = server.start::<ChatRollback>(roll(Vec::new(), None));
    let refused = server.response::<ChatRollback>(id).await.unwrap_err();
    assert!(refused.message.contains("new.txt"), "{refused:?}");
    assert_ne!(fs::read(&old).unwrap(), "\u{feff}a\r\nb".as_bytes(), "nothing is restored then");
    let id = server.start::<ChatRollback>(roll(Vec::new(), Some(true)));
    server.response::<ChatRollback>(id).await.unwrap();
    assert_eq!(fs::read(&old).unwrap(), "\u{feff}a\r\nb".as_bytes());
    assert!(!new.exists(), "it was not there before");
    server.ignore_rest();
    server.finish().await;
}

#[tokio::test]
async fn a_stop_at_any_moment_leaves_every_call_closed_exactly_once() {
    for moment in 0..6 {
        let model = MockLlm::start().await;
        let mut server = TestServer::with(&model).start().await;
        let file = workspace(&server).join("f");
        fs::write(&file, "x").unwrap();
        let gate = Gate::new();
        let arguments = json!({"path": file}).to_string();
        model.push(
            Script::stream()
                .text("a")
                .call(0, "r", "eca__read_file", &[&arguments])
                .gate(&gate)
                .call(1, "w", "eca__write_file", &[&json!({"path": file, "content": "y"}).to_string()])
                .finish("tool_calls"),
        );
        server.prompt(Some("c"), "go").await;
        let mut seen = Vec::new();
        if moment > 2 {
            gate.open();
        }
        let stages = [
            "progress Generating",
            "assistant \"a\"",
            "toolCallPrepare r",
            "toolCallPrepare w",
            "toolCallRunning r",
            "toolCallRun w",
        ];
        let wanted = stages[moment];
        seen.extend(
            server.everything_until(wanted, |message| outline(std::slice::from_ref(message)) == [wanted]).await,
        );
        server.stop("c");
        seen.extend(server.everything_until("the end", |message| is_finished(message, "c")).await);
        gate.open();
        for id in ["r", "w"] {
            let of = |kind: &str| contents(kind, &seen).iter().filter(|call| call["id"] == *id).count();
            let ends = of("toolCalled") + of("toolCallRejected");
            assert_eq!(ends, usize::from(of("toolCallPrepare") > 0), "{wanted}: {id} {:?}", outline(&seen));
        }
        assert_eq!(fs::read_to_string(&file).unwrap(), "x");
        server.ignore_rest();
        server.finish().await;
    }
}

#[tokio::test]
async fn the_first_request_with_all_tools_is_small() {
    let model = MockLlm::start().await;
    model.push(Script::text_stream(&["hi"]));
    let mut server = TestServer::with(&model).start().await;
    server.turn("c", "hello").await;
    let request = model.next_request().await;
    assert!(request.body["tools"].as_array().unwrap().len() >= 14, "{:?}", request.body["tools"]);
    // Every turn of every user pays for it.
    let bytes = request.body.to_string().len();
    assert!(bytes <= 16_000, "{bytes} bytes");
    server.finish().await;
}
