//! The whole way from an editor to an MCP server: however it ends, no process is left.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::{Value, json};

use super::fake_mcp::{self, HABITS, PIDS};
use super::{guard, is_alive, pids_in, wait_until};

/// Where the editor of the last tests keeps everything.
const HOME: &str = "ECA_TEST_EDITOR_HOME";

/// A configuration with one MCP server that has a family.
fn prepare(home: &Path) {
    let (command, args) = fake_mcp::command();
    let env = json!({HABITS: "family", PIDS: home.join("pids")});
    let config = json!({"localDiscovery": false, "modelsDev": false,
        "mcpServers": {"fake": {"command": command, "args": args, "env": env}}});
    std::fs::write(home.join("config.json"), config.to_string()).unwrap();
}

/// The real program, as an editor starts it.
fn start(home: &Path) -> (Child, ChildStdin, BufReader<ChildStdout>) {
    let (server, mut input, output) = greet(Path::new(env!("CARGO_BIN_EXE_eca")), home);
    initialized(&mut input);
    (server, input, output)
}

/// An executable that is started and asked who it is; it starts nothing before it is told more.
fn greet(executable: &Path, home: &Path) -> (Child, ChildStdin, BufReader<ChildStdout>) {
    let mut server = Command::new(executable)
        .args(["server", "--config-file"])
        .arg(home.join("config.json"))
        .env("HOME", home)
        .envs([("XDG_CONFIG_HOME", ""), ("XDG_DATA_HOME", ""), ("XDG_CACHE_HOME", "")])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut input = server.stdin.take().unwrap();
    let output = BufReader::new(server.stdout.take().unwrap());
    let initialize = json!({"processId": std::process::id(), "capabilities": {}, "workspaceFolders": []});
    send(&mut input, &json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": initialize}));
    (server, input, output)
}

fn initialized(input: &mut ChildStdin) {
    send(input, &json!({"jsonrpc": "2.0", "method": "initialized", "params": {}}));
}

fn send(input: &mut ChildStdin, message: &Value) {
    let body = message.to_string();
    write!(input, "Content-Length: {}\r\n\r\n{body}", body.len()).unwrap();
    input.flush().unwrap();
}

fn next(output: &mut BufReader<ChildStdout>) -> Option<Value> {
    let mut length = 0;
    loop {
        let mut line = String::new();
        if output.read_line(&mut line).unwrap() == 0 {
            return None;
        }
        match line.trim_end().split_once(": ") {
            Some(("Content-Length", value)) => length = value.parse().unwrap(),
            _ => break,
        }
    }
    let mut body = vec![0; length];
    output.read_exact(&mut body).unwrap();
    Some(serde_json::from_slice(&body).unwrap())
}

/// The server and its family, once it runs.
async fn family(home: &Path) -> Vec<i32> {
    let pids = pids_in(&home.join("pids"), 2).await;
    assert!(pids.iter().all(|pid| is_alive(*pid)));
    pids
}

async fn all_gone(pids: &[i32]) {
    wait_until("all are gone", || !pids.iter().any(|pid| is_alive(*pid))).await;
}

#[tokio::test]
async fn nothing_is_left_after_a_normal_end() {
    let home = tempfile::tempdir().unwrap();
    prepare(home.path());
    let (mut server, mut input, mut output) = start(home.path());
    while let Some(message) = next(&mut output) {
        if message["params"]["type"] == "mcp" && message["params"]["status"] == "running" {
            break;
        }
    }
    let pids = family(home.path()).await;
    send(&mut input, &json!({"jsonrpc": "2.0", "id": 2, "method": "shutdown"}));
    while let Some(message) = next(&mut output) {
        if message["id"] == 2 {
            break;
        }
    }
    send(&mut input, &json!({"jsonrpc": "2.0", "method": "exit"}));
    assert_eq!(server.wait().unwrap().code(), Some(0));
    all_gone(&pids).await;
}

#[tokio::test]
async fn nothing_is_left_after_kill_9_of_the_program() {
    let home = tempfile::tempdir().unwrap();
    prepare(home.path());
    let (mut server, _input, _output) = start(home.path());
    let pids = family(home.path()).await;
    server.kill().unwrap();
    server.wait().unwrap();
    all_gone(&pids).await;
}

/// What an update of the files does to a server that runs.
#[tokio::test]
async fn a_server_whose_files_were_replaced_still_starts_and_ends_programs() {
    let (home, installed) = (tempfile::tempdir().unwrap(), guard::Installation::of_another_version());
    prepare(home.path());
    let (mut server, mut input, mut output) = greet(&installed.executable, home.path());
    assert_eq!(next(&mut output).unwrap()["id"], 1);
    std::fs::remove_file(&installed.executable).unwrap();
    std::fs::write(&installed.executable, "another version").unwrap();
    initialized(&mut input);
    let pids = family(home.path()).await;
    let guard = guard::executable_of(guard::parent_of(pids[0]));
    assert_eq!(guard, Path::new(&format!("{} (deleted)", installed.executable.display())));
    server.kill().unwrap();
    server.wait().unwrap();
    all_gone(&pids).await;
}

/// The other half of the next test: an editor that is killed.
#[test]
fn editor() {
    let Some(home) = std::env::var_os(HOME) else { return };
    let home = Path::new(&home);
    let (server, _input, _output) = start(home);
    std::fs::write(home.join("server"), server.id().to_string()).unwrap();
    loop {
        std::thread::park();
    }
}

#[tokio::test]
async fn nothing_is_left_after_kill_9_of_the_editor() {
    let home = tempfile::tempdir().unwrap();
    prepare(home.path());
    let mut editor = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "mcp_editor::editor", "--nocapture"])
        .env(HOME, home.path())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut pids = family(home.path()).await;
    pids.extend(pids_in(&home.path().join("server"), 1).await);
    editor.kill().unwrap();
    editor.wait().unwrap();
    all_gone(&pids).await;
}
