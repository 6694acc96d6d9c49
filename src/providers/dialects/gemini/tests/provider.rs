//! The provider over a real socket.

use serde_json::json;

use crate::config::{ModelConfig, ProviderConfig};
use crate::llm::{Delta, ErrorClass, Provider};
use crate::providers::dialects::gemini::Gemini;
use crate::providers::dialects::testing::mock_llm::{MockLlm, Script};
use crate::providers::dialects::testing::{END, KEY, all, parts, request, said, settings, text, user};

fn provider(config: &ProviderConfig) -> Gemini {
    let (key, http, timeouts) = parts();
    Gemini::new("acme", config, key, http, timeouts)
}

fn answer() -> serde_json::Value {
    json!({"candidates": [{"content": {"parts": [{"text": "x"}]}, "finishReason": "STOP"}]})
}

#[tokio::test]
async fn a_normal_answer_and_its_request() {
    let mock = MockLlm::start().await;
    mock.push(Script::sse(&[&answer().to_string()]).split_every(5));
    let provider = provider(&settings(&format!("{}/v1beta/", mock.url())));
    let found = all(provider.stream(request("gemini-2.5-pro", vec![user(vec![said("hi")])]))).await;
    assert_eq!(found, (vec![Delta::Started, text("x"), END], None));
    let sent = mock.next_request().await;
    assert_eq!(sent.path, "/v1beta/models/gemini-2.5-pro:streamGenerateContent?alt=sse");
    assert_eq!((sent.header("x-goog-api-key"), sent.header("authorization")), (Some(KEY), None));
    assert_eq!(sent.body["contents"][0]["parts"][0]["text"], "hi");
}

#[tokio::test]
async fn an_answer_in_one_piece_under_a_name_that_needs_quoting() {
    let mock = MockLlm::start().await;
    mock.push(Script::json(&answer()));
    let mut config = settings(mock.url());
    let extra = json!({"stream": false}).as_object().unwrap().clone();
    let model = ModelConfig {
        model_name: Some("tunedModels/a b?c".to_owned()),
        extra_payload: extra,
        extra_headers: [("X-Goog-Api-Key".to_owned(), "own".to_owned())].into(),
        ..ModelConfig::default()
    };
    config.models.insert("m".to_owned(), model);
    let found = all(provider(&config).stream(request("m", vec![]))).await;
    assert_eq!(found, (vec![Delta::Started, text("x"), END], None));
    let sent = mock.next_request().await;
    assert_eq!(sent.path, "/v1beta/tunedModels/a%20b%3Fc:generateContent");
    assert_eq!((sent.body.get("stream"), sent.header("x-goog-api-key")), (None, Some("own")));
}

#[tokio::test]
async fn another_path() {
    let mock = MockLlm::start().await;
    mock.push(Script::sse(&[&answer().to_string()]));
    let mut config = settings(mock.url());
    config.completion_url_relative_path = Some("/g/{model}:stream?alt=sse".to_owned());
    all(provider(&config).stream(request("m", vec![]))).await;
    assert_eq!(mock.next_request().await.path, "/g/m:stream?alt=sse");
}

#[tokio::test]
async fn errors_have_classes_and_no_secrets() {
    let mock = MockLlm::start().await;
    let provider = provider(&settings(mock.url()));
    let body = |status: &str| json!([{"error": {"message": KEY, "status": status}}]).to_string();
    let event = json!({"error": {"code": 429, "message": KEY, "status": "RESOURCE_EXHAUSTED"}}).to_string();
    let long = json!({"error": {"code": 400, "message": "The input token count (9) exceeds the maximum number of tokens allowed (8)."}});
    for (script, class) in [
        (Script::status(403, &[], &body("PERMISSION_DENIED")), ErrorClass::Auth),
        (Script::status(503, &[], &body("UNAVAILABLE")), ErrorClass::Overloaded),
        (Script::status(400, &[], &long.to_string()), ErrorClass::ContextOverflow),
        (Script::sse(&[&event]), ErrorClass::RateLimited),
        (Script::sse(&[]), ErrorClass::PrematureStop),
    ] {
        mock.push(script);
        let error = all(provider.stream(request("m", vec![]))).await.1.unwrap();
        assert_eq!(error.class, class, "{}", error.user_text);
        assert!(!error.user_text.contains(KEY), "{}", error.user_text);
    }
}

#[tokio::test]
async fn models_are_listed_page_by_page_and_remembered() {
    let mock = MockLlm::start().await;
    let model = |name: &str, thinking: bool| json!({"name": format!("models/{name}"), "supportedGenerationMethods": ["generateContent"], "thinking": thinking});
    mock.push(Script::json(&json!({"models": [model("gemini-2.5-x", false)], "nextPageToken": "a/b"})));
    mock.push(Script::json(&json!({"models": [model("gemini-1.0-y", true)]})));
    let provider = provider(&settings(mock.url()));
    let found = provider.list_models().await.unwrap();
    assert_eq!(found.iter().map(|model| model.name.as_str()).collect::<Vec<_>>(), ["gemini-2.5-x", "gemini-1.0-y"]);
    assert_eq!(mock.next_request().await.path, "/v1beta/models?pageSize=1000");
    assert_eq!(mock.next_request().await.path, "/v1beta/models?pageSize=1000&pageToken=a%2Fb");
    for (name, asked) in [("gemini-2.5-x", false), ("gemini-1.0-y", true)] {
        mock.push(Script::sse(&[&answer().to_string()]));
        all(provider.stream(request(name, vec![]))).await;
        assert_eq!(mock.next_request().await.body.get("generationConfig").is_some(), asked, "{name}");
    }
}
