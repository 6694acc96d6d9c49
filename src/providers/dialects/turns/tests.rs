//! Any history becomes a valid one; and what the two dialects need to prove the same of their
//! JSON: histories at random, and a checker.

use std::collections::HashSet;

use proptest::prelude::*;
use serde_json::json;

use super::*;

/// A block of a body, as far as the rules look at it.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::providers::dialects) enum Seen {
    Text(String),
    Picture,
    Call { id: String, name: String },
    Answer { id: String },
    Thinking,
    ServerCall(String),
    ServerAnswer(String),
}

/// Everything a strict vendor checks.
pub(in crate::providers::dialects) fn assert_strict(turns: &[(String, Vec<Seen>)]) {
    assert!(!turns.is_empty(), "no turns");
    assert_eq!(turns[0].0, "user", "the user speaks first");
    assert_eq!(turns.last().unwrap().0, "user", "the user speaks last");
    let mut ids: HashSet<&str> = HashSet::new();
    let mut open: Vec<&str> = Vec::new();
    for (at, (role, blocks)) in turns.iter().enumerate() {
        assert_eq!(role, if at % 2 == 0 { "user" } else { "assistant" }, "roles alternate: {turns:?}");
        assert!(!blocks.is_empty(), "an empty turn: {turns:?}");
        if role == "user" {
            let answers: Vec<&str> = blocks
                .iter()
                .filter_map(|b| if let Seen::Answer { id } = b { Some(id.as_str()) } else { None })
                .collect();
            assert_eq!(answers, open, "every call is answered at once and in order: {turns:?}");
            let first = blocks.iter().take(answers.len()).all(|block| matches!(block, Seen::Answer { .. }));
            assert!(first, "answers come first: {turns:?}");
            open.clear();
        } else {
            let thinking = |block: &Seen| *block == Seen::Thinking;
            assert!(!blocks.last().is_some_and(thinking), "thinking comes last: {turns:?}");
            assert!(!blocks.iter().any(thinking) || blocks.first().is_some_and(thinking), "not first: {turns:?}");
        }
        let mut server: Vec<&str> = Vec::new();
        for block in blocks {
            match (role.as_str(), block) {
                (_, Seen::Text(text)) => assert!(!text.trim().is_empty(), "a blank text: {turns:?}"),
                ("user", Seen::Picture | Seen::Answer { .. }) | ("assistant", Seen::Thinking) => {}
                ("assistant", Seen::Call { id, name }) => {
                    let plain = |text: &str| text.chars().all(|c| c.is_ascii_alphanumeric() || "_-".contains(c));
                    assert!(plain(id) && (1..=64).contains(&id.len()), "{id:?}");
                    assert!(plain(name) && (1..=128).contains(&name.len()), "{name:?}");
                    assert!(ids.insert(id), "an id twice: {turns:?}");
                    open.push(id);
                }
                ("assistant", Seen::ServerCall(id)) => server.push(id),
                ("assistant", Seen::ServerAnswer(id)) => {
                    let at = server.iter().position(|call| call == id).expect("an answer without its call");
                    server.remove(at);
                }
                other => panic!("{other:?} in {turns:?}"),
            }
        }
        assert!(server.is_empty(), "a provider's call without its answer: {turns:?}");
    }
    assert!(open.is_empty(), "calls without answers at the end: {turns:?}");
}

/// The model for which [`history`] holds usable replays of each dialect.
pub(in crate::providers::dialects) fn model() -> ModelId {
    ModelId::new("acme", "anthropic.claude-sonnet-4-6")
}

/// Conversations as no engine should make them.
pub(in crate::providers::dialects) fn history() -> impl Strategy<Value = Vec<Message>> {
    let role = prop_oneof![Just(Role::User), Just(Role::Assistant)];
    let message = (role, prop::collection::vec(part(), 0..5)).prop_map(|(role, parts)| Message { role, parts });
    prop::collection::vec(message, 0..10)
}

fn part() -> impl Strategy<Value = Part> {
    let text = prop_oneof![Just(""), Just(" \n\t"), Just("words"), Just("\u{3000}")].prop_map(str::to_owned);
    let id = prop_oneof![Just(""), Just("a"), Just("b"), Just("x|y:z é"), Just("a_2")].prop_map(str::to_owned);
    let name = prop_oneof![Just("ls"), Just(""), Just("mcp.server/tool"), Just("looooooooooong")]
        .prop_map(|name| name.repeat(1 + name.len() / 10 * 9));
    let arguments = prop_oneof![Just("{\"a\":1}"), Just(""), Just("{"), Just("[1]")].prop_map(str::to_owned);
    let image = prop_oneof![Just("image/png"), Just("image/jpg"), Just("image/tiff"), Just("")].prop_flat_map(|kind| {
        prop_oneof![Just(""), Just("QUJD")]
            .prop_map(move |data| Image { media_type: kind.to_owned(), base64: data.to_owned() })
    });
    prop_oneof![
        3 => text.clone().prop_map(Part::Text),
        1 => image.clone().prop_map(Part::Image),
        2 => (text.clone(), prop::option::of(signed())).prop_map(|(text, replay)| Part::Reasoning { text, replay }),
        3 => (id.clone(), name, arguments).prop_map(|(id, name, arguments)| Part::ToolCall { id, name, arguments, replay: None }),
        3 => (id, text, prop::collection::vec(image, 0..2), any::<bool>())
            .prop_map(|(call_id, text, images, error)| Part::ToolResult { call_id, text, images, error }),
        2 => opaque().prop_map(Part::Opaque),
    ]
}

fn signed() -> impl Strategy<Value = Replay> {
    let data = prop_oneof![
        Just(json!({"model": model().as_str(), "signature": "s"})),
        Just(json!({"model": "acme/other", "signature": "s"})),
        Just(json!({"model": model().as_str(), "signature": ""})),
        Just(json!({"field": "reasoning_content"})),
        Just(Value::Null),
    ];
    (dialect(), data).prop_map(|(dialect, data)| Replay { dialect, data })
}

fn opaque() -> impl Strategy<Value = Replay> {
    let claude = prop_oneof![
        Just(json!({"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {}})),
        Just(json!({"type": "web_search_tool_result", "tool_use_id": "s1", "content": []})),
        Just(json!({"type": "redacted_thinking", "data": "x"})),
        Just(json!("not a block")),
    ];
    let amazon = Just(json!({"reasoningContent": {"redactedContent": "x"}}));
    let from =
        prop_oneof![Just(model().as_str().to_owned()), Just("acme/other".to_owned()), Just("else/where".to_owned())];
    let made = prop_oneof![
        2 => claude.prop_map(|block| ("anthropic", block)),
        1 => amazon.clone().prop_map(|block| ("bedrock", block)),
        1 => amazon.prop_map(|block| ("openai-chat", block)),
    ];
    (from, made).prop_map(|(from, (dialect, block))| Replay {
        dialect: dialect.to_owned(),
        data: json!({"model": from, "block": block}),
    })
}

fn dialect() -> impl Strategy<Value = String> {
    prop_oneof![Just("anthropic"), Just("bedrock"), Just("openai-chat")].prop_map(str::to_owned)
}

fn rules(model: &ModelId) -> Rules<'_> {
    Rules {
        dialect: "anthropic",
        model,
        images: true,
        images_in_results: true,
        tools: true,
        max_name_chars: 64,
        may_end_with_assistant: false,
    }
}

fn user(parts: Vec<Part>) -> Message {
    Message { role: Role::User, parts }
}

fn assistant(parts: Vec<Part>) -> Message {
    Message { role: Role::Assistant, parts }
}

fn text(text: &str) -> Part {
    Part::Text(text.to_owned())
}

fn call(id: &str) -> Part {
    Part::ToolCall { id: id.to_owned(), name: "ls".to_owned(), arguments: "{}".to_owned(), replay: None }
}

fn result(id: &str, text: &str) -> Part {
    Part::ToolResult { call_id: id.to_owned(), text: text.to_owned(), images: Vec::new(), error: false }
}

/// One line per turn: `user: <blocks>`.
fn outline(messages: &[Message]) -> Vec<String> {
    let model = model();
    let shown = |block: &Block<'_>| match block {
        Block::Text(text) => format!("{text:?}"),
        Block::Picture(picture) => picture.format.to_owned(),
        Block::Call { id, .. } => format!("call {id}"),
        Block::Answer(answer) => {
            format!("{} {id}={:?}", if answer.error { "error" } else { "result" }, answer.text, id = answer.id)
        }
        Block::Thinking { text, .. } => format!("thinking {text:?}"),
        Block::Opaque(block) => format!("opaque {}", block["type"].as_str().unwrap_or("?")),
    };
    let turns = strict(messages, rules(&model));
    turns
        .iter()
        .map(|turn| format!("{:?}: {}", turn.role, turn.blocks.iter().map(shown).collect::<Vec<_>>().join(", ")))
        .collect()
}

#[test]
fn results_follow_their_calls_in_the_order_of_the_calls() {
    let found = outline(&[
        user(vec![text("go")]),
        assistant(vec![text("both"), call("a")]),
        assistant(vec![call("b")]),
        user(vec![text("wait"), result("b", "2")]),
        user(vec![result("a", "1"), text("now")]),
    ]);
    let expected = [
        "User: \"go\"",
        "Assistant: \"both\", call a, call b",
        "User: result a=\"1\", result b=\"2\", \"wait\", \"now\"",
    ];
    assert_eq!(found, expected);
}

#[test]
fn what_is_missing_is_made_up_and_what_is_too_much_is_told() {
    let found = outline(&[
        assistant(vec![text("hello")]),
        user(vec![text(" ")]),
        assistant(vec![call("a"), call("")]),
        user(vec![text("stop")]),
        user(vec![result("z", "lost")]),
        assistant(vec![call("a")]),
        user(vec![result("a", "")]),
        user(vec![result("a", "again")]),
        assistant(vec![text("done")]),
    ]);
    let expected = [
        "User: \"(The conversation starts with an earlier answer.)\"",
        "Assistant: \"hello\", call a, call call",
        "User: error a=\"(the call was interrupted and has no result)\", \
         error call=\"(the call was interrupted and has no result)\", \"stop\", \"Result of an earlier tool call: lost\"",
        "Assistant: call a_2",
        "User: result a_2=\"(no output)\", \"Result of an earlier tool call: again\"",
        "Assistant: \"done\"",
        "User: \"Continue.\"",
    ];
    assert_eq!(found, expected);
    assert_eq!(outline(&[]), ["User: \"Continue.\""]);
    assert_eq!(outline(&[assistant(vec![]), user(vec![text("")])]), ["User: \"Continue.\""]);
}

#[test]
fn thinking_goes_back_only_to_who_thought_it() {
    let thought = |dialect: &str, model: &str, words: &str| Part::Reasoning {
        text: words.to_owned(),
        replay: Some(Replay { dialect: dialect.to_owned(), data: json!({"model": model, "signature": "s"}) }),
    };
    let model = model();
    let own = |words: &str| thought("anthropic", model.as_str(), words);
    let unsigned = Part::Reasoning { text: "unsigned".to_owned(), replay: None };
    let found = outline(&[
        user(vec![text("1")]),
        assistant(vec![own("kept"), text("a"), own("last")]),
        user(vec![text("2")]),
        assistant(vec![
            thought("bedrock", model.as_str(), "x"),
            thought("anthropic", "acme/other", "y"),
            unsigned,
            text("b"),
        ]),
        user(vec![text("3")]),
        assistant(vec![text("c"), own("not first"), call("a")]),
        user(vec![result("a", "r")]),
        assistant(vec![own("alone")]),
        user(vec![text("4")]),
    ]);
    let expected = [
        "User: \"1\"",
        "Assistant: thinking \"kept\", \"a\"",
        "User: \"2\"",
        "Assistant: \"b\"",
        "User: \"3\"",
        "Assistant: \"c\", call a",
        "User: result a=\"r\", \"4\"",
    ];
    assert_eq!(found, expected);
}

#[test]
fn a_providers_own_call_stands_only_with_its_result() {
    let block = |block: Value| {
        Part::Opaque(Replay { dialect: "anthropic".to_owned(), data: json!({"model": "acme/any", "block": block}) })
    };
    let begin = |id: &str| block(json!({"type": "server_tool_use", "id": id}));
    let end = |id: &str| block(json!({"type": "web_search_tool_result", "tool_use_id": id}));
    let found = outline(&[
        user(vec![text("1")]),
        assistant(vec![begin("s1"), end("s1"), text("a"), begin("s2"), end("s3")]),
        user(vec![text("2")]),
    ]);
    assert_eq!(found[1], "Assistant: opaque server_tool_use, opaque web_search_tool_result, \"a\"");
    let elsewhere = json!({"model": "else/where", "block": {"type": "web_search_tool_result", "tool_use_id": "s1"}});
    let foreign = Part::Opaque(Replay { dialect: "anthropic".to_owned(), data: elsewhere });
    let found =
        outline(&[user(vec![text("1")]), assistant(vec![begin("s1"), foreign, text("a")]), user(vec![text("2")])]);
    assert_eq!(found[1], "Assistant: \"a\"", "a result that must not be sent answers nothing");
    let messages = [user(vec![text("1")]), assistant(vec![text("a "), begin("s2")])];
    let model = model();
    let unfinished = Rules { may_end_with_assistant: true, ..rules(&model) };
    let turns = strict(&messages, unfinished);
    assert_eq!(turns.len(), 2);
    assert!(matches!(turns[1].blocks.as_slice(), [Block::Text(_), Block::Opaque(_)]), "{turns:?}");
    let messages = [user(vec![text("1")]), assistant(vec![text("a \n")])];
    assert_eq!(strict(&messages, unfinished)[1].blocks, vec![Block::Text("a".into())]);
}

#[test]
fn pictures_stand_where_they_may() {
    let png = Image { media_type: "image/png".to_owned(), base64: "QUJD".to_owned() };
    let odd = Image { media_type: "image/tiff".to_owned(), base64: "QUJD".to_owned() };
    let shot = |error: bool| Part::ToolResult {
        call_id: "a".to_owned(),
        text: String::new(),
        images: vec![png.clone(), odd.clone()],
        error,
    };
    let found = outline(&[
        user(vec![Part::Image(png.clone())]),
        assistant(vec![text("x"), Part::Image(png.clone())]),
        user(vec![text("change it")]),
        assistant(vec![call("a")]),
        user(vec![shot(false)]),
        assistant(vec![call("a")]),
        user(vec![shot(true)]),
    ]);
    let expected = [
        "User: png",
        "Assistant: \"x\"",
        "User: png, \"change it\"",
        "Assistant: call a",
        "User: result a=\"\", \"[an image that this model cannot see]\"",
        "Assistant: call a_2",
        "User: error a_2=\"(no output)\", png, \"[an image that this model cannot see]\"",
    ];
    assert_eq!(found, expected);
}

#[test]
fn calls_without_thoughts_are_noticed() {
    let model = model();
    let replay = Some(Replay { dialect: "anthropic".into(), data: json!({"model": model.as_str(), "signature": "s"}) });
    let thought = Part::Reasoning { text: "t".to_owned(), replay };
    let check = |parts: Vec<Part>, after: Vec<Part>| {
        let messages = [user(vec![text("1")]), assistant(parts), user(after)];
        answers_thoughtless_calls(&strict(&messages, rules(&model)))
    };
    assert!(check(vec![call("a")], vec![result("a", "r")]));
    assert!(!check(vec![thought.clone(), call("a")], vec![result("a", "r")]));
    assert!(!check(vec![text("b")], vec![text("c")]));
    assert!(!answers_thoughtless_calls(&strict(&[user(vec![text("1")])], rules(&model))));
}

proptest! {
    #[test]
    fn ids_are_the_same_each_time(messages in history()) {
        let model = model();
        prop_assert_eq!(strict(&messages, rules(&model)), strict(&messages, rules(&model)));
    }
}
