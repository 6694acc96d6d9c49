//! The chat history under kill -9: whatever was acknowledged is there afterwards.
//!
//! A child process does what a server does to the history, and says after each step that it was
//! acknowledged. It is killed at a random moment, two hundred times, on one and the same file.

// The whole file is a test, which clippy knows only of its test functions.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use eca::base::{ChatId, ContentId};
use eca::llm::{Message, Part, Role, Usage};
use eca::store::{
    Claim, ListQuery, MessageKind, NewChange, NewMessage, PageQuery, SearchQuery, Store, StoredChat, TitleSource,
};

const FOLDER: &str = "ECA_TEST_HISTORY";
const CHAT: &str = "ECA_TEST_CHAT";
const KILLS: usize = 200;

/// Steps of one life; a child that is not killed ends after them.
const MOST_TURNS: usize = 2000;

fn message(kind: MessageKind, content: Option<String>, parts: Vec<Part>) -> NewMessage {
    let role = if kind == MessageKind::Assistant { Role::Assistant } else { Role::User };
    NewMessage { content_id: content.map(ContentId::new), ..NewMessage::new(kind, Message { role, parts }) }
}

/// The other half of the test below: a life of a server.
#[test]
fn server_that_is_killed() {
    let (Some(folder), Some(chat)) = (std::env::var_os(FOLDER), std::env::var(CHAT).ok()) else { return };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let store = Store::at(Path::new(&folder).join("chats.db"));
        let chat = ChatId::new(chat);
        assert_eq!(store.claim(&chat).await.unwrap(), Claim::Ours);
        for turn in 0..MOST_TURNS {
            live_one_turn(&store, &chat, turn).await;
        }
    });
}

async fn live_one_turn(store: &Store, chat: &ChatId, turn: usize) {
    let said = |what: &str| {
        let mut out = std::io::stdout().lock();
        out.write_all(format!("\nack {what}\n").as_bytes()).unwrap();
        out.flush().unwrap();
    };
    let text = |text: String| vec![Part::Text(text)];
    let prompt = message(MessageKind::User, Some(format!("c{turn}")), text(format!("question {turn}")));
    let seqs = store.append(chat, vec![prompt]).await.unwrap();
    said(&format!("message {}", seqs[0]));
    let call = Part::ToolCall {
        id: format!("call-{turn}"),
        name: "eca__edit_file".into(),
        arguments: "{}".into(),
        replay: None,
    };
    let answer = message(MessageKind::Assistant, None, vec![Part::Text("x ".repeat(turn * 97 % 4000)), call]);
    let change = NewChange {
        call: format!("call-{turn}").as_str().into(),
        order: 0,
        path: format!("/file-{turn}").into(),
        before: Some(content_before(turn).into()),
        after: Some(turn.to_string().into()),
    };
    let seqs = store.append(chat, vec![answer]).await.unwrap();
    said(&format!("message {}", seqs[0]));
    store.record_change(chat, change).await.unwrap();
    said(&format!("change {turn}"));
    let result =
        Part::ToolResult { call_id: format!("call-{turn}"), text: "done".into(), images: vec![], error: false };
    let seqs = store.append(chat, vec![message(MessageKind::ToolResult, None, vec![result])]).await.unwrap();
    said(&format!("message {}", seqs[0]));
    match turn % 10 {
        3 => assert!(store.add_usage(chat, Usage { input: 1, ..Usage::default() }, None).await.unwrap()),
        5 => assert!(store.set_title(chat, &format!("title {turn}"), TitleSource::Auto).await.unwrap()),
        7 => {
            let removed = store.truncate_before(chat, &ContentId::new(format!("c{turn}"))).await.unwrap();
            assert_eq!(removed, 3);
            said(&format!("cut {}", seqs[0] - 2));
        }
        _ => {}
    }
}

/// Most contents are small; some are too large for the database and are files.
fn content_before(turn: usize) -> Vec<u8> {
    let large = if turn % 4 == 2 { 300_000 } else { 0 };
    vec![turn as u8; large + turn * 61 % 20_000]
}

/// What a life acknowledged.
#[derive(Default)]
struct Acknowledged {
    messages: Vec<i64>,
    changes: Vec<usize>,
}

impl Acknowledged {
    fn hear(&mut self, line: &str) {
        let Some((what, number)) = line.strip_prefix("ack ").and_then(|line| line.split_once(' ')) else { return };
        match what {
            "message" => self.messages.push(number.parse().unwrap()),
            "change" => self.changes.push(number.parse().unwrap()),
            "cut" => {
                let from: i64 = number.parse().unwrap();
                self.messages.retain(|seq| *seq < from);
            }
            other => panic!("{other}"),
        }
    }
}

fn start(folder: &Path, chat: &str) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "history::server_that_is_killed", "--nocapture"])
        .env(FOLDER, folder)
        .env(CHAT, chat)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

/// Lets a child live until it acknowledged so much, and a moment longer.
fn live_and_die(folder: &Path, chat: &str, patience: usize, moment: u32) -> Acknowledged {
    let mut child = start(folder, chat);
    let mut output = BufReader::new(child.stdout.take().unwrap());
    let mut acknowledged = Acknowledged::default();
    let mut heard = 0;
    while heard < patience {
        let mut line = String::new();
        assert!(output.read_line(&mut line).unwrap() > 0, "the child ended by itself");
        heard += usize::from(line.starts_with("ack "));
        acknowledged.hear(line.trim_end());
    }
    for _ in 0..moment {
        std::hint::spin_loop();
    }
    child.kill().unwrap();
    child.wait().unwrap();
    let mut rest = String::new();
    output.read_to_string(&mut rest).unwrap();
    // The last line may be cut.
    let whole = rest.rfind('\n').map_or("", |end| &rest[..end]);
    whole.lines().for_each(|line| acknowledged.hear(line));
    acknowledged
}

async fn check(store: &Store, chat: &ChatId, acknowledged: &Acknowledged) {
    let stored = store.load(chat).await.unwrap();
    let Some(StoredChat { messages, message_count, .. }) = stored else {
        assert!(acknowledged.messages.is_empty(), "{chat} is gone");
        return;
    };
    assert_eq!(messages.len() as u64, message_count, "{chat}");
    let present: Vec<i64> = messages.iter().map(|entry| entry.seq).collect();
    // A cut that was done may not have been acknowledged, and takes the last turn only.
    let lost: Vec<&i64> = acknowledged.messages.iter().filter(|seq| !present.contains(seq)).collect();
    let last = acknowledged.messages.last().copied().unwrap_or_default();
    assert!(
        lost.is_empty() || lost.len() == 3 && *lost[2] == last && last > *present.last().unwrap_or(&0),
        "{chat}: {lost:?}"
    );
    // The chat replays, page by page as well as whole.
    let mut paged = Vec::new();
    let mut query = PageQuery { limit: Some(50), ..PageQuery::default() };
    loop {
        let page = store.load_page(chat, query.clone()).await.unwrap().unwrap();
        paged.splice(0..0, page.entries);
        match page.before_cursor {
            Some(before) => query.before = Some(before),
            None => break,
        }
    }
    assert!(paged == messages, "{chat}");
    if !acknowledged.changes.is_empty() {
        let changes = store.changes_since(chat, &ContentId::new("c0")).await.unwrap();
        assert!(changes.iter().all(|change| change.is_kept), "{chat}: a change without its content");
        for turn in &acknowledged.changes {
            let name = format!("call-{turn}");
            let change = changes.iter().find(|change| change.call.as_str() == name);
            let change = change.unwrap_or_else(|| panic!("{chat}: the change {turn} is lost"));
            let before = store.content_before(change).await.unwrap();
            assert!(change.is_kept && before == Some(content_before(*turn)), "{chat}: the content {turn} is lost");
            assert!(change.is_untouched(Some(turn.to_string().as_bytes())));
        }
    }
}

#[tokio::test]
async fn nothing_acknowledged_is_lost_in_two_hundred_kills() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("chats.db");
    let mut lives = BTreeMap::new();
    // Always the same moments: a failure can be looked for again.
    let mut random = 0x2545_f491_4f6c_dd1d_u64;
    let mut next = |below: u64| {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        random % below
    };
    for life in 0..KILLS {
        // Some while the file is being opened, some in full flow.
        let patience = if next(8) == 0 { 0 } else { next(40) as usize };
        let id = ChatId::new(format!("chat-{life}"));
        let acknowledged = live_and_die(folder.path(), id.as_str(), patience, next(200_000) as u32);
        let store = Store::at(path.clone());
        check(&store, &id, &acknowledged).await;
        assert_eq!(store.claim(&id).await.unwrap(), Claim::Ours, "the dead hold nothing");
        assert!(store.take_notices().is_empty(), "{:?}", store.take_notices());
        store.close().await;
        lives.insert(id, acknowledged);
    }
    let total: usize = lives.values().map(|life| life.messages.len() + life.changes.len()).sum();
    assert!(total > KILLS, "the lives were too short: {total}");
    let store = Store::at(path);
    for (chat, acknowledged) in &lives {
        check(&store, chat, acknowledged).await;
    }
    let listed = store.list(ListQuery::default()).await.unwrap();
    for chat in &listed {
        let document = store.export(&chat.id).await.unwrap();
        assert_eq!(document["chat"]["messages"].as_array().unwrap().len() as u64, chat.message_count);
    }
    let query = SearchQuery { text: "question".into(), workspace_key: None, limit: 1000 };
    assert!(!store.search(query).await.unwrap().is_empty());
}

#[tokio::test]
async fn two_servers_write_to_one_history_at_once_and_are_killed_together() {
    let folder = tempfile::tempdir().unwrap();
    for round in 0..5 {
        let names = [format!("left-{round}"), format!("right-{round}")];
        let lives: Vec<_> = names
            .iter()
            .map(|name| {
                let (folder, name) = (folder.path().to_owned(), name.clone());
                tokio::task::spawn_blocking(move || live_and_die(&folder, &name, 60, 0))
            })
            .collect();
        let store = Store::at(folder.path().join("chats.db"));
        for (name, life) in names.iter().zip(lives) {
            let acknowledged = life.await.unwrap();
            assert!(acknowledged.messages.len() > 30);
            check(&store, &ChatId::new(name.as_str()), &acknowledged).await;
        }
        store.close().await;
    }
}
