//! The same small API in every form, and everything that a document can get wrong.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

fn pet() -> Value {
    json!({"type": "object", "required": ["id"], "properties": {
        "id": {"type": "integer", "format": "int64"},
        "name": {"type": "string", "description": "How it\nis called", "example": "Rex"},
        "kind": {"enum": ["cat", "dog"]},
        "friends": {"type": "array", "items": {"$ref": "#/components/schemas/Pet"}},
    }})
}

fn openapi() -> Value {
    json!({
        "openapi": "3.1.0",
        "info": {"title": "Pets", "version": "1.2", "description": "A shop."},
        "servers": [{"url": "https://pets.example/v1"}],
        "paths": {
            "x-ignored": 5,
            "/pets": {
                "parameters": [{"$ref": "#/components/parameters/limit"}, {"name": "q", "in": "query", "schema": {}}],
                "get": {"tags": ["pets"], "summary": "List pets", "parameters": [
                    {"name": "q", "in": "query", "required": true, "schema": {"type": ["string", "null"]}}],
                    "responses": {"200": {"content": {"application/json": {"schema":
                        {"type": "array", "items": {"$ref": "#/components/schemas/Pet"}}}}}, "x-y": 1}},
                "post": {"operationId": "addPet", "deprecated": true,
                    "requestBody": {"$ref": "#/components/requestBodies/Pet"}, "responses": {"201": {}}},
            },
            "/pets/{id}": {"get": {"parameters": [{"name": "id", "in": "path", "schema": {"type": "integer"}}],
                "responses": {"200": {"$ref": "#/components/responses/One"}, "404": {"description": "no"}}}},
        },
        "components": {
            "schemas": {"Pet": pet(), "Unused": {"type": "string"}},
            "parameters": {"limit": {"name": "limit", "in": "query", "schema": {"type": "integer"}}},
            "requestBodies": {"Pet": {"content": {"text/plain": {"schema": {}}, "application/json":
                {"schema": {"$ref": "#/components/schemas/Pet"}}}}},
            "responses": {"One": {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/Pet"}}}}},
            "securitySchemes": {"key": {"type": "apiKey", "in": "header", "name": "X-Key"}},
        },
    })
}

fn paths(spec: &Value) -> Vec<String> {
    read(spec).unwrap_err().paths().into_iter().map(str::to_owned).collect()
}

#[test]
fn openapi_is_read_with_its_references() {
    let spec = read(&openapi()).unwrap();
    assert_eq!(
        digest(&spec, Detail::Names),
        "# Pets 1.2 (openapi3)\n\
         Base URL: https://pets.example/v1\n\
         Security: key apiKey header X-Key\n\
         \n## Endpoints\n\
         POST /pets (deprecated); query limit: integer; query q: any; body Pet; 201\n\
         GET /pets/{id}; path id*: integer; 200 Pet; 404\n\
         \n## pets\n\
         GET /pets; query q*: string; query limit: integer; 200 Pet[]\n\
         \n## Models (* is required)\n\
         Pet = {id*: integer, name: string, kind: (cat|dog), friends: Pet[]}\n\
         Unused = string\n"
    );
    let all = digest(&spec, Detail::Everything);
    assert!(all.contains("List pets") && all.contains("(e.g. Rex) \"How it is called\"") && all.contains("A shop."));
    assert!(!digest(&spec, Detail::Used).contains("Unused"));
    assert_eq!(spec.summary(), "Generated interface with 3 endpoints, data tables and forms");
}

#[test]
fn the_same_in_every_form_of_text() {
    let spec = read(&openapi()).unwrap();
    assert_eq!(read(&Value::String(openapi().to_string())).unwrap(), spec);
    let yaml = "\
openapi: 3.0.0
info: {title: T, version: '2'}
paths:
  /a:
    get:
      responses:
        200: {description: ok, content: {application/json: {schema: {$ref: '#/components/schemas/A'}}}}
components:
  schemas:
    A: {type: object, properties: {b: {type: boolean}}}
";
    for text in [yaml.to_owned(), format!("\u{feff}# comment\n---\n{yaml}")] {
        let spec = read(&json!(text)).unwrap();
        assert!(
            digest(&spec, Detail::Used).ends_with("GET /a; 200 A\n\n## Models (* is required)\nA = {b: boolean}\n")
        );
    }
}

#[test]
fn swagger_is_read() {
    let spec = read(&json!({
        "swagger": "2.0", "info": {"title": "S", "version": 1}, "host": "s.example", "basePath": "/v2", "schemes": ["http"],
        "paths": {"/a/{id}": {
            "put": {"parameters": [
                {"name": "id", "in": "path", "type": "string", "format": "uuid"},
                {"name": "body", "in": "body", "schema": {"$ref": "#/definitions/A"}},
                {"name": "tags", "in": "query", "type": "array", "items": {"type": "string"}},
                {"name": "sort", "in": "query", "type": "string", "enum": ["up", "down"]}],
                "responses": {"200": {"schema": {"$ref": "#/definitions/A"}}}},
            "post": {"parameters": [{"name": "file", "in": "formData", "type": "file", "required": true},
                {"name": "n", "in": "formData", "type": "integer"}]}}},
        "definitions": {"A": {"allOf": [{"$ref": "#/definitions/Base"}, {"properties": {"b": {"type": "number"}}}]},
            "Base": {"properties": {"a": {"type": "string"}}}},
        "securityDefinitions": {"o": {"type": "oauth2"}},
    }))
    .unwrap();
    assert_eq!(
        digest(&spec, Detail::Names),
        "# S 1 (swagger2)\n\
         Base URL: http://s.example/v2\n\
         Security: o oauth2\n\
         \n## Endpoints\n\
         PUT /a/{id}; path id*: string(uuid); query tags: string[]; query sort: (up|down); body A; 200 A\n\
         POST /a/{id}; body {file*: string(binary), n: integer}\n\
         \n## Models (* is required)\n\
         A = {a: string, b: number}\n\
         Base = {a: string}\n"
    );
}

const SDL: &str = r#"
# A shop.
"""The whole shop"""
schema @x(a: [1, {b: "c"}]) { query: Root, mutation: Changes }
type Root implements A & B { "All pets" pets(first: Int! = 5 @y, kind: Kind = CAT): [Pet!]! old: Int @deprecated(reason: "x") }
type Changes { add(input: NewPet!): Pet }
type Pet { id: ID! name: String, owner: Owner }
extend type Pet { born: Date }
union Owner = | Person | Shop
type Person { name: String }
type Shop { name: String }
enum Kind { CAT "also" DOG }
input NewPet { name: String! = "Rex\"" }
scalar Date
interface A { x: Int }
interface B { x: Int }
directive @x(a: [Any]) repeatable on SCHEMA | OBJECT
scalar Any
"#;

#[test]
fn graphql_is_read_from_its_language() {
    let expected = "# GraphQL API (graphql)\n\
        \n## Queries\n\
        pets(first*: integer, kind: Kind): Pet[]\n\
        old: integer (deprecated)\n\
        \n## Mutations\n\
        add(input*: NewPet): Pet\n\
        \n## Models (* is required)\n\
        Pet = {id*: string(id), name: string, owner: Owner, born: Date}\n\
        Owner = Person or Shop\n\
        Person = {name: string}\n\
        Shop = {name: string}\n\
        Kind = (CAT|DOG)\n\
        NewPet = {name*: string}\n\
        Date = string(Date)\n";
    for spec in [json!(SDL), json!({"sdl": SDL}), json!({"schema": SDL})] {
        let spec = read(&spec).unwrap();
        assert_eq!(digest(&spec, Detail::Used), expected);
        assert!(digest(&spec, Detail::Everything).contains("All pets"));
    }
}

#[test]
fn graphql_is_read_from_introspection() {
    let named = |kind: &str, name: &str| json!({"kind": kind, "name": name, "ofType": null});
    let of = |kind: &str, inside: Value| json!({"kind": kind, "name": null, "ofType": inside});
    let schema = json!({"__schema": {
        "queryType": {"name": "Query"}, "mutationType": null,
        "types": [
            {"kind": "OBJECT", "name": "Query", "fields": [{"name": "pets", "description": "All", "args": [
                {"name": "first", "type": of("NON_NULL", named("SCALAR", "Int"))}],
                "type": of("LIST", of("NON_NULL", named("OBJECT", "Pet"))), "isDeprecated": true}]},
            {"kind": "OBJECT", "name": "Pet", "fields": [{"name": "id", "args": [], "type": named("SCALAR", "ID")}]},
            {"kind": "SCALAR", "name": "Int"}, {"kind": "SCALAR", "name": "ID"},
            {"kind": "OBJECT", "name": "__Type", "fields": []},
        ],
    }});
    for spec in [schema.clone(), json!({"data": schema.clone()}), json!(schema.to_string())] {
        let spec = read(&spec).unwrap();
        assert_eq!(
            digest(&spec, Detail::Names),
            "# GraphQL API (graphql)\n\n## Queries\npets(first*: integer): Pet[] (deprecated)\n\
             \n## Models (* is required)\nPet = {id: string(id)}\n"
        );
    }
}

#[test]
fn the_normalised_form_is_read() {
    let spec = read(&json!({
        "format": "openapi3", "metadata": {"title": "N", "version": "3", "baseUrl": "/api"},
        "endpoints": [{"path": "/a", "method": "post", "tag": "t", "parameters": [
                {"name": "q", "in": "query", "type": "string", "required": true}],
            "requestBody": {"schema": {"$ref": "#/models/A"}},
            "responses": {"200": {"statusCode": 200, "schema": {"type": "array", "items": {"$ref": "A"}}}}}],
        "models": [
            {"name": "A", "type": "object", "properties": {"x": {"type": "integer"}, "y": {"type": "A[]"}}, "required": ["x"]},
            {"name": "E", "type": "enum", "enumValues": ["u", "v"]},
            {"name": "U", "type": "union", "unionOf": ["A", "E"]}],
        "securitySchemes": [{"name": "s", "type": "http", "scheme": "bearer"}],
    }))
    .unwrap();
    assert_eq!(
        digest(&spec, Detail::Names),
        "# N 3 (openapi3)\nBase URL: /api\nSecurity: s http bearer\n\n## t\n\
         POST /a; query q*: string; body A; 200 A[]\n\n## Models (* is required)\n\
         A = {x*: integer, y: A[]}\nE = (u|v)\nU = A or E\n"
    );
    let graphql = read(&json!({"queries": [{"name": "a", "type": "query", "args": [{"name": "id", "type": "ID!"}],
        "returnType": "[A!]!"}], "mutations": [], "models": [{"name": "A", "type": "object", "properties": []}]}))
    .unwrap();
    assert_eq!(graphql.format, Format::GraphQl);
    assert!(digest(&graphql, Detail::Names).contains("a(id*: string(id)): A[]"));
}

#[test]
fn what_is_wrong_is_named_with_its_place() {
    let with = |change: &dyn Fn(&mut Value)| {
        let mut spec = openapi();
        change(&mut spec);
        paths(&spec)
    };
    assert_eq!(with(&|spec| spec["paths"] = json!({})), ["/paths"]);
    assert_eq!(with(&|spec| spec["paths"] = json!([])), ["/paths"]);
    assert_eq!(with(&|spec| spec["openapi"] = json!("4.0")), ["/openapi"]);
    assert_eq!(with(&|spec| spec["info"] = Value::Null), ["/info"]);
    assert_eq!(with(&|spec| spec["paths"]["/pets"]["get"] = json!(5)), ["/paths/~1pets/get"]);
    let dangling = json!({"$ref": "#/components/schemas/No"});
    assert_eq!(
        with(&|spec| spec["components"]["schemas"]["Pet"]["properties"]["id"] = dangling.clone()),
        ["/components/schemas/Pet/properties/id/$ref"]
    );
    assert_eq!(
        with(&|spec| spec["paths"]["/pets"]["post"]["requestBody"] = json!({"$ref": "other.yaml#/a"})),
        ["/paths/~1pets/post/requestBody/$ref"]
    );
    for (spec, path) in [
        (json!({}), ""),
        (json!(""), ""),
        (json!("hello there"), ""),
        (json!("{\"openapi\": "), ""),
        (json!("[]"), ""),
        (json!("a: [1"), ""),
        (json!({"paths": {}}), ""),
        (json!({"swagger": "1.2"}), "/swagger"),
        (json!({"endpoints": []}), "/queries"),
        (json!({"endpoints": [], "format": "openapi3"}), "/endpoints"),
        (json!({"endpoints": [{"path": "/a"}]}), "/endpoints/0"),
        (json!({"queries": [{}]}), "/queries/0"),
        (json!({"__schema": {}}), "/__schema/types"),
        (json!("type Query { a: Missing }"), "/Query/a"),
        (json!("type A { a: Int }"), ""),
        (json!("type Query {"), ""),
        (json!("query { a }"), ""),
        (json!({"queries": [{"name": "a", "returnType": {"$ref": "#/x/No"}}]}), "/queries/0/returnType/$ref"),
    ] {
        assert_eq!(paths(&spec), [path], "{spec}");
    }
    for (text, name) in [
        ("#%RAML 1.0\ntitle: x", "RAML"),
        ("<?xml version=\"1.0\"?><wsdl:definitions/>", "WSDL"),
        ("asyncapi: 2.0.0\ninfo: {}", "AsyncAPI"),
    ] {
        let problems = read(&json!(text)).unwrap_err();
        assert!(problems.summary().contains(name), "{}", problems.summary());
    }
    let many: serde_json::Map<String, Value> = (0..100).map(|n| (format!("/{n}"), json!({"get": 1}))).collect();
    let problems = read(&json!({"openapi": "3.0.0", "info": {}, "paths": many})).unwrap_err();
    assert!(problems.summary().ends_with("(and 99 more)"), "{}", problems.summary());
    assert_eq!(problems.data()["errors"].as_array().unwrap().len(), 50);
}

#[test]
fn circles_and_depths_have_an_end() {
    let mut spec = openapi();
    spec["components"]["schemas"] = json!({
        "Pet": {"allOf": [{"$ref": "#/components/schemas/Pet"}, {"$ref": "#/components/schemas/B"}, {"properties": {"x": {}}}]},
        "B": {"allOf": [{"$ref": "#/components/schemas/Pet"}, {"properties": {"y": {}}}]},
        "C": {"$ref": "#/components/schemas/D"},
        "D": {"$ref": "#/components/schemas/C"},
        "E": {"properties": {"e": {"$ref": "#/components/schemas/E/properties/e"}}},
    });
    let read_spec = read(&spec).unwrap();
    let text = digest(&read_spec, Detail::Names);
    assert!(text.contains("Pet = {y: any, x: any}") && text.contains("E = {e: any}"), "{text}");
    assert_eq!(*read_spec.resolved(&Shape::Model("C".into())), Shape::Any);
    assert!(!read_spec.summary().is_empty());

    spec["components"]["parameters"]["limit"] = json!({"$ref": "#/components/parameters/limit"});
    assert!(read(&spec).unwrap_err().summary().contains("circle"));

    let mut deep = json!({"type": "string"});
    for _ in 0..100 {
        deep = json!({"type": "object", "properties": {"d": deep}});
    }
    let mut spec = openapi();
    spec["components"]["schemas"]["Unused"] = deep;
    assert!(digest(&read(&spec).unwrap(), Detail::Everything).contains("..."));

    // Each doubles the one before.
    let mut schemas = serde_json::Map::new();
    schemas.insert("Pet".into(), json!({"properties": {"a": {}}}));
    for level in 0..60 {
        let before = if level == 0 { "Pet".to_owned() } else { format!("L{}", level - 1) };
        let part = json!({"$ref": format!("#/components/schemas/{before}")});
        schemas.insert(format!("L{level}"), json!({"allOf": [part, part, {"properties": {"x": {}}}]}));
    }
    let mut spec = openapi();
    spec["components"]["schemas"] = Value::Object(schemas);
    assert!(read(&spec).is_ok());

    let nested = format!("type Query {{ a: {}Int{} }}", "[".repeat(5000), "]".repeat(5000));
    assert!(read(&json!(nested)).unwrap_err().summary().contains("lists"));
    let value = format!("type Query {{ a(x: Int = {}1{}): Int }}", "[".repeat(5000), "]".repeat(5000));
    assert!(read(&json!(value)).unwrap_err().summary().contains("nested"));
    let mut wrapped = json!({"kind": "SCALAR", "name": "Int"});
    for _ in 0..40 {
        wrapped = json!({"kind": "LIST", "ofType": wrapped});
    }
    let query = json!({"kind": "OBJECT", "name": "Query", "fields": [{"name": "a", "type": wrapped}]});
    assert!(read(&json!({"__schema": {"types": [query]}})).is_err());
}

proptest! {
    #[test]
    fn any_text_is_survived(text in r#"[a-d{}\[\]():!=|&@"\#, \n]{0,80}"#) {
        let _ = read(&json!(text));
        let _ = read(&json!(format!("type Query {{ {text} }}")));
        let _ = read(&json!(format!("openapi: 3.0.0\n{text}")));
    }

    #[test]
    fn any_document_is_survived(noise in prop::collection::vec((0..12_usize, 0..8_usize), 0..6)) {
        let places = ["/info", "/paths", "/paths/~1pets", "/paths/~1pets/get", "/paths/~1pets/get/parameters",
            "/paths/~1pets/get/responses/200", "/components/schemas", "/components/schemas/Pet",
            "/components/schemas/Pet/properties", "/components/schemas/Pet/required", "/servers", "/components"];
        let values = [json!(null), json!(5), json!("x"), json!([]), json!({}), json!([{}]), json!({"$ref": "#"}),
            json!({"$ref": "#/paths"})];
        let mut spec = openapi();
        for (place, value) in noise {
            if let Some(target) = spec.pointer_mut(places[place]) {
                *target = values[value].clone();
            }
        }
        if let Ok(spec) = read(&spec) {
            digest(&spec, Detail::Everything);
            spec.summary();
        }
    }
}
