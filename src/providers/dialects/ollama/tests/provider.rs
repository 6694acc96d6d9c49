//! The provider over a real socket.

use serde_json::json;

use crate::config::{ModelConfig, ProviderConfig};
use crate::llm::{Delta, ErrorClass, Provider};
use crate::providers::dialects::Capabilities;
use crate::providers::dialects::ollama::Ollama;
use crate::providers::dialects::testing::mock_llm::{MockLlm, Script, Step};
use crate::providers::dialects::testing::{END, all, parts, request, said, settings, text, usage, user};

fn provider(config: &ProviderConfig) -> Ollama {
    let (_, http, timeouts) = parts();
    Ollama::new("acme", config, None, http, timeouts)
}

fn stream(content_type: &str) -> Script {
    let headers = vec![("content-type".to_owned(), content_type.to_owned())];
    Script { headers, ..Script::stream() }
        .bytes("{\"message\":{\"content\":\"a\"},\"done\":false}\n")
        .bytes("{\"message\":{\"content\":\"b\"},\"done\":false}\n")
        .bytes("{\"message\":{\"content\":\"\"},\"done\":true,\"done_reason\":\"stop\",\"prompt_eval_count\":3,\"eval_count\":2}\n")
}

#[tokio::test]
async fn a_normal_answer_and_its_request() {
    let mock = MockLlm::start().await;
    for (suffix, content_type) in [("", "application/x-ndjson"), ("/v1", "application/json")] {
        mock.push(stream(content_type).split_every(7));
        let provider = provider(&settings(&format!("{}{suffix}", mock.url())));
        let found = all(provider.stream(request("m", vec![user(vec![said("hi")])]))).await;
        assert_eq!(found, (vec![Delta::Started, text("a"), text("b"), usage(3, 2, 0), END], None));
        let sent = mock.next_request().await;
        assert_eq!((sent.method.as_str(), sent.path.as_str()), ("POST", "/api/chat"));
        assert_eq!(sent.header("authorization"), None);
    }
}

#[tokio::test]
async fn an_answer_in_one_piece() {
    let mock = MockLlm::start().await;
    mock.push(Script::json(&json!({"message": {"content": "x"}, "done": true, "done_reason": "stop"})));
    let mut config = settings(mock.url());
    let extra = json!({"stream": false}).as_object().unwrap().clone();
    config.models.insert("m".to_owned(), ModelConfig { extra_payload: extra, ..ModelConfig::default() });
    let found = all(provider(&config).stream(request("m", vec![]))).await;
    assert_eq!(found, (vec![Delta::Started, text("x"), END], None));
}

#[tokio::test]
async fn errors_have_classes() {
    let mock = MockLlm::start().await;
    let provider = provider(&settings(mock.url()));
    let body = r#"{"error":"model 'm' not found"}"#;
    for (script, class) in [
        (Script::status(404, &[], body), ErrorClass::BadRequest),
        (stream("application/x-ndjson").cut_after(60), ErrorClass::Network),
        (Script::stream().bytes("{\"error\":\"an internal server error\"}\n"), ErrorClass::Overloaded),
        (Script::stream().bytes("{\"message\":{\"content\":\"a\"}}\n"), ErrorClass::PrematureStop),
        (Script::stream().bytes("\u{fffd}\n"), ErrorClass::Protocol),
        (
            Script::stream().step(Step::Repeat { times: 17 * 1024, chunk: vec![b'x'; 1024].into() }),
            ErrorClass::Protocol,
        ),
    ] {
        mock.push(script);
        let error = all(provider.stream(request("m", vec![]))).await.1.unwrap();
        assert_eq!(error.class, class, "{}", error.user_text);
        assert!(error.class != ErrorClass::BadRequest || error.user_text.contains("not found"), "{}", error.user_text);
    }
}

/// Details that are refused or never come cost the details, not the model.
#[tokio::test]
async fn models_are_listed_with_what_they_can() {
    let mock = MockLlm::start().await;
    mock.respond_with(|request| match (request.path.as_str(), request.body["model"].as_str()) {
        ("/api/tags", _) => Script::json(&json!({"models": [
            {"name": "a"}, {"name": "broken"}, {"name": "stuck"}, {"name": "b"}]})),
        ("/api/show", Some("a")) => Script::json(&json!({"capabilities": ["completion", "thinking", "tools"],
            "model_info": {"general.architecture": "q", "q.context_length": 40_960}})),
        ("/api/show", Some("b")) => Script::json(&json!({"capabilities": ["completion", "vision"]})),
        ("/api/show", Some("stuck")) => Script::hang(),
        ("/api/chat", _) => stream("application/x-ndjson"),
        _ => Script::status(500, &[], ""),
    });
    let provider = provider(&settings(mock.url()));
    let found = provider.list_models().await.unwrap();
    let rows: Vec<_> =
        found.iter().map(|model| (model.name.as_str(), model.context_limit, model.capabilities)).collect();
    let a = Capabilities { tools: true, reasoning: true, vision: false };
    let b = Capabilities { tools: false, reasoning: false, vision: true };
    let expected = [("a", Some(40_960), Some(a)), ("broken", None, None), ("stuck", None, None), ("b", None, Some(b))];
    assert_eq!(rows, expected);
    while mock.try_next_request().await.is_some() {}
    for (name, think) in [("a", Some(json!(true))), ("b", None)] {
        all(provider.stream(request(name, vec![]))).await;
        assert_eq!(mock.next_request().await.body.get("think").cloned(), think, "{name}");
    }
}

#[tokio::test]
async fn a_list_that_is_none() {
    let mock = MockLlm::start().await;
    mock.push(Script::json(&json!({"data": []})));
    let error = provider(&settings(mock.url())).list_models().await.unwrap_err();
    assert_eq!(error.class, ErrorClass::Protocol);
}
