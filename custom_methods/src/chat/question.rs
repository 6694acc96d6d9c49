//! Questions that a turn puts to the user.

use serde::{Deserialize, Serialize};

use crate::ids::{ChatId, ToolCallId};
use crate::tolerant::null_as_default;

/// What to ask, and what to offer as answers.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ChatAskQuestionParams {
    pub chat_id: ChatId,
    pub question: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub options: Option<Vec<QuestionOption>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_call_id: Option<ToolCallId>,
    /// Whether the user may answer something that is not among the options.
    pub allow_freeform: bool,
    /// Sent by the public server; nobody is known to read it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
}

/// One answer to choose.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct QuestionOption {
    pub label: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
}

/// The user's answer, `null` if there is none.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChatAskQuestionResult {
    pub answer: Option<String>,
    #[serde(default, deserialize_with = "null_as_default")]
    pub cancelled: bool,
}
