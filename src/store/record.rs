//! The shape of a message inside the database, apart from the engine's own types.
//!
//! These structs are a file format: a field may be added with a default, none may change its
//! meaning. Reading ignores fields it does not know, and parts of a kind it does not know, so an
//! older server can still show what a newer one wrote.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::llm::{Image, Message, Part, Replay, Role};

/// Written into every row, so that a later version can tell what it reads.
const CURRENT_VERSION: u32 = 1;

/// The body of one row.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct StoredMessage {
    version: u32,
    role: StoredRole,
    #[serde(default)]
    parts: Vec<StoredPart>,
    #[serde(default, skip_serializing_if = "Option::is_none", with = "json_text")]
    extra: Option<Value>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum StoredRole {
    User,
    Assistant,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum StoredPart {
    Text {
        text: String,
    },
    Image {
        media_type: String,
        base64: String,
    },
    Reasoning {
        text: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        replay: Option<StoredReplay>,
    },
    ToolCall {
        id: String,
        name: String,
        arguments: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        replay: Option<StoredReplay>,
    },
    ToolResult {
        call_id: String,
        text: String,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        images: Vec<StoredImage>,
        #[serde(default)]
        error: bool,
    },
    Opaque {
        replay: StoredReplay,
    },
    /// A kind of part this version does not know; never written.
    #[serde(other, skip_serializing)]
    Unknown,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct StoredImage {
    media_type: String,
    base64: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct StoredReplay {
    dialect: String,
    #[serde(default, with = "json_text")]
    data: Option<Value>,
}

/// Why a row's body is of no use. Says nothing of what it holds, because this goes to the log.
#[derive(Debug, thiserror::Error)]
pub(super) enum UnreadableMessage {
    #[error("its body is no message ({category:?} error at line {line}, column {column})")]
    NoMessage { category: serde_json::error::Category, line: usize, column: usize },
    #[error("its format {0} has no part this version knows")]
    OnlyUnknownParts(u32),
}

impl StoredMessage {
    pub(super) fn new(message: Message, extra: Option<Value>) -> Self {
        let role = match message.role {
            Role::User => StoredRole::User,
            Role::Assistant => StoredRole::Assistant,
        };
        Self { version: CURRENT_VERSION, role, parts: message.parts.into_iter().map(stored_part).collect(), extra }
    }

    /// What was said and what tools printed, in order. Not what the model thought.
    pub(super) fn texts(&self) -> impl Iterator<Item = &str> {
        self.parts.iter().filter_map(|part| match part {
            StoredPart::Text { text } | StoredPart::ToolResult { text, .. } => Some(text.as_str()),
            StoredPart::Image { .. }
            | StoredPart::Reasoning { .. }
            | StoredPart::ToolCall { .. }
            | StoredPart::Opaque { .. }
            | StoredPart::Unknown => None,
        })
    }

    /// What this version can write again.
    pub(super) fn without_unknown_parts(mut self) -> Self {
        self.parts.retain(|part| !matches!(part, StoredPart::Unknown));
        self
    }

    pub(super) fn to_json(&self) -> Result<String, serde_json::Error> {
        serde_json::to_string(self)
    }

    pub(super) fn from_json(text: &[u8]) -> Result<Self, UnreadableMessage> {
        serde_json::from_slice(text).map_err(|error| UnreadableMessage::NoMessage {
            category: error.classify(),
            line: error.line(),
            column: error.column(),
        })
    }

    /// The engine's message and the data beside it.
    pub(super) fn into_message(self) -> Result<(Message, Option<Value>), UnreadableMessage> {
        let role = match self.role {
            StoredRole::User => Role::User,
            StoredRole::Assistant => Role::Assistant,
        };
        let had_parts = !self.parts.is_empty();
        let parts: Vec<Part> = self.parts.into_iter().filter_map(known_part).collect();
        if had_parts && parts.is_empty() {
            return Err(UnreadableMessage::OnlyUnknownParts(self.version));
        }
        Ok((Message { role, parts }, self.extra))
    }
}

fn stored_part(part: Part) -> StoredPart {
    match part {
        Part::Text(text) => StoredPart::Text { text },
        Part::Image(Image { media_type, base64 }) => StoredPart::Image { media_type, base64 },
        Part::Reasoning { text, replay } => StoredPart::Reasoning { text, replay: replay.map(stored_replay) },
        Part::ToolCall { id, name, arguments, replay } => {
            StoredPart::ToolCall { id, name, arguments, replay: replay.map(stored_replay) }
        }
        Part::ToolResult { call_id, text, images, error } => StoredPart::ToolResult {
            call_id,
            text,
            images: images.into_iter().map(|Image { media_type, base64 }| StoredImage { media_type, base64 }).collect(),
            error,
        },
        Part::Opaque(replay) => StoredPart::Opaque { replay: stored_replay(replay) },
    }
}

fn stored_replay(replay: Replay) -> StoredReplay {
    StoredReplay { dialect: replay.dialect, data: Some(replay.data) }
}

/// Without its data a replay is worthless; what it belongs to is not.
fn known_replay(replay: StoredReplay) -> Option<Replay> {
    replay.data.map(|data| Replay { dialect: replay.dialect, data })
}

fn known_part(part: StoredPart) -> Option<Part> {
    Some(match part {
        StoredPart::Text { text } => Part::Text(text),
        StoredPart::Image { media_type, base64 } => Part::Image(Image { media_type, base64 }),
        StoredPart::Reasoning { text, replay } => Part::Reasoning { text, replay: replay.and_then(known_replay) },
        StoredPart::ToolCall { id, name, arguments, replay } => {
            Part::ToolCall { id, name, arguments, replay: replay.and_then(known_replay) }
        }
        StoredPart::ToolResult { call_id, text, images, error } => Part::ToolResult {
            call_id,
            text,
            images: images.into_iter().map(|StoredImage { media_type, base64 }| Image { media_type, base64 }).collect(),
            error,
        },
        StoredPart::Opaque { replay } => Part::Opaque(known_replay(replay)?),
        StoredPart::Unknown => return None,
    })
}

/// Keeps a JSON value as text inside the JSON body.
///
/// A vendor's data may be nested as deeply as the parser allows; embedded as it is, it would sit
/// a few levels deeper than that and make the whole row unreadable.
mod json_text {
    use serde::{Deserialize, Deserializer, Serializer, ser::Error};
    use serde_json::Value;

    pub(super) fn serialize<S: Serializer>(value: &Option<Value>, serializer: S) -> Result<S::Ok, S::Error> {
        match value {
            Some(value) => serializer.serialize_str(&serde_json::to_string(value).map_err(S::Error::custom)?),
            None => serializer.serialize_none(),
        }
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
        // Text that is no JSON costs this value, not the message around it.
        Ok(Option::<String>::deserialize(deserializer)?.and_then(|text| serde_json::from_str(&text).ok()))
    }
}
