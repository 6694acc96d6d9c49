//! What a client asks while the user types: contexts after `@`, files, commands after `/`.

use serde::{Deserialize, Serialize};

use crate::chat::ChatContext;
use crate::ids::ChatId;
use crate::tolerant::{list_or_empty, null_as_default};

/// Which contexts to look for.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ChatQueryContextParams {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chat_id: Option<ChatId>,
    /// Blank for all.
    #[serde(default, deserialize_with = "null_as_default")]
    pub query: String,
    /// Those already chosen, to be left out of the answer.
    #[serde(default, deserialize_with = "list_or_empty")]
    pub contexts: Vec<ChatContext>,
}

/// The contexts found.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ChatQueryContextResult {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chat_id: Option<ChatId>,
    pub contexts: Vec<ChatContext>,
}

/// Which files to look for.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ChatQueryFilesParams {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chat_id: Option<ChatId>,
    #[serde(default, deserialize_with = "null_as_default")]
    pub query: String,
}

/// The files and directories found, as contexts.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ChatQueryFilesResult {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chat_id: Option<ChatId>,
    pub files: Vec<ChatContext>,
}

/// Which commands to look for.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ChatQueryCommandsParams {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chat_id: Option<ChatId>,
    #[serde(default, deserialize_with = "null_as_default")]
    pub query: String,
}

/// The commands found.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ChatQueryCommandsResult {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chat_id: Option<ChatId>,
    pub commands: Vec<ChatCommand>,
}

/// A command the user may call with a slash.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChatCommand {
    pub name: String,
    pub description: String,
    #[serde(rename = "type")]
    pub kind: ChatCommandType,
    /// Always a list, also when empty.
    #[serde(default, deserialize_with = "list_or_empty")]
    pub arguments: Vec<ChatCommandArgument>,
}

closed_words! {
    /// Where a command comes from.
    pub enum ChatCommandType {
        /// An MCP server's prompt, in the published protocol's word.
        McpPrompt = "mcp-prompt",
        /// The same in the public server's word.
        McpPromptPublic = "mcpPrompt",
        Native = "native",
        CustomPrompt = "custom-prompt",
        Skill = "skill",
    }
}

/// An argument of a command.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChatCommandArgument {
    pub name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Always written.
    #[serde(default, deserialize_with = "null_as_default")]
    pub required: bool,
}
