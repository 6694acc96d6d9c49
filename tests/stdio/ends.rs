//! The ends of a process: asked for, cut off, or by the death of another.

use std::io::{Read, Write};
use std::process::{Command, Stdio};

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::mock_llm::{MockLlm, Script};
use crate::peer::{frame, outline};
use crate::process::{Bare, Launch, RealServer};

fn initialize(process_id: Value) -> Value {
    json!({"processId": process_id, "capabilities": {"codeAssistant": {"chat": true, "editor": {}}}})
}

/// A server with a turn that waits for a model which never answers.
async fn busy(model: &MockLlm) -> RealServer {
    model.respond_with(|_| Script::stream().text("Hello").hang_here());
    let mut server = Launch::with(model).start().await;
    server.request_raw("chat/prompt", Some(json!({"chatId": "c", "message": "hi"}))).await;
    server.everything_until("the model's words", |message| message["params"]["role"] == "assistant").await;
    server
}

#[tokio::test]
async fn exit_after_shutdown_ends_the_process_while_its_input_is_open() {
    let (code, _) = Launch::new().start().await.leave().await;
    assert_eq!(code, Some(0));
}

#[tokio::test]
async fn exit_takes_every_shape_of_params() {
    for params in [None, Some(Value::Null), Some(json!({})), Some(json!([]))] {
        let mut server = Launch::new().start().await;
        assert_eq!(server.request_raw("shutdown", params.clone()).await.get("result"), Some(&Value::Null));
        server.notify_raw("exit", params);
        assert_eq!(server.end().await.0, Some(0));
    }
}

#[tokio::test]
async fn exit_without_shutdown_ends_the_process() {
    let model = MockLlm::start().await;
    let server = busy(&model).await;
    server.notify_raw("exit", None);
    assert_eq!(server.end().await.0, Some(0));
    model.connection_closed().await;
}

#[tokio::test]
async fn exit_before_initialize_ends_the_process() {
    let server = Launch::new().silent();
    server.notify_raw("exit", None);
    assert_eq!(server.end().await.0, Some(0));
}

#[tokio::test]
async fn the_end_of_input_ends_the_process_idle_busy_and_silent() {
    let model = MockLlm::start().await;
    for mut server in [Launch::new().start().await, busy(&model).await, Launch::new().silent()] {
        server.close_input();
        assert_eq!(server.end().await.0, Some(0));
    }
}

#[tokio::test]
async fn shutdown_with_work_in_flight_closes_it_and_is_answered() {
    let model = MockLlm::start().await;
    let mut server = busy(&model).await;
    let id = server.start_raw("shutdown", None);
    let messages = server.everything_until("the response", |message| message["id"] == id).await;
    assert_eq!(outline(&messages), ["system text", "status stopping", "status idle", "finished", "response"]);
    assert_eq!(messages.last().unwrap()["result"], Value::Null);
    server.notify_raw("exit", None);
    assert_eq!(server.end().await.0, Some(0));
}

#[tokio::test]
async fn a_client_that_closes_its_end_of_the_output_ends_the_process() {
    let mut bare = Launch::new().bare();
    drop(bare.output);
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"capabilities": {}}}).to_string();
    bare.input.write_all(&frame(&body)).unwrap();
    // The input stays open: only the failed write can end it.
    bare.process.wait().await;
}

/// A process whose model floods it, with nobody who reads its output. The model is to be kept.
async fn flooded() -> (Bare, MockLlm) {
    let model = MockLlm::start().await;
    model.respond_with(|_| Script::stream().flood(200_000, "and so on "));
    let mut bare = Launch::with(&model).bare();
    let mut send = |body: Value| bare.input.write_all(&frame(&body.to_string())).unwrap();
    send(json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": initialize(Value::Null)}));
    send(json!({"jsonrpc": "2.0", "method": "initialized"}));
    send(json!({"jsonrpc": "2.0", "id": 2, "method": "chat/prompt", "params": {"message": "hi"}}));
    model.next_request().await;
    (bare, model)
}

#[tokio::test]
async fn a_busy_server_ends_when_its_output_is_closed() {
    let (mut bare, _model) = flooded().await;
    drop(bare.output);
    bare.process.wait().await;
}

#[tokio::test]
async fn a_request_to_terminate_ends_the_process_in_order() {
    let model = MockLlm::start().await;
    let server = busy(&model).await;
    server.process.signal(Signal::TERM);
    let (code, _) = server.end().await;
    assert_eq!(code, Some(0));
    model.connection_closed().await;
}

#[tokio::test]
async fn the_death_of_the_editor_ends_the_process() {
    let mut editor = Command::new("sleep").arg("1000").stdin(Stdio::null()).spawn().unwrap();
    let mut server = Launch::new().start_with(initialize(json!(editor.id()))).await;
    server.is_well().await;
    editor.kill().unwrap();
    editor.wait().unwrap();
    assert_eq!(server.end().await.0, Some(0));
}

#[tokio::test]
async fn without_a_process_id_nothing_is_watched() {
    for id in [Value::Null, json!(std::process::id())] {
        let mut server = Launch::new().start_with(initialize(id)).await;
        server.is_well().await;
        assert_eq!(server.leave().await.0, Some(0));
    }
}

#[tokio::test]
async fn a_process_id_that_nobody_has_is_not_watched() {
    // As in a container that does not see the editor.
    let mut gone = Command::new("true").stdin(Stdio::null()).spawn().unwrap();
    gone.wait().unwrap();
    let mut server = Launch::new().start_with(initialize(json!(gone.id()))).await;
    server.is_well().await;
    assert_eq!(server.leave().await.0, Some(0));
}

#[tokio::test]
async fn a_client_that_never_reads_cannot_keep_the_process() {
    let (mut bare, _model) = flooded().await;
    drop(bare.input);
    bare.process.wait().await;
}

#[tokio::test]
async fn a_killed_server_has_kept_what_was_echoed_and_answered() {
    let model = MockLlm::start().await;
    model.push(Script::text_stream(&["first answer"]));
    model.push(Script::stream().text("half of the").hang_here());
    let mut server = Launch::with(&model).start().await;
    for message in ["one", "two"] {
        server.request_raw("chat/prompt", Some(json!({"chatId": "c", "message": message}))).await;
        if message == "one" {
            server.collect_turn("c").await;
        }
    }
    let half = |message: &Value| message["params"]["content"]["text"] == "half of the";
    server.everything_until("half of the second answer", half).await;
    let dirs = server.dirs.clone();
    server.process.signal(Signal::KILL);
    assert_eq!(server.end().await.0, None);
    model.respond_with(|_| Script::text_stream(&["third answer"]));
    let mut again = Launch { dirs, ..Launch::new() }.start().await;
    again.request_raw("chat/prompt", Some(json!({"chatId": "c", "message": "three"}))).await;
    again.collect_turn("c").await;
    let mut last = model.next_request().await;
    while let Some(request) = model.try_next_request().await {
        last = request;
    }
    let sent = last.body["messages"].to_string();
    for kept in ["one", "first answer", "two", "three"] {
        assert!(sent.contains(kept), "{kept:?} in {sent}");
    }
    // The question that was not answered does not read like a part of the next one.
    let messages = last.body["messages"].as_array().unwrap();
    let roles: Vec<&str> = messages.iter().skip(1).map(|message| message["role"].as_str().unwrap()).collect();
    assert_eq!(roles, ["user", "assistant", "user", "assistant", "user"]);
    assert!(messages[4]["content"].to_string().contains("interrupted"), "{sent}");
    assert_eq!(again.leave().await.0, Some(0));
}

#[tokio::test]
async fn the_command_line_knows_its_version_and_refuses_nonsense() {
    for (arguments, code, on_stdout) in [
        (&["--version"][..], 0, format!("eca {}\n", env!("CARGO_PKG_VERSION"))),
        (&["server", "--log-level", "loud"][..], 1, String::new()),
        (&["frobnicate"][..], 1, String::new()),
    ] {
        let mut bare = Launch::new().arguments(arguments).bare();
        let status = bare.process.wait().await;
        let mut output = String::new();
        bare.output.read_to_string(&mut output).unwrap();
        assert_eq!((status.code(), output), (Some(code), on_stdout), "{arguments:?}");
    }
}

#[tokio::test]
async fn flags_of_other_versions_are_tolerated() {
    for arguments in [
        &["server", "--stdio"][..],
        &["--stdio"],
        &["server", "--from-the-future", "value", "--more=1", "-x", "word"],
        &["--log-level", "debug", "server", "--verbose"],
    ] {
        let mut server = Launch::new().arguments(arguments).start().await;
        server.is_well().await;
        assert_eq!(server.leave().await.0, Some(0), "{arguments:?}");
    }
}
