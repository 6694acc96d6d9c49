//! Who guards: the small program beside the server, the server itself where there is none, and
//! whatever is right when the two are of different versions.

use std::fs::Permissions;
use std::io::{BufRead, BufReader, Read};
use std::os::fd::AsRawFd;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use eca::process::spawn;
use rustix::io::{FdFlags, fcntl_setfd};
use rustix::pipe::{PipeFlags, pipe_with};

use super::{EXECUTABLE, HANG_GUARD, is_alive, use_the_built_guard, wait_until};

const ECA: &str = env!("CARGO_BIN_EXE_eca");
const SMALL: &str = env!("CARGO_BIN_EXE_eca-guard");

/// Who is expected to guard, in tests that are run once more.
const GUARD: &str = "ECA_TEST_GUARD";

/// What a guard is for. Each has to hold whoever guards.
const DUTIES: [&str; 10] = [
    "guard::the_right_one_guards",
    "a_dropped_leash_takes_the_whole_tree_down",
    "nothing_is_left_after_kill_9_of_the_server",
    "output_is_bounded_and_codes_are_kept",
    "a_missing_program_is_reported_like_a_shell_does",
    "children_get_the_original_limit_of_open_files",
    "shell::there_is_no_input_and_the_environment_says_who_we_are",
    "sandbox::this_kernel_can_do_it_and_the_server_stays_free",
    "sandbox::the_workspace_is_writable_and_nothing_else",
    "sandbox::a_sandboxed_tree_is_killed_and_its_folder_removed",
];

/// The server's executable in a folder of its own, and what lies beside it.
pub struct Installation {
    pub executable: PathBuf,
    folder: tempfile::TempDir,
}

impl Installation {
    pub fn alone() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let executable = dunce::canonicalize(folder.path()).unwrap().join("eca");
        // The same as a copy, as far as anybody can tell, and faster.
        if std::fs::hard_link(ECA, &executable).is_err() {
            std::fs::copy(ECA, &executable).unwrap();
        }
        Self { executable, folder }
    }

    /// With a guard that takes every order for one of another version.
    pub fn of_another_version() -> Self {
        let installation = Self::alone();
        let script = "#!/bin/sh\ncommand=$1 executable=$5\nshift 5\n\
                      exec \"$SMALL\" \"$command\" --version 0.0.0 --executable \"$executable\" \"$@\"\n";
        installation.put_beside(&script.replace("$SMALL", SMALL), 0o755);
        installation
    }

    fn put_beside(&self, text: &str, mode: u32) {
        let file = self.folder.path().join("eca-guard");
        std::fs::write(&file, text).unwrap();
        std::fs::set_permissions(&file, Permissions::from_mode(mode)).unwrap();
    }

    /// Runs the tests of all duties once more, in a process that uses this.
    fn does_its_duties(&self) {
        let output = Command::new(std::env::current_exe().unwrap())
            .arg("--exact")
            .args(DUTIES)
            .env(EXECUTABLE, &self.executable)
            .env(GUARD, &self.executable)
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let text = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success(), "{text}");
        assert!(text.contains(&format!("{} passed", DUTIES.len())), "{text}");
    }
}

pub fn executable_of(pid: i32) -> PathBuf {
    std::fs::read_link(format!("/proc/{pid}/exe")).unwrap()
}

pub fn parent_of(pid: i32) -> i32 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    stat.rsplit_once(") ").unwrap().1.split(' ').nth(1).unwrap().parse().unwrap()
}

#[tokio::test]
async fn the_right_one_guards() {
    use_the_built_guard();
    let expected = std::env::var_os(GUARD).map_or_else(|| PathBuf::from(SMALL), PathBuf::from);
    let output = spawn::shell("readlink /proc/$PPID/exe", None, HANG_GUARD, 4096).await.unwrap();
    let found = String::from_utf8(output.stdout).unwrap();
    assert_eq!(Path::new(found.trim_end()), dunce::canonicalize(expected).unwrap());
}

#[test]
fn a_single_copied_file_guards_itself() {
    Installation::alone().does_its_duties();
}

#[test]
fn a_guard_that_cannot_be_run_is_passed_over() {
    let installation = Installation::alone();
    installation.put_beside("unpacked without its mode", 0o644);
    installation.does_its_duties();
}

#[test]
fn a_guard_of_another_version_hands_over() {
    Installation::of_another_version().does_its_duties();
}

/// A guard without a server around it, and the end of its leash.
fn order(executable: &Path, order: &[&str], program: &[&str]) -> (Child, std::os::fd::OwnedFd) {
    let (read, write) = pipe_with(PipeFlags::CLOEXEC).unwrap();
    fcntl_setfd(&read, FdFlags::empty()).unwrap();
    let child = Command::new(executable)
        .arg("__guard")
        .args(order)
        .args(["--control", &read.as_raw_fd().to_string(), "--"])
        .args(program)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    (child, write)
}

fn said(source: &mut Option<impl Read>) -> String {
    let mut text = String::new();
    source.as_mut().unwrap().read_to_string(&mut text).unwrap();
    text
}

#[tokio::test]
async fn whoever_is_given_an_order_of_another_version_becomes_the_one_who_gave_it() {
    let script = "echo $$; readlink /proc/$PPID/exe; exec sleep 600";
    for executable in [SMALL, ECA] {
        let other = ["--version", "0.0.0", "--executable", ECA];
        let (mut guard, leash) = order(Path::new(executable), &other, &["sh", "-c", script]);
        let mut lines = BufReader::new(guard.stdout.take().unwrap()).lines().map(Result::unwrap);
        let pid = lines.next().unwrap().parse().unwrap();
        assert_eq!(Path::new(&lines.next().unwrap()), dunce::canonicalize(ECA).unwrap());
        assert!(is_alive(pid));
        drop(leash);
        guard.wait().unwrap();
        wait_until("the program is gone", || !is_alive(pid)).await;
    }
}

#[test]
fn an_order_of_the_same_version_stays_where_it_is() {
    let same = ["--version", env!("CARGO_PKG_VERSION"), "--executable", "/missing"];
    let (mut guard, _leash) = order(Path::new(SMALL), &same, &["sh", "-c", "echo here; exit 7"]);
    assert_eq!((said(&mut guard.stdout).as_str(), guard.wait().unwrap().code()), ("here\n", Some(7)));
}

#[test]
fn orders_that_cannot_be_carried_out_say_why() {
    for (first, code, reason) in [
        (&["--version", "0.0.0", "--executable", "/missing/eca"][..], 127, "cannot start /missing/eca"),
        (&["--version", "0.0.0"], 2, "does not understand its order"),
        (&["--new-option", "x"], 2, "does not understand its order"),
    ] {
        let (mut guard, _leash) = order(Path::new(SMALL), first, &["true"]);
        let text = said(&mut guard.stderr);
        assert_eq!(guard.wait().unwrap().code(), Some(code), "{text}");
        assert!(text.contains(reason), "{text}");
    }
}

/// A second server would write many times as much, even in a debug build.
#[test]
fn a_waiting_guard_holds_little_memory() {
    let (mut guard, leash) = order(Path::new(SMALL), &[], &["sh", "-c", "echo started; exec sleep 600"]);
    let mut line = String::new();
    BufReader::new(guard.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line, "started\n");
    let memory = std::fs::read_to_string(format!("/proc/{}/smaps_rollup", guard.id())).unwrap();
    drop(leash);
    guard.wait().unwrap();
    // Not what is called dirty: that is also the program's own file, when it was built a moment ago.
    let own = memory.lines().find_map(|line| line.strip_prefix("Anonymous:")).unwrap();
    let kibibytes: u32 = own.trim().trim_end_matches(" kB").parse().unwrap();
    assert!(kibibytes < 512, "{memory}");
}

#[test]
fn people_who_start_it_are_told_what_it_is() {
    for (args, code, text) in [
        (&[][..], 1, "is started by eca"),
        (&["--help"], 1, "is started by eca"),
        (&["--version"], 0, concat!("eca-guard ", env!("CARGO_PKG_VERSION"))),
    ] {
        let output = Command::new(SMALL).args(args).stdin(Stdio::null()).output().unwrap();
        let said = [output.stdout, output.stderr].concat();
        assert_eq!(output.status.code(), Some(code));
        assert!(String::from_utf8(said).unwrap().contains(text));
    }
}
