//! Ending a turn, at every moment of it.

use serde_json::Value;

use crate::mock_llm::{Gate, MockLlm, Script};
use crate::peer::outline::{contents, text_by};
use crate::peer::{is_finished, outline};
use crate::server::TestServer;

const STOPPED: [&str; 4] = ["system text", "status stopping", "status idle", "finished"];

/// Messages of the chat, up to and including the first that has this type of content.
async fn until_content(server: &mut TestServer, kind: &str) -> Vec<Value> {
    server.everything_until(kind, |message| message["params"]["content"]["type"] == kind).await
}

async fn until_answer(server: &mut TestServer) -> Vec<Value> {
    let is_answer = |message: &Value| message["params"]["role"] == "assistant";
    server.everything_until("the model's words", is_answer).await
}

async fn rest(server: &mut TestServer, chat: &str) -> Vec<String> {
    let messages = server.everything_until("the end", |message| is_finished(message, chat)).await;
    outline(&messages)
}

#[tokio::test]
async fn stopping_a_stream_closes_it_in_the_decided_order() {
    let model = MockLlm::start().await;
    model.push(Script::stream().text("Hello").hang_here());
    let mut server = TestServer::with(&model).start().await;
    server.prompt(Some("c"), "hi").await;
    until_answer(&mut server).await;
    server.stop("c");
    assert_eq!(rest(&mut server, "c").await, STOPPED);
    model.connection_closed().await;
    server.finish().await;
}

#[tokio::test]
async fn stopping_before_the_model_answers_closes_the_request() {
    let model = MockLlm::start().await;
    model.push(Script::hang());
    let mut server = TestServer::with(&model).start().await;
    server.prompt(Some("c"), "hi").await;
    model.next_request().await;
    server.stop("c");
    let turn = server.collect_turn("c").await;
    assert_eq!(outline(&turn)[5..], STOPPED);
    model.connection_closed().await;
    server.finish().await;
}

#[tokio::test]
async fn an_open_reason_is_finished_when_stopped() {
    let model = MockLlm::start().await;
    model.push(Script::stream().thought("hm").hang_here());
    let mut server = TestServer::with(&model).start().await;
    server.prompt(Some("c"), "hi").await;
    until_content(&mut server, "reasonText").await;
    server.stop("c");
    assert_eq!(
        rest(&mut server, "c").await,
        ["system text", "reasonFinished", "status stopping", "status idle", "finished"]
    );
    server.finish().await;
}

#[tokio::test]
async fn open_tool_calls_are_rejected_when_stopped_and_lose_their_half_arguments() {
    let model = MockLlm::start().await;
    let script = Script::stream()
        .thought("hm")
        .call(0, "call_1", "read_file", &["{\"path\":\"/a\"}"])
        .call(1, "call_2", "grep", &["{\"pat"])
        .hang_here();
    model.push(script);
    let mut server = TestServer::with(&model).start().await;
    server.prompt(Some("c"), "hi").await;
    let half = |message: &Value| message["params"]["content"]["argumentsText"] == "{\"pat";
    server.everything_until("half of the arguments", half).await;
    server.stop("c");
    let closing = server.everything_until("the end", |message| is_finished(message, "c")).await;
    assert_eq!(
        outline(&closing),
        [
            "system text",
            "toolCallRejected call_1",
            "toolCallRejected call_2",
            "status stopping",
            "status idle",
            "finished"
        ]
    );
    let rejected = contents("toolCallRejected", &closing);
    assert!(rejected.iter().all(|call| call["reason"] == "user-prompt-stop" && call["server"] == "eca"));
    assert_eq!(rejected[0]["arguments"], serde_json::json!({"path": "/a"}));
    assert_eq!(rejected[1]["arguments"], serde_json::json!({}));
    server.finish().await;
}

#[tokio::test]
async fn stopping_an_idle_or_unknown_chat_is_silent() {
    let model = MockLlm::start().await;
    model.respond_with(|_| Script::text_stream(&["ok"]));
    let mut server = TestServer::with(&model).start().await;
    server.turn("c", "one").await;
    server.stop("c");
    server.stop("never-seen");
    server.stop("");
    // The chat handles its messages in order, so whatever the stop had caused would come first.
    server.start_prompt(Some("c"), "two");
    let turn = server.everything_until("the end", |message| is_finished(message, "c")).await;
    assert_eq!(outline(&turn)[..3], ["progress Starting", "user \"two\\n\"", "response"]);
    assert_eq!(text_by("assistant", &turn), "ok");
    server.finish().await;
}

#[tokio::test]
async fn a_prompt_right_after_a_stop_is_a_turn_of_its_own_and_knows_of_the_stop() {
    let model = MockLlm::start().await;
    model.push(Script::stream().text("Half an").hang_here());
    model.push(Script::text_stream(&["whole"]));
    let mut server = TestServer::with(&model).start().await;
    server.prompt(Some("c"), "one").await;
    until_answer(&mut server).await;
    server.stop("c");
    server.start_prompt(Some("c"), "two");
    assert_eq!(rest(&mut server, "c").await, STOPPED);
    let second = server.everything_until("the end", |message| is_finished(message, "c")).await;
    assert_eq!(
        outline(&second),
        [
            "progress Starting",
            "user \"two\\n\"",
            "response",
            "status running",
            "progress Waiting model",
            "progress Generating",
            "assistant \"whole\"",
            "usage",
            "status idle",
            "finished"
        ]
    );
    model.next_request().await;
    let request = model.next_request().await;
    let spoken = crate::chat::spoken(&request.body);
    assert_eq!(spoken[0], ("user", "one"));
    assert!(spoken[1].0 == "assistant" && spoken[1].1.starts_with("Half an"), "{spoken:?}");
    assert_eq!(spoken[2], ("user", "two"));
    server.finish().await;
}

#[tokio::test]
async fn a_second_prompt_to_a_busy_chat_closes_the_old_turn_first() {
    let model = MockLlm::start().await;
    model.push(Script::stream().text("old").call(0, "call_1", "grep", &["{"]).hang_here());
    model.push(Script::text_stream(&["new"]));
    let mut server = TestServer::with(&model).start().await;
    server.prompt(Some("c"), "one").await;
    until_content(&mut server, "toolCallPrepare").await;
    server.everything_until("the arguments", |message| message["params"]["content"]["argumentsText"] == "{").await;
    server.start_prompt(Some("c"), "two");
    let closing = rest(&mut server, "c").await;
    assert_eq!(closing, ["system text", "toolCallRejected call_1", "status stopping", "status idle", "finished"]);
    let second = server.everything_until("the end", |message| is_finished(message, "c")).await;
    assert_eq!(outline(&second)[..3], ["progress Starting", "user \"two\\n\"", "response"]);
    assert_eq!(text_by("assistant", &second), "new");
    model.connection_closed().await;
    server.finish().await;
}

#[tokio::test]
async fn what_the_model_says_after_the_stop_is_dropped() {
    let model = MockLlm::start().await;
    let gate = Gate::new();
    model.push(Script::stream().text("before").gate(&gate).text("after").finish("stop"));
    let mut server = TestServer::with(&model).start().await;
    server.prompt(Some("c"), "hi").await;
    until_answer(&mut server).await;
    server.stop("c");
    assert_eq!(rest(&mut server, "c").await, STOPPED);
    gate.open();
    // `finish` fails if anything else arrives.
    server.finish().await;
}

#[tokio::test]
async fn shutdown_stops_running_turns_in_the_same_order() {
    let model = MockLlm::start().await;
    model.push(Script::stream().text("Hello").hang_here());
    let mut server = TestServer::with(&model).start().await;
    server.prompt(Some("c"), "hi").await;
    until_answer(&mut server).await;
    let id = server.start_raw("shutdown", None);
    let messages = server.everything_until("the response", |message| message["id"] == id).await;
    assert_eq!(outline(&messages), [&STOPPED[..], &["response"]].concat());
    server.notify_raw("exit", None);
    server.wait_for_end().await;
}
