//! What goes into the store and what comes out of it, as plain data.

use serde_json::Value;

use crate::base::{ChatId, ContentId, ModelId};
use crate::llm::{Message, Usage};

/// What is known of a chat when it is created or taken up again. `None` leaves what is stored.
#[derive(Debug, Clone, PartialEq)]
pub struct ChatMeta {
    pub id: ChatId,
    pub model: Option<ModelId>,
    pub agent: Option<String>,
    /// Opaque to the store; chats with the same key are listed together.
    pub workspace_key: Option<String>,
    pub variant: Option<String>,
    pub trust: Option<bool>,
    /// The chat that this one works for. Such a chat is in no list, and goes when its parent goes.
    pub parent: Option<ChatId>,
}

impl ChatMeta {
    /// A chat of which only the id is known.
    pub fn new(id: ChatId) -> Self {
        Self { id, model: None, agent: None, workspace_key: None, variant: None, trust: None, parent: None }
    }
}

/// What the user chose for a chat. `None` leaves what is stored.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ChatSettings {
    pub model: Option<ModelId>,
    pub agent: Option<String>,
    /// `Some(None)` goes back to the model's default.
    pub variant: Option<Option<String>>,
    pub trust: Option<bool>,
}

/// One message to be appended.
#[derive(Debug, Clone, PartialEq)]
pub struct NewMessage {
    pub kind: MessageKind,
    pub content_id: Option<ContentId>,
    pub message: Message,
    /// What the engine wants back beside the message and no model sees.
    pub extra: Option<Value>,
}

impl NewMessage {
    /// A message without content id or extra data.
    pub fn new(kind: MessageKind, message: Message) -> Self {
        Self { kind, content_id: None, message, extra: None }
    }
}

/// What a row of a chat is to the engine. The store gives meaning to one of them only: a page
/// can begin at the last marker, which is where a compaction left the model's view of the chat.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MessageKind {
    User,
    Assistant,
    ToolResult,
    SystemNote,
    Marker,
    /// Written by a version that knows more kinds than this one.
    Other(String),
}

impl MessageKind {
    pub fn as_str(&self) -> &str {
        match self {
            Self::User => "user",
            Self::Assistant => "assistant",
            Self::ToolResult => "tool_result",
            Self::SystemNote => "system_note",
            Self::Marker => "marker",
            Self::Other(name) => name,
        }
    }
}

impl From<&str> for MessageKind {
    fn from(name: &str) -> Self {
        match name {
            "user" => Self::User,
            "assistant" => Self::Assistant,
            "tool_result" => Self::ToolResult,
            "system_note" => Self::SystemNote,
            "marker" => Self::Marker,
            other => Self::Other(other.to_owned()),
        }
    }
}

/// Who chose a chat's title. A title made automatically never replaces the user's own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TitleSource {
    Auto,
    User,
}

impl TitleSource {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::User => "user",
        }
    }

    pub(super) fn parse(text: &str) -> Option<Self> {
        match text {
            "auto" => Some(Self::Auto),
            "user" => Some(Self::User),
            _ => None,
        }
    }
}

/// A chat as it was left, with its messages in order. Rows that cannot be read are left out, so
/// a tool call may lack its result: the engine repairs what it sends to a model.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredChat {
    pub id: ChatId,
    pub title: Option<String>,
    pub title_source: Option<TitleSource>,
    pub model: Option<ModelId>,
    pub agent: Option<String>,
    pub workspace_key: Option<String>,
    pub variant: Option<String>,
    pub trust: Option<bool>,
    pub parent: Option<ChatId>,
    pub created_at: i64,
    pub updated_at: i64,
    /// When it came from elsewhere.
    pub imported_at: Option<i64>,
    pub total_usage: Usage,
    /// Usage of the latest request, which tells how full the context window is.
    pub last_usage: Usage,
    /// `None` while no price was known for any request.
    pub cost_usd: Option<f64>,
    /// Rows of every kind, the unreadable ones included.
    pub message_count: u64,
    pub messages: Vec<StoredEntry>,
    pub flags: Vec<StoredFlag>,
}

/// One stored message. `seq` grows along the chat and is never used twice in it.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredEntry {
    pub seq: i64,
    pub kind: MessageKind,
    pub content_id: Option<ContentId>,
    pub message: Message,
    pub extra: Option<Value>,
    pub created_at: i64,
}

/// A mark that the user put into a chat. It is shown between messages and no model sees it, so
/// it is not one of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredFlag {
    /// The `seq` of the message it stands behind; 0 at the very beginning.
    pub after: i64,
    pub content_id: ContentId,
    pub text: String,
    pub created_at: i64,
}

/// Which chats to list, newest first. Chats that work for another one are never listed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ListQuery {
    /// `None` lists the chats of every workspace.
    pub workspace_key: Option<String>,
    pub limit: Option<usize>,
    pub sort: ListSort,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ListSort {
    #[default]
    UpdatedAt,
    CreatedAt,
}

/// A chat in a list. `message_count` counts rows of every kind.
#[derive(Debug, Clone, PartialEq)]
pub struct ChatSummary {
    pub id: ChatId,
    pub title: Option<String>,
    pub workspace_key: Option<String>,
    pub model: Option<ModelId>,
    pub created_at: i64,
    pub updated_at: i64,
    pub message_count: u64,
}
