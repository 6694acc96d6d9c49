//! Shapes that several areas share.

use serde::de::IgnoredAny;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

/// Parameters or a result without content. Written as `{}`, read from anything: the clients disagree on `{}`, `[]` and
/// `null`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Empty;

impl Serialize for Empty {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(std::iter::empty::<((), ())>())
    }
}

impl<'de> Deserialize<'de> for Empty {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        IgnoredAny::deserialize(deserializer).map(|_| Self)
    }
}

/// A place in a text. Whether the first line is 0 or 1 is a matter of the message (and, for diagnostics, of the
/// client).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Position {
    pub line: u32,
    pub character: u32,
}

/// A stretch of text between two places.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Range {
    pub start: Position,
    pub end: Position,
}

/// Whole lines, first and last included, counted from 1: v0's way to say it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LineSpan {
    pub start_line: u32,
    pub end_line: u32,
}

/// A refusal inside a result, for the methods whose clients look for it there instead of in a JSON-RPC error.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ResultError {
    /// A word such as `chat_not_found`; a number is read as its digits.
    #[serde(default, skip_serializing_if = "String::is_empty", deserialize_with = "crate::tolerant::text_or_number")]
    pub code: String,
    pub message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data: Option<Value>,
}
