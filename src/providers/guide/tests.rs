//! Tests of the guide: every answer is well formed, every demonstration demonstrates.

use serde_json::{Value, json};

use super::*;
use crate::llm::ToolSpec;
use crate::providers::registry::{KeySource, ProviderState};

fn view() -> GuideView {
    GuideView {
        config_path: "/home/me/.config/eca/config.json".into(),
        version: "1.2.3".into(),
        local_discovery: true,
        ..GuideView::default()
    }
}

fn provider(id: &str, model_count: usize, local: bool) -> ProviderView {
    ProviderView {
        id: id.into(),
        api: "openai-chat".into(),
        url: "http://127.0.0.1:9/v1".into(),
        has_key: false,
        key_source: KeySource::None,
        ways: Vec::new(),
        expires_at: None,
        label: None,
        state: ProviderState::Local,
        model_count,
        local,
        configured: !local,
    }
}

fn user(text: &str) -> Message {
    Message { role: Role::User, parts: vec![Part::Text(text.into())] }
}

fn request(text: &str) -> Request {
    Request {
        model: Guide::model().id,
        system: "You help in /home/me/project today.".into(),
        messages: vec![user(text)],
        tools: Vec::new(),
        max_output_tokens: None,
        reasoning: true,
        web_search: false,
        payload: serde_json::Map::new(),
        cache_key: None,
    }
}

fn tool(name: &str, parameters: Value) -> ToolSpec {
    ToolSpec { name: name.into(), description: String::new(), parameters }
}

fn path_schema() -> Value {
    json!({"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]})
}

async fn run_with(view: GuideView, request: Request) -> Vec<Result<Delta, LlmError>> {
    let guide = Guide::new(move || view.clone()).with_pause(Duration::ZERO);
    let deltas: Vec<_> = guide.stream(request).collect().await;
    check_shape(&deltas);
    deltas
}

async fn run(request: Request) -> Vec<Result<Delta, LlmError>> {
    run_with(view(), request).await
}

async fn text_of(view: GuideView, asked: &str) -> String {
    text(&run_with(view, request(asked)).await)
}

fn text(deltas: &[Result<Delta, LlmError>]) -> String {
    deltas.iter().filter_map(|d| if let Ok(Delta::Text(t)) = d { Some(t.as_str()) } else { None }).collect()
}

/// Started once and first; either one Stop, last and after the usage, or one error, last.
fn check_shape(deltas: &[Result<Delta, LlmError>]) {
    let count = |wanted: fn(&Result<Delta, LlmError>) -> bool| deltas.iter().filter(|d| wanted(d)).count();
    assert_eq!(deltas.first(), Some(&Ok(Delta::Started)));
    assert_eq!(count(|d| matches!(d, Ok(Delta::Started))), 1);
    let (stops, errors) = (count(|d| matches!(d, Ok(Delta::Stop(_)))), count(|d| d.is_err()));
    assert_eq!(stops + errors, 1);
    assert!(matches!(deltas.last(), Some(Ok(Delta::Stop(_)) | Err(_))));
    assert_eq!(count(|d| matches!(d, Ok(Delta::Usage(_)))), stops);
    for delta in deltas {
        if let Ok(Delta::Text(text) | Delta::Reasoning(text)) = delta {
            assert!(!text.is_empty() && text.split_whitespace().count() <= 1, "not word-sized: {text:?}");
        }
    }
}

fn json_blocks(markdown: &str) -> Vec<Value> {
    let blocks = markdown.split("```json\n").skip(1).filter_map(|rest| rest.split("\n```").next());
    blocks.map(|block| serde_json::from_str(block).expect("a snippet is JSON")).collect()
}

#[tokio::test]
async fn it_introduces_itself_honestly() {
    let said = text_of(view(), "hello").await;
    assert!(said.contains("**not a language model**"), "{said}");
    assert!(said.contains("1.2.3") && said.contains("/home/me/.config/eca/config.json"), "{said}");
    assert!(said.contains("No provider is configured") && said.contains("Neither Ollama nor LM Studio"), "{said}");
    assert_eq!(json_blocks(&said)[0]["providers"]["local"]["api"], "openai-chat");
    for asked in ["", "connect", "think", "code", "tool", "stream 5 words"] {
        let said = text_of(view(), asked).await.to_lowercase();
        assert!(!said.contains("as an ai") && !said.contains("i am an ai"), "{asked}: {said}");
    }
}

#[tokio::test]
async fn the_next_step_fits_the_machine() {
    let with = |change: fn(&mut GuideView)| {
        let mut view = view();
        change(&mut view);
        view
    };
    let ready = with(|v| v.providers = vec![provider("empty", 0, false), provider("lmstudio", 2, true)]);
    let said = text_of(ready, "hello").await;
    assert!(said.contains("starts with `lmstudio/`") && said.contains("found on this machine"), "{said}");

    let empty_local = with(|v| v.providers = vec![provider("ollama", 0, true)]);
    assert!(text_of(empty_local, "hello").await.contains("`ollama pull <a model>`, then"));

    let silent = with(|v| v.providers = vec![provider("work", 0, false)]);
    assert!(text_of(silent, "hello").await.contains("`work` is configured but named no model"));

    let keyed = with(|v| v.key_variables = vec!["ODD_API_KEY".into()]);
    let said = text_of(keyed, "hello").await;
    assert!(said.contains("(names only): `ODD_API_KEY`") && said.contains("`ANTHROPIC_API_KEY`"), "{said}");

    let off = with(|v| v.local_discovery = false);
    assert!(text_of(off, "hello").await.contains("`localDiscovery: false`"));
}

#[tokio::test]
async fn the_full_how_to_names_every_way() {
    for asked in ["connect", "how do I connect a model that can use tools?", "where does the key go", "Models"] {
        let said = text_of(view(), asked).await;
        for word in [
            "Ollama",
            "LM Studio",
            "llama.cpp",
            "defaultModel",
            "${env:",
            "`MISTRAL_API_KEY`",
            "/home/me/.config/eca/config.json",
        ] {
            assert!(said.contains(word), "{asked}: no {word}");
        }
        assert!(json_blocks(&said).len() >= 2);
    }
}

#[tokio::test]
async fn reasoning_comes_before_the_text_and_is_closed() {
    let deltas = run(request("please think about it")).await;
    let kind = |d: &Result<Delta, LlmError>| match d {
        Ok(Delta::Reasoning(_)) => 'r',
        Ok(Delta::ReasoningEnd { .. }) => 'e',
        Ok(Delta::Text(_)) => 't',
        _ => '-',
    };
    let mut kinds: Vec<char> = deltas.iter().map(kind).collect();
    kinds.dedup();
    assert_eq!(kinds.iter().collect::<String>(), "-ret-");
}

#[tokio::test]
async fn code_is_a_closed_fence() {
    let said = text_of(view(), "show me code").await;
    assert!(said.contains("```rust\n"), "{said}");
    assert_eq!(said.matches("```").count(), 2);
}

#[tokio::test]
async fn as_many_words_as_asked_for() {
    for (asked, count) in [
        ("stream 2000 words", 2_000),
        ("/stream 7", 7),
        ("give me 120 words", 120),
        ("something long", DEFAULT_WORDS),
        ("stream 99999999999999999999999 words", MAX_WORDS),
        ("stream 0 words", 1),
    ] {
        let said = text_of(view(), asked).await;
        assert_eq!(said.split_whitespace().count(), count, "{asked}");
    }
    let deltas = run(request("stream 300 words")).await;
    assert_eq!(deltas.iter().filter(|d| matches!(d, Ok(Delta::Text(_)))).count(), 300);
}

#[tokio::test]
async fn usage_is_estimated_from_what_was_said() {
    let deltas = run(request("stream 100 words")).await;
    let usage = deltas.iter().find_map(|d| if let Ok(Delta::Usage(u)) = d { Some(*u) } else { None });
    let usage = usage.expect("usage");
    assert_eq!(usage.output, tokens(&text(&deltas)));
    assert_eq!(usage.input, tokens("stream 100 words") + tokens("You help in /home/me/project today."));
}

#[tokio::test]
async fn an_error_on_request() {
    let deltas = run(request("show an error")).await;
    let error = deltas.last().cloned().expect("deltas").expect_err("the last one is an error");
    assert_eq!((error.class, error.provider.as_str()), (ErrorClass::Unknown, "eca"));
    assert!(error.user_text.contains("you asked"), "{}", error.user_text);
}

#[tokio::test]
async fn without_tools_it_says_so() {
    let deltas = run(request("use a tool")).await;
    assert!(text(&deltas).contains("offers me no tools"));
    assert_eq!(deltas.last(), Some(&Ok(Delta::Stop(StopReason::EndTurn))));
}

/// Name and arguments of the one call in an answer.
fn call_of(deltas: &[Result<Delta, LlmError>]) -> (String, String, Value) {
    let start = deltas.iter().find_map(|d| match d {
        Ok(Delta::ToolCallStart { index: 0, id, name }) => Some((id.clone(), name.clone())),
        _ => None,
    });
    let (id, name) = start.expect("a call");
    let arguments: String = deltas
        .iter()
        .filter_map(|d| match d {
            Ok(Delta::ToolCallArguments { index: 0, text }) => Some(text.as_str()),
            _ => None,
        })
        .collect();
    (id, name, serde_json::from_str(&arguments).expect("arguments are JSON"))
}

#[tokio::test]
async fn a_tool_round_trip() {
    let mut request = request("call a tool on /tmp/data please");
    request.tools = vec![
        tool("eca__shell_command", json!({"required": ["command"]})),
        tool("eca__grep", json!({"required": ["path", "pattern"]})),
        tool("eca__directory_tree", path_schema()),
    ];
    let deltas = run(request.clone()).await;
    let (id, name, arguments) = call_of(&deltas);
    assert_eq!((name.as_str(), &arguments), ("eca__directory_tree", &json!({"path": "/tmp/data"})));
    assert_eq!(deltas.last(), Some(&Ok(Delta::Stop(StopReason::ToolCalls))));

    let call = Part::ToolCall { id: id.clone(), name, arguments: arguments.to_string(), replay: None };
    request.messages.push(Message { role: Role::Assistant, parts: vec![call] });
    let result = Part::ToolResult { call_id: id.clone(), text: "a\nb ```\nc".into(), images: Vec::new(), error: false };
    request.messages.push(Message { role: Role::User, parts: vec![result] });
    let deltas = run(request.clone()).await;
    let said = text(&deltas);
    assert!(said.contains("3 line(s)") && said.contains("````text\na\nb ```\nc\n````"), "{said}");
    assert_eq!(deltas.last(), Some(&Ok(Delta::Stop(StopReason::EndTurn))));

    // The next request makes a call of its own, under another id.
    request.messages.push(user("another tool"));
    let (next_id, _, arguments) = call_of(&run(request).await);
    assert_ne!(next_id, id);
    assert_eq!(arguments["path"], "/home/me/project");
}

#[tokio::test]
async fn a_failed_tool_is_reported_as_such() {
    let mut request = request("tool");
    let result =
        Part::ToolResult { call_id: "1".into(), text: "rejected by the user".into(), images: Vec::new(), error: true };
    request.messages.push(Message { role: Role::User, parts: vec![result] });
    let said = text(&run(request).await);
    assert!(said.contains("did not succeed") && said.contains("rejected by the user"), "{said}");
}

#[tokio::test]
async fn only_tools_that_read_and_can_be_filled_in_are_called() {
    let mut odd = request("tool");
    odd.tools = vec![
        tool("eca__write_file", path_schema()),
        tool("eca__read_file", path_schema()),
        tool("x__directory_tree", json!({"required": ["mystery"]})),
    ];
    let deltas = run(odd.clone()).await;
    assert!(text(&deltas).contains("`eca__write_file`"));
    assert_eq!(deltas.last(), Some(&Ok(Delta::Stop(StopReason::EndTurn))));

    odd.messages = vec![user("use the tool read_file on ./notes.md")];
    let (_, name, arguments) = call_of(&run(odd).await);
    assert_eq!((name.as_str(), arguments), ("eca__read_file", json!({"path": "./notes.md"})));
}

#[tokio::test]
async fn a_title_is_made_from_the_users_words() {
    let mut request = request("how does the   parser\nwork in this rather large project of ours?");
    request.system = "Give this chat a short title.".into();
    request.reasoning = false;
    assert_eq!(text(&run(request.clone()).await), "How does the parser work in this rather");
    request.messages.clear();
    assert_eq!(text(&run(request.clone()).await), "First steps");
    request.reasoning = true;
    assert!(text(&run(request).await).contains("built-in guide"));
}

#[tokio::test]
async fn contexts_before_the_users_words_are_not_matched() {
    let mut request = request("");
    request.messages[0].parts = vec![Part::Text("file: an error in a tool".into()), Part::Text("hi there".into())];
    assert!(text(&run(request).await).contains("built-in guide"));
}

#[test]
fn long_answers_pause_in_total_no_longer_than_the_limit() {
    assert_eq!(pieces_per_pause(Duration::from_millis(12), 100), 1);
    for (pause, pieces) in [(12, 20_000), (1, 20_000), (5_000, 50), (12, 833)] {
        let pause = Duration::from_millis(pause);
        let pauses = pieces / pieces_per_pause(pause, pieces);
        assert!(pause * u32::try_from(pauses).unwrap() <= LONGEST_SHOW, "{pause:?} {pieces}");
        assert!(pauses > 0, "{pause:?} {pieces}: it still pauses");
    }
}

#[tokio::test]
async fn with_a_pause_the_same_answer_comes() {
    let guide = Guide::new(view).with_pause(Duration::from_millis(1));
    let deltas: Vec<_> = guide.stream(request("stream 9 words")).collect().await;
    assert_eq!(deltas, run(request("stream 9 words")).await);
}
