//! Work that nobody waits for, done in small steps while the queue is empty: words of old
//! messages are indexed, a broken index is made anew, files of contents that nobody needs are
//! removed, freed room is given back.
//!
//! A step takes a few milliseconds, so that an operation that comes meanwhile hardly waits. All
//! progress is in the database, so any server can go on where another stopped.

use std::path::Path;
use std::time::Duration;

use rusqlite::{Connection, OptionalExtension, Transaction, TransactionBehavior, params};

use super::contents::Sweep;
use super::record::StoredMessage;
use super::{Store, StoreError, lease, queries, schema, search};
use crate::base::ChatId;
use crate::base::time::now_ms;

/// What one step indexes at most.
const MESSAGES_PER_STEP: usize = 64;
const BYTES_PER_STEP: usize = 512 * 1024;

/// What one step gives back at most; a page has 4 KiB.
const PAGES_PER_STEP: i64 = 256;

/// Free pages are used again by what is written next; fewer than these are not worth the work.
const FREE_PAGES_WORTH_IT: i64 = 1024;

/// Chats deleted in one transaction, so that others can write between them.
const DELETED_PER_WRITE: usize = 20;

/// Steps of a closing store that remove files. The rest is done by the next one that is opened.
const LAST_STEPS: usize = 16;

/// What there is to do, as far as it is known without asking the database.
#[derive(Debug, Default)]
pub(super) struct Upkeep {
    index: bool,
    vacuum: bool,
    sweep: Sweep,
}

impl Upkeep {
    /// `contents` is the folder of large contents, if there is one.
    pub(super) fn after_opening(contents: Option<&Path>) -> Self {
        Self { index: true, vacuum: true, sweep: contents.map(Sweep::of).unwrap_or_default() }
    }

    /// A write may have emptied the index, have let go of contents, or have freed room.
    pub(super) fn after_writing(&mut self) {
        self.index = true;
        self.vacuum = true;
        self.sweep.after_writing();
    }

    pub(super) fn is_due(&self) -> bool {
        self.index || self.vacuum || self.sweep.is_due()
    }

    /// One small step. When it fails, or another server is writing, the rest waits until there is
    /// something to write here again.
    pub(super) fn step(&mut self, connection: &Connection) {
        let outcome = if self.sweep.is_due() {
            self.sweep.step(connection)
        } else if self.index {
            index_some(connection).map(|more| self.index = more)
        } else {
            give_back_some(connection).map(|more| self.vacuum = more)
        };
        if let Err(error) = outcome {
            tracing::debug!(%error, "upkeep of the chat history waits");
            self.index = false;
            self.vacuum = false;
            self.sweep.wait();
        }
    }

    /// What was let go last should not outlive a server that is closed right after.
    pub(super) fn before_closing(&mut self, connection: &Connection) {
        for _ in 0..LAST_STEPS {
            if !self.sweep.is_due_for_released() {
                return;
            }
            if let Err(error) = self.sweep.step(connection) {
                tracing::debug!(%error, "contents of the journal are removed later");
                return;
            }
        }
    }
}

impl Store {
    /// Deletes the chats that nobody has used for this long, and says how many. Imported ones
    /// count from their import at the earliest. Chats that a server works on stay.
    pub async fn prune(&self, retention: Duration) -> Result<usize, StoreError> {
        let now = now_ms();
        let before = now.saturating_sub(i64::try_from(retention.as_millis()).unwrap_or(i64::MAX));
        let mut deleted = 0;
        loop {
            let own_lock = std::sync::Arc::clone(&self.shared.own_lock);
            let work = move |connection: &Connection| {
                let mut count = 0;
                for chat in unused_since(connection, before)? {
                    if lease::other_holder(connection, &own_lock, &chat, now)?.is_none() {
                        queries::delete(connection, &chat, now)?;
                        count += 1;
                        if count == DELETED_PER_WRITE {
                            break;
                        }
                    }
                }
                Ok(count)
            };
            let count = self.write(work).await?;
            deleted += count;
            if count < DELETED_PER_WRITE {
                return Ok(deleted);
            }
        }
    }
}

/// Empties the index of words, to be filled again bit by bit.
pub(super) fn make_index_anew(connection: &Connection) -> rusqlite::Result<()> {
    tracing::warn!("the index of words in the chat history is broken and is made anew");
    connection.execute_batch("DROP TABLE search")?;
    connection.execute_batch(schema::SEARCH)?;
    let until = connection.query_row("SELECT coalesce(max(id), 0) FROM messages", [], |row| row.get(0))?;
    set(connection, "index_until", until)?;
    set(connection, "indexed", 0)
}

/// Chats that work for another one go with it, unless there is no such other one.
fn unused_since(connection: &Connection, before: i64) -> rusqlite::Result<Vec<ChatId>> {
    let mut statement = connection.prepare_cached(
        "SELECT id FROM chats
         WHERE updated_at < ?1 AND coalesce(imported_at, 0) < ?1
             AND (parent_chat IS NULL OR parent_chat NOT IN (SELECT id FROM chats))
         ORDER BY updated_at",
    )?;
    statement.query_map([before], |row| Ok(ChatId::new(row.get::<_, String>(0)?)))?.collect()
}

/// Whether there is more to index.
fn index_some(connection: &Connection) -> rusqlite::Result<bool> {
    let (indexed, until) = (get(connection, "indexed")?, get(connection, "index_until")?);
    if indexed >= until {
        return Ok(false);
    }
    in_spare_transaction(connection, |connection| {
        // Another server may have gone on meanwhile.
        let indexed = get(connection, "indexed")?;
        let mut statement = connection
            .prepare_cached("SELECT id, body FROM messages WHERE id > ?1 AND id <= ?2 ORDER BY id LIMIT ?3")?;
        let mut rows = statement.query(params![indexed, until, MESSAGES_PER_STEP as i64])?;
        let (mut last, mut bytes) = (None, 0);
        while let Some(row) = rows.next()? {
            let body = row.get_ref(1)?.as_bytes().unwrap_or_default();
            bytes += body.len();
            let id = row.get(0)?;
            last = Some(id);
            if let Ok(message) = StoredMessage::from_json(body) {
                search::index(connection, id, &search::words_of(&message))?;
            }
            if bytes > BYTES_PER_STEP {
                break;
            }
        }
        set(connection, "indexed", last.unwrap_or(until))?;
        Ok(last.is_some())
    })
    .or_else(|error| match StoreError::from_sqlite("", &error) {
        StoreError::IndexDamaged { .. } => in_spare_transaction(connection, make_index_anew).map(|()| true),
        _ => Err(error),
    })
}

/// Whether there is more room to give back.
fn give_back_some(connection: &Connection) -> rusqlite::Result<bool> {
    let pragma = |name: &str| connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
    const INCREMENTAL: i64 = 2;
    let free = pragma("freelist_count")?;
    if free < FREE_PAGES_WORTH_IT || free < pragma("page_count")? / 8 || pragma("auto_vacuum")? != INCREMENTAL {
        return Ok(false);
    }
    in_spare_transaction(connection, |connection| {
        let mut statement = connection.prepare_cached(&format!("PRAGMA incremental_vacuum({PAGES_PER_STEP})"))?;
        let mut rows = statement.query([])?;
        while rows.next()?.is_some() {}
        Ok(true)
    })
}

/// Waits for nobody: whoever writes at the moment is more important. Does nothing to a file that
/// a newer server has taken over.
pub(super) fn in_spare_transaction<T>(
    connection: &Connection,
    work: impl FnOnce(&Connection) -> rusqlite::Result<T>,
) -> rusqlite::Result<T> {
    connection.busy_timeout(Duration::ZERO)?;
    let begun = Transaction::new_unchecked(connection, TransactionBehavior::Immediate);
    connection.busy_timeout(schema::BUSY_TIMEOUT)?;
    let transaction = begun?;
    if schema::demand_known_version(connection, "").is_err() {
        return Err(rusqlite::Error::InvalidQuery);
    }
    let outcome = work(connection)?;
    transaction.commit()?;
    Ok(outcome)
}

fn get(connection: &Connection, name: &str) -> rusqlite::Result<i64> {
    find(connection, name)?.ok_or(rusqlite::Error::QueryReturnedNoRows)
}

/// A number that is kept under a name, if there is one.
pub(super) fn find(connection: &Connection, name: &str) -> rusqlite::Result<Option<i64>> {
    connection
        .prepare_cached("SELECT value FROM upkeep WHERE name = ?1")?
        .query_row([name], |row| row.get(0))
        .optional()
}

pub(super) fn set(connection: &Connection, name: &str, value: i64) -> rusqlite::Result<()> {
    connection
        .prepare_cached("INSERT OR REPLACE INTO upkeep (name, value) VALUES (?1, ?2)")?
        .execute(params![name, value])
        .map(|_| ())
}
