//! Replacing a selected text by what the model makes of it.

use serde::{Deserialize, Serialize};

use crate::common::Range;
use crate::ids::RewriteId;

/// What to rewrite and how.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RewritePromptParams {
    pub id: RewriteId,
    pub text: String,
    pub prompt: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// Where the text stands in the file, counted from 1. Required by the documents; without a file there is nothing to
    /// point at.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub range: Option<Range>,
}

/// The rewrite has begun.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RewritePromptResult {
    pub status: RewriteStatus,
    pub model: String,
}

closed_words! {
    /// How a rewrite stands when it is answered; a failure is a JSON-RPC error instead.
    pub enum RewriteStatus {
        Prompting = "prompting",
    }
}

/// A piece of a rewrite.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RewriteContentReceivedParams {
    pub rewrite_id: RewriteId,
    pub content: RewriteContent,
}

tagged_union! {
    /// What can happen in a rewrite.
    pub enum RewriteContent: "content" by "type" {
        Started(RewriteStartedContent) = "started",
        Reasoning(RewriteReasoningContent) = "reasoning",
        Text(RewriteTextContent) = "text",
        Replace(RewriteReplaceContent) = "replace",
        Error(RewriteErrorContent) = "error",
        Finished(RewriteFinishedContent) = "finished",
    }
}

/// The model was asked.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RewriteStartedContent {}

/// The model thinks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RewriteReasoningContent {}

/// More of the new text.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RewriteTextContent {
    pub text: String,
}

/// The whole new text, in place of the pieces sent so far.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RewriteReplaceContent {
    pub text: String,
}

/// The rewrite failed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RewriteErrorContent {
    pub message: String,
}

/// The new text is complete.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RewriteFinishedContent {
    pub total_time_ms: u64,
}
