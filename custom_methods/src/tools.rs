//! Where tools come from: the server itself and the MCP servers it runs.

use serde::{Deserialize, Serialize};
use serde_json::Value;

tagged_union! {
    /// The state of one source of tools. Clients replace what they know under the same name, so the shape is always
    /// sent whole.
    pub enum ToolServerUpdatedParams: "server" by "type" {
        /// The tools built into the server.
        Native(EcaServerUpdatedParams) = "native",
        /// The tools of an MCP server.
        Mcp(McpServerUpdatedParams) = "mcp",
    }
}

/// The tools built into the server.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EcaServerUpdatedParams {
    /// Always `ECA`.
    pub name: String,
    pub status: ToolServerStatus,
    pub tools: Vec<ServerTool>,
}

/// An MCP server and what it offers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct McpServerUpdatedParams {
    pub name: String,
    pub status: ToolServerStatus,
    /// For a server that is a process; `url` is for one that is reached over HTTP.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub args: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disabled: Option<bool>,
    /// Whether there is a login that could be forgotten.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub has_auth: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instructions: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tools: Option<Vec<ServerTool>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prompts: Option<Vec<ServerPrompt>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resources: Option<Vec<ServerResource>>,
}

closed_words! {
    /// Where a source of tools stands.
    pub enum ToolServerStatus {
        Running = "running",
        Starting = "starting",
        Stopping = "stopping",
        Stopped = "stopped",
        Failed = "failed",
        Disabled = "disabled",
        RequiresAuth = "requires-auth",
        Unknown = "unknown",
    }
}

/// A tool as clients list it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ServerTool {
    pub name: String,
    pub description: String,
    /// A JSON schema.
    pub parameters: Value,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disabled: Option<bool>,
    /// Which MCP server it belongs to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server: Option<ServerToolOwner>,
}

/// The owner of a tool, by name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerToolOwner {
    pub name: String,
}

/// A prompt that an MCP server offers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerPrompt {
    pub name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub arguments: Option<Vec<ServerPromptArgument>>,
}

/// An argument of such a prompt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerPromptArgument {
    pub name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub required: Option<bool>,
}

/// A resource that an MCP server offers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ServerResource {
    pub uri: String,
    pub name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mime_type: Option<String>,
}

/// A source of tools is gone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolServerRemovedParams {
    pub name: String,
}
