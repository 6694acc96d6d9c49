//! The chunk that makes up nearly all of a stream: one choice with a piece of text and nothing
//! else. It is read without building a JSON tree, which is most of what decoding costs.
//!
//! Whatever is not exactly that gives `None` and goes the usual way, so that one place knows the
//! deviations of the servers. Nothing here may accept what that place would read differently.

use std::fmt;
use std::marker::PhantomData;

use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserializer, IgnoredAny, MapAccess, Visitor};

/// The text of a chunk that holds text alone.
pub(super) fn text(data: &str) -> Option<String> {
    let Object(chunk) = serde_json::from_str::<Object<Chunk>>(data).ok()?;
    let [Object(choice)] = chunk.choices;
    let Object(delta) = choice.delta;
    let nothing_else = [
        chunk.error,
        chunk.usage,
        chunk.x_groq,
        choice.error,
        choice.usage,
        choice.finish_reason,
        delta.reasoning_content,
        delta.reasoning,
        delta.reasoning_text,
        delta.refusal,
        delta.tool_calls,
    ];
    // A piece of an answer that is not the first is none of ours.
    let only_text = choice.index.unwrap_or(0) == 0 && nothing_else.iter().all(Option::is_none);
    only_text.then_some(delta.content)
}

/// Null counts as absent; anything else may mean something.
type Absent = Option<IgnoredAny>;

#[derive(Deserialize)]
struct Chunk {
    choices: [Object<Choice>; 1],
    error: Absent,
    usage: Absent,
    x_groq: Absent,
}

#[derive(Deserialize)]
struct Choice {
    index: Option<u64>,
    delta: Object<Delta>,
    error: Absent,
    usage: Absent,
    finish_reason: Absent,
}

#[derive(Deserialize)]
struct Delta {
    content: String,
    reasoning_content: Absent,
    reasoning: Absent,
    reasoning_text: Absent,
    refusal: Absent,
    tool_calls: Absent,
}

/// A JSON object; on its own, serde would also take a list of the fields' values.
struct Object<T>(T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(ObjectVisitor(PhantomData)).map(Self)
    }
}

struct ObjectVisitor<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for ObjectVisitor<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<T, A::Error> {
        T::deserialize(MapAccessDeserializer::new(map))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_alone_is_read() {
        for (data, expected) in [
            (r#"{"choices":[{"delta":{"content":"hi"}}]}"#, "hi"),
            (
                r#"{"id":"x","choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}]}"#,
                "",
            ),
            (
                r#"{"choices":[{"delta":{"content":"a\n\u00e9","tool_calls":null},"logprobs":{"a":[1]}}],"usage":null}"#,
                "a\né",
            ),
        ] {
            assert_eq!(text(data).as_deref(), Some(expected), "{data}");
        }
    }

    #[test]
    fn whatever_may_mean_something_else_goes_the_usual_way() {
        for data in [
            "",
            "[DONE]",
            "{",
            r#"{"choices":[]}"#,
            r#"[[{"delta":{"content":"hi"}}]]"#,
            r#"{"choices":[[0,{"content":"hi"}]]}"#,
            r#"{"choices":[{"delta":["hi"]}]}"#,
            r#"{"choices":[{"delta":{"content":null}}]}"#,
            r#"{"choices":[{"delta":{"content":[{"type":"text","text":"hi"}]}}]}"#,
            r#"{"choices":[{"delta":{}}]}"#,
            r#"{"choices":[{"message":{"content":"hi"}}]}"#,
            r#"{"choices":[{"delta":{"content":"a","content":"b"}}]}"#,
            r#"{"choices":[{"index":1,"delta":{"content":"hi"}}]}"#,
            r#"{"choices":[{"delta":{"content":"hi"}},{"index":1,"delta":{"content":"hi"}}]}"#,
            r#"{"choices":[{"delta":{"content":"hi"},"finish_reason":"stop"}]}"#,
            r#"{"choices":[{"delta":{"content":"hi","reasoning_content":"r"}}]}"#,
            r#"{"choices":[{"delta":{"content":"hi","reasoning":"r"}}]}"#,
            r#"{"choices":[{"delta":{"content":"hi","refusal":"r"}}]}"#,
            r#"{"choices":[{"delta":{"content":"hi","tool_calls":[]}}]}"#,
            r#"{"choices":[{"delta":{"content":"hi"}}],"usage":{"prompt_tokens":1}}"#,
            r#"{"choices":[{"delta":{"content":"hi"},"usage":{"prompt_tokens":1}}]}"#,
            r#"{"choices":[{"delta":{"content":"hi"}}],"x_groq":{"usage":{}}}"#,
            r#"{"choices":[{"delta":{"content":"hi"}}],"error":{"message":"no"}}"#,
            r#"{"choices":[{"delta":{"content":"hi"}}]} x"#,
        ] {
            assert_eq!(text(data), None, "{data}");
        }
    }
}
