//! Large contents of the journal: files that come and go with their rows.

use std::fs;

use bytes::Bytes;

use super::journal::{change, said};
use super::*;
use crate::store::contents::{MOST_BYTES_IN_ROW, NewFile};

const LARGE: usize = MOST_BYTES_IN_ROW + 1;

/// A history with one chat in which the user said "one".
struct Lab {
    _folder: tempfile::TempDir,
    path: PathBuf,
    files: PathBuf,
    id: ChatId,
}

impl Lab {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("folder");
        let path = folder.path().join("chats.db");
        let files = folder.path().join("chats.db-contents");
        Self { _folder: folder, path, files, id: chat("a") }
    }

    async fn store(&self) -> Store {
        let store = Store::at(self.path.clone());
        store.append(&self.id, vec![said("one")]).await.expect("append");
        store
    }

    fn names(&self) -> Vec<String> {
        let Ok(entries) = fs::read_dir(&self.files) else { return Vec::new() };
        let mut names: Vec<String> =
            entries.map(|entry| entry.expect("entry").file_name().into_string().expect("name")).collect();
        names.sort();
        names
    }

    /// Lets the thread work until the folder has so many files.
    async fn until_files_are(&self, store: &Store, expected: usize) {
        for _ in 0..10_000 {
            let listed = store.read(|connection| Ok(count(connection, "SELECT count(*) FROM released_contents"))).await;
            if self.names().len() == expected && listed == Ok(0) {
                return;
            }
            tokio::task::yield_now().await;
        }
        panic!("{expected} files expected: {:?}", self.names());
    }
}

fn large(call: &str, byte: u8, size: usize) -> NewChange {
    NewChange { before: Some(vec![byte; size].into()), ..change(call, 0, "/data/f", None, Some("after")) }
}

async fn changes(store: &Store, id: &ChatId) -> Vec<Change> {
    store.changes_since(id, &ContentId::new("one")).await.expect("changes")
}

fn make_old(path: &Path) {
    let two_hours_ago = std::time::SystemTime::now() - Duration::from_secs(2 * 60 * 60);
    let file = fs::OpenOptions::new().write(true).open(path).expect("open");
    file.set_modified(two_hours_ago).expect("time");
}

#[tokio::test]
async fn what_is_too_large_for_a_row_is_a_file_and_survives_a_restart() {
    let lab = Lab::new();
    let store = lab.store().await;
    let sizes = [0, 1, MOST_BYTES_IN_ROW, LARGE, 3 * LARGE];
    for (number, size) in sizes.into_iter().enumerate() {
        store.record_change(&lab.id, large("c", number as u8, size)).await.expect("record");
        assert_eq!(lab.names().len(), number.saturating_sub(2), "{size} bytes");
    }
    store.close().await;
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = |path: &Path| fs::metadata(path).expect("metadata").permissions().mode() & 0o777;
        assert_eq!((mode(&lab.files), mode(&lab.files.join(&lab.names()[0]))), (0o700, 0o600));
    }
    let in_rows = "SELECT sum(length(before)) FROM changes";
    assert_eq!(count(&raw(&lab.path), in_rows), 1 + MOST_BYTES_IN_ROW as i64);
    assert!(fs::metadata(&lab.path).expect("file").len() < 2 * LARGE as u64);

    let store = Store::at(lab.path.clone());
    let found = changes(&store, &lab.id).await;
    assert_eq!(found.len(), sizes.len());
    for (change, (number, size)) in found.iter().rev().zip(sizes.into_iter().enumerate()) {
        assert_eq!((change.is_kept, change.existed, change.size_before), (true, true, size as u64));
        assert!(store.content_before(change).await == Ok(Some(vec![number as u8; size])), "{size} bytes");
        assert!(change.is_untouched(Some(b"after")));
    }
}

#[tokio::test]
async fn a_database_in_memory_keeps_everything_itself() {
    let (store, id) = (Store::in_memory(), chat("a"));
    store.append(&id, vec![said("one")]).await.expect("append");
    store.record_change(&id, large("c", 7, 3 * LARGE)).await.expect("record");
    let found = changes(&store, &id).await;
    assert!(found[0].is_kept && store.content_before(&found[0]).await == Ok(Some(vec![7; 3 * LARGE])));
}

#[tokio::test]
async fn whatever_takes_the_row_takes_the_file() {
    let lab = Lab::new();
    let store = lab.store().await;
    for call in ["first", "second"] {
        store.record_change(&lab.id, large(call, 1, LARGE)).await.expect("record");
    }
    let found = changes(&store, &lab.id).await;
    store.forget_changes(&found[..1]).await.expect("forget");
    lab.until_files_are(&store, 1).await;
    assert!(store.content_before(&found[1]).await == Ok(Some(vec![1; LARGE])), "the other one stays");
    let gone = StoreError::ContentGone { path: "/data/f".into() };
    assert_eq!(store.content_before(&found[0]).await, Err(gone), "not taken for a file that was not there");

    store.clear(&lab.id).await.expect("clear");
    lab.until_files_are(&store, 0).await;

    // With the chat it worked for.
    let child = chat("subagent");
    store
        .create_or_touch_chat(ChatMeta { parent: Some(lab.id.clone()), ..ChatMeta::new(child.clone()) })
        .await
        .expect("child");
    store.record_change(&child, large("c", 2, LARGE)).await.expect("record");
    store.delete(&lab.id).await.expect("delete");
    lab.until_files_are(&store, 0).await;

    store.append(&lab.id, vec![said("one")]).await.expect("append");
    store.record_change(&lab.id, large("c", 3, LARGE)).await.expect("record");
    store.rename_chat(&lab.id, &chat("b")).await.expect("rename");
    assert_eq!(lab.names().len(), 1);
    store.write(|connection| connection.execute("UPDATE chats SET updated_at = 1", [])).await.expect("long ago");
    assert_eq!(store.prune(Duration::from_secs(1)).await, Ok(1));
    lab.until_files_are(&store, 0).await;
}

#[tokio::test]
async fn a_store_that_is_closed_right_after_a_deletion_leaves_no_content() {
    let lab = Lab::new();
    let store = lab.store().await;
    for _ in 0..70 {
        store.record_change(&lab.id, large("c", 1, LARGE)).await.expect("record");
    }
    store.delete(&lab.id).await.expect("delete");
    store.close().await;
    assert_eq!(lab.names(), Vec::<String>::new());
}

#[tokio::test]
async fn what_cannot_be_removed_stays_on_the_list() {
    let lab = Lab::new();
    let store = lab.store().await;
    store.record_change(&lab.id, large("c", 1, LARGE)).await.expect("record");
    let name = lab.names().remove(0);
    fs::remove_file(lab.files.join(&name)).expect("remove");
    // Nothing that can be removed as a file.
    fs::create_dir(lab.files.join(&name)).expect("folder");
    store.delete(&lab.id).await.expect("delete");
    store.close().await;
    let list = "SELECT count(*) FROM released_contents";
    assert_eq!(count(&raw(&lab.path), list), 1);

    fs::remove_dir(lab.files.join(&name)).expect("remove");
    fs::write(lab.files.join(&name), "x").expect("file");
    let store = lab.store().await;
    lab.until_files_are(&store, 0).await;
}

#[tokio::test]
async fn old_files_that_no_row_names_are_removed_and_nothing_else() {
    let lab = Lab::new();
    let store = lab.store().await;
    store.record_change(&lab.id, large("c", 1, LARGE)).await.expect("record");
    store.close().await;
    let kept = lab.names().remove(0);
    make_old(&lab.files.join(&kept));
    let left_over: Vec<String> = (0..200).map(|number| format!("{number:032x}")).collect();
    for name in &left_over {
        fs::write(lab.files.join(name), "half").expect("left over");
        make_old(&lab.files.join(name));
    }
    let young = format!("{:032x}", 1000);
    fs::write(lab.files.join(&young), "in the making").expect("young");
    fs::write(lab.files.join("notes.txt"), "somebody's").expect("foreign");
    make_old(&lab.files.join("notes.txt"));

    let store = lab.store().await;
    lab.until_files_are(&store, 3).await;
    let mut expected = [kept, young, "notes.txt".to_owned()];
    expected.sort();
    assert_eq!(lab.names(), expected);
    let found = changes(&store, &lab.id).await;
    assert!(store.content_before(&found[0]).await == Ok(Some(vec![1; LARGE])));
}

#[tokio::test]
async fn a_content_that_is_missing_or_torn_is_told_before_anything_is_restored() {
    let lab = Lab::new();
    let store = lab.store().await;
    for call in ["missing", "torn", "whole"] {
        store.record_change(&lab.id, large(call, 1, LARGE)).await.expect("record");
    }
    let found = changes(&store, &lab.id).await;
    let file = |index: usize| -> PathBuf {
        let sql = "SELECT file FROM changes WHERE id = ?1";
        let name: String = raw(&lab.path).query_row(sql, [found[index].id], |row| row.get(0)).expect("name");
        lab.files.join(name)
    };
    fs::remove_file(file(2)).expect("remove");
    fs::OpenOptions::new().write(true).open(file(1)).expect("open").set_len(LARGE as u64 - 1).expect("cut");
    let kept: Vec<bool> = changes(&store, &lab.id).await.iter().map(|change| change.is_kept).collect();
    assert_eq!(kept, [true, false, false]);
    let gone = StoreError::ContentGone { path: "/data/f".into() };
    for change in &found[1..] {
        assert_eq!(store.content_before(change).await, Err(gone.clone()));
    }
    assert!(gone.to_string().contains("/data/f"));
    assert!(store.content_before(&found[0]).await.is_ok());
}

#[tokio::test]
async fn a_name_in_a_damaged_database_leads_nowhere_else() {
    let lab = Lab::new();
    let store = lab.store().await;
    store.record_change(&lab.id, large("c", 1, LARGE)).await.expect("record");
    let strange = lab.path.with_file_name("precious");
    fs::write(&strange, vec![7; LARGE]).expect("file");
    raw(&lab.path).execute("UPDATE changes SET file = '../precious'", []).expect("break");
    let found = changes(&store, &lab.id).await;
    assert!(!found[0].is_kept && store.content_before(&found[0]).await.is_err());
    store.delete(&lab.id).await.expect("delete");
    lab.until_files_are(&store, 0).await;
    assert!(strange.exists());
}

#[tokio::test]
async fn a_refused_change_leaves_no_file() {
    let lab = Lab::new();
    let store = lab.store().await;
    let unknown = store.record_change(&chat("nobody"), large("c", 1, LARGE)).await;
    assert_eq!(unknown, Err(StoreError::UnknownChat { chat: "nobody".into() }));
    assert!(!lab.files.exists());
    // The chat goes while the content is written.
    let recorded = tokio::join!(store.record_change(&lab.id, large("c", 1, LARGE)), store.delete(&lab.id));
    assert!(matches!(recorded, (Err(StoreError::UnknownChat { .. }) | Ok(()), Ok(true))), "{recorded:?}");
    lab.until_files_are(&store, 0).await;
    store.close().await;
    assert_eq!(store.record_change(&lab.id, large("c", 1, LARGE)).await, Err(StoreError::Closed));
    assert_eq!(lab.names(), Vec::<String>::new());
}

#[tokio::test]
async fn a_folder_that_cannot_be_written_refuses_the_change() {
    let lab = Lab::new();
    let store = lab.store().await;
    fs::write(&lab.files, "not a folder").expect("file");
    let error = store.record_change(&lab.id, large("c", 1, LARGE)).await.expect_err("no folder");
    assert!(matches!(&error, StoreError::Unavailable { place, .. } if place.ends_with("chats.db-contents")), "{error}");
    store.record_change(&lab.id, large("c", 1, MOST_BYTES_IN_ROW)).await.expect("small ones need none");
    assert_eq!(changes(&store, &lab.id).await.len(), 1);
}

#[test]
fn a_row_names_a_file_only_while_it_is_there_and_beside_its_database() {
    let folder = tempfile::tempdir().expect("folder");
    let contents = Contents::default();
    let files = contents.are_beside(Some(&folder.path().join("chats.db"))).expect("folder");
    let mut file = NewFile::write(&files, b"x").expect("write");
    let name = file.name_in(&contents).expect("name").to_owned();
    contents.are_beside(Some(&folder.path().join("chats-2.db")));
    assert_eq!(file.name_in(&contents), None);
    contents.are_beside(None);
    assert_eq!(file.name_in(&contents), None);
    contents.are_beside(Some(&folder.path().join("chats.db")));
    fs::remove_file(files.join(&name)).expect("remove");
    assert_eq!(file.name_in(&contents), None);
    file.named();

    let mut file = NewFile::write(&files, b"x").expect("write");
    file.named();
    drop(file);
    drop(NewFile::write(&files, b"y").expect("write"));
    assert_eq!(fs::read_dir(&files).expect("entries").count(), 1, "only what a row names stays");
}

#[tokio::test]
async fn two_servers_share_the_contents() {
    let lab = Lab::new();
    let (one, other) = (lab.store().await, Store::at(lab.path.clone()));
    let many = |store: &Store, byte: u8| {
        let (store, id) = (store.clone(), lab.id.clone());
        async move {
            for _ in 0..10 {
                store.record_change(&id, large("c", byte, LARGE)).await.expect("record");
            }
        }
    };
    tokio::join!(many(&one, 1), many(&other, 2));
    assert_eq!(lab.names().len(), 20);
    let found = changes(&other, &lab.id).await;
    for change in &found {
        let content = other.content_before(change).await.expect("content").expect("file");
        assert!(content.len() == LARGE && content.iter().all(|byte| *byte == content[0]));
    }
    other.forget_changes(&found[..10]).await.expect("forget");
    lab.until_files_are(&other, 10).await;
    let left = changes(&one, &lab.id).await;
    assert!(left.len() == 10 && left.iter().all(|change| change.is_kept));
    one.delete(&lab.id).await.expect("delete");
    lab.until_files_are(&one, 0).await;
}

#[tokio::test]
async fn contents_of_the_version_before_stay_where_they_are() {
    let lab = Lab::new();
    let connection = raw(&lab.path);
    connection.pragma_update(None, "journal_mode", "WAL").expect("mode");
    for step in &schema::MIGRATIONS[..3] {
        connection.execute_batch(step).expect("step");
    }
    connection.pragma_update(None, "application_id", schema::APPLICATION_ID).expect("owner");
    connection.pragma_update(None, "user_version", 3).expect("version");
    let sql = "INSERT INTO chats (id, created_at, updated_at, next_seq, message_count) VALUES ('a', 1, 1, 2, 1);
        INSERT INTO messages (chat_id, seq, kind, content_id, body, created_at) VALUES ('a', 1, 'user', 'one',
            '{\"version\":1,\"role\":\"user\",\"parts\":[{\"type\":\"text\",\"text\":\"x\"}]}', 1);";
    connection.execute_batch(sql).expect("chat");
    let sql = "INSERT INTO changes
        (chat_id, place, call_id, call_order, path, existed, kept, size, after_hash, created_at, before)
        VALUES ('a', 2, ?1, 0, CAST('/data/f' AS BLOB), 1, 1, ?2, ?3, 1, ?4)";
    let hash = ring::digest::digest(&ring::digest::SHA256, b"after");
    for (call, size) in [("small", 5), ("large", 2 * LARGE)] {
        let row = rusqlite::params![call, size as i64, hash.as_ref(), vec![9_u8; size]];
        connection.execute(sql, row).expect("change");
    }
    drop(connection);

    let store = Store::at(lab.path.clone());
    store.record_change(&lab.id, large("new", 1, LARGE)).await.expect("record");
    assert_eq!(count(&raw(&lab.path), "PRAGMA user_version"), 4);
    let found = changes(&store, &lab.id).await;
    let calls: Vec<(&str, bool)> = found.iter().map(|change| (change.call.as_str(), change.is_kept)).collect();
    assert_eq!(calls, [("new", true), ("large", true), ("small", true)]);
    assert!(found.iter().all(|change| change.is_untouched(Some(b"after"))));
    for (change, expected) in found.iter().zip([vec![1; LARGE], vec![9; 2 * LARGE], vec![9; 5]]) {
        assert!(store.content_before(change).await == Ok(Some(expected)), "{}", change.call);
    }
    assert_eq!(lab.names().len(), 1);
    store.forget_changes(&found).await.expect("forget");
    lab.until_files_are(&store, 0).await;
    assert!(changes(&store, &lab.id).await.is_empty());
}

#[tokio::test]
async fn a_large_new_content_needs_no_file() {
    let lab = Lab::new();
    let store = lab.store().await;
    let after = Bytes::from(vec![5; 4 * LARGE]);
    let new = NewChange { after: Some(after.clone()), ..change("c", 0, "/data/f", Some("small"), None) };
    store.record_change(&lab.id, new).await.expect("record");
    assert!(!lab.files.exists());
    let found = changes(&store, &lab.id).await;
    assert!(found[0].is_untouched(Some(&after)) && !found[0].is_untouched(Some(&after[1..])));
}
