//! Claims on chats between servers that live, that end, and that are killed.

use super::*;

fn holder(claim: Claim) -> Option<u32> {
    match claim {
        Claim::Ours => None,
        Claim::HeldBy(holder) => Some(holder.pid),
    }
}

#[tokio::test]
async fn one_server_at_a_time_works_on_a_chat() {
    let folder = tempfile::tempdir().expect("folder");
    let path = folder.path().join("chats.db");
    let (first, second) = (Store::at(path.clone()), Store::at(path.clone()));
    let a = chat("a");
    let claim = async |store: &Store, id: &ChatId| holder(store.claim(id).await.expect("claim"));
    assert_eq!(claim(&first, &a).await, None);
    assert_eq!(claim(&first.clone(), &a).await, None, "clones are the same server");
    assert_eq!(claim(&second, &a).await, Some(std::process::id()));
    assert_eq!(claim(&second, &chat("b")).await, None);
    second.release(&a).await.expect("release");
    assert_eq!(claim(&second, &a).await, Some(std::process::id()), "nobody releases another's claim");
    first.release(&a).await.expect("release");
    assert_eq!(claim(&second, &a).await, None);
    assert_eq!(claim(&first, &a).await, Some(std::process::id()));
    second.close().await;
    assert_eq!(claim(&first, &a).await, None);
    drop(first);
    let locks = std::fs::read_dir(folder.path().join("chats.db-servers")).expect("folder").count();
    assert_eq!(locks, 0, "who leaves takes the lock along");
}

#[tokio::test]
async fn a_server_that_was_dropped_holds_nothing() {
    let folder = tempfile::tempdir().expect("folder");
    let path = folder.path().join("chats.db");
    let first = Store::at(path.clone());
    assert_eq!(first.claim(&chat("a")).await, Ok(Claim::Ours));
    drop(first);
    assert_eq!(Store::at(path).claim(&chat("a")).await, Ok(Claim::Ours));
}

#[tokio::test]
async fn deleting_a_chat_frees_it_and_memory_is_nobodys_but_ours() {
    let folder = tempfile::tempdir().expect("folder");
    let path = folder.path().join("chats.db");
    let (first, second) = (Store::at(path.clone()), Store::at(path));
    first.append(&chat("a"), vec![user("x")]).await.expect("append");
    assert_eq!(first.claim(&chat("a")).await, Ok(Claim::Ours));
    first.delete(&chat("a")).await.expect("delete");
    assert_eq!(second.claim(&chat("a")).await, Ok(Claim::Ours));
    let memory = Store::in_memory();
    for _ in 0..2 {
        assert_eq!(memory.claim(&chat("a")).await, Ok(Claim::Ours));
    }
    memory.release(&chat("a")).await.expect("release");
}

#[tokio::test]
async fn a_claim_that_no_lock_keeps_is_renewed_by_writing() {
    let store = Store::in_memory();
    let a = chat("a");
    assert_eq!(store.claim(&a).await, Ok(Claim::Ours));
    store.write(|connection| connection.execute("UPDATE leases SET renewed_at = 1", [])).await.expect("long ago");
    store.append(&a, vec![user("x")]).await.expect("append");
    let renewed = store.read(|connection| Ok(count(connection, "SELECT renewed_at FROM leases"))).await;
    assert!(renewed.expect("lease") > 1);
}

/// Not a test of its own: the process that the next test kills. Lives in its working folder.
#[test]
fn child_that_claims_until_killed() {
    if !Path::new(CHILD_MARK).exists() {
        return;
    }
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("runtime");
    let store = Store::at("history.db".into());
    let claim = runtime.block_on(store.claim(&chat("a"))).expect("claim");
    assert_eq!(claim, Claim::Ours);
    std::io::stdout().lock().write_all(b"\nclaimed\n").expect("report");
    // Until the test closes the pipe, should it not kill us.
    let _ = std::io::stdin().read(&mut [0]);
}

#[tokio::test]
async fn a_kill_ends_every_claim_at_once() {
    let folder = tempfile::tempdir().expect("folder");
    std::fs::write(folder.path().join(CHILD_MARK), "").expect("mark");
    let mut child = spawn_child(folder.path(), "store::tests::lease::child_that_claims_until_killed");
    let mut lines = BufReader::new(child.stdout.take().expect("stdout")).lines();
    assert!(lines.any(|line| line.expect("line") == "claimed"));
    let store = Store::at(folder.path().join("history.db"));
    let claim = store.claim(&chat("a")).await.expect("claim");
    assert_eq!(holder(claim), Some(child.id()));
    child.kill().expect("kill");
    child.wait().expect("wait");
    assert_eq!(store.claim(&chat("a")).await, Ok(Claim::Ours));
}
