//! A folder, a client and a journal to try the tools on.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use futures_util::future::BoxFuture;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::base::{ChatId, ToolCallId};
use crate::config::ToolCallConfig;
use crate::host::{Capabilities, Host, HostError, OpenChange, Taken};
use crate::tool::{
    Arguments, Content, Details, FileChange, Journal, PlannedChange, Preview, SeenFiles, Tool, ToolContext, ToolOutput,
    Unwatched,
};
use crate::workspace::Workspace;

/// One workspace folder with everything a call needs.
pub(super) struct Lab {
    _folder: tempfile::TempDir,
    pub(super) root: PathBuf,
    pub(super) host: Arc<Editor>,
    pub(super) journal: Arc<Records>,
    pub(super) context: ToolContext,
    tools: Vec<Arc<dyn Tool>>,
}

impl Lab {
    pub(super) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let root = dunce::canonicalize(folder.path()).unwrap();
        let host = Arc::new(Editor::default());
        let journal = Arc::new(Records::default());
        let context = ToolContext {
            chat: ChatId::random(),
            call: ToolCallId::from("call-1"),
            agent: "code".to_owned(),
            workspace: Arc::new(workspace(&[&root])),
            stop: CancellationToken::new(),
            host: Arc::clone(&host) as Arc<dyn Host>,
            seen: Arc::new(SeenFiles::default()),
            journal: Arc::clone(&journal) as Arc<dyn Journal>,
            live: Arc::new(Unwatched),
            settings: Arc::new(ToolCallConfig::default()),
            sees_images: true,
            prepared: crate::tool::Prepared::default(),
        };
        Self { _folder: folder, root, host, journal, context, tools: super::tools() }
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    /// Writes a file past the tools, with the folders it needs.
    pub(super) fn put(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, content).unwrap();
        path
    }

    pub(super) fn bytes(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.path(name)).unwrap()
    }

    pub(super) fn text(&self, name: &str) -> String {
        String::from_utf8(self.bytes(name)).unwrap()
    }

    /// The names in the folder, so that what is left over shows.
    pub(super) fn names(&self) -> Vec<String> {
        let entries = std::fs::read_dir(&self.root).unwrap();
        let mut names: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }

    pub(super) fn saw(&self, name: &str) {
        self.context.seen.saw(&self.path(name), self.text(name));
    }

    pub(super) fn tool(&self, name: &str) -> &dyn Tool {
        &**self.tools.iter().find(|tool| tool.spec().name == name).unwrap()
    }

    pub(super) async fn run(&self, tool: &str, arguments: Value) -> ToolOutput {
        self.tool(tool).run(object(arguments), self.context.clone()).await
    }

    /// The text of a call that must go well.
    pub(super) async fn good(&self, tool: &str, arguments: Value) -> String {
        let output = self.run(tool, arguments).await;
        assert!(!output.error, "{}", said(&output));
        said(&output)
    }

    /// The text of a call that must fail.
    pub(super) async fn bad(&self, tool: &str, arguments: Value) -> String {
        let output = self.run(tool, arguments).await;
        assert!(output.error, "{}", said(&output));
        said(&output)
    }

    pub(super) async fn preview(&self, tool: &str, arguments: Value) -> Result<Preview, String> {
        self.tool(tool).preview(&object(arguments), &self.context).await
    }
}

pub(super) fn workspace(roots: &[&Path]) -> Workspace {
    let folders: Vec<(String, Option<String>)> = roots.iter().map(|root| (root.display().to_string(), None)).collect();
    Workspace::from_folders(&folders).0
}

pub(super) fn object(value: Value) -> Arguments {
    match value {
        Value::Object(arguments) => arguments,
        other => panic!("not an object: {other}"),
    }
}

pub(super) fn said(output: &ToolOutput) -> String {
    let texts = output.contents.iter().filter_map(|content| match content {
        Content::Text(text) => Some(text.as_str()),
        Content::Image(_) => None,
    });
    texts.collect::<Vec<_>>().join("\n")
}

pub(super) fn change(details: Option<Details>) -> FileChange {
    match details {
        Some(Details::FileChange(change)) => change,
        other => panic!("not a change of a file: {other:?}"),
    }
}

/// An editor with documents.
#[derive(Debug, Default)]
pub(super) struct Editor {
    /// Documents that differ from the disk.
    pub(super) unsaved: Mutex<HashMap<PathBuf, String>>,
    /// Documents that are open.
    pub(super) open: Mutex<HashSet<PathBuf>>,
    pub(super) written: Mutex<Vec<(PathBuf, String)>>,
    pub(super) fails: Mutex<Option<HostError>>,
}

impl Host for Editor {
    fn capabilities(&self) -> Capabilities {
        Capabilities::default()
    }

    fn unsaved(&self, _: ChatId, path: PathBuf) -> BoxFuture<'_, Option<String>> {
        Box::pin(async move { self.unsaved.lock().unwrap().get(&path).cloned() })
    }

    fn write_open(&self, change: OpenChange) -> BoxFuture<'_, Result<Taken, HostError>> {
        Box::pin(async move {
            if let Some(error) = self.fails.lock().unwrap().clone() {
                return Err(error);
            }
            if !self.open.lock().unwrap().contains(&change.path) {
                return Ok(Taken::NotHeld);
            }
            if self.unsaved.lock().unwrap().get(&change.path) != change.before.as_ref() {
                return Ok(Taken::Changed);
            }
            self.written.lock().unwrap().push((change.path, change.after));
            Ok(Taken::Yes)
        })
    }
}

/// Done between the plan of a change and the change.
type Meanwhile = Box<dyn FnMut() + Send>;

/// A journal that can refuse, and during which others may change the disk.
#[derive(Default)]
pub(super) struct Records {
    pub(super) changes: Mutex<Vec<PlannedChange>>,
    pub(super) refuses: Mutex<bool>,
    pub(super) meanwhile: Mutex<Option<Meanwhile>>,
}

impl Records {
    /// Does this once, before the next change is made.
    pub(super) fn once(&self, mut act: impl FnMut() + Send + 'static) {
        let mut done = false;
        *self.meanwhile.lock().unwrap() = Some(Box::new(move || {
            if !std::mem::replace(&mut done, true) {
                act();
            }
        }));
    }

    pub(super) fn always(&self, act: impl FnMut() + Send + 'static) {
        *self.meanwhile.lock().unwrap() = Some(Box::new(act));
    }
}

impl Journal for Records {
    fn before_change(&self, change: PlannedChange) -> BoxFuture<'_, Result<(), String>> {
        Box::pin(async move {
            if *self.refuses.lock().unwrap() {
                return Err("the store is closed".to_owned());
            }
            self.changes.lock().unwrap().push(change);
            if let Some(act) = self.meanwhile.lock().unwrap().as_mut() {
                act();
            }
            Ok(())
        })
    }
}
