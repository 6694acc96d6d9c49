//! The life of a tool call: prepared in pieces, run, then called or rejected; and the user's word on it.
//!
//! The stages repeat their common fields instead of sharing a struct: flattening would cost the field names in error
//! messages.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::chat::ToolCallDetails;
use crate::ids::{ChatId, ToolCallId};

/// The model is writing a call. Clients ignore the later stages of a call they saw no preparation of.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ChatToolCallPrepareContent {
    pub origin: ToolCallOrigin,
    pub id: ToolCallId,
    pub name: String,
    pub server: String,
    /// The next piece of the arguments, to be appended to the earlier ones.
    pub arguments_text: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub details: Option<ToolCallDetails>,
}

/// The call is complete and will run, perhaps after the user agreed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ChatToolCallRunContent {
    pub origin: ToolCallOrigin,
    pub id: ToolCallId,
    pub name: String,
    pub server: String,
    pub arguments: Map<String, Value>,
    pub manual_approval: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub details: Option<ToolCallDetails>,
}

/// The tool is at work.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ChatToolCallRunningContent {
    pub origin: ToolCallOrigin,
    pub id: ToolCallId,
    pub name: String,
    pub server: String,
    pub arguments: Map<String, Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub details: Option<ToolCallDetails>,
}

/// The tool has answered.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ChatToolCalledContent {
    pub origin: ToolCallOrigin,
    pub id: ToolCallId,
    pub name: String,
    pub server: String,
    /// The published protocol documents write a list of strings here, against their own other stages; no client expects one.
    pub arguments: Map<String, Value>,
    pub error: bool,
    pub outputs: Vec<ToolCallOutput>,
    pub total_time_ms: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub details: Option<ToolCallDetails>,
}

/// The tool did not run, or its answer was not waited for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ChatToolCallRejectedContent {
    pub origin: ToolCallOrigin,
    pub id: ToolCallId,
    pub name: String,
    pub server: String,
    pub arguments: Map<String, Value>,
    pub reason: ToolCallRejectReason,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub details: Option<ToolCallDetails>,
}

tagged_union! {
    /// A part of a tool's answer.
    pub enum ToolCallOutput: "output" by "type" {
        Text(ToolCallTextOutput) = "text",
    }
}

/// An answer in words; pictures go out as content of their own.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolCallTextOutput {
    pub text: String,
}

closed_words! {
    /// Where a tool lives.
    pub enum ToolCallOrigin {
        Mcp = "mcp",
        Native = "native",
        /// At the provider, which also runs it.
        Server = "server",
        Unknown = "unknown",
    }
    /// Why a tool did not run.
    pub enum ToolCallRejectReason {
        UserChoice = "user-choice",
        UserConfig = "user-config",
        UserPromptStop = "user-prompt-stop",
        HookRejected = "hook-rejected",
    }
}

/// The user agrees.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ChatToolCallApproveParams {
    pub chat_id: ChatId,
    pub tool_call_id: ToolCallId,
    /// Whether to remember the consent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub save: Option<ToolCallApproveSave>,
}

open_words! {
    /// How long a consent holds.
    pub enum ToolCallApproveSave {
        Session = "session",
    }
}

/// The user refuses.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ChatToolCallRejectParams {
    pub chat_id: ChatId,
    pub tool_call_id: ToolCallId,
}
