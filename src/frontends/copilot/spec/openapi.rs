//! OpenAPI 3.0, 3.1 and later 3.x, and what Swagger shares with them.

use serde_json::{Map, Value};

use super::problems::{Problems, below};
use super::references::Document;
use super::schema::{Schemas, described, description_of};
use super::{Endpoint, Field, Format, Parameter, Response, Security, Shape, Spec};
use crate::base::text::one_line;

const MODELS: &str = "/components/schemas/";
pub(super) const METHODS: [&str; 9] = ["get", "put", "post", "delete", "options", "head", "patch", "trace", "query"];
const LONGEST_TITLE: usize = 200;

pub(super) fn read(document: &Map<String, Value>, version: &Value) -> Result<Spec, Problems> {
    if !version.as_str().map_or_else(|| version.to_string(), str::to_owned).starts_with("3.") {
        return Err(Problems::one("/openapi", format!("OpenAPI {version} is not supported; 3.0 and 3.1 are")));
    }
    let mut document = Document::new(document, MODELS);
    let mut spec = Spec::new(Format::OpenApi3);
    read_info(&mut document, &mut spec);
    let server = document.get("servers").and_then(|servers| servers.get(0)).and_then(|server| server.get("url"));
    spec.base_url = server.and_then(Value::as_str).map(str::to_owned);
    spec.endpoints = read_paths(&mut document, "paths", read_operation);
    if spec.endpoints.is_empty() && has_entries(document.get("webhooks")) {
        spec.endpoints = read_paths(&mut document, "webhooks", read_operation);
    }
    demand_endpoints(&mut document, &spec);
    let schemas = document.at(MODELS.trim_end_matches('/'));
    spec.models = Schemas::new(&mut document).models(schemas, MODELS.trim_end_matches('/'));
    spec.security = read_security(document.at("/components/securitySchemes"));
    if document.problems.is_empty() { Ok(spec) } else { Err(document.problems) }
}

pub(super) fn read_info(document: &mut Document<'_>, spec: &mut Spec) {
    let Some(info) = document.get("info").filter(|info| info.is_object()) else {
        return document.problems.add("/info", "the document has no info");
    };
    if let Some(title) = info.get("title").and_then(Value::as_str).filter(|title| !title.trim().is_empty()) {
        spec.title = one_line(title, LONGEST_TITLE);
    }
    spec.version = match info.get("version") {
        Some(Value::String(version)) => one_line(version, LONGEST_TITLE),
        Some(version @ Value::Number(_)) => version.to_string(),
        _ => String::new(),
    };
    spec.description = description_of(info);
}

pub(super) fn demand_endpoints(document: &mut Document<'_>, spec: &Spec) {
    if spec.endpoints.is_empty() && document.problems.is_empty() {
        document.problems.add("/paths", "the document has no paths with operations");
    }
}

fn has_entries(value: Option<&Value>) -> bool {
    value.and_then(Value::as_object).is_some_and(|entries| !entries.is_empty())
}

/// One operation in its path.
pub(super) struct Place<'a> {
    pub(super) operation: &'a Map<String, Value>,
    pub(super) pointer: String,
    /// Parameters that all operations of the path share, and where they stand.
    pub(super) shared: Option<(&'a Value, String)>,
}

/// Every operation of every path, put into words by `read`.
pub(super) fn read_paths<'a>(
    document: &mut Document<'a>,
    name: &str,
    read: impl Fn(&mut Document<'a>, &Place<'a>) -> Endpoint,
) -> Vec<Endpoint> {
    let root = format!("/{name}");
    let paths = match document.get(name) {
        Some(Value::Object(paths)) => paths,
        None | Some(Value::Null) => return Vec::new(),
        Some(_) => {
            document.problems.add(&root, "paths must be an object");
            return Vec::new();
        }
    };
    let mut endpoints = Vec::new();
    for (path, item) in paths.iter().filter(|(path, _)| !path.starts_with("x-")) {
        let Some((item, pointer)) = document.object(item, &below(&root, path)) else { continue };
        let shared = item.get("parameters").map(|shared| (shared, below(&pointer, "parameters")));
        for method in METHODS {
            let Some(operation) = item.get(method) else { continue };
            let pointer = below(&pointer, method);
            let Some((operation, pointer)) = document.object(operation, &pointer) else { continue };
            let place = Place { operation, pointer, shared: shared.clone() };
            endpoints.push(Endpoint { method: method.to_uppercase(), path: path.clone(), ..read(document, &place) });
        }
    }
    endpoints
}

/// What both versions say about an operation in the same words.
pub(super) fn describe(operation: &Map<String, Value>) -> Endpoint {
    let text = |name: &str| operation.get(name).and_then(Value::as_str).map(described).filter(|text| !text.is_empty());
    let tag = operation.get("tags").and_then(|tags| tags.get(0)).and_then(Value::as_str);
    Endpoint {
        tag: tag.map(|tag| one_line(tag, LONGEST_TITLE)).filter(|tag| !tag.is_empty()),
        summary: text("summary").or_else(|| text("operationId")).or_else(|| text("description")),
        deprecated: operation.get("deprecated").and_then(Value::as_bool).unwrap_or_default(),
        ..Endpoint::default()
    }
}

/// The parameters of an operation as objects, its own before those of its path that it does not
/// replace.
pub(super) fn parameters<'a>(document: &mut Document<'a>, place: &Place<'a>) -> Vec<(&'a Map<String, Value>, String)> {
    let own = place.operation.get("parameters").map(|own| (own, below(&place.pointer, "parameters")));
    let mut found: Vec<(&'a Map<String, Value>, String)> = Vec::new();
    for (list, pointer) in own.into_iter().chain(place.shared.clone()) {
        let Value::Array(list) = list else {
            document.problems.add(&pointer, "parameters must be a list");
            continue;
        };
        for (index, parameter) in list.iter().enumerate() {
            let Some((entries, pointer)) = document.object(parameter, &below(&pointer, &index.to_string())) else {
                continue;
            };
            let same =
                |known: &Map<String, Value>| ["name", "in"].iter().all(|key| known.get(*key) == entries.get(*key));
            if !found.iter().any(|(known, _)| same(known)) {
                found.push((entries, pointer));
            }
        }
    }
    found
}

/// A parameter with the shape that it has; `None` without a name.
pub(super) fn parameter(entries: &Map<String, Value>, shape: Shape) -> Option<Parameter> {
    let text = |name: &str| entries.get(name).and_then(Value::as_str);
    let place = text("in").unwrap_or("query").to_owned();
    let required = place == "path" || entries.get("required").and_then(Value::as_bool).unwrap_or_default();
    let description = text("description").map(described).filter(|text| !text.is_empty());
    Some(Parameter { place, field: Field { description, ..Field::new(text("name")?, shape, required) } })
}

fn read_operation<'a>(document: &mut Document<'a>, place: &Place<'a>) -> Endpoint {
    let mut endpoint = describe(place.operation);
    for (entries, pointer) in parameters(document, place) {
        let schema = entries.get("schema").map(|schema| (schema, below(&pointer, "schema")));
        let schema = schema.or_else(|| media(entries.get("content"), &below(&pointer, "content")));
        let shape = schema.map_or(Shape::Any, |(schema, pointer)| Schemas::new(document).shape(schema, &pointer));
        endpoint.parameters.extend(parameter(entries, shape));
    }
    if let Some(body) = place.operation.get("requestBody") {
        let body = document.object(body, &below(&place.pointer, "requestBody"));
        let content = body.and_then(|(entries, pointer)| media(entries.get("content"), &below(&pointer, "content")));
        endpoint.body = content.map(|(schema, pointer)| Schemas::new(document).shape(schema, &pointer));
    }
    endpoint.responses =
        responses(document, place, |entries, pointer| media(entries.get("content"), &below(pointer, "content")));
    endpoint
}

/// The responses of an operation; `schema` finds the one inside of a response.
pub(super) fn responses<'a>(
    document: &mut Document<'a>,
    place: &Place<'a>,
    schema: impl Fn(&'a Map<String, Value>, &str) -> Option<(&'a Value, String)>,
) -> Vec<Response> {
    let Some(Value::Object(responses)) = place.operation.get("responses") else { return Vec::new() };
    let pointer = below(&place.pointer, "responses");
    let mut found = Vec::new();
    for (status, response) in responses.iter().filter(|(status, _)| !status.starts_with("x-")) {
        let Some((entries, pointer)) = document.object(response, &below(&pointer, status)) else { continue };
        let shape = schema(entries, &pointer).map(|(schema, pointer)| Schemas::new(document).shape(schema, &pointer));
        found.push(Response { status: status.clone(), shape });
    }
    found
}

/// The schema of a body: JSON before everything else.
fn media<'a>(content: Option<&'a Value>, place: &str) -> Option<(&'a Value, String)> {
    let content = content?.as_object()?;
    let json = content.iter().find(|(kind, _)| kind.contains("json"));
    let (kind, media) = json.or_else(|| content.iter().next())?;
    Some((media.get("schema")?, below(&below(place, kind), "schema")))
}

pub(super) fn read_security(schemes: Option<&Value>) -> Vec<Security> {
    let scheme = |(name, scheme): (&String, &Value)| {
        let text = |key: &str| scheme.get(key).and_then(Value::as_str).unwrap_or_default();
        let detail = match text("type") {
            "apiKey" => format!("{} {}", text("in"), text("name")),
            _ => text("scheme").to_owned(),
        };
        Security { name: name.clone(), kind: text("type").to_owned(), detail: detail.trim().to_owned() }
    };
    schemes.and_then(Value::as_object).map(|schemes| schemes.iter().map(scheme).collect()).unwrap_or_default()
}
