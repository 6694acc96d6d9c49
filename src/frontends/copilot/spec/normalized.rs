//! The application's own form, into which it turns what its user uploads before it asks us.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::problems::{Problems, below};
use super::schema::{described, description_of};
use super::{Endpoint, Field, Format, Model, Operation, Parameter, Response, Root, Security, Shape, Spec};

const DEEPEST: usize = 32;

pub(super) fn read(document: &Map<String, Value>) -> Result<Spec, Problems> {
    let list = |name: &str| document.get(name).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let named = document.get("format").and_then(Value::as_str).and_then(Format::of_word);
    let inferred = if list("endpoints").is_empty() { Format::GraphQl } else { Format::OpenApi3 };
    let models = list("models");
    let known = models.iter().filter_map(|model| model.get("name").and_then(Value::as_str)).collect();
    let mut reader = Reader { known, problems: Problems::default() };
    let mut spec = Spec::new(named.unwrap_or(inferred));
    describe(document.get("metadata"), &mut spec);
    for (index, endpoint) in list("endpoints").iter().enumerate() {
        spec.endpoints.extend(reader.endpoint(endpoint, &format!("/endpoints/{index}")));
    }
    for (name, root) in [("queries", Root::Query), ("mutations", Root::Mutation), ("subscriptions", Root::Subscription)]
    {
        for (index, operation) in list(name).iter().enumerate() {
            spec.operations.extend(reader.operation(root, operation, &format!("/{name}/{index}")));
        }
    }
    for (index, model) in models.iter().enumerate() {
        spec.models.extend(reader.model(model, &format!("/models/{index}")));
    }
    spec.security = list("securitySchemes").iter().filter_map(security).collect();
    if reader.problems.is_empty() {
        let asked = |operation: &Operation| operation.root != Root::Subscription;
        match spec.format {
            Format::GraphQl if !spec.operations.iter().any(asked) => {
                reader.problems.add("/queries", "there is no query and no mutation");
            }
            Format::OpenApi3 | Format::Swagger2 if spec.endpoints.is_empty() => {
                reader.problems.add("/endpoints", "there is no endpoint");
            }
            _ => return Ok(spec),
        }
    }
    Err(reader.problems)
}

fn describe(metadata: Option<&Value>, spec: &mut Spec) {
    let text = |name: &str| metadata?.get(name)?.as_str().map(described).filter(|text| !text.is_empty());
    spec.title = text("title").unwrap_or_else(|| spec.title.clone());
    spec.version = text("version").unwrap_or_default();
    spec.description = text("description");
    spec.base_url = text("baseUrl");
}

fn security(scheme: &Value) -> Option<Security> {
    let text = |name: &str| scheme.get(name).and_then(Value::as_str);
    let detail = text("scheme").or_else(|| text("in")).unwrap_or_default();
    Some(Security {
        name: text("name")?.to_owned(),
        kind: text("type").unwrap_or_default().to_owned(),
        detail: detail.to_owned(),
    })
}

struct Reader<'a> {
    /// The names of the models.
    known: BTreeSet<&'a str>,
    problems: Problems,
}

impl Reader<'_> {
    fn endpoint(&mut self, endpoint: &Value, place: &str) -> Option<Endpoint> {
        let text = |name: &str| endpoint.get(name).and_then(Value::as_str).filter(|text| !text.trim().is_empty());
        let (Some(path), Some(method)) = (text("path"), text("method")) else {
            self.problems.add(place, "an endpoint needs a path and a method");
            return None;
        };
        let list = |name: &str| endpoint.get(name).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        let mut parameters = Vec::new();
        for (index, parameter) in list("parameters").iter().enumerate() {
            let place = format!("{place}/parameters/{index}");
            let found = parameter.get("in").and_then(Value::as_str).unwrap_or("query").to_owned();
            let field = self.field(parameter, None, &place);
            parameters.extend(field.map(|field| Parameter { place: found, field }));
        }
        let body = endpoint.get("requestBody").filter(|body| !body.is_null());
        Some(Endpoint {
            method: method.to_uppercase(),
            path: path.to_owned(),
            tag: text("tag").map(described),
            summary: text("summary").or_else(|| text("operationId")).or_else(|| text("description")).map(described),
            deprecated: endpoint.get("deprecated").and_then(Value::as_bool).unwrap_or_default(),
            parameters,
            body: body.map(|body| self.content(body, &below(place, "requestBody"))),
            responses: self.responses(endpoint.get("responses"), &below(place, "responses")),
        })
    }

    fn responses(&mut self, responses: Option<&Value>, place: &str) -> Vec<Response> {
        let one = |status: &str, response: &Value, reader: &mut Self| {
            let shape = response.get("schema").filter(|schema| !schema.is_null());
            let shape = shape.map(|schema| reader.shape(schema, &below(&below(place, status), "schema"), 0));
            Response { status: status.to_owned(), shape }
        };
        match responses {
            Some(Value::Object(entries)) => {
                entries.iter().map(|(status, response)| one(status, response, self)).collect()
            }
            Some(Value::Array(list)) => {
                let status = |response: &Value| match response.get("statusCode") {
                    Some(Value::String(text)) => text.clone(),
                    Some(code) => code.to_string(),
                    None => "default".to_owned(),
                };
                list.iter().map(|response| one(&status(response), response, self)).collect()
            }
            _ => Vec::new(),
        }
    }

    /// A body: a schema, or what holds one.
    fn content(&mut self, body: &Value, place: &str) -> Shape {
        if let Some(schema) = body.get("schema") {
            return self.shape(schema, &below(place, "schema"), 0);
        }
        let media = body.get("content").and_then(Value::as_object).and_then(|content| content.iter().next());
        match media.and_then(|(kind, media)| Some((kind, media.get("schema")?))) {
            Some((kind, schema)) => {
                let place = below(&below(&below(place, "content"), kind), "schema");
                self.shape(schema, &place, 0)
            }
            None => self.shape(body, place, 0),
        }
    }

    fn operation(&mut self, root: Root, operation: &Value, place: &str) -> Option<Operation> {
        let Some(name) = operation.get("name").and_then(Value::as_str).filter(|name| !name.is_empty()) else {
            self.problems.add(place, "an operation needs a name");
            return None;
        };
        let arguments = operation.get("args").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        let argument = |(index, argument)| self.field(argument, None, &format!("{place}/args/{index}"));
        let arguments = arguments.iter().enumerate().filter_map(argument).collect();
        let returns = operation.get("returnType").map(|of| self.shape(of, &below(place, "returnType"), 0));
        Some(Operation {
            root,
            name: name.to_owned(),
            description: description_of(operation),
            deprecated: operation.get("deprecated").and_then(Value::as_bool).unwrap_or_default(),
            arguments,
            returns: returns.unwrap_or(Shape::Any),
        })
    }

    fn model(&mut self, model: &Value, place: &str) -> Option<Model> {
        let Some(name) = model.get("name").and_then(Value::as_str).filter(|name| !name.is_empty()) else {
            self.problems.add(place, "a model needs a name");
            return None;
        };
        let entries = model.as_object()?;
        let shape = self.of_entries(entries, place, 0);
        Some(Model { name: name.to_owned(), description: description_of(model), shape })
    }

    /// `name` is given where the field's own object does not say it.
    fn field(&mut self, field: &Value, name: Option<&str>, place: &str) -> Option<Field> {
        let name = name.or_else(|| field.get("name").and_then(Value::as_str))?;
        let schema = field.get("schema").filter(|schema| !schema.is_null());
        let (schema, place) = match schema {
            Some(schema) => (schema, below(place, "schema")),
            None => (field, place.to_owned()),
        };
        let written = schema.as_str().or_else(|| schema.get("type").and_then(Value::as_str)).unwrap_or_default();
        let required = field.get("required").and_then(Value::as_bool).unwrap_or(written.ends_with('!'));
        let shape = self.shape(schema, &place, 1);
        let written = (!written.is_empty()).then(|| written.to_owned());
        Some(Field { description: description_of(field), written, ..Field::new(name, shape, required) })
    }

    fn shape(&mut self, schema: &Value, place: &str, depth: usize) -> Shape {
        if depth > DEEPEST {
            return Shape::Any;
        }
        match schema {
            Value::String(text) => self.of_text(text, depth),
            Value::Object(entries) => self.of_entries(entries, place, depth),
            _ => Shape::Any,
        }
    }

    fn of_entries(&mut self, entries: &Map<String, Value>, place: &str, depth: usize) -> Shape {
        let list = |names: &[&str]| names.iter().find_map(|name| entries.get(*name)).and_then(Value::as_array);
        if let Some(reference) = entries.get("$ref").and_then(Value::as_str) {
            let name = reference.rsplit('/').next().unwrap_or(reference);
            if !self.known.contains(name) {
                self.problems.add(&below(place, "$ref"), format!("there is no model named \"{name}\""));
            }
            return Shape::Model(name.to_owned());
        }
        if let Some(values) = list(&["enumValues", "enum"]) {
            return Shape::Enum(values.iter().filter_map(Value::as_str).map(str::to_owned).collect());
        }
        if let Some(options) = list(&["unionOf", "oneOf", "anyOf"]) {
            let option = |(index, option): (usize, &Value)| {
                let place = format!("{place}/unionOf/{index}");
                let shape = self.shape(option, &place, depth + 1);
                if let (Value::String(name), Shape::Text { format: Some(_) }) = (option, &shape) {
                    self.problems.add(&place, format!("there is no model named \"{name}\""));
                }
                shape
            };
            return Shape::Union(options.iter().enumerate().map(option).collect());
        }
        if let Some(properties) = entries.get("properties") {
            return Shape::Object(self.properties(
                properties,
                entries.get("required"),
                &below(place, "properties"),
                depth,
            ));
        }
        if let Some(items) = entries.get("items").filter(|items| !items.is_null()) {
            return Shape::list_of(self.shape(items, &below(place, "items"), depth + 1));
        }
        match entries.get("type") {
            Some(Value::String(name)) if name == "string" => {
                Shape::Text { format: entries.get("format").and_then(Value::as_str).map(str::to_owned) }
            }
            Some(Value::String(text)) => self.of_text(text, depth),
            Some(inner @ Value::Object(_)) => self.shape(inner, &below(place, "type"), depth + 1),
            _ => Shape::Any,
        }
    }

    /// Either by name, or as a list of which each has a name.
    fn properties(&mut self, properties: &Value, required: Option<&Value>, place: &str, depth: usize) -> Vec<Field> {
        if depth > DEEPEST {
            return Vec::new();
        }
        let required = required.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        let mut fields: Vec<Field> = match properties {
            Value::Object(entries) => {
                let field = |(name, value): (&String, &Value)| {
                    let shape = self.shape(value, &below(place, name), depth + 1);
                    let field = Field::new(name, shape, value.get("required") == Some(&Value::Bool(true)));
                    Field { description: description_of(value), ..field }
                };
                entries.iter().map(field).collect()
            }
            Value::Array(list) => {
                let field = |(index, value)| self.field(value, None, &format!("{place}/{index}"));
                list.iter().enumerate().filter_map(field).collect()
            }
            _ => Vec::new(),
        };
        for field in &mut fields {
            field.required |= required.iter().any(|name| *name == field.name.as_str());
        }
        fields
    }

    /// `string`, `Pet`, `Pet[]` and GraphQL's `[Pet!]!`.
    fn of_text(&self, text: &str, depth: usize) -> Shape {
        let text = text.trim().trim_end_matches('!').trim();
        let inside = text.strip_suffix("[]").or_else(|| text.strip_prefix('[').and_then(|t| t.strip_suffix(']')));
        if let (Some(inside), true) = (inside, depth < DEEPEST) {
            return Shape::list_of(self.of_text(inside, depth + 1));
        }
        match text {
            _ if self.known.contains(text) => Shape::Model(text.to_owned()),
            "string" | "String" => Shape::text(),
            "ID" | "id" => Shape::Text { format: Some("id".to_owned()) },
            "integer" | "int" | "Int" => Shape::Integer,
            "number" | "float" | "Float" | "double" => Shape::Number,
            "boolean" | "Boolean" | "bool" => Shape::Boolean,
            "object" => Shape::Object(Vec::new()),
            "array" => Shape::list_of(Shape::Any),
            "" | "any" | "null" | "enum" | "union" => Shape::Any,
            // A scalar of its own.
            other => Shape::Text { format: Some(other.to_owned()) },
        }
    }
}
