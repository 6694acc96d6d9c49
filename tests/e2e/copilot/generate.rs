//! The handshake, and interfaces from specifications in every form.

use serde_json::{Value, json};

use super::{Copilot, MODULE, petstore, told};
use crate::mock_llm::{Gate, MockLlm, Script};

#[tokio::test]
async fn the_handshake_says_what_there_is() {
    let model = MockLlm::start().await;
    let mut copilot = Copilot::with(&model);
    let params = json!({"clientName": "experience-ui", "clientVersion": "1.0.0",
        "capabilities": {"streaming": true, "specFormats": ["openapi3", "graphql", "raml"]}});
    let answered = copilot.call("initialize", params).await;
    assert_eq!(
        answered.result(),
        &json!({
            "serverName": "copilot-cli",
            "serverVersion": env!("CARGO_PKG_VERSION"),
            "capabilities": {"codeGeneration": true, "customization": true, "streaming": true, "chat": true,
                "specFormats": ["openapi3", "graphql"], "models": ["mock/m1", "mock/m2"]},
        })
    );
    // Everything in it is optional, and it may come again.
    for params in [json!({}), json!({"capabilities": {}})] {
        assert_eq!(copilot.call("initialize", params).await.result()["serverName"], "copilot-cli");
    }
    copilot.finish().await;
}

fn forms() -> Vec<(&'static str, Value)> {
    let yaml = "openapi: 3.0.0\ninfo: {title: Pets, version: '1'}\npaths:\n  /pets:\n    get: {responses: {}}\n";
    let swagger = json!({"swagger": "2.0", "info": {"title": "Pets"}, "paths": {"/pets": {"get": {}}}});
    let scalar = |name: &str| json!({"kind": "SCALAR", "name": name});
    let introspection = json!({"data": {"__schema": {"queryType": {"name": "Query"}, "types": [
        {"kind": "OBJECT", "name": "Query", "fields": [{"name": "pets", "args": [], "type": scalar("String")}]}]}}});
    let normalized = json!({"format": "openapi3", "metadata": {"title": "Pets", "version": "1"},
        "endpoints": [{"path": "/pets", "method": "get", "parameters": [], "responses": {}}], "models": []});
    vec![
        ("GET /pets", petstore()),
        ("GET /pets", json!(petstore().to_string())),
        ("GET /pets", json!(yaml)),
        ("GET /pets", swagger),
        ("pets: string", json!("type Query { pets: String }")),
        ("pets: string", introspection),
        ("GET /pets", normalized),
    ]
}

#[tokio::test]
async fn every_form_of_specification_reaches_the_model_and_its_code_the_client() {
    let model = MockLlm::start().await;
    // The fence comes in pieces, and words around it.
    let answer = format!("Here it is:\n```tsx\n{MODULE}```\nEnjoy.");
    let pieces: Vec<String> =
        answer.chars().collect::<Vec<_>>().chunks(7).map(|piece| piece.iter().collect()).collect();
    model.respond_with(move |_| {
        let pieces: Vec<&str> = pieces.iter().map(String::as_str).collect();
        Script::text_stream(&pieces)
    });
    let mut copilot = Copilot::with(&model);
    for (digest, spec) in forms() {
        let answered = copilot.call("generate", json!({"spec": spec})).await;
        assert_eq!(
            answered.result(),
            &json!({"code": MODULE, "componentCount": 2, "description": "Lists the pets and adds new ones."}),
        );
        assert_eq!(answered.streamed(), MODULE);
        let request = model.next_request().await;
        assert!(told(&request).contains(digest), "{digest}: {}", told(&request));
        assert!(request.body.get("tools").is_none(), "no tools are offered");
    }
    copilot.finish().await;
}

#[tokio::test]
async fn wishes_reach_the_model() {
    let model = MockLlm::start().await;
    model.respond_with(|_| Script::text_stream(&["export default () => <p/>;\n"]));
    let mut copilot = Copilot::with(&model);
    let options = json!({"layout": "two columns", "includeAuth": true, "pagination": true});
    let params = json!({"spec": petstore(), "format": "react", "theme": "dark", "options": options});
    let answered = copilot.call("generate", params).await;
    assert_eq!(answered.result()["description"], "Generated interface with 1 endpoint and data tables");
    assert_eq!(answered.result()["componentCount"], 1);
    let told = told(&model.next_request().await);
    for wish in ["Dark colours", "two columns", "credentials", "pages", "List all pets", "Pet = {name: string}"] {
        assert!(told.contains(wish), "{wish}: {told}");
    }
    copilot.finish().await;
}

#[tokio::test]
async fn who_wants_no_chunks_gets_none() {
    let model = MockLlm::start().await;
    model.respond_with(|_| Script::text_stream(&[MODULE]));
    let mut copilot = Copilot::with(&model);
    copilot.call("initialize", json!({"capabilities": {"streaming": false}})).await;
    let answered = copilot.call("generate", json!({"spec": petstore()})).await;
    assert_eq!((answered.chunks.len(), &answered.result()["code"]), (0, &json!(MODULE)));
    copilot.finish().await;
}

#[tokio::test]
async fn chunks_come_before_the_model_is_done_and_requests_do_not_mix() {
    let model = MockLlm::start().await;
    let gates = [Gate::new(), Gate::new()];
    let halves: Vec<&str> = MODULE.split_inclusive("}\n").collect();
    for gate in &gates {
        let script = Script::stream().text("```tsx\n").text(halves[0]).gate(gate);
        model.push(halves[1..].iter().fold(script, |script, half| script.text(half)).finish("stop"));
    }
    let mut copilot = Copilot::with(&model);
    let first = copilot.start_raw("generate", Some(json!({"spec": petstore()})));
    let second = copilot.start_raw("generate", Some(json!({"spec": petstore()})));
    let mut early = Vec::new();
    for id in [first, second] {
        let chunk = copilot.find("a first chunk", |message| message["params"]["requestId"] == id).await;
        assert_eq!((&chunk["params"]["index"], &chunk["params"]["done"]), (&json!(0), &json!(false)));
        early.push(chunk["params"].clone());
    }
    // The later one may end first.
    for (id, gate) in [(second, 1), (first, 0)] {
        gates[0].open();
        gates[1].open();
        let mut answered = copilot.answered(id).await;
        answered.chunks.insert(0, early[gate].clone());
        assert_eq!(answered.streamed(), MODULE);
        assert_eq!(answered.result()["code"], MODULE);
    }
    copilot.finish().await;
}

#[tokio::test]
async fn ids_may_be_texts() {
    let model = MockLlm::start().await;
    model.respond_with(|_| Script::text_stream(&[MODULE]));
    let mut copilot = Copilot::with(&model);
    copilot.send(&json!({"jsonrpc": "2.0", "id": "é-1", "method": "generate", "params": {"spec": petstore()}}));
    let answered = copilot.answered("é-1").await;
    assert_eq!(answered.streamed(), answered.result()["code"].as_str().unwrap());
    copilot.finish().await;
}

#[tokio::test]
async fn a_broken_answer_is_continued_where_it_ended() {
    let model = MockLlm::start().await;
    let (start, rest) = MODULE.split_at(90);
    let head = format!("```tsx\n{start}");
    // Once by the output limit, once by a connection that breaks.
    model.push(Script::stream().text(&head[..40]).finish("length"));
    model.push(Script::stream().text(&head[40..]).step(crate::mock_llm::Step::Cut));
    model.push(Script::text_stream(&["```tsx\n", rest, "```"]));
    let mut copilot = Copilot::with(&model);
    let answered = copilot.call("generate", json!({"spec": petstore()})).await;
    assert_eq!(answered.result()["code"], MODULE);
    assert_eq!(answered.streamed(), MODULE);
    for _ in 0..2 {
        model.next_request().await;
    }
    let last = told(&model.next_request().await);
    assert!(last.contains("Go on exactly where it ends"), "{last}");
    copilot.finish().await;
}

#[tokio::test]
async fn what_the_application_forbids_is_not_in_the_code() {
    let model = MockLlm::start().await;
    let code = "export default function App() {\n  const x = ev";
    model.push(Script::text_stream(&[code, "al(\"1\") + document.coo", "kie;\n  return <p>{x}</p>;\n}\n"]));
    let mut copilot = Copilot::with(&model);
    let answered = copilot.call("generate", json!({"spec": petstore()})).await;
    let code = answered.result()["code"].as_str().unwrap();
    assert!(!code.contains("eval(") && !code.contains("document.cookie"), "{code}");
    assert_eq!(answered.streamed(), code);
    let description = answered.result()["description"].as_str().unwrap();
    assert!(description.contains("made harmless: eval, document.cookie"), "{description}");
    copilot.finish().await;
}

#[tokio::test]
async fn an_answer_without_code_is_asked_for_once_more() {
    let model = MockLlm::start().await;
    model.push(Script::text_stream(&["I would be happy to help."]));
    model.push(Script::text_stream(&[MODULE]));
    let mut copilot = Copilot::with(&model);
    let answered = copilot.call("generate", json!({"spec": petstore()})).await;
    assert_eq!(answered.streamed(), MODULE);
    model.next_request().await;
    assert!(told(&model.next_request().await).contains("I would be happy to help."));
    model.push(Script::text_stream(&["No."]));
    model.push(Script::text_stream(&["Still no."]));
    let answered = copilot.call("generate", json!({"spec": petstore()})).await;
    assert_eq!((answered.error().0, answered.chunks.len()), (-32000, 0));
    assert_eq!(answered.error().1["data"]["unusableOutput"], true);
    copilot.finish().await;
}

#[tokio::test]
async fn unicode_and_long_lines_pass_in_both_directions() {
    let model = MockLlm::start().await;
    let text = "é\u{2028}🦀\\n\" ".repeat(30_000);
    let code = format!("export default function App() {{\n  return <p>{text}</p>;\n}}\n");
    let body = code.clone();
    model.respond_with(move |_| Script::text_stream(&[&body]));
    let mut copilot = Copilot::with(&model);
    let mut spec = petstore();
    // Five megabytes that nobody needs to read.
    spec["x-note"] = json!("🦀 ".repeat(1_000_000));
    let answered = copilot.call("generate", json!({"spec": spec})).await;
    assert_eq!(answered.result()["code"].as_str().unwrap(), code);
    assert_eq!(answered.streamed(), code);
    copilot.finish().await;
}
