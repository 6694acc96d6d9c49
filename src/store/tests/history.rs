//! Pages and their cursors, cutting, copying, emptying, flags, and what belongs to a chat.

use super::*;

fn said(content: &str, id: &str) -> NewMessage {
    NewMessage { content_id: Some(ContentId::new(id)), ..user(content) }
}

fn marker() -> NewMessage {
    NewMessage::new(MessageKind::Marker, Message { role: Role::User, parts: vec![] })
}

/// A chat of messages m1…mN, whose content ids are c1…cN.
async fn chat_of(store: &Store, id: &str, count: usize) -> ChatId {
    let items = (1..=count).map(|number| said(&format!("m{number}"), &format!("c{number}"))).collect();
    store.append(&chat(id), items).await.expect("append");
    chat(id)
}

fn texts(entries: &[StoredEntry]) -> String {
    let text = |entry: &StoredEntry| match &entry.message.parts[..] {
        [Part::Text(text)] => text.clone(),
        _ => "-".to_owned(),
    };
    entries.iter().map(text).collect::<Vec<_>>().join(" ")
}

async fn page(store: &Store, chat: &ChatId, query: PageQuery) -> Page {
    store.load_page(chat, query).await.expect("page").expect("chat")
}

fn query(limit: usize, before: Option<&String>, after: Option<&String>) -> PageQuery {
    PageQuery { limit: Some(limit), before: before.cloned(), after: after.cloned() }
}

#[tokio::test]
async fn pages_go_back_and_forth_without_gaps() {
    let store = Store::in_memory();
    let id = chat_of(&store, "a", 7).await;
    assert_eq!(store.load_page(&chat("b"), PageQuery::default()).await, Ok(None));
    let all = page(&store, &id, PageQuery::default()).await;
    assert_eq!(texts(&all.entries), "m1 m2 m3 m4 m5 m6 m7");
    assert_eq!((all.total, all.before_cursor, all.after_cursor, all.compaction_cursor), (7, None, None, None));

    let last = page(&store, &id, query(3, None, None)).await;
    assert_eq!((texts(&last.entries).as_str(), last.total), ("m5 m6 m7", 7));
    assert!(last.before_cursor.is_some() && last.after_cursor.is_none());
    let middle = page(&store, &id, query(3, last.before_cursor.as_ref(), None)).await;
    assert_eq!(texts(&middle.entries), "m2 m3 m4");
    assert!(middle.before_cursor.is_some() && middle.after_cursor.is_some());
    let first = page(&store, &id, query(3, middle.before_cursor.as_ref(), None)).await;
    assert_eq!(texts(&first.entries), "m1");
    assert_eq!(first.before_cursor, None);
    let on = page(&store, &id, query(3, None, first.after_cursor.as_ref())).await;
    assert_eq!(texts(&on.entries), "m2 m3 m4");
    let between = query(9, last.before_cursor.as_ref(), first.after_cursor.as_ref());
    assert_eq!(texts(&page(&store, &id, between).await.entries), "m2 m3 m4");
    let nothing = page(&store, &id, query(0, None, None)).await;
    assert_eq!((nothing.entries.len(), nothing.total, nothing.before_cursor), (0, 7, None));
}

#[tokio::test]
async fn cursors_outlive_changes_elsewhere_and_expire_with_their_message() {
    let store = Store::in_memory();
    let id = chat_of(&store, "a", 6).await;
    let last = page(&store, &id, query(2, None, None)).await;
    let cursor = last.before_cursor.expect("older ones");
    chat_of(&store, "a", 2).await;
    store.add_flag(&id, &ContentId::new("c3"), &ContentId::new("f"), "here").await.expect("flag");
    assert_eq!(texts(&page(&store, &id, query(2, Some(&cursor), None)).await.entries), "m3 m4");
    store.truncate_before(&id, &ContentId::new("c5")).await.expect("cut");
    assert_eq!(store.load_page(&id, query(2, Some(&cursor), None)).await, Err(StoreError::CursorExpired));
    chat_of(&store, "a", 6).await;
    assert_eq!(store.load_page(&id, query(2, Some(&cursor), None)).await, Err(StoreError::CursorExpired));
    for wrong in ["", "x", "1", "1.", "1.zz", "-1.0", "ffffffffffffffffff.0", "1.0"] {
        let query = query(2, None, Some(&wrong.to_owned()));
        assert_eq!(store.load_page(&id, query).await, Err(StoreError::CursorExpired), "{wrong}");
    }
}

#[tokio::test]
async fn a_page_can_begin_at_the_last_compaction() {
    let store = Store::in_memory();
    let id = chat("a");
    let bound = Some(LAST_COMPACTION.to_owned());
    store.append(&id, vec![user("m1")]).await.expect("append");
    let never = page(&store, &id, query(9, None, bound.as_ref())).await;
    assert_eq!(texts(&never.entries), "m1");
    let items = vec![marker(), user("m3"), marker(), user("m5"), user("m6"), user("m7")];
    store.append(&id, items).await.expect("append");
    let since = page(&store, &id, query(2, None, bound.as_ref())).await;
    assert_eq!(texts(&since.entries), "m6 m7", "the newest, as after no other cursor");
    let before = page(&store, &id, query(9, bound.as_ref(), None)).await;
    assert_eq!(texts(&before.entries), "m1 - m3");
    let after = page(&store, &id, query(1, None, since.compaction_cursor.as_ref())).await;
    assert_eq!(texts(&after.entries), "m5");
}

#[tokio::test]
async fn pages_pass_over_what_cannot_be_read() {
    let store = Store::in_memory();
    let id = chat_of(&store, "a", 5).await;
    store
        .write(|connection| connection.execute("UPDATE messages SET body = 'broken' WHERE seq IN (1, 4, 5)", []))
        .await
        .expect("break");
    let last = page(&store, &id, query(2, None, None)).await;
    assert!(last.entries.is_empty());
    let middle = page(&store, &id, query(2, last.before_cursor.as_ref(), None)).await;
    assert_eq!(texts(&middle.entries), "m2 m3");
    let first = page(&store, &id, query(2, middle.before_cursor.as_ref(), None)).await;
    assert_eq!((first.entries.len(), first.before_cursor), (0, None));
}

#[tokio::test]
async fn flags_stand_behind_their_messages_on_every_page() {
    let store = Store::in_memory();
    let id = chat_of(&store, "a", 4).await;
    let flag =
        async |after: &str, name: &str| store.add_flag(&id, &ContentId::new(after), &ContentId::new(name), name).await;
    let names = |flags: &[StoredFlag]| -> Vec<String> {
        flags.iter().map(|flag| format!("{}@{}", flag.text, flag.after)).collect()
    };
    assert_eq!(flag("nowhere", "x").await, Err(StoreError::UnknownContent));
    flag("c4", "four").await.expect("flag");
    flag("c1", "one").await.expect("flag");
    flag("one", "behind-one").await.expect("a flag can stand behind a flag");
    let all = store.load(&id).await.expect("load").expect("chat");
    assert_eq!(names(&all.flags), ["one@1", "behind-one@1", "four@4"]);
    assert_eq!(all.messages.len(), 4, "no model gets to see a flag");
    let last = page(&store, &id, query(2, None, None)).await;
    assert_eq!(names(&last.flags), ["four@4"]);
    let first = page(&store, &id, query(2, last.before_cursor.as_ref(), None)).await;
    assert_eq!(names(&first.flags), ["one@1", "behind-one@1"]);

    assert_eq!(store.truncate_before(&id, &ContentId::new("one")).await, Ok(3), "behind the flag");
    assert_eq!(names(&store.load(&id).await.expect("load").expect("chat").flags), ["one@1", "behind-one@1"]);
    assert_eq!(store.remove_flag(&id, &ContentId::new("one")).await, Ok(true));
    assert_eq!(store.remove_flag(&id, &ContentId::new("one")).await, Ok(false));
    assert_eq!(store.truncate_before(&id, &ContentId::new("c1")).await, Ok(1));
    assert!(store.load(&id).await.expect("load").expect("chat").flags.is_empty());
}

#[tokio::test]
async fn a_cut_takes_the_whole_prompt_and_counts() {
    let store = Store::in_memory();
    let id = chat_of(&store, "a", 2).await;
    store.append(&id, vec![said("m3", "c3"), said("m4", "c3"), user("m5")]).await.expect("append");
    assert_eq!(store.truncate_before(&id, &ContentId::new("c9")).await, Err(StoreError::UnknownContent));
    assert_eq!(store.truncate_before(&chat("b"), &ContentId::new("c3")).await, Err(StoreError::UnknownContent));
    assert_eq!(store.truncate_before(&id, &ContentId::new("c3")).await, Ok(3));
    let left = store.load(&id).await.expect("load").expect("chat");
    assert_eq!((texts(&left.messages).as_str(), left.message_count), ("m1 m2", 2));
    assert_eq!(store.append(&id, vec![user("m6")]).await, Ok(vec![6]), "numbers are not used again");
    assert_eq!(store.list(ListQuery::default()).await.expect("list")[0].message_count, 3);
}

#[tokio::test]
async fn a_fork_is_a_chat_of_its_own() {
    let store = Store::in_memory();
    let id = chat("a");
    let meta = ChatMeta {
        model: ModelId::parse("p/m"),
        agent: Some("plan".into()),
        workspace_key: Some("w".into()),
        variant: Some("high".into()),
        trust: Some(true),
        ..ChatMeta::new(id.clone())
    };
    store.create_or_touch_chat(meta).await.expect("create");
    chat_of(&store, "a", 2).await;
    store.append(&id, vec![said("m3", "c3"), said("m4", "c3"), user("m5")]).await.expect("append");
    store.add_flag(&id, &ContentId::new("c2"), &ContentId::new("f"), "kept").await.expect("flag");
    store.set_state(&id, "tasks", Some(&json!([1]))).await.expect("state");
    store.set_state(&id, "private.allowed", Some(&json!([1]))).await.expect("state");
    store.add_usage(&id, usage(1, 2, 3, 4), Some(1.0)).await.expect("usage");
    let fork = |from: &str, at: &str, id: &str| Fork {
        from: chat(from),
        at: Some(ContentId::new(at)),
        id: chat(id),
        title: Some("copy (2)".into()),
    };
    assert_eq!(store.fork(fork("a", "c3", "b")).await, Ok(4));
    let copy = store.load(&chat("b")).await.expect("load").expect("chat");
    assert_eq!((texts(&copy.messages).as_str(), copy.message_count), ("m1 m2 m3 m4", 4));
    assert_eq!((copy.model, copy.agent.as_deref()), (ModelId::parse("p/m"), Some("plan")));
    assert_eq!((copy.variant.as_deref(), copy.workspace_key.as_deref()), (Some("high"), Some("w")));
    assert_eq!((copy.title.as_deref(), copy.trust, copy.cost_usd), (Some("copy (2)"), None, None));
    assert_eq!(copy.flags.len(), 1);
    assert_eq!(store.state(&chat("b"), "tasks").await, Ok(Some(json!([1]))));
    assert_eq!(store.state(&chat("b"), "private.allowed").await, Ok(None));
    assert_eq!(store.append(&chat("b"), vec![user("own")]).await, Ok(vec![5]));
    assert_eq!(store.load(&id).await.expect("load").expect("chat").messages.len(), 5);

    let unknown = StoreError::UnknownChat { chat: "z".into() };
    assert_eq!(store.fork(fork("z", "c3", "c")).await, Err(unknown));
    assert_eq!(store.fork(fork("a", "c9", "c")).await, Err(StoreError::UnknownContent));
    assert_eq!(store.fork(fork("a", "c1", "b")).await, Err(StoreError::ChatExists { chat: "b".into() }));
    assert_eq!(store.fork(fork("a", "f", "c")).await, Ok(2), "at a flag");
    assert_eq!(store.delete(&id).await, Ok(true));
    assert_eq!(store.load(&chat("b")).await.expect("load").expect("chat").messages.len(), 5);
}

#[tokio::test]
async fn clearing_keeps_the_name_and_the_choices() {
    let store = Store::in_memory();
    let id = chat_of(&store, "a", 3).await;
    store.set_title(&id, "mine", TitleSource::User).await.expect("title");
    store.set_selection(&id, ModelId::parse("p/m"), None).await.expect("selection");
    store.add_usage(&id, usage(1, 2, 3, 4), Some(1.0)).await.expect("usage");
    store.set_state(&id, "tasks", Some(&json!({"x": 1}))).await.expect("state");
    store.add_flag(&id, &ContentId::new("c1"), &ContentId::new("f"), "f").await.expect("flag");
    assert_eq!(store.clear(&chat("b")).await, Ok(false));
    assert_eq!(store.clear(&id).await, Ok(true));
    let left = store.load(&id).await.expect("load").expect("chat");
    assert_eq!((left.messages.len(), left.message_count, left.flags.len()), (0, 0, 0));
    assert_eq!((left.total_usage, left.last_usage, left.cost_usd), (Usage::default(), Usage::default(), None));
    assert_eq!((left.title.as_deref(), left.model), (Some("mine"), ModelId::parse("p/m")));
    assert_eq!(store.state(&id, "tasks").await, Ok(None));
    assert_eq!(store.append(&id, vec![user("m4")]).await, Ok(vec![4]));
}

#[tokio::test]
async fn settings_and_state_are_kept_with_the_chat() {
    let store = Store::in_memory();
    let id = chat_of(&store, "a", 1).await;
    let variant =
        |variant: Option<&str>| ChatSettings { variant: Some(variant.map(str::to_owned)), ..ChatSettings::default() };
    assert_eq!(store.set_settings(&chat("b"), ChatSettings::default()).await, Ok(false));
    assert_eq!(store.set_settings(&id, variant(Some("low"))).await, Ok(true));
    let trust = ChatSettings { trust: Some(false), ..ChatSettings::default() };
    assert_eq!(store.set_settings(&id, trust).await, Ok(true));
    let head = store.head(&id).await.expect("head").expect("chat");
    assert_eq!((head.variant.as_deref(), head.trust, head.message_count), (Some("low"), Some(false), 1));
    assert!(head.messages.is_empty());
    assert_eq!(store.set_settings(&id, variant(None)).await, Ok(true));
    assert_eq!(store.head(&id).await.expect("head").expect("chat").variant, None);
    assert_eq!(store.head(&chat("b")).await, Ok(None));

    assert_eq!(store.set_state(&chat("b"), "k", Some(&json!(1))).await, Ok(false));
    assert_eq!(store.set_state(&id, "k", Some(&json!({"deep": [null, "x"]}))).await, Ok(true));
    assert_eq!(store.set_state(&id, "other", Some(&json!(2))).await, Ok(true));
    assert_eq!(store.state(&id, "k").await, Ok(Some(json!({"deep": [null, "x"]}))));
    assert_eq!(store.set_state(&id, "k", None).await, Ok(true));
    assert_eq!((store.state(&id, "k").await, store.state(&id, "other").await), (Ok(None), Ok(Some(json!(2)))));
    let huge = json!("x".repeat(MOST_STATE_BYTES));
    assert!(matches!(store.set_state(&id, "k", Some(&huge)).await, Err(StoreError::TooLarge { .. })));
}

#[tokio::test]
async fn chats_that_work_for_another_are_not_listed_and_go_with_it() {
    let store = Store::in_memory();
    let child = |id: &str, parent: &str| ChatMeta {
        parent: Some(chat(parent)),
        workspace_key: Some("w".into()),
        ..ChatMeta::new(chat(id))
    };
    chat_of(&store, "a", 1).await;
    store.create_or_touch_chat(child("subagent-1", "a")).await.expect("child");
    store.create_or_touch_chat(child("subagent-2", "subagent-1")).await.expect("grandchild");
    chat_of(&store, "subagent-2", 1).await;
    for workspace_key in [None, Some("w".to_owned())] {
        let query = ListQuery { workspace_key: workspace_key.clone(), ..ListQuery::default() };
        let listed = store.list(query).await.expect("list");
        assert_eq!(listed.len(), usize::from(workspace_key.is_none()));
    }
    assert_eq!(store.delete(&chat("a")).await, Ok(true));
    for id in ["subagent-1", "subagent-2"] {
        assert_eq!(store.head(&chat(id)).await, Ok(None), "{id}");
    }
    let circle = child("x", "y");
    store.create_or_touch_chat(circle).await.expect("x");
    store.create_or_touch_chat(child("y", "x")).await.expect("y");
    assert_eq!(store.delete(&chat("x")).await, Ok(true), "a circle has an end");
    assert_eq!(store.head(&chat("y")).await, Ok(None));
}
