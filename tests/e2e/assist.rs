//! Completion at the cursor and rewriting of a selection.

use std::fs;

use serde_json::{Value, json};

use crate::mock_llm::{MockLlm, Script};
use crate::server::TestServer;

const MARK: &str = "<|eca-cursor|>";

fn inline(text: &str) -> Value {
    json!({"docText": text, "docVersion": 7, "position": {"line": 1, "character": 5}})
}

async fn rewritten(server: &mut TestServer, params: Value) -> (Value, Vec<Value>) {
    let id = server.start_raw("rewrite/prompt", Some(params));
    let over = |message: &Value| {
        let kind = &message["params"]["content"]["type"];
        kind == "finished" || kind == "error" || message.get("error").is_some()
    };
    let mut seen = server.everything_until("the end of the rewrite", over).await;
    if !seen.iter().any(|message| message["id"] == id) {
        seen.push(server.response_raw(id).await);
    }
    let response = seen.iter().find(|message| message["id"] == id).unwrap().clone();
    let contents = seen.iter().filter(|message| message["method"] == "rewrite/contentReceived");
    let contents = contents.map(|message| {
        assert_eq!(message["params"]["rewriteId"], "r1");
        message["params"]["content"].clone()
    });
    (response, contents.collect())
}

#[tokio::test]
async fn text_is_proposed_at_the_cursor() {
    let model = MockLlm::start().await;
    let config = json!({"completion": {"model": "mock/m2"}});
    let mut server = TestServer::with(&model).config(config).start().await;
    model.push(Script::text_stream(&["main", "()"]));
    let response = server.request_raw("completion/inline", Some(inline("def \n"))).await;
    let place = json!({"line": 1, "character": 5});
    let item = json!({"text": "main()", "docVersion": 7, "range": {"start": place, "end": place}});
    assert_eq!(response["result"], json!({"items": [item]}));
    let request = model.next_request().await.body;
    assert_eq!((&request["model"], request.get("tools")), (&json!("m2"), None), "{request}");
    let asked = request["messages"].as_array().unwrap().last().unwrap()["content"].as_str().unwrap().to_owned();
    assert_eq!(asked, format!("def {MARK}\n"));
    // As eca-emacs writes it; and as models write although they were told not to.
    model.push(Script::text_stream(&["```python\nmain()\n```"]));
    let emacs = json!({"doc-text": "def ", "doc-version": 8, "position": {"line": 1, "character": 5}, "path": "/a.py"});
    let response = server.request_raw("completion/inline", Some(emacs)).await;
    assert_eq!(response["result"]["items"][0]["text"], "main()", "{response}");
    server.finish().await;
}

#[tokio::test]
async fn why_nothing_is_proposed_is_said_in_the_result() {
    let model = MockLlm::start().await;
    let mut server = TestServer::with(&model).start().await;
    model.push(Script::text_stream(&[" \n"]));
    let response = server.request_raw("completion/inline", Some(inline("x"))).await;
    assert_eq!(response["result"]["error"]["type"], "info", "{response}");
    model.push(Script::status(401, &[], "no"));
    let response = server.request_raw("completion/inline", Some(inline("x"))).await;
    assert_eq!(response["result"]["error"]["type"], "warning", "{response}");
    assert!(!response["result"]["error"]["message"].as_str().unwrap().is_empty());
    server.finish().await;
    let config = json!({"completion": {"model": "no/such"}});
    let mut server = TestServer::with(&model).config(config).start().await;
    let response = server.request_raw("completion/inline", Some(inline("x"))).await;
    assert!(response["result"]["error"]["message"].as_str().unwrap().contains("no/such"), "{response}");
    server.finish().await;
}

#[tokio::test]
async fn a_selection_is_written_anew_in_pieces() {
    let model = MockLlm::start().await;
    let mut server = TestServer::with(&model).start().await;
    let file = server.dirs.file("a.rs", "fn around() {}\nlet x = 1;\n");
    model.push(Script::reasoning(&["hm", "hm"], &["let x", " = 2;"]));
    let range = json!({"start": {"line": 2, "character": 1}, "end": {"line": 2, "character": 11}});
    let params = json!({"id": "r1", "text": "let x = 1;", "prompt": "make it two", "path": file, "range": range});
    let (response, contents) = rewritten(&mut server, params).await;
    assert_eq!(response["result"], json!({"status": "prompting", "model": "mock/m1"}));
    let kinds: Vec<&str> = contents.iter().map(|content| content["type"].as_str().unwrap()).collect();
    assert_eq!((kinds[0], kinds[1], *kinds.last().unwrap()), ("started", "reasoning", "finished"), "{kinds:?}");
    assert_eq!(kinds.iter().filter(|kind| **kind == "reasoning").count(), 1);
    let text: String = contents.iter().filter_map(|content| content["text"].as_str()).collect();
    assert_eq!(text, "let x = 2;");
    assert!(contents.last().unwrap()["totalTimeMs"].is_u64());
    let request = model.next_request().await.body;
    let system = request["messages"][0]["content"].as_str().unwrap().to_owned();
    for part in ["let x = 1;", "fn around() {}", "a.rs", "lines 2 to 2"] {
        assert!(system.contains(part), "{part}: {system}");
    }
    assert_eq!(request["messages"][1]["content"], "make it two");

    model.push(Script::text_stream(&["```rust\n", "let x = 3;\n```"]));
    let params = json!({"id": "r1", "text": "let x = 1;", "prompt": "make it three"});
    let (_, contents) = rewritten(&mut server, params).await;
    let replace = contents.iter().find(|content| content["type"] == "replace").unwrap();
    assert_eq!(replace["text"], "let x = 3;");
    server.finish().await;
}

#[tokio::test]
async fn a_rewrite_that_fails_says_so_and_shows_no_keys() {
    let model = MockLlm::start().await;
    let mut server = TestServer::with(&model).start().await;
    let keys = server.dirs.workspace.join(".env");
    fs::write(&keys, "A=1\nSECRET=very-secret\n").unwrap();
    model.push(Script::status(400, &[], "not like this"));
    let params = json!({"id": "r1", "text": "A=1", "prompt": "A=2", "path": keys});
    let (response, contents) = rewritten(&mut server, params).await;
    assert_eq!(response["result"]["status"], "prompting");
    let kinds: Vec<&Value> = contents.iter().map(|content| &content["type"]).collect();
    assert_eq!(kinds, [&json!("started"), &json!("error")]);
    let request = model.next_request().await.body.to_string();
    assert!(request.contains("A=1") && !request.contains("very-secret"), "{request}");
    let response = server.request_raw("rewrite/prompt", Some(json!({"id": "r1", "text": "x", "prompt": " "}))).await;
    assert!(response["error"]["code"].is_i64() && response["error"]["message"].is_string(), "{response}");
    server.finish().await;
}
