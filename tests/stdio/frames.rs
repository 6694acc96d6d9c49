//! Broken input: every way to break the framing or a message is answered, and the next request is
//! served by the same process.

use serde_json::{Value, json};

use crate::mock_llm::{MockLlm, Script};
use crate::peer::frame;
use crate::process::{Launch, RealServer};

/// Sends the bytes, expects an error with this code and id, and then a healthy server.
async fn refused(server: &mut RealServer, what: &str, bytes: impl Into<Vec<u8>>, code: i64, id: Value) {
    server.raw_send(bytes);
    server.send(&json!({"jsonrpc": "2.0", "id": what, "method": "jobs/list"}));
    let answer = server.next().await;
    assert_eq!((&answer["error"]["code"], &answer["id"]), (&json!(code), &id), "{what}: {answer}");
    let next = server.next().await;
    assert_eq!(next["id"], what, "after {what}: {next}");
    assert!(next["result"].is_object(), "after {what}: {next}");
}

fn request(id: &str) -> String {
    json!({"jsonrpc": "2.0", "id": id, "method": "jobs/list", "params": {}}).to_string()
}

async fn finish(server: RealServer) {
    let (code, _) = server.leave().await;
    assert_eq!(code, Some(0));
}

#[tokio::test]
async fn messages_that_are_none_are_answered() {
    let mut server = Launch::new().start().await;
    let huge_id = r#"{"jsonrpc":"2.0","id":9223372036854775808,"method":"jobs/list"}"#;
    for (what, body, code, id) in [
        ("malformed JSON", "{\"jsonrpc\":", -32700, Value::Null),
        ("an empty list", "[]", -32600, Value::Null),
        ("a batch", r#"[{"jsonrpc":"2.0","id":1,"method":"jobs/list"}]"#, -32600, Value::Null),
        ("a number", "7", -32600, Value::Null),
        ("no version", r#"{"id":5,"method":"jobs/list"}"#, -32600, json!(5)),
        ("a broken id", r#"{"jsonrpc":"2.0","id":1.5,"method":"jobs/list"}"#, -32600, Value::Null),
        ("an id that is too large", huge_id, -32600, Value::Null),
        ("an id that is a list", r#"{"jsonrpc":"2.0","id":[],"method":"jobs/list"}"#, -32600, Value::Null),
        ("a method that is no text", r#"{"jsonrpc":"2.0","id":6,"method":7}"#, -32600, json!(6)),
        ("params that are a text", r#"{"jsonrpc":"2.0","id":8,"method":"jobs/list","params":"x"}"#, -32600, json!(8)),
    ] {
        refused(&mut server, what, frame(body), code, id).await;
    }
    finish(server).await;
}

#[tokio::test]
async fn invalid_utf_8_is_answered() {
    let mut server = Launch::new().start().await;
    let mut bytes = b"Content-Length: 4\r\n\r\n".to_vec();
    bytes.extend_from_slice(&[b'"', 0xff, 0xfe, b'"']);
    refused(&mut server, "invalid UTF-8", bytes, -32700, Value::Null).await;
    finish(server).await;
}

#[tokio::test]
async fn lost_framing_is_found_again() {
    let mut server = Launch::new().start().await;
    let body = request("lost");
    for (what, bytes) in [
        ("no length", format!("Content-Type: application/json\r\n\r\n{body}")),
        ("a negative length", format!("Content-Length: -5\r\n\r\n{body}")),
        ("a length that overflows", format!("Content-Length: 99999999999999999999999\r\n\r\n{body}")),
        ("a length that is a word", format!("Content-Length: many\r\n\r\n{body}")),
        ("an empty body", "Content-Length: 0\r\n\r\n".to_owned()),
        (
            "ten gigabytes announced, one kilobyte sent",
            format!("Content-Length: 10000000000\r\n\r\n{}", "x".repeat(1024)),
        ),
        (
            "a foreign charset",
            format!("Content-Length: {}\r\nContent-Type: a/b; charset=latin1\r\n\r\n{body}", body.len()),
        ),
        ("a header that never ends", "X-Long: ".to_owned() + &"y".repeat(40_000) + "\r\n\r\n"),
    ] {
        refused(&mut server, what, bytes, -32700, Value::Null).await;
    }
    finish(server).await;
}

#[tokio::test]
async fn a_foreign_charset_is_named() {
    let mut server = Launch::new().start().await;
    let body = request("lost");
    server.raw_send(format!("Content-Length: {}\r\nContent-Type: a/b; charset=utf-16\r\n\r\n{body}", body.len()));
    let answer = server.next().await;
    assert!(answer["error"]["message"].as_str().unwrap().contains("utf-16"), "{answer}");
    server.is_well().await;
    finish(server).await;
}

#[tokio::test]
async fn unusual_headers_are_read() {
    let mut server = Launch::new().start().await;
    for (what, header) in [
        ("lower case", "content-length: N\r\n\r\n"),
        ("three headers", "X-A: 1\r\nContent-Length: N\r\nX-B: 2\r\n\r\n"),
        ("utf-8 in capitals", "Content-Length: N\r\nContent-Type: a/b; charset=UTF-8\r\n\r\n"),
        ("the old name of utf-8", "Content-Length: N\r\nContent-Type: a/b; charset=utf8\r\n\r\n"),
        ("a type without charset", "Content-Type: application/json\r\nContent-Length: N\r\n\r\n"),
        ("line feeds only", "Content-Length: N\n\n"),
        ("a blank line before", "\r\nContent-Length: N\r\n\r\n"),
    ] {
        let body = request(what);
        server.raw_send(header.replace('N', &body.len().to_string()) + &body);
        let answer = server.next().await;
        assert_eq!(answer["id"], what, "{answer}");
        assert!(answer["result"].is_object(), "{answer}");
    }
    finish(server).await;
}

#[tokio::test]
async fn a_message_behind_garbage_is_served() {
    let mut server = Launch::new().start().await;
    for (what, garbage) in [
        ("glued words", &b"foobar"[..]),
        ("glued bytes", &[0, 0xff, 0][..]),
        ("a line of text", &b"Segmentation fault (core dumped)\r\n"[..]),
    ] {
        let mut bytes = garbage.to_vec();
        bytes.extend(frame(&request(what)));
        server.raw_send(bytes);
        let answer = server.response_raw(what).await;
        assert!(answer["result"].is_object(), "{what}: {answer}");
    }
    // Whether garbage is complained about depends on its kind; nothing else may have come.
    let complaints = server.take_unread();
    assert!(complaints.iter().all(|answer| answer["error"]["code"] == -32700), "{complaints:?}");
    server.is_well().await;
    finish(server).await;
}

#[tokio::test]
async fn deep_nesting_is_refused_under_its_id() {
    let mut server = Launch::new().start().await;
    for depth in [200, 100_000] {
        let params = format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        let body = format!(r#"{{"jsonrpc":"2.0","id":"deep{depth}","method":"chat/prompt","params":{params}}}"#);
        refused(&mut server, &format!("{depth} levels"), frame(&body), -32700, json!(format!("deep{depth}"))).await;
    }
    finish(server).await;
}

#[tokio::test]
async fn a_message_above_the_limit_is_skipped() {
    let mut server = Launch::new().start().await;
    let body = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{}"}}"#, "x".repeat(65 * 1024 * 1024));
    refused(&mut server, "too large", frame(&body), -32700, Value::Null).await;
    finish(server).await;
}

#[tokio::test]
async fn a_prompt_of_fifty_megabytes_reaches_the_model() {
    let model = MockLlm::start().await;
    model.respond_with(|_| Script::text_stream(&["read it all"]));
    let mut server = Launch::with(&model).start().await;
    let text = "All work and no play. ".repeat(50 * 1024 * 1024 / 22);
    let id = server.start_raw("chat/prompt", Some(json!({"chatId": "c", "message": text})));
    assert_eq!(server.response_raw(id).await["result"]["status"], "prompting");
    let request = model.next_request().await;
    assert!(request.raw_body.len() > text.len());
    let turn = server.collect_turn("c").await;
    assert_eq!(crate::peer::outline::text_by("assistant", &turn), "read it all");
    finish(server).await;
}

#[tokio::test]
async fn an_id_that_is_in_use_is_refused_and_the_first_request_completes() {
    let model = MockLlm::start().await;
    let gate = crate::mock_llm::Gate::new();
    model.push(Script::stream().gate(&gate).text("ok").finish("stop"));
    model.push(Script::hang());
    // In the first version of the protocol a prompt waits for its provider.
    let mut server = Launch::with(&model).silent();
    let seed = json!({"capabilities": {"codeAssistant": {"doc": true}}});
    server.request_raw("initialize", Some(seed)).await;
    server.notify_raw("initialized", None);
    let last = |message: &Value| message["method"] == "tool/serverUpdated";
    server.everything_until("the announcements", last).await;
    model.push(Script::hang());
    let prompt =
        json!({"jsonrpc": "2.0", "id": "twice", "method": "chat/prompt", "params": {"chatId": "c", "message": "hi"}});
    // The model answers with its head only when asked for the words, so the first prompt is pending.
    server.send(&prompt);
    server.response_raw("twice").await;
    gate.open();
    server.everything_until("the end", |message| message["params"]["isComplete"] == true).await;
    server.send(&prompt);
    model.next_request().await;
    model.next_request().await;
    server.send(&json!({"jsonrpc": "2.0", "id": "twice", "method": "jobs/list"}));
    let refused = server.response_raw("twice").await;
    assert_eq!(refused["error"]["code"], -32600, "{refused}");
    server.notify_raw("chat/promptStop", Some(json!({"chatId": "c"})));
    let completed = server.response_raw("twice").await;
    assert!(completed["result"].is_object(), "{completed}");
    server.everything_until("the end", |message| message["params"]["isComplete"] == true).await;
    finish(server).await;
}

#[tokio::test]
async fn input_that_ends_inside_a_message_ends_the_process_in_order() {
    let mut server = Launch::new().start().await;
    server.raw_send("Content-Length: 100\r\n\r\n{\"jsonrpc\"");
    server.close_input();
    let (code, _) = server.end().await;
    assert_eq!(code, Some(0));
}
