//! The handshake, and what a new session says about itself.

use std::sync::Arc;

use serde_json::{Value, json};

use super::Acp;
use crate::mock_llm::MockLlm;
use crate::server::{TestDirs, TestServer};

#[tokio::test]
async fn the_handshake_says_what_there_is_and_nothing_works_before_it() {
    let model = MockLlm::start().await;
    let dirs = Arc::new(TestDirs::new());
    let mut acp = Acp::silent(&TestServer::with(&model).dirs(&dirs), &dirs);
    let params = acp.session_params();
    let early = acp.request_raw("session/new", Some(params)).await;
    assert_eq!(early["error"]["code"], -32600, "{early}");
    for asked in [1, 0, 65535] {
        let response = acp.request_raw("initialize", Some(json!({"protocolVersion": asked}))).await;
        let result = &response["result"];
        assert_eq!(result["protocolVersion"], 1, "{response}");
        assert_eq!(result["agentInfo"], json!({"name": "eca", "title": "ECA", "version": env!("CARGO_PKG_VERSION")}));
        assert_eq!(result["agentCapabilities"]["loadSession"], true);
    }
    acp.finish().await;
}

#[tokio::test]
async fn keys_of_the_configuration_are_the_one_way_to_authenticate() {
    let model = MockLlm::start().await;
    let mut acp = Acp::with(&model).await;
    let method = |id: &str| Some(json!({"methodId": id}));
    assert_eq!(acp.request_raw("authenticate", method("configuration")).await["result"], json!({}));
    assert_eq!(acp.request_raw("authenticate", method("magic")).await["error"]["code"], -32602);
    acp.finish().await;
    let mut nobody = Acp::configured(&model, json!({}), json!({"defaultModel": null, "providers": null})).await;
    let refused = nobody.request_raw("authenticate", method("configuration")).await;
    assert_eq!(refused["error"]["code"], -32000, "{refused}");
    nobody.finish().await;
}

#[tokio::test]
async fn a_new_session_has_modes_options_and_commands_in_that_order() {
    let model = MockLlm::start().await;
    let mut acp = Acp::with(&model).await;
    let params = acp.session_params();
    let id = acp.start_raw("session/new", Some(params));
    let first = acp.next().await;
    assert_eq!(first["id"], id, "the response comes first: {first}");
    let result = &first["result"];
    let current = &result["modes"]["currentModeId"];
    let modes: Vec<&Value> = result["modes"]["availableModes"].as_array().unwrap().iter().collect();
    assert!(modes.iter().any(|mode| mode["id"] == *current), "{result}");
    let options = result["configOptions"].as_array().unwrap();
    let by_id = |name: &str| options.iter().find(|option| option["id"] == name).unwrap_or_else(|| panic!("{result}"));
    assert_eq!((&by_id("mode")["category"], &by_id("mode")["currentValue"]), (&json!("mode"), current));
    assert_eq!(by_id("model")["currentValue"], "mock/m1");
    assert_eq!(by_id("model")["category"], "model");
    assert!(!options.iter().any(|option| option["type"] == "boolean"), "no switches unless they are wanted");
    let session = result["sessionId"].clone();
    let commands = acp.next().await;
    let update = &commands["params"]["update"];
    assert_eq!(
        (&commands["params"]["sessionId"], &update["sessionUpdate"]),
        (&session, &json!("available_commands_update"))
    );
    let listed = update["availableCommands"].as_array().unwrap();
    let compact = listed.iter().find(|command| command["name"] == "compact").unwrap();
    assert!(compact["input"]["hint"].as_str().unwrap().starts_with('['), "{compact}");
    acp.finish().await;
}

#[tokio::test]
async fn sessions_have_ids_of_their_own_and_bad_folders_are_refused() {
    let model = MockLlm::start().await;
    let mut acp = Acp::with(&model).await;
    let (one, two) = (acp.session().await, acp.session().await);
    assert_ne!(one, two);
    for (params, part) in [
        (json!({"cwd": "relative", "mcpServers": []}), "absolute"),
        (json!({"cwd": acp.workspace().join("gone"), "mcpServers": []}), "no folder"),
        (json!({"mcpServers": []}), "cwd is missing"),
        (json!({"cwd": acp.workspace()}), "mcpServers is missing"),
        (json!({"cwd": acp.workspace(), "mcpServers": [], "additionalDirectories": [1]}), "texts"),
    ] {
        let refused = acp.request_raw("session/new", Some(params)).await;
        assert_eq!(refused["error"]["code"], -32602, "{refused}");
        assert!(refused["error"]["message"].as_str().unwrap().contains(part), "{refused}");
    }
    acp.finish().await;
}

#[tokio::test]
async fn what_is_wrong_with_the_configuration_is_said_where_the_user_sees_it() {
    let model = MockLlm::start().await;
    model.respond_with(|_| crate::mock_llm::Script::text_stream(&["hello"]));
    let config = json!({"noSuchKey": 1});
    // With a place for notices, at once.
    let notices = json!({"session": {"notices": {}}});
    let mut acp = Acp::configured(&model, notices, config.clone()).await;
    acp.session().await;
    let is_notice = |message: &Value| message["params"]["update"]["sessionUpdate"] == "notice";
    let notice = acp.find("a notice", is_notice).await;
    let update = &notice["params"]["update"];
    assert_eq!(update["severity"], "warning");
    assert!(update["title"].as_str().unwrap().contains("noSuchKey"), "{update}");
    acp.finish().await;
    // Without, when the next turn begins.
    let mut acp = Acp::configured(&model, json!({}), config).await;
    let session = acp.session().await;
    let turn = acp.turn(&session, "hi").await;
    let text = turn.text();
    assert!(text.contains("noSuchKey") && text.ends_with("hello"), "{text}");
    acp.finish().await;
}
