//! JSON Schema, as OpenAPI uses it, to shapes.

use std::collections::HashMap;

use serde_json::{Map, Value};

use super::problems::below;
use super::references::{Document, Target};
use super::{Field, Model, Shape};
use crate::base::text::one_line;

/// Deeper than this nobody writes by hand; what is below counts as anything.
const DEEPEST: usize = 32;
/// What one document may be made of. References that are copied instead of named could multiply.
const MOST_SHAPES: usize = 200_000;
const MOST_VALUES: usize = 50;
const LONGEST_DESCRIPTION: usize = 300;
const LONGEST_EXAMPLE: usize = 80;

/// Reads the schemas of one document.
pub(super) struct Schemas<'d, 'a> {
    document: &'d mut Document<'a>,
}

impl<'d, 'a> Schemas<'d, 'a> {
    pub(super) fn new(document: &'d mut Document<'a>) -> Self {
        Self { document }
    }

    pub(super) fn shape(&mut self, schema: &'a Value, place: &str) -> Shape {
        self.read(schema, place, 0)
    }

    /// The named types.
    pub(super) fn models(&mut self, schemas: Option<&'a Value>, place: &str) -> Vec<Model> {
        let Some(Value::Object(schemas)) = schemas else { return Vec::new() };
        let model = |(name, schema): (&String, &'a Value)| {
            let description = schema.get("description").and_then(Value::as_str).map(described);
            Model { name: name.clone(), description, shape: self.read(schema, &below(place, name), 0) }
        };
        schemas.iter().map(model).collect()
    }

    fn read(&mut self, schema: &'a Value, place: &str, depth: usize) -> Shape {
        self.document.made += 1;
        let Value::Object(entries) = schema else { return Shape::Any };
        if depth > DEEPEST || self.document.made > MOST_SHAPES {
            return Shape::Any;
        }
        if let Some(reference) = entries.get("$ref").and_then(Value::as_str) {
            return match self.document.follow(reference, place) {
                Target::Model(name) => Shape::Model(name),
                Target::Value(value, pointer) => self.read(value, &pointer, depth + 1),
                Target::Nothing => Shape::Any,
            };
        }
        if let Some(values) = entries.get("enum").and_then(Value::as_array) {
            return Shape::Enum(values.iter().take(MOST_VALUES).map(plain).collect());
        }
        if let Some(value) = entries.get("const") {
            return Shape::Enum(vec![plain(value)]);
        }
        if let Some(parts) = entries.get("allOf").and_then(Value::as_array) {
            return self.all_of(entries, parts, place, depth);
        }
        for name in ["oneOf", "anyOf"] {
            if let Some(options) = entries.get(name).and_then(Value::as_array) {
                return self.union(options, &below(place, name), depth);
            }
        }
        self.of_type(entries, place, depth)
    }

    fn of_type(&mut self, entries: &'a Map<String, Value>, place: &str, depth: usize) -> Shape {
        let format = || entries.get("format").and_then(Value::as_str).map(str::to_owned);
        match type_name(entries) {
            Some("string") => Shape::Text { format: format() },
            Some("file") => Shape::Text { format: Some("binary".to_owned()) },
            Some("integer") => Shape::Integer,
            Some("number") => Shape::Number,
            Some("boolean") => Shape::Boolean,
            Some("array") => self.list(entries, place, depth),
            _ if entries.contains_key("properties") => Shape::Object(self.fields(entries, place, depth)),
            _ if entries.contains_key("items") => self.list(entries, place, depth),
            Some("object") => match entries.get("additionalProperties") {
                Some(value @ Value::Object(_)) => {
                    Shape::Map(Box::new(self.read(value, &below(place, "additionalProperties"), depth + 1)))
                }
                _ => Shape::Object(Vec::new()),
            },
            _ => Shape::Any,
        }
    }

    fn list(&mut self, entries: &'a Map<String, Value>, place: &str, depth: usize) -> Shape {
        match entries.get("items") {
            Some(items) => Shape::list_of(self.read(items, &below(place, "items"), depth + 1)),
            None => Shape::list_of(Shape::Any),
        }
    }

    fn fields(&mut self, entries: &'a Map<String, Value>, place: &str, depth: usize) -> Vec<Field> {
        let Some(Value::Object(properties)) = entries.get("properties") else { return Vec::new() };
        let required = entries.get("required").and_then(Value::as_array);
        let place = below(place, "properties");
        let field = |(name, schema): (&String, &'a Value)| {
            let is_required = required.is_some_and(|names| names.iter().any(|required| required == name.as_str()));
            let shape = self.read(schema, &below(&place, name), depth + 1);
            Field {
                description: description_of(schema),
                example: example_of(schema),
                ..Field::new(name, shape, is_required)
            }
        };
        properties.iter().map(field).collect()
    }

    fn union(&mut self, options: &'a [Value], place: &str, depth: usize) -> Shape {
        let mut shapes = Vec::new();
        for (index, option) in options.iter().enumerate() {
            // `null` beside one type only says that the value may be missing.
            if type_name_of(option) == Some("null") {
                continue;
            }
            let shape = self.read(option, &below(place, &index.to_string()), depth + 1);
            if !shapes.contains(&shape) {
                shapes.push(shape);
            }
        }
        match shapes.len() {
            0 => Shape::Any,
            1 => shapes.remove(0),
            _ => Shape::Union(shapes),
        }
    }

    /// Everything at once: a single reference stays a name, several parts become one object.
    fn all_of(&mut self, entries: &'a Map<String, Value>, parts: &'a [Value], place: &str, depth: usize) -> Shape {
        let own = self.fields(entries, place, depth);
        if let ([only], true) = (parts, own.is_empty()) {
            return self.read(only, &below(&below(place, "allOf"), "0"), depth + 1);
        }
        let mut fields = Fields::default();
        let mut names = Vec::new();
        for (index, part) in parts.iter().enumerate() {
            let place = below(&below(place, "allOf"), &index.to_string());
            fields.extend(self.fields_of(part, &place, depth + 1, &mut names));
        }
        fields.extend(own);
        Shape::Object(fields.list)
    }

    /// The fields of a schema, of a named one too. `names` are those on the way here.
    fn fields_of(&mut self, schema: &'a Value, place: &str, depth: usize, names: &mut Vec<String>) -> Vec<Field> {
        self.document.made += 1;
        if depth > DEEPEST || self.document.made > MOST_SHAPES || schema.is_boolean() {
            return Vec::new();
        }
        let Some((entries, place)) = self.document.object(schema, place) else { return Vec::new() };
        if names.contains(&place) {
            return Vec::new();
        }
        names.push(place.clone());
        let mut fields = Fields::default();
        if let Some(parts) = entries.get("allOf").and_then(Value::as_array) {
            for (index, part) in parts.iter().enumerate() {
                let place = below(&below(&place, "allOf"), &index.to_string());
                fields.extend(self.fields_of(part, &place, depth + 1, names));
            }
        }
        fields.extend(self.fields(entries, &place, depth));
        names.pop();
        fields.list
    }
}

/// Fields from several places; one that is named again replaces the earlier one.
#[derive(Default)]
struct Fields {
    list: Vec<Field>,
    by_name: HashMap<String, usize>,
}

impl Fields {
    fn extend(&mut self, more: Vec<Field>) {
        for field in more {
            match self.by_name.get(&field.name).and_then(|at| self.list.get_mut(*at)) {
                Some(known) => *known = field,
                None => {
                    self.by_name.insert(field.name.clone(), self.list.len());
                    self.list.push(field);
                }
            }
        }
    }
}

fn type_name_of(schema: &Value) -> Option<&str> {
    type_name(schema.as_object()?)
}

/// In OpenAPI 3.1 a type may be a list; `null` in it only says that the value may be missing.
fn type_name(entries: &Map<String, Value>) -> Option<&str> {
    match entries.get("type")? {
        Value::String(name) => Some(name),
        Value::Array(names) => {
            let names: Vec<&str> = names.iter().filter_map(Value::as_str).collect();
            names.iter().find(|name| **name != "null").or(names.first()).copied()
        }
        _ => None,
    }
}

pub(super) fn description_of(schema: &Value) -> Option<String> {
    schema.get("description").and_then(Value::as_str).map(described).filter(|text| !text.is_empty())
}

fn example_of(schema: &Value) -> Option<String> {
    let example = schema.get("example").or_else(|| schema.get("default"))?;
    (!example.is_object() && !example.is_array() && !example.is_null())
        .then(|| plain(example).chars().take(LONGEST_EXAMPLE).collect())
}

/// One line of it is enough.
pub(super) fn described(text: &str) -> String {
    one_line(text, LONGEST_DESCRIPTION)
}

/// A value as it is written into a list of choices.
fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}
