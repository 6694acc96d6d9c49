//! Help beside the chats: rewrites of a selection, and completion at the cursor.

use serde_json::{Value, json};

use crate::mock_llm::{MockLlm, Script};
use crate::server::TestServer;

fn order(id: &str, text: &str) -> Value {
    let range = json!({"start": {"line": 2, "character": 1}, "end": {"line": 2, "character": 4}});
    json!({"id": id, "text": text, "prompt": "make it better", "range": range})
}

/// What a rewrite tells until its end, one word each, with the text there is.
async fn told(server: &mut TestServer, id: &str) -> Vec<String> {
    let ends = |message: &Value| {
        let kind = &message["params"]["content"]["type"];
        message["method"] == "rewrite/contentReceived" && (kind == "finished" || kind == "error")
    };
    let messages = server.everything_until("the end of a rewrite", ends).await;
    let of_rewrite = messages.iter().filter(|message| message["method"] == "rewrite/contentReceived");
    of_rewrite
        .map(|message| {
            assert_eq!(message["params"]["rewriteId"], id, "{message}");
            let content = &message["params"]["content"];
            let text = content["text"].as_str().or(content["message"].as_str()).unwrap_or_default();
            format!("{} {text}", content["type"].as_str().unwrap()).trim_end_matches(' ').to_owned()
        })
        .collect()
}

#[tokio::test]
async fn a_rewrite_streams_and_sees_its_file() {
    let model = MockLlm::start().await;
    model.push(Script::reasoning(&["hm", "hm"], &["ne", "w"]));
    let mut server = TestServer::with(&model).config(json!({"rewrite": {"model": "mock/m2"}})).start().await;
    let path = server.dirs.file("a.txt", "one\nold\nthree {{ text }}\n");
    let mut params = order("r1", "old\n");
    params["path"] = json!(path);
    let answer = server.request_raw("rewrite/prompt", Some(params)).await;
    assert_eq!(answer["result"], json!({"status": "prompting", "model": "mock/m2"}));
    // The selection is a whole line, so the answer becomes one.
    assert_eq!(told(&mut server, "r1").await, ["started", "reasoning", "text ne", "text w", "text \n", "finished"]);
    let body = model.next_request().await.body;
    let system = body["messages"][0]["content"].as_str().unwrap();
    assert!(
        system.contains("three {{ text }}") && system.contains("lines=\"2-2\"") && system.contains(&path),
        "{system}"
    );
    assert_eq!(body["messages"][1]["content"], "make it better");
    assert!(body["tools"].is_null() && body["model"] == "m2");
    server.finish().await;
}

#[tokio::test]
async fn of_a_file_that_may_hold_keys_only_the_selection_is_sent() {
    let model = MockLlm::start().await;
    model.respond_with(|_| Script::text_stream(&["new"]));
    let mut server = TestServer::with(&model).start().await;
    let text = "KEY=s3cr3t\nNAME=old\n";
    let path = server.dirs.file(".env", text);
    let mut params = order("r", "NAME=old");
    params["path"] = json!(path);
    for is_open in [false, true] {
        if is_open {
            let uri = format!("file://{path}");
            let document = json!({"uri": uri, "languageId": "", "version": 1, "text": format!("{text}#")});
            server.notify_raw("textDocument/didOpen", Some(json!({"textDocument": document})));
        }
        server.request_raw("rewrite/prompt", Some(params.clone())).await;
        told(&mut server, "r").await;
        let body = model.next_request().await.body.to_string();
        assert!(body.contains("NAME=old") && !body.contains("s3cr3t"), "{body}");
    }
    server.finish().await;
}

#[tokio::test]
async fn a_fence_around_the_answer_is_taken_away() {
    let model = MockLlm::start().await;
    model.push(Script::text_stream(&["```rust\nnew\n", "```"]));
    let mut server = TestServer::with(&model).start().await;
    server.request_raw("rewrite/prompt", Some(order("r", "old"))).await;
    let steps = told(&mut server, "r").await;
    assert_eq!(steps[steps.len() - 2..], ["replace new", "finished"], "{steps:?}");
    server.finish().await;
}

#[tokio::test]
async fn what_goes_wrong_with_a_rewrite_is_said() {
    let model = MockLlm::start().await;
    model.push(Script::status(400, &[], r#"{"error": {"message": "no such thing"}}"#));
    model.push(Script::text_stream(&[" "]));
    let mut server = TestServer::with(&model).start().await;
    for _ in 0..2 {
        server.request_raw("rewrite/prompt", Some(order("r", "old"))).await;
        let steps = told(&mut server, "r").await;
        assert!(steps.last().unwrap().starts_with("error "), "{steps:?}");
    }
    let refused = server.request_raw("rewrite/prompt", Some(order("r", ""))).await;
    assert!(refused["error"]["message"].as_str().unwrap().contains("nothing selected"), "{refused}");
    server.finish().await;
}

#[tokio::test]
async fn a_rewrite_of_the_same_name_takes_the_place_of_the_first() {
    let model = MockLlm::start().await;
    model.push(Script::stream().text("half").hang_here());
    model.push(Script::text_stream(&["whole"]));
    let mut server = TestServer::with(&model).start().await;
    server.request_raw("rewrite/prompt", Some(order("r", "old"))).await;
    model.next_request().await;
    server.request_raw("rewrite/prompt", Some(order("r", "old"))).await;
    model.connection_closed().await;
    let steps = told(&mut server, "r").await;
    assert_eq!(steps[steps.len() - 2..], ["text whole", "finished"], "{steps:?}");
    server.finish().await;
}

#[tokio::test]
async fn a_proposal_stands_at_the_cursor() {
    let model = MockLlm::start().await;
    model.push(Script::text_stream(&["```\nbar()\n```"]));
    model.push(Script::text_stream(&["\n"]));
    model.push(Script::status(400, &[], "{}"));
    let config = json!({"completion": {"model": "m2"}, "prompts": {"completion": "go on"}});
    let mut server = TestServer::with(&model).config(config).start().await;
    let at = json!({"line": 2, "character": 5});
    let params = json!({"doc-text": "let x;\nfoo.\nend", "doc-version": 7, "position": at});
    let answer = server.request_raw("completion/inline", Some(params.clone())).await;
    let item = json!({"text": "bar()", "docVersion": 7, "range": {"start": at, "end": at}});
    assert_eq!(answer["result"], json!({"items": [item]}));
    let messages = model.next_request().await.body["messages"].clone();
    assert_eq!(messages[0]["content"], "go on");
    assert_eq!(messages[1]["content"], "let x;\nfoo.<ECA_TAG>\nend");
    for kind in ["info", "warning"] {
        let answer = server.request_raw("completion/inline", Some(params.clone())).await;
        assert_eq!(answer["result"]["error"]["type"], kind, "{answer}");
        model.next_request().await;
    }
    // What may hold keys is not sent, however often it is typed in.
    let secret =
        json!({"docText": "KEY=", "docVersion": 1, "position": {"line": 1, "character": 5}, "path": "/w/.env"});
    let answer = server.request_raw("completion/inline", Some(secret)).await;
    let error = &answer["result"]["error"];
    assert!(error["type"] == "info" && error["message"].as_str().unwrap().contains(".env"), "{answer}");
    model.push(Script::text_stream(&["x"]));
    server.request_raw("completion/inline", Some(params)).await;
    assert_eq!(model.next_request().await.body["messages"], messages);
    server.finish().await;
}

#[tokio::test]
async fn without_a_model_there_is_no_help_and_a_reason() {
    let mut server = TestServer::at("http://127.0.0.1:9").config_text(r#"{"localDiscovery": false}"#).start().await;
    let refused = server.request_raw("rewrite/prompt", Some(order("r", "old"))).await;
    assert!(refused["error"]["message"].as_str().unwrap().contains("no model"), "{refused}");
    let params = json!({"docText": "a", "docVersion": 1, "position": {"line": 1, "character": 2}});
    let answer = server.request_raw("completion/inline", Some(params)).await;
    assert_eq!(answer["result"]["error"]["type"], "warning", "{answer}");
    server.finish().await;
}
