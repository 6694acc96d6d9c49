//! What is remembered of changed files, and how much of it.

use bytes::Bytes;

use super::*;

pub(super) fn change(call: &str, order: i64, path: &str, before: Option<&str>, after: Option<&str>) -> NewChange {
    let content = |text: Option<&str>| text.map(|text| Bytes::copy_from_slice(text.as_bytes()));
    NewChange { call: call.into(), order, path: path.into(), before: content(before), after: content(after) }
}

pub(super) fn said(id: &str) -> NewMessage {
    NewMessage { content_id: Some(ContentId::new(id)), ..user("x") }
}

#[tokio::test]
async fn changes_since_a_message_come_newest_first_and_survive_a_restart() {
    let folder = tempfile::tempdir().expect("folder");
    let path = folder.path().join("chats.db");
    let id = chat("a");
    let store = Store::at(path.clone());
    let unknown = store.record_change(&id, change("c", 0, "/f", None, None)).await;
    assert_eq!(unknown, Err(StoreError::UnknownChat { chat: "a".into() }));
    store.append(&id, vec![said("one")]).await.expect("append");
    store.record_change(&id, change("c1", 0, "/f", None, Some("v1"))).await.expect("record");
    store.append(&id, vec![said("two")]).await.expect("append");
    store.record_change(&id, change("c2", 0, "/f", Some("v1"), Some("v2"))).await.expect("record");
    store.record_change(&id, change("c2", 1, "/g", Some("old"), None)).await.expect("record");
    store.close().await;

    let store = Store::at(path);
    let since = async |content: &str| store.changes_since(&id, &ContentId::new(content)).await.expect("changes");
    let calls = |changes: &[Change]| -> Vec<String> {
        changes.iter().map(|change| format!("{} {} {}", change.call, change.order, change.path.display())).collect()
    };
    let two = since("two").await;
    assert_eq!(calls(&two), ["c2 1 /g", "c2 0 /f"]);
    let one = since("one").await;
    assert_eq!(calls(&one), ["c2 1 /g", "c2 0 /f", "c1 0 /f"]);
    assert_eq!((one[0].existed, one[0].is_kept, one[0].size_before), (true, true, 3));
    assert_eq!((one[2].existed, one[2].size_before), (false, 0));
    assert_eq!(store.content_before(&one[0]).await, Ok(Some(b"old".to_vec())));
    assert_eq!(store.content_before(&one[1]).await, Ok(Some(b"v1".to_vec())));
    assert_eq!(store.content_before(&one[2]).await, Ok(None));
    assert!(one[0].is_untouched(None) && !one[0].is_untouched(Some(b"back")));
    assert!(one[1].is_untouched(Some(b"v2")) && !one[1].is_untouched(Some(b"v3")) && !one[1].is_untouched(None));

    store.forget_changes(&two).await.expect("forget");
    assert_eq!(calls(&since("one").await), ["c1 0 /f"]);
    let gone = store.changes_since(&id, &ContentId::new("three")).await;
    assert_eq!(gone, Err(StoreError::UnknownContent));
    store.delete(&id).await.expect("delete");
    let left = store.read(|connection| Ok(count(connection, "SELECT count(*) FROM changes"))).await;
    assert_eq!(left, Ok(0));
}

#[tokio::test]
async fn a_cut_of_the_messages_leaves_their_changes_to_a_later_rollback() {
    let store = Store::in_memory();
    let id = chat("a");
    for (number, content) in ["one", "two"].into_iter().enumerate() {
        store.append(&id, vec![said(content)]).await.expect("append");
        store.record_change(&id, change(content, 0, "/f", Some(&number.to_string()), None)).await.expect("record");
    }
    store.truncate_before(&id, &ContentId::new("two")).await.expect("cut");
    store.append(&id, vec![said("three")]).await.expect("append");
    store.record_change(&id, change("three", 0, "/f", Some("3"), None)).await.expect("record");
    let since = async |content: &str| -> Vec<String> {
        let changes = store.changes_since(&id, &ContentId::new(content)).await.expect("changes");
        changes.iter().map(|change| change.call.to_string()).collect()
    };
    assert_eq!(since("three").await, ["three"]);
    assert_eq!(since("one").await, ["three", "two", "one"]);
}

#[tokio::test]
async fn contents_are_bytes_and_paths_need_not_be_unicode() {
    let store = Store::in_memory();
    let id = chat("a");
    store.append(&id, vec![said("one")]).await.expect("append");
    #[cfg(unix)]
    let path: PathBuf =
        <std::ffi::OsString as std::os::unix::ffi::OsStringExt>::from_vec(b"/odd\xff\n".to_vec()).into();
    #[cfg(not(unix))]
    let path = PathBuf::from("odd");
    let before = vec![0, 0xff, b'\n', 0xc3];
    let new = NewChange {
        call: "c".into(),
        order: 0,
        path: path.clone(),
        before: Some(before.clone().into()),
        after: Some(Bytes::new()),
    };
    store.record_change(&id, new).await.expect("record");
    let changes = store.changes_since(&id, &ContentId::new("one")).await.expect("changes");
    assert_eq!(changes[0].path, path);
    assert_eq!(store.content_before(&changes[0]).await, Ok(Some(before)));
    assert!(changes[0].is_untouched(Some(b"")) && !changes[0].is_untouched(None));
}

#[tokio::test]
async fn what_is_too_large_is_refused_by_name() {
    let store = Store::in_memory();
    let id = chat("a");
    store.append(&id, vec![said("one")]).await.expect("append");
    let large = NewChange {
        before: Some(vec![0; MOST_CONTENT_BYTES + 1].into()),
        ..change("c", 0, "/data/huge.bin", None, None)
    };
    let error = store.record_change(&id, large).await.expect_err("too large");
    assert!(matches!(error, StoreError::TooLarge { .. }) && error.to_string().contains("/data/huge.bin"), "{error}");
    assert!(store.changes_since(&id, &ContentId::new("one")).await.expect("changes").is_empty());
}
