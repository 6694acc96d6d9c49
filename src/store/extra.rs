//! What a message is shown with besides its parts, in the form that is kept in its `extra`.
//!
//! No model sees any of this. It is what a client needs to draw a stored chat as it was drawn
//! live: how a tool call was described, what it changed, how long it took. The fields are a file
//! format: one may be added with a default, none may change its meaning.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Everything that may stand in a message's `extra`. Fields of newer versions and of others are
/// kept as they are.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct MessageExtra {
    /// On the message with the results, one for each; on the message with the calls, those that
    /// never got a result.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<CallRecord>,
    /// Tools that ran at the provider while it wrote this message.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub server_tools: Vec<ServerToolRecord>,
    /// How long each of the message's thoughts took, in their order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reasoning_ms: Vec<Option<u64>>,
    /// On a marker.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compaction: Option<Compaction>,
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

/// One call of a tool, as it was shown.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct CallRecord {
    pub id: String,
    /// Without the server's name.
    #[serde(default)]
    pub name: String,
    #[serde(default)]
    pub server: String,
    /// `native`, `mcp` or `server`.
    #[serde(default)]
    pub origin: String,
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub arguments: Map<String, Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub details: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total_time_ms: Option<u64>,
    /// Why it did not run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rejected: Option<String>,
    /// The chat of the agent that the call started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subagent_chat: Option<String>,
}

/// One use of a tool that ran at the provider.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ServerToolRecord {
    pub id: String,
    #[serde(default)]
    pub name: String,
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub input: Map<String, Value>,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub output: String,
    #[serde(default)]
    pub error: bool,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Compaction {
    /// Not asked for by the user.
    #[serde(default)]
    pub auto: bool,
}

impl MessageExtra {
    /// What a stored message has; what cannot be understood is as good as nothing.
    pub fn read(extra: Option<&Value>) -> Self {
        extra.and_then(|extra| Self::deserialize(extra).ok()).unwrap_or_default()
    }

    /// The value for a new message; `None` when there is nothing to keep.
    pub fn to_value(&self) -> Option<Value> {
        let value = serde_json::to_value(self).ok()?;
        value.as_object().is_some_and(|fields| !fields.is_empty()).then_some(value)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn comes_back_with_what_others_added() {
        let value = json!({
            "calls": [{"id": "c", "name": "read_file", "server": "eca", "origin": "native",
                       "arguments": {"path": "/a"}, "summary": "Reading", "details": {"type": "x"}, "total_time_ms": 7}],
            "compaction": {"auto": true},
            "mood": [1]
        });
        let extra = MessageExtra::read(Some(&value));
        assert_eq!((extra.calls.len(), extra.compaction), (1, Some(Compaction { auto: true })));
        assert_eq!(extra.to_value(), Some(value));
    }

    #[test]
    fn nothing_and_nonsense_are_nothing() {
        for value in [None, Some(json!(null)), Some(json!([1])), Some(json!({"calls": 7}))] {
            assert_eq!(MessageExtra::read(value.as_ref()), MessageExtra::default(), "{value:?}");
        }
        assert_eq!(MessageExtra::default().to_value(), None);
    }
}
