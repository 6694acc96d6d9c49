//! Real processes: programs that the server starts, of which nothing outlives its leash, and
//! servers that are killed, of whose chats nothing is lost.
//!
//! These run the guard of the built executable, which unit tests cannot.
#![cfg(target_os = "linux")]
#![allow(unreachable_pub, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "../support/authority.rs"]
mod authority;
#[path = "../support/web.rs"]
mod web;

mod custom;
mod fake_mcp;
mod git;
mod guard;
mod hooks;
mod jobs;
mod mcp;
mod mcp_editor;
mod mcp_http;
mod mcp_real;
mod sandbox;
mod shell;
mod support;

mod history;

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use eca::process::spawn::{self, RunError};

/// Longer than anything here takes; a test that waits so long has failed.
const HANG_GUARD: Duration = Duration::from_secs(20);

/// Names another executable than the built one, for tests that are run once more with it.
const EXECUTABLE: &str = "ECA_TEST_EXECUTABLE";

/// The server's executable and what lies beside it; a process chooses once.
fn use_the_built_guard() {
    let executable = std::env::var_os(EXECUTABLE).unwrap_or_else(|| env!("CARGO_BIN_EXE_eca").into());
    eca::process::guard::use_executable(executable.into());
}

fn is_alive(pid: i32) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/stat"))
        .is_ok_and(|stat| !stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('Z')))
}

async fn wait_until(what: &str, mut condition: impl FnMut() -> bool) {
    let started = Instant::now();
    while !condition() {
        assert!(started.elapsed() < HANG_GUARD, "{what} did not come true");
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

async fn pids_in(file: &Path, count: usize) -> Vec<i32> {
    let read = || -> Vec<i32> {
        let text = std::fs::read_to_string(file).unwrap_or_default();
        text.lines().filter_map(|line| line.trim().parse().ok()).collect()
    };
    wait_until("the programs wrote their numbers", || read().len() >= count).await;
    read()
}

/// One that stays, one in a session of its own, and one that forked twice.
fn escape_artists(pids: &Path) -> String {
    let file = pids.display();
    format!(
        "echo $$ >> {file}; setsid sh -c 'echo $$ >> {file}; exec sleep 600' & \
         (sh -c 'echo $$ >> {file}; trap \"\" TERM; while :; do sleep 600; done' &) ; wait; sleep 600"
    )
}

#[tokio::test]
async fn a_dropped_leash_takes_the_whole_tree_down() {
    use_the_built_guard();
    let directory = tempfile::tempdir().unwrap();
    let pids_file = directory.path().join("pids");
    let mut guarded = spawn::guarded("bash", ["-c", &escape_artists(&pids_file)]).unwrap();
    guarded.command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let (mut child, leash) = guarded.spawn().unwrap();
    let pids = pids_in(&pids_file, 3).await;
    assert!(pids.iter().all(|pid| is_alive(*pid)));
    drop(leash);
    tokio::time::timeout(HANG_GUARD, child.wait()).await.expect("the guard ends").unwrap();
    wait_until("all are gone", || !pids.iter().any(|pid| is_alive(*pid))).await;
}

/// The other half of the next test: a program that starts one and is then killed.
#[test]
fn holder_of_a_leash() {
    let Some(pids_file) = std::env::var_os("ECA_TEST_HOLD_LEASH") else { return };
    use_the_built_guard();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let mut guarded = spawn::guarded("bash", ["-c", &escape_artists(Path::new(&pids_file))]).unwrap();
        guarded.command.stdin(Stdio::null());
        let (_child, _leash) = guarded.spawn().unwrap();
        std::future::pending::<()>().await;
    });
}

#[tokio::test]
async fn nothing_is_left_after_kill_9_of_the_server() {
    let directory = tempfile::tempdir().unwrap();
    let pids_file = directory.path().join("pids");
    let mut holder = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "holder_of_a_leash", "--nocapture"])
        .env("ECA_TEST_HOLD_LEASH", &pids_file)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let pids = pids_in(&pids_file, 3).await;
    holder.kill().unwrap();
    holder.wait().unwrap();
    wait_until("all are gone", || !pids.iter().any(|pid| is_alive(*pid))).await;
}

#[tokio::test]
async fn what_a_program_leaves_behind_ends_with_it() {
    use_the_built_guard();
    let directory = tempfile::tempdir().unwrap();
    let pids_file = directory.path().join("pids");
    let text =
        format!("setsid sh -c 'echo $$ > {}; exec sleep 600' > /dev/null 2>&1 & echo started", pids_file.display());
    let output = spawn::shell(&text, None, HANG_GUARD, 1024).await.unwrap();
    assert_eq!((output.code, output.stdout.as_slice()), (Some(0), b"started\n".as_slice()));
    let left: Vec<i32> = std::fs::read_to_string(&pids_file).unwrap_or_default().lines().flat_map(str::parse).collect();
    wait_until("it is gone", || !left.iter().any(|pid| is_alive(*pid))).await;
}

#[tokio::test]
async fn output_is_bounded_and_codes_are_kept() {
    use_the_built_guard();
    let output = spawn::shell("yes | head -c 100000; echo oops >&2; exit 7", None, HANG_GUARD, 10).await.unwrap();
    assert_eq!(output.code, Some(7));
    assert_eq!(output.stdout.len(), 10);
    assert_eq!(output.stderr, b"oops\n");
    let killed = spawn::shell("kill -9 $$", None, HANG_GUARD, 10).await.unwrap();
    assert_eq!(killed.code, Some(137));
}

#[tokio::test]
async fn a_program_that_takes_too_long_is_killed() {
    use_the_built_guard();
    let directory = tempfile::tempdir().unwrap();
    let pids_file = directory.path().join("pids");
    let text = format!("echo $$ > {}; sleep 600", pids_file.display());
    let error = spawn::shell(&text, None, Duration::from_millis(300), 10).await.unwrap_err();
    assert!(matches!(error, RunError::Timeout(_)), "{error}");
    let pids = pids_in(&pids_file, 1).await;
    wait_until("it is gone", || !pids.iter().any(|pid| is_alive(*pid))).await;
}

#[tokio::test]
async fn a_missing_program_is_reported_like_a_shell_does() {
    use_the_built_guard();
    let mut guarded = spawn::guarded("no-such-program-at-all", ["x"]).unwrap();
    guarded.command.stdin(Stdio::null()).stderr(Stdio::piped());
    let (child, _leash) = guarded.spawn().unwrap();
    let output = child.wait_with_output().await.unwrap();
    assert_eq!(output.status.code(), Some(127));
    assert!(String::from_utf8_lossy(&output.stderr).contains("no-such-program-at-all"));
}

#[tokio::test]
async fn children_get_the_original_limit_of_open_files() {
    use_the_built_guard();
    let before = Command::new("bash").args(["-c", "ulimit -Sn"]).output().unwrap().stdout;
    eca::process::limits::raise_nofile();
    let output = spawn::shell("ulimit -Sn", None, HANG_GUARD, 100).await.unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&before));
}
