//! Which server works on a chat.
//!
//! Several servers share the history, and two that continue one chat would answer past each other.
//! So a server claims a chat before it works on it. That it lives is told by a lock on a file of
//! its own beside the database: the kernel drops the lock when the process ends, however it ends,
//! so nothing has to beat while it works, and nothing waits after a kill. Where files cannot be
//! locked, and for servers on other machines whose locks may not be seen here, a claim counts for
//! a minute from its last renewal; claiming again and appending renew it.

use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use rusqlite::{Connection, OptionalExtension, params};

use super::{Store, StoreError};
use crate::base::time::now_ms;
use crate::base::{ChatId, private};

/// How long a claim counts when no lock tells of its server.
const UNSEEN_MS: i64 = 60_000;

/// A claim is renewed by writing not more often than this.
const RENEW_AFTER_MS: i64 = 20_000;

/// Files of dead servers that one start clears away.
const MOST_CLEARED: usize = 256;

/// Whether a server may work on a chat.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Claim {
    Ours,
    HeldBy(Holder),
}

/// The server that works on a chat.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Holder {
    pub pid: u32,
    /// Empty when the machine's name is not known.
    pub host: String,
    /// When it claimed the chat.
    pub since: i64,
}

impl Store {
    /// Claims the chat for this store and its clones, unless another server that lives holds it.
    /// The chat need not exist yet.
    pub async fn claim(&self, chat: &ChatId) -> Result<Claim, StoreError> {
        let (chat, now, own_lock) = (chat.clone(), now_ms(), Arc::clone(&self.shared.own_lock));
        self.write(move |connection| {
            if let Some(holder) = other_holder(connection, &own_lock, &chat, now)? {
                return Ok(Claim::HeldBy(holder));
            }
            let mut own = own_lock.lock().unwrap_or_else(PoisonError::into_inner);
            let has_lock = own.take(connection);
            connection
                .prepare_cached(
                    "INSERT INTO leases (chat_id, server, pid, host, has_lock, claimed_at, renewed_at)
                     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?6)
                     ON CONFLICT (chat_id) DO UPDATE SET
                         claimed_at = CASE WHEN server = excluded.server THEN claimed_at ELSE excluded.claimed_at END,
                         server = excluded.server, pid = excluded.pid, host = excluded.host,
                         has_lock = excluded.has_lock, renewed_at = excluded.renewed_at",
                )?
                .execute(params![chat.as_str(), own.server, std::process::id(), own.host, has_lock, now])?;
            Ok(Claim::Ours)
        })
        .await
    }

    /// Lets others claim the chat. Does nothing to a claim of theirs.
    pub async fn release(&self, chat: &ChatId) -> Result<(), StoreError> {
        let (chat, own_lock) = (chat.clone(), Arc::clone(&self.shared.own_lock));
        self.write(move |connection| {
            let own = own_lock.lock().unwrap_or_else(PoisonError::into_inner);
            connection
                .prepare_cached("DELETE FROM leases WHERE chat_id = ?1 AND server = ?2")?
                .execute([chat.as_str(), &own.server])
                .map(|_| ())
        })
        .await
    }

    /// Lets go of everything, if anything was ever claimed.
    pub(super) async fn release_all(&self) {
        let server = {
            let own = self.shared.own_lock.lock().unwrap_or_else(PoisonError::into_inner);
            own.has_claimed.then(|| own.server.clone())
        };
        let Some(server) = server else { return };
        let delete = move |connection: &Connection| {
            connection.prepare_cached("DELETE FROM leases WHERE server = ?1")?.execute([&server])
        };
        if let Err(error) = self.write(delete).await {
            // The lock goes with the process, which says the same.
            tracing::debug!(%error, "the claims on chats were not given up");
        }
        self.shared.own_lock.lock().unwrap_or_else(PoisonError::into_inner).let_go();
    }
}

/// Keeps a claim alive that no lock keeps. Whoever appends is at work.
pub(super) fn renew(connection: &Connection, chat: &ChatId, now: i64) -> rusqlite::Result<()> {
    connection
        .prepare_cached("UPDATE leases SET renewed_at = ?2 WHERE chat_id = ?1 AND pid = ?3 AND renewed_at < ?2 - ?4")?
        .execute(params![chat.as_str(), now, std::process::id(), RENEW_AFTER_MS])
        .map(|_| ())
}

/// The other server that holds the chat and lives.
pub(super) fn other_holder(
    connection: &Connection,
    own_lock: &Mutex<OwnLock>,
    chat: &ChatId,
    now: i64,
) -> rusqlite::Result<Option<Holder>> {
    let own = own_lock.lock().unwrap_or_else(PoisonError::into_inner);
    let found = connection
        .prepare_cached("SELECT server, pid, host, has_lock, claimed_at, renewed_at FROM leases WHERE chat_id = ?1")?
        .query_row([chat.as_str()], |row| {
            let lease =
                Lease { server: row.get(0)?, host: row.get(2)?, has_lock: row.get(3)?, renewed_at: row.get(5)? };
            Ok((lease, Holder { pid: row.get(1)?, host: row.get(2)?, since: row.get(4)? }))
        })
        .optional()?;
    let Some((lease, holder)) = found.filter(|(lease, _)| lease.server != own.server) else { return Ok(None) };
    let folder = connection.path().filter(|path| !path.is_empty()).map(folder_of);
    Ok(lease.is_alive(folder.as_deref(), &own.host, now).then_some(holder))
}

struct Lease {
    server: String,
    host: String,
    has_lock: bool,
    renewed_at: i64,
}

impl Lease {
    fn is_alive(&self, folder: Option<&Path>, own_host: &str, now: i64) -> bool {
        // A clock that was set back makes a renewal of the future, which must not count for ever.
        let is_recent = (now - self.renewed_at).abs() < UNSEEN_MS;
        let Some(folder) = folder.filter(|_| self.has_lock) else { return is_recent };
        match is_locked(&file_of(folder, &self.server)) {
            Some(true) => true,
            Some(false) => self.host != own_host && is_recent,
            None => is_recent,
        }
    }
}

/// By which others see that this server lives. The file is created with the first claim.
#[derive(Debug)]
pub(super) struct OwnLock {
    server: String,
    host: String,
    has_claimed: bool,
    file: Option<(File, PathBuf)>,
}

impl Default for OwnLock {
    fn default() -> Self {
        let server = uuid::Uuid::new_v4().to_string();
        Self { server, host: host_name(), has_claimed: false, file: None }
    }
}

impl OwnLock {
    /// Takes the lock, once. Whether there is one.
    fn take(&mut self, connection: &Connection) -> bool {
        self.has_claimed = true;
        let Some(folder) = connection.path().filter(|path| !path.is_empty()).map(folder_of) else { return false };
        let path = file_of(&folder, &self.server);
        // After damage the database is another file, with a folder of its own.
        if self.file.as_ref().is_none_or(|(_, taken)| *taken != path) {
            self.let_go();
            self.file = match create_locked(&folder, &path) {
                Ok(file) => Some((file, path)),
                Err(error) => {
                    tracing::info!(%error, "no lock tells other servers of this one; its claims count for a minute");
                    None
                }
            };
        }
        self.file.is_some()
    }

    fn let_go(&mut self) {
        if let Some((file, path)) = self.file.take() {
            // Windows deletes no open file.
            drop(file);
            let _ = std::fs::remove_file(path);
        }
    }
}

impl Drop for OwnLock {
    fn drop(&mut self) {
        self.let_go();
    }
}

fn folder_of(database: &str) -> PathBuf {
    PathBuf::from(format!("{database}-servers"))
}

fn file_of(folder: &Path, server: &str) -> PathBuf {
    folder.join(format!("{server}.lock"))
}

/// The file gets its name when it is locked: under its name it would be taken for a dead server's.
fn create_locked(folder: &Path, path: &Path) -> std::io::Result<File> {
    private::create_folder(folder)?;
    clear_away_the_dead(folder);
    let unnamed = path.with_extension("new");
    let file = private::create_file(&unnamed)?;
    let locked = file.try_lock().map_err(std::io::Error::from).and_then(|()| std::fs::rename(&unnamed, path));
    if let Err(error) = locked {
        let _ = std::fs::remove_file(&unnamed);
        return Err(error);
    }
    Ok(file)
}

fn clear_away_the_dead(folder: &Path) {
    let files = std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let locks = files.filter(|path| path.extension().is_some_and(|extension| extension == "lock"));
    for path in locks.take(MOST_CLEARED) {
        if is_locked(&path) == Some(false) {
            let _ = std::fs::remove_file(path);
        }
    }
}

/// Whether a process holds the file's lock; `None` when that cannot be told.
fn is_locked(path: &Path) -> Option<bool> {
    match std::fs::OpenOptions::new().write(true).open(path) {
        Ok(file) => match file.try_lock() {
            Ok(()) => Some(false),
            Err(TryLockError::WouldBlock) => Some(true),
            Err(TryLockError::Error(_)) => None,
        },
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Some(false),
        Err(_) => None,
    }
}

fn host_name() -> String {
    ["/proc/sys/kernel/hostname", "/etc/hostname"]
        .iter()
        .find_map(|file| std::fs::read_to_string(file).ok())
        .map(|name| name.trim().to_owned())
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_claim_without_a_lock_counts_for_a_minute() {
        let lease = |has_lock: bool, host: &str, renewed_at: i64| Lease {
            server: "s".into(),
            host: host.into(),
            has_lock,
            renewed_at,
        };
        let folder = tempfile::tempdir().unwrap();
        let now = 1_000_000;
        for (lease, expected) in [
            (lease(false, "here", now - 59_000), true),
            (lease(false, "here", now - 61_000), false),
            (lease(false, "here", now + 61_000), false),
            (lease(true, "here", now), false),
            (lease(true, "elsewhere", now - 59_000), true),
            (lease(true, "elsewhere", now - 61_000), false),
        ] {
            assert_eq!(lease.is_alive(Some(folder.path()), "here", now), expected, "{}", lease.renewed_at - now);
        }
        let file = create_locked(folder.path(), &file_of(folder.path(), "s")).unwrap();
        assert!(lease(true, "here", 0).is_alive(Some(folder.path()), "here", now));
        clear_away_the_dead(folder.path());
        assert!(file_of(folder.path(), "s").exists(), "a living server's file stays");
        drop(file);
        assert!(!lease(true, "here", now).is_alive(Some(folder.path()), "here", now));
        clear_away_the_dead(folder.path());
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}
