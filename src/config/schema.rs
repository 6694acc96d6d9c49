//! The configuration as a JSON Schema, so that an editor completes and checks it.

use serde_json::{Map, Value, json};

use super::keys::{KEYS, Key, Kind, children};

/// What `eca config schema` prints.
pub fn schema() -> Value {
    let mut schema = node("");
    if let Value::Object(entries) = &mut schema {
        entries.insert("$schema".to_owned(), json!("http://json-schema.org/draft-07/schema#"));
        entries.insert("title".to_owned(), json!("Configuration of the ECA server"));
        // Editors complain otherwise about what their own parser allows.
        entries.insert("allowComments".to_owned(), json!(true));
        entries.insert("allowTrailingCommas".to_owned(), json!(true));
    }
    schema
}

fn node(path: &str) -> Value {
    if let Some(key) = KEYS.iter().find(|key| key.path == path) {
        return leaf(key);
    }
    let mut properties = Map::new();
    let mut others = Value::Bool(false);
    for name in children(path) {
        let below = if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") };
        match name {
            "*" => others = node(&below),
            name => drop(properties.insert(name.to_owned(), node(&below))),
        }
    }
    // The whole document is an object; inside, `null` takes something back.
    let kind = if path.is_empty() { json!("object") } else { json!(["object", "null"]) };
    json!({"type": kind, "properties": properties, "additionalProperties": others})
}

fn leaf(key: &Key) -> Value {
    let mut schema = match key.kind {
        Kind::Text => json!({"type": ["string", "null"]}),
        Kind::Flag => json!({"type": ["boolean", "null"]}),
        Kind::Whole(least) => json!({"type": ["integer", "null"], "minimum": least}),
        Kind::Number(least) => json!({"type": ["number", "null"], "minimum": least}),
        Kind::Seconds => json!({"type": ["number", "null"], "exclusiveMinimum": 0}),
        Kind::Texts => json!({"type": ["array", "string", "null"], "items": {"type": "string"}}),
        Kind::Paths => json!({"type": ["array", "null"], "items": {"type": ["object", "string"],
            "properties": {"path": {"type": "string"}}, "additionalProperties": false}}),
        Kind::Objects => json!({"type": ["array", "null"], "items": {"type": "object"}}),
        Kind::TextMap => json!({"type": ["object", "null"], "additionalProperties": {"type": ["string", "null"]}}),
        Kind::Object => json!({"type": ["object", "null"]}),
        Kind::Anything => json!({}),
    };
    if let Value::Object(entries) = &mut schema {
        let doc = if key.is_read() { key.doc } else { "Known to other ECA servers; this one does not read it." };
        entries.insert("description".to_owned(), json!(doc));
        if let Ok(default) = serde_json::from_str::<Value>(key.default) {
            entries.insert("default".to_owned(), default);
        }
    }
    schema
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::document::Document;

    /// As much of the specification as the schema uses.
    fn complaints(schema: &Value, value: &Value, path: &str, found: &mut Vec<String>) {
        if schema == &Value::Bool(false) {
            return found.push(format!("{path} is not allowed"));
        }
        let kinds: Vec<&str> = match &schema["type"] {
            Value::String(kind) => vec![kind],
            Value::Array(kinds) => kinds.iter().filter_map(Value::as_str).collect(),
            _ => return,
        };
        let fits = |kind: &&str| match *kind {
            "null" => value.is_null(),
            "boolean" => value.is_boolean(),
            "string" => value.is_string(),
            "integer" => value.as_f64().is_some_and(|n| n.fract() == 0.0),
            "number" => value.is_number(),
            "array" => value.is_array(),
            _ => value.is_object(),
        };
        let number = |name: &str| schema.get(name).and_then(Value::as_f64);
        let small = value.as_f64().is_some_and(|n| {
            number("minimum").is_some_and(|least| n < least)
                || number("exclusiveMinimum").is_some_and(|least| n <= least)
        });
        if !kinds.iter().any(fits) || small {
            found.push(format!("{path} has a wrong value"));
        }
        for element in value.as_array().into_iter().flatten() {
            complaints(&schema["items"], element, path, found);
        }
        for (name, inner) in value.as_object().into_iter().flatten() {
            let known = schema["properties"].get(name).or_else(|| schema.get("additionalProperties"));
            complaints(known.unwrap_or(&Value::Null), inner, &format!("{path}/{name}"), found);
        }
    }

    fn check(text: &str) -> Vec<String> {
        let document = Document::parse("f", text.to_owned()).unwrap();
        let mut found = Vec::new();
        complaints(&schema(), &Value::Object(document.values), "", &mut found);
        found
    }

    #[test]
    fn the_documented_example_is_valid() {
        let document = include_str!("../../docs/config.md");
        let example = document.split("```jsonc\n").nth(1).and_then(|rest| rest.split("\n```").next()).unwrap();
        assert_eq!(check(example), Vec::<String>::new());
        let wrong = example.replacen("\"maxSteps\": 100", "\"maxSteps\": \"many\"", 1);
        assert_ne!(wrong, example);
        assert_eq!(check(&wrong), ["/chat/maxSteps has a wrong value"]);
    }

    #[test]
    fn it_knows_kinds_names_and_bounds() {
        for (text, complaint) in [
            (r#"{"chat": {"maxSteps": 0}}"#, "/chat/maxSteps has a wrong value"),
            (r#"{"connectTimeoutSeconds": 0}"#, "/connectTimeoutSeconds has a wrong value"),
            (r#"{"rules": [{"file": "x"}]}"#, "/rules/file is not allowed"),
            (r#"{"hooks": {"h": {"actions": ["x"]}}}"#, "/hooks/h/actions has a wrong value"),
            (r#"{"extraConfigs": [1]}"#, "/extraConfigs has a wrong value"),
            (r#"{"providers": {"p": {"urll": "x"}}}"#, "/providers/p/urll is not allowed"),
            (r#"{"providers": {"p": {"extraHeaders": {"a": 1}}}}"#, "/providers/p/extraHeaders/a has a wrong value"),
        ] {
            assert_eq!(check(text), [complaint], "{text}");
        }
        let good = r#"{"otlp": [1], "rules": ["a", {"path": "b"}], "hooks": {"h": {"type": "chatEnd", "actions": [{}]}}, "extraConfigs": "one", "defaultModel": null,
            "providers": {"p": {"models": {"m": null, "n": {"extraPayload": {"x": [1]}}}}}}"#;
        assert_eq!(check(good), Vec::<String>::new());
        assert_eq!(schema()["properties"]["chat"]["properties"]["maxSteps"]["default"], 200);
    }
}
