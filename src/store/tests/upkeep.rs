//! What is done when nobody waits: old messages are indexed, old chats go, room is given back;
//! and the step from the first schema.

use super::search::until_upkeep_is_done;
use super::*;

/// A file as the first version left it, with `count` messages in chat `a`.
fn first_version(path: &Path, count: usize) {
    let connection = raw(path);
    connection.pragma_update(None, "journal_mode", "WAL").expect("mode");
    connection.execute_batch(schema::MIGRATIONS[0]).expect("schema");
    connection.pragma_update(None, "application_id", schema::APPLICATION_ID).expect("owner");
    connection.pragma_update(None, "user_version", 1).expect("version");
    let chats = "INSERT INTO chats (id, title, created_at, updated_at, next_seq) VALUES ('a', 'old', 1, 2, ?1)";
    connection.execute(chats, [count as i64 + 1]).expect("chat");
    connection.execute("INSERT INTO chats (id, created_at, updated_at) VALUES ('empty', 1, 1)", []).expect("chat");
    let body = r#"{"version":1,"role":"user","parts":[{"type":"text","text":"ancient words"}]}"#;
    let message = "INSERT INTO messages (chat_id, seq, kind, body, created_at) VALUES ('a', ?1, 'user', ?2, 1)";
    for seq in 1..=count {
        connection.execute(message, rusqlite::params![seq as i64, body]).expect("message");
    }
}

#[tokio::test]
async fn a_file_of_the_first_version_is_taken_over_and_its_words_are_found_later() {
    let folder = tempfile::tempdir().expect("folder");
    let path = folder.path().join("chats.db");
    first_version(&path, 150);
    let store = Store::at(path.clone());
    let listed = store.list(ListQuery::default()).await.expect("list");
    let counts: Vec<(&str, u64)> = listed.iter().map(|chat| (chat.id.as_str(), chat.message_count)).collect();
    assert_eq!(counts, [("a", 150), ("empty", 0)]);
    assert_eq!(store.append(&chat("a"), vec![user("modern words")]).await, Ok(vec![151]));
    until_upkeep_is_done(&store).await;
    let query = SearchQuery { text: "ancient".into(), workspace_key: None, limit: 9 };
    assert_eq!(store.search(query).await.expect("search").len(), 3);
    let indexed = store.read(|connection| Ok(count(connection, "SELECT count(*) FROM search"))).await;
    assert_eq!(indexed, Ok(151), "each message once");
    assert_eq!(count(&raw(&path), "PRAGMA user_version"), schema::known_version());
}

#[tokio::test]
async fn several_servers_index_the_same_messages_once() {
    let folder = tempfile::tempdir().expect("folder");
    let path = folder.path().join("chats.db");
    first_version(&path, 400);
    let stores: Vec<Store> = (0..3).map(|_| Store::at(path.clone())).collect();
    for store in &stores {
        store.append(&chat("b"), vec![user("one more")]).await.expect("append");
    }
    for store in &stores {
        // A server that another one kept from working goes on when it writes again.
        store.append(&chat("b"), vec![user("one more")]).await.expect("append");
    }
    until_upkeep_is_done(&stores[2]).await;
    let indexed = stores[0].read(|connection| Ok(count(connection, "SELECT count(*) FROM search"))).await;
    assert_eq!(indexed, Ok(406));
}

#[tokio::test]
async fn only_chats_that_nobody_uses_are_pruned() {
    let folder = tempfile::tempdir().expect("folder");
    let path = folder.path().join("chats.db");
    let (store, other) = (Store::at(path.clone()), Store::at(path));
    let day = 24 * 60 * 60 * 1000;
    let now = now_ms();
    for (id, age, imported) in [
        ("new", 1, None),
        ("old", 20, None),
        ("held", 20, None),
        ("imported-lately", 20, Some(1)),
        ("imported-long-ago", 40, Some(20)),
    ] {
        store.append(&chat(id), vec![user("x")]).await.expect("append");
        let (updated, imported) = (now - age * day, imported.map(|age: i64| now - age * day));
        store
            .write(move |connection| {
                let sql = "UPDATE chats SET updated_at = ?2, imported_at = ?3 WHERE id = ?1";
                connection.execute(sql, rusqlite::params![id, updated, imported])
            })
            .await
            .expect("times");
    }
    let child = ChatMeta { parent: Some(chat("old")), ..ChatMeta::new(chat("subagent-1")) };
    store.create_or_touch_chat(child).await.expect("child");
    let orphan = ChatMeta { parent: Some(chat("nobody")), ..ChatMeta::new(chat("subagent-2")) };
    store.create_or_touch_chat(orphan).await.expect("orphan");
    let long_ago = "UPDATE chats SET updated_at = 1 WHERE id = 'subagent-2'";
    store.write(move |connection| connection.execute(long_ago, [])).await.expect("time");
    assert_eq!(other.claim(&chat("held")).await, Ok(Claim::Ours));
    let ten_days = Duration::from_millis(10 * day as u64);
    assert_eq!(store.prune(ten_days).await, Ok(3));
    assert_eq!(store.prune(ten_days).await, Ok(0));
    let left: Vec<String> =
        store.list(ListQuery::default()).await.expect("list").iter().map(|chat| chat.id.to_string()).collect();
    assert_eq!(left, ["new", "imported-lately", "held"]);
    for gone in ["subagent-1", "subagent-2"] {
        assert_eq!(store.head(&chat(gone)).await, Ok(None), "{gone}");
    }
    let tombs = store.read(|connection| Ok(count(connection, "SELECT count(*) FROM tombstones"))).await;
    assert_eq!(tombs, Ok(1), "what was imported is not imported again");
    assert_eq!(store.prune(Duration::MAX).await, Ok(0));
}

#[tokio::test]
async fn many_chats_are_pruned_in_several_writes() {
    let store = Store::in_memory();
    for number in 0..45 {
        store.append(&chat(&number.to_string()), vec![user("x")]).await.expect("append");
    }
    store.write(|connection| connection.execute("UPDATE chats SET updated_at = 1", [])).await.expect("long ago");
    assert_eq!(store.prune(Duration::from_secs(1)).await, Ok(45));
    assert_eq!(store.list(ListQuery::default()).await, Ok(vec![]));
}

#[tokio::test]
async fn room_is_given_back() {
    let folder = tempfile::tempdir().expect("folder");
    let path = folder.path().join("chats.db");
    let store = Store::at(path.clone());
    let long = "x ".repeat(50_000);
    store.append(&chat("a"), (0..100).map(|_| user(&long)).collect()).await.expect("append");
    let pages = async || store.read(|connection| Ok(count(connection, "PRAGMA page_count"))).await.expect("pages");
    let before = pages().await;
    store.delete(&chat("a")).await.expect("delete");
    let mut after = before;
    for _ in 0..10_000 {
        after = pages().await;
        if after < before / 2 {
            break;
        }
        tokio::task::yield_now().await;
    }
    assert!(after < before / 2, "{before} pages, then {after}");
    store.close().await;
    assert!(std::fs::metadata(&path).expect("file").len() < before as u64 * 4096 / 2);
}
