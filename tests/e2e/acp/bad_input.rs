//! Lines that are no messages, messages that are no requests, and requests that cannot be served:
//! each gets its answer, and the connection goes on.

use serde_json::{Value, json};

use super::Acp;
use crate::mock_llm::{MockLlm, Script};

#[tokio::test]
async fn garbage_is_answered_and_the_next_line_counts() {
    let model = MockLlm::start().await;
    let mut acp = Acp::with(&model).await;
    for (line, code) in [
        ("not json\n", -32700),
        ("{\"jsonrpc\":\"2.0\",\"id\":\n", -32700),
        ("[]\n", -32600),
        ("[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"session/list\"}]\n", -32600),
        ("{\"id\":77,\"method\":\"session/list\"}\n", -32600),
        ("{\"jsonrpc\":\"2.0\",\"id\":78}\n", -32600),
        ("7\n", -32600),
    ] {
        acp.raw_send(line);
        let answer = acp.next().await;
        assert_eq!(answer["error"]["code"], code, "{line}: {answer}");
    }
    acp.raw_send("\n\r\n   \n");
    let listed = acp.request_raw("session/list", Some(json!({}))).await;
    assert_eq!(listed["result"]["sessions"], json!([]));
    acp.finish().await;
}

#[tokio::test]
async fn requests_that_cannot_be_served_say_why() {
    let model = MockLlm::start().await;
    let mut acp = Acp::with(&model).await;
    let session = acp.session().await;
    let text = json!([{"type": "text", "text": "hi"}]);
    for (method, params, code) in [
        ("session/fly", Some(json!({})), -32601),
        ("logout", Some(json!({})), -32601),
        ("_x.org/ask", Some(json!({"_meta": {}})), -32601),
        ("session/prompt", Some(json!({"sessionId": "x", "prompt": text})), -32002),
        ("session/prompt", Some(json!({"prompt": text})), -32602),
        ("session/prompt", Some(json!({"sessionId": session})), -32602),
        ("session/prompt", Some(json!({"sessionId": session, "prompt": "hi"})), -32602),
        ("session/prompt", Some(json!({"sessionId": session, "prompt": []})), -32602),
        ("session/prompt", Some(json!({"sessionId": session, "prompt": [{"type": "text"}]})), -32602),
        ("session/load", Some(json!({"sessionId": "x", "cwd": "/", "mcpServers": []})), -32002),
        ("session/load", Some(json!({"sessionId": "\u{0}", "cwd": "/", "mcpServers": []})), -32002),
        ("session/close", Some(json!({"sessionId": 1})), -32602),
        ("session/close", None, -32602),
        ("session/set_mode", None, -32602),
        ("initialize", Some(json!({"protocolVersion": "one"})), -32602),
    ] {
        let answer = acp.request_raw(method, params.clone()).await;
        assert_eq!(answer["error"]["code"], code, "{method} {params:?}: {answer}");
        let message = answer["error"]["message"].as_str().unwrap();
        assert!(!message.is_empty() && !message.contains('\n'), "{message:?}");
        assert!(answer.get("result").is_none());
    }
    // Notifications are never answered.
    acp.notify_raw("session/fly", Some(json!({})));
    acp.notify_raw("_x.org/note", None);
    acp.notify_raw("session/cancel", Some(json!({})));
    acp.answer(&json!({"id": 4711}), json!({}));
    model.push(Script::text_stream(&["fine"]));
    assert_eq!(acp.turn(&session, "how are you?").await.text(), "fine");
    acp.finish().await;
}

#[tokio::test]
async fn ids_are_given_back_as_they_came() {
    let model = MockLlm::start().await;
    let mut acp = Acp::with(&model).await;
    for id in [json!("é-1"), json!(0), json!(-3), json!(9_007_199_254_740_991_i64)] {
        acp.send(&json!({"jsonrpc": "2.0", "id": id, "method": "session/list", "params": {"_meta": {"a": 1}}}));
        let answer: Value = acp.response_raw(id.clone()).await;
        assert_eq!(answer["id"], id);
    }
    let session = acp.session().await;
    model.push(Script::text_stream(&["hello"]));
    acp.send(&json!({"jsonrpc": "2.0", "id": "p", "method": "session/prompt",
        "params": {"sessionId": session, "prompt": [{"type": "text", "text": "hi"}]}}));
    let answer = acp.response_raw("p").await;
    assert_eq!(answer["result"]["stopReason"], "end_turn");
    acp.take_unread();
    acp.finish().await;
}

#[tokio::test]
async fn an_id_that_is_in_use_is_refused() {
    let model = MockLlm::start().await;
    let mut acp = Acp::with(&model).await;
    let session = acp.session().await;
    model.push(Script::hang());
    let prompt = json!({"jsonrpc": "2.0", "id": 500, "method": "session/prompt",
        "params": {"sessionId": session, "prompt": [{"type": "text", "text": "hi"}]}});
    acp.send(&prompt);
    model.next_request().await;
    acp.send(&prompt);
    let refused = acp.find("an answer", |message| message["id"] == 500).await;
    assert_eq!(refused["error"]["code"], -32600, "{refused}");
    acp.cancel(&session);
    assert_eq!(acp.rest_of(500).await.stop_reason(), "cancelled");
    acp.finish().await;
}
