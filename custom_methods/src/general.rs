//! What belongs to no feature: messages to the user, start-up progress, and the two LSP notifications that ECA clients
//! send too.

use serde::{Deserialize, Serialize};

use crate::lifecycle::WorkspaceFolder;
use crate::tolerant::{list_or_empty, null_as_default};

notification_markers! {
    /// Gives up a pending request. Routed by the LSP framework, hence not in the table of methods.
    CancelRequest = "$/cancelRequest"(CancelParams);
    /// The user opened or closed directories. A method of the framework's `LanguageServer` trait, hence not in the
    /// table of methods; the type here is for a layer that has to read what the framework's stricter type would refuse.
    DidChangeWorkspaceFolders = "workspace/didChangeWorkspaceFolders"(DidChangeWorkspaceFoldersParams);
}

/// A message for the user.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShowMessageParams {
    #[serde(rename = "type")]
    pub kind: MessageType,
    pub message: String,
}

/// A start-up task began or ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ProgressParams {
    #[serde(rename = "type")]
    pub kind: ProgressType,
    /// Names the task; each one that starts must finish, or eca-desktop keeps waiting.
    pub task_id: String,
    pub title: String,
}

closed_words! {
    /// How much a message matters.
    pub enum MessageType {
        Error = "error",
        Warning = "warning",
        Info = "info",
    }
    /// Which end of a task is reported.
    pub enum ProgressType {
        Start = "start",
        Finish = "finish",
    }
}

/// Which request to give up.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CancelParams {
    pub id: RequestId,
}

/// A JSON-RPC id as clients choose it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(untagged)]
pub enum RequestId {
    Number(i64),
    Text(String),
}

/// Directories that came and went.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DidChangeWorkspaceFoldersParams {
    #[serde(default, deserialize_with = "null_as_default")]
    pub event: WorkspaceFoldersChange,
}

/// The two lists of such a change.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkspaceFoldersChange {
    #[serde(default, deserialize_with = "list_or_empty")]
    pub added: Vec<WorkspaceFolder>,
    #[serde(default, deserialize_with = "list_or_empty")]
    pub removed: Vec<WorkspaceFolder>,
}
