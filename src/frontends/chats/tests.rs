//! The texts, against small chats.

use super::text::{age, hits, list, printable, short_ids, transcript};
use super::*;
use crate::base::{ContentId, ModelId};
use crate::llm::{Image, Message, Part, Role, Usage};
use crate::store::{CallRecord, MessageExtra, MessageKind, StoredChat, StoredEntry, StoredFlag};

const NOW: i64 = 1_700_000_000_000;

fn summary(id: &str, title: Option<&str>) -> ChatSummary {
    ChatSummary {
        id: ChatId::new(id),
        title: title.map(str::to_owned),
        model: ModelId::parse("p/m"),
        created_at: 0,
        updated_at: NOW - 120_000,
        message_count: 3,
        workspace_key: None,
    }
}

#[test]
fn ids_are_as_short_as_they_can_be() {
    let ids = ["abcdefgh-1", "abcdefgh-2", "abcdefghijkl", "short", "ééééééééé"];
    let chats: Vec<ChatSummary> = ids.iter().map(|id| summary(id, None)).collect();
    let short = short_ids(&chats);
    for (id, expected) in [
        ("abcdefgh-1", "abcdefgh-1"),
        ("abcdefgh-2", "abcdefgh-2"),
        ("abcdefghijkl", "abcdefghi"),
        ("short", "short"),
        ("ééééééééé", "éééééééé"),
    ] {
        assert_eq!(short[&ChatId::new(id)], expected);
    }
    assert!(short_ids(&[]).is_empty());
}

#[test]
fn ages() {
    for (ago, expected) in [
        (-5, "just now"),
        (59_999, "just now"),
        (60_000, "1 min ago"),
        (3_600_000, "1 h ago"),
        (2 * 86_400_000, "2 d ago"),
        (7 * 86_400_000, "2023-11-07"),
    ] {
        assert_eq!(age(NOW, NOW - ago), expected);
    }
    assert_eq!(age(NOW, i64::MIN), "-");
}

#[test]
fn a_table_has_straight_columns_and_nothing_to_obey() {
    let chats = [summary("aaaaaaaaaaaa", Some("Red \u{1b}[31malert\nnow")), summary("b", None)];
    let text = list(&chats, &short_ids(&chats), NOW);
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[0], "CHAT      LAST USED  MESSAGES  MODEL  TITLE");
    assert_eq!(lines[1], "aaaaaaaa  2 min ago  3         p/m    Red [31malert now");
    assert_eq!(lines[2], "b         2 min ago  3         p/m    -");
    assert_eq!(printable("a\u{1b}]0;x\u{7}\tb\n"), "a\u{fffd}]0;x\u{fffd}\tb\n");
}

#[test]
fn hits_name_the_chat_and_the_message() {
    let hit = |seq: Option<i64>| SearchHit {
        chat: ChatId::new("aaaaaaaaaaaa"),
        title: Some("T".into()),
        seq,
        snippet: "…the\u{1b} place".into(),
        updated_at: NOW,
    };
    let text = hits(&[hit(None), hit(Some(7))], &short_ids(&[summary("aaaaaaaaaaaa", None)]), NOW);
    assert_eq!(text, "aaaaaaaa  just now  T\naaaaaaaa  just now  T\n    7: …the\u{fffd} place\n");
}

fn entry(seq: i64, kind: MessageKind, parts: Vec<Part>, extra: MessageExtra) -> StoredEntry {
    let role = if kind == MessageKind::Assistant { Role::Assistant } else { Role::User };
    let message = Message { role, parts };
    StoredEntry { seq, kind, content_id: None, message, extra: extra.to_value(), created_at: 0 }
}

#[test]
fn a_transcript_shows_every_part_in_its_place() {
    let none = MessageExtra::default;
    let calls = vec![CallRecord { id: "c".into(), summary: Some("Reading a.rs".into()), ..CallRecord::default() }];
    let output = (1..=20).map(|line| format!("line {line}\n")).collect::<String>();
    let result = Part::ToolResult { call_id: "c".into(), text: output, images: vec![], error: true };
    let call =
        Part::ToolCall { id: "c".into(), name: "eca__read".into(), arguments: "{\n\"a\": 1}".into(), replay: None };
    let image = Part::Image(Image { media_type: "image/png".into(), base64: "AAAA".into() });
    let thought = Part::Reasoning { text: "hm\nwell".into(), replay: None };
    let flag = |after: i64, text: &str| StoredFlag {
        after,
        content_id: ContentId::new(text),
        text: text.into(),
        created_at: 0,
    };
    let chat = StoredChat {
        id: ChatId::new("a"),
        title: Some("Title".into()),
        title_source: None,
        model: ModelId::parse("p/m"),
        agent: Some("code".into()),
        workspace_key: None,
        variant: None,
        trust: None,
        parent: None,
        created_at: 0,
        updated_at: NOW,
        imported_at: None,
        total_usage: Usage::default(),
        last_usage: Usage::default(),
        cost_usd: Some(0.5),
        message_count: 4,
        messages: vec![
            entry(1, MessageKind::User, vec![Part::Text("question\u{1b}[2J".into()), image], none()),
            entry(2, MessageKind::Assistant, vec![thought, Part::Text("answer\n".into()), call], none()),
            entry(3, MessageKind::ToolResult, vec![result], MessageExtra { calls, ..none() }),
            entry(4, MessageKind::Marker, vec![], none()),
        ],
        flags: vec![flag(1, "first"), flag(4, "last")],
    };
    let expected = "# Title\n\na, 4 messages, p/m, code, last used: just now, $0.5000\n\n## You\n\nquestion\u{fffd}[2J\n\n\
        [image, image/png]\n\n-- flag: first --\n\n## Assistant\n\n> hm\n> well\n\nanswer\n\n[calls eca__read { \"a\": 1}]\n\n\
        ## Tools\n\n[Reading a.rs, failed]\n";
    let text = transcript(&chat, NOW);
    assert!(text.starts_with(expected), "{text}");
    assert!(text.contains("line 12\n[8 more lines]\n"), "{text}");
    assert!(text.ends_with("-- the chat was compacted here --\n\n-- flag: last --\n"), "{text}");
}
