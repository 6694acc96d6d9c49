//! Content: everything a client shows of a chat arrives as one of these, in order. The tool call kinds are in the
//! module beside this one.

use serde::{Deserialize, Serialize};

use crate::chat::{
    ChatToolCallPrepareContent, ChatToolCallRejectedContent, ChatToolCallRunContent, ChatToolCallRunningContent,
    ChatToolCalledContent,
};
use crate::common::LineSpan;
use crate::ids::{ChatId, ContentId, ReasonId, ToolCallId};

/// One piece of content and where it belongs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ChatContentReceivedParams {
    pub chat_id: ChatId,
    /// Absent only in v0, which knew no roles.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role: Option<ChatRole>,
    pub content: ChatContent,
    /// The chat that started this one, if it is a subagent's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent_chat_id: Option<ChatId>,
    /// v0 only: whether the turn ends with this piece.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub is_complete: Option<bool>,
    /// v0 only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata: Option<ContentMetadata>,
}

/// Numbers about the turn, as v0 has them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ContentMetadata {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens_used: Option<u64>,
}

closed_words! {
    /// Who a piece of content is from.
    pub enum ChatRole {
        User = "user",
        System = "system",
        Assistant = "assistant",
    }
    /// Whether the turn goes on.
    pub enum ChatProgressState {
        Running = "running",
        Finished = "finished",
    }
    /// What a hook runs.
    pub enum HookActionType {
        Shell = "shell",
    }
    /// What happens to a file, in v0's words.
    pub enum FileChangeKind {
        Create = "create",
        Change = "change",
        Delete = "delete",
    }
}

tagged_union! {
    /// What a piece of content is.
    pub enum ChatContent: "content" by "type" {
        Text(ChatTextContent) = "text",
        /// v0 only.
        FileChange(ChatFileChangeContent) = "fileChange",
        Url(ChatUrlContent) = "url",
        Progress(ChatProgressContent) = "progress",
        Usage(ChatUsageContent) = "usage",
        ReasonStarted(ChatReasonStartedContent) = "reasonStarted",
        ReasonText(ChatReasonTextContent) = "reasonText",
        ReasonFinished(ChatReasonFinishedContent) = "reasonFinished",
        ToolCallPrepare(ChatToolCallPrepareContent) = "toolCallPrepare",
        ToolCallRun(ChatToolCallRunContent) = "toolCallRun",
        ToolCallRunning(ChatToolCallRunningContent) = "toolCallRunning",
        ToolCalled(ChatToolCalledContent) = "toolCalled",
        ToolCallRejected(ChatToolCallRejectedContent) = "toolCallRejected",
        Metadata(ChatMetadataContent) = "metadata",
        Image(ChatImageContent) = "image",
        HookActionStarted(ChatHookActionStartedContent) = "hookActionStarted",
        HookActionFinished(ChatHookActionFinishedContent) = "hookActionFinished",
        Flag(ChatFlagContent) = "flag",
    }
}

/// Text, or the next piece of one.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ChatTextContent {
    pub text: String,
    /// Only on the echo of a user's message: what rollback, fork and flags point at.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content_id: Option<ContentId>,
    /// v0 only: fenced code that this piece completes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code_blocks: Option<Vec<CodeBlock>>,
}

/// Fenced code within a text.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CodeBlock {
    pub code: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub language: Option<String>,
}

/// How v0 shows a tool call that changes a file.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ChatFileChangeContent {
    /// Our addition, without which the change could not be approved.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<ToolCallId>,
    pub description: String,
    pub manual_approval: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub changes: Option<Vec<FileChange>>,
}

/// One change to a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileChange {
    pub kind: FileChangeKind,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub range: Option<LineSpan>,
}

/// A page the model refers to.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChatUrlContent {
    pub title: String,
    pub url: String,
}

/// What the server is doing. `finished` ends the turn, exactly once.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChatProgressContent {
    pub state: ChatProgressState,
    /// Always written, also when empty: the published protocol documents require it.
    #[serde(default)]
    pub text: String,
}

/// Tokens and money.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ChatUsageContent {
    /// How much of the context window is taken, to be read against `limit.context`.
    pub session_tokens: u64,
    /// Everything spent in this chat so far.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_message_cost: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_cost: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<UsageLimit>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub auto_compact_percentage: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context_breakdown: Option<ContextBreakdown>,
}

/// The model's limits, in tokens.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct UsageLimit {
    pub context: u64,
    pub output: u64,
}

/// What fills the context window.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ContextBreakdown {
    pub categories: Vec<ContextCategory>,
    pub used_tokens: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub free_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context_limit: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub free_color: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub free_emoji: Option<String>,
}

/// One kind of filling and how to paint it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContextCategory {
    pub name: String,
    pub tokens: u64,
    pub color: String,
    pub emoji: String,
}

/// The model begins to think.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChatReasonStartedContent {
    pub id: ReasonId,
}

/// The next piece of what it thinks.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChatReasonTextContent {
    pub id: ReasonId,
    pub text: String,
}

/// It has thought.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ChatReasonFinishedContent {
    pub id: ReasonId,
    pub total_time_ms: u64,
}

/// What the chat is called.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChatMetadataContent {
    pub title: String,
}

/// A picture.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ChatImageContent {
    pub media_type: String,
    /// The bytes, without a `data:` prefix.
    pub base64: String,
}

/// One of the user's hooks begins.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ChatHookActionStartedContent {
    pub id: String,
    pub name: String,
    pub action_type: HookActionType,
}

/// One of the user's hooks has ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ChatHookActionFinishedContent {
    pub id: String,
    pub name: String,
    pub action_type: HookActionType,
    /// The exit code.
    pub status: i32,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_call_id: Option<ToolCallId>,
}

/// A mark the user put at a message.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ChatFlagContent {
    pub text: String,
    pub content_id: ContentId,
}
