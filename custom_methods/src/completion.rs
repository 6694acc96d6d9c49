//! Text proposed at the cursor while the user types.

use serde::{Deserialize, Serialize};

use crate::common::{Position, Range};

/// The document as it is, and where the cursor stands. Positions count from 1.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CompletionInlineParams {
    pub doc_text: String,
    /// Handed back with the proposal, so that the client can tell whether it is still about the same text.
    pub doc_version: i64,
    pub position: Position,
    /// Sent by eca-emacs only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
}

/// The proposals, or why there are none.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CompletionInlineResult {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub items: Option<Vec<CompletionItem>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<CompletionError>,
}

/// A proposal and the text it replaces.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CompletionItem {
    pub text: String,
    pub doc_version: i64,
    pub range: Range,
}

/// Why there is no proposal, and how loudly to say so.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CompletionError {
    #[serde(rename = "type")]
    pub kind: crate::general::MessageType,
    pub message: String,
}
