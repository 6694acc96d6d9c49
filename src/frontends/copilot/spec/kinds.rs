//! Which kind of specification something is, and what is told about those that cannot be read.

use serde_json::{Map, Value};

use super::problems::Problems;
use super::{Format, Spec, introspection, normalized, openapi, sdl, swagger, yaml};

/// Reads a specification, which is an object or the text of one.
pub(in crate::frontends::copilot) fn read(spec: &Value) -> Result<Spec, Problems> {
    read_value(spec).map(Spec::indexed)
}

fn read_value(spec: &Value) -> Result<Spec, Problems> {
    match spec {
        Value::Object(document) => read_document(document),
        Value::String(text) => read_text(text),
        _ => Err(Problems::one("", "a specification is an object or a text")),
    }
}

fn read_document(document: &Map<String, Value>) -> Result<Spec, Problems> {
    let has = |name: &str| document.contains_key(name);
    let format = document.get("format").and_then(Value::as_str).and_then(Format::of_word);
    let arrays = |names: &[&str]| names.iter().any(|name| document.get(*name).is_some_and(Value::is_array));
    if let Some(version) = document.get("openapi") {
        return openapi::read(document, version);
    }
    if let Some(version) = document.get("swagger").or_else(|| document.get("swaggerVersion")) {
        return swagger::read(document, version);
    }
    if arrays(&["endpoints", "queries", "mutations"]) || format.is_some() && has("metadata") {
        return normalized::read(document);
    }
    let inside = document.get("data").and_then(Value::as_object);
    if let Some(schema) = document.get("__schema").or_else(|| inside.and_then(|data| data.get("__schema"))) {
        return introspection::read(schema);
    }
    if let Some(text) = ["sdl", "schema"].iter().find_map(|name| document.get(*name)).and_then(Value::as_str) {
        return sdl::read(text);
    }
    let known = "OpenAPI 3, Swagger 2.0, GraphQL (SDL or introspection) and the normalised form are";
    let message = match () {
        () if has("asyncapi") => format!("AsyncAPI is not supported; {known}"),
        () if has("info") && has("item") => format!("Postman collections are not supported; {known}"),
        () if has("paths") => format!("the document does not say which version it is (openapi or swagger); {known}"),
        () => format!("the kind of specification is not recognised; {known} supported"),
    };
    Err(Problems::one("", message))
}

fn read_text(text: &str) -> Result<Spec, Problems> {
    let text = text.trim_start_matches('\u{feff}').trim();
    if text.is_empty() {
        return Err(Problems::one("", "the specification is empty"));
    }
    if text.starts_with("#%RAML") {
        return Err(Problems::one("", "RAML is not supported; convert it to OpenAPI 3"));
    }
    if text.starts_with('<') {
        let wsdl = ["wsdl", "definitions", "application"].iter().any(|word| text.contains(word));
        let kind = if wsdl { "WSDL" } else { "XML" };
        return Err(Problems::one("", format!("{kind} is not supported; OpenAPI 3, Swagger 2.0 and GraphQL are")));
    }
    if text.starts_with(['{', '[']) {
        let parsed: Result<Value, _> = serde_json::from_str(text);
        return match parsed {
            Ok(document @ Value::Object(_)) => read_value(&document),
            Ok(_) => Err(Problems::one("", "the specification must be an object")),
            // Flow style is YAML too, and `{` may also begin a GraphQL query.
            Err(error) => match yaml::read(text) {
                Ok(document @ Value::Object(_)) => read_value(&document),
                _ => Err(Problems::one("", format!("the specification is not valid JSON: {error}"))),
            },
        };
    }
    if sdl::is_likely(text) {
        return sdl::read(text);
    }
    match yaml::read(text) {
        Ok(document @ Value::Object(_)) => read_value(&document),
        Ok(_) => Err(Problems::one("", "the text is neither JSON nor YAML nor a GraphQL schema")),
        Err(error) => Err(Problems::one("", format!("the specification is not valid YAML: {error}"))),
    }
}
