//! What the user sets going in a chat: a prompt, its end, and the selections it depends on.

use serde::{Deserialize, Serialize};

use crate::chat::ChatContext;
use crate::ids::ChatId;
use crate::tolerant::optional_list;

/// A message from the user.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ChatPromptParams {
    /// Without it, the server starts a new chat.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chat_id: Option<ChatId>,
    pub message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The older word for `agent`, which wins if both are there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub behavior: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// How v0 calls `contexts`. Kept apart, because its use tells something about the client.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "optional_list")]
    pub context: Option<Vec<ChatContext>>,
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "optional_list")]
    pub contexts: Option<Vec<ChatContext>>,
    /// How hard the model should think, in the model's own words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub variant: Option<String>,
    /// Whether tool calls that would ask may run unasked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trust: Option<bool>,
}

/// The prompt was taken; the answer itself comes as content.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ChatPromptResult {
    pub chat_id: ChatId,
    /// Required since v1; empty in a login step.
    #[serde(default)]
    pub model: String,
    pub status: ChatPromptStatus,
    /// Required by v0 and harmless to the others, so it is always written.
    #[serde(default)]
    pub result_message: String,
}

closed_words! {
    /// What became of a prompt.
    pub enum ChatPromptStatus {
        Prompting = "prompting",
        Login = "login",
        Error = "error",
        Idle = "idle",
        /// v0 only.
        Success = "success",
        /// v0 only.
        ConnectionError = "connection-error",
    }
}

/// Which chat's turn to end.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ChatPromptStopParams {
    pub chat_id: ChatId,
}

/// What to slip into the running turn.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ChatPromptSteerParams {
    pub chat_id: ChatId,
    pub message: String,
}

/// Whose steering message to withdraw.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ChatPromptSteerRemoveParams {
    pub chat_id: ChatId,
}

/// The agent the user selected. Both words are read in both methods, because clients of either age use either.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ChatSelectedAgentChangedParams {
    /// Limits the selection to one chat.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chat_id: Option<ChatId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub behavior: Option<String>,
}

/// The same message under its older name.
pub type ChatSelectedBehaviorChangedParams = ChatSelectedAgentChangedParams;

/// The model the user selected.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ChatSelectedModelChangedParams {
    /// Limits the selection to one chat.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chat_id: Option<ChatId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub variant: Option<String>,
}
