//! Swagger 2.0, which says the same as OpenAPI 3 in other places.

use serde_json::{Map, Value};

use super::openapi::{
    Place, demand_endpoints, describe, parameter, parameters, read_info, read_paths, read_security, responses,
};
use super::problems::{Problems, below};
use super::references::Document;
use super::schema::Schemas;
use super::{Endpoint, Field, Format, Shape, Spec};

const MODELS: &str = "/definitions/";

pub(super) fn read(document: &Map<String, Value>, version: &Value) -> Result<Spec, Problems> {
    // Without quotes it is a number, in JSON as in YAML.
    if version != "2.0" && version.as_f64() != Some(2.0) {
        return Err(Problems::one("/swagger", format!("Swagger {version} is not supported; 2.0 is")));
    }
    let mut document = Document::new(document, MODELS);
    let mut spec = Spec::new(Format::Swagger2);
    read_info(&mut document, &mut spec);
    spec.base_url = base_url(&document);
    spec.endpoints = read_paths(&mut document, "paths", read_operation);
    demand_endpoints(&mut document, &spec);
    let definitions = document.get("definitions");
    spec.models = Schemas::new(&mut document).models(definitions, "/definitions");
    spec.security = read_security(document.get("securityDefinitions"));
    if document.problems.is_empty() { Ok(spec) } else { Err(document.problems) }
}

fn base_url(document: &Document<'_>) -> Option<String> {
    let text = |name: &str| document.get(name).and_then(Value::as_str);
    let scheme = document.get("schemes").and_then(|schemes| schemes.get(0)).and_then(Value::as_str);
    match (text("host"), text("basePath")) {
        (None, path) => path.map(str::to_owned),
        (Some(host), path) => Some(format!("{}://{host}{}", scheme.unwrap_or("https"), path.unwrap_or_default())),
    }
}

fn read_operation<'a>(document: &mut Document<'a>, place: &Place<'a>) -> Endpoint {
    let mut endpoint = describe(place.operation);
    let mut form = Vec::new();
    for (entries, pointer) in parameters(document, place) {
        match entries.get("in").and_then(Value::as_str) {
            Some("body") => {
                let schema = entries.get("schema");
                endpoint.body = schema
                    .map(|schema| Schemas::new(document).shape(schema, &below(&pointer, "schema")))
                    .or(Some(Shape::Any));
            }
            Some("formData") => form.extend(form_field(document, entries, &pointer)),
            _ => {
                let shape = own_shape(document, entries, &pointer);
                endpoint.parameters.extend(parameter(entries, shape));
            }
        }
    }
    if !form.is_empty() {
        endpoint.body = Some(Shape::Object(form));
    }
    endpoint.responses =
        responses(document, place, |entries, pointer| Some((entries.get("schema")?, below(pointer, "schema"))));
    endpoint
}

fn form_field<'a>(document: &mut Document<'a>, entries: &'a Map<String, Value>, pointer: &str) -> Option<Field> {
    let shape = own_shape(document, entries, pointer);
    let found = parameter(entries, shape)?;
    Some(found.field)
}

/// Here a parameter is its own schema.
fn own_shape<'a>(document: &mut Document<'a>, entries: &'a Map<String, Value>, pointer: &str) -> Shape {
    let text = |name: &str| entries.get(name).and_then(Value::as_str);
    if let Some(Value::Array(values)) = entries.get("enum") {
        let plain = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        return Shape::Enum(values.iter().map(plain).collect());
    }
    match text("type") {
        Some("string") => Shape::Text { format: text("format").map(str::to_owned) },
        Some("file") => Shape::Text { format: Some("binary".to_owned()) },
        Some("integer") => Shape::Integer,
        Some("number") => Shape::Number,
        Some("boolean") => Shape::Boolean,
        Some("array") => {
            let items = entries.get("items");
            Shape::list_of(
                items.map_or(Shape::Any, |items| Schemas::new(document).shape(items, &below(pointer, "items"))),
            )
        }
        _ => Shape::Any,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_number_is_a_version_too() {
        let document = |version: Value| json!({"swagger": version, "info": {}, "paths": {"/a": {"get": {}}}});
        for version in [json!("2.0"), json!(2.0), json!(2)] {
            let document = document(version);
            assert!(read(document.as_object().unwrap(), &document["swagger"]).is_ok(), "{document}");
        }
        for version in [json!("1.2"), json!(1.2), json!(null)] {
            let document = document(version);
            let problems = read(document.as_object().unwrap(), &document["swagger"]).unwrap_err();
            assert_eq!(problems.paths(), ["/swagger"]);
        }
    }
}
