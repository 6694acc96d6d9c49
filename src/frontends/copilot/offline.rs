//! An interface without a model: the specification as data, and components that show any such data.
//!
//! It is plainer than what a model would make, but it is complete: every endpoint has a form, lists
//! are tables, and without a connection to the API samples made from the types are shown.

mod samples;

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

use super::code::escape_forbidden;
use super::params::Wishes;
use super::spec::{Endpoint, Field, Operation, Root, Security, Shape, Spec};
use samples::sample;

const COMPONENTS: &str = include_str!("offline/interface.jsx");
const PAGE_SIZE: u32 = 10;
const LONGEST_HINT: usize = 120;
/// Of a GraphQL type, so many fields are asked for.
const MOST_SELECTED: usize = 30;

/// The whole module.
pub(super) fn interface(spec: &Spec, wishes: &Wishes) -> String {
    let groups = groups(spec);
    let mut taken = BTreeSet::new();
    let pages: Vec<String> = groups.iter().map(|(name, _)| page_name(name, &mut taken)).collect();
    let groups: Vec<Value> =
        groups.into_iter().map(|(name, operations)| json!({"name": name, "operations": operations})).collect();
    let auth: Vec<Value> =
        if wishes.include_auth { spec.security.iter().map(credential).collect() } else { Vec::new() };
    let data = json!({
        "title": spec.title,
        "version": spec.version,
        "description": spec.description,
        "baseUrl": spec.base_url,
        "dark": wishes.dark,
        "pageSize": wishes.pagination.then_some(PAGE_SIZE),
        "auth": auth,
        "groups": groups,
    });
    let data = serde_json::to_string_pretty(&data).unwrap_or_default();
    let mut code = format!(
        "// Every endpoint of the API with a form, and its answers as tables and details.\n\
         import React, {{ useMemo, useState }} from \"react\";\n\nconst API = {};\n\n",
        escape_forbidden(&data)
    );
    for (index, page) in pages.iter().enumerate() {
        code.push_str(&format!(
            "function {page}(props) {{\n  return <GroupView group={{API.groups[{index}]}} {{...props}} />;\n}}\n\n"
        ));
    }
    code.push_str(&format!("const PAGES = [{}];\n", pages.join(", ")));
    code.push_str(COMPONENTS);
    code
}

/// Operations by tag, or by the root they belong to.
fn groups(spec: &Spec) -> Vec<(String, Vec<Value>)> {
    let mut order: Vec<String> = Vec::new();
    let mut by_name: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    let mut add = |name: &str, operation: Value| {
        if !by_name.contains_key(name) {
            order.push(name.to_owned());
        }
        by_name.entry(name.to_owned()).or_default().push(operation);
    };
    for (index, endpoint) in spec.endpoints.iter().enumerate() {
        add(endpoint.tag.as_deref().unwrap_or("Endpoints"), of_endpoint(spec, endpoint, index));
    }
    for (index, operation) in spec.operations.iter().enumerate() {
        let name = match operation.root {
            Root::Query => "Queries",
            Root::Mutation => "Mutations",
            Root::Subscription => "Subscriptions",
        };
        add(name, of_operation(spec, operation, index));
    }
    let take = |name: String| {
        let operations = by_name.remove(&name).unwrap_or_default();
        (name, operations)
    };
    order.into_iter().map(take).collect()
}

fn of_endpoint(spec: &Spec, endpoint: &Endpoint, index: usize) -> Value {
    let mut inputs: Vec<Value> = Vec::new();
    for parameter in endpoint.parameters.iter().filter(|parameter| parameter.place != "cookie") {
        inputs.push(input(spec, &parameter.field, &parameter.place));
    }
    match endpoint.body.as_ref().map(|body| spec.resolved(body)) {
        Some(Shape::Object(fields)) if !fields.is_empty() => {
            inputs.extend(fields.iter().map(|field| input(spec, field, "body")));
        }
        Some(_) => inputs.push(input(spec, &Field::new("body", Shape::Any, true), "whole")),
        None => {}
    }
    let title = endpoint.summary.clone().unwrap_or_else(|| format!("{} {}", endpoint.method, endpoint.path));
    json!({
        "key": format!("e{index}"),
        "method": endpoint.method,
        "path": endpoint.path,
        "title": title,
        "deprecated": endpoint.deprecated,
        "inputs": inputs,
        "sample": result(endpoint).map_or(Value::Null, |shape| sample(spec, shape)),
    })
}

/// What comes back when all goes well.
fn result(endpoint: &Endpoint) -> Option<&Shape> {
    let good = endpoint.responses.iter().filter(|response| response.status.starts_with('2'));
    let other = endpoint.responses.iter().filter(|response| response.status == "default");
    good.chain(other).find_map(|response| response.shape.as_ref())
}

fn of_operation(spec: &Spec, operation: &Operation, index: usize) -> Value {
    let inputs: Vec<Value> = operation.arguments.iter().map(|argument| input(spec, argument, "argument")).collect();
    json!({
        "key": format!("o{index}"),
        "method": operation.root.word(),
        "path": operation.name,
        "field": operation.name,
        "title": operation.description.clone().unwrap_or_else(|| operation.name.clone()),
        "deprecated": operation.deprecated,
        "inputs": inputs,
        "query": query(spec, operation),
        "sample": sample(spec, &operation.returns),
    })
}

/// The text that asks a GraphQL server for this operation.
fn query(spec: &Spec, operation: &Operation) -> String {
    let typed = |field: &Field| format!("${}: {}", field.name, field.written.as_deref().unwrap_or("String"));
    let passed = |field: &Field| format!("{0}: ${0}", field.name);
    let list = |parts: Vec<String>| if parts.is_empty() { String::new() } else { format!("({})", parts.join(", ")) };
    let variables = list(operation.arguments.iter().map(typed).collect());
    let arguments = list(operation.arguments.iter().map(passed).collect());
    let selection = selection(spec, &operation.returns);
    format!("{} {}{variables} {{ {}{arguments}{selection} }}", operation.root.word(), operation.name, operation.name)
}

/// The plain fields of what comes back.
fn selection(spec: &Spec, returns: &Shape) -> String {
    let mut shape = spec.resolved(returns);
    while let Shape::List(element) = shape {
        shape = spec.resolved(element);
    }
    match shape {
        Shape::Object(fields) => {
            let plain =
                |field: &&Field| !matches!(spec.resolved(innermost(&field.shape)), Shape::Object(_) | Shape::Union(_));
            let names: Vec<&str> =
                fields.iter().filter(plain).take(MOST_SELECTED).map(|field| field.name.as_str()).collect();
            if names.is_empty() { " { __typename }".to_owned() } else { format!(" {{ {} }}", names.join(" ")) }
        }
        Shape::Union(_) => " { __typename }".to_owned(),
        _ => String::new(),
    }
}

fn innermost(shape: &Shape) -> &Shape {
    match shape {
        Shape::List(element) => innermost(element),
        other => other,
    }
}

fn input(spec: &Spec, field: &Field, place: &str) -> Value {
    let (kind, options) = match spec.resolved(&field.shape) {
        Shape::Integer | Shape::Number => ("number", None),
        Shape::Boolean => ("checkbox", None),
        Shape::Enum(values) => ("select", Some(values.clone())),
        Shape::Text { .. } => ("text", None),
        Shape::Any if place != "whole" && place != "body" => ("text", None),
        _ => ("json", None),
    };
    let hint = field.description.as_ref().or(field.example.as_ref());
    let mut entries = Map::new();
    entries.insert("key".to_owned(), format!("{place}:{}", field.name).into());
    entries.insert("name".to_owned(), field.name.as_str().into());
    entries.insert("place".to_owned(), place.into());
    entries.insert("kind".to_owned(), kind.into());
    // A box that is not ticked says no; it cannot be left out.
    entries.insert("required".to_owned(), (field.required && kind != "checkbox").into());
    if let Some(options) = options {
        entries.insert("options".to_owned(), options.into());
    }
    if let Some(hint) = hint {
        entries.insert("hint".to_owned(), crate::base::text::one_line(hint, LONGEST_HINT).into());
    }
    Value::Object(entries)
}

fn credential(security: &Security) -> Value {
    let (place, field, prefix) = match (security.kind.as_str(), security.detail.split_once(' ')) {
        ("apiKey", Some(("query", name))) => ("query", name, ""),
        ("apiKey", Some((_, name))) => ("header", name, ""),
        ("http", _) if security.detail.eq_ignore_ascii_case("basic") => ("header", "Authorization", "Basic "),
        _ => ("header", "Authorization", "Bearer "),
    };
    json!({"name": security.name, "place": place, "field": field, "prefix": prefix})
}

/// A name for a component, from words of any kind.
fn page_name(group: &str, taken: &mut BTreeSet<String>) -> String {
    let words = group.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    let mut name: String = words
        .map(|word| {
            let (first, rest) = word.split_at(1);
            first.to_ascii_uppercase() + rest
        })
        .collect();
    if !name.starts_with(|c: char| c.is_ascii_alphabetic()) {
        name.insert_str(0, "Group");
    }
    let base = format!("{}Page", name.chars().take(40).collect::<String>());
    let mut unique = base.clone();
    let mut number = 2;
    while !taken.insert(unique.clone()) {
        unique = format!("{base}{number}");
        number += 1;
    }
    unique
}

#[cfg(test)]
mod tests;
