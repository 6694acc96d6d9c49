//! Commands in the foreground: what they get, what they give, and that nothing of them is left.

use std::sync::Arc;

use eca::process::home;
use eca::tool::{Access, Details, Preview, Tool};
use eca::tools::jobs::Jobs;
use eca::tools::shell::ShellCommand;
use serde_json::json;

use super::support::{Watched, call, context, text};
use super::{escape_artists, is_alive, pids_in, wait_until};

fn shell() -> ShellCommand {
    ShellCommand::new(Jobs::default())
}

#[tokio::test]
async fn output_has_its_parts() {
    let context = context(Some(tempfile::tempdir().unwrap().path().parent().unwrap()));
    let (error, output) = call(&shell(), json!({"command": "echo out; echo err >&2"}), &context).await;
    assert_eq!((error, output.as_str()), (false, "Exit code: 0\nStderr:\nerr\nStdout:\nout"));
    let (error, output) = call(&shell(), json!({"command": "exit 3"}), &context).await;
    assert_eq!((error, output.as_str()), (true, "Exit code: 3"));
    let (_, output) =
        call(&shell(), json!({"command": "printf '\\033[31mred\\033[0m \\xff'; kill -9 $$"}), &context).await;
    assert_eq!(output, "Exit code: 137\nStdout:\nred \u{fffd}");
}

#[tokio::test]
async fn there_is_no_input_and_the_environment_says_who_we_are() {
    let context = context(Some(tempfile::tempdir().unwrap().path().parent().unwrap()));
    let command = "cat; read line || echo none; \"$ECA_EXECUTABLE\" --version";
    let (_, output) = call(&shell(), json!({"command": command}), &context).await;
    assert_eq!(output, format!("Exit code: 0\nStdout:\nnone\neca {}", env!("CARGO_PKG_VERSION")));
}

#[tokio::test]
async fn commands_run_where_they_should() {
    let root = tempfile::tempdir().unwrap();
    let root = dunce::canonicalize(root.path()).unwrap();
    std::fs::create_dir(root.join("sub dir")).unwrap();
    std::fs::write(root.join("file"), "").unwrap();
    let context_in_root = context(Some(&root));
    let place = async |arguments| call(&shell(), arguments, &context_in_root).await;
    let at = |path: &std::path::Path| format!("Exit code: 0\nStdout:\n{}", path.display());
    assert_eq!(place(json!({"command": "pwd"})).await.1, at(&root));
    for directory in ["sub dir".to_owned(), root.join("sub dir").display().to_string()] {
        let (_, output) = place(json!({"command": "pwd", "working_directory": directory})).await;
        assert_eq!(output, at(&root.join("sub dir")));
    }
    for bad in ["missing", "file"] {
        let (error, output) = place(json!({"command": "pwd", "working_directory": bad})).await;
        assert!(error && output.contains(bad), "{output}");
    }
    home::use_home(root.clone());
    assert_eq!(call(&shell(), json!({"command": "pwd"}), &context(None)).await.1, at(home::home().unwrap()));
}

#[tokio::test]
async fn previews_say_what_would_happen() {
    let root = tempfile::tempdir().unwrap();
    let root = dunce::canonicalize(root.path()).unwrap();
    let context = context(Some(&root));
    let preview = async |arguments: serde_json::Value| -> Result<Preview, String> {
        shell().preview(arguments.as_object().unwrap(), &context).await
    };
    let command = format!("cd {} && make\nall", root.display());
    let plain = preview(json!({"command": command})).await.unwrap();
    assert_eq!(plain.summary.as_deref(), Some("$ make all"));
    assert_eq!((plain.shell, plain.details, plain.paths.len()), (Some(command), None, 0));
    let named = preview(json!({"command": "ls", "working_directory": "/", "background": "x"})).await.unwrap();
    assert_eq!((named.paths[0].path.to_str(), named.paths[0].access), (Some("/"), Access::Read));
    assert!(matches!(named.details, Some(Details::ShellCommand(details)) if details.background));
    assert!(preview(json!({"command": "ls", "working_directory": "missing"})).await.is_err());
    assert!(preview(json!({"command": ""})).await.is_err());
}

#[tokio::test]
async fn a_flood_is_bounded_and_seen_from_both_ends() {
    let mut context = context(Some(tempfile::tempdir().unwrap().path().parent().unwrap()));
    let watched = Arc::new(Watched::default());
    context.live = watched.clone();
    let command = "echo begin; yes | head -c 20000000; echo end";
    let (_, output) = call(&shell(), json!({"command": command}), &context).await;
    assert!(output.starts_with("Exit code: 0\nStdout:\nbegin\ny\n") && output.ends_with("y\nend"));
    assert!(output.len() < 300 * 1024 && output.contains("bytes are left out"));
    let live = watched.text.lock().unwrap();
    assert!(live.starts_with("begin\n") && live.len() < 300 * 1024);
}

#[tokio::test]
async fn time_is_limited_and_nothing_is_left() {
    let directory = tempfile::tempdir().unwrap();
    let pids_file = directory.path().join("pids");
    let command = format!("echo before; {}", escape_artists(&pids_file));
    let context = context(Some(directory.path()));
    let (error, output) = call(&shell(), json!({"command": command, "timeout": 3_000}), &context).await;
    assert!(error && output.contains("3000 ms") && output.ends_with("Stdout:\nbefore"), "{output}");
    let pids = pids_in(&pids_file, 3).await;
    wait_until("all are gone", || !pids.iter().any(|pid| is_alive(*pid))).await;
}

#[tokio::test]
async fn a_stop_kills_everything_and_returns_soon() {
    let directory = tempfile::tempdir().unwrap();
    let pids_file = directory.path().join("pids");
    let context = context(Some(directory.path()));
    let (tool, stop) = (shell(), context.stop.clone());
    let arguments = json!({"command": format!("echo before; {}", escape_artists(&pids_file))});
    let stopped = async {
        let pids = pids_in(&pids_file, 3).await;
        stop.cancel();
        pids
    };
    let ((error, output), pids) = tokio::join!(call(&tool, arguments, &context), stopped);
    assert!(error && output.contains("stopped") && output.contains("before"), "{output}");
    wait_until("all are gone", || !pids.iter().any(|pid| is_alive(*pid))).await;
}

#[tokio::test]
async fn a_dropped_call_leaves_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let pids_file = directory.path().join("pids");
    let context = context(Some(directory.path()));
    let tool = shell();
    let arguments = json!({"command": escape_artists(&pids_file)}).as_object().unwrap().clone();
    let pids = tokio::select! {
        output = tool.run(arguments, context) => panic!("it ended: {}", text(&output)),
        pids = pids_in(&pids_file, 3) => pids,
    };
    wait_until("all are gone", || !pids.iter().any(|pid| is_alive(*pid))).await;
}

#[tokio::test]
async fn another_shell_is_used() {
    let directory = tempfile::tempdir().unwrap();
    let mut context = context(Some(directory.path()));
    let mut settings = (*context.settings).clone();
    settings.shell.path = Some("env".to_owned());
    settings.shell.args = ["-i", "GREETING=hello", "bash", "-c"].map(str::to_owned).into();
    context.settings = Arc::new(settings.clone());
    let (_, output) = call(&shell(), json!({"command": "echo $GREETING $HOME"}), &context).await;
    assert_eq!(output, "Exit code: 0\nStdout:\nhello");
    settings.shell.path = Some("/no/such/shell".to_owned());
    context.settings = Arc::new(settings);
    let (error, output) = call(&shell(), json!({"command": "ls"}), &context).await;
    assert!(error && output.contains("127") && output.contains("/no/such/shell"), "{output}");
}

#[tokio::test]
async fn a_program_that_closes_its_outputs_is_waited_for() {
    let context = context(Some(tempfile::tempdir().unwrap().path().parent().unwrap()));
    let (error, output) = call(&shell(), json!({"command": "exec >&- 2>&-; sleep 0.3; exit 4"}), &context).await;
    assert_eq!((error, output.as_str()), (true, "Exit code: 4"));
}
