//! Sessions that are kept: loaded with their history, resumed without, listed, closed, deleted.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{Acp, outline, selected, text_in};
use crate::mock_llm::{MockLlm, Script};

fn ids(response: &Value) -> Vec<String> {
    let sessions = response["result"]["sessions"].as_array().unwrap_or_else(|| panic!("{response}"));
    sessions.iter().map(|session| session["sessionId"].as_str().unwrap().to_owned()).collect()
}

fn again(acp: &Acp, session: &str) -> Value {
    let mut params = acp.session_params();
    params["sessionId"] = json!(session);
    params
}

/// A session in which something was read, thought and written.
async fn lived(acp: &mut Acp, model: &MockLlm) -> String {
    let file = acp.workspace().join("a.txt").display().to_string();
    let write = json!({"path": file, "content": "new\n"}).to_string();
    model.push(
        Script::stream().thought("hm").text("I will.").call(0, "w", "eca__write_file", &[&write]).finish("tool_calls"),
    );
    model.push(Script::text_stream(&["Done."]));
    let session = acp.session().await;
    let id = acp.start_prompt(&session, "write it");
    let turn = acp.rest_with(id, |_| Ok(selected("allow_once"))).await;
    assert_eq!(turn.stop_reason(), "end_turn");
    session
}

#[tokio::test]
async fn a_load_shows_everything_before_its_response() {
    let model = MockLlm::start().await;
    let mut acp = Acp::with(&model).await;
    let session = lived(&mut acp, &model).await;
    let dirs = Arc::clone(&acp.dirs);
    acp.finish().await;
    // In another process, as after a restart.
    let mut acp = Acp::again(&model, &dirs).await;
    let params = again(&acp, &session);
    let id = acp.start_raw("session/load", Some(params));
    let mut messages = acp.everything_until("the response", |message| message["id"] == id).await;
    let response = messages.pop().unwrap();
    assert_eq!(response["result"]["modes"]["currentModeId"], "code", "{response}");
    assert!(response["result"]["configOptions"].is_array());
    assert_eq!(
        outline(&messages),
        [
            "user_message_chunk",
            "agent_thought_chunk",
            "agent_message_chunk",
            "tool_call w pending",
            "tool_call_update w",
            "tool_call_update w in_progress",
            "tool_call_update w completed",
            "agent_message_chunk",
        ]
    );
    let updates: Vec<&Value> = messages.iter().map(|message| &message["params"]["update"]).collect();
    let of = |kind: &str| updates.iter().copied().filter(|update| update["sessionUpdate"] == kind).collect::<Vec<_>>();
    assert_eq!(text_in(&of("user_message_chunk")), "write it");
    assert_eq!(text_in(&of("agent_message_chunk")), "I will.Done.");
    // It goes on where it was.
    model.next_request().await;
    model.next_request().await;
    model.push(Script::text_stream(&["more"]));
    let turn = acp.turn(&session, "and now?").await;
    assert_eq!(turn.text(), "more");
    let told = model.next_request().await.body["messages"].to_string();
    assert!(told.contains("write it") && told.contains("and now?"), "{told}");
    acp.finish().await;
}

#[tokio::test]
async fn a_resume_shows_nothing_and_goes_on() {
    let model = MockLlm::start().await;
    let mut acp = Acp::with(&model).await;
    let session = lived(&mut acp, &model).await;
    acp.request_raw("session/close", Some(json!({"sessionId": session}))).await;
    acp.take_unread();
    let mut params = again(&acp, &session);
    params.as_object_mut().unwrap().remove("mcpServers");
    let id = acp.start_raw("session/resume", Some(params));
    let mut messages = acp.everything_until("the response", |message| message["id"] == id).await;
    let response = messages.pop().unwrap();
    assert_eq!(outline(&messages), Vec::<String>::new());
    assert_eq!(response["result"]["modes"]["currentModeId"], "code", "{response}");
    model.push(Script::text_stream(&["more"]));
    assert_eq!(acp.turn(&session, "and now?").await.text(), "more");
    acp.finish().await;
}

#[tokio::test]
async fn an_open_session_can_be_loaded_again() {
    let model = MockLlm::start().await;
    let mut acp = Acp::with(&model).await;
    let session = lived(&mut acp, &model).await;
    let params = again(&acp, &session);
    let id = acp.start_raw("session/load", Some(params));
    let messages = acp.everything_until("the response", |message| message["id"] == id).await;
    assert!(outline(&messages).contains(&"user_message_chunk".to_owned()), "{messages:?}");
    // One that was never prompted has nothing to show.
    let fresh = acp.session().await;
    let params = again(&acp, &fresh);
    let response = acp.request_raw("session/load", Some(params)).await;
    assert!(response["result"].is_object(), "{response}");
    model.push(Script::text_stream(&["hello"]));
    assert_eq!(acp.turn(&fresh, "hi").await.text(), "hello");
    acp.finish().await;
}

#[tokio::test]
async fn sessions_are_listed_by_folder_and_deleted_for_good() {
    let model = MockLlm::start().await;
    model.respond_with(|_| Script::text_stream(&["hello"]));
    let mut acp = Acp::with(&model).await;
    let other = acp.dirs.root.path().join("other");
    std::fs::create_dir(&other).unwrap();
    let one = acp.session().await;
    let both = json!({"cwd": other, "mcpServers": [], "additionalDirectories": [acp.workspace()]});
    let two = acp.session_with(both).await["sessionId"].as_str().unwrap().to_owned();
    let silent = acp.session().await;
    let empty = acp.request_raw("session/list", Some(json!({}))).await;
    assert_eq!(ids(&empty), Vec::<String>::new(), "nothing was said yet");
    for session in [&one, &two] {
        acp.turn(session, "hi").await;
    }
    let all = acp.request_raw("session/list", None).await;
    assert_eq!(ids(&all), [two.clone(), one.clone()], "the newest first");
    let newest = &all["result"]["sessions"][0];
    assert_eq!((&newest["cwd"], &newest["additionalDirectories"]), (&json!(other), &json!([acp.workspace()])));
    assert!(newest["updatedAt"].as_str().unwrap().contains('T'), "{newest}");
    let of = |cwd: Value| Some(json!({"cwd": cwd}));
    let workspace = json!(acp.workspace());
    assert_eq!(ids(&acp.request_raw("session/list", of(workspace)).await), [one.as_str()]);
    assert_eq!(ids(&acp.request_raw("session/list", of(json!(other))).await), [two.as_str()]);
    assert_eq!(ids(&acp.request_raw("session/list", of(json!("/nobody/works/here"))).await), Vec::<String>::new());
    assert_eq!(acp.request_raw("session/list", of(json!("relative"))).await["error"]["code"], -32602);
    assert_eq!(acp.request_raw("session/list", Some(json!({"cursor": "x"}))).await["error"]["code"], -32602);
    // Deleting twice, and what never was, succeeds.
    for id in [&one, &one, &silent, &"never".to_owned()] {
        let deleted = acp.request_raw("session/delete", Some(json!({"sessionId": id}))).await;
        assert_eq!(deleted["result"], json!({}), "{deleted}");
    }
    assert_eq!(ids(&acp.request_raw("session/list", None).await), [two.as_str()]);
    for method in ["session/load", "session/resume"] {
        let params = again(&acp, &one);
        let gone = acp.request_raw(method, Some(params)).await;
        assert_eq!(gone["error"]["code"], -32002, "{gone}");
    }
    let twice = json!({"sessionId": two});
    assert_eq!(acp.request_raw("session/close", Some(twice.clone())).await["result"], json!({}));
    assert_eq!(acp.request_raw("session/close", Some(twice)).await["error"]["code"], -32002);
    acp.finish().await;
}
