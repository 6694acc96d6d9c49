//! Files that are of no use: they stay as they are, and the history goes on beside them.

use super::*;

async fn file_with_a_message(path: &Path) {
    let store = Store::at(path.to_owned());
    store.append(&chat("a"), vec![user("x")]).await.expect("append");
    store.close().await;
}

fn bytes(path: &Path) -> Vec<u8> {
    std::fs::read(path).expect("bytes")
}

#[tokio::test]
async fn a_file_of_a_newer_version_is_left_untouched_and_another_one_is_begun() {
    let folder = tempfile::tempdir().expect("folder");
    let path = folder.path().join("chats.db");
    file_with_a_message(&path).await;
    let newer_server = raw(&path);
    newer_server.pragma_update(None, "user_version", 99).expect("version");
    // As if it had been killed: the new version is still in the log.
    newer_server
        .set_db_config(rusqlite::config::DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)
        .expect("keep the log");
    drop(newer_server);
    let log = path.with_extension("db-wal");
    let before = [bytes(&path), bytes(&log)];
    assert!(!before[1].is_empty());
    for expected in [vec![1], vec![2]] {
        let store = impatient(&path);
        assert_eq!(store.append(&chat("a"), vec![user("y")]).await, Ok(expected));
        let notices = store.take_notices();
        assert_eq!(notices.len(), 1);
        assert!(notices[0].contains("newer version") && notices[0].contains("chats-2.db"), "{notices:?}");
        assert!(store.take_notices().is_empty());
        store.close().await;
        assert!([bytes(&path), bytes(&log)] == before);
    }
}

#[tokio::test]
async fn a_file_of_another_program_is_left_untouched() {
    let folder = tempfile::tempdir().expect("folder");
    let path = folder.path().join("foreign.db");
    raw(&path).execute_batch("CREATE TABLE bookmarks (url TEXT)").expect("foreign");
    let before = bytes(&path);
    let store = impatient(&path);
    assert_eq!(store.append(&chat("a"), vec![user("x")]).await, Ok(vec![1]));
    assert!(store.take_notices()[0].contains("another program"));
    assert!(bytes(&path) == before);
    assert!(folder.path().join("foreign-2.db").exists());
}

#[tokio::test]
async fn a_file_that_is_no_database_is_used_again_when_it_was_replaced() {
    let folder = tempfile::tempdir().expect("folder");
    let path = folder.path().join("chats.db");
    std::fs::write(&path, "this is not a database. ".repeat(400)).expect("garbage");
    let store = impatient(&path);
    assert_eq!(store.append(&chat("a"), vec![user("x")]).await, Ok(vec![1]));
    let notices = store.take_notices();
    assert!(notices[0].contains("chats.db is damaged") && notices[0].contains("chats-2.db"), "{notices:?}");
    store.close().await;
    std::fs::rename(&path, folder.path().join("away")).expect("move away");
    let store = impatient(&path);
    assert_eq!(store.load(&chat("a")).await, Ok(None));
    assert!(store.take_notices().is_empty());

    let blocked = impatient(&folder.path().join("away/history.db"));
    let error = blocked.list(ListQuery::default()).await.expect_err("a file is no folder");
    assert!(matches!(error, StoreError::Unavailable { .. }), "{error}");
}

#[tokio::test]
async fn an_opening_that_fails_is_not_repeated_at_once() {
    let folder = tempfile::tempdir().expect("folder");
    let blocking = folder.path().join("blocking");
    std::fs::write(&blocking, "a file").expect("file");
    let path = blocking.join("chats.db");
    let patient = Store::with(Location::File(path.clone()), Duration::from_secs(3600));
    assert!(matches!(patient.load(&chat("a")).await, Err(StoreError::Unavailable { .. })));
    std::fs::remove_file(&blocking).expect("make room");
    assert!(matches!(patient.load(&chat("a")).await, Err(StoreError::Unavailable { .. })));
    assert_eq!(impatient(&path).load(&chat("a")).await, Ok(None));
}

#[tokio::test]
async fn damage_inside_the_file_is_told_once_and_then_the_file_is_passed_over() {
    let folder = tempfile::tempdir().expect("folder");
    let path = folder.path().join("chats.db");
    let store = Store::at(path.clone());
    let long = "x".repeat(2000);
    store.append(&chat("a"), (0..50).map(|_| user(&long)).collect()).await.expect("append");
    store.close().await;
    let mut damaged = bytes(&path);
    let root = count(&raw(&path), "SELECT rootpage FROM sqlite_schema WHERE name = 'messages'") as usize;
    damaged[(root - 1) * 4096..root * 4096].fill(0x5a);
    std::fs::write(&path, &damaged).expect("damage");
    let store = impatient(&path);
    let error = store.load(&chat("a")).await.expect_err("damaged");
    assert!(matches!(error, StoreError::Damaged { .. }), "{error}");
    assert_eq!(store.append(&chat("a"), vec![user("new")]).await, Ok(vec![1]));
    assert!(store.take_notices()[0].contains("chats-2.db"));
    store.close().await;
    assert!(bytes(&path) == damaged, "nothing was written to it");

    let other = impatient(&path);
    assert_eq!(other.append(&chat("a"), vec![user("new")]).await, Ok(vec![2]));
    other.close().await;
    std::fs::remove_file(folder.path().join("chats.db.damaged")).expect("the mark");
    assert!(impatient(&path).load(&chat("a")).await.is_err());
}

#[tokio::test]
async fn a_file_that_a_newer_server_takes_over_is_left_to_it() {
    let folder = tempfile::tempdir().expect("folder");
    let path = folder.path().join("chats.db");
    let store = impatient(&path);
    assert_eq!(store.append(&chat("a"), vec![user("x")]).await, Ok(vec![1]));
    raw(&path).pragma_update(None, "user_version", 99).expect("a newer server");
    assert_eq!(store.append(&chat("a"), vec![user("y")]).await, Ok(vec![1]), "in a file of its own");
    assert!(store.take_notices()[0].contains("newer version"));
    assert_eq!(count(&raw(&path), "SELECT count(*) FROM messages"), 1);
}

#[tokio::test]
async fn when_no_file_can_be_used_the_reason_is_the_first_ones() {
    let folder = tempfile::tempdir().expect("folder");
    let path = folder.path().join("chats.db");
    for name in ["chats.db"].into_iter().map(str::to_owned).chain((2..10).map(|number| format!("chats-{number}.db"))) {
        std::fs::write(folder.path().join(name), "no database ".repeat(400)).expect("garbage");
    }
    let error = impatient(&path).load(&chat("a")).await.expect_err("nothing left");
    assert!(matches!(&error, StoreError::Damaged { place, .. } if place.ends_with("chats.db")), "{error}");
    assert_eq!(std::fs::read_dir(folder.path()).expect("folder").count(), 9);
}
