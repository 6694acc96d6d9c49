//! The provider over a real socket.

use serde_json::json;

use crate::config::{ModelConfig, ProviderConfig};
use crate::llm::{Delta, ErrorClass, Provider};
use crate::providers::dialects::openai_responses::OpenAiResponses;
use crate::providers::dialects::testing::mock_llm::{MockLlm, Script};
use crate::providers::dialects::testing::{END, KEY, all, parts, request, said, settings, text, usage, user};

fn provider(config: &ProviderConfig) -> OpenAiResponses {
    let (key, http, timeouts) = parts();
    OpenAiResponses::new("acme", config, key, http, timeouts)
}

fn stream() -> Script {
    let delta = json!({"type": "response.output_text.delta", "item_id": "m", "output_index": 0, "delta": "x"});
    let end = json!({"type": "response.completed", "response": {"status": "completed", "output": [],
        "usage": {"input_tokens": 3, "output_tokens": 2}}});
    Script::sse(&[&delta.to_string(), &end.to_string()])
}

#[tokio::test]
async fn a_normal_answer_and_its_request() {
    let mock = MockLlm::start().await;
    for suffix in ["", "/", "/v1"] {
        mock.push(stream());
        let provider = provider(&settings(&format!("{}{suffix}", mock.url())));
        let answer = all(provider.stream(request("gpt-5", vec![user(vec![said("hi")])]))).await;
        assert_eq!(answer, (vec![Delta::Started, text("x"), usage(3, 2, 0), END], None));
        let sent = mock.next_request().await;
        assert_eq!((sent.method.as_str(), sent.path.as_str()), ("POST", "/v1/responses"));
        assert_eq!(sent.header("authorization"), Some("Bearer sk-very-secret"));
        assert_eq!((&sent.body["model"], &sent.body["store"]), (&json!("gpt-5"), &json!(false)));
    }
}

#[tokio::test]
async fn another_path_and_an_answer_in_one_piece() {
    let mock = MockLlm::start().await;
    let output = json!([{"type": "message", "content": [{"type": "output_text", "text": "x"}]}]);
    mock.push(Script::json(&json!({"status": "completed", "output": output})));
    let path = "/openai/responses?api-version=1";
    let mut config = settings(&format!("{}/v1", mock.url()));
    config.completion_url_relative_path = Some(path.to_owned());
    let extra = json!({"stream": false}).as_object().unwrap().clone();
    config.models.insert("m".to_owned(), ModelConfig { extra_payload: extra, ..ModelConfig::default() });
    let answer = all(provider(&config).stream(request("m", vec![]))).await;
    assert_eq!(answer, (vec![Delta::Started, text("x"), END], None));
    let sent = mock.next_request().await;
    assert_eq!((sent.path.as_str(), &sent.body["stream"]), ("/v1/openai/responses?api-version=1", &json!(false)));
}

#[tokio::test]
async fn errors_have_classes_and_no_secrets() {
    let mock = MockLlm::start().await;
    let provider = provider(&settings(mock.url()));
    let event = |code: &str| Script::sse(&[&json!({"type": "error", "code": code, "message": KEY}).to_string()]);
    let body = json!({"error": {"message": KEY, "code": "context_length_exceeded"}}).to_string();
    for (script, class) in [
        (Script::status(401, &[], &body), ErrorClass::Auth),
        (Script::status(400, &[], &body), ErrorClass::ContextOverflow),
        (event("rate_limit_exceeded"), ErrorClass::RateLimited),
        (event("server_error"), ErrorClass::Overloaded),
        (stream().cut_after(60), ErrorClass::Network),
        (Script::sse(&[]), ErrorClass::PrematureStop),
    ] {
        mock.push(script);
        let error = all(provider.stream(request("m", vec![]))).await.1.unwrap();
        assert_eq!(error.class, class, "{}", error.user_text);
        assert!(!error.user_text.contains(KEY), "{}", error.user_text);
    }
    let error = all(self::provider(&ProviderConfig::default()).stream(request("m", vec![]))).await.1.unwrap();
    assert!(error.user_text.contains("providers.acme.url"), "{}", error.user_text);
}

#[tokio::test]
async fn models_are_listed() {
    let mock = MockLlm::start().await;
    mock.push(Script::models(&["a", "b"]));
    let found = provider(&settings(mock.url())).list_models().await.unwrap();
    assert_eq!(found.iter().map(|model| model.name.as_str()).collect::<Vec<_>>(), ["a", "b"]);
    assert_eq!(mock.next_request().await.path, "/v1/models");
}
