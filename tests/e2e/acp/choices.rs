//! Modes, models, variants: chosen in every way that clients have, and kept in step.

use serde_json::{Value, json};

use super::{Acp, is_update};
use crate::mock_llm::{MockLlm, Script};

fn current(options: &Value, id: &str) -> Value {
    let found = options.as_array().unwrap().iter().find(|option| option["id"] == id);
    found.unwrap_or_else(|| panic!("{id}: {options}"))["currentValue"].clone()
}

#[tokio::test]
async fn a_mode_can_be_set_in_both_ways_and_the_other_one_follows() {
    let model = MockLlm::start().await;
    let mut acp = Acp::with(&model).await;
    let session = acp.session().await;
    let id = acp.start_raw("session/set_mode", Some(json!({"sessionId": session, "modeId": "plan"})));
    let first = acp.find("an answer", |message| message.get("id").is_some()).await;
    assert_eq!((&first["id"], &first["result"]), (&json!(id), &json!({})));
    let options = acp.find("options", |message| is_update(message, &json!(session), "config_option_update")).await;
    assert_eq!(current(&options["params"]["update"]["configOptions"], "mode"), "plan");
    let set = json!({"sessionId": session, "configId": "mode", "value": "code"});
    let id = acp.start_raw("session/set_config_option", Some(set));
    let answer = acp.find("an answer", |message| message.get("id").is_some()).await;
    assert_eq!(answer["id"], id);
    assert_eq!(current(&answer["result"]["configOptions"], "mode"), "code");
    let mode = |message: &Value| {
        is_update(message, &json!(session), "current_mode_update")
            && message["params"]["update"]["currentModeId"] == "code"
    };
    acp.find("the mode", mode).await;
    for (method, params) in [
        ("session/set_mode", json!({"sessionId": session, "modeId": "nobody"})),
        ("session/set_mode", json!({"sessionId": session})),
        ("session/set_config_option", json!({"sessionId": session, "configId": "colour", "value": "red"})),
        (
            "session/set_config_option",
            json!({"sessionId": session, "configId": "mode", "type": "boolean", "value": true}),
        ),
        ("session/set_config_option", json!({"sessionId": session, "configId": "trust", "value": "yes"})),
        ("session/set_model", json!({"sessionId": session, "modelId": 7})),
    ] {
        let refused = acp.request_raw(method, Some(params)).await;
        assert_eq!(refused["error"]["code"], -32602, "{refused}");
    }
    let gone = acp.request_raw("session/set_mode", Some(json!({"sessionId": "x", "modeId": "plan"}))).await;
    assert_eq!(gone["error"]["code"], -32002);
    acp.finish().await;
}

#[tokio::test]
async fn the_chosen_model_answers() {
    let model = MockLlm::start().await;
    model.respond_with(|_| Script::text_stream(&["hello"]));
    let mut acp = Acp::with(&model).await;
    let session = acp.session().await;
    acp.turn(&session, "hi").await;
    assert_eq!(model.next_request().await.body["model"], "m1");
    let set = json!({"sessionId": session, "configId": "model", "value": "mock/m2"});
    let answer = acp.request_raw("session/set_config_option", Some(set)).await;
    assert_eq!(current(&answer["result"]["configOptions"], "model"), "mock/m2");
    acp.turn(&session, "hi").await;
    assert_eq!(model.next_request().await.body["model"], "m2");
    // The way of older clients.
    let answer = acp.request_raw("session/set_model", Some(json!({"sessionId": session, "modelId": "mock/m1"}))).await;
    assert_eq!(answer["result"], json!({}), "{answer}");
    acp.turn(&session, "hi").await;
    assert_eq!(model.next_request().await.body["model"], "m1");
    let unknown = acp.request_raw("session/set_model", Some(json!({"sessionId": session, "modelId": "no/such"}))).await;
    assert_eq!(unknown["error"]["code"], -32602, "{unknown}");
    acp.finish().await;
}

#[tokio::test]
async fn the_mode_counts_and_a_loaded_session_has_it_still() {
    let model = MockLlm::start().await;
    model.respond_with(|_| Script::text_stream(&["hello"]));
    let mut acp = Acp::with(&model).await;
    let session = acp.session().await;
    acp.request_raw("session/set_mode", Some(json!({"sessionId": session, "modeId": "plan"}))).await;
    acp.turn(&session, "hi").await;
    let mut params = acp.session_params();
    params["sessionId"] = json!(session);
    let id = acp.start_raw("session/load", Some(params));
    let response = acp.find("the answer", |message| message["id"] == id).await;
    assert_eq!(response["result"]["modes"]["currentModeId"], "plan", "{response}");
    acp.take_unread();
    acp.finish().await;
}

#[tokio::test]
async fn a_new_configuration_is_news_for_the_session() {
    let model = MockLlm::start().await;
    let mut acp = Acp::with(&model).await;
    let session = acp.session().await;
    let file = acp.dirs.eca.config.join("config.json");
    let mut config: Value = serde_json::from_str(&std::fs::read_to_string(&file).unwrap()).unwrap();
    config["providers"]["mock"]["models"]["m3"] = json!({});
    std::fs::write(&file, config.to_string()).unwrap();
    let has_it = |message: &Value| {
        is_update(message, &json!(session), "config_option_update") && message.to_string().contains("mock/m3")
    };
    acp.find("the new model", has_it).await;
    acp.finish().await;
}
