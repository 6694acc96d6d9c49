//! A tool's schema cut down to what Gemini takes: it refuses the whole request for one keyword
//! that it does not know.

use serde_json::{Map, Value, json};

/// What it takes as a JSON Schema.
const JSON_SCHEMA: [&str; 21] = [
    "$anchor",
    "$defs",
    "$id",
    "$ref",
    "additionalProperties",
    "anyOf",
    "description",
    "enum",
    "format",
    "items",
    "maxItems",
    "maximum",
    "minItems",
    "minimum",
    "oneOf",
    "prefixItems",
    "properties",
    "required",
    "title",
    "type",
    "propertyOrdering",
];

/// The older form, an excerpt of OpenAPI's.
const OPEN_API: [&str; 17] = [
    "anyOf",
    "description",
    "enum",
    "format",
    "items",
    "maxItems",
    "maxLength",
    "maximum",
    "minItems",
    "minLength",
    "minimum",
    "nullable",
    "pattern",
    "properties",
    "required",
    "title",
    "type",
];

/// For `parametersJsonSchema`.
pub(super) fn json_schema(schema: &Value) -> Value {
    parameters(clean(schema, &JSON_SCHEMA, DEPTH))
}

/// For `parameters`, which knows neither references nor lists of types.
pub(super) fn open_api(schema: &Value) -> Value {
    parameters(clean(schema, &OPEN_API, DEPTH))
}

/// Deeper than anyone writes by hand; a schema comes from strangers' servers.
const DEPTH: usize = 64;

/// The arguments of a function are always an object.
fn parameters(schema: Value) -> Value {
    match schema {
        Value::Object(mut schema) if !schema.is_empty() => {
            schema.entry("type").or_insert_with(|| json!("object"));
            Value::Object(schema)
        }
        _ => json!({"type": "object", "properties": {}}),
    }
}

fn clean(schema: &Value, keywords: &[&str], depth: usize) -> Value {
    let Some(schema) = schema.as_object().filter(|_| depth > 0) else {
        // `true`, which allows everything, is said by saying nothing.
        return json!({});
    };
    let mut kept = Map::new();
    for (key, value) in schema.iter().filter(|(key, _)| keywords.contains(&key.as_str())) {
        let value = match (key.as_str(), value) {
            ("properties" | "$defs", Value::Object(members)) => {
                members.iter().map(|(name, member)| (name.clone(), clean(member, keywords, depth - 1))).collect()
            }
            ("items" | "additionalProperties", Value::Object(_)) => clean(value, keywords, depth - 1),
            ("anyOf" | "oneOf" | "prefixItems", Value::Array(members)) => {
                members.iter().map(|member| clean(member, keywords, depth - 1)).collect()
            }
            _ => value.clone(),
        };
        kept.insert(key.clone(), value);
    }
    if let Some(constant) = schema.get("const") {
        kept.entry("enum").or_insert_with(|| json!([constant]));
    }
    if keywords.contains(&"nullable") {
        single_type(&mut kept);
    }
    Value::Object(kept)
}

/// `["string", "null"]` as one type that may be null.
fn single_type(schema: &mut Map<String, Value>) {
    if let Some(Value::Array(types)) = schema.get("type") {
        let real = types.iter().find(|name| *name != "null").cloned().unwrap_or_else(|| json!("string"));
        if types.iter().any(|name| name == "null") {
            schema.insert("nullable".to_owned(), json!(true));
        }
        schema.insert("type".to_owned(), real);
    }
    // Only texts may be listed there.
    if let Some(Value::Array(values)) = schema.get_mut("enum") {
        for value in values.iter_mut().filter(|value| !value.is_string()) {
            *value = Value::String(value.to_string());
        }
        schema.insert("type".to_owned(), json!("string"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_keywords_are_dropped_at_every_level_but_never_a_property_of_that_name() {
        let schema = json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema", "type": "object", "unevaluatedProperties": false,
            "properties": {
                "pattern": {"type": ["string", "null"], "pattern": "^a", "default": "x", "examples": ["a"]},
                "list": {"type": "array", "items": {"const": 1, "exclusiveMinimum": 0}},
                "any": true, "pick": {"anyOf": [{"type": "integer", "multipleOf": 2}, {"$ref": "#/$defs/x"}]},
            },
            "required": ["list"], "additionalProperties": false, "$defs": {"x": {"type": "string", "$comment": "c"}},
        });
        assert_eq!(
            json_schema(&schema),
            json!({
                "type": "object", "required": ["list"], "additionalProperties": false, "$defs": {"x": {"type": "string"}},
                "properties": {
                    "pattern": {"type": ["string", "null"]}, "list": {"type": "array", "items": {"enum": [1]}},
                    "any": {}, "pick": {"anyOf": [{"type": "integer"}, {"$ref": "#/$defs/x"}]},
                },
            })
        );
        assert_eq!(
            open_api(&schema),
            json!({
                "type": "object", "required": ["list"],
                "properties": {
                    "pattern": {"type": "string", "nullable": true, "pattern": "^a"},
                    "list": {"type": "array", "items": {"type": "string", "enum": ["1"]}},
                    "any": {}, "pick": {"anyOf": [{"type": "integer"}, {}]},
                },
            })
        );
    }

    #[test]
    fn no_schema_is_an_object_without_properties() {
        for empty in [json!(null), json!({}), json!(true), json!({"$schema": "x"})] {
            assert_eq!(json_schema(&empty), json!({"type": "object", "properties": {}}));
        }
        let mut deep = json!({});
        for _ in 0..1000 {
            deep = json!({"items": deep});
        }
        assert!(json_schema(&deep).to_string().len() < 2000);
    }
}
