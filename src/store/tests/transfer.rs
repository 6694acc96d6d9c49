//! Chats as documents: there and back, and documents that are none.

use super::*;

async fn full_chat(store: &Store) -> ChatId {
    let id = chat("a");
    let meta = ChatMeta {
        model: ModelId::parse("p/m"),
        agent: Some("code".into()),
        workspace_key: Some("w".into()),
        variant: Some("high".into()),
        trust: Some(true),
        ..ChatMeta::new(id.clone())
    };
    store.create_or_touch_chat(meta).await.expect("create");
    let all = NewMessage {
        kind: MessageKind::Other("future".into()),
        content_id: Some(ContentId::new("c2")),
        message: every_part(),
        extra: Some(json!({"calls": [{"id": "c"}]})),
    };
    let first = NewMessage { content_id: Some(ContentId::new("c1")), ..user("hi") };
    store.append(&id, vec![first, all]).await.expect("append");
    store.set_title(&id, "mine", TitleSource::User).await.expect("title");
    store.add_usage(&id, usage(1, 2, 3, 4), Some(0.5)).await.expect("usage");
    store.add_flag(&id, &ContentId::new("c1"), &ContentId::new("f"), "flag").await.expect("flag");
    store.set_state(&id, "tasks", Some(&json!([1, null]))).await.expect("state");
    store.set_state(&id, "private.allowed", Some(&json!(["shell"]))).await.expect("state");
    let child = ChatMeta { parent: Some(id.clone()), ..ChatMeta::new(chat("subagent-1")) };
    store.create_or_touch_chat(child).await.expect("child");
    store.append(&chat("subagent-1"), vec![user("helped")]).await.expect("append");
    id
}

#[tokio::test]
async fn a_chat_comes_back_as_it_was_but_for_trust() {
    let (from, to) = (Store::in_memory(), Store::in_memory());
    let id = full_chat(&from).await;
    let document = from.export(&id).await.expect("export");
    assert_eq!((&document["format"], &document["version"]), (&json!("eca-chat"), &json!(1)));
    // What is sent to another machine is a text.
    let document: Value = serde_json::from_str(&document.to_string()).expect("json");
    assert_eq!(to.import(document.clone(), Some("elsewhere".into())).await, Ok(id.clone()));
    let (before, after) = (from.load(&id).await, to.load(&id).await);
    let (before, after) = (before.expect("load").expect("chat"), after.expect("load").expect("chat"));
    assert_eq!(after.messages, before.messages);
    assert_eq!(after.flags, before.flags);
    assert!(after.imported_at.is_some());
    let expected = StoredChat {
        trust: None,
        workspace_key: Some("elsewhere".into()),
        imported_at: after.imported_at,
        ..before.clone()
    };
    assert_eq!(after, expected);
    assert_eq!(to.state(&id, "tasks").await, Ok(Some(json!([1, null]))));
    assert_eq!(to.state(&id, "private.allowed").await, Ok(None));
    let child = to.load(&chat("subagent-1")).await.expect("load").expect("child");
    assert_eq!((child.parent, child.messages.len()), (Some(id.clone()), 1));

    let second = to.import(document, None).await.expect("again");
    assert_ne!(second, id, "nothing is overwritten");
    assert_eq!(to.load(&second).await.expect("load").expect("chat").messages, before.messages);
    assert_eq!(to.list(ListQuery::default()).await.expect("list").len(), 2);
    assert_eq!(from.export(&chat("z")).await, Err(StoreError::UnknownChat { chat: "z".into() }));
    let helper = from.export(&chat("subagent-1")).await.expect("export");
    let alone = to.import(helper, None).await.expect("import");
    assert!(!alone.as_str().starts_with("subagent-"), "{alone}");
}

#[tokio::test]
async fn what_cannot_be_read_is_left_out_of_a_document() {
    let store = Store::in_memory();
    store.append(&chat("a"), vec![user("1"), user("2"), user("3"), user("4")]).await.expect("append");
    store
        .write(|connection| {
            connection.execute("UPDATE messages SET body = 'broken' WHERE seq = 1", [])?;
            let body = r#"{"version":9,"role":"user","parts":[{"type":"smell"},{"type":"text","text":"kept"}]}"#;
            connection.execute("UPDATE messages SET body = ?1 WHERE seq = 2", [body])?;
            connection.execute("UPDATE messages SET kind = CAST(x'ff' AS TEXT) WHERE seq = 3", [])
        })
        .await
        .expect("break");
    store
        .write(|connection| {
            connection.execute(
                "INSERT INTO flags (chat_id, after_seq, content_id, text, created_at) VALUES ('a', 3, 'f', 'f', 0)",
                [],
            )
        })
        .await
        .expect("flag");
    let document = store.export(&chat("a")).await.expect("export");
    let other = Store::in_memory();
    let id = other.import(document, None).await.expect("import");
    let stored = other.load(&id).await.expect("load").expect("chat");
    assert_eq!(
        stored.messages.iter().map(|entry| &entry.message).collect::<Vec<_>>(),
        [&text(Role::User, "kept"), &text(Role::User, "4")]
    );
    assert_eq!(stored.flags[0].after, 1, "behind what is left of the messages before it");
}

#[tokio::test]
async fn documents_that_are_none_are_refused_with_a_reason() {
    let store = Store::in_memory();
    let chat = |chat: Value| json!({"format": "eca-chat", "version": 1, "chat": chat});
    let message = |body: Value| chat(json!({"id": "a", "messages": [{"kind": "user", "body": body}]}));
    for (document, reason) in [
        (json!(null), "format"),
        (json!({"version": 1}), "format"),
        (json!({"format": "eca-chat"}), "no version"),
        (json!({"format": "eca-chat", "version": 2, "chat": {}}), "version 2"),
        (json!({"format": "eca-chat", "version": 1}), "missing field `chat`"),
        (chat(json!({})), "chat: missing field `id`"),
        (chat(json!({"id": 7})), "chat.id"),
        (chat(json!({"id": " "})), "blank"),
        (chat(json!({"id": "a b"})), "white space"),
        (chat(json!({"id": "a", "messages": [7]})), "chat.messages[0]"),
        (message(json!({"version": 1, "role": "judge"})), "chat.messages[0].body.role"),
        (message(json!("text")), "chat.messages[0].body"),
        (chat(json!({"id": "a", "subagents": [{"id": "x y"}]})), "white space"),
    ] {
        let error = store.import(document.clone(), None).await.expect_err("refused");
        assert!(matches!(error, StoreError::BadExport { .. }), "{error:?}");
        assert!(error.to_string().contains(reason), "{document}: {error}");
    }
    assert_eq!(store.list(ListQuery::default()).await, Ok(vec![]));
    let odd = chat(json!({
        "id": "a", "model": "nonsense", "title_source": "nobody", "cost_usd": 1e300, "unknown": {"x": 1},
        "total_usage": {"input": u64::MAX}, "state": {"private.allowed": ["shell"], "tasks": 1}, "trust": true, "flags": [{"after": 99, "content_id": "f", "text": "t"}],
        "messages": [{"kind": "user", "body": {"version": 1, "role": "user"}}]
    }));
    let id = store.import(odd, None).await.expect("odd but harmless");
    let stored = store.load(&id).await.expect("load").expect("chat");
    assert_eq!((stored.model, stored.title_source, stored.flags[0].after), (None, None, 1));
    assert_eq!(stored.trust, None);
    assert_eq!(store.state(&id, "private.allowed").await, Ok(None), "no document says what is allowed");
    assert_eq!(store.state(&id, "tasks").await, Ok(Some(json!(1))));
}
