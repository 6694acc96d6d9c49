//! The provider over a real socket: addresses, both ways to prove who asks, frames, errors.

use std::time::Duration;

use futures_util::StreamExt;
use serde_json::json;

use super::decoding::{exception, frame};
use crate::base::ModelId;
use crate::config::{ModelConfig, ProviderConfig, Secret};
use crate::http;
use crate::llm::{Delta, DeltaStream, ErrorClass, LlmError, Message, Part, Provider, Request, Role, StopReason};
use crate::providers::dialects::Timeouts;
use crate::providers::dialects::bedrock::{AwsAccess, AwsCredentials, Bedrock};
use crate::providers::dialects::testing::mock_llm::{HANG_GUARD, MockLlm, Script};

const KEY: &str = "bedrock-api-key-secret";
const MODEL: &str = "us.anthropic.claude-x-v1:0";

fn access() -> AwsAccess {
    let credentials = AwsCredentials {
        access_key_id: "AKIDEXAMPLE".to_owned(),
        secret_access_key: Secret::new("the-secret-access-key"),
        session_token: Some(Secret::new("the-session-token")),
    };
    AwsAccess { credentials: Some(credentials), region: Some("eu-west-1".to_owned()) }
}

fn provider(config: &ProviderConfig, key: Option<&str>, access: AwsAccess) -> Bedrock {
    let http = http::Client::new(http::Settings { connect_timeout: Duration::from_secs(5) });
    Bedrock::new("bedrock", config, key.map(Secret::new), access, http, Timeouts::new(HANG_GUARD))
}

fn config(url: &str) -> ProviderConfig {
    ProviderConfig { url: Some(url.to_owned()), ..ProviderConfig::default() }
}

fn request() -> Request {
    let messages = vec![Message { role: Role::User, parts: vec![Part::Text("hi".to_owned())] }];
    Request { messages, ..Request::to(ModelId::new("bedrock", MODEL)) }
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

fn stream(frames: &[Vec<u8>]) -> Script {
    let headers = vec![("content-type".to_owned(), "application/vnd.amazon.eventstream".to_owned())];
    Script { headers, ..Script::stream() }.bytes(frames.concat())
}

fn said(text: &str) -> Vec<Vec<u8>> {
    vec![
        frame("messageStart", &json!({"role": "assistant"})),
        frame("contentBlockDelta", &json!({"contentBlockIndex": 0, "delta": {"text": text}})),
        frame("contentBlockStop", &json!({"contentBlockIndex": 0})),
        frame("messageStop", &json!({"stopReason": "end_turn"})),
    ]
}

fn answered(text: &str) -> Vec<Delta> {
    vec![Delta::Started, Delta::Text(text.to_owned()), Delta::Stop(StopReason::EndTurn)]
}

#[tokio::test]
async fn a_bearer_key_and_a_stream_of_frames() {
    let mock = MockLlm::start().await;
    mock.push(stream(&said("hello")).split_every(7));
    let bedrock = provider(&config(&format!("{}/", mock.url())), Some(KEY), access());
    assert_eq!((bedrock.id(), bedrock.dialect()), ("bedrock", "bedrock"));
    assert_eq!(all(bedrock.stream(request())).await, (answered("hello"), None));
    let sent = mock.next_request().await;
    assert_eq!(
        (sent.method.as_str(), sent.path.as_str()),
        ("POST", "/model/us.anthropic.claude-x-v1%3A0/converse-stream")
    );
    assert_eq!(sent.header("authorization"), Some("Bearer bedrock-api-key-secret"));
    assert_eq!((sent.header("x-amz-date"), sent.header("x-amz-security-token")), (None, None));
    assert_eq!(sent.header("accept"), Some("application/vnd.amazon.eventstream, application/json"));
    assert_eq!(sent.body, json!({"messages": [{"role": "user", "content": [{"text": "hi"}]}]}));
}

#[tokio::test]
async fn a_signature_when_there_is_no_key() {
    let mock = MockLlm::start().await;
    mock.push(stream(&said("hello")));
    let bedrock = provider(&config(mock.url()), Some(" "), access());
    assert_eq!(all(bedrock.stream(request())).await, (answered("hello"), None));
    let sent = mock.next_request().await;
    let signature = sent.header("authorization").unwrap();
    let date = sent.header("x-amz-date").unwrap();
    let start = format!(
        "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/{}/eu-west-1/bedrock/aws4_request, \
         SignedHeaders=content-type;host;x-amz-date;x-amz-security-token, Signature=",
        &date[..8]
    );
    assert!(signature.starts_with(&start), "{signature}");
    assert_eq!(sent.header("x-amz-security-token"), Some("the-session-token"));
    assert_eq!(sent.header("content-type"), Some("application/json"));
    assert_eq!(format!("http://{}", sent.header("host").unwrap()), mock.url(), "the signed host is the sent one");
}

#[tokio::test]
async fn without_a_stream_and_under_another_name() {
    let mock = MockLlm::start().await;
    let body = json!({"output": {"message": {"content": [{"text": "whole"}]}}, "stopReason": "end_turn"});
    mock.push(Script::json(&body));
    let mut config = config(mock.url());
    let extra_payload = json!({"stream": false}).as_object().unwrap().clone();
    let model_name = Some("arn:aws:bedrock:eu-west-1:1:inference-profile/x".to_owned());
    config.models.insert(MODEL.to_owned(), ModelConfig { extra_payload, model_name, ..ModelConfig::default() });
    let bedrock = provider(&config, Some(KEY), AwsAccess::default());
    assert_eq!(all(bedrock.stream(request())).await, (answered("whole"), None));
    let path = mock.next_request().await.path;
    assert_eq!(path, "/model/arn%3Aaws%3Abedrock%3Aeu-west-1%3A1%3Ainference-profile%2Fx/converse");
}

#[tokio::test]
async fn what_is_missing_is_named() {
    let nobody = AwsAccess { credentials: None, ..access() };
    let error = all(provider(&config("http://127.0.0.1:1"), None, nobody).stream(request())).await.1.unwrap();
    assert_eq!(error.class, ErrorClass::Auth);
    assert!(error.user_text.contains("AWS_BEARER_TOKEN_BEDROCK"), "{}", error.user_text);
    let nowhere = AwsAccess { region: None, ..access() };
    let error = all(provider(&ProviderConfig::default(), None, nowhere.clone()).stream(request())).await.1.unwrap();
    assert!(error.user_text.contains("AWS_REGION"), "{}", error.user_text);
    let error = all(provider(&config("http://127.0.0.1:1"), None, nowhere).stream(request())).await.1.unwrap();
    assert!(error.user_text.contains("AWS_REGION"), "{}", error.user_text);
}

#[test]
fn the_region_gives_the_address_and_the_address_the_region() {
    let now = "2026-01-02T03:04:05Z".parse().unwrap();
    let call = provider(&ProviderConfig::default(), None, access()).call(&request(), now).unwrap();
    assert!(call.url.starts_with("https://bedrock-runtime.eu-west-1.amazonaws.com/model/"), "{}", call.url);
    let elsewhere = config("https://bedrock-runtime.us-west-2.amazonaws.com");
    let call = provider(&elsewhere, None, access()).call(&request(), now).unwrap();
    let signature = call.headers.get("authorization").unwrap();
    assert!(signature.to_str().unwrap().contains("/20260102/us-west-2/bedrock/"), "{signature:?}");
    assert!(signature.is_sensitive());
}

#[tokio::test]
async fn the_users_own_authorization_comes_first() {
    let mut config = config("http://127.0.0.1:1");
    config.extra_headers.insert("Authorization".to_owned(), "Basic own".to_owned());
    let call = provider(&config, None, access()).call(&request(), jiff::Timestamp::now()).unwrap();
    assert_eq!(call.headers.get("authorization").unwrap(), "Basic own");
    assert!(call.headers.get("x-amz-date").is_none());
}

#[tokio::test]
async fn statuses_exceptions_broken_frames_and_cuts() {
    let mock = MockLlm::start().await;
    let bedrock = provider(&config(mock.url()), None, access());
    for (status, class) in [
        (400, ErrorClass::BadRequest),
        (403, ErrorClass::Auth),
        (429, ErrorClass::RateLimited),
        (503, ErrorClass::Overloaded),
    ] {
        mock.push(Script::status(status, &[], r#"{"message":"no the-secret-access-key the-session-token"}"#));
        let error = all(bedrock.stream(request())).await.1.unwrap();
        assert_eq!(error.class, class, "{status}");
        assert!(error.user_text.contains("no **** ****"), "{}", error.user_text);
    }
    let mut frames = said("x");
    frames.truncate(2);
    frames.push(exception("throttlingException", r#"{"message":"slow down"}"#));
    mock.push(stream(&frames));
    let (deltas, error) = all(bedrock.stream(request())).await;
    assert_eq!((deltas.len(), error.unwrap().class), (2, ErrorClass::RateLimited));

    let mut broken = said("x");
    broken[2][20] ^= 1;
    mock.push(stream(&broken));
    let (deltas, error) = all(bedrock.stream(request())).await;
    assert_eq!((deltas.len(), error.unwrap().class), (2, ErrorClass::Protocol));

    mock.push(stream(&said("x")[..2]));
    let (deltas, error) = all(bedrock.stream(request())).await;
    assert_eq!((deltas.len(), error.unwrap().class), (2, ErrorClass::PrematureStop));
}

#[tokio::test]
async fn only_configured_models_count() {
    assert_eq!(provider(&ProviderConfig::default(), None, access()).list_models().await, Ok(Vec::new()));
}
