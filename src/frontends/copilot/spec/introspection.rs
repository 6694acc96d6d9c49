//! The answer of a GraphQL server to the introspection query.

use serde_json::Value;

use super::Spec;
use super::graphql::{Body, Member, Schema, TypeRef};
use super::problems::Problems;
use super::schema::description_of;

/// Lists of lists of lists: more than this is nonsense.
const DEEPEST_TYPE: usize = 16;

pub(super) fn read(schema: &Value) -> Result<Spec, Problems> {
    let Some(types) = schema.get("types").and_then(Value::as_array) else {
        return Err(Problems::one("/__schema/types", "the introspection has no types"));
    };
    let mut read = Schema::described(description_of(schema));
    for (word, key) in [("query", "queryType"), ("mutation", "mutationType"), ("subscription", "subscriptionType")] {
        if let Some(name) = schema.get(key).and_then(|root| name_of(root)) {
            read.roots.insert(word, name.to_owned());
        }
    }
    for described in types {
        // Names with two underscores are the introspection itself.
        let Some(name) = name_of(described).filter(|name| !name.starts_with("__")) else { continue };
        if ["Int", "Float", "String", "Boolean", "ID"].contains(&name) {
            continue;
        }
        read.entry(name, body(described)).description = description_of(described);
    }
    read.into_spec()
}

fn body(described: &Value) -> Body {
    let list = |key: &str| described.get(key).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let names = |key: &str| list(key).iter().filter_map(|entry| name_of(entry)).map(str::to_owned).collect();
    match described.get("kind").and_then(Value::as_str) {
        Some("OBJECT" | "INTERFACE") => Body::Object(list("fields").iter().filter_map(member).collect()),
        Some("INPUT_OBJECT") => Body::Object(list("inputFields").iter().filter_map(member).collect()),
        Some("UNION") => Body::Union(names("possibleTypes")),
        Some("ENUM") => Body::Enum(names("enumValues")),
        _ => Body::Scalar,
    }
}

fn member(field: &Value) -> Option<Member> {
    let arguments = field.get("args").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    Some(Member {
        name: name_of(field)?.to_owned(),
        description: description_of(field),
        of: type_ref(field.get("type")?, DEEPEST_TYPE)?,
        // Arguments have none of their own, so this is no endless descent.
        arguments: arguments.iter().filter_map(argument).collect(),
        deprecated: field.get("isDeprecated").and_then(Value::as_bool).unwrap_or_default(),
    })
}

fn argument(field: &Value) -> Option<Member> {
    Some(Member {
        name: name_of(field)?.to_owned(),
        description: description_of(field),
        of: type_ref(field.get("type")?, DEEPEST_TYPE)?,
        arguments: Vec::new(),
        deprecated: false,
    })
}

fn type_ref(described: &Value, depth: usize) -> Option<TypeRef> {
    let depth = depth.checked_sub(1)?;
    let inside = || type_ref(described.get("ofType")?, depth);
    match described.get("kind").and_then(Value::as_str) {
        Some("NON_NULL") => Some(match inside()? {
            TypeRef::Named { name, .. } => TypeRef::Named { name, required: true },
            TypeRef::List { of, .. } => TypeRef::List { of, required: true },
        }),
        Some("LIST") => Some(TypeRef::List { of: Box::new(inside()?), required: false }),
        _ => Some(TypeRef::Named { name: name_of(described)?.to_owned(), required: false }),
    }
}

fn name_of(described: &Value) -> Option<&str> {
    described.get("name").and_then(Value::as_str)
}
