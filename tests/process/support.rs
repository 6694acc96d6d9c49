//! Calls of tools, as the engine makes them.

use std::path::Path;
use std::sync::{Arc, Mutex};

use eca::base::ChatId;
use eca::config::{Sandbox, ToolCallConfig};
use eca::host::NoHost;
use eca::tool::{
    Content, Details, Journal, LiveOutput, PlannedChange, SeenFiles, Tool, ToolContext, ToolOutput, Unwatched,
};
use eca::workspace::Workspace;
use futures_util::future::BoxFuture;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::HANG_GUARD;

struct NoJournal;

impl Journal for NoJournal {
    fn before_change(&self, _: PlannedChange) -> BoxFuture<'_, Result<(), String>> {
        Box::pin(std::future::ready(Ok(())))
    }
}

/// Keeps what is shown live.
#[derive(Default)]
pub(crate) struct Watched {
    pub(crate) text: Mutex<String>,
}

impl LiveOutput for Watched {
    fn output(&self, text: &str) {
        self.text.lock().unwrap().push_str(text);
    }
    fn progress(&self, _: &str) {}
    fn details(&self, _: Details) {}
}

/// A context in a workspace of one folder, or of none.
pub(crate) fn context(root: Option<&Path>) -> ToolContext {
    super::use_the_built_guard();
    let folders: Vec<_> = root.iter().map(|root| (format!("file://{}", root.display()), None)).collect();
    ToolContext {
        chat: ChatId::new("chat"),
        call: "call".into(),
        agent: "code".to_owned(),
        workspace: Arc::new(Workspace::from_folders(&folders).0),
        stop: CancellationToken::new(),
        host: Arc::new(NoHost),
        seen: Arc::new(SeenFiles::default()),
        journal: Arc::new(NoJournal),
        live: Arc::new(Unwatched),
        settings: Arc::new(ToolCallConfig::default()),
        sees_images: false,
        prepared: eca::tool::Prepared::default(),
    }
}

pub(crate) fn sandboxed(root: &Path, sandbox: Sandbox) -> ToolContext {
    let mut context = context(Some(root));
    let mut settings = ToolCallConfig::default();
    settings.shell.sandbox = sandbox;
    context.settings = Arc::new(settings);
    context
}

/// The output as one text, and whether it is an error.
pub(crate) async fn call(tool: &dyn Tool, arguments: Value, context: &ToolContext) -> (bool, String) {
    let arguments = arguments.as_object().unwrap().clone();
    let output = tokio::time::timeout(HANG_GUARD, tool.run(arguments, context.clone())).await.expect("the call ends");
    (output.error, text(&output))
}

pub(crate) fn text(output: &ToolOutput) -> String {
    let text = |content: &Content| match content {
        Content::Text(text) => text.clone(),
        Content::Image(_) => panic!("an image"),
    };
    output.contents.iter().map(text).collect::<Vec<_>>().join("\n")
}
