//! `eca chat` and the command line, as a shell runs them: the real binary with a home of its own,
//! without network.

// The whole file is a test, which clippy knows only of its test functions.
#![allow(clippy::unwrap_used, clippy::panic)]

mod chats;
mod pages;

use std::io::{Read, Write};
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use serde_json::Value;

/// Nothing here takes long; a test that hangs must fail.
const HANG: Duration = Duration::from_secs(60);

struct Home(tempfile::TempDir);

impl Home {
    fn new() -> Self {
        let home = Self(tempfile::tempdir().unwrap());
        std::fs::write(home.path("config.json"), r#"{"localDiscovery": false}"#).unwrap();
        home
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.0.path().join(name)
    }

    fn eca(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_eca"));
        command.args(args).env_clear().env("HOME", self.0.path()).current_dir(self.0.path());
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// `eca chat` with the configuration that looks for nothing.
    fn chat(&self, args: &[&str]) -> Command {
        let config = self.path("config.json").display().to_string();
        self.eca(&[&["chat", "--config-file", &config][..], args].concat())
    }
}

struct Ran {
    code: Option<i32>,
    out: String,
    err: String,
}

fn run(mut command: Command) -> Ran {
    wait(command.spawn().unwrap())
}

fn run_with_stdin(mut command: Command, input: &[u8]) -> Ran {
    let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(input).unwrap();
    wait(child)
}

fn wait(child: Child) -> Ran {
    #[cfg(unix)]
    let pid = rustix::process::Pid::from_child(&child);
    let (sender, done) = mpsc::channel();
    std::thread::spawn(move || sender.send(child.wait_with_output()));
    let Ok(output) = done.recv_timeout(HANG) else {
        #[cfg(unix)]
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
        panic!("eca does not end");
    };
    let Output { status, stdout, stderr } = output.unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    Ran { code: status.code(), out: text(stdout), err: text(stderr) }
}

/// Waits for the first byte of the answer.
fn first_byte(child: &mut Child) -> u8 {
    let mut byte = [0];
    child.stdout.as_mut().unwrap().read_exact(&mut byte).unwrap();
    byte[0]
}

#[test]
fn one_question_gives_the_answer_and_nothing_else() {
    let ran = run(Home::new().chat(&["show", "code"]));
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    assert!(ran.out.starts_with("Here is a code block"), "{}", ran.out);
    assert!(ran.out.contains("```rust\n") && ran.out.ends_with(".\n") && !ran.out.contains('\u{1b}'), "{}", ran.out);
    assert_eq!(ran.err, "");
}

#[test]
fn reasoning_is_not_part_of_the_answer() {
    let ran = run(Home::new().chat(&["think"]));
    assert_eq!(ran.code, Some(0));
    assert!(ran.err.contains("not real thinking") && !ran.out.contains("not real thinking"), "{} {}", ran.out, ran.err);
}

#[test]
fn a_question_may_be_piped_in() {
    let home = Home::new();
    let ran = run_with_stdin(home.chat(&[]), b"code\n");
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""));
    assert!(ran.out.contains("```rust\n"), "{}", ran.out);
    // Beside a question, it is what the question is about.
    let ran = run_with_stdin(home.chat(&["code"]), b"error\n");
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""));
    assert!(ran.out.contains("```rust\n"), "{}", ran.out);
}

#[test]
fn json_lines_say_what_an_editor_would_be_sent() {
    let home = Home::new();
    let plain = run(home.chat(&["code"]));
    let ran = run(home.chat(&["--json", "code"]));
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""));
    let lines: Vec<Value> = ran.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    for line in &lines {
        let mut keys: Vec<&String> = line.as_object().unwrap().keys().collect();
        keys.sort();
        assert_eq!(keys, ["method", "params"], "{line}");
    }
    let answer: String = lines
        .iter()
        .filter(|line| line["method"] == "chat/contentReceived" && line["params"]["role"] == "assistant")
        .filter_map(|line| line["params"]["content"]["text"].as_str())
        .collect();
    assert_eq!(answer, plain.out);
    let last = lines.last().unwrap();
    assert_eq!(last["params"]["content"]["state"], "finished", "{last}");
    let statuses: Vec<&Value> = lines
        .iter()
        .filter(|line| line["method"] == "chat/statusChanged")
        .map(|line| &line["params"]["status"])
        .collect();
    assert_eq!(statuses, ["running", "idle"]);
}

#[test]
fn a_failed_turn_is_told_by_the_exit_code() {
    let home = Home::new();
    let ran = run(home.chat(&["--model", "nowhere/nothing", "hello"]));
    assert_eq!((ran.code, ran.out.as_str()), (Some(1), ""));
    assert!(ran.err.starts_with("error: There is no model named `nowhere/nothing`."), "{}", ran.err);
    let ran = run(home.chat(&["error"]));
    assert_eq!(ran.code, Some(1), "{} {}", ran.out, ran.err);
    assert!(ran.err.starts_with("error: "), "{}", ran.err);
    let ran = run(home.chat(&["--json", "--model", "nowhere/nothing", "hello"]));
    assert_eq!(ran.code, Some(1));
    assert!(ran.out.contains("There is no model named") && ran.out.contains("\"finished\""), "{}", ran.out);
}

#[test]
fn what_is_not_asked_properly() {
    let home = Home::new();
    for (args, complaint) in [
        (&["--nonsense", "hello"][..], "--nonsense"),
        (&["--model"], "--model"),
        (&["--agent", "nobody", "hello"], "no agent named"),
        (&["--config-file", "/nowhere/at/all.json", "hello"], "does not exist"),
        (&[" "], "no question"),
        (&[], "no question"),
    ] {
        let ran = run(home.chat(args));
        assert_eq!((ran.code, ran.out.as_str()), (Some(2), ""), "{args:?}: {}", ran.err);
        assert!(ran.err.contains(complaint), "{args:?}: {}", ran.err);
    }
    let ran = run_with_stdin(home.chat(&["what is this?"]), b"\x7fELF\0\0");
    assert_eq!(ran.code, Some(2));
    assert!(ran.err.contains("not text"), "{}", ran.err);
}

#[test]
fn a_broken_configuration_is_told_and_the_rest_works() {
    let home = Home::new();
    std::fs::write(home.path("config.json"), r#"{"localDiscovery": false, "providers": 7}"#).unwrap();
    let ran = run(home.chat(&["code"]));
    assert_eq!(ran.code, Some(0));
    assert!(ran.err.starts_with("warning: configuration: ") && ran.err.contains("providers"), "{}", ran.err);
    let ran = run(home.chat(&["--json", "code"]));
    let first: Value = serde_json::from_str(ran.out.lines().next().unwrap()).unwrap();
    assert_eq!((&first["method"], &first["params"]["type"]), (&"$/showMessage".into(), &"warning".into()));
}

#[test]
fn help_and_version() {
    let home = Home::new();
    let version = run(home.eca(&["--version"]));
    assert_eq!((version.code, version.out), (Some(0), format!("eca {}\n", env!("CARGO_PKG_VERSION"))));
    let help = run(home.eca(&["--help"]));
    assert_eq!(help.code, Some(0));
    assert!(help.out.contains("Examples:") && help.err.is_empty());
    assert!(help.out.contains("copilot") && help.out.contains("stdio"), "{}", help.out);
    for command in ["acp", "copilot", "stdio"] {
        let help = run(home.eca(&[command, "--help"]));
        assert!(help.code == Some(0) && help.out.contains("--config-file"), "{}", help.out);
    }
    let help = run(home.eca(&["chat", "--help"]));
    assert!(help.code == Some(0) && help.out.contains("--json"), "{}", help.out);
}

#[cfg(unix)]
#[test]
fn an_interrupt_stops_the_answer() {
    use rustix::process::{Pid, Signal, kill_process};
    let home = Home::new();
    for (signal, args, code) in [
        (Signal::INT, &["stream 5000 words"][..], 130),
        (Signal::INT, &["--json", "stream 5000 words"], 130),
        (Signal::TERM, &["stream 5000 words"], 143),
    ] {
        let mut child = home.chat(args).spawn().unwrap();
        first_byte(&mut child);
        kill_process(Pid::from_child(&child), signal).unwrap();
        let ran = wait(child);
        assert_eq!(ran.code, Some(code), "{args:?}: {}", ran.err);
        assert!(ran.out.split_whitespace().count() < 5000);
        if signal == Signal::INT && args.len() == 1 {
            assert!(ran.out.ends_with('\n') && ran.err.trim() == "Stopped.", "{:?}", ran.err);
        }
    }
}

#[cfg(unix)]
#[test]
fn an_interrupt_ends_the_reading_of_a_pipe_too() {
    use rustix::process::{Pid, Signal, kill_process};
    let home = Home::new();
    let mut child = home.chat(&["--log-level", "debug"]).stdin(Stdio::piped()).spawn().unwrap();
    // Half of a question, and no end; the pipe is read once it is empty again.
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(&vec![b'x'; 256 * 1024]).unwrap();
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    assert_eq!(wait(child).code, Some(130));
    drop(stdin);
}

#[test]
fn a_reader_that_leaves_early_is_no_error() {
    let home = Home::new();
    for args in [&["stream 5000 words"][..], &["--json", "stream 5000 words"]] {
        let mut child = home.chat(args).spawn().unwrap();
        first_byte(&mut child);
        drop(child.stdout.take());
        let ran = wait(child);
        assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""), "{args:?}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn an_answer_that_cannot_be_written_is_an_error() {
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let home = Home::new();
    let mut command = home.chat(&["code"]);
    command.stdout(full);
    let ran = run(command);
    assert_eq!(ran.code, Some(1));
    assert!(ran.err.contains("cannot be written") && !ran.err.contains("panic"), "{}", ran.err);
}

#[test]
fn the_configuration_can_be_looked_at_and_trusted() {
    let home = Home::new();
    let ran = run(home.eca(&["config", "schema"]));
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    let schema: Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!(schema["properties"]["defaultModel"]["type"][0], "string");

    let canary = home.path("canary");
    std::fs::create_dir_all(home.path(".config/eca")).unwrap();
    std::fs::create_dir_all(home.path("repo/.eca")).unwrap();
    let own = r#"{"localDiscovery": false, "defualtModel": "x", "providers": {"p": {"key": "sk-secret"}}}"#;
    std::fs::write(home.path(".config/eca/config.json"), own).unwrap();
    let theirs = format!(r#"{{"defaultAgent": "plan", "welcomeMessage": "${{cmd:touch {}}}"}}"#, canary.display());
    std::fs::write(home.path("repo/.eca/config.json"), theirs).unwrap();
    let in_repo = |args: &[&str]| {
        let mut command = home.eca(args);
        command.current_dir(home.path("repo"));
        run(command)
    };
    let shown = in_repo(&["config", "show"]);
    assert_eq!(shown.code, Some(0), "{}", shown.err);
    assert!(shown.out.contains("\"defaultAgent\": \"plan\"") && !shown.out.contains("sk-secret"), "{}", shown.out);
    assert!(shown.err.contains("did you mean \"defaultModel\"?") && shown.err.contains("Not trusted"), "{}", shown.err);

    let asked = in_repo(&["trust"]);
    assert_eq!(asked.code, Some(1), "without a terminal nobody can agree");
    assert!(asked.out.contains("welcomeMessage could"), "{}", asked.out);
    let chat = in_repo(&["chat", "code"]);
    assert!(chat.code == Some(0) && chat.err.contains("not trusted") && !canary.exists(), "{}", chat.err);
    assert_eq!(in_repo(&["trust", "--yes"]).code, Some(0));
    assert!(!canary.exists(), "trusting runs nothing yet");
    assert_eq!(in_repo(&["trust", "--list"]).out.lines().count(), 1);
    assert_eq!(in_repo(&["chat", "code"]).code, Some(0));
    assert!(canary.exists());
    std::fs::remove_file(&canary).unwrap();
    assert_eq!(in_repo(&["trust", "--revoke"]).code, Some(0));
    assert_eq!(in_repo(&["chat", "code"]).code, Some(0));
    assert!(!canary.exists());
}
