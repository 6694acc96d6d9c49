//! The handshake and the farewell.
//!
//! These methods exist in LSP too and are routed by the LSP framework, but `lsp-types` cannot carry them: its
//! `InitializeParams` loses `capabilities.codeAssistant` and refuses what some clients leave out, and its result has no
//! place for the welcome message that eca-emacs cannot start without. Hence types of our own, which read what every
//! known client sends.

use lsp_types::ServerCapabilities;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::common::Empty;
use crate::tolerant::{group, list_or_empty, null_as_default, switch};

request_markers! {
    /// Opens the session.
    Initialize = "initialize"(InitializeParams) -> InitializeResult;
    /// Asks the server to put everything away.
    Shutdown = "shutdown"(Empty) -> ();
}

notification_markers! {
    /// The client is ready for messages.
    Initialized = "initialized"(Empty);
    /// Ends the process.
    Exit = "exit"(Empty);
}

/// Who the client is, what it can do, and where it works.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct InitializeParams {
    /// The process to outlive us. Written as `null` when absent, because the published protocol documents require the field.
    pub process_id: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_info: Option<ClientInfo>,
    /// Whatever the user configured in the editor; any JSON.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub initialization_options: Option<Value>,
    #[serde(default, deserialize_with = "null_as_default")]
    pub capabilities: ClientCapabilities,
    #[serde(default, deserialize_with = "list_or_empty")]
    pub workspace_folders: Vec<WorkspaceFolder>,
    /// Where LSP clients without workspace folders say what they work on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub root_uri: Option<String>,
    /// The same, older still, as a path.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub root_path: Option<String>,
}

/// The client's name and version.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClientInfo {
    #[serde(default, deserialize_with = "null_as_default")]
    pub name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
}

/// A directory the user works in.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkspaceFolder {
    /// Kept as text: clients send raw spaces and `file:/path` with one slash, which a URI type would refuse.
    pub uri: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

/// What the client can do. Besides ECA's own group, the standard LSP groups are kept, because their presence tells an
/// LSP client apart.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ClientCapabilities {
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "group")]
    pub code_assistant: Option<CodeAssistantCapabilities>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text_document: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workspace: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub window: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub general: Option<Value>,
}

/// What the client can do as an ECA client.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct CodeAssistantCapabilities {
    /// A boolean in the documents; some clients send an object, which is read as yes.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "switch")]
    pub chat: Option<bool>,
    /// v0 only.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "switch")]
    pub doc: Option<bool>,
    /// v0 only.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "switch")]
    pub edit: Option<bool>,
    /// v0 only.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "switch")]
    pub fix: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "switch")]
    pub rewrite: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "group")]
    pub editor: Option<EditorCapabilities>,
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "group")]
    pub chat_capabilities: Option<ChatCapabilities>,
}

/// Which `editor/…` requests the client answers.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct EditorCapabilities {
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "switch")]
    pub diagnostics: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "switch")]
    pub definition: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "switch")]
    pub references: Option<bool>,
}

/// Which `chat/…` requests the client answers.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ChatCapabilities {
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "switch")]
    pub ask_question: Option<bool>,
}

/// The server's side of the handshake. The published protocol documents want `{}`, LSP clients insist on `capabilities`, and eca-emacs on the
/// welcome message.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct InitializeResult {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub capabilities: Option<ServerCapabilities>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server_info: Option<ServerInfo>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chat_welcome_message: Option<String>,
    /// This and the three below are read by eca-intellij, if present.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub models: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chat_agents: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chat_default_agent: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chat_default_model: Option<String>,
}

/// The server's name and version.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerInfo {
    pub name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
}
