//! What tools did to files, so that a rollback can undo it, also after a restart.
//!
//! A change is recorded before the file is written: its content before, and a hash of what it is
//! about to become, by which a rollback sees whether somebody else has touched the file since.
//! A small content is in its row, a large one in a file beside the database ([`contents`]).
//! Contents are read one at a time, because those of one chat may be more than fits in memory.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use ring::digest::{SHA256, digest};
use rusqlite::{Connection, OptionalExtension, Row, params};

use super::contents::{Contents, MOST_BYTES_IN_ROW, NewFile};
use super::history::first_seq;
use super::queries::{exists, from_column};
use super::{Store, StoreError, contents, schema};
use crate::base::task;
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
    pub before: Option<Bytes>,
    /// `None` when the file will be gone.
    pub after: Option<Bytes>,
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
    /// `false` when the content before was let go, because the chat's journal grew too large, or is
    /// missing.
    pub is_kept: bool,
    pub size_before: u64,
    pub created_at: i64,
    after_hash: Option<Vec<u8>>,
    /// Of a large content.
    file: Option<String>,
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
        let bytes = change.before.as_ref().map_or(0, Bytes::len);
        let what = format!("The content of {}", change.path.display());
        StoreError::demand_size(&what, bytes, MOST_CONTENT_BYTES)?;
        let folder = if bytes > MOST_BYTES_IN_ROW { self.folder_for_contents_of(chat).await? } else { None };
        // Beside the runtime, and before the transaction: other servers wait for that one.
        let mut row = blocking(move || ChangeRow::prepare(change, folder.as_deref())).await??;
        let (chat, now, contents) = (chat.clone(), now_ms(), Arc::clone(&self.shared.contents));
        self.write_checked(move |connection| {
            if !exists(connection, &chat)? {
                return Ok(Err(StoreError::unknown_chat(&chat)));
            }
            if !row.insert(connection, &chat, &contents, now)? {
                return Ok(Err(StoreError::content_gone(&row.change.path)));
            }
            let_go_of_the_oldest(connection, &chat, MOST_CHAT_BYTES)?;
            if let Some(file) = &mut row.file {
                file.named();
            }
            Ok(Ok(()))
        })
        .await
    }

    /// Where a large content of this chat goes; `None` when it is kept in memory.
    async fn folder_for_contents_of(&self, chat: &ChatId) -> Result<Option<PathBuf>, StoreError> {
        let (chat, contents) = (chat.clone(), Arc::clone(&self.shared.contents));
        self.read_checked(move |connection| {
            // Asked here as well, so that no content is written in vain.
            Ok(if exists(connection, &chat)? { Ok(contents.folder()) } else { Err(StoreError::unknown_chat(&chat)) })
        })
        .await
    }

    /// What tools did since the user said this, the newest change first.
    pub async fn changes_since(&self, chat: &ChatId, content: &ContentId) -> Result<Vec<Change>, StoreError> {
        let (chat, content, contents) = (chat.clone(), content.clone(), Arc::clone(&self.shared.contents));
        let read = self.read_checked(move |connection| {
            let Some(seq) = first_seq(connection, &chat, &content)? else {
                return Ok(Err(StoreError::UnknownContent));
            };
            let mut statement = connection.prepare_cached(
                "SELECT id, call_id, call_order, path, existed, kept, size, after_hash, created_at, file
                 FROM changes WHERE chat_id = ?1 AND place > ?2 ORDER BY id DESC",
            )?;
            let changes = statement.query_map(params![chat.as_str(), seq], change_from_row)?;
            Ok(Ok((changes.collect::<Result<Vec<_>, _>>()?, contents.folder())))
        });
        let (mut changes, folder) = read.await?;
        blocking(move || {
            for change in &mut changes {
                let is_there = |name: &String| {
                    folder.as_ref().is_some_and(|folder| contents::is_there(folder, name, change.size_before))
                };
                change.is_kept = change.is_kept && change.file.as_ref().is_none_or(is_there);
            }
            changes
        })
        .await
    }

    /// The content of a file before a change; `None` when there was no file. One that is not kept
    /// any more is an error: it must not be taken for a file that was not there.
    pub async fn content_before(&self, change: &Change) -> Result<Option<Vec<u8>>, StoreError> {
        if !change.existed {
            return Ok(None);
        }
        let (id, contents) = (change.id, Arc::clone(&self.shared.contents));
        let read = self.read(move |connection| {
            let kept = connection
                .prepare_cached("SELECT before, file FROM changes WHERE id = ?1")?
                .query_row([id], |row| Ok((row.get::<_, Option<Vec<u8>>>(0)?, row.get::<_, Option<String>>(1)?)))
                .optional()?;
            Ok((kept, contents.folder()))
        });
        let content = match read.await? {
            (Some((_, Some(name))), Some(folder)) => {
                let size = change.size_before;
                let place = folder.display().to_string();
                let read = blocking(move || contents::read(&folder, &name, size)).await?;
                read.map_err(|error| schema::unavailable(&place, &error))?
            }
            (kept, _) => kept.and_then(|(before, _)| before),
        };
        content.ok_or_else(|| StoreError::content_gone(&change.path)).map(Some)
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

/// A change with all that takes time done.
struct ChangeRow {
    change: NewChange,
    size: i64,
    after_hash: Option<Vec<u8>>,
    /// The content before, when it is not in the row.
    file: Option<NewFile>,
}

impl ChangeRow {
    fn prepare(change: NewChange, folder: Option<&Path>) -> Result<Self, StoreError> {
        let mut row = Self {
            size: i64::try_from(change.before.as_ref().map_or(0, Bytes::len)).unwrap_or(i64::MAX),
            after_hash: change.after.as_deref().map(hash),
            file: None,
            change,
        };
        if let (Some(folder), Some(before)) = (folder, &row.change.before) {
            row.file = Some(NewFile::write(folder, before)?);
        }
        Ok(row)
    }

    /// Not when the file with the content is not there any more, or is beside another database.
    fn insert(&self, connection: &Connection, chat: &ChatId, contents: &Contents, now: i64) -> rusqlite::Result<bool> {
        let Self { change, size, after_hash, file } = self;
        let (in_row, name) = match file {
            None => (change.before.as_deref(), None),
            Some(file) => match file.name_in(contents) {
                None => return Ok(false),
                name => (None, name),
            },
        };
        connection
            .prepare_cached(
                "INSERT INTO changes
                     (chat_id, place, call_id, call_order, path, existed, kept, size, after_hash, created_at, before, file)
                 SELECT id, next_seq, ?2, ?3, ?4, ?5, 1, ?6, ?7, ?8, ?9, ?10 FROM chats WHERE id = ?1",
            )?
            .execute(params![
                chat.as_str(),
                change.call.as_str(),
                change.order,
                path_bytes(&change.path),
                change.before.is_some(),
                size,
                after_hash,
                now,
                in_row,
                name
            ])?;
        Ok(true)
    }
}

/// Does what takes time beside the runtime.
async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, StoreError> {
    task::blocking(work).await.map_err(|error| StoreError::Internal(error.to_string()))
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
                "UPDATE changes SET kept = 0, before = NULL, file = NULL WHERE id =
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
        file: row.get(9)?,
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
        connection.execute("UPDATE changes SET before = NULL, file = 'f3' WHERE id = 3", []).unwrap();
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
        let released = "SELECT file FROM released_contents";
        assert_eq!(connection.query_row(released, [], |row| row.get::<_, String>(0)).unwrap(), "f3");
    }
}
