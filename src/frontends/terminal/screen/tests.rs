//! The screen as bytes on two streams.

use super::*;
use crate::base::{ChatId, ToolCallId};
use crate::engine::{RejectReason, ToolCallOrigin};
use crate::llm::Usage;

const SCRIPT: Look = Look { out: Stream::Bytes, err: Stream::Bytes, can_ask: false };
const TERMINAL: Look = Look { out: Stream::Colours, err: Stream::Colours, can_ask: true };

fn drawn(look: Look, events: Vec<ChatEvent>) -> (String, String) {
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let mut screen = Screen::new(&mut out, &mut err, look, || 80);
    for event in events {
        screen.show(Event::Chat { chat: ChatId::new("c"), event }).unwrap();
        screen.tick();
    }
    (String::from_utf8(out).unwrap(), String::from_utf8(err).unwrap())
}

fn text(text: &str) -> ChatEvent {
    ChatEvent::Text(text.into())
}

fn called() -> ChatEvent {
    let arguments = serde_json::json!({"path": "/a\nb", "limit": 3}).as_object().unwrap().clone();
    let stage = ToolCallStage::Called { arguments, error: false, outputs: vec!["x".into()], total_ms: 7 };
    ChatEvent::ToolCall(Box::new(ToolCallEvent {
        id: ToolCallId::new("t"),
        name: "read".into(),
        server: "ECA".into(),
        origin: ToolCallOrigin::Native,
        summary: None,
        details: None,
        stage,
    }))
}

#[test]
fn a_script_gets_the_answer_and_nothing_else() {
    let (out, err) = drawn(
        SCRIPT,
        vec![
            ChatEvent::Progress("Waiting model".into()),
            ChatEvent::ReasonText { id: "r".into(), text: "hm".into() },
            ChatEvent::ReasonFinished { id: "r".into(), total_ms: 1 },
            text("**a** \u{1b}[31m"),
            text("b"),
            called(),
            text("c\n"),
            ChatEvent::SystemText("\n\nNote.".into()),
            ChatEvent::Finished,
        ],
    );
    assert_eq!(out, "**a** \u{1b}[31mb\nc\n");
    assert_eq!(err, "hm\n• read path=/a b limit=3 (done, 7 ms)\nNote.\n");
}

#[test]
fn the_answer_ends_with_a_line_break_of_its_own_or_ours() {
    assert_eq!(drawn(SCRIPT, vec![text("a"), ChatEvent::Finished]).0, "a\n");
    assert_eq!(drawn(SCRIPT, vec![text("a\n"), ChatEvent::Finished]).0, "a\n");
    assert_eq!(drawn(SCRIPT, vec![ChatEvent::Finished]).0, "");
}

#[test]
fn a_notice_does_not_cut_the_answer_of_a_script() {
    let (out, err) = drawn(SCRIPT, vec![text("a"), ChatEvent::Failed("\n\nBroken.".into()), ChatEvent::Finished]);
    assert_eq!((out.as_str(), err.as_str()), ("a\n", "error: Broken.\n"));
}

#[test]
fn a_terminal_gets_colours_and_no_control_characters_of_others() {
    let usage = UsageReport {
        last: Usage { input: 10, output: 5, ..Usage::default() },
        total: Usage::default(),
        last_cost: None,
        total_cost: Some(0.5),
        context_limit: Some(1000),
        output_limit: None,
        auto_compact_percentage: None,
        shares: Vec::new(),
    };
    let (out, err) =
        drawn(TERMINAL, vec![text("a **b\u{1b}]0;x\u{7}\r**"), ChatEvent::Usage(usage), ChatEvent::Finished]);
    assert_eq!(out, "a \u{1b}[0;1m**b]0;x**\u{1b}[0m\n");
    assert_eq!(err, "\u{1b}[2m[10 tokens in · 5 out · 2% of the context · $0.5000 so far]\u{1b}[0m\n");
}

#[test]
fn the_spinner_is_gone_before_the_text_comes() {
    let (out, err) = drawn(TERMINAL, vec![ChatEvent::Progress("Waiting\u{7}\nmodel".into()), text("a"), text("b")]);
    assert_eq!(out, "ab");
    assert_eq!(err, format!("{ERASE_LINE}{DIM}⠙ Waiting model{OFF}{ERASE_LINE}"));
    let quiet = Look { err: Stream::Plain, ..TERMINAL };
    assert_eq!(drawn(quiet, vec![ChatEvent::Progress("Waiting".into())]).1, "");
}

#[test]
fn what_shares_a_terminal_shares_its_lines() {
    let rejected = ToolCallStage::Rejected { arguments: Map::new(), reason: RejectReason::PromptStop };
    let call = call(rejected);
    let mut both = Vec::new();
    let shared = std::cell::RefCell::new(&mut both);
    let look = Look { out: Stream::Plain, err: Stream::Plain, can_ask: true };
    let mut screen = Screen::new(Shared(&shared), Shared(&shared), look, || 80);
    for event in [
        ChatEvent::ReasonText { id: "r".into(), text: "hm".into() },
        text("answer"),
        call,
        text("more"),
        ChatEvent::Failed("Broken.".into()),
        ChatEvent::Finished,
    ] {
        screen.show(Event::Chat { chat: ChatId::new("c"), event }).unwrap();
    }
    drop(screen);
    assert_eq!(String::from_utf8(both).unwrap(), "hm\n\nanswer\n• x  (not run)\nmore\nerror: Broken.\n");
}

fn call(stage: ToolCallStage) -> ChatEvent {
    ChatEvent::ToolCall(Box::new(ToolCallEvent {
        id: ToolCallId::new("t"),
        name: "x".into(),
        server: "s".into(),
        origin: ToolCallOrigin::Native,
        summary: None,
        details: None,
        stage,
    }))
}

#[test]
fn nobody_is_asked_where_nobody_can_answer() {
    let asked = || call(ToolCallStage::Run { arguments: Map::new(), manual_approval: true });
    let plain = Look { out: Stream::Plain, err: Stream::Plain, can_ask: true };
    let (_, question) = drawn(plain, vec![asked()]);
    assert!(question.starts_with("? x") && question.contains("Run it?"), "{question}");
    let (_, told) = drawn(SCRIPT, vec![asked()]);
    assert!(told.starts_with("! x") && told.contains("--trust") && !told.contains("Run it?"), "{told}");
}

struct Shared<'a, 'b>(&'a std::cell::RefCell<&'b mut Vec<u8>>);

impl Write for Shared<'_, '_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.borrow_mut().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
