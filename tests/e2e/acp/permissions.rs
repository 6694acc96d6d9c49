//! Questions about tool calls: each answer, and what it leads to.

use std::fs;

use serde_json::json;

use super::{Acp, selected};
use crate::mock_llm::{MockLlm, Script};

fn write(id: &str, path: &str, content: &str) -> Script {
    Script::tool_call(id, "eca__write_file", &[&json!({"path": path, "content": content}).to_string()])
}

#[tokio::test]
async fn an_allowed_call_runs_and_the_question_has_all_there_is_to_see() {
    let model = MockLlm::start().await;
    let mut acp = Acp::with(&model).await;
    let file = acp.workspace().join("a.txt").display().to_string();
    model.push(write("w", &file, "new\n"));
    model.push(Script::text_stream(&["written"]));
    let session = acp.session().await;
    let id = acp.start_prompt(&session, "write");
    let turn = acp.rest_with(id, |_| Ok(selected("allow_once"))).await;
    assert_eq!((turn.stop_reason(), turn.text().as_str()), ("end_turn", "written"));
    assert_eq!(
        turn.outline()[..5],
        [
            "tool_call w pending",
            "tool_call_update w",
            "session/request_permission",
            "tool_call_update w in_progress",
            "tool_call_update w completed",
        ]
    );
    let asked = acp.asked_for("session/request_permission");
    assert_eq!(asked[0]["sessionId"], session);
    let call = &asked[0]["toolCall"];
    assert_eq!((&call["toolCallId"], &call["kind"], &call["status"]), (&json!("w"), &json!("edit"), &json!("pending")));
    assert_eq!(call["content"][0]["newText"], "new\n");
    let options: Vec<(&str, &str)> = asked[0]["options"]
        .as_array()
        .unwrap()
        .iter()
        .map(|option| (option["optionId"].as_str().unwrap(), option["kind"].as_str().unwrap()))
        .collect();
    let expected = [("allow_once", "allow_once"), ("allow_always", "allow_always"), ("reject_once", "reject_once")];
    assert_eq!(options, expected);
    assert_eq!(fs::read_to_string(&file).unwrap(), "new\n");
    acp.finish().await;
}

#[tokio::test]
async fn always_is_asked_once_in_a_session() {
    let model = MockLlm::start().await;
    let mut acp = Acp::with(&model).await;
    let file = acp.workspace().join("a.txt").display().to_string();
    for (id, content) in [("w1", "1"), ("w2", "2")] {
        model.push(write(id, &file, content));
    }
    model.push(Script::text_stream(&["written"]));
    let session = acp.session().await;
    let id = acp.start_prompt(&session, "write twice");
    let turn = acp.rest_with(id, |_| Ok(selected("allow_always"))).await;
    assert_eq!(turn.stop_reason(), "end_turn");
    assert_eq!(acp.asked_for("session/request_permission").len(), 1);
    assert_eq!(fs::read_to_string(&file).unwrap(), "2");
    acp.finish().await;
}

#[tokio::test]
async fn a_rejected_call_fails_and_nothing_is_written() {
    let model = MockLlm::start().await;
    let mut acp = Acp::with(&model).await;
    let file = acp.workspace().join("a.txt");
    let session = acp.session().await;
    // Saying no, saying nothing sensible, and saying that one cannot ask are all no consent.
    let answers = [Ok(selected("reject_once")), Ok(selected("whatever")), Err(-32603)];
    for (number, answer) in answers.into_iter().enumerate() {
        let call = format!("w{number}");
        model.push(write(&call, &file.display().to_string(), "new\n"));
        model.push(Script::text_stream(&["as you wish"]));
        let id = acp.start_prompt(&session, "write");
        let turn = acp.rest_with(id, |_| answer.clone()).await;
        assert_eq!(turn.stop_reason(), "end_turn");
        let last = turn.call(&call).pop().unwrap().clone();
        assert_eq!(last["status"], "failed");
        assert!(last["content"][0]["content"]["text"].as_str().unwrap().contains("Rejected"), "{last}");
    }
    assert!(!file.exists());
    acp.finish().await;
}

#[tokio::test]
async fn a_client_that_cancels_the_question_cancels_the_turn() {
    let model = MockLlm::start().await;
    let mut acp = Acp::with(&model).await;
    let file = acp.workspace().join("a.txt");
    model.push(write("w", &file.display().to_string(), "new\n"));
    let session = acp.session().await;
    let id = acp.start_prompt(&session, "write");
    let turn = acp.rest_with(id, |_| Ok(json!({"outcome": {"outcome": "cancelled"}}))).await;
    assert_eq!(turn.stop_reason(), "cancelled");
    assert!(!file.exists());
    acp.finish().await;
}

#[tokio::test]
async fn who_does_not_want_to_be_asked_is_not() {
    let model = MockLlm::start().await;
    let switches = json!({"session": {"configOptions": {"boolean": {}}}});
    let mut acp = Acp::capable(&model, switches).await;
    let file = acp.workspace().join("a.txt").display().to_string();
    let params = acp.session_params();
    let created = acp.session_with(params).await;
    let session = created["sessionId"].as_str().unwrap().to_owned();
    let trust = created["configOptions"].as_array().unwrap().iter().find(|option| option["id"] == "trust").unwrap();
    assert_eq!((&trust["type"], &trust["currentValue"]), (&json!("boolean"), &json!(false)));
    let set = json!({"sessionId": session, "configId": "trust", "type": "boolean", "value": true});
    let response = acp.request_raw("session/set_config_option", Some(set)).await;
    assert!(response["result"]["configOptions"].to_string().contains("\"currentValue\":true"), "{response}");
    model.push(write("w", &file, "new\n"));
    model.push(Script::text_stream(&["written"]));
    assert_eq!(acp.turn(&session, "write").await.stop_reason(), "end_turn");
    assert_eq!(fs::read_to_string(&file).unwrap(), "new\n");
    acp.finish().await;
}
