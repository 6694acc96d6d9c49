//! MCP servers that others wrote. `tests/real/run mcp` installs them and runs these; by themselves
//! they are ignored.

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use eca::config::{McpServerConfig, Secret};
use eca::mcp::Status;
use eca::tool::Content;
use eca::workspace::Workspace;
use serde_json::{Value, json};

use super::mcp::{Setup, Watcher, words};
use super::wait_until;

/// Where `npm ci` and `pip install` put the servers.
const NODE: &str = "ECA_REAL_MCP_NODE";
const PYTHON: &str = "ECA_REAL_MCP_PYTHON";

fn installed(variable: &str, program: &str) -> String {
    let folder = std::env::var_os(variable).unwrap_or_else(|| panic!("{variable} is not set; run: tests/real/run mcp"));
    let program = PathBuf::from(folder).join(program);
    assert!(program.exists(), "{} is missing; run: tests/real/run mcp", program.display());
    program.display().to_string()
}

async fn real(variable: &str, program: &str, args: &[&str]) -> Setup {
    Setup::new().program("real", &installed(variable, program), args).running("real").await
}

fn arguments(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

#[tokio::test]
#[ignore = "needs an installed server: tests/real/run mcp"]
async fn everything_is_listed_called_and_read() {
    let setup = real(NODE, "mcp-server-everything", &[]).await;
    assert_eq!(words(&setup.call("echo", json!({"message": "hi"})).await), "Echo: hi");
    assert!(words(&setup.call("get-sum", json!({"a": 2, "b": 3})).await).contains('5'));
    let image = setup.call("get-tiny-image", json!({})).await;
    assert!(
        image
            .contents
            .iter()
            .any(|content| matches!(content, Content::Image(image) if image.media_type == "image/png"))
    );
    let weather = words(&setup.call("get-structured-content", json!({"location": "Chicago"})).await);
    assert!(weather.contains("temperature"), "{weather}");
    let links = words(&setup.call("get-resource-links", json!({"count": 2})).await);
    assert_eq!(links.matches("[Resource link: ").count(), 2, "{links}");
    let embedded = words(&setup.call("get-resource-reference", json!({"resourceType": "Text", "resourceId": 1})).await);
    assert!(embedded.contains("Resource demo://resource/dynamic/text/1:"), "{embedded}");
    let wrong = setup.call("get-sum", json!({"a": "x"})).await;
    assert!(wrong.error, "{wrong:?}");
    wait_until("prompts and resources", || {
        !setup.servers.prompts().is_empty() && !setup.servers.resources().is_empty()
    })
    .await;
    let prompt = setup.servers.prompts().into_iter().find(|prompt| prompt.name == "args-prompt").unwrap();
    assert!(prompt.arguments[0].required, "{prompt:?}");
    let said = setup.servers.get_prompt("real", "args-prompt", arguments(&[("city", "Ulm")]), true).await.unwrap();
    assert!(format!("{said:?}").contains("Ulm"), "{said:?}");
    let uri = setup.servers.resources()[0].uri.clone();
    let read = setup.servers.read_resource("real", &uri, true).await.unwrap();
    assert!(matches!(&read[0], Content::Text(text) if text.len() > 100), "{read:?}");
    assert!(!setup.servers.instructions()[0].1.is_empty());
    setup.servers.shutdown().await;
}

#[tokio::test]
#[ignore = "needs an installed server: tests/real/run mcp"]
async fn everything_changes_its_lists_asks_and_reports() {
    let setup = real(NODE, "mcp-server-everything", &[]).await;
    // These come after the handshake, because we said that we can do them.
    for name in ["get-roots-list", "trigger-elicitation-request"] {
        wait_until(name, || setup.servers.tools().iter().any(|tool| tool.spec().name == name)).await;
    }
    let root = dunce::canonicalize(setup.folder.path()).unwrap();
    let roots = words(&setup.call("get-roots-list", json!({})).await);
    assert!(roots.contains(&root.display().to_string()), "{roots}");
    wait_until("resources", || !setup.servers.resources().is_empty()).await;
    let before = setup.servers.resources().len();
    let file = json!({"name": "note.gz", "data": "data:text/plain;base64,aGVsbG8=", "outputType": "resourceLink"});
    let made = setup.call("gzip-file-as-resource", file).await;
    assert!(!made.error, "{made:?}");
    wait_until("the new resource", || setup.servers.resources().len() > before).await;
    let watcher = Watcher::new();
    let steps = json!({"duration": 1, "steps": 4});
    let done = setup.call_as("trigger-long-running-operation", steps, &watcher).await;
    assert!(!done.error && !watcher.shown().is_empty(), "{done:?} {:?}", watcher.shown());
    let stopped = Watcher::new();
    let setup = Arc::new(setup);
    let (other, same) = (Arc::clone(&setup), Arc::clone(&stopped));
    let call = tokio::spawn(async move {
        other.call_as("trigger-long-running-operation", json!({"duration": 300, "steps": 3000}), &same).await
    });
    wait_until("it works", || !stopped.shown().is_empty()).await;
    stopped.stop.cancel();
    let output = tokio::time::timeout(Duration::from_secs(5), call).await.expect("at once").unwrap();
    assert!(output.error && words(&output).contains("stopped"), "{output:?}");
    assert_eq!(words(&setup.call("echo", json!({"message": "still here"})).await), "Echo: still here");
    setup.servers.shutdown().await;
}

#[tokio::test]
#[ignore = "needs an installed server: tests/real/run mcp"]
async fn everything_over_http() {
    // It cannot be told to take any free port; this one was free a moment ago.
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let mut server = Command::new(installed(NODE, "mcp-server-everything"))
        .arg("streamableHttp")
        .env("PORT", port.to_string())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    wait_for_port(&mut server);
    let mut setup = Setup::new();
    let url = format!("http://127.0.0.1:{port}/mcp");
    let config = McpServerConfig { url: Some(url), ..McpServerConfig::default() };
    setup.config.mcp.servers.insert("real".to_owned(), config);
    let setup = setup.running("real").await;
    assert_eq!(words(&setup.call("echo", json!({"message": "hi"})).await), "Echo: hi");
    let watcher = Watcher::new();
    let steps = json!({"duration": 1, "steps": 4});
    let done = setup.call_as("trigger-long-running-operation", steps, &watcher).await;
    assert!(!done.error && !watcher.shown().is_empty(), "{done:?} {:?}", watcher.shown());
    wait_until("prompts", || !setup.servers.prompts().is_empty()).await;
    setup.servers.shutdown().await;
    server.kill().unwrap();
    server.wait().unwrap();
}

/// Waits until it says that it listens.
fn wait_for_port(server: &mut std::process::Child) {
    let mut lines = BufReader::new(server.stderr.take().unwrap()).lines();
    assert!(lines.by_ref().map_while(Result::ok).any(|line| line.contains("listening on port")), "it ended");
    // What it writes later must go somewhere.
    std::thread::spawn(move || lines.for_each(drop));
}

#[tokio::test]
#[ignore = "needs an installed server: tests/real/run mcp"]
async fn files_are_read_and_written_where_the_roots_allow_it() {
    let setup = real(NODE, "mcp-server-filesystem", &["."]).await;
    let root = dunce::canonicalize(setup.folder.path()).unwrap();
    let file = root.join("note.txt");
    let path = file.display().to_string();
    let written = setup.call("write_file", json!({"path": path, "content": "from a tool"})).await;
    assert!(!written.error, "{written:?}");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "from a tool");
    assert!(words(&setup.call("read_text_file", json!({"path": path})).await).contains("from a tool"));
    assert!(setup.call("read_text_file", json!({"path": "/etc/passwd"})).await.error);
    assert!(setup.servers.prompts().is_empty() && setup.servers.resources().is_empty());
    // Other folders are other permissions.
    let other = tempfile::tempdir().unwrap();
    let other_root = dunce::canonicalize(other.path()).unwrap();
    let (workspace, _) = Workspace::from_folders(&[(other_root.display().to_string(), None)]);
    setup.servers.set_roots(&workspace);
    let allowed = async || words(&setup.call("list_allowed_directories", json!({})).await);
    let mut said = allowed().await;
    for _ in 0..200 {
        if said.contains(&other_root.display().to_string()) {
            break;
        }
        tokio::task::yield_now().await;
        said = allowed().await;
    }
    assert!(said.contains(&other_root.display().to_string()), "{said}");
    setup.servers.shutdown().await;
}

#[tokio::test]
#[ignore = "needs an installed server: tests/real/run mcp"]
async fn the_time_is_told() {
    let setup = real(PYTHON, "mcp-server-time", &["--local-timezone", "Etc/UTC"]).await;
    let now: Value =
        serde_json::from_str(&words(&setup.call("get_current_time", json!({"timezone": "Asia/Tokyo"})).await)).unwrap();
    assert_eq!(now["timezone"], "Asia/Tokyo");
    let converted = json!({"source_timezone": "Etc/UTC", "time": "12:00", "target_timezone": "Asia/Tokyo"});
    assert!(words(&setup.call("convert_time", converted).await).contains("21:00"));
    assert!(setup.call("get_current_time", json!({"timezone": "No/Where"})).await.error);
    setup.servers.shutdown().await;
}

#[tokio::test]
#[ignore = "needs an installed server: tests/real/run mcp"]
async fn a_repository_is_looked_at() {
    let setup = Setup::new();
    let root = dunce::canonicalize(setup.folder.path()).unwrap();
    let git = |args: &[&str]| {
        let done = Command::new("git").arg("-C").arg(&root).args(args).stdout(Stdio::null()).status().unwrap();
        assert!(done.success(), "git {args:?}");
    };
    git(&["init", "-q"]);
    std::fs::write(root.join("new.txt"), "x").unwrap();
    let path = root.display().to_string();
    let mut setup = setup.program("real", &installed(PYTHON, "mcp-server-git"), &["--repository", &path]);
    let env = [
        ("GIT_AUTHOR_NAME", "A"),
        ("GIT_AUTHOR_EMAIL", "a@b"),
        ("GIT_COMMITTER_NAME", "A"),
        ("GIT_COMMITTER_EMAIL", "a@b"),
    ];
    let env = env.map(|(name, value)| (name.to_owned(), Secret::new(value)));
    setup.config.mcp.servers.get_mut("real").unwrap().env.extend(env);
    let setup = setup.running("real").await;
    let status = words(&setup.call("git_status", json!({"repo_path": path})).await);
    assert!(status.contains("new.txt"), "{status}");
    let added = setup.call("git_add", json!({"repo_path": path, "files": ["new.txt"]})).await;
    assert!(!added.error, "{added:?}");
    let committed = setup.call("git_commit", json!({"repo_path": path, "message": "First"})).await;
    assert!(!committed.error, "{committed:?}");
    let log = words(&setup.call("git_log", json!({"repo_path": path})).await);
    assert!(log.contains("First"), "{log}");
    assert_eq!(setup.until("real", Status::Running).await.tools.len(), setup.servers.tools().len());
    setup.servers.shutdown().await;
}
