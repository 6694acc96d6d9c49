//! The tool for git, with the real one: nothing waits for a terminal or an editor.

use eca::tool::Tool;
use eca::tools::git::Git;
use serde_json::json;

use super::support::{call, context};

const IDENTITY: &str = "-c user.name=N -c user.email=n@example.org";

#[tokio::test]
async fn commits_need_a_message_and_get_no_editor() {
    let root = tempfile::tempdir().unwrap();
    let context = context(Some(root.path()));
    let run = async |command: &str, operation: &str| {
        call(&Git::new(), json!({"command": command, "operation": operation}), &context).await
    };
    assert!(!run("git init -q .", "status").await.0);
    std::fs::write(root.path().join("file"), "x").unwrap();
    assert!(!run("git add file", "add").await.0);
    let (error, output) = run(&format!("git {IDENTITY} commit"), "commit").await;
    assert!(error && output.contains("no editor here"), "{output}");
    let message = "git -c user.name=N -c user.email=n@example.org commit -q -F - <<'EOF'\nIt's done\nEOF";
    let (error, output) = run(message, "commit").await;
    assert!(!error, "{output}");
    let (_, output) = run("git log --format=%B", "log").await;
    assert_eq!(output, "Exit code: 0\nStdout:\nIt's done");
    let (error, output) = run("git commit -m \"$(cat <<EOF\nit's \"x\nEOF\n)", "commit").await;
    assert!(error && output.contains("on stdin"), "{output}");
    assert!(run("rm file", "add").await.0 && root.path().join("file").exists());
}

#[tokio::test]
async fn previews_name_the_operation_and_the_folder() {
    let root = tempfile::tempdir().unwrap();
    let context = context(Some(root.path()));
    let arguments = json!({"command": "cd sub && git diff", "operation": "diff", "summary": "what changed"});
    let preview = Git::new().preview(arguments.as_object().unwrap(), &context).await.unwrap();
    assert_eq!(preview.summary.as_deref(), Some("Git diff: what changed"));
    assert_eq!(preview.shell.as_deref(), Some("cd sub && git diff"));
    assert_eq!(preview.paths[0].path, root.path().join("sub"));
}
