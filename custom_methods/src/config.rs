//! What a client may offer for selection, and what it should select.

use serde::{Deserialize, Serialize};

use crate::ids::ChatId;
use crate::tolerant::present;

/// A change of configuration. A field that is absent did not change.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ConfigUpdatedParams {
    /// Limits the selections below to one chat.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chat_id: Option<ChatId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chat: Option<ChatConfig>,
}

/// The part about chats. The older words (`behaviors`, …) and the newer ones (`agents`, …) stand side by side, because
/// no message tells the server which of them a client reads.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ChatConfig {
    /// Full ids, `provider/model`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub models: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub behaviors: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agents: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub select_model: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub select_behavior: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub select_agent: Option<String>,
    /// The selected model's variants; empty if it has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub variants: Option<Vec<String>>,
    /// `Some(None)` is written as `null` and means the model's default: the one selection for which `null` is not "no
    /// change".
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    pub select_variant: Option<Option<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub select_trust: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub welcome_message: Option<String>,
    /// This and the two below are deprecated; eca-nvim still reads the last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default_model: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default_agent: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default_behavior: Option<String>,
}
