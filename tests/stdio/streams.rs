//! The three streams: only frames on stdout, whole ones; a log on stderr that may be ignored and
//! never holds a key.

use std::io::{Read, Write};

use serde_json::{Value, json};

use crate::mock_llm::{MockLlm, Script};
use crate::peer::{FrameParser, frame};
use crate::process::Launch;
use crate::server::KEY;

#[tokio::test]
async fn stdout_carries_only_frames_however_much_is_logged() {
    let model = MockLlm::start().await;
    model.respond_with(|_| Script::reasoning(&["hm"], &["Hello", " world"]));
    let launch = Launch::with(&model).arguments(&["server", "--log-level", "debug", "--verbose"]);
    // The client of the test accepts nothing but frames.
    let mut server = launch.start().await;
    server.raw_send("not a header at all\r\n\r\n");
    server.request_raw("no/such/method", None).await;
    server.request_raw("chat/prompt", Some(json!({"chatId": "c", "message": "hi"}))).await;
    server.collect_turn("c").await;
    let (code, log) = server.leave().await;
    assert_eq!(code, Some(0));
    assert!(log.contains("chat/prompt"), "the log has the traffic: {log}");
}

#[tokio::test]
async fn every_frame_arrives_in_one_piece() {
    let mut bare = Launch::new().bare();
    let mut whole_frame = |body: Value| {
        bare.input.write_all(&frame(&body.to_string())).unwrap();
        let mut buffer = vec![0; 256 * 1024];
        // One read takes whatever one write has put into the pipe.
        let length = bare.output.read(&mut buffer).unwrap();
        let mut parser = FrameParser::default();
        parser.push(&buffer[..length]);
        let frame = parser.next_frame().unwrap().expect("a frame was cut");
        assert!(parser.is_empty());
        serde_json::from_slice::<Value>(&frame).unwrap()
    };
    let capabilities = json!({"capabilities": {}});
    let answer = whole_frame(json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": capabilities}));
    assert!(answer["result"].is_object());
    for id in 2..200 {
        let answer = whole_frame(json!({"jsonrpc": "2.0", "id": id, "method": "jobs/list"}));
        assert_eq!(answer["id"], id);
    }
    drop(bare.input);
    assert_eq!(bare.process.wait().await.code(), Some(0));
}

#[tokio::test]
async fn a_log_that_nobody_reads_stalls_nothing() {
    let model = MockLlm::start().await;
    model.respond_with(|_| Script::text_stream(&["ok"]));
    let launch = Launch::with(&model).arguments(&["server", "--log-level", "debug", "--verbose"]);
    let crate::process::Bare { mut process, input, output, errors, dirs } = launch.bare();
    let mut client = crate::peer::Peer::new(output, input);
    let capabilities = json!({"capabilities": {"codeAssistant": {"chat": true, "editor": {}}}});
    client.request_raw("initialize", Some(capabilities)).await;
    client.notify_raw("initialized", None);
    let filler = "x".repeat(1000);
    // Far more than a pipe holds.
    for _ in 0..2000 {
        let response = client.request_raw("jobs/list", Some(json!({"filler": filler}))).await;
        assert!(response["result"].is_object());
    }
    client.request_raw("chat/prompt", Some(json!({"chatId": "c", "message": "hi"}))).await;
    client.collect_turn("c").await;
    assert_eq!(client.request_raw("shutdown", None).await["result"], Value::Null);
    client.notify_raw("exit", None);
    assert_eq!(process.wait().await.code(), Some(0));
    drop((errors, dirs));
}

#[tokio::test]
async fn the_key_is_in_no_log_and_in_no_message() {
    let model = MockLlm::start().await;
    let body = json!({"error": {"message": format!("the key {KEY} is wrong")}}).to_string();
    model.respond_with(move |_| Script::status(401, &[], &body));
    let launch = Launch::with(&model).arguments(&["server", "--log-level", "debug", "--verbose"]);
    let options = json!({"providers": {"other": {"api": "openai-chat", "url": model.url(), "key": KEY}}});
    let mut server = launch
        .start_with(json!({
            "processId": null,
            "capabilities": {"codeAssistant": {"chat": true, "editor": {}}},
            "initializationOptions": options,
        }))
        .await;
    let mut seen = String::new();
    for chat in ["mock/m1", "other/m"] {
        let id = chat.replace('/', "-");
        server.request_raw("chat/prompt", Some(json!({"chatId": id, "message": "hi", "model": chat}))).await;
        for message in server.collect_turn(&id).await {
            seen.push_str(&message.to_string());
        }
    }
    seen.push_str(&server.request_raw("providers/list", None).await.to_string());
    assert!(seen.contains("is wrong"), "the provider's words are shown: {seen}");
    assert!(!seen.contains(KEY));
    let (_, log) = server.leave().await;
    assert!(log.contains("chat/prompt") && log.contains("initialize"), "{log}");
    assert!(!log.contains(KEY), "{log}");
}

#[tokio::test]
async fn a_log_file_is_written_beside_the_log() {
    let launch = Launch::new();
    let file = launch.dirs.root.path().join("eca.log");
    let path = file.display().to_string();
    let server = launch.arguments(&["server", "--log-file", &path]).start().await;
    let dirs = server.dirs.clone();
    assert_eq!(server.leave().await.0, Some(0));
    assert!(!std::fs::read_to_string(file).unwrap().is_empty());
    drop(dirs);
}
