//! What tools did to files, so that a rollback can undo it, also after a restart.
//!
//! A change is recorded before the file is written: its content before, and a hash of what it is
//! about to become, by which a rollback sees whether somebody else has touched the file since.
//! Contents are read one at a time, because those of one chat may be more than fits in memory.

use std::path::{Path, PathBuf};

use ring::digest::{SHA256, digest};
use rusqlite::{Connection, OptionalExtension, Row, params};

use super::history::first_seq;
use super::queries::{exists, from_column};
use super::{Store, StoreError};
use crate::base::time::now_ms;
use crate::base::{ChatId, ContentId, ToolCallId};

/// A single content may be so large.
pub const MOST_CONTENT_BYTES: usize = 64 * 1024 * 1024;

/// The contents of one chat may be so large together; the oldest are let go first.
const MOST_CHAT_BYTES: i64 = 512 * 1024 * 1024;

/// What a tool is about to do to one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewChange {
    pub call: ToolCallId,
    /// Tells the changes of one call apart, in their order.
    pub order: i64,
    /// Absolute.
    pub path: PathBuf,
    /// `None` when there is no such file yet.
    pub before: Option<Vec<u8>>,
    /// `None` when the file will be gone.
    pub after: Option<Vec<u8>>,
}

/// What a tool did to one file. The content before is fetched with [`Store::content_before`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    pub id: i64,
    pub call: ToolCallId,
    pub order: i64,
    pub path: PathBuf,
    /// Whether there was a file before.
    pub existed: bool,
    /// `false` when the content before was let go, because the chat's journal grew too large.
    pub is_kept: bool,
    pub size_before: u64,
    pub created_at: i64,
    after_hash: Option<Vec<u8>>,
}

impl Change {
    /// Whether the file is still as the change left it. `None` is a file that is not there.
    pub fn is_untouched(&self, now: Option<&[u8]>) -> bool {
        now.map(hash) == self.after_hash
    }
}

impl Store {
    /// Records what is about to happen to a file; answered when it is durable. A content that is
    /// too large is refused, and so is a chat that does not exist.
    pub async fn record_change(&self, chat: &ChatId, change: NewChange) -> Result<(), StoreError> {
        let bytes = change.before.as_ref().map_or(0, Vec::len);
        let what = format!("The content of {}", change.path.display());
        StoreError::demand_size(&what, bytes, MOST_CONTENT_BYTES)?;
        let (chat, now) = (chat.clone(), now_ms());
        let path = path_bytes(&change.path);
        self.write_checked(move |connection| {
            if !exists(connection, &chat)? {
                return Ok(Err(StoreError::unknown_chat(&chat)));
            }
            // Here and not before: a large content takes longer than the runtime may wait.
            let after_hash = change.after.as_deref().map(hash);
            let size = i64::try_from(bytes).unwrap_or(i64::MAX);
            let before = change.before.as_deref();
            connection
                .prepare_cached(
                    "INSERT INTO changes
                         (chat_id, place, call_id, call_order, path, existed, kept, size, after_hash, created_at, before)
                     SELECT id, next_seq, ?2, ?3, ?4, ?5, 1, ?6, ?7, ?8, ?9 FROM chats WHERE id = ?1",
                )?
                .execute(params![
                    chat.as_str(),
                    change.call.as_str(),
                    change.order,
                    path,
                    before.is_some(),
                    size,
                    after_hash,
                    now,
                    before
                ])?;
            let_go_of_the_oldest(connection, &chat, MOST_CHAT_BYTES)?;
            Ok(Ok(()))
        })
        .await
    }

    /// What tools did since the user said this, the newest change first.
    pub async fn changes_since(&self, chat: &ChatId, content: &ContentId) -> Result<Vec<Change>, StoreError> {
        let (chat, content) = (chat.clone(), content.clone());
        self.read_checked(move |connection| {
            let Some(seq) = first_seq(connection, &chat, &content)? else {
                return Ok(Err(StoreError::UnknownContent));
            };
            let mut statement = connection.prepare_cached(
                "SELECT id, call_id, call_order, path, existed, kept, size, after_hash, created_at
                 FROM changes WHERE chat_id = ?1 AND place > ?2 ORDER BY id DESC",
            )?;
            statement.query_map(params![chat.as_str(), seq], change_from_row)?.collect::<Result<_, _>>().map(Ok)
        })
        .await
    }

    /// The content of a file before a change; `None` when there was no file, or when the content
    /// is not kept any more.
    pub async fn content_before(&self, change: &Change) -> Result<Option<Vec<u8>>, StoreError> {
        let id = change.id;
        self.read(move |connection| {
            let content = connection
                .prepare_cached("SELECT before FROM changes WHERE id = ?1")?
                .query_row([id], |row| row.get(0))
                .optional()?;
            Ok(content.flatten())
        })
        .await
    }

    /// Removes changes that were undone. Until then they can be undone again, which does the same.
    pub async fn forget_changes(&self, changes: &[Change]) -> Result<(), StoreError> {
        let ids: Vec<i64> = changes.iter().map(|change| change.id).collect();
        self.write(move |connection| {
            let mut statement = connection.prepare_cached("DELETE FROM changes WHERE id = ?1")?;
            ids.iter().try_for_each(|id| statement.execute([id]).map(|_| ()))
        })
        .await
    }
}

/// The rows stay, so that a rollback can say what it cannot bring back.
fn let_go_of_the_oldest(connection: &Connection, chat: &ChatId, most: i64) -> rusqlite::Result<()> {
    let total = |connection: &Connection| -> rusqlite::Result<i64> {
        connection
            .prepare_cached("SELECT coalesce(sum(size), 0) FROM changes WHERE chat_id = ?1 AND kept = 1")?
            .query_row([chat.as_str()], |row| row.get(0))
    };
    while total(connection)? > most {
        connection
            .prepare_cached(
                "UPDATE changes SET kept = 0, before = NULL WHERE id =
                     (SELECT id FROM changes WHERE chat_id = ?1 AND kept = 1 AND size > 0 ORDER BY id LIMIT 1)",
            )?
            .execute([chat.as_str()])?;
    }
    Ok(())
}

fn change_from_row(row: &Row<'_>) -> rusqlite::Result<Change> {
    Ok(Change {
        id: row.get(0)?,
        call: ToolCallId::new(row.get::<_, String>(1)?),
        order: row.get(2)?,
        path: path_from_bytes(row.get(3)?),
        existed: row.get(4)?,
        is_kept: row.get(5)?,
        size_before: from_column(row.get(6)?),
        after_hash: row.get(7)?,
        created_at: row.get(8)?,
    })
}

fn hash(content: &[u8]) -> Vec<u8> {
    digest(&SHA256, content).as_ref().to_vec()
}

/// Paths need not be Unicode.
#[cfg(unix)]
fn path_bytes(path: &Path) -> Vec<u8> {
    std::os::unix::ffi::OsStrExt::as_bytes(path.as_os_str()).to_vec()
}

#[cfg(unix)]
fn path_from_bytes(bytes: Vec<u8>) -> PathBuf {
    <std::ffi::OsString as std::os::unix::ffi::OsStringExt>::from_vec(bytes).into()
}

#[cfg(not(unix))]
fn path_bytes(path: &Path) -> Vec<u8> {
    path.to_string_lossy().into_owned().into_bytes()
}

#[cfg(not(unix))]
fn path_from_bytes(bytes: Vec<u8>) -> PathBuf {
    String::from_utf8_lossy(&bytes).into_owned().into()
}

#[cfg(test)]
mod tests {
    use super::super::schema;
    use super::*;

    #[test]
    fn the_oldest_contents_go_first_and_leave_a_trace() {
        let connection = schema::open(None).unwrap();
        connection.execute("INSERT INTO chats (id, created_at, updated_at) VALUES ('a', 0, 0)", []).unwrap();
        for (id, size) in [(1, 40), (2, 0), (3, 40), (4, 40)] {
            let sql = "INSERT INTO changes (id, chat_id, place, call_id, call_order, path, existed, kept, size, created_at, before)
                 VALUES (?1, 'a', 1, 'c', 0, x'2f', 1, 1, ?2, 0, zeroblob(?2))";
            connection.execute(sql, [id, size]).unwrap();
        }
        let kept = |connection: &Connection| -> Vec<i64> {
            let mut statement = connection.prepare("SELECT id FROM changes WHERE kept = 1 ORDER BY id").unwrap();
            statement.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
        };
        let chat = ChatId::new("a");
        let_go_of_the_oldest(&connection, &chat, 120).unwrap();
        assert_eq!(kept(&connection), [1, 2, 3, 4]);
        let_go_of_the_oldest(&connection, &chat, 100).unwrap();
        assert_eq!(kept(&connection), [2, 3, 4]);
        let_go_of_the_oldest(&connection, &chat, 0).unwrap();
        assert_eq!(kept(&connection), [2], "an empty file takes no room");
        let rows: i64 = connection.query_row("SELECT count(*) FROM changes", [], |row| row.get(0)).unwrap();
        assert_eq!(rows, 4);
    }
}
