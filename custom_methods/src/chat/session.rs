//! Chats as things that are kept: listed, opened, renamed, wound back, forked, deleted.

use serde::{Deserialize, Serialize};

use crate::chat::ChatContentReceivedParams;
use crate::common::ResultError;
use crate::ids::{ChatId, ContentId};
use crate::tolerant::list_or_empty;

/// Which chat to delete; without it, the one last prompted.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ChatDeleteParams {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chat_id: Option<ChatId>,
}

/// What to empty.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ChatClearParams {
    pub chat_id: ChatId,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub messages: Option<bool>,
}

/// How far to go back, and with what.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ChatRollbackParams {
    pub chat_id: ChatId,
    pub content_id: ContentId,
    /// Empty for everything. eca-intellij writes `includes`.
    #[serde(default, alias = "includes", deserialize_with = "list_or_empty")]
    pub include: Vec<RollbackInclude>,
    /// Our addition: also restore files that somebody else has changed since.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub force: Option<bool>,
}

open_words! {
    /// What a rollback takes back.
    pub enum RollbackInclude {
        Messages = "messages",
        /// What tools did to files.
        Tools = "tools",
    }
    /// By which time to order chats.
    pub enum ChatListSortBy {
        UpdatedAt = "updatedAt",
        CreatedAt = "createdAt",
    }
}

/// Where to put a mark, and what to write on it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ChatAddFlagParams {
    pub chat_id: ChatId,
    pub content_id: ContentId,
    pub text: String,
}

/// Which mark to take away.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ChatRemoveFlagParams {
    pub chat_id: ChatId,
    pub content_id: ContentId,
}

/// Up to which message, that one included, to copy a chat.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ChatForkParams {
    pub chat_id: ChatId,
    pub content_id: ContentId,
}

/// What to change about a chat.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ChatUpdateParams {
    pub chat_id: ChatId,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trust: Option<bool>,
}

/// How many chats to list, and in which order.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ChatListParams {
    /// All, if absent or not positive.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sort_by: Option<ChatListSortBy>,
}

/// The chats.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChatListResult {
    pub chats: Vec<ChatSummary>,
}

/// A chat in a list. Times are milliseconds since 1970.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ChatSummary {
    pub id: ChatId,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    pub status: ChatStatus,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub created_at: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub updated_at: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    pub message_count: u64,
}

closed_words! {
    /// What a chat is doing.
    pub enum ChatStatus {
        Running = "running",
        Idle = "idle",
        Stopping = "stopping",
        /// Waiting for a step of a login.
        Login = "login",
    }
}

/// Which chat to send again, and how much of it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ChatOpenParams {
    pub chat_id: ChatId,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<i64>,
    /// A cursor: only what came earlier.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before: Option<String>,
    /// A cursor, or `lastCompaction`: only what came later.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
}

/// Whether there is such a chat, and how it stands.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ChatOpenResult {
    #[serde(default)]
    pub found: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chat_id: Option<ChatId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub selection: Option<ChatSelection>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub meta: Option<ChatPageMeta>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<ResultError>,
}

/// What is selected in a chat. `model` and `variant` are written as `null` if nothing is.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChatSelection {
    pub model: Option<String>,
    pub agent: String,
    pub variant: Option<String>,
    pub variants: Vec<String>,
    pub trust: bool,
}

/// Which part of a chat was returned. The cursors are written as `null` if there is nothing in their direction.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ChatPageMeta {
    pub total: u64,
    pub returned: u64,
    pub before_cursor: Option<String>,
    pub after_cursor: Option<String>,
    pub compaction_cursor: Option<String>,
}

/// Which page of which chat.
pub type ChatHistoryParams = ChatOpenParams;

/// The page, or why there is none.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ChatHistoryResult {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub contents: Option<Vec<ChatContentReceivedParams>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub meta: Option<ChatPageMeta>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<ResultError>,
}

/// A chat was emptied.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ChatClearedParams {
    pub chat_id: ChatId,
    pub messages: bool,
}

/// A chat is there.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ChatOpenedParams {
    pub chat_id: ChatId,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
}

/// A chat does something else now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ChatStatusChangedParams {
    pub chat_id: ChatId,
    pub status: ChatStatus,
}

/// A chat is gone.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ChatDeletedParams {
    pub chat_id: ChatId,
}
