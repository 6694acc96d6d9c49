//! MCP servers that the client brings along, and folders beside the first.

use serde_json::{Value, json};

use super::Acp;
use crate::fake_mcp::{self, HABITS};
use crate::mock_llm::{MockLlm, Script};

fn entry(name: &str) -> Value {
    let (command, args) = fake_mcp::command();
    json!({"name": name, "command": command, "args": args, "env": [{"name": HABITS, "value": "good"}]})
}

fn offered(request: &crate::mock_llm::CapturedRequest) -> Vec<String> {
    let tools = request.body["tools"].as_array().unwrap();
    tools.iter().map(|tool| tool["function"]["name"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn a_server_of_the_client_works_in_its_session_alone() {
    let model = MockLlm::start().await;
    model.respond_with(|_| Script::text_stream(&["hello"]));
    let mut acp = Acp::with(&model).await;
    let mut params = acp.session_params();
    params["mcpServers"] = json!([entry("my files")]);
    let with = acp.session_with(params).await["sessionId"].as_str().unwrap().to_owned();
    let without = acp.session().await;
    acp.turn(&with, "hi").await;
    let tools = offered(&model.next_request().await);
    assert!(tools.iter().any(|name| name.starts_with("my_files__")), "{tools:?}");
    acp.turn(&without, "hi").await;
    let tools = offered(&model.next_request().await);
    assert!(!tools.iter().any(|name| name.starts_with("my_files__")), "{tools:?}");
    acp.take_unread();
    acp.finish().await;
}

#[tokio::test]
async fn a_call_of_such_a_server_is_asked_about_and_shown() {
    let model = MockLlm::start().await;
    let mut acp = Acp::with(&model).await;
    let mut params = acp.session_params();
    params["mcpServers"] = json!([entry("tools")]);
    let session = acp.session_with(params).await["sessionId"].as_str().unwrap().to_owned();
    model.push(Script::tool_call("m", "tools__echo", &[&json!({"text": "mirror"}).to_string()]));
    model.push(Script::text_stream(&["done"]));
    let id = acp.start_prompt(&session, "call it");
    let turn = acp.rest_with(id, |_| Ok(super::selected("allow_once"))).await;
    let call = turn.call("m");
    assert_eq!(call[0].get("kind"), None, "no kind is another kind: {call:?}");
    assert_eq!(call.last().unwrap()["status"], "completed", "{call:?}");
    assert_eq!(acp.asked_for("session/request_permission").len(), 1);
    acp.take_unread();
    acp.finish().await;
}

#[tokio::test]
async fn a_server_that_cannot_be_used_is_named_and_the_rest_works() {
    let model = MockLlm::start().await;
    model.push(Script::text_stream(&["hello"]));
    let mut acp = Acp::with(&model).await;
    let mut params = acp.session_params();
    params["mcpServers"] = json!([{"type": "sse", "name": "old", "url": "https://x", "headers": []}, {"type": "new"}]);
    let session = acp.session_with(params).await["sessionId"].as_str().unwrap().to_owned();
    let turn = acp.turn(&session, "hi").await;
    assert!(turn.text().contains("\"old\" speaks SSE") && turn.text().ends_with("hello"), "{}", turn.text());
    acp.finish().await;
}

#[tokio::test]
async fn files_in_additional_directories_belong_to_the_workspace() {
    let model = MockLlm::start().await;
    let mut acp = Acp::with(&model).await;
    let other = acp.dirs.root.path().join("library");
    std::fs::create_dir(&other).unwrap();
    let file = other.join("a.txt");
    std::fs::write(&file, "from the library\n").unwrap();
    let read = || Script::tool_call("r", "eca__read_file", &[&json!({"path": file}).to_string()]);
    // Outside of the workspace it is asked about, inside it is not.
    let outside = acp.session().await;
    model.push(read());
    model.push(Script::text_stream(&["done"]));
    let id = acp.start_prompt(&outside, "read it");
    acp.rest_with(id, |_| Ok(super::selected("allow_once"))).await;
    assert_eq!(acp.asked_for("session/request_permission").len(), 1);
    let mut params = acp.session_params();
    params["additionalDirectories"] = json!([other]);
    let inside = acp.session_with(params).await["sessionId"].as_str().unwrap().to_owned();
    model.push(read());
    model.push(Script::text_stream(&["done"]));
    let turn = acp.turn(&inside, "read it").await;
    assert!(turn.call("r").pop().unwrap().to_string().contains("from the library"));
    acp.finish().await;
}
