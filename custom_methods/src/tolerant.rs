//! Readers for the loose values that existing clients send, each named after what it makes of them.
//!
//! They work on the stream of values instead of on parsed JSON, so that a path tracker around them still knows where an
//! error is.

use std::fmt;
use std::marker::PhantomData;

use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Value;

/// A list; `null` and `{}` (how Lua writes an empty table) are the empty list.
pub(crate) fn list_or_empty<'de, D, T>(deserializer: D) -> Result<Vec<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    optional_list(deserializer).map(Option::unwrap_or_default)
}

/// A list or nothing; `null` is nothing, `{}` is the empty list.
pub(crate) fn optional_list<'de, D, T>(deserializer: D) -> Result<Option<Vec<T>>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    struct ListVisitor<T>(PhantomData<T>);

    impl<'de, T: Deserialize<'de>> Visitor<'de> for ListVisitor<T> {
        type Value = Option<Vec<T>>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a list")
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<Self::Value, A::Error> {
            let mut list = Vec::new();
            while let Some(item) = access.next_element()? {
                list.push(item);
            }
            Ok(Some(list))
        }

        fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Self::Value, A::Error> {
            match access.next_key::<IgnoredAny>()? {
                None => Ok(Some(Vec::new())),
                Some(_) => Err(A::Error::custom("invalid type: object with fields, expected a list")),
            }
        }

        fn visit_unit<E: Error>(self) -> Result<Self::Value, E> {
            Ok(None)
        }

        fn visit_none<E: Error>(self) -> Result<Self::Value, E> {
            Ok(None)
        }
    }

    deserializer.deserialize_any(ListVisitor(PhantomData))
}

/// Any value; `null` is the default, because Emacs Lisp cannot tell `null` from `false`.
pub(crate) fn null_as_default<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de> + Default,
{
    Option::deserialize(deserializer).map(Option::unwrap_or_default)
}

/// A field whose `null` differs from its absence: `Some(None)` is `null`. Needs `#[serde(default)]` for the absent
/// case.
pub(crate) fn present<'de, D, T>(deserializer: D) -> Result<Option<Option<T>>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    Option::deserialize(deserializer).map(Some)
}

/// A capability: a boolean, or an object that means yes by being there.
pub(crate) fn switch<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<bool>, D::Error> {
    Ok(match Value::deserialize(deserializer)? {
        Value::Null => None,
        Value::Bool(on) => Some(on),
        _ => Some(true),
    })
}

/// A group of capabilities: an object, or anything else that at least says whether the group is there.
pub(crate) fn group<'de, D, T>(deserializer: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de> + Default,
{
    struct GroupVisitor<T>(PhantomData<T>);

    impl<'de, T: Deserialize<'de> + Default> Visitor<'de> for GroupVisitor<T> {
        type Value = Option<T>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an object")
        }

        fn visit_map<A: MapAccess<'de>>(self, access: A) -> Result<Self::Value, A::Error> {
            T::deserialize(MapAccessDeserializer::new(access)).map(Some)
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<Self::Value, A::Error> {
            while access.next_element::<IgnoredAny>()?.is_some() {}
            Ok(Some(T::default()))
        }

        fn visit_bool<E: Error>(self, on: bool) -> Result<Self::Value, E> {
            Ok(on.then(T::default))
        }

        fn visit_unit<E: Error>(self) -> Result<Self::Value, E> {
            Ok(None)
        }

        fn visit_none<E: Error>(self) -> Result<Self::Value, E> {
            Ok(None)
        }
    }

    deserializer.deserialize_any(GroupVisitor(PhantomData))
}

/// Text, or a number written out as text.
pub(crate) fn text_or_number<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    struct TextVisitor;

    impl Visitor<'_> for TextVisitor {
        type Value = String;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a string or a number")
        }

        fn visit_str<E: Error>(self, text: &str) -> Result<String, E> {
            Ok(text.to_owned())
        }

        fn visit_string<E: Error>(self, text: String) -> Result<String, E> {
            Ok(text)
        }

        fn visit_i64<E: Error>(self, number: i64) -> Result<String, E> {
            Ok(number.to_string())
        }

        fn visit_u64<E: Error>(self, number: u64) -> Result<String, E> {
            Ok(number.to_string())
        }

        fn visit_f64<E: Error>(self, number: f64) -> Result<String, E> {
            Ok(number.to_string())
        }
    }

    deserializer.deserialize_any(TextVisitor)
}

/// A diagnostic's code: text, a number, or an LSP code object, of which only the `value` is kept.
pub(crate) fn code<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    let value = match Value::deserialize(deserializer)? {
        Value::Object(mut fields) => fields.remove("value").unwrap_or_default(),
        value => value,
    };
    Ok(match value {
        Value::String(text) => Some(text),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    })
}
