//! Models that fail: what the user reads, what is tried again, and that the turn always ends.

use serde_json::{Value, json};

use crate::mock_llm::{MockLlm, Script};
use crate::peer::outline::{contents, text_by};
use crate::peer::{is_finished, outline};
use crate::server::TestServer;

/// Runs one prompt and returns everything that came.
async fn turn(server: &mut TestServer) -> Vec<Value> {
    server.start_prompt(Some("c"), "hi");
    server.everything_until("the end", |message| is_finished(message, "c")).await
}

fn retries(messages: &[Value]) -> Vec<&str> {
    let texts = contents("progress", messages).into_iter().filter_map(|content| content["text"].as_str());
    texts.filter(|text| text.starts_with('⏳')).collect()
}

/// The turn of a call that failed for good without a retry.
const FAILED: [&str; 9] = [
    "chat/opened",
    "progress Starting",
    "user \"hi\\n\"",
    "response",
    "status running",
    "progress Waiting model",
    "system text",
    "status idle",
    "finished",
];

async fn fails_at_once(script: Script, advice: &[&str]) {
    let model = MockLlm::start().await;
    model.push(script);
    let mut server = TestServer::with(&model).start().await;
    let messages = turn(&mut server).await;
    assert_eq!(outline(&messages), FAILED);
    let response = messages.iter().find(|message| message.get("method").is_none()).unwrap();
    assert_eq!(response["result"]["status"], "prompting", "failures of the model come as content");
    let text = text_by("system", &messages);
    for part in ["mock"].iter().chain(advice) {
        assert!(text.contains(part), "{part:?} is not in {text:?}");
    }
    // The chat goes on.
    model.push(Script::text_stream(&["better"]));
    assert_eq!(text_by("assistant", &server.turn("c", "again").await), "better");
    server.finish().await;
}

#[tokio::test]
async fn a_refused_key_is_told_with_the_providers_words() {
    let body = json!({"error": {"message": "Incorrect API key provided"}}).to_string();
    fails_at_once(Script::status(401, &[], &body), &["Incorrect API key provided", "Check the key"]).await;
}

#[tokio::test]
async fn a_bad_request_is_told() {
    let body = json!({"error": {"message": "temperature is too hot"}}).to_string();
    fails_at_once(Script::status(400, &[], &body), &["temperature is too hot", "Check the model m1"]).await;
}

#[tokio::test]
async fn an_unknown_model_or_address_is_told() {
    fails_at_once(Script::status(404, &[], "no such thing"), &["m1", "Check the model's name"]).await;
}

#[tokio::test]
async fn a_rate_limit_with_a_wait_is_waited_for_and_shown_once() {
    let model = MockLlm::start().await;
    model.push(Script::status(429, &[("retry-after", "0")], "slow down"));
    model.push(Script::text_stream(&["now"]));
    let mut server = TestServer::with(&model).start().await;
    let messages = turn(&mut server).await;
    let [shown] = retries(&messages)[..] else { panic!("{:?}", outline(&messages)) };
    assert!(shown.starts_with("⏳ Rate limited. Retrying in "), "{shown}");
    assert!(shown.ends_with("(attempt 1/2)"), "{shown}");
    assert_eq!(text_by("assistant", &messages), "now");
    assert_eq!(text_by("system", &messages), "");
    server.finish().await;
}

#[tokio::test]
async fn a_server_error_is_retried_as_often_as_configured_and_then_told() {
    let model = MockLlm::start().await;
    model.respond_with(|_| Script::status(500, &[], "boom"));
    let mut server = TestServer::with(&model).start().await;
    let messages = turn(&mut server).await;
    let shown = retries(&messages);
    assert_eq!(shown.len(), 2, "{shown:?}");
    assert!(shown[0].starts_with("⏳ Provider overloaded.") && shown[1].ends_with("(attempt 2/2)"), "{shown:?}");
    let text = text_by("system", &messages);
    assert!(text.contains("mock") && text.contains("boom") && text.contains("Try again"), "{text:?}");
    for _ in 0..3 {
        model.next_request().await;
    }
    assert!(model.try_next_request().await.is_none());
    server.finish().await;
}

#[tokio::test]
async fn a_refused_connection_is_retried_and_names_the_address() {
    // A port that was free a moment ago and that nobody listens on.
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let mut server = TestServer::at(&format!("http://{free}")).start().await;
    let messages = turn(&mut server).await;
    assert_eq!(retries(&messages).len(), 2);
    assert!(retries(&messages)[0].starts_with("⏳ Network issues."), "{:?}", retries(&messages));
    let text = text_by("system", &messages);
    assert!(text.contains("mock") && text.contains(&free.to_string()) && text.contains("running"), "{text:?}");
    server.finish().await;
}

#[tokio::test]
async fn a_stream_that_is_cut_keeps_what_came_and_ends_once() {
    let model = MockLlm::start().await;
    model.push(Script::stream().text("the first half").step(crate::mock_llm::Step::Cut));
    let mut server = TestServer::with(&model).config(never_continue()).start().await;
    let messages = turn(&mut server).await;
    assert_eq!(text_by("assistant", &messages), "the first half");
    assert_eq!(retries(&messages), Vec::<&str>::new(), "shown text is not said twice");
    assert_eq!(
        outline(&messages)[6..],
        ["progress Generating", "assistant \"the first half\"", "system text", "status idle", "finished"]
    );
    assert!(text_by("system", &messages).contains("mock"), "{}", text_by("system", &messages));
    // What came is part of the conversation.
    model.push(Script::text_stream(&["ok"]));
    server.turn("c", "go on").await;
    model.next_request().await;
    let request = model.next_request().await;
    assert_eq!(crate::chat::spoken(&request.body)[1], ("assistant", "the first half"));
    server.finish().await;
}

fn never_continue() -> Value {
    serde_json::json!({"providers": {"mock": {"retry": {"maxAutoContinues": 0}}}})
}

#[tokio::test]
async fn a_stream_that_is_cut_is_continued_and_reads_as_one_answer() {
    let model = MockLlm::start().await;
    model.push(Script::stream().text("the first half").step(crate::mock_llm::Step::Cut));
    model.push(Script::text_stream(&[", the second half"]));
    let mut server = TestServer::with(&model).start().await;
    let messages = turn(&mut server).await;
    assert_eq!(text_by("assistant", &messages), "the first half, the second half");
    assert!(outline(&messages).contains(&"progress Response interrupted, continuing...".to_owned()));
    model.next_request().await;
    let continuing = model.next_request().await;
    assert_eq!(crate::chat::spoken(&continuing.body)[1], ("assistant", "the first half"));
    // The request to go on was for that call alone.
    model.push(Script::text_stream(&["ok"]));
    server.turn("c", "and now?").await;
    let later = model.next_request().await;
    let spoken = crate::chat::spoken(&later.body);
    assert_eq!(spoken.len(), 3, "{spoken:?}");
    assert!(spoken[1].1.contains("the first half") && spoken[1].1.contains(", the second half"));
    server.finish().await;
}

#[tokio::test]
async fn an_answer_that_breaks_again_and_again_is_given_up() {
    let model = MockLlm::start().await;
    model.respond_with(|_| Script::stream().text("x").step(crate::mock_llm::Step::Cut));
    let mut server = TestServer::with(&model).start().await;
    let messages = turn(&mut server).await;
    assert_eq!(text_by("assistant", &messages), "xxxx");
    assert!(text_by("system", &messages).contains("mock"));
    server.finish().await;
}

#[tokio::test]
async fn a_cut_inside_reasoning_and_a_tool_call_closes_both() {
    let model = MockLlm::start().await;
    let script = Script::stream().thought("hm").call(0, "call_1", "grep", &["{\"a"]);
    model.push(script.step(crate::mock_llm::Step::Cut));
    let mut server = TestServer::with(&model).start().await;
    let messages = turn(&mut server).await;
    assert_eq!(
        outline(&messages)[6..],
        [
            "progress Generating",
            "reasonStarted",
            "reasonText",
            "reasonFinished",
            "toolCallPrepare call_1",
            "toolCallRejected call_1",
            "system text",
            "status idle",
            "finished"
        ]
    );
    server.finish().await;
}

#[tokio::test]
async fn an_empty_stream_is_retried_and_then_told() {
    let model = MockLlm::start().await;
    model.respond_with(|_| Script::stream().finish("stop"));
    let mut server = TestServer::with(&model).start().await;
    let messages = turn(&mut server).await;
    assert_eq!(retries(&messages).len(), 2);
    assert!(retries(&messages)[0].starts_with("⏳ Empty response."), "{:?}", retries(&messages));
    let text = text_by("system", &messages);
    assert!(text.contains("mock") && text.contains("empty"), "{text:?}");
    server.finish().await;
}

#[tokio::test]
async fn a_body_without_any_event_is_an_error_too() {
    let model = MockLlm::start().await;
    model.respond_with(|_| Script::stream());
    let mut server = TestServer::with(&model).start().await;
    let messages = turn(&mut server).await;
    assert!(text_by("system", &messages).contains("mock"), "{:?}", outline(&messages));
    server.finish().await;
}

#[tokio::test]
async fn a_model_that_falls_silent_is_given_up() {
    let model = MockLlm::start().await;
    model.push(Script::stream().text("and then").hang_here());
    let impatient = json!({"streamIdleTimeoutSeconds": 0.2});
    let mut server = TestServer::with(&model).config(impatient).config(never_continue()).start().await;
    let messages = turn(&mut server).await;
    let text = text_by("system", &messages);
    assert!(text.contains("mock") && text.contains("streamIdleTimeoutSeconds"), "{text:?}");
    assert_eq!(text_by("assistant", &messages), "and then");
    model.connection_closed().await;
    server.finish().await;
}

#[tokio::test]
async fn a_model_that_never_answers_is_given_up_after_its_retries() {
    let model = MockLlm::start().await;
    model.respond_with(|_| Script::hang());
    let mut server = TestServer::with(&model).config(json!({"streamIdleTimeoutSeconds": 0.05})).start().await;
    let messages = turn(&mut server).await;
    assert_eq!(retries(&messages).len(), 2);
    assert!(text_by("system", &messages).contains("sent nothing"), "{}", text_by("system", &messages));
    server.finish().await;
}

#[tokio::test]
async fn stop_during_a_wait_for_the_next_try_ends_at_once() {
    let model = MockLlm::start().await;
    model.respond_with(|_| Script::status(500, &[], "boom"));
    // Far longer than the hang guard: only the stop can end this wait.
    let patient = json!({"providers": {"mock": {"retry": {"baseDelayMs": 3_600_000, "maxDelayMs": 3_600_000}}}});
    let mut server = TestServer::with(&model).config(patient).start().await;
    server.start_prompt(Some("c"), "hi");
    let waiting =
        |message: &Value| message["params"]["content"]["text"].as_str().is_some_and(|text| text.starts_with('⏳'));
    server.everything_until("the wait", waiting).await;
    server.stop("c");
    let messages = server.everything_until("the end", |message| is_finished(message, "c")).await;
    assert_eq!(outline(&messages), ["system text", "status stopping", "status idle", "finished"]);
    server.finish().await;
}

#[tokio::test]
async fn a_key_that_the_provider_repeats_does_not_reach_the_client() {
    let model = MockLlm::start().await;
    let body = json!({"error": {"message": format!("the key {} is wrong", crate::server::KEY)}}).to_string();
    model.push(Script::status(401, &[], &body));
    let mut server = TestServer::with(&model).start().await;
    let text = text_by("system", &turn(&mut server).await);
    assert!(text.contains("is wrong"), "{text:?}");
    let providers = server.request_raw("providers/list", None).await;
    let rows = providers["result"]["providers"].as_array().unwrap();
    let mock = rows.iter().find(|row| row["id"] == "mock").unwrap();
    assert_eq!(mock["auth"]["status"], "authenticated", "{providers}");
    // Every write of every test is searched for the key; see `OneFramePerWrite`.
    server.finish().await;
}

#[tokio::test]
async fn a_web_page_instead_of_an_answer_is_told() {
    let page = Script::status(200, &[("content-type", "text/html")], "<!doctype html><p>login</p>");
    fails_at_once(page, &["url"]).await;
}

#[tokio::test]
async fn an_image_that_the_provider_cannot_use_is_left_out_from_then_on() {
    let model = MockLlm::start().await;
    model.respond_with(|request| match request.body.to_string().contains("image_url") {
        true => Script::status(400, &[], r#"{"error": {"message": "Could not process image"}}"#),
        false => Script::text_stream(&["ok"]),
    });
    let mut server = TestServer::with(&model)
        .config(json!({"providers": {"mock": {"models": {"m1": {"imageInput": true}}}}}))
        .start()
        .await;
    let mut prompt = crate::server::prompt(Some("c"), "what is this?");
    let pixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
    let image = json!([{"type": "image", "mediaType": "image/png", "base64": pixel}]);
    prompt.contexts = serde_json::from_value(image).unwrap();
    server.start::<custom_methods::methods::ChatPrompt>(prompt);
    let turn = server.collect_turn("c").await;
    assert_eq!(text_by("assistant", &turn), "ok", "{turn:?}");
    assert!(text_by("system", &turn).contains("goes on without them"), "{}", text_by("system", &turn));
    let (first, second) = (model.next_request().await, model.next_request().await);
    assert!(first.body.to_string().contains("image_url") && second.body.to_string().contains("[Image: image/png]"));
    server.turn("c", "and now?").await;
    let next = model.next_request().await;
    assert!(!next.body.to_string().contains("image_url"), "it is not tried again");
    assert!(model.try_next_request().await.is_none());
    server.ignore_rest();
    server.finish().await;
}
