//! Cancellation in every stage of a turn, and the end of a connection: prompts are answered with
//! `cancelled`, and nothing of the turn follows.

use std::fs;

use serde_json::{Value, json};

use super::{Acp, Turn, is_update};
use crate::mock_llm::{Gate, MockLlm, Script};
use crate::peer::HANG_GUARD;

/// After a turn was cancelled: nothing of it follows its response, and the session goes on.
async fn goes_on(acp: &mut Acp, model: &MockLlm, session: &str, turn: &Turn) {
    assert_eq!(turn.stop_reason(), "cancelled", "{:?}", turn.messages);
    assert!(!turn.text().contains("Stopped"), "the client knows: {}", turn.text());
    model.push(Script::text_stream(&["go on"]));
    let next = acp.turn(session, "again").await;
    assert_eq!((next.stop_reason(), next.text().as_str()), ("end_turn", "go on"));
}

/// A prompt whose model has begun to answer and says nothing more.
async fn talking(acp: &mut Acp, model: &MockLlm) -> (String, i64) {
    let session = acp.session().await;
    model.push(Script::stream().text("so far").hang_here());
    let id = acp.start_prompt(&session, "hi");
    acp.find("text", |message| is_update(message, &json!(session), "agent_message_chunk")).await;
    (session, id)
}

#[tokio::test]
async fn before_the_model_answers() {
    let model = MockLlm::start().await;
    let mut acp = Acp::with(&model).await;
    let session = acp.session().await;
    model.push(Script::hang());
    let id = acp.start_prompt(&session, "hi");
    model.next_request().await;
    acp.cancel(&session);
    let turn = acp.rest_of(id).await;
    model.connection_closed().await;
    goes_on(&mut acp, &model, &session, &turn).await;
    acp.finish().await;
}

#[tokio::test]
async fn right_behind_the_prompt() {
    let model = MockLlm::start().await;
    let mut acp = Acp::with(&model).await;
    let session = acp.session().await;
    model.push(Script::hang());
    let prompt = json!({"jsonrpc": "2.0", "id": 900, "method": "session/prompt",
        "params": {"sessionId": session, "prompt": [{"type": "text", "text": "hi"}]}});
    let cancel = json!({"jsonrpc": "2.0", "method": "session/cancel", "params": {"sessionId": session}});
    acp.send_together(&[prompt, cancel]);
    let turn = acp.rest_of(900).await;
    assert_eq!(turn.stop_reason(), "cancelled");
    acp.finish().await;
}

#[tokio::test]
async fn in_the_middle_of_the_text() {
    let model = MockLlm::start().await;
    let mut acp = Acp::with(&model).await;
    let (session, id) = talking(&mut acp, &model).await;
    acp.cancel(&session);
    let turn = acp.rest_of(id).await;
    goes_on(&mut acp, &model, &session, &turn).await;
    acp.finish().await;
}

#[tokio::test]
async fn while_a_call_is_being_written() {
    let model = MockLlm::start().await;
    let mut acp = Acp::with(&model).await;
    let session = acp.session().await;
    model.push(Script::stream().call(0, "w", "eca__write_file", &["{\"path\":"]).hang_here());
    let id = acp.start_prompt(&session, "hi");
    acp.find("the call", |message| is_update(message, &json!(session), "tool_call")).await;
    acp.cancel(&session);
    let turn = acp.rest_of(id).await;
    assert_eq!(turn.call("w").pop().unwrap()["status"], "failed", "an open call is closed");
    goes_on(&mut acp, &model, &session, &turn).await;
    acp.finish().await;
}

#[tokio::test]
async fn while_the_user_is_asked() {
    let model = MockLlm::start().await;
    let mut acp = Acp::with(&model).await;
    let file = acp.workspace().join("a.txt");
    let session = acp.session().await;
    let arguments = json!({"path": file, "content": "x"}).to_string();
    model.push(Script::tool_call("w", "eca__write_file", &[&arguments]));
    let id = acp.start_prompt(&session, "hi");
    let asked = acp.find("the question", |message| message["method"] == "session/request_permission").await;
    acp.cancel(&session);
    // As the protocol wants it; the answer comes too late or just in time.
    acp.answer(&asked, json!({"outcome": {"outcome": "cancelled"}}));
    let withdrawn = |message: &Value| message["method"] == "$/cancel_request";
    let turn = acp.rest_of(id).await;
    assert_eq!(turn.call("w").pop().unwrap()["status"], "failed");
    let others: Vec<&Value> = turn.messages.iter().filter(|message| message["method"] != "session/update").collect();
    assert!(others.iter().all(|message| withdrawn(message)), "{others:?}");
    goes_on(&mut acp, &model, &session, &turn).await;
    assert!(!file.exists());
    acp.finish().await;
}

#[tokio::test]
async fn while_a_tool_runs() {
    let model = MockLlm::start().await;
    let mut acp = Acp::configured(&model, json!({}), json!({"toolCall": {"approval": {"byDefault": "allow"}}})).await;
    let session = acp.session().await;
    let mark = acp.workspace().join("mark");
    let command = json!({"command": format!("touch {}; sleep 60", mark.display())}).to_string();
    model.push(Script::tool_call("s", "eca__shell_command", &[&command]));
    let id = acp.start_prompt(&session, "hi");
    acp.find("it runs", |message| {
        is_update(message, &json!(session), "tool_call_update")
            && message["params"]["update"]["status"] == "in_progress"
    })
    .await;
    let begun = async {
        while !mark.exists() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(HANG_GUARD, begun).await.expect("the command runs");
    acp.cancel(&session);
    let turn = acp.rest_of(id).await;
    assert_eq!(turn.call("s").pop().unwrap()["status"], "failed");
    goes_on(&mut acp, &model, &session, &turn).await;
    acp.finish().await;
}

#[tokio::test]
async fn by_the_id_of_its_request() {
    let model = MockLlm::start().await;
    let mut acp = Acp::with(&model).await;
    let (session, id) = talking(&mut acp, &model).await;
    acp.notify_raw("$/cancel_request", Some(json!({"requestId": id})));
    let turn = acp.rest_of(id).await;
    goes_on(&mut acp, &model, &session, &turn).await;
    // Of requests that are over or never were, nothing is left to cancel.
    acp.notify_raw("$/cancel_request", Some(json!({"requestId": id})));
    acp.notify_raw("$/cancel_request", Some(json!({"requestId": "nobody"})));
    acp.notify_raw("$/cancel_request", None);
    acp.cancel("no such session");
    acp.cancel(&session);
    model.push(Script::text_stream(&["still here"]));
    assert_eq!(acp.turn(&session, "hello?").await.text(), "still here");
    acp.finish().await;
}

#[tokio::test]
async fn by_another_prompt_in_the_same_session() {
    let model = MockLlm::start().await;
    let mut acp = Acp::with(&model).await;
    let (session, first) = talking(&mut acp, &model).await;
    model.push(Script::text_stream(&["the second"]));
    let second = acp.start_prompt(&session, "two");
    assert_eq!(acp.rest_of(first).await.stop_reason(), "cancelled");
    let turn = acp.rest_of(second).await;
    assert_eq!((turn.stop_reason(), turn.text().as_str()), ("end_turn", "the second"));
    acp.finish().await;
}

#[tokio::test]
async fn by_closing_the_session() {
    let model = MockLlm::start().await;
    let mut acp = Acp::with(&model).await;
    let (session, id) = talking(&mut acp, &model).await;
    let close = acp.start_raw("session/close", Some(json!({"sessionId": session})));
    assert_eq!(acp.rest_of(id).await.stop_reason(), "cancelled", "the prompt is answered first");
    assert_eq!(acp.response_raw(close).await["result"], json!({}));
    let gone = acp.request_raw("session/prompt", Some(json!({"sessionId": session, "prompt": []}))).await;
    assert_eq!(gone["error"]["code"], -32002, "{gone}");
    acp.finish().await;
}

#[tokio::test]
async fn by_the_end_of_the_input() {
    let model = MockLlm::start().await;
    let mut acp = Acp::with(&model).await;
    let (_, id) = talking(&mut acp, &model).await;
    acp.close_input();
    assert_eq!(acp.rest_of(id).await.stop_reason(), "cancelled");
    acp.wait_for_end().await;
    model.connection_closed().await;
}

#[tokio::test]
async fn a_slow_reader_loses_nothing() {
    let model = MockLlm::start().await;
    let mut acp = Acp::with(&model).await;
    let session = acp.session().await;
    let gate = Gate::new();
    let piece = "0123456789abcdef".repeat(16);
    model.push(Script::stream().text("start").gate(&gate).flood(4_000, &piece).text("end").finish("stop"));
    let id = acp.start_prompt(&session, "hi");
    acp.find("text", |message| is_update(message, &json!(session), "agent_message_chunk")).await;
    acp.stop_reading();
    gate.open();
    // The server must wait with a full pipe, and hear us meanwhile.
    let other = acp.start_raw("session/list", Some(json!({})));
    acp.go_on_reading();
    let messages = acp.everything_until("the end", |message| message["id"] == id).await;
    let updates: Vec<&Value> = messages
        .iter()
        .map(|message| &message["params"]["update"])
        .filter(|update| update["sessionUpdate"] == "agent_message_chunk")
        .collect();
    let text = super::text_in(&updates);
    assert_eq!(text.len(), 4_000 * piece.len() + "end".len());
    assert!(text.ends_with("end"));
    if !messages.iter().any(|message| message["id"] == other) {
        acp.response_raw(other).await;
    }
    acp.finish().await;
}

#[tokio::test]
async fn nothing_is_written_when_a_stop_comes_before_the_consent() {
    let model = MockLlm::start().await;
    let mut acp = Acp::with(&model).await;
    let file = acp.workspace().join("a.txt");
    fs::write(&file, "old").unwrap();
    let session = acp.session().await;
    let arguments = json!({"path": file, "content": "new"}).to_string();
    model.push(Script::tool_call("w", "eca__write_file", &[&arguments]));
    let id = acp.start_prompt(&session, "hi");
    let asked = acp.find("the question", |message| message["method"] == "session/request_permission").await;
    acp.cancel(&session);
    acp.answer(&asked, super::selected("allow_always"));
    assert_eq!(acp.rest_of(id).await.stop_reason(), "cancelled");
    assert_eq!(fs::read_to_string(&file).unwrap(), "old");
    acp.finish().await;
}
