//! Chats as text for a terminal. Pure.

use std::collections::HashMap;
use std::fmt::Write;

use crate::base::ChatId;
use crate::base::text::one_line;
use crate::llm::Part;
use crate::store::{ChatSummary, MessageExtra, MessageKind, SearchHit, StoredChat, StoredEntry};

/// An id is shown with at least so many characters.
const SHORTEST_ID: usize = 8;

/// Widths of columns.
const MODEL: usize = 28;
const TITLE: usize = 60;

/// What a tool printed is shown up to here; `export` has all of it.
const RESULT_LINES: usize = 12;

/// For each chat the shortest beginning of its id that names no other.
pub(super) fn short_ids(chats: &[ChatSummary]) -> HashMap<ChatId, String> {
    let mut ids: Vec<&ChatId> = chats.iter().map(|chat| &chat.id).collect();
    ids.sort();
    let common =
        |a: &ChatId, b: &ChatId| a.as_str().chars().zip(b.as_str().chars()).take_while(|(a, b)| a == b).count();
    let shortest = |at: usize| {
        let before = at.checked_sub(1).and_then(|before| ids.get(before));
        let neighbours = before.into_iter().chain(ids.get(at + 1));
        neighbours.map(|other| common(ids[at], other) + 1).max().unwrap_or(0).max(SHORTEST_ID)
    };
    let short = |(at, id): (usize, &&ChatId)| ((*id).clone(), id.as_str().chars().take(shortest(at)).collect());
    ids.iter().enumerate().map(short).collect()
}

pub(super) fn list(chats: &[ChatSummary], short: &HashMap<ChatId, String>, now: i64) -> String {
    let header = ["CHAT", "LAST USED", "MESSAGES", "MODEL", "TITLE"].map(str::to_owned);
    let row = |chat: &ChatSummary| {
        [
            name(&chat.id, short),
            age(now, chat.updated_at),
            chat.message_count.to_string(),
            one_line(chat.model.as_ref().map_or("-", |model| model.as_str()), MODEL),
            one_line(chat.title.as_deref().unwrap_or("-"), TITLE),
        ]
    };
    let rows: Vec<[String; 5]> = std::iter::once(header).chain(chats.iter().map(row)).collect();
    let widths: [usize; 5] =
        std::array::from_fn(|column| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0));
    let mut out = String::new();
    for row in &rows {
        let cells = row.iter().zip(widths).map(|(cell, width)| format!("{cell:<width$}"));
        let _ = writeln!(out, "{}", cells.collect::<Vec<_>>().join("  ").trim_end());
    }
    out
}

pub(super) fn hits(hits: &[SearchHit], short: &HashMap<ChatId, String>, now: i64) -> String {
    let mut out = String::new();
    for hit in hits {
        let title = one_line(hit.title.as_deref().unwrap_or("-"), TITLE);
        let _ = writeln!(out, "{}  {}  {title}", name(&hit.chat, short), age(now, hit.updated_at));
        if let Some(seq) = hit.seq {
            let _ = writeln!(out, "    {seq}: {}", printable(&hit.snippet));
        }
    }
    out
}

pub(super) fn transcript(chat: &StoredChat, now: i64) -> String {
    let mut out = String::new();
    let title = one_line(chat.title.as_deref().unwrap_or("Chat"), 200);
    let _ = writeln!(out, "# {title}\n");
    let mut facts = vec![printable(chat.id.as_str()), format!("{} messages", chat.message_count)];
    facts.extend(chat.model.as_ref().map(|model| printable(model.as_str())));
    facts.extend(chat.agent.as_deref().map(printable));
    facts.push(format!("last used: {}", age(now, chat.updated_at)));
    facts.extend(chat.cost_usd.map(|dollars| format!("${dollars:.4}")));
    let _ = writeln!(out, "{}", facts.join(", "));
    let mut flags = chat.flags.iter().peekable();
    for entry in &chat.messages {
        while let Some(flag) = flags.next_if(|flag| flag.after < entry.seq) {
            let _ = writeln!(out, "\n-- flag: {} --", one_line(&flag.text, 200));
        }
        entry_text(&mut out, entry);
    }
    for flag in flags {
        let _ = writeln!(out, "\n-- flag: {} --", one_line(&flag.text, 200));
    }
    out
}

fn entry_text(out: &mut String, entry: &StoredEntry) {
    let extra = MessageExtra::read(entry.extra.as_ref());
    let speaker = match &entry.kind {
        MessageKind::User => "You",
        MessageKind::Assistant => "Assistant",
        MessageKind::ToolResult => "Tools",
        MessageKind::SystemNote | MessageKind::Other(_) => "Note",
        MessageKind::Marker => {
            let _ = writeln!(out, "\n-- the chat was compacted here --");
            return;
        }
    };
    let _ = writeln!(out, "\n## {speaker}");
    for part in &entry.message.parts {
        let _ = writeln!(out, "\n{}", part_text(part, &extra));
    }
    for tool in &extra.server_tools {
        let _ = writeln!(out, "\n[the provider ran {}]", one_line(&tool.name, 80));
    }
}

fn part_text(part: &Part, extra: &MessageExtra) -> String {
    match part {
        Part::Text(text) => printable(text.trim_end()),
        Part::Image(image) => format!("[image, {}]", one_line(&image.media_type, 40)),
        Part::Reasoning { text, .. } => quoted(&printable(text.trim())),
        Part::ToolCall { name, arguments, .. } => {
            format!("[calls {} {}]", one_line(name, 80), one_line(arguments, 200))
        }
        Part::ToolResult { call_id, text, images, error } => {
            let record = extra.calls.iter().find(|call| call.id == *call_id);
            let what = record.and_then(|call| call.summary.clone().or_else(|| Some(call.name.clone())));
            let what = what.filter(|what| !what.is_empty()).unwrap_or_else(|| call_id.clone());
            let failed = if *error { ", failed" } else { "" };
            let images = if images.is_empty() { "" } else { ", with images" };
            format!("[{}{failed}{images}]\n{}", one_line(&what, 200), shortened(&printable(text.trim_end())))
        }
        Part::Opaque(_) => "[something that only its provider can read]".to_owned(),
    }
}

fn quoted(text: &str) -> String {
    text.lines().map(|line| format!("> {line}")).collect::<Vec<_>>().join("\n")
}

fn shortened(text: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    match lines.get(..RESULT_LINES) {
        Some(first) if lines.len() > RESULT_LINES => {
            format!("{}\n[{} more lines]", first.join("\n"), lines.len() - RESULT_LINES)
        }
        _ => text.to_owned(),
    }
}

fn name(chat: &ChatId, short: &HashMap<ChatId, String>) -> String {
    printable(short.get(chat).map_or(chat.as_str(), String::as_str))
}

/// Without what a terminal would obey.
pub(super) fn printable(text: &str) -> String {
    let harmful = |c: char| c.is_control() && c != '\n' && c != '\t';
    text.chars().map(|c| if harmful(c) { '\u{fffd}' } else { c }).collect()
}

/// How long ago, or from a week on the day.
pub(super) fn age(now: i64, then: i64) -> String {
    const MINUTE: i64 = 60_000;
    const HOUR: i64 = 60 * MINUTE;
    const DAY: i64 = 24 * HOUR;
    match now.saturating_sub(then) {
        i64::MIN..MINUTE => "just now".to_owned(),
        ago @ MINUTE..HOUR => format!("{} min ago", ago / MINUTE),
        ago @ HOUR..DAY => format!("{} h ago", ago / HOUR),
        ago if ago < 7 * DAY => format!("{} d ago", ago / DAY),
        _ => jiff::Timestamp::from_millisecond(then)
            .map_or_else(|_| "-".to_owned(), |time| time.strftime("%Y-%m-%d").to_string()),
    }
}
