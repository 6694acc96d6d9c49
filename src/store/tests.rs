//! The store from outside, and its thread's promises from inside: durability, sharing, refusal.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::json;

use super::*;
use crate::base::ContentId;
use crate::llm::{Image, Message, Part, Replay, Role};

mod contents;
mod history;
mod journal;
mod lease;
mod place;
mod search;
mod transfer;
mod upkeep;

fn text(role: Role, text: &str) -> Message {
    Message { role, parts: vec![Part::Text(text.into())] }
}

fn user(content: &str) -> NewMessage {
    NewMessage::new(MessageKind::User, text(Role::User, content))
}

fn usage(input: u64, output: u64, cache_read: u64, cache_write: u64) -> Usage {
    Usage { input, output, cache_read, cache_write }
}

fn chat(id: &str) -> ChatId {
    ChatId::new(id)
}

fn raw(path: &Path) -> rusqlite::Connection {
    rusqlite::Connection::open(path).expect("open for inspection")
}

fn count(connection: &rusqlite::Connection, sql: &str) -> i64 {
    connection.query_row(sql, [], |row| row.get(0)).expect("count")
}

fn impatient(path: &Path) -> Store {
    Store::with(Location::File(path.to_owned()), Duration::ZERO)
}

fn every_part() -> Message {
    let mut nested = json!(1);
    for _ in 0..126 {
        nested = json!([nested]);
    }
    Message {
        role: Role::Assistant,
        parts: vec![
            Part::Text("héllo \u{0} \"quoted\"\n".into()),
            Part::Image(Image { media_type: "image/png".into(), base64: "AAAA".into() }),
            Part::Reasoning { text: "hm".into(), replay: None },
            Part::Reasoning {
                text: String::new(),
                replay: Some(Replay { dialect: "anthropic".into(), data: json!({"signature": "s", "deep": nested}) }),
            },
            Part::Reasoning { text: "x".into(), replay: Some(Replay { dialect: "d".into(), data: Value::Null }) },
            Part::ToolCall {
                id: "c1".into(),
                name: "read".into(),
                arguments: "{\"path\": ".into(),
                replay: Some(Replay { dialect: "gemini".into(), data: json!({"thoughtSignature": "x"}) }),
            },
            Part::Opaque(Replay { dialect: "anthropic".into(), data: json!({"type": "server_tool_use"}) }),
            Part::ToolResult { call_id: "c1".into(), text: "no".into(), images: Vec::new(), error: true },
            Part::ToolResult {
                call_id: "c2".into(),
                text: "yes".into(),
                images: vec![Image { media_type: "image/png".into(), base64: "BBBB".into() }],
                error: false,
            },
        ],
    }
}

#[tokio::test]
async fn every_part_and_every_field_comes_back() {
    let folder = tempfile::tempdir().expect("folder");
    let path = folder.path().join("history.db");
    let id = chat("a");
    let store = Store::at(path.clone());
    let meta = ChatMeta {
        id: id.clone(),
        model: ModelId::parse("openai/gpt"),
        agent: Some("code".into()),
        workspace_key: Some("/w".into()),
        variant: Some("high".into()),
        trust: Some(true),
        parent: Some(chat("above")),
    };
    store.create_or_touch_chat(meta).await.expect("create");
    let all = NewMessage {
        kind: MessageKind::Other("future".into()),
        content_id: Some(ContentId::new("content")),
        message: every_part(),
        extra: Some(json!({"shown": [1, 2]})),
    };
    let empty = NewMessage::new(MessageKind::Marker, Message { role: Role::User, parts: vec![] });
    assert_eq!(store.append(&id, vec![user("hi"), all.clone()]).await, Ok(vec![1, 2]));
    assert_eq!(store.append(&id, vec![empty]).await, Ok(vec![3]));
    assert_eq!(store.append(&id, vec![]).await, Ok(vec![]));
    assert_eq!(store.add_usage(&id, usage(1, 2, 3, 4), None).await, Ok(true));
    assert_eq!(store.load(&id).await.expect("load").expect("chat").cost_usd, None);
    assert_eq!(store.add_usage(&id, usage(10, 20, 30, 40), Some(0.5)).await, Ok(true));
    assert_eq!(store.add_usage(&id, usage(0, 0, 0, 1), Some(0.25)).await, Ok(true));
    assert_eq!(store.add_usage(&id, usage(0, 0, 0, 0), Some(f64::NAN)).await, Ok(true));
    store.close().await;

    let stored = Store::at(path).load(&id).await.expect("load").expect("chat");
    assert_eq!(stored.model, ModelId::parse("openai/gpt"));
    assert_eq!(stored.agent.as_deref(), Some("code"));
    assert_eq!(stored.workspace_key.as_deref(), Some("/w"));
    assert_eq!((stored.variant.as_deref(), stored.trust), (Some("high"), Some(true)));
    assert_eq!((stored.parent, stored.imported_at, stored.message_count), (Some(chat("above")), None, 3));
    assert_eq!(stored.total_usage, usage(11, 22, 33, 45));
    assert_eq!(stored.last_usage, usage(0, 0, 0, 0));
    assert_eq!(stored.cost_usd, Some(0.75));
    assert!(stored.created_at > 0 && stored.updated_at >= stored.created_at);
    let kinds: Vec<&str> = stored.messages.iter().map(|entry| entry.kind.as_str()).collect();
    assert_eq!(kinds, ["user", "future", "marker"]);
    assert_eq!(stored.messages[0].message, text(Role::User, "hi"));
    assert_eq!(stored.messages[1].message, all.message);
    assert_eq!(stored.messages[1].extra, all.extra);
    assert_eq!(stored.messages[1].content_id, all.content_id);
    assert_eq!(stored.messages[1].seq, 2);
}

#[tokio::test]
async fn titles_selection_and_usage_keep_their_rules() {
    let store = Store::in_memory();
    let id = chat("a");
    assert_eq!(store.set_title(&id, "x", TitleSource::User).await, Ok(false));
    assert_eq!(store.set_selection(&id, None, None).await, Ok(false));
    assert_eq!(store.add_usage(&id, usage(1, 1, 1, 1), None).await, Ok(false));
    assert_eq!(store.load(&id).await, Ok(None));

    store.append(&id, vec![user("hi")]).await.expect("append");
    assert_eq!(store.set_title(&id, "made", TitleSource::Auto).await, Ok(true));
    assert_eq!(store.set_title(&id, "mine", TitleSource::User).await, Ok(true));
    assert_eq!(store.set_title(&id, "made again", TitleSource::Auto).await, Ok(false));
    assert_eq!(store.set_selection(&id, ModelId::parse("a/b"), None).await, Ok(true));
    assert_eq!(store.set_selection(&id, None, Some("plan".into())).await, Ok(true));
    for _ in 0..3 {
        store.add_usage(&id, usage(u64::MAX, 1, 0, 0), None).await.expect("usage");
    }
    let stored = store.load(&id).await.expect("load").expect("chat");
    assert_eq!((stored.title.as_deref(), stored.title_source), (Some("mine"), Some(TitleSource::User)));
    assert_eq!((stored.model, stored.agent.as_deref()), (ModelId::parse("a/b"), Some("plan")));
    assert_eq!((stored.total_usage.input, stored.total_usage.output), ((1 << 62) - 1, 3));
}

#[tokio::test]
async fn lists_sort_limit_and_filter() {
    let store = Store::in_memory();
    for (id, workspace, created, updated) in [("a", "w1", 1, 30), ("b", "w2", 2, 10), ("c", "w1", 3, 20)] {
        let meta = ChatMeta { workspace_key: Some(workspace.into()), ..ChatMeta::new(chat(id)) };
        store.create_or_touch_chat(meta).await.expect("create");
        store.append(&chat(id), vec![user("1"), user("2")]).await.expect("append");
        store
            .write(move |connection| {
                connection.execute(
                    "UPDATE chats SET created_at = ?2, updated_at = ?3 WHERE id = ?1",
                    rusqlite::params![id, created, updated],
                )
            })
            .await
            .expect("times");
    }
    let ids = async |query: ListQuery| -> String {
        store.list(query).await.expect("list").iter().map(|chat| chat.id.as_str()).collect()
    };
    assert_eq!(ids(ListQuery::default()).await, "acb");
    assert_eq!(ids(ListQuery { sort: ListSort::CreatedAt, ..ListQuery::default() }).await, "cba");
    assert_eq!(ids(ListQuery { limit: Some(2), ..ListQuery::default() }).await, "ac");
    assert_eq!(ids(ListQuery { limit: Some(0), ..ListQuery::default() }).await, "");
    assert_eq!(ids(ListQuery { workspace_key: Some("w1".into()), ..ListQuery::default() }).await, "ac");
    let first = store.list(ListQuery::default()).await.expect("list").remove(0);
    assert_eq!((first.message_count, first.created_at, first.updated_at), (2, 1, 30));

    store.create_or_touch_chat(ChatMeta::new(chat("b"))).await.expect("touch");
    assert_eq!(ids(ListQuery::default()).await, "bac");
    assert_eq!(ids(ListQuery { workspace_key: Some("w2".into()), ..ListQuery::default() }).await, "b");
}

#[tokio::test]
async fn deleting_takes_the_messages_along() {
    let store = Store::in_memory();
    store.append(&chat("a"), vec![user("1"), user("2")]).await.expect("append");
    store.append(&chat("b"), vec![user("1")]).await.expect("append");
    assert_eq!(store.delete(&chat("a")).await, Ok(true));
    assert_eq!(store.delete(&chat("a")).await, Ok(false));
    assert_eq!(store.load(&chat("a")).await, Ok(None));
    let left = store.read(|connection| Ok(count(connection, "SELECT count(*) FROM messages"))).await;
    assert_eq!(left, Ok(1));
}

#[tokio::test]
async fn sequence_numbers_are_not_used_again() {
    let store = Store::in_memory();
    let id = chat("a");
    store.append(&id, vec![user("1"), user("2")]).await.expect("append");
    store.write(|connection| connection.execute("DELETE FROM messages WHERE seq = 2", [])).await.expect("cut");
    assert_eq!(store.append(&id, vec![user("3")]).await, Ok(vec![3]));
}

#[tokio::test]
async fn rows_from_the_future_and_broken_rows_are_bearable() {
    let store = Store::in_memory();
    let id = chat("a");
    store.append(&id, vec![user("first")]).await.expect("append");
    store
        .write(|connection| {
            for (seq, body) in [
                (10, "not json"),
                (11, r#"{"version":1,"role":"judge","parts":[]}"#),
                (12, r#"{"version":9,"role":"user","parts":[{"type":"smell","rose":1}]}"#),
                (
                    13,
                    r#"{"version":9,"role":"user","mood":{"x":1},"parts":[
                        {"type":"smell","rose":[1]},{"type":"text","text":"kept","font":"x"}]}"#,
                ),
            ] {
                connection.execute(
                    "INSERT INTO messages (chat_id, seq, kind, body, created_at) VALUES ('a', ?1, 'user', ?2, 0)",
                    rusqlite::params![seq, body],
                )?;
            }
            // Not even the kind is text here.
            connection.execute(
                "INSERT INTO messages (chat_id, seq, kind, body, created_at)
                 SELECT chat_id, 14, CAST(x'ff' AS TEXT), body, 0 FROM messages WHERE seq = 1",
                [],
            )
        })
        .await
        .expect("plant");
    let stored = store.load(&id).await.expect("load").expect("chat");
    let seqs: Vec<i64> = stored.messages.iter().map(|entry| entry.seq).collect();
    assert_eq!(seqs, [1, 13]);
    assert_eq!(stored.messages[1].message, text(Role::User, "kept"));
}

#[tokio::test]
async fn nothing_is_opened_before_the_first_use() {
    let folder = tempfile::tempdir().expect("folder");
    let path = folder.path().join("deep/er/history.db");
    let store = Store::at(path.clone());
    assert!(!folder.path().join("deep").exists());
    assert_eq!(store.list(ListQuery::default()).await, Ok(vec![]));
    assert!(path.exists());
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = |path: &Path| std::fs::metadata(path).expect("metadata").permissions().mode() & 0o777;
        assert_eq!(mode(&path), 0o600);
        assert_eq!(mode(&path.with_extension("db-wal")), 0o600);
        assert_eq!(mode(&folder.path().join("deep")), 0o700);
        assert_eq!(mode(&folder.path().join("deep/er")), 0o700);
    }
    let settings = store
        .read(|connection| {
            let text = |name| connection.pragma_query_value(None, name, |row| row.get::<_, String>(0));
            let number = |name| connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
            Ok((text("journal_mode")?, number("synchronous")?, number("foreign_keys")?, number("busy_timeout")?))
        })
        .await;
    assert_eq!(settings, Ok(("wal".into(), 1, 1, 5000)));
}

#[tokio::test]
async fn closing_unused_and_used_stores() {
    let folder = tempfile::tempdir().expect("folder");
    let path = folder.path().join("history.db");
    let unused = Store::at(path.clone());
    unused.close().await;
    assert_eq!(unused.load(&chat("a")).await, Err(StoreError::Closed));
    assert!(!path.exists());

    let store = Store::at(path.clone());
    let clone = store.clone();
    // Queued before the closing, so written by it.
    let a = chat("a");
    let (seqs, ()) = tokio::join!(biased; clone.append(&a, vec![user("1")]), store.close());
    assert_eq!(seqs, Ok(vec![1]));
    assert_eq!(clone.append(&chat("a"), vec![user("2")]).await, Err(StoreError::Closed));
    clone.close().await;
    assert!(!path.with_extension("db-wal").exists());
    assert_eq!(count(&raw(&path), "SELECT count(*) FROM messages"), 1);
}

#[tokio::test]
async fn an_empty_file_is_migrated_and_a_migrated_one_is_left_alone() {
    let folder = tempfile::tempdir().expect("folder");
    let path = folder.path().join("history.db");
    std::fs::write(&path, "").expect("empty file");
    for expected in [vec![1], vec![2]] {
        let store = Store::at(path.clone());
        assert_eq!(store.append(&chat("a"), vec![user("x")]).await, Ok(expected));
        store.close().await;
    }
    assert_eq!(count(&raw(&path), "PRAGMA user_version"), schema::known_version());
}

/// Holds the store's thread until the sender is dropped, so that what follows waits together.
async fn held(store: &Store) -> (std::sync::mpsc::Sender<()>, tokio::task::JoinHandle<()>) {
    let (release, hold) = std::sync::mpsc::channel::<()>();
    let (entered, inside) = tokio::sync::oneshot::channel();
    let mut entered = Some(entered);
    let store = store.clone();
    let holding = tokio::spawn(async move {
        let outcome = store
            .write(move |_| {
                if let Some(entered) = entered.take() {
                    let _ = entered.send(());
                }
                let _ = hold.recv();
                Ok(())
            })
            .await;
        assert_eq!(outcome, Ok(()));
    });
    inside.await.expect("the thread runs");
    (release, holding)
}

#[tokio::test]
async fn one_commit_for_many_and_a_failure_in_the_middle_hurts_nobody() {
    let folder = tempfile::tempdir().expect("folder");
    let path = folder.path().join("history.db");
    let store = Store::at(path.clone());
    let (release, holding) = held(&store).await;
    let a = chat("a");
    let work = async {
        tokio::join!(
            biased;
            store.append(&a, vec![user("1")]),
            store.write(|connection| {
                connection.execute("UPDATE chats SET title = 'half done'", [])?;
                connection.execute("INSERT INTO chats (id) VALUES (NULL)", [])
            }),
            store.write(|_| -> rusqlite::Result<()> { panic!("a bug in an operation") }),
            store.append(&a, vec![user("2")]),
            store.write({
                let path = path.clone();
                move |connection| {
                    let inside = count(connection, "SELECT count(*) FROM messages");
                    Ok((inside, count(&raw(&path), "SELECT count(*) FROM messages")))
                }
            }),
            store.load(&a),
            async { drop(release) },
        )
    };
    let (first, failing, panicking, second, seen, loaded, ()) = work.await;
    holding.await.expect("held");
    assert_eq!((first, second), (Ok(vec![1]), Ok(vec![2])));
    assert!(matches!(failing, Err(StoreError::Failed { .. })), "{failing:?}");
    assert!(matches!(panicking, Err(StoreError::Internal(_))), "{panicking:?}");
    assert_eq!(seen, Ok((2, 0)), "both appends are in a transaction that is not committed yet");
    let loaded = loaded.expect("load").expect("chat");
    assert_eq!((loaded.title, loaded.messages.len()), (None, 2));
    assert_eq!(count(&raw(&path), "SELECT count(*) FROM messages"), 2);
}

#[tokio::test]
async fn a_transaction_lost_as_a_whole_is_repeated_one_by_one() {
    let store = Store::in_memory();
    let (release, holding) = held(&store).await;
    let a = chat("a");
    let (first, rogue, second, ()) = tokio::join!(
        biased;
        store.append(&a, vec![user("1")]),
        // As SQLite does by itself when the disk is full.
        store.write(|connection| {
            connection.execute_batch("ROLLBACK")?;
            Err::<(), _>(rusqlite::Error::InvalidQuery)
        }),
        store.append(&a, vec![user("2")]),
        async { drop(release) },
    );
    holding.await.expect("held");
    assert_eq!((first, second), (Ok(vec![1]), Ok(vec![2])));
    assert!(matches!(rogue, Err(StoreError::Failed { .. })), "{rogue:?}");
    assert_eq!(store.load(&a).await.expect("load").expect("chat").messages.len(), 2);
}

#[tokio::test]
async fn a_lock_held_by_another_program_is_named() {
    let folder = tempfile::tempdir().expect("folder");
    let path = folder.path().join("history.db");
    let store = Store::at(path.clone());
    store
        .read(|connection| connection.busy_timeout(Duration::from_millis(1)))
        .await
        .expect("the test does not wait for five seconds");
    let other = raw(&path);
    other.execute_batch("BEGIN IMMEDIATE").expect("lock");
    let error = store.append(&chat("a"), vec![user("x")]).await.expect_err("locked");
    assert!(matches!(error, StoreError::Busy { .. }), "{error}");
    assert_eq!(store.load(&chat("a")).await, Ok(None), "reading needs no lock");
    other.execute_batch("ROLLBACK").expect("unlock");
    assert_eq!(store.append(&chat("a"), vec![user("x")]).await, Ok(vec![1]));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_stores_on_one_file_lose_and_repeat_nothing() {
    const ROUNDS: usize = 60;
    let folder = tempfile::tempdir().expect("folder");
    let path = folder.path().join("history.db");
    let mut tasks = Vec::new();
    for name in ["left", "right"] {
        let store = Store::at(path.clone());
        for lane in 0..2 {
            let store = store.clone();
            tasks.push(tokio::spawn(async move {
                for round in 0..ROUNDS {
                    let said = format!("{name} {lane} {round}");
                    store.append(&chat("shared"), vec![user(&said)]).await.expect("append shared");
                    store.append(&chat(name), vec![user(&said), user(&said)]).await.expect("append own");
                }
            }));
        }
    }
    for task in tasks {
        task.await.expect("lane");
    }
    let store = Store::at(path);
    let shared = store.load(&chat("shared")).await.expect("load").expect("chat");
    let seqs: Vec<i64> = shared.messages.iter().map(|entry| entry.seq).collect();
    assert_eq!(seqs, (1..=4 * ROUNDS as i64).collect::<Vec<_>>());
    let mut said: Vec<String> = shared.messages.iter().map(|entry| format!("{:?}", entry.message)).collect();
    said.sort();
    said.dedup();
    assert_eq!(said.len(), 4 * ROUNDS);
    for name in ["left", "right"] {
        assert_eq!(store.load(&chat(name)).await.expect("load").expect("chat").messages.len(), 4 * ROUNDS);
    }
}

const CHILD_MARK: &str = "this-folder-is-for-the-child";

/// Not a test of its own: the process that the next test kills. Lives in its working folder.
#[test]
fn child_that_appends_until_killed() {
    if !Path::new(CHILD_MARK).exists() {
        return;
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).build().expect("runtime");
    runtime.block_on(async {
        let store = Store::at("history.db".into());
        let lanes = ["one", "two", "three"].map(|name| {
            let store = store.clone();
            tokio::spawn(async move {
                // Bounded, should nobody kill us.
                for _ in 0..200_000 {
                    let items = vec![user("question"), user(&"answer ".repeat(300))];
                    let seqs = store.append(&chat(name), items).await.expect("append");
                    let line = format!("\nack {name} {} {}\n", seqs[0], seqs[1]);
                    std::io::stdout().lock().write_all(line.as_bytes()).expect("report");
                }
            })
        });
        for lane in lanes {
            lane.await.expect("lane");
        }
    });
}

fn spawn_child(folder: &Path, test: &str) -> std::process::Child {
    Command::new(std::env::current_exe().expect("own path"))
        .args(["--exact", test, "--nocapture"])
        .current_dir(folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("child")
}

#[tokio::test]
async fn acknowledged_messages_survive_a_kill() {
    let folder = tempfile::tempdir().expect("folder");
    let path = folder.path().join("history.db");
    std::fs::write(folder.path().join(CHILD_MARK), "").expect("mark");
    let mut acknowledged = Vec::new();
    // Two servers on one file, killed early (while opening), a little later, and in full flow.
    for patience in [0, 1, 40, 250] {
        let child = || spawn_child(folder.path(), "store::tests::child_that_appends_until_killed");
        let mut children = [child(), child()];
        let mut outputs = children.each_mut().map(|child| BufReader::new(child.stdout.take().expect("stdout")));
        for output in &mut outputs {
            let mut acks = 0;
            while acks < patience {
                let mut line = String::new();
                assert!(output.read_line(&mut line).expect("line") > 0, "the child ended by itself");
                acks += i32::from(line.starts_with("ack "));
                acknowledged.extend(parse_ack(&line));
            }
        }
        for child in &mut children {
            child.kill().expect("kill");
            child.wait().expect("wait");
        }
        for output in &mut outputs {
            let mut rest = String::new();
            output.read_to_string(&mut rest).expect("rest");
            // The last line may be cut.
            let whole = rest.rfind('\n').map_or("", |end| &rest[..=end]);
            acknowledged.extend(whole.lines().flat_map(parse_ack));
        }
        let store = Store::at(path.clone());
        let integrity = store
            .read(|connection| connection.pragma_query_value(None, "integrity_check", |row| row.get::<_, String>(0)))
            .await;
        assert_eq!(integrity.as_deref(), Ok("ok"));
        for name in ["one", "two", "three"] {
            let stored = store.load(&chat(name)).await.expect("load").map(|chat| chat.messages).unwrap_or_default();
            let present: std::collections::HashSet<i64> = stored.iter().map(|entry| entry.seq).collect();
            let lost: Vec<_> =
                acknowledged.iter().filter(|(chat, seq)| chat == name && !present.contains(seq)).collect();
            assert!(lost.is_empty(), "{lost:?}");
            assert_eq!(present.len() % 2, 0, "an append is stored as a whole");
        }
        store.close().await;
    }
    let total = acknowledged.len();
    assert!(total >= 4 * 291, "{total}");
    acknowledged.sort();
    acknowledged.dedup();
    assert_eq!(acknowledged.len(), total, "no number was given twice");
}

fn parse_ack(line: &str) -> Vec<(String, i64)> {
    let mut words = line.split_whitespace();
    if words.next() != Some("ack") {
        return Vec::new();
    }
    let name = words.next().expect("chat").to_owned();
    words.map(|seq| (name.clone(), seq.parse().expect("seq"))).collect()
}
