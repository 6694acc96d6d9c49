//! The provider over a real socket: headers, addresses, errors, pauses, models.

use std::time::Duration;

use futures_util::StreamExt;
use serde_json::{Value, json};

use crate::base::ModelId;
use crate::config::{CacheRetention, ModelConfig, ProviderConfig, Secret};
use crate::http;
use crate::llm::{Delta, DeltaStream, ErrorClass, LlmError, Message, Part, Provider, Request, Role, StopReason, Usage};
use crate::providers::dialects::Timeouts;
use crate::providers::dialects::anthropic::Anthropic;
use crate::providers::dialects::testing::mock_llm::{HANG_GUARD, MockLlm, Script};

const KEY: &str = "sk-ant-very-secret";

fn config(url: &str) -> ProviderConfig {
    ProviderConfig { url: Some(url.to_owned()), ..ProviderConfig::default() }
}

fn provider(config: &ProviderConfig) -> Anthropic {
    let http = http::Client::new(http::Settings { connect_timeout: Duration::from_secs(5) });
    Anthropic::new("anthropic", config, Some(Secret::new(KEY)), http, Timeouts::new(HANG_GUARD))
}

fn request() -> Request {
    let messages = vec![Message { role: Role::User, parts: vec![Part::Text("hi".to_owned())] }];
    Request { messages, ..Request::to(ModelId::new("anthropic", "claude-x")) }
}

async fn all(mut stream: DeltaStream) -> (Vec<Delta>, Option<LlmError>) {
    let mut deltas = Vec::new();
    while let Some(item) = tokio::time::timeout(HANG_GUARD, stream.next()).await.expect("the stream is stuck") {
        match item {
            Ok(delta) => deltas.push(delta),
            Err(error) => return (deltas, Some(error)),
        }
    }
    (deltas, None)
}

fn answer(blocks: &[Value], reason: &str) -> Script {
    let mut events =
        vec![json!({"type": "message_start", "message": {"usage": {"input_tokens": 5, "output_tokens": 1}}})];
    for (index, block) in blocks.iter().enumerate() {
        events.push(json!({"type": "content_block_start", "index": index, "content_block": block}));
        events.push(json!({"type": "content_block_stop", "index": index}));
    }
    events.push(json!({"type": "message_delta", "delta": {"stop_reason": reason}, "usage": {"output_tokens": 3}}));
    events.push(json!({"type": "message_stop"}));
    let texts: Vec<String> = events.iter().map(Value::to_string).collect();
    Script::sse(&texts.iter().map(String::as_str).collect::<Vec<_>>())
}

fn said(text: &str) -> Script {
    answer(&[json!({"type": "text", "text": text})], "end_turn")
}

fn usage(input: u64, output: u64) -> Delta {
    Delta::Usage(Usage { input, output, ..Usage::default() })
}

fn text(text: &str) -> Delta {
    Delta::Text(text.to_owned())
}

const END: Delta = Delta::Stop(StopReason::EndTurn);

#[tokio::test]
async fn a_normal_answer_and_its_request() {
    let mock = MockLlm::start().await;
    mock.push(said("hello"));
    let mut config = config(&format!("{}/", mock.url()));
    config.extra_headers.insert("anthropic-beta".to_owned(), "one".to_owned());
    let model_headers = [("Anthropic-Beta".to_owned(), "two".to_owned())].into();
    config.models.insert("claude-x".to_owned(), ModelConfig { extra_headers: model_headers, ..ModelConfig::default() });
    config.cache_retention = CacheRetention::Long;
    let provider = provider(&config);
    assert_eq!((provider.id(), provider.dialect()), ("anthropic", "anthropic"));
    let (deltas, error) = all(provider.stream(request())).await;
    assert_eq!((deltas, error), (vec![Delta::Started, usage(5, 1), text("hello"), usage(5, 3), END], None));
    let sent = mock.next_request().await;
    assert_eq!((sent.method.as_str(), sent.path.as_str()), ("POST", "/v1/messages"));
    assert_eq!(sent.header("x-api-key"), Some(KEY));
    assert_eq!(sent.header("anthropic-version"), Some("2023-06-01"));
    assert_eq!(sent.header("authorization"), None);
    assert_eq!(sent.header("anthropic-beta"), Some("two"));
    assert_eq!(sent.header("x-llm-application-name"), Some("eca"));
    let mark = &sent.body["messages"][0]["content"][0]["cache_control"];
    assert_eq!(mark, &json!({"type": "ephemeral"}), "the long life is only for the original");
}

#[test]
fn only_the_original_gets_the_long_life() {
    assert!(super::super::is_original("https://api.anthropic.com/v1/messages"));
    assert!(!super::super::is_original("https://api.anthropic.com.evil.test/v1/messages"));
    assert!(!super::super::is_original("https://proxy.test/api.anthropic.com"));
}

#[tokio::test]
async fn addresses() {
    let mock = MockLlm::start().await;
    mock.respond_with(|_| said("x"));
    for (base, path, expected) in [
        ("", None, "/v1/messages"),
        ("/v1/", None, "/v1/messages"),
        ("/api/anthropic", None, "/api/anthropic/v1/messages"),
        ("/base", Some("own?beta=true"), "/base/own?beta=true"),
    ] {
        let mut config = config(&format!("{}{base}", mock.url()));
        config.completion_url_relative_path = path.map(str::to_owned);
        assert_eq!(all(provider(&config).stream(request())).await.1, None);
        assert_eq!(mock.next_request().await.path, expected);
    }
    let (_, error) = all(provider(&ProviderConfig::default()).stream(request())).await;
    assert!(error.unwrap().user_text.contains("providers.anthropic.url"));
}

#[tokio::test]
async fn without_a_stream() {
    let mock = MockLlm::start().await;
    mock.push(Script::json(&json!({"content": [{"type": "text", "text": "whole"}], "stop_reason": "end_turn"})));
    let mut config = config(mock.url());
    let extra_payload = json!({"stream": false}).as_object().unwrap().clone();
    config.models.insert("claude-x".to_owned(), ModelConfig { extra_payload, ..ModelConfig::default() });
    let (deltas, error) = all(provider(&config).stream(request())).await;
    assert_eq!((deltas, error), (vec![Delta::Started, text("whole"), END], None));
    assert_eq!(mock.next_request().await.body["stream"], false);
}

#[tokio::test]
async fn statuses_and_errors_in_the_stream() {
    let mock = MockLlm::start().await;
    let provider = provider(&config(mock.url()));
    for (status, kind, class) in [
        (400, "invalid_request_error", ErrorClass::BadRequest),
        (401, "authentication_error", ErrorClass::Auth),
        (413, "request_too_large", ErrorClass::ContextOverflow),
        (429, "rate_limit_error", ErrorClass::RateLimited),
        (529, "overloaded_error", ErrorClass::Overloaded),
    ] {
        let body = json!({"type": "error", "error": {"type": kind, "message": format!("bad {KEY}")}}).to_string();
        mock.push(Script::status(status, &[("content-type", "application/json"), ("retry-after", "2")], &body));
        let error = all(provider.stream(request())).await.1.unwrap();
        assert_eq!((error.class, error.retry_after), (class, Some(Duration::from_secs(2))), "{status}");
        assert!(error.user_text.contains("bad ****"), "{}", error.user_text);
        mock.push(Script::sse(&[&body]));
        let (deltas, error) = all(provider.stream(request())).await;
        assert_eq!((deltas, error.unwrap().class), (vec![Delta::Started], class), "{kind}");
    }
    mock.push(said("cut").cut_after(300));
    let (deltas, error) = all(provider.stream(request())).await;
    assert!(error.unwrap().class.is_transient());
    assert!(!deltas.contains(&END));
}

#[tokio::test]
async fn a_pause_is_gone_on_with() {
    let mock = MockLlm::start().await;
    let call = json!({"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {"query": "q"}});
    let result = json!({"type": "web_search_tool_result", "tool_use_id": "s1", "content": []});
    let open = json!({"type": "server_tool_use", "id": "s2", "name": "web_search", "input": {}});
    let thinking = json!({"type": "thinking", "thinking": "hm", "signature": "sig"});
    mock.push(answer(
        &[thinking.clone(), json!({"type": "text", "text": "first "}), call.clone(), result.clone(), open.clone()],
        "pause_turn",
    ));
    let late = json!({"type": "web_search_tool_result", "tool_use_id": "s2", "content": []});
    mock.push(answer(&[late.clone(), json!({"type": "text", "text": "second "})], "pause_turn"));
    mock.push(said("third"));
    let (deltas, error) = all(provider(&config(mock.url())).stream(Request { web_search: true, ..request() })).await;
    assert_eq!(error, None);
    let words: String =
        deltas.iter().filter_map(|d| if let Delta::Text(t) = d { Some(t.as_str()) } else { None }).collect();
    assert_eq!(words, "first second third");
    assert_eq!(deltas.iter().filter(|d| matches!(d, Delta::Started | Delta::Stop(_))).count(), 2);
    assert_eq!(deltas[deltas.len() - 2..], [usage(15, 9), END]);
    let (first, second, third) = (mock.next_request().await, mock.next_request().await, mock.next_request().await);
    assert_eq!(first.body["messages"].as_array().unwrap().len(), 1);
    assert_eq!(second.body["messages"][0]["content"][0]["text"], "hi");
    let unfinished = json!([thinking, {"type": "text", "text": "first "}, call, result, open]);
    assert_eq!(second.body["messages"][1], json!({"role": "assistant", "content": unfinished}));
    let mut more = unfinished.as_array().unwrap().clone();
    more.extend([late, json!({"type": "text", "text": "second"})]);
    assert_eq!(third.body["messages"][1], json!({"role": "assistant", "content": more}));
    assert_eq!(third.body["messages"].as_array().unwrap().len(), 2);
}

#[tokio::test]
async fn pauses_have_an_end() {
    let mock = MockLlm::start().await;
    mock.respond_with(|_| answer(&[json!({"type": "text", "text": "x"})], "pause_turn"));
    let (deltas, error) = all(provider(&config(mock.url())).stream(request())).await;
    assert_eq!((deltas.last(), error), (Some(&END), None));
    let mut asked = 0;
    while mock.try_next_request().await.is_some() {
        asked += 1;
    }
    assert_eq!(asked, 9);
}

#[tokio::test]
async fn the_list_of_models() {
    let mock = MockLlm::start().await;
    mock.push(Script::json(&json!({"data": [{"id": "claude-x", "max_input_tokens": 200_000}], "has_more": false})));
    let models = provider(&config(mock.url())).list_models().await.unwrap();
    assert_eq!((models[0].name.as_str(), models[0].context_limit), ("claude-x", Some(200_000)));
    let sent = mock.next_request().await;
    assert_eq!((sent.method.as_str(), sent.path.as_str()), ("GET", "/v1/models?limit=1000"));
    assert_eq!((sent.header("x-api-key"), sent.header("anthropic-version")), (Some(KEY), Some("2023-06-01")));
    mock.push(Script::json(&json!({"oops": 1})));
    assert_eq!(provider(&config(mock.url())).list_models().await.unwrap_err().class, ErrorClass::Protocol);
}

#[tokio::test]
async fn a_key_that_cannot_be_sent_is_not_shown() {
    let http = http::Client::new(http::Settings { connect_timeout: Duration::from_secs(5) });
    let key = Some(Secret::new("bad\nkey"));
    let provider = Anthropic::new("anthropic", &config("http://127.0.0.1:1"), key, http, Timeouts::new(HANG_GUARD));
    let error = all(provider.stream(request())).await.1.unwrap();
    assert_eq!(error.class, ErrorClass::Auth);
    assert!(!error.user_text.contains("bad\nkey"), "{}", error.user_text);
}
