//! Tool calls that cannot run: each is answered with an error and the model goes on.

use serde_json::{Value, json};

use crate::mock_llm::{MockLlm, Script};
use crate::peer::outline::{contents, text_by};
use crate::peer::{is_finished, outline};
use crate::server::TestServer;

#[tokio::test]
async fn an_unknown_tool_is_an_error_for_the_model_which_goes_on() {
    let model = MockLlm::start().await;
    model.push(Script::tool_call("call_1", "eca__read_mind", &["{\"path\":", "\"/a\", \"n\": 3}"]));
    model.push(Script::text_stream(&["never mind"]));
    let mut server = TestServer::with(&model).start().await;
    server.start_prompt(Some("c"), "hi");
    let turn = server.everything_until("the end", |message| is_finished(message, "c")).await;
    assert_eq!(
        outline(&turn)[6..],
        [
            "progress Generating",
            "toolCallPrepare call_1",
            "usage",
            "toolCallRun call_1",
            "toolCallRunning call_1",
            "toolCalled call_1",
            "assistant \"never mind\"",
            "usage",
            "status idle",
            "finished"
        ]
    );
    let prepared = contents("toolCallPrepare", &turn);
    assert_eq!(prepared[0]["argumentsText"], "");
    let text: String = prepared.iter().map(|content| content["argumentsText"].as_str().unwrap()).collect();
    let arguments: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(contents("toolCallRun", &turn)[0]["arguments"], arguments);
    assert_eq!(contents("toolCallRun", &turn)[0]["manualApproval"], false);
    for kind in ["toolCallPrepare", "toolCallRun", "toolCallRunning", "toolCalled"] {
        for content in contents(kind, &turn) {
            assert_eq!(content["name"], "read_mind", "{content}");
            assert_eq!((&content["server"], &content["origin"]), (&json!("eca"), &json!("native")));
        }
    }
    let called = contents("toolCalled", &turn)[0];
    assert_eq!(called["error"], true);
    assert!(called["outputs"][0]["text"].as_str().unwrap().contains("read_mind"), "{called}");
    assert!(called["totalTimeMs"].is_u64());
    model.next_request().await;
    let second = model.next_request().await;
    let messages = second.body["messages"].as_array().unwrap();
    let [.., call, result] = &messages[..] else { panic!("{messages:?}") };
    assert_eq!(call["tool_calls"][0]["function"]["name"], "eca__read_mind");
    assert_eq!((&result["role"], &result["tool_call_id"]), (&json!("tool"), &call["tool_calls"][0]["id"]));
    server.finish().await;
}

#[tokio::test]
async fn a_tool_id_that_comes_again_is_another_call_on_the_wire() {
    let model = MockLlm::start().await;
    model.respond_with(|request| {
        match request.body["messages"].as_array().unwrap().last().unwrap()["role"] == "tool" {
            true => Script::text_stream(&["done"]),
            false => Script::tool_call("call_1", "grep", &["{}"]),
        }
    });
    let mut server = TestServer::with(&model).start().await;
    let mut ids = Vec::new();
    for _ in 0..2 {
        let turn = server.turn("c", "hi").await;
        let called = contents("toolCalled", &turn);
        assert_eq!(called.len(), 1);
        let id = called[0]["id"].as_str().unwrap().to_owned();
        assert_eq!(contents("toolCallPrepare", &turn)[0]["id"], id);
        ids.push(id);
    }
    assert_ne!(ids[0], ids[1]);
    server.finish().await;
}

#[tokio::test]
async fn arguments_that_are_no_json_are_an_error_output() {
    let model = MockLlm::start().await;
    model.push(Script::tool_call("call_1", "grep", &["{\"pattern\": \"x"]));
    model.push(Script::text_stream(&["sorry"]));
    let mut server = TestServer::with(&model).start().await;
    let turn = server.turn("c", "hi").await;
    let called = contents("toolCalled", &turn)[0];
    assert_eq!((&called["error"], &called["arguments"]), (&json!(true), &json!({})));
    assert!(called["outputs"][0]["text"].as_str().unwrap().contains("JSON"), "{called}");
    assert_eq!(text_by("assistant", &turn), "sorry");
    server.finish().await;
}

#[tokio::test]
async fn several_calls_in_one_answer_are_each_closed_once() {
    let model = MockLlm::start().await;
    model.push(Script::stream().call(0, "a", "grep", &["{}"]).call(1, "b", "ls", &["{}"]).finish("tool_calls"));
    model.push(Script::text_stream(&["ok"]));
    let mut server = TestServer::with(&model).start().await;
    let turn = server.turn("c", "hi").await;
    let called: Vec<&str> = contents("toolCalled", &turn).iter().map(|call| call["id"].as_str().unwrap()).collect();
    assert_eq!(called, ["a", "b"]);
    let second = {
        model.next_request().await;
        model.next_request().await
    };
    let results = second.body["messages"].as_array().unwrap().iter().filter(|message| message["role"] == "tool");
    assert_eq!(results.count(), 2);
    server.finish().await;
}

#[tokio::test]
async fn a_turn_ends_after_the_configured_number_of_model_calls() {
    let model = MockLlm::start().await;
    model.respond_with(|request| {
        let number = request.body["messages"].as_array().unwrap().len();
        Script::tool_call("", "grep", &[&format!("{{\"n\": {number}}}")])
    });
    let mut server = TestServer::with(&model).config(json!({"chat": {"maxSteps": 3}})).start().await;
    let turn = server.turn("c", "hi").await;
    assert_eq!(contents("toolCalled", &turn).len(), 3);
    let notice = text_by("system", &turn);
    assert!(notice.contains("3 model calls") && notice.contains("chat.maxSteps"), "{notice:?}");
    assert_eq!(outline(&turn)[outline(&turn).len() - 3..], ["system text", "status idle", "finished"]);
    server.finish().await;
}

#[tokio::test]
async fn a_model_that_repeats_itself_is_noticed_once() {
    let model = MockLlm::start().await;
    model.respond_with(|_| Script::tool_call("", "grep", &["{\"same\": true}"]));
    let mut server = TestServer::with(&model).config(json!({"chat": {"maxSteps": 9}})).start().await;
    let turn = server.turn("c", "hi").await;
    let notice = text_by("system", &turn);
    assert_eq!(notice.matches("same arguments").count(), 1, "{notice:?}");
    server.finish().await;
}
