//! A call's surroundings for tests: a workspace, a client, and nobody who watches.

use std::path::PathBuf;
use std::sync::Arc;

use futures_util::future::BoxFuture;

use crate::base::{ChatId, ToolCallId};
use crate::config::ToolCallConfig;
use crate::host::Host;
use crate::tool::{Journal, PlannedChange, SeenFiles, ToolContext, Unwatched};
use crate::workspace::Workspace;

struct NoJournal;

impl Journal for NoJournal {
    fn before_change(&self, _: PlannedChange) -> BoxFuture<'_, Result<(), String>> {
        Box::pin(std::future::ready(Err("nothing is changed here".to_owned())))
    }
}

pub(in crate::tools) fn tool_context(roots: &[PathBuf], host: impl Host + 'static) -> ToolContext {
    let folders: Vec<_> = roots.iter().map(|root| (root.display().to_string(), None)).collect();
    ToolContext {
        chat: ChatId::new("c"),
        call: ToolCallId::new("t"),
        agent: "code".into(),
        workspace: Arc::new(Workspace::from_folders(&folders).0),
        stop: Default::default(),
        host: Arc::new(host),
        seen: Arc::new(SeenFiles::default()),
        journal: Arc::new(NoJournal),
        live: Arc::new(Unwatched),
        settings: Arc::new(ToolCallConfig::default()),
        sees_images: false,
        prepared: crate::tool::Prepared::default(),
    }
}
