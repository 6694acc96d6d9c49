//! The provider over a real socket: headers, errors, cuts, silence, cancelling, slow consumers.

use std::time::Duration;

use futures_util::StreamExt;
use serde_json::json;

use crate::base::ModelId;
use crate::config::{ModelConfig, ProviderConfig, Secret};
use crate::http;
use crate::llm::{Delta, DeltaStream, ErrorClass, LlmError, Message, Part, Provider, Request, Role, StopReason, Usage};
use crate::providers::dialects::Timeouts;
use crate::providers::dialects::openai_chat::OpenAiChat;
use crate::providers::dialects::testing::mock_llm::{
    CapturedRequest, Gate, HANG_GUARD, MockLlm, Script, Step, Transfer,
};

const KEY: &str = "sk-very-secret";

struct Setup {
    config: ProviderConfig,
    idle: Duration,
}

impl Setup {
    fn new(url: &str) -> Self {
        let config = ProviderConfig { url: Some(format!("{url}/v1/")), ..ProviderConfig::default() };
        Self { config, idle: HANG_GUARD }
    }

    fn model(mut self, model: ModelConfig) -> Self {
        self.config.models.insert("gpt-x".to_owned(), model);
        self
    }

    fn idle(mut self, idle: Duration) -> Self {
        self.idle = idle;
        self
    }

    fn provider(&self) -> OpenAiChat {
        let http = http::Client::new(http::Settings { connect_timeout: Duration::from_secs(5) });
        OpenAiChat::new("acme", &self.config, Some(Secret::new(KEY)), http, Timeouts::new(self.idle))
    }
}

fn request() -> Request {
    Request {
        model: ModelId::new("acme", "gpt-x"),
        system: String::new(),
        messages: vec![Message { role: Role::User, parts: vec![Part::Text("hi".to_owned())] }],
        tools: Vec::new(),
        max_output_tokens: None,
        reasoning: true,
        web_search: false,
        payload: serde_json::Map::new(),
        cache_key: None,
    }
}

async fn next(stream: &mut DeltaStream) -> Option<Result<Delta, LlmError>> {
    tokio::time::timeout(HANG_GUARD, stream.next()).await.expect("the stream is stuck")
}

async fn all(mut stream: DeltaStream) -> (Vec<Delta>, Option<LlmError>) {
    let mut deltas = Vec::new();
    while let Some(item) = next(&mut stream).await {
        match item {
            Ok(delta) => deltas.push(delta),
            Err(error) => {
                assert!(next(&mut stream).await.is_none(), "nothing follows an error");
                return (deltas, Some(error));
            }
        }
    }
    (deltas, None)
}

async fn answer(script: Script) -> (Vec<Delta>, Option<LlmError>) {
    let mock = MockLlm::start().await;
    mock.push(script);
    all(Setup::new(mock.url()).provider().stream(request())).await
}

async fn failure(script: Script) -> LlmError {
    answer(script).await.1.expect("an error")
}

fn text(text: &str) -> Delta {
    Delta::Text(text.to_owned())
}

const USAGE: Delta = Delta::Usage(Usage { input: 8, output: 7, cache_read: 4, cache_write: 0 });
const END: Delta = Delta::Stop(StopReason::EndTurn);

#[tokio::test]
async fn a_normal_answer_and_its_request() {
    let mock = MockLlm::start().await;
    mock.push(Script::text_stream(&["a", "b"]));
    let mut setup = Setup::new(mock.url());
    setup.config.extra_headers.insert("X-Team".to_owned(), "one".to_owned());
    let setup = setup.model(ModelConfig {
        extra_headers: [("x-team".to_owned(), "two".to_owned())].into(),
        ..ModelConfig::default()
    });
    let (deltas, error) = all(setup.provider().stream(request())).await;
    assert_eq!((deltas, error), (vec![Delta::Started, text("a"), text("b"), USAGE, END], None));
    let sent = mock.next_request().await;
    assert_eq!((sent.method.as_str(), sent.path.as_str()), ("POST", "/v1/chat/completions"));
    assert_eq!(sent.header("authorization"), Some("Bearer sk-very-secret"));
    assert_eq!(sent.header("x-llm-application-name"), Some("eca"));
    assert_eq!(sent.header("user-agent"), Some(concat!("eca/", env!("CARGO_PKG_VERSION"))));
    assert_eq!(sent.header("content-type"), Some("application/json"));
    assert_eq!(sent.header("x-team"), Some("two"));
    assert_eq!(sent.body["messages"], json!([{"role": "user", "content": "hi"}]));
}

#[tokio::test]
async fn reasoning_and_tools() {
    let (deltas, _) = answer(Script::reasoning(&["hm"], &["x"])).await;
    assert_eq!(deltas[1], Delta::Reasoning("hm".to_owned()));
    assert!(matches!(deltas[2], Delta::ReasoningEnd { replay: Some(_) }));
    assert_eq!(deltas[3..], [text("x"), USAGE, END]);
    let (deltas, _) = answer(Script::tool_call("id1", "ls", &["{\"a\"", ":1}"]).split_every(7)).await;
    let expected = [
        Delta::ToolCallStart { index: 0, id: "id1".to_owned(), name: "ls".to_owned() },
        Delta::ToolCallArguments { index: 0, text: "{\"a\"".to_owned() },
        Delta::ToolCallArguments { index: 0, text: ":1}".to_owned() },
        USAGE,
        Delta::Stop(StopReason::ToolCalls),
    ];
    assert_eq!(deltas[1..], expected);
}

#[tokio::test]
async fn deltas_come_as_soon_as_they_are_sent() {
    let mock = MockLlm::start().await;
    let gate = Gate::new();
    mock.push(Script::stream().text("a").gate(&gate).text("b").gate(&gate).finish("stop"));
    let mut stream = Setup::new(mock.url()).provider().stream(request());
    assert_eq!(next(&mut stream).await, Some(Ok(Delta::Started)));
    assert_eq!(next(&mut stream).await, Some(Ok(text("a"))));
    gate.open();
    assert_eq!(next(&mut stream).await, Some(Ok(text("b"))));
    gate.open();
    assert_eq!(all(stream).await, (vec![USAGE, END], None));
}

#[tokio::test]
async fn connections_are_used_again() {
    let mock = MockLlm::start().await;
    mock.respond_with(|_: &CapturedRequest| Script::text_stream(&["x"]));
    let provider = Setup::new(mock.url()).provider();
    // A connection returns to the pool in its own time, and a request that comes sooner opens
    // another one; but sooner or later one is used again.
    for answers in 1..=100 {
        let (_, error) = all(provider.stream(request())).await;
        assert_eq!(error, None);
        if mock.connections() < answers {
            return;
        }
    }
    panic!("no connection was used twice");
}

#[tokio::test]
async fn statuses_become_classes() {
    let body = r#"{"error":{"message":"bad sk-very-secret"}}"#;
    for (code, class) in [
        (400, ErrorClass::BadRequest),
        (401, ErrorClass::Auth),
        (404, ErrorClass::BadRequest),
        (413, ErrorClass::ContextOverflow),
        (429, ErrorClass::RateLimited),
        (503, ErrorClass::Overloaded),
    ] {
        let (deltas, error) = answer(Script::status(code, &[("retry-after", "3")], body)).await;
        let error = error.unwrap();
        assert_eq!((deltas, error.class, error.provider.as_str()), (vec![], class, "acme"), "{code}");
        assert_eq!(error.retry_after, Some(Duration::from_secs(3)));
        assert!(error.user_text.contains("bad ****") && !error.user_text.contains(KEY), "{}", error.user_text);
    }
}

#[tokio::test]
async fn an_error_body_that_never_ends_is_cut() {
    let script = Script { status: 500, ..Script::stream() };
    let error = failure(script.step(Step::Repeat { times: 1000, chunk: vec![b'x'; 1024].into() }).hang_here()).await;
    assert_eq!(error.class, ErrorClass::Overloaded);
    assert!(error.user_text.len() < 700);
}

#[tokio::test]
async fn a_redirect_to_another_host_is_not_followed() {
    let other = MockLlm::start().await;
    other.respond_with(|_| Script::text_stream(&["stolen"]));
    let target = format!("{}/v1/chat/completions", other.url());
    let error = failure(Script::status(307, &[("location", &target)], "")).await;
    assert_eq!(error.class, ErrorClass::BadRequest);
    assert!(error.user_text.contains(other.url()), "{}", error.user_text);
    assert_eq!(other.connections(), 0);
}

#[tokio::test]
async fn a_redirect_on_the_same_host_keeps_the_request() {
    let mock = MockLlm::start().await;
    mock.push(Script::status(308, &[("location", "/v2/chat")], ""));
    mock.push(Script::text_stream(&["x"]));
    let (_, error) = all(Setup::new(mock.url()).provider().stream(request())).await;
    assert_eq!(error, None);
    let (first, second) = (mock.next_request().await, mock.next_request().await);
    assert_eq!((second.path.as_str(), &second.body), ("/v2/chat", &first.body));
}

#[tokio::test]
async fn a_server_that_is_not_there() {
    let url = MockLlm::start().await.url().to_owned();
    let (_, error) = all(Setup::new(&url).provider().stream(request())).await;
    let error = error.unwrap();
    assert_eq!(error.class, ErrorClass::Network);
    assert!(error.user_text.contains("Is the server running") && error.user_text.contains(&url), "{}", error.user_text);
}

#[tokio::test]
async fn settings_that_cannot_work_say_so() {
    for url in [None, Some(""), Some("localhost:1234"), Some("ftp://x")] {
        let mut setup = Setup::new("http://127.0.0.1:1");
        setup.config.url = url.map(str::to_owned);
        let (_, error) = all(setup.provider().stream(request())).await;
        let error = error.unwrap();
        assert_eq!(error.class, ErrorClass::BadRequest, "{url:?}");
        assert!(error.user_text.contains("url"), "{}", error.user_text);
    }
    let setup = Setup::new("http://127.0.0.1:1");
    let http = http::Client::new(http::Settings { connect_timeout: Duration::from_secs(5) });
    let key = Some(Secret::new("line\nbreak"));
    let provider = OpenAiChat::new("acme", &setup.config, key, http, Timeouts::new(HANG_GUARD));
    assert_eq!(all(provider.stream(request())).await.1.unwrap().class, ErrorClass::Auth);
}

#[tokio::test]
async fn a_cut_connection_gives_what_came_and_an_error() {
    let script = Script::text_stream(&["a", "b"]);
    let (deltas, error) = answer(script.cut_after(200)).await;
    assert_eq!(deltas, vec![Delta::Started, text("a")]);
    assert_eq!(error.unwrap().class, ErrorClass::Network);
    let (deltas, error) = answer(Script::stream().thought("a")).await;
    assert!(matches!(deltas[..], [Delta::Started, Delta::Reasoning(_), Delta::ReasoningEnd { .. }]), "{deltas:?}");
    assert_eq!(error.unwrap().class, ErrorClass::PrematureStop);
}

#[tokio::test]
async fn a_cut_after_the_last_word_is_no_failure() {
    let finish = json!({"choices": [{"index": 0, "delta": {"content": "x"}, "finish_reason": "stop"}]}).to_string();
    let script = Script::stream().data(&finish).step(Step::Cut);
    assert_eq!(answer(script).await, (vec![Delta::Started, text("x"), END], None));
    let until_close = Script { transfer: Transfer::UntilClose, ..Script::stream().data(&finish) };
    assert_eq!(answer(until_close).await, (vec![Delta::Started, text("x"), END], None));
}

#[tokio::test]
async fn errors_and_nonsense_inside_the_stream() {
    let (deltas, error) = answer(Script::stream().text("a").data(r#"{"error":{"message":"m","code":503}}"#)).await;
    assert_eq!(deltas, vec![Delta::Started, text("a")]);
    assert_eq!(error.unwrap().class, ErrorClass::Overloaded);
    assert_eq!(failure(Script::sse(&["nonsense"])).await.class, ErrorClass::Protocol);
    assert_eq!(failure(Script::stream().bytes(b"data: \xFF\n\n")).await.class, ErrorClass::Protocol);
    let page = failure(Script::status(200, &[("content-type", "text/html")], "<html>")).await;
    assert_eq!(page.class, ErrorClass::Protocol);
    assert!(page.user_text.contains("web page"));
    let error = json!({"error": {"message": "m", "type": "invalid_request_error"}});
    assert_eq!(failure(Script::json(&error)).await.class, ErrorClass::BadRequest);
}

#[tokio::test]
async fn silence_is_given_up() {
    let idle = Duration::from_millis(50);
    for script in [Script::stream().text("a").hang_here(), Script::hang()] {
        let mock = MockLlm::start().await;
        mock.push(script);
        let (_, error) = all(Setup::new(mock.url()).idle(idle).provider().stream(request())).await;
        let error = error.unwrap();
        assert_eq!(error.class, ErrorClass::Network);
        assert!(error.user_text.contains("streamIdleTimeoutSeconds"), "{}", error.user_text);
        mock.connection_closed().await;
    }
}

/// The pause is longer than the limit, and nothing was sent in it either: only a watchdog that
/// counts while nobody polls would fire.
#[tokio::test]
async fn a_slow_consumer_does_not_trip_the_watchdog() {
    let mock = MockLlm::start().await;
    let gate = Gate::new();
    let idle = Duration::from_millis(100);
    mock.push(Script::stream().text("a").gate(&gate).text("b").finish("stop"));
    let mut stream = Setup::new(mock.url()).idle(idle).provider().stream(request());
    assert_eq!(next(&mut stream).await, Some(Ok(Delta::Started)));
    assert_eq!(next(&mut stream).await, Some(Ok(text("a"))));
    assert!(futures_util::FutureExt::now_or_never(stream.next()).is_none(), "the watchdog is armed, then left alone");
    let pause = tokio::time::Instant::now();
    while pause.elapsed() < idle * 3 {
        tokio::task::yield_now().await;
    }
    gate.open();
    assert_eq!(next(&mut stream).await, Some(Ok(text("b"))));
    assert_eq!(all(stream).await, (vec![USAGE, END], None));
}

#[tokio::test]
async fn dropping_the_stream_closes_the_connection() {
    let mock = MockLlm::start().await;
    mock.push(Script::stream().text("a").hang_here());
    let mut stream = Setup::new(mock.url()).provider().stream(request());
    assert_eq!(next(&mut stream).await, Some(Ok(Delta::Started)));
    assert_eq!(next(&mut stream).await, Some(Ok(text("a"))));
    drop(stream);
    mock.connection_closed().await;
    // Also before the head has come.
    mock.push(Script::hang());
    let mut stream = Setup::new(mock.url()).provider().stream(request());
    tokio::select! {
        item = next(&mut stream) => panic!("{item:?}"),
        () = async { mock.next_request().await; mock.next_request().await; } => {}
    }
    drop(stream);
    mock.connection_closed().await;
}

#[tokio::test]
async fn an_answer_in_one_piece() {
    let extra = json!({"stream": false});
    let model = ModelConfig { extra_payload: extra.as_object().unwrap().clone(), ..ModelConfig::default() };
    let mock = MockLlm::start().await;
    mock.push(Script::json(&json!({
        "choices": [{"index": 0, "message": {"role": "assistant", "content": "x"}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 8, "completion_tokens": 7},
    })));
    let (deltas, error) = all(Setup::new(mock.url()).model(model).provider().stream(request())).await;
    let usage = Delta::Usage(Usage { input: 8, output: 7, cache_read: 0, cache_write: 0 });
    assert_eq!((deltas, error), (vec![Delta::Started, text("x"), usage, END], None));
    let sent = mock.next_request().await;
    assert_eq!(sent.body["stream"], json!(false));
    assert_eq!(sent.body.get("stream_options"), None);
}

#[tokio::test]
async fn an_answer_without_end_is_cut() {
    let mock = MockLlm::start().await;
    let piece = "x".repeat(256 * 1024);
    mock.push(Script::stream().flood(1000, &piece).hang_here());
    let mut stream = Setup::new(mock.url()).provider().stream(request());
    let mut bytes = 0;
    let error = loop {
        match next(&mut stream).await.unwrap() {
            Ok(Delta::Text(text)) => bytes += text.len(),
            Ok(_) => {}
            Err(error) => break error,
        }
    };
    assert_eq!(bytes, 32 * 1024 * 1024);
    assert_eq!(error.class, ErrorClass::BadRequest);
    assert!(error.user_text.contains("32 MiB"), "{}", error.user_text);
    mock.connection_closed().await;
}

#[tokio::test]
async fn models_are_listed() {
    let mock = MockLlm::start().await;
    mock.push(Script::models(&["a", "b"]));
    let mut setup = Setup::new(mock.url());
    let names: Vec<String> = setup.provider().list_models().await.unwrap().into_iter().map(|m| m.name).collect();
    assert_eq!(names, ["a", "b"]);
    let sent = mock.next_request().await;
    assert_eq!((sent.method.as_str(), sent.path.as_str()), ("GET", "/v1/models"));
    assert_eq!(sent.header("authorization"), Some("Bearer sk-very-secret"));
    mock.push(Script::status(401, &[], ""));
    assert_eq!(setup.provider().list_models().await.unwrap_err().class, ErrorClass::Auth);
    mock.push(Script::json(&json!({"hello": 1})));
    assert_eq!(setup.provider().list_models().await.unwrap_err().class, ErrorClass::Protocol);
    setup.config.url = None;
    assert_eq!(setup.provider().list_models().await.unwrap_err().class, ErrorClass::BadRequest);
}

#[tokio::test]
async fn many_answers_at_once() {
    const ANSWERS: usize = 200;
    let mock = MockLlm::start().await;
    let gate = Gate::new();
    let held = gate.clone();
    mock.respond_with(move |_| Script::stream().text("a").gate(&held).finish("stop"));
    let provider = Setup::new(mock.url()).provider();
    let mut streams: Vec<DeltaStream> = (0..ANSWERS).map(|_| provider.stream(request())).collect();
    for stream in &mut streams {
        assert_eq!(next(stream).await, Some(Ok(Delta::Started)));
        assert_eq!(next(stream).await, Some(Ok(text("a"))));
    }
    assert_eq!(mock.connections(), ANSWERS);
    (0..ANSWERS).for_each(|_| gate.open());
    for stream in streams {
        assert_eq!(all(stream).await, (vec![USAGE, END], None));
    }
}
