//! What request bodies of several dialects have in common: tools as functions, and what the user adds.

use serde_json::{Map, Value, json};

use crate::llm::ToolSpec;

/// A tool in the shape that OpenAI gave it and others took over.
pub(super) fn function_tool(spec: &ToolSpec) -> Value {
    let parameters = match &spec.parameters {
        Value::Object(schema) if !schema.is_empty() => spec.parameters.clone(),
        _ => json!({"type": "object", "properties": {}}),
    };
    json!({
        "type": "function",
        "function": {"name": spec.name, "description": spec.description, "parameters": parameters},
    })
}

/// Merges `extra` into `body`, object by object; `null` removes a key.
pub(super) fn merge(body: &mut Map<String, Value>, extra: &Map<String, Value>) {
    for (key, value) in extra {
        match value {
            Value::Null => {
                body.remove(key);
            }
            Value::Object(extra) => match body.get_mut(key) {
                Some(Value::Object(inner)) => merge(inner, extra),
                _ => {
                    // Into an empty object, so that a null in a new branch is removed as well.
                    let mut inner = Map::new();
                    merge(&mut inner, extra);
                    body.insert(key.clone(), Value::Object(inner));
                }
            },
            _ => {
                body.insert(key.clone(), value.clone());
            }
        }
    }
}

/// Replaces whole top-level keys, as users of some dialects expect it; `null` takes one away.
pub(super) fn replace(body: &mut Map<String, Value>, extra: &Map<String, Value>) {
    for (key, value) in extra {
        if value.is_null() {
            body.remove(key);
        } else {
            body.insert(key.clone(), value.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn merging_is_deep_and_null_removes() {
        let mut body = json!({"a": 1, "b": {"c": 1, "d": 2}, "e": [1]});
        let extra = json!({"a": null, "b": {"c": null, "x": {"y": null, "z": 1}}, "e": [2, 3], "f": null, "g": true});
        merge(body.as_object_mut().unwrap(), extra.as_object().unwrap());
        assert_eq!(body, json!({"b": {"d": 2, "x": {"z": 1}}, "e": [2, 3], "g": true}));
    }
}
