//! The interface without a model: that it holds what the specification says, and nothing forbidden.

use serde_json::json;

use super::*;
use crate::frontends::copilot::code::{Guard, component_count, has_default_export};
use crate::frontends::copilot::spec::read;

fn petstore() -> Spec {
    read(&json!({
        "openapi": "3.0.0",
        "info": {"title": "Pet \"store\" with eval( and process.env", "version": "1"},
        "paths": {
            "/pets": {
                "get": {"tags": ["pets & more"], "summary": "List pets", "parameters": [
                    {"name": "limit", "in": "query", "schema": {"type": "integer"}},
                    {"name": "kind", "in": "query", "schema": {"enum": ["cat", "dog"]}},
                ], "responses": {"200": {"content": {"application/json": {"schema":
                    {"type": "array", "items": {"$ref": "#/components/schemas/Pet"}}}}}}},
                "post": {"tags": ["pets & more"], "requestBody": {"content": {"application/json":
                    {"schema": {"$ref": "#/components/schemas/Pet"}}}}, "responses": {"204": {}}},
            },
            "/ü": {"put": {"requestBody": {"content": {"text/plain": {"schema": {"type": "array", "items": {}}}}}}},
        },
        "components": {
            "schemas": {"Pet": {"type": "object", "required": ["name"], "properties": {
                "id": {"type": "string"}, "name": {"type": "string", "example": "Rex"}, "born": {"type": "string",
                "format": "date"}, "good": {"type": "boolean"}, "parent": {"$ref": "#/components/schemas/Pet"}}}},
            "securitySchemes": {"key": {"type": "apiKey", "in": "query", "name": "api_key"},
                "token": {"type": "http", "scheme": "bearer"}},
        },
    }))
    .unwrap()
}

/// The data inside of the module.
fn data(code: &str) -> Value {
    let from = code.find("const API = ").unwrap() + "const API = ".len();
    let mut values = serde_json::Deserializer::from_str(&code[from..]).into_iter::<Value>();
    values.next().unwrap().unwrap()
}

#[test]
fn the_module_has_every_endpoint_and_nothing_forbidden() {
    let wishes = Wishes { dark: true, include_auth: true, pagination: true, layout: None };
    let code = interface(&petstore(), &wishes);
    let data = data(&code);
    assert_eq!(data["title"], "Pet \"store\" with eval( and process.env", "texts keep their meaning");
    assert_eq!((&data["dark"], &data["pageSize"]), (&json!(true), &json!(10)));
    let operations = data["groups"][0]["operations"].as_array().unwrap();
    assert_eq!(data["groups"][0]["name"], "pets & more");
    assert_eq!(
        operations[0]["sample"][0],
        json!({"id": "1", "name": "Rex", "born": "2025-01-01", "good": true,
        "parent": {"id": "1", "name": "Rex", "born": "2025-01-01", "good": true, "parent": null}})
    );
    assert_eq!(operations[0]["sample"].as_array().unwrap().len(), 3);
    let kinds: Vec<&Value> = operations[1]["inputs"].as_array().unwrap().iter().map(|input| &input["kind"]).collect();
    assert_eq!(kinds, ["text", "text", "text", "checkbox", "json"]);
    assert_eq!(operations[0]["inputs"][1]["options"], json!(["cat", "dog"]));
    assert_eq!(data["groups"][1]["operations"][0]["inputs"][0]["place"], "whole");
    assert_eq!(
        data["auth"],
        json!([{"name": "key", "place": "query", "field": "api_key", "prefix": ""},
            {"name": "token", "place": "header", "field": "Authorization", "prefix": "Bearer "}])
    );
    assert!(code.contains("function PetsMorePage(props)") && code.contains("function EndpointsPage(props)"), "{code}");
    let mut guard = Guard::default();
    assert_eq!(guard.push(&code) + &guard.finish(), code, "nothing had to be made harmless");
    assert!(has_default_export(&code));
    assert_eq!(component_count(&code), 9);
}

#[test]
fn without_wishes_there_is_neither_a_form_for_keys_nor_paging() {
    let data = data(&interface(&petstore(), &Wishes::default()));
    assert_eq!((&data["auth"], &data["pageSize"], &data["dark"]), (&json!([]), &Value::Null, &json!(false)));
}

#[test]
fn graphql_is_asked_in_its_own_words() {
    let sdl = "type Query { pets(first: Int = 5, in: PetFilter): [Pet!]! count: Int! node: Node }\n\
               union Node = Pet\ninput PetFilter { name: String }\nscalar Date\n\
               type Pet { id: ID! born: Date friends: [Pet] }\ntype Mutation { add(name: [String!]!): Pet }";
    let data = data(&interface(&read(&json!(sdl)).unwrap(), &Wishes::default()));
    let query = |group: usize, index: usize| data["groups"][group]["operations"][index]["query"].as_str().unwrap();
    assert_eq!(query(0, 0), "query pets($first: Int, $in: PetFilter) { pets(first: $first, in: $in) { id born } }");
    assert_eq!(query(0, 1), "query count { count }");
    assert_eq!(query(0, 2), "query node { node { __typename } }");
    assert_eq!(query(1, 0), "mutation add($name: [String!]!) { add(name: $name) { id born } }");
}

#[test]
fn pages_have_names_of_their_own() {
    let mut taken = BTreeSet::new();
    let names: Vec<String> =
        ["pets", "Pets", "日本", "2 fast", ""].iter().map(|group| page_name(group, &mut taken)).collect();
    assert_eq!(names, ["PetsPage", "PetsPage2", "GroupPage", "Group2FastPage", "GroupPage2"]);
}
