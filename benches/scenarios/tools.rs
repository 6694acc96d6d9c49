//! Tools on a large workspace: search against `rg`, a tree of everything, an edit of a large file, and
//! how soon the model has the result of a small call.

use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use eca::config::ToolCallConfig;
use eca::host::NoHost;
use eca::tool::{Content, Journal, PlannedChange, Prepared, SeenFiles, ToolContext, Unwatched};
use eca::workspace::Workspace;
use futures_util::future::BoxFuture;
use serde_json::{Value, json};

use crate::support::Outcome;
use crate::support::client::Server;
use crate::support::mock::{Mock, Plan, ToolCall};
use crate::support::numbers::Samples;
use crate::support::report::{self, Row};
use crate::support::tree::{FILES, NEEDLE, Tree};

const SEARCHES: usize = 5;
const MOST_TIMES_RG: f64 = 1.3;
const MOST_TREE_SECONDS: f64 = 2.0;
const MOST_TREE_KILOBYTES: f64 = 50.0;
const EDITS: usize = 10;
const LARGE_FILE_BYTES: usize = 20 * 1024 * 1024;
const MOST_EDIT_CPU: f64 = 100.0;
const READS: usize = 100;
const MOST_READ: f64 = 3.0;

pub(crate) fn run(mock: &Mock) -> Outcome<Vec<Row>> {
    report::say(&format!("tools: a tree of {FILES} files …"));
    let tree = Tree::grow()?;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let mut rows = vec![searches(&runtime, &tree, "files_with_matches", &["--files-with-matches"])?];
    rows.push(searches(&runtime, &tree, "content", &["-n", "--no-heading"])?);
    rows.extend(whole_tree(&runtime, &tree)?);
    drop(tree);
    rows.push(edits(mock)?);
    rows.push(reads(mock)?);
    Ok(rows)
}

/// One call of a tool in this process.
fn call(runtime: &tokio::runtime::Runtime, name: &str, root: &Path, arguments: Value) -> Outcome<String> {
    let tool = eca::tools::files::tools().into_iter().find(|tool| tool.spec().name == name).ok_or("no such tool")?;
    let arguments = arguments.as_object().cloned().unwrap_or_default();
    let output = runtime.block_on(async { tool.run(arguments, context(root)).await });
    let text = output.contents.into_iter().filter_map(|content| match content {
        Content::Text(text) => Some(text),
        Content::Image(_) => None,
    });
    let text = text.collect::<Vec<_>>().join("\n");
    if output.error { Err(text.into()) } else { Ok(text) }
}

fn searches(runtime: &tokio::runtime::Runtime, tree: &Tree, mode: &str, flags: &[&str]) -> Outcome<Row> {
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for _ in 0..SEARCHES {
        let started = Instant::now();
        let found =
            call(runtime, "grep", tree.path(), json!({"path": tree.path(), "pattern": NEEDLE, "output_mode": mode}))?;
        ours.push(started.elapsed());
        let started = Instant::now();
        let said = Command::new("rg")
            .args(["--no-config"])
            .args(flags)
            .args(["-e", NEEDLE])
            .arg(tree.path())
            .stdin(Stdio::null())
            .output()
            .map_err(|error| format!("rg (Debian: ripgrep): {error}"))?;
        theirs.push(started.elapsed());
        let (ours, theirs) = (count(&found), count(&String::from_utf8_lossy(&said.stdout)));
        if ours != tree.needles() || theirs != tree.needles() {
            return Err(format!("{} files have it; we found {ours}, rg {theirs}", tree.needles()).into());
        }
    }
    let (ours, theirs) = (Samples::of_durations(ours), Samples::of_durations(theirs));
    let times = ours.min() / theirs.min();
    Ok(Row::at_most(
        &format!("grep ({mode}) in {FILES} files of 20 kB, against rg"),
        times,
        MOST_TIMES_RG,
        "×",
        format!(
            "{times:.2} × ({:.0} ms / {:.0} ms; p50 {:.0} / {:.0})",
            ours.min(),
            theirs.min(),
            ours.p50(),
            theirs.p50()
        ),
    ))
}

fn count(text: &str) -> usize {
    text.lines().filter(|line| line.contains("file-")).count()
}

fn whole_tree(runtime: &tokio::runtime::Runtime, tree: &Tree) -> Outcome<Vec<Row>> {
    let started = Instant::now();
    let text = call(runtime, "directory_tree", tree.path(), json!({"path": tree.path()}))?;
    let seconds = started.elapsed().as_secs_f64();
    if !text.contains(&format!("{FILES} files")) && !text.contains("more") {
        return Err(
            format!("the tree does not say how much there is: …{}", &text[text.len().saturating_sub(200)..]).into()
        );
    }
    let kilobytes = text.len() as f64 / 1e3;
    Ok(vec![
        Row::at_most(
            &format!("directory_tree of {FILES} files"),
            seconds,
            MOST_TREE_SECONDS,
            "s",
            format!("{seconds:.2} s"),
        ),
        Row::at_most("the same: output", kilobytes, MOST_TREE_KILOBYTES, "kB", format!("{kilobytes:.1} kB")),
    ])
}

/// A turn in a new chat that the user trusts, in which the model makes one call.
fn turn(server: &mut Server, chat: &str) -> Outcome<()> {
    let message = Plan::flood(1).prompt();
    server
        .request("chat/prompt", &json!({"chatId": chat, "message": message, "model": "mock/bench-1", "trust": true}))?;
    server.read_turn(chat, |_, _| Ok(()))
}

fn edits(mock: &Mock) -> Outcome<Row> {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("large.txt");
    let mut text = "a line of a large file, like many others\n".repeat(LARGE_FILE_BYTES / 41);
    text.insert_str(text.len() / 2 / 41 * 41, "the counter is 0\n");
    std::fs::write(&path, &text)?;
    let mut server = Server::ready(mock.address())?;
    server.warm_up()?;
    let mut cpu = Vec::new();
    for number in 0..EDITS {
        let arguments = json!({"path": path, "original_content": format!("the counter is {number}\n"),
            "new_content": format!("the counter is {}\n", number + 1)});
        mock.call(Some(ToolCall { name: "eca__edit_file", arguments: arguments.to_string() }));
        let before = server.cpu_nanoseconds()?;
        turn(&mut server, &format!("edit-{number}"))?;
        cpu.push((server.cpu_nanoseconds()? - before) as f64 / 1e6);
        mock.call(None);
    }
    let end = std::fs::read_to_string(&path)?;
    if end != text.replace("counter is 0", &format!("counter is {EDITS}")) {
        return Err("the large file is not what the edits make of it".into());
    }
    let cpu = Samples::new(cpu);
    let measured = format!("{:.0} ms (min {:.0}, most {:.0})", cpu.p50(), cpu.min(), cpu.max());
    Ok(Row::at_most(
        "edit_file in a file of 20 MB: CPU of the whole turn, p50",
        cpu.p50(),
        MOST_EDIT_CPU,
        "ms",
        measured,
    ))
}

fn reads(mock: &Mock) -> Outcome<Row> {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("small.rs");
    std::fs::write(&path, "fn main() {}\n".repeat(100))?;
    let mut server = Server::ready(mock.address())?;
    server.warm_up()?;
    mock.call(Some(ToolCall { name: "eca__read_file", arguments: json!({"path": path}).to_string() }));
    let mut took: Vec<Duration> = Vec::new();
    for number in 0..READS {
        turn(&mut server, &format!("read-{number}"))?;
        took.push(mock.call_took()?);
    }
    mock.call(None);
    let took = Samples::of_durations(took);
    let measured = format!("{:.2} ms (min {:.2}, most {:.2})", took.p50(), took.min(), took.max());
    Ok(Row::at_most(
        "read_file: call sent by the model → result at the model, p50",
        took.p50(),
        MOST_READ,
        "ms",
        measured,
    ))
}

struct NoJournal;

impl Journal for NoJournal {
    fn before_change(&self, _: PlannedChange) -> BoxFuture<'_, Result<(), String>> {
        Box::pin(std::future::ready(Ok(())))
    }
}

pub(crate) fn context(root: &Path) -> ToolContext {
    ToolContext {
        chat: "bench".into(),
        call: "bench".into(),
        agent: "code".to_owned(),
        workspace: Arc::new(Workspace::from_folders(&[(root.display().to_string(), None)]).0),
        stop: tokio_util::sync::CancellationToken::new(),
        host: Arc::new(NoHost),
        seen: Arc::new(SeenFiles::default()),
        journal: Arc::new(NoJournal),
        live: Arc::new(Unwatched),
        settings: Arc::new(ToolCallConfig::default()),
        sees_images: false,
        prepared: Prepared::default(),
    }
}
