//! Contracts in lines, through the real executable: under the name that applications start, with
//! the environment they leave, and with the contract found out from the first message.

use std::io::{Read, Write};
use std::path::Path;
use std::process::Stdio;

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::mock_llm::{MockLlm, Script};
use crate::peer::{Peer, frame};
use crate::process::{Bare, Launch, Process, RealServer};
use crate::server::KEY;

const MODULE: &str = "export default function App() {\n  return <p>Hi</p>;\n}\n";

fn spec() -> Value {
    json!({"openapi": "3.0.0", "info": {"title": "Pets"}, "paths": {"/pets": {"get": {}}}})
}

fn copilot(model: &MockLlm, arguments: &[&str]) -> RealServer {
    Launch::with(model).arguments(arguments).silent_lines()
}

/// A generate whose first chunk is there and whose model says nothing more.
async fn busy(model: &MockLlm) -> (RealServer, i64) {
    model.respond_with(|_| Script::stream().text(MODULE).hang_here());
    let mut server = copilot(model, &["copilot"]);
    let id = server.start_raw("generate", Some(json!({"spec": spec()})));
    server.find("the first chunk", |message| message["method"] == "stream/chunk").await;
    (server, id)
}

async fn was_cancelled(server: &mut RealServer, id: i64) {
    let last = server.find("the last chunk", |message| message["method"] == "stream/chunk").await;
    assert_eq!(last["params"]["done"], true);
    let answer = server.response_raw(id).await;
    assert_eq!((&answer["error"]["code"], &answer["error"]["data"]["cancelled"]), (&json!(-32000), &json!(true)));
}

/// The executable under another name, with nothing but PATH and HOME in its environment.
fn under_the_name(name: &str, launch: &Launch, arguments: &[&str]) -> Bare {
    let root = launch.dirs.root.path();
    let link = root.join(name);
    if !link.exists() {
        std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_eca"), &link).unwrap();
    }
    // Without the variables that point elsewhere, the configuration is below the home.
    let home = root.join("home");
    std::fs::create_dir_all(home.join(".config/eca")).unwrap();
    std::fs::copy(launch.dirs.eca.config.join("config.json"), home.join(".config/eca/config.json")).unwrap();
    let mut command = std::process::Command::new(link);
    command.args(arguments).env_clear().env("HOME", home).env("PATH", "/usr/bin:/bin").current_dir(Path::new("/"));
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let (input, output, errors) =
        (child.stdin.take().unwrap(), child.stdout.take().unwrap(), child.stderr.take().unwrap());
    Bare { process: Process::new(child), input, output, errors, dirs: launch.dirs.clone() }
}

#[tokio::test]
async fn it_works_under_its_own_name_with_path_and_home_alone() {
    let model = MockLlm::start().await;
    model.respond_with(|_| Script::text_stream(&["```tsx\n", MODULE, "```"]));
    let launch = Launch::with(&model);
    for arguments in [&[][..], &["--stdio"], &["--headless", "--whatever", "server"]] {
        let mut server = RealServer::new(under_the_name("copilot-cli", &launch, arguments), Peer::of_lines);
        // Before any handshake.
        let answer = server.request_raw("generate", Some(json!({"spec": spec()}))).await;
        assert_eq!(answer["result"]["code"], MODULE, "{answer}");
        let chunks = server.take_unread();
        assert!(!chunks.is_empty() && chunks.iter().all(|chunk| chunk["method"] == "stream/chunk"));
        let answer = server.request_raw("initialize", Some(json!({"clientName": "x"}))).await;
        assert_eq!(answer["result"]["serverName"], "copilot-cli");
        server.notify_raw("exit", None);
        assert_eq!(server.end().await.0, Some(0));
    }
}

#[tokio::test]
async fn the_ends_of_a_process_are_in_order() {
    let model = MockLlm::start().await;
    let (mut server, id) = busy(&model).await;
    server.notify_raw("exit", None);
    was_cancelled(&mut server, id).await;
    assert_eq!(server.end().await.0, Some(0));

    let (mut server, id) = busy(&model).await;
    server.close_input();
    was_cancelled(&mut server, id).await;
    assert_eq!(server.end().await.0, Some(0));

    for signal in [Signal::TERM, Signal::INT] {
        let (mut server, id) = busy(&model).await;
        server.process.signal(signal);
        was_cancelled(&mut server, id).await;
        assert_eq!(server.end().await.0, Some(0), "an application takes any other code for a crash");
    }
    let mut idle = copilot(&model, &["copilot"]);
    idle.request_raw("initialize", None).await;
    idle.close_input();
    assert_eq!(idle.end().await.0, Some(0));
}

#[tokio::test]
async fn a_last_line_without_its_end_is_still_answered() {
    let model = MockLlm::start().await;
    let mut server = copilot(&model, &["copilot"]);
    server.raw_send("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\"}");
    server.close_input();
    assert_eq!(server.response_raw(1).await["result"]["serverName"], "copilot-cli");
    assert_eq!(server.end().await.0, Some(0));
}

#[tokio::test]
async fn garbage_and_lines_that_are_too_long_are_survived() {
    let model = MockLlm::start().await;
    let mut server = copilot(&model, &["copilot"]);
    server.raw_send(vec![0xff, 0xfe, b'\n']);
    assert_eq!(server.next().await["error"]["code"], -32700);
    server.raw_send("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"chat\",\"params\":{\"message\":\"");
    for _ in 0..65 {
        server.raw_send(vec![b'x'; 1024 * 1024]);
    }
    server.raw_send("\"}}\n");
    let refused = server.next().await;
    assert_eq!((&refused["error"]["code"], &refused["id"]), (&json!(-32700), &Value::Null), "{refused}");
    assert!(server.request_raw("initialize", None).await["result"].is_object());
    server.notify_raw("exit", None);
    assert_eq!(server.end().await.0, Some(0));
}

#[tokio::test]
async fn stdout_carries_only_messages_and_the_log_no_key() {
    let model = MockLlm::start().await;
    let body = json!({"error": {"message": format!("the key {KEY} is wrong")}}).to_string();
    model.respond_with(move |_| Script::status(401, &[], &body));
    let mut server = copilot(&model, &["copilot", "--log-level", "debug", "--verbose"]);
    server.raw_send("noise\n");
    let mut seen = server.next().await.to_string();
    seen.push_str(&server.request_raw("generate", Some(json!({"spec": spec()}))).await.to_string());
    assert!(seen.contains("is wrong") && !seen.contains(KEY), "{seen}");
    server.notify_raw("exit", None);
    let (code, log) = server.end().await;
    assert_eq!(code, Some(0));
    assert!(log.contains("--> generate") && log.contains("<-- "), "the log has the traffic: {log}");
    assert!(!log.contains(KEY), "{log}");
}

#[tokio::test]
async fn a_client_that_never_reads_cannot_keep_the_process() {
    let model = MockLlm::start().await;
    let line = format!("// {}\n", "x".repeat(1000));
    model.respond_with(move |_| Script::stream().text("export default 1;\n").flood(50_000, &line));
    for closes_output in [false, true] {
        let mut bare = Launch::with(&model).arguments(&["copilot"]).bare();
        for id in 1..=4 {
            let request = json!({"jsonrpc": "2.0", "id": id, "method": "generate", "params": {"spec": spec()}});
            bare.input.write_all(format!("{request}\n").as_bytes()).unwrap();
        }
        for _ in 0..4 {
            model.next_request().await;
        }
        if closes_output {
            drop(bare.output);
        } else {
            drop(bare.input);
        }
        bare.process.wait().await;
    }
}

#[tokio::test]
async fn the_contract_is_found_out_from_the_first_message() {
    let model = MockLlm::start().await;
    for arguments in [&["stdio"][..], &["--stdio"]] {
        // Content-Length: ECA, with a whole turn.
        model.push(Script::text_stream(&["Hello"]));
        let mut server = Launch::with(&model).arguments(arguments).start().await;
        server.request_raw("chat/prompt", Some(json!({"chatId": "c", "message": "hi"}))).await;
        server.collect_turn("c").await;
        assert_eq!(server.leave().await.0, Some(0));

        // Lines: an application of the Copilot CLI contract, with or without a handshake.
        for (method, params) in [("initialize", json!({"clientName": "x"})), ("chat", json!({"message": "hi"}))] {
            model.push(Script::text_stream(&["Hello"]));
            let mut server = copilot(&model, arguments);
            assert!(server.request_raw(method, Some(params)).await["result"].is_object());
            assert!(server.request_raw("initialize", None).await["result"].is_object());
            server.notify_raw("exit", None);
            assert_eq!(server.end().await.0, Some(0));
        }
    }
}

/// A session of the Agent Client Protocol whose model has begun to answer; and its prompt.
async fn talking(model: &MockLlm, command: &str) -> (RealServer, i64) {
    model.respond_with(|_| Script::stream().text("so far").hang_here());
    let mut server = Launch::with(model).arguments(&[command]).silent_lines();
    let welcome = server.request_raw("initialize", Some(json!({"protocolVersion": 1}))).await;
    assert_eq!(welcome["result"]["agentInfo"]["name"], "eca", "{welcome}");
    let cwd = server.dirs.workspace.clone();
    let created = server.request_raw("session/new", Some(json!({"cwd": cwd, "mcpServers": []}))).await;
    let session = created["result"]["sessionId"].clone();
    let prompt = json!({"sessionId": session, "prompt": [{"type": "text", "text": "hi"}]});
    let id = server.start_raw("session/prompt", Some(prompt));
    server.find("text", |message| message["params"]["update"]["sessionUpdate"] == "agent_message_chunk").await;
    (server, id)
}

#[tokio::test]
async fn the_agent_client_protocol_is_served_and_ends_in_order() {
    let model = MockLlm::start().await;
    for command in ["acp", "stdio"] {
        let (mut server, id) = talking(&model, command).await;
        server.close_input();
        assert_eq!(server.response_raw(id).await["result"]["stopReason"], "cancelled");
        server.take_unread();
        assert_eq!(server.end().await.0, Some(0));
    }
    let (mut server, id) = talking(&model, "acp").await;
    server.process.signal(Signal::TERM);
    assert_eq!(server.response_raw(id).await["result"]["stopReason"], "cancelled");
    server.take_unread();
    assert_eq!(server.end().await.0, Some(0));
}

#[test]
fn what_was_asked_before_the_end_of_the_input_is_answered() {
    let launch = Launch::new();
    let mut bare = launch.arguments(&["acp"]).bare();
    let initialize = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": 1}});
    let new = json!({"jsonrpc": "2.0", "id": 2, "method": "session/new",
        "params": {"cwd": bare.dirs.workspace, "mcpServers": []}});
    bare.input.write_all(format!("{initialize}\n{new}").as_bytes()).unwrap();
    drop(bare.input);
    let mut output = String::new();
    bare.output.read_to_string(&mut output).unwrap();
    let lines: Vec<Value> = output.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(lines[1]["result"]["sessionId"].is_string(), "{output}");
}

#[test]
fn the_first_draft_is_served_and_answers_what_was_asked_before_the_end() {
    let asked = "{\"id\":0,\"method\":\"getThreads\",\"params\":null}";
    for (arguments, end) in [(&["stdio"][..], "\n"), (&["acp", "--draft"], ""), (&["--stdio"], "\n")] {
        let answer = all_output(arguments, &format!("{asked}{end}"));
        assert_eq!(answer, json!({"id": 0, "result": {"threads": []}}), "{arguments:?}");
    }
    let unknown = all_output(&["stdio"], "{\"id\":0,\"method\":\"noSuch\"}\n");
    let error = json!({"code": -32601, "message": "Method not found - 'noSuch'"});
    assert_eq!(unknown, json!({"id": 0, "error": error}));
}

/// The one line that comes back for this input.
fn all_output(arguments: &[&str], input: &str) -> Value {
    let mut bare = Launch::new().arguments(arguments).bare();
    bare.input.write_all(input.as_bytes()).unwrap();
    drop(bare.input);
    let mut output = String::new();
    bare.output.read_to_string(&mut output).unwrap();
    assert_eq!(output.lines().count(), 1, "{output}");
    serde_json::from_str(&output).unwrap()
}

#[tokio::test]
async fn a_client_that_says_nothing_can_leave_in_every_way() {
    let mut server = Launch::new().arguments(&["stdio"]).silent();
    server.close_input();
    assert_eq!(server.end().await.0, Some(0));
    let server = Launch::new().arguments(&["stdio"]).silent_lines();
    // The signals are heard once something was answered; a broken line is answered at once.
    server.raw_send("{broken\n");
    let mut server = server;
    assert_eq!(server.next().await["error"]["code"], -32700);
    server.process.signal(Signal::TERM);
    assert_eq!(server.end().await.0, Some(0));
}

#[tokio::test]
async fn the_server_is_always_the_eca_server() {
    let mut bare = Launch::new().arguments(&["server", "--stdio"]).bare();
    let line = json!({"jsonrpc": "2.0", "id": 1, "method": "chat", "params": {"message": "hi"}}).to_string();
    bare.input.write_all(format!("{line}\n").as_bytes()).unwrap();
    bare.input.write_all(&frame(&json!({"jsonrpc": "2.0", "method": "exit"}).to_string())).unwrap();
    let mut output = String::new();
    bare.output.read_to_string(&mut output).unwrap();
    assert!(output.is_empty() || output.starts_with("Content-Length: "), "{output}");
    assert_eq!(bare.process.wait().await.code(), Some(0));
}
