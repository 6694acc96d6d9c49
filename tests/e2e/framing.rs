//! Frames, envelopes and ids: what a client may write, and what it may rely on.

use serde_json::{Value, json};

use crate::mock_llm::{MockLlm, Script};
use crate::peer::{frame, outline};
use crate::server::{TestServer, presets};

async fn server() -> TestServer {
    let model = MockLlm::start().await;
    TestServer::with(&model).start().await
}

fn list(id: impl Into<Value>) -> Value {
    json!({"jsonrpc": "2.0", "id": id.into(), "method": "jobs/list", "params": {}})
}

#[tokio::test]
async fn an_unknown_request_is_refused_by_name_and_an_unknown_notification_ignored() {
    let mut server = server().await;
    for method in ["no/such", "$/no/such", "textDocument/hover2"] {
        let response = server.request_raw(method, Some(json!({}))).await;
        assert_eq!(response["error"]["code"], -32601, "{response}");
        assert_eq!(response["error"]["data"]["method"], method);
        server.notify_raw(method, Some(json!({})));
    }
    assert_eq!(outline(&server.settled().await), Vec::<String>::new());
    server.finish().await;
}

#[tokio::test]
async fn ids_come_back_as_they_were_sent() {
    let mut server = server().await;
    for id in [json!(0), json!(7_000_000_000_i64), json!("0"), json!("with \"quotes\" and ü"), json!("")] {
        server.send(&list(id.clone()));
        let response = server.next().await;
        assert_eq!(response["id"], id);
        assert!(response["result"].is_object());
    }
    server.finish().await;
}

#[tokio::test]
async fn frames_may_share_a_write_or_come_byte_by_byte() {
    let mut server = server().await;
    server.send_together(&[list("first"), list("second")]);
    server.response_raw("first").await;
    server.response_raw("second").await;
    let text =
        json!({"jsonrpc": "2.0", "id": "ünï", "method": "jobs/list", "params": {"ignored": "日本語 🦀"}}).to_string();
    for byte in frame(&text) {
        server.raw_send([byte]);
    }
    server.response_raw("ünï").await;
    server.finish().await;
}

#[tokio::test]
async fn headers_may_vary_as_clients_write_them() {
    let mut server = server().await;
    for (number, header) in [
        "Content-Length: {}\r\nContent-Type: application/vscode-jsonrpc; charset=utf-8\r\n\r\n",
        "Content-Type: application/vscode-jsonrpc; charset=UTF-8\r\nContent-Length: {}\r\n\r\n",
        "Content-Type: application/json\r\nX-Unknown: yes\r\nX-Other: no\r\nContent-Length: {}\r\n\r\n",
        "content-length: {}\r\n\r\n",
        "Content-Length:{}\n\n",
    ]
    .into_iter()
    .enumerate()
    {
        let body = list(number).to_string();
        server.raw_send(header.replace("{}", &body.len().to_string()) + &body);
        server.response_raw(number).await;
    }
    server.finish().await;
}

#[tokio::test]
async fn what_is_no_message_is_answered_and_the_next_request_served() {
    let mut server = server().await;
    for (what, body, code, id) in [
        ("malformed JSON", "{\"jsonrpc\": \"2.0\", ", -32700, Value::Null),
        ("a batch", "[]", -32600, Value::Null),
        ("no version", "{\"id\": 41, \"method\": \"jobs/list\"}", -32600, json!(41)),
        ("another version", "{\"jsonrpc\": \"1.0\", \"id\": \"x\", \"method\": \"jobs/list\"}", -32600, json!("x")),
        ("a text", "\"hello\"", -32600, Value::Null),
        ("half an id", "{\"jsonrpc\": \"2.0\", \"id\": 1.5, \"method\": \"jobs/list\"}", -32600, Value::Null),
    ] {
        server.raw_send(frame(body));
        let answer = server.next().await;
        assert_eq!((&answer["error"]["code"], &answer["id"]), (&json!(code), &id), "{what}: {answer}");
        server.send(&list(what));
        assert!(server.response_raw(what).await["result"].is_object());
    }
    server.finish().await;
}

#[tokio::test]
async fn a_prompt_with_every_kind_of_character_arrives_whole() {
    let model = MockLlm::start().await;
    model.respond_with(|request| {
        let said = request.body["messages"].as_array().unwrap().last().unwrap()["content"].as_str().unwrap().to_owned();
        Script::text_stream(&[&said])
    });
    let mut server = TestServer::with(&model).start().await;
    let awkward = "quote \" backslash \\ tab \t null \u{0} line\u{2028} 日本語 🦀 \u{7f} </script> \r\n Content-Length: 5\r\n\r\n{}";
    let turn = server.turn("c", awkward).await;
    assert_eq!(crate::peer::outline::text_by("assistant", &turn), awkward);
    assert_eq!(crate::peer::outline::text_by("user", &turn), format!("{awkward}\n"));
    server.finish().await;
}

#[tokio::test]
async fn a_pending_request_can_be_cancelled() {
    let model = MockLlm::start().await;
    model.push(Script::hang());
    // Only the first version's prompt waits for the provider.
    let mut server = TestServer::with(&model).client(presets::seed_000).start().await;
    let id = server.start_prompt(Some("c"), "hi");
    model.next_request().await;
    server.notify_raw("$/cancelRequest", Some(json!({"id": id})));
    assert_eq!(server.response_raw(id).await["error"]["code"], -32800);
    server.stop("c");
    let last = server.everything_until("the end", |message| message["params"]["isComplete"] == true).await;
    assert!(last.len() <= 2, "{last:?}");
    server.finish().await;
}

#[tokio::test]
async fn what_is_not_there_is_refused_in_one_line_and_harmless() {
    let mut server = server().await;
    let response = server.request_raw("chat/noSuchThing", Some(json!({}))).await;
    assert_eq!(response["error"]["code"], -32601, "{response}");
    server.notify_raw("chat/toolCallApprove", Some(json!({"chatId": "c", "toolCallId": "t"})));
    assert_eq!(outline(&server.settled().await), Vec::<String>::new());
    server.notify_raw("mcp/startServer", Some(json!({"name": "x"})));
    server.find("that there is no such server", |message| message["method"] == "$/showMessage").await;
    server.finish().await;
}

#[tokio::test]
async fn queries_are_answered_and_keep_the_chat_id() {
    let mut server = server().await;
    for (method, key) in
        [("chat/queryContext", "contexts"), ("chat/queryFiles", "files"), ("chat/queryCommands", "commands")]
    {
        let response = server.request_raw(method, Some(json!({"chatId": "c", "query": "", "contexts": []}))).await;
        assert_eq!(response["result"]["chatId"], "c", "{response}");
        assert!(response["result"][key].is_array());
        let response = server.request_raw(method, Some(json!({"query": "x", "contexts": {}}))).await;
        assert!(response["result"].get("chatId").is_none(), "{response}");
    }
    server.finish().await;
}
