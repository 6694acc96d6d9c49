//! Introductions: every client's way to start and to leave, and what it is told in between.

use serde_json::{Value, json};

use crate::mock_llm::MockLlm;
use crate::peer::outline;
use crate::server::{ClientPreset, Handshake, TestDirs, TestServer, presets};

async fn started(preset: impl FnOnce(&TestDirs) -> ClientPreset) -> TestServer {
    let model = MockLlm::start().await;
    TestServer::with(&model).client(preset).start().await
}

fn find<'a>(messages: &'a [Value], method: &str) -> &'a Value {
    messages.iter().find(|message| message["method"] == method).unwrap_or_else(|| panic!("no {method}"))
}

const ANNOUNCED: [&str; 4] = ["config/updated", "tool/serverUpdated", "$/progress", "$/progress"];

#[tokio::test]
async fn initialize_is_answered_with_a_welcome_and_without_an_error_member() {
    let server = started(presets::vscode).await;
    let response = &server.initialize_response;
    assert!(response["result"]["chatWelcomeMessage"].as_str().is_some_and(|text| !text.is_empty()), "{response}");
    assert!(response["result"]["capabilities"].is_object());
    assert_eq!(response["result"]["serverInfo"]["name"], "eca");
    assert!(response.get("error").is_none());
    server.finish().await;
}

#[tokio::test]
async fn emacs_with_null_params_and_counted_newlines_is_told_everything() {
    let server = started(presets::emacs).await;
    assert_eq!(outline(&server.startup), ANNOUNCED);
    server.finish().await;
}

#[tokio::test]
async fn vscode_is_told_everything() {
    let server = started(presets::vscode).await;
    assert_eq!(outline(&server.startup), ANNOUNCED);
    server.finish().await;
}

#[tokio::test]
async fn neovim_with_lists_for_params_is_told_everything() {
    let server = started(presets::neovim).await;
    assert_eq!(outline(&server.startup), ANNOUNCED);
    server.finish().await;
}

#[tokio::test]
async fn intellij_without_a_process_id_is_told_everything() {
    let server = started(presets::intellij).await;
    assert_eq!(outline(&server.startup), ANNOUNCED);
    server.finish().await;
}

#[tokio::test]
async fn the_command_line_client_without_folders_is_told_everything() {
    let server = started(presets::cli).await;
    assert_eq!(outline(&server.startup), ANNOUNCED);
    server.finish().await;
}

#[tokio::test]
async fn seed_000_gets_no_progress_of_start_up_tasks() {
    let server = started(presets::seed_000).await;
    assert_eq!(outline(&server.startup), ["config/updated", "tool/serverUpdated"]);
    server.finish().await;
}

#[tokio::test]
async fn seed_001_and_seed_002_choose_their_behavior() {
    let server = started(presets::seed_001).await;
    assert_eq!(find(&server.startup, "config/updated")["params"]["chat"]["selectBehavior"], "agent");
    server.finish().await;
    let server = started(presets::seed_002).await;
    let chat = &find(&server.startup, "config/updated")["params"]["chat"];
    assert_eq!((&chat["selectBehavior"], &chat["selectAgent"]), (&json!("plan"), &json!("plan")));
    server.finish().await;
}

#[tokio::test]
async fn the_configuration_lists_models_and_both_vocabularies_for_agents() {
    let server = started(presets::vscode).await;
    let chat = &find(&server.startup, "config/updated")["params"]["chat"];
    let models: Vec<&str> = chat["models"].as_array().unwrap().iter().map(|model| model.as_str().unwrap()).collect();
    assert!(models.starts_with(&["mock/m1", "mock/m2"]), "{models:?}");
    assert_eq!(chat["agents"], json!(["code", "plan"]));
    assert_eq!(chat["behaviors"], json!(["agent", "plan"]));
    assert_eq!(chat["selectModel"], "mock/m1");
    assert_eq!(chat["selectAgent"], "code");
    assert_eq!(chat["selectBehavior"], "agent");
    assert!(chat["variants"].is_array());
    assert!(chat["welcomeMessage"].is_string());
    let nulls: Vec<&String> =
        chat.as_object().unwrap().iter().filter(|(_, value)| value.is_null()).map(|(key, _)| key).collect();
    assert!(nulls.iter().all(|key| *key == "selectVariant"), "null clears a selection: {nulls:?}");
    server.finish().await;
}

#[tokio::test]
async fn the_first_tool_server_is_the_native_one() {
    let server = started(presets::vscode).await;
    let update = &find(&server.startup, "tool/serverUpdated")["params"];
    assert_eq!(update["type"], "native");
    assert_eq!(update["name"], "ECA");
    assert_eq!(update["status"], "running");
    assert!(
        update["tools"]
            .as_array()
            .unwrap()
            .iter()
            .all(|tool| tool["name"].is_string() && tool["description"].is_string() && tool["parameters"].is_object())
    );
    server.finish().await;
}

#[tokio::test]
async fn nothing_but_responses_goes_out_before_initialized_and_the_rest_comes_then_in_order() {
    let model = MockLlm::start().await;
    model.push(crate::mock_llm::Script::text_stream(&["early"]));
    let mut server = TestServer::with(&model).handshake(Handshake::InitializeOnly).start().await;
    server.prompt(Some("c1"), "before").await;
    // The model has answered, so all of the turn is made; none of it may be seen.
    model.next_request().await;
    let before = server.settled().await;
    assert_eq!(outline(&before), Vec::<String>::new());
    server.notify_raw("initialized", Some(json!({})));
    let turn = server.collect_turn("c1").await;
    assert_eq!(
        outline(&turn),
        [
            "chat/opened",
            "progress Starting",
            "user \"before\\n\"",
            "status running",
            "progress Waiting model",
            "progress Generating",
            "assistant \"early\"",
            "usage",
            "status idle",
            "finished"
        ]
    );
    let last = |message: &Value| message["method"] == "$/progress" && message["params"]["type"] == "finish";
    let announced = server.everything_until("the announcements", last).await;
    assert_eq!(outline(&announced), ANNOUNCED);
    server.finish().await;
}

#[tokio::test]
async fn every_shape_of_params_is_taken_by_methods_that_have_none() {
    for no_params in [None, Some(Value::Null), Some(json!({})), Some(json!([]))] {
        let mut server = started(presets::vscode).await;
        for method in ["jobs/list", "providers/list", "chat/list"] {
            let response = server.request_raw(method, no_params.clone()).await;
            assert!(response["result"].is_object(), "{method} with {no_params:?}: {response}");
        }
        // `finish` sends shutdown and exit in this shape and wants a null result.
        server.style.no_params = no_params;
        server.finish().await;
    }
}

#[tokio::test]
async fn requests_before_initialize_are_refused_and_a_second_initialize_too() {
    let model = MockLlm::start().await;
    let mut server = TestServer::with(&model).handshake(Handshake::None).start().await;
    let early = server.request_raw("chat/list", Some(json!({}))).await;
    assert_eq!(early["error"]["code"], -32002, "{early}");
    let introduction = presets::cli(&server.dirs).initialize;
    let first = server.request_raw("initialize", Some(introduction)).await;
    assert!(first["result"].is_object(), "{first}");
    let second = server.request_raw("initialize", Some(json!({"capabilities": {}}))).await;
    assert_eq!(second["error"]["code"], -32600, "{second}");
    server.finish().await;
}

#[tokio::test]
async fn requests_after_shutdown_are_refused() {
    let mut server = started(presets::vscode).await;
    assert_eq!(server.request_raw("shutdown", None).await["result"], Value::Null);
    let late = server.request_raw("chat/list", None).await;
    assert_eq!(late["error"]["code"], -32600, "{late}");
    server.notify_raw("exit", None);
    server.wait_for_end().await;
}

#[tokio::test]
async fn shutdown_and_exit_in_one_write_still_answer_the_shutdown() {
    let mut server = started(presets::vscode).await;
    server.send_together(&[
        json!({"jsonrpc": "2.0", "id": "bye", "method": "shutdown"}),
        json!({"jsonrpc": "2.0", "method": "exit"}),
    ]);
    assert_eq!(server.response_raw("bye").await["result"], Value::Null);
    server.wait_for_end().await;
}

#[tokio::test]
async fn odd_introductions_are_accepted() {
    for (what, params) in [
        ("nothing at all", json!({})),
        ("a client without a name", json!({"clientInfo": {}, "capabilities": {}})),
        ("chat as an object", json!({"capabilities": {"codeAssistant": {"chat": {}}}})),
        (
            "a folder with a raw space and no name",
            json!({"capabilities": {}, "workspaceFolders": [{"uri": "file:///a b"}]}),
        ),
        ("a folder that is a path", json!({"capabilities": {}, "workspaceFolders": [{"uri": "/a/b", "name": "b"}]})),
        ("an empty folder", json!({"capabilities": {}, "workspaceFolders": [{"uri": "", "name": ""}]})),
        ("no folders", json!({"capabilities": {}, "workspaceFolders": null, "processId": null})),
        ("a table where a list belongs", json!({"capabilities": {}, "workspaceFolders": {}})),
        ("an unknown trace", json!({"capabilities": {}, "trace": "loud"})),
        ("options that are a text", json!({"capabilities": {}, "initializationOptions": "fast"})),
    ] {
        let model = MockLlm::start().await;
        let server = TestServer::with(&model).initialize(params).start().await;
        assert_eq!(outline(&server.startup)[..2], ANNOUNCED[..2], "{what}");
        server.finish().await;
    }
}
