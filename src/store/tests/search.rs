//! Finding words, through everything that writes, cuts, copies and deletes messages.

use super::*;

async fn found(store: &Store, text: &str) -> Vec<String> {
    found_in(store, text, None, 20).await
}

/// `chat:seq` of each hit, and `chat:title` for titles.
async fn found_in(store: &Store, text: &str, workspace: Option<&str>, limit: usize) -> Vec<String> {
    let query = SearchQuery { text: text.into(), workspace_key: workspace.map(str::to_owned), limit };
    let hits = store.search(query).await.expect("search");
    let name = |hit: &SearchHit| hit.seq.map_or("title".to_owned(), |seq| seq.to_string());
    hits.iter().map(|hit| format!("{}:{}", hit.chat, name(hit))).collect()
}

fn result(content: &str) -> NewMessage {
    let part = Part::ToolResult { call_id: "c".into(), text: content.into(), images: vec![], error: false };
    NewMessage::new(MessageKind::ToolResult, Message { role: Role::User, parts: vec![part] })
}

fn thought(content: &str) -> NewMessage {
    let part = Part::Reasoning { text: content.into(), replay: None };
    NewMessage::new(MessageKind::Assistant, Message { role: Role::Assistant, parts: vec![part] })
}

#[tokio::test]
async fn words_of_users_models_and_tools_are_found() {
    let store = Store::in_memory();
    let items = vec![
        user("How do I parse_config in Rust?"),
        NewMessage::new(MessageKind::Assistant, text(Role::Assistant, "Use serde. Ein Café für naïve Leute.")),
        result("error[E0308]: mismatched types --> src/main.rs:10"),
        thought("secretly pondering"),
        user("日本語のテスト"),
    ];
    store.append(&chat("a"), items).await.expect("append");
    for (question, expected) in [
        ("parse_config", vec!["a:1"]),
        ("parse config", vec!["a:1"]),
        ("config parse", vec!["a:1"]),
        ("rust pars", vec!["a:1"]),
        ("pars rust", vec![]),
        ("pars", vec!["a:1"]),
        ("SERDE", vec!["a:2"]),
        ("cafe", vec!["a:2"]),
        ("CAFÉ fur", vec!["a:2"]),
        ("e0308 main.rs", vec!["a:3"]),
        ("pondering", vec![]),
        ("日本", vec!["a:5"]),
        ("テスト", vec!["a:5"]),
        ("本日", vec![]),
        ("nothing here", vec![]),
        ("", vec![]),
        ("\" OR * AND NEAR(", vec![]),
        ("'; DROP TABLE messages; --", vec![]),
    ] {
        assert_eq!(found(&store, question).await, expected, "{question}");
    }
    let query = SearchQuery { text: "mismatched".into(), workspace_key: None, limit: 1 };
    let hit = store.search(query).await.expect("search").remove(0);
    assert_eq!(hit.snippet, "error[E0308]: mismatched types --> src/main.rs:10");
}

#[tokio::test]
async fn the_newest_come_first_and_no_chat_hides_the_others() {
    let store = Store::in_memory();
    for id in ["a", "b"] {
        let meta = ChatMeta { workspace_key: Some(format!("w{id}")), ..ChatMeta::new(chat(id)) };
        store.create_or_touch_chat(meta).await.expect("create");
    }
    store.append(&chat("a"), vec![user("needle 1")]).await.expect("append");
    store.append(&chat("b"), (0..5).map(|_| user("needle")).collect()).await.expect("append");
    assert_eq!(found(&store, "needle").await, ["b:5", "b:4", "b:3", "a:1"]);
    assert_eq!(found_in(&store, "needle", None, 2).await, ["b:5", "b:4"]);
    assert_eq!(found_in(&store, "needle", Some("wa"), 9).await, ["a:1"]);
    assert_eq!(found_in(&store, "needle", Some("elsewhere"), 9).await, Vec::<String>::new());
    assert_eq!(found_in(&store, "needle", None, 0).await, Vec::<String>::new());
    store.set_title(&chat("a"), "About needles", TitleSource::User).await.expect("title");
    assert_eq!(found_in(&store, "needle", None, 2).await, ["a:title", "b:5"]);
    let child = ChatMeta { parent: Some(chat("a")), ..ChatMeta::new(chat("subagent-1")) };
    store.create_or_touch_chat(child).await.expect("child");
    store.append(&chat("subagent-1"), vec![user("needle of a helper")]).await.expect("append");
    assert_eq!(found_in(&store, "needle of a", None, 9).await, Vec::<String>::new());
}

#[tokio::test]
async fn what_is_gone_is_not_found_and_what_is_copied_is() {
    let store = Store::in_memory();
    let said = |content: &str, id: &str| NewMessage { content_id: Some(ContentId::new(id)), ..user(content) };
    store.append(&chat("a"), vec![said("alpha", "c1"), said("beta", "c2")]).await.expect("append");
    let fork = Fork { from: chat("a"), at: Some(ContentId::new("c1")), id: chat("b"), title: None };
    store.fork(fork).await.expect("fork");
    assert_eq!(found(&store, "alpha").await, ["b:1", "a:1"]);
    store.truncate_before(&chat("a"), &ContentId::new("c2")).await.expect("cut");
    assert_eq!(found(&store, "beta").await, Vec::<String>::new());
    store.append(&chat("a"), vec![user("gamma")]).await.expect("append");
    assert_eq!(found(&store, "gamma").await, ["a:3"]);
    store.clear(&chat("a")).await.expect("clear");
    assert_eq!(found(&store, "alpha").await, ["b:1"]);
    store.delete(&chat("b")).await.expect("delete");
    assert_eq!(found(&store, "alpha").await, Vec::<String>::new());
    let left = store.read(|connection| Ok(count(connection, "SELECT count(*) FROM search"))).await;
    assert_eq!(left, Ok(0));
}

#[tokio::test]
async fn a_broken_index_costs_no_message_and_is_made_anew() {
    let folder = tempfile::tempdir().expect("folder");
    let path = folder.path().join("chats.db");
    let store = Store::at(path.clone());
    store.append(&chat("a"), vec![user("needle one")]).await.expect("append");
    store.close().await;
    // The rows in which the index keeps its own structure.
    raw(&path).execute_batch("UPDATE search_data SET block = x'ffffffffffff'").expect("break");
    let store = Store::at(path.clone());
    let query = SearchQuery { text: "needle".into(), workspace_key: None, limit: 9 };
    let error = store.search(query).await.expect_err("broken");
    assert!(error.to_string().contains("made anew"), "{error}");
    assert_eq!(store.append(&chat("a"), vec![user("needle two")]).await, Ok(vec![2]));
    until_upkeep_is_done(&store).await;
    assert_eq!(found(&store, "needle").await, ["a:2", "a:1"]);
    assert!(store.take_notices().is_empty(), "the messages are not damaged");

    raw(&path).execute_batch("UPDATE search_data SET block = x'ffffffffffff'").expect("break");
    let other = Store::at(path);
    assert_eq!(other.append(&chat("a"), vec![user("needle three")]).await, Ok(vec![3]));
    until_upkeep_is_done(&other).await;
    assert_eq!(found(&other, "needle").await, ["a:3", "a:2", "a:1"]);
}

/// The queue is empty between these questions, so the thread works on.
pub(super) async fn until_upkeep_is_done(store: &Store) {
    for _ in 0..10_000 {
        let left = store
            .read(|connection| {
                let value = |name| count(connection, &format!("SELECT value FROM upkeep WHERE name = '{name}'"));
                Ok(value("index_until") - value("indexed"))
            })
            .await
            .expect("upkeep");
        if left <= 0 {
            return;
        }
        tokio::task::yield_now().await;
    }
    panic!("upkeep does not end");
}
