//! Single fields of a front matter, as the types that are wanted.

use serde_json::{Map, Value};

use crate::base::text::one_line;

type Values = Map<String, Value>;

/// A text; a number or a flag counts as what was written.
pub(super) fn text(values: &Values, key: &str) -> Result<Option<String>, String> {
    match values.get(key) {
        None | Some(Value::Null) => Ok(None),
        Some(value) => scalar(value).map(Some).ok_or_else(|| format!("`{key}` must be a text")),
    }
}

/// One line of it, for lists and headings.
pub(super) fn line(values: &Values, key: &str, max: usize) -> Result<Option<String>, String> {
    let line = text(values, key)?.map(|text| one_line(&text, max));
    Ok(line.filter(|line| !line.is_empty()))
}

/// A list of texts, or a single one.
pub(super) fn texts(values: &Values, key: &str) -> Result<Vec<String>, String> {
    match values.get(key) {
        None => Ok(Vec::new()),
        Some(value) => list(value).ok_or_else(|| format!("`{key}` must be a text or a list of texts")),
    }
}

pub(super) fn list(value: &Value) -> Option<Vec<String>> {
    match value {
        Value::Null => Some(Vec::new()),
        Value::Array(items) => items.iter().map(scalar).collect(),
        single => scalar(single).map(|text| vec![text]),
    }
}

pub(super) fn flag(values: &Values, key: &str) -> Result<Option<bool>, String> {
    match values.get(key) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::Bool(flag)) => Ok(Some(*flag)),
        Some(_) => Err(format!("`{key}` must be true or false")),
    }
}

pub(super) fn whole_number(values: &Values, key: &str) -> Result<Option<u32>, String> {
    match values.get(key) {
        None | Some(Value::Null) => Ok(None),
        Some(value) => {
            let number = value.as_u64().and_then(|number| u32::try_from(number).ok()).filter(|number| *number > 0);
            number.map(Some).ok_or_else(|| format!("`{key}` must be a whole number from 1"))
        }
    }
}

fn scalar(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.trim().to_owned()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(flag) => Some(flag.to_string()),
        _ => None,
    }
}
