//! The sandbox, enforced by the real kernel: writing outside and the network are refused, the rest
//! works. A kernel without Landlock fails these tests: they cannot be passed there.

use std::path::{Path, PathBuf};

use eca::config::Sandbox;
use eca::process::sandbox::{NetworkBlock, support};
use eca::tool::ToolContext;
use eca::tools::jobs::{JobStatus, Jobs};
use eca::tools::shell::ShellCommand;
use serde_json::json;

use super::support::{call, context, sandboxed};
use super::{escape_artists, is_alive, pids_in, use_the_built_guard, wait_until};

async fn run(command: &str, context: &ToolContext) -> (bool, String) {
    call(&ShellCommand::new(Jobs::default()), json!({"command": command}), context).await
}

/// A workspace, and a neighbour of it that belongs to somebody else.
struct Place {
    _all: tempfile::TempDir,
    root: PathBuf,
    outside: PathBuf,
}

fn place() -> Place {
    let all = tempfile::tempdir().unwrap();
    let base = dunce::canonicalize(all.path()).unwrap();
    let (root, outside) = (base.join("root"), base.join("outside"));
    std::fs::create_dir(&root).unwrap();
    std::fs::create_dir(&outside).unwrap();
    std::fs::write(outside.join("theirs"), "kept").unwrap();
    Place { _all: all, root, outside }
}

#[tokio::test]
async fn this_kernel_can_do_it_and_the_server_stays_free() {
    use_the_built_guard();
    let support = support().await;
    assert!(support.is_usable(), "{}", support.describe());
    assert_eq!(support.network, NetworkBlock::All);
    // The probe confined another process, not this one.
    std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    std::fs::write(place().outside.join("x"), "").unwrap();
}

#[tokio::test]
async fn the_workspace_is_writable_and_nothing_else() {
    let place = place();
    let (outside, context) = (place.outside.display(), sandboxed(&place.root, Sandbox::WorkspaceWrite));
    let (error, output) = run(
        "mkdir a && echo x > a/f && mv a/f g && chmod 600 g && ln -s g l && rm -r a && cat g && echo $ECA_SANDBOX",
        &context,
    )
    .await;
    assert_eq!((error, output.as_str()), (false, "Exit code: 0\nStdout:\nx\nworkspace-write"));
    for attempt in [
        format!("echo x > {outside}/new"),
        format!("echo x >> {outside}/theirs"),
        format!("truncate -s 0 {outside}/theirs"),
        format!("perl -e 'truncate(\"{outside}/theirs\", 0) or die $!'"),
        format!("rm {outside}/theirs"),
        format!("mv {outside}/theirs ."),
        format!("mv g {outside}/"),
        format!("mkdir {outside}/d"),
        format!("ln {outside}/theirs hard && echo x > hard"),
        format!("ln -s {outside}/theirs soft && echo x > soft"),
        format!("cd {outside} && ln -s /etc e"),
    ] {
        let (error, output) = run(&attempt, &context).await;
        assert!(error && output.contains("sandbox (workspace-write)"), "{attempt}: {output}");
    }
    assert_eq!(std::fs::read_to_string(place.outside.join("theirs")).unwrap(), "kept");
    assert_eq!(std::fs::read_dir(&place.outside).unwrap().count(), 1);
    assert!(!run(&format!("cat {outside}/theirs /etc/hostname; ls / > /dev/null"), &context).await.0);
}

#[tokio::test]
async fn read_only_changes_nothing() {
    let place = place();
    std::fs::write(place.root.join("file"), "kept").unwrap();
    let context = sandboxed(&place.root, Sandbox::ReadOnly);
    for attempt in ["echo x > new", "echo x > file", "rm file", "chmod 000 file", "chown 1:1 file", "touch new"] {
        let (error, output) = run(attempt, &context).await;
        assert!(error && output.contains("sandbox (read-only)"), "{attempt}: {output}");
    }
    let (error, output) = run("cat file; echo x > /dev/null; echo y > /dev/stderr; echo $ECA_SANDBOX", &context).await;
    assert_eq!((error, output.as_str()), (false, "Exit code: 0\nStderr:\ny\nStdout:\nkeptread-only"));
    assert_eq!(std::fs::read_dir(&place.root).unwrap().count(), 1);
}

#[tokio::test]
async fn there_is_no_network() {
    let place = place();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let free = context(Some(&place.root));
    let attempts = [
        format!("exec 3<>/dev/tcp/127.0.0.1/{port}"),
        format!("exec 3<>/dev/udp/127.0.0.1/{port}"),
        "perl -MSocket -e 'socket(S, PF_INET, SOCK_STREAM, 0) or die $!'".to_owned(),
        "perl -MSocket -e 'socket(S, PF_INET6, SOCK_DGRAM, 0) or die $!'".to_owned(),
        // Netlink, which could change routes.
        "perl -MSocket -e 'socket(S, 16, SOCK_RAW, 0) or die $!'".to_owned(),
    ];
    for attempt in &attempts {
        assert!(!run(attempt, &free).await.0, "{attempt} should work without a sandbox");
        for sandbox in [Sandbox::ReadOnly, Sandbox::WorkspaceWrite] {
            let (error, output) = run(attempt, &sandboxed(&place.root, sandbox)).await;
            assert!(error && output.contains("no network"), "{attempt}: {output}");
        }
    }
    let pair = "perl -MSocket -e 'socketpair(A, B, AF_UNIX, SOCK_STREAM, 0) or die $!'";
    let local = "perl -MSocket -e 'socket(S, PF_UNIX, SOCK_STREAM, 0) or die $!; bind(S, pack_sockaddr_un(\"s\")) or die $!; \
                 listen(S, 1); socket(C, PF_UNIX, SOCK_STREAM, 0); connect(C, pack_sockaddr_un(\"s\")) or die $!'";
    assert!(!run(pair, &sandboxed(&place.root, Sandbox::ReadOnly)).await.0);
    let (error, output) = run(local, &sandboxed(&place.root, Sandbox::WorkspaceWrite)).await;
    assert!(!error, "{output}");
}

#[tokio::test]
async fn a_local_server_is_out_of_reach_of_the_read_only() {
    let place = place();
    let socket = place.root.join("socket");
    let _listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    let attempt = format!(
        "perl -MSocket -e 'socket(S, PF_UNIX, SOCK_STREAM, 0); connect(S, pack_sockaddr_un(\"{}\")) or die $!'",
        socket.display()
    );
    assert!(!run(&attempt, &context(Some(&place.root))).await.0);
    assert!(run(&attempt, &sandboxed(&place.root, Sandbox::ReadOnly)).await.0);
}

#[tokio::test]
async fn others_cannot_be_signalled() {
    let place = place();
    let mut other = std::process::Command::new("sleep").arg("600").spawn().unwrap();
    let pid = other.id();
    let (error, output) = run(&format!("kill -9 {pid}"), &sandboxed(&place.root, Sandbox::WorkspaceWrite)).await;
    let alive = is_alive(i32::try_from(pid).unwrap());
    other.kill().unwrap();
    other.wait().unwrap();
    assert!(error && alive, "{output}");
    let own = "sleep 600 & kill $! && wait $!; echo $?";
    assert!(run(own, &sandboxed(&place.root, Sandbox::WorkspaceWrite)).await.1.ends_with("143"));
}

fn folder_in(output: &str) -> &Path {
    Path::new(output.lines().last().unwrap())
}

#[tokio::test]
async fn each_run_has_a_temporary_folder_of_its_own() {
    let place = place();
    let context = sandboxed(&place.root, Sandbox::ReadOnly);
    let command = "f=$(mktemp) && echo x > $f && cat $f && test $f != ${f#$TMPDIR} && mkdir -p $TMPDIR/a/b && stat -c %a $TMPDIR && \
                   echo $TMPDIR";
    let (error, output) = run(command, &context).await;
    assert!(!error && output.starts_with("Exit code: 0\nStdout:\nx\n700\n"), "{output}");
    let (_, other) = run("echo $TMPDIR", &context).await;
    assert!(folder_in(&output).is_absolute() && folder_in(&output) != folder_in(&other), "{output} {other}");
    for folder in [folder_in(&output), folder_in(&other)] {
        assert!(!folder.exists(), "{}", folder.display());
    }
}

#[tokio::test]
async fn a_sandboxed_tree_is_killed_and_its_folder_removed() {
    let place = place();
    let context = sandboxed(&place.root, Sandbox::WorkspaceWrite);
    let pids_file = place.root.join("pids");
    let command = format!("echo $TMPDIR > folder; touch $TMPDIR/x; {}", escape_artists(&pids_file));
    let stop = context.stop.clone();
    let stopped = async {
        let pids = pids_in(&pids_file, 3).await;
        stop.cancel();
        pids
    };
    let ((_, output), pids) = tokio::join!(run(&command, &context), stopped);
    assert!(output.contains("stopped"), "{output}");
    wait_until("all are gone", || !pids.iter().any(|pid| is_alive(*pid))).await;
    let folder = std::fs::read_to_string(place.root.join("folder")).unwrap();
    wait_until("the folder is gone", || !Path::new(folder.trim()).exists()).await;
}

#[tokio::test]
async fn the_planning_agent_reads_only() {
    let place = place();
    let mut context = context(Some(&place.root));
    context.agent = "plan".to_owned();
    assert!(run("echo x > new", &context).await.0);
    assert!(!place.root.join("new").exists());
    assert!(!run("ls", &context).await.0);
}

#[tokio::test]
async fn jobs_are_sandboxed_too() {
    let place = place();
    let context = sandboxed(&place.root, Sandbox::ReadOnly);
    let jobs = Jobs::default();
    let arguments = json!({"command": "echo x > new", "background": "writer"});
    let (error, output) = call(&ShellCommand::new(jobs.clone()), arguments, &context).await;
    assert!(error && output.contains("sandbox (read-only)"), "{output}");
    assert!(!place.root.join("new").exists());
    assert!(jobs.list().iter().all(|job| job.status != JobStatus::Running));
}

#[tokio::test]
async fn rights_are_not_gained() {
    let place = place();
    let context = sandboxed(&place.root, Sandbox::ReadOnly);
    let (_, output) = run("grep NoNewPrivs /proc/self/status", &context).await;
    assert!(output.ends_with('1'), "{output}");
}

#[tokio::test]
async fn git_works_as_far_as_it_may() {
    let place = place();
    let write = sandboxed(&place.root, Sandbox::WorkspaceWrite);
    let commit = "git init -q . && echo x > f && git add f && \
                  git -c user.name=N -c user.email=n@example.org commit -q -m first && git log --oneline";
    let (error, output) = run(commit, &write).await;
    assert!(!error && output.contains("first"), "{output}");
    let (error, output) =
        run("git status --short && git diff && git log --format=%s", &sandboxed(&place.root, Sandbox::ReadOnly)).await;
    assert_eq!((error, output.as_str()), (false, "Exit code: 0\nStdout:\nfirst"));
}
