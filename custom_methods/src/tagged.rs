//! What `tagged_union!` needs at run time: find the tag, then decode the member and say which field was wrong.
//!
//! The member is decoded from an already parsed value, so an outer path tracker (the server uses `serde_path_to_error`)
//! sees only the place of the union. The part of the path below it is therefore put into the message here.

use std::marker::PhantomData;

use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{DeserializeOwned, DeserializeSeed, Deserializer, Error, IntoDeserializer, MapAccess};
use serde_json::Value;

/// Reads any JSON and insists that it is an object.
pub fn object<'de, D: Deserializer<'de>>(deserializer: D, label: &str) -> Result<Value, D::Error> {
    let value = Value::deserialize(deserializer)?;
    if value.is_object() {
        Ok(value)
    } else {
        Err(D::Error::custom(format_args!("{label}: expected an object, got {value}")))
    }
}

/// The word in the field `tag`, if it is there and is text.
pub fn tag_of<'value>(value: &'value Value, tag: &str) -> Option<&'value str> {
    value.get(tag)?.as_str()
}

/// Decodes one member; a failure reads like ``context file: missing field `path` ``.
pub fn member<T: DeserializeOwned, E: Error>(value: Value, label: &str, word: &str) -> Result<T, E> {
    let Value::Object(fields) = value else {
        return Err(E::custom(format_args!("{label} {word}: expected an object")));
    };
    let fields = NamedFields::<serde_json::Error> { fields: fields.into_iter(), current: None, error: PhantomData };
    T::deserialize(MapAccessDeserializer::new(fields))
        .map_err(|error| E::custom(format_args!("{label} {word}: {error}")))
}

/// Hands out an object's fields and puts the field's name before an error in its value.
struct NamedFields<E> {
    fields: serde_json::map::IntoIter,
    current: Option<(String, Value)>,
    error: PhantomData<E>,
}

impl<'de, E: Error> MapAccess<'de> for NamedFields<E> {
    type Error = E;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, E> {
        self.current = self.fields.next();
        match &self.current {
            Some((name, _)) => seed.deserialize(name.clone().into_deserializer()).map(Some),
            None => Ok(None),
        }
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, E> {
        let Some((name, value)) = self.current.take() else {
            return Err(E::custom("a field's value was asked for before its name"));
        };
        seed.deserialize(value).map_err(|error| E::custom(format_args!("{name}: {error}")))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use serde_json::json;

    use crate::chat::{ChatContent, ChatContext, ChatTextContent};

    #[test]
    fn an_unknown_member_survives_unchanged() {
        let sent = json!({"type": "hologram", "depth": [1, null]});
        let content: ChatContent = serde_json::from_value(sent.clone()).unwrap();
        assert_eq!(content.tag(), "hologram");
        assert_eq!(content, ChatContent::Unknown(sent.clone()));
        assert_eq!(serde_json::to_value(content).unwrap(), sent);
    }

    #[test]
    fn a_member_without_a_tag_is_unknown_too() {
        let sent = json!({"path": "/a"});
        let context: ChatContext = serde_json::from_value(sent.clone()).unwrap();
        assert_eq!(context.tag(), "");
        assert_eq!(serde_json::to_value(context).unwrap(), sent);
    }

    #[test]
    fn a_missing_field_is_named() {
        let error = serde_json::from_value::<ChatContext>(json!({"type": "file"})).unwrap_err();
        assert_eq!(error.to_string(), "context file: missing field `path`");
    }

    #[test]
    fn a_field_of_the_wrong_kind_is_named() {
        let error = serde_json::from_value::<ChatContext>(json!({"type": "file", "path": 5})).unwrap_err();
        assert!(error.to_string().starts_with("context file: path: invalid type: integer `5`"), "{error}");
    }

    #[test]
    fn a_broken_member_inside_a_member_is_named_all_the_way() {
        let call = json!({"type": "toolCallRunning", "origin": "native", "id": "1", "name": "n", "server": "eca",
            "arguments": {},
            "details": {"type": "fileChange", "path": "/a", "diff": "", "linesAdded": "two", "linesRemoved": 0}});
        let error = serde_json::from_value::<ChatContent>(call).unwrap_err();
        assert!(
            error
                .to_string()
                .starts_with("content toolCallRunning: details: details fileChange: linesAdded: invalid type"),
            "{error}"
        );
    }

    #[test]
    fn something_that_is_no_object_is_refused() {
        let error = serde_json::from_value::<ChatContent>(json!("text")).unwrap_err();
        assert_eq!(error.to_string(), "content: expected an object, got \"text\"");
    }

    #[test]
    fn the_tag_is_written() {
        let content = ChatContent::from(ChatTextContent { text: "hi".to_owned(), ..Default::default() });
        assert_eq!(serde_json::to_value(content).unwrap(), json!({"type": "text", "text": "hi"}));
    }
}
