//! Reading a chat page by page, and cutting, copying and marking it.
//!
//! A cursor names a message by its sequence number and the time it was written. Sequence numbers
//! are not used again, so a cursor stays good as long as its message is there, whatever is added
//! or cut elsewhere; the time tells a chat from a later one of the same id.

use rusqlite::{Connection, OptionalExtension, params};

use super::queries::{self, ENTRY_COLUMNS};
use super::record::StoredMessage;
use super::{PRIVATE_STATE, Store, StoreError, StoredChat, StoredEntry, StoredFlag, search};
use crate::base::time::now_ms;
use crate::base::{ChatId, ContentId};

/// In the place of a cursor: the last compaction.
pub const LAST_COMPACTION: &str = "lastCompaction";

/// Which messages of a chat to read: those between two cursors, both exclusive.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PageQuery {
    /// A cursor, or [`LAST_COMPACTION`]; a chat that was never compacted has no such bound.
    pub before: Option<String>,
    pub after: Option<String>,
    /// The newest so many; behind a cursor alone, the oldest.
    pub limit: Option<usize>,
}

/// Some messages of a chat, in order.
#[derive(Debug, Clone, PartialEq)]
pub struct Page {
    pub entries: Vec<StoredEntry>,
    /// Those that stand between these messages.
    pub flags: Vec<StoredFlag>,
    /// Where the older messages end, if there are any.
    pub before_cursor: Option<String>,
    /// Where the newer messages begin, if there are any.
    pub after_cursor: Option<String>,
    /// How many messages the chat has.
    pub total: u64,
    /// The last compaction, if there was one.
    pub compaction_cursor: Option<String>,
}

/// A chat to be copied from its beginning to a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fork {
    pub from: ChatId,
    /// The last message of the copy, or a flag behind it.
    pub at: Option<ContentId>,
    /// Must be free.
    pub id: ChatId,
    pub title: Option<String>,
}

impl Store {
    /// The chat without its messages and flags.
    pub async fn head(&self, chat: &ChatId) -> Result<Option<StoredChat>, StoreError> {
        let chat = chat.clone();
        self.read(move |connection| queries::head(connection, &chat)).await
    }

    /// Some of the chat's messages, or `None` when there is no such chat.
    pub async fn load_page(&self, chat: &ChatId, query: PageQuery) -> Result<Option<Page>, StoreError> {
        let chat = chat.clone();
        self.read_checked(move |connection| page(connection, &chat, &query)).await
    }

    /// Cuts off the message with this id, or what is behind the flag with this id, and everything
    /// after it, and says how many messages that were. What tools did to files stays in the journal.
    pub async fn truncate_before(&self, chat: &ChatId, content: &ContentId) -> Result<u64, StoreError> {
        let (chat, content) = (chat.clone(), content.clone());
        self.write_checked(move |connection| match first_seq(connection, &chat, &content)? {
            Some(seq) => truncate(connection, &chat, seq).map(Ok),
            None => Ok(Err(StoreError::UnknownContent)),
        })
        .await
    }

    /// Copies a chat with its flags and state into a new one, and says how many messages it has.
    /// What its tools did to files, what it cost and whether it is trusted stay with the original.
    pub async fn fork(&self, fork: Fork) -> Result<u64, StoreError> {
        let now = now_ms();
        self.write_checked(move |connection| copy(connection, &fork, now)).await
    }

    /// Makes `to` the id of a chat, whatever it was known by. A chat without messages that has this
    /// id gives way; one with messages does not.
    pub async fn rename_chat(&self, from: &ChatId, to: &ChatId) -> Result<(), StoreError> {
        let (from, to) = (from.clone(), to.clone());
        self.write_checked(move |connection| {
            if !queries::exists(connection, &from)? {
                return Ok(Err(StoreError::unknown_chat(&from)));
            }
            let (from, to) = (from.as_str(), to.as_str());
            connection.prepare_cached("DELETE FROM chats WHERE id = ?1 AND message_count = 0")?.execute([to])?;
            if queries::exists(connection, &ChatId::new(to))? {
                return Ok(Err(StoreError::ChatExists { chat: to.to_owned() }));
            }
            // The rows of the other tables follow one by one; they are checked at the commit.
            connection.pragma_update(None, "defer_foreign_keys", true)?;
            connection.prepare_cached("UPDATE chats SET id = ?2 WHERE id = ?1")?.execute([from, to])?;
            connection
                .prepare_cached("UPDATE chats SET parent_chat = ?2 WHERE parent_chat = ?1")?
                .execute([from, to])?;
            for table in ["messages", "flags", "chat_state", "changes"] {
                let sql = format!("UPDATE {table} SET chat_id = ?2 WHERE chat_id = ?1");
                connection.prepare_cached(&sql)?.execute([from, to])?;
            }
            connection.prepare_cached("DELETE FROM leases WHERE chat_id = ?1")?.execute([from])?;
            Ok(Ok(()))
        })
        .await
    }

    /// Empties the chat: messages, flags, state, journal and usage. Whether it exists. Its name and
    /// what was chosen for it stay.
    pub async fn clear(&self, chat: &ChatId) -> Result<bool, StoreError> {
        let chat = chat.clone();
        self.write(move |connection| {
            truncate(connection, &chat, 0)?;
            for table in ["flags", "chat_state", "changes"] {
                let sql = format!("DELETE FROM {table} WHERE chat_id = ?1");
                connection.prepare_cached(&sql)?.execute([chat.as_str()])?;
            }
            let changed = connection
                .prepare_cached(
                    "UPDATE chats SET
                         total_input = 0, total_output = 0, total_cache_read = 0, total_cache_write = 0,
                         last_input = 0, last_output = 0, last_cache_read = 0, last_cache_write = 0, cost_usd = NULL
                     WHERE id = ?1",
                )?
                .execute([chat.as_str()])?;
            Ok(changed > 0)
        })
        .await
    }

    /// Puts a flag behind the message `after`, or gives the flag of this id another text and place.
    pub async fn add_flag(
        &self,
        chat: &ChatId,
        after: &ContentId,
        flag: &ContentId,
        text: &str,
    ) -> Result<(), StoreError> {
        let (chat, after, flag, text, now) = (chat.clone(), after.clone(), flag.clone(), text.to_owned(), now_ms());
        self.write_checked(move |connection| {
            let Some(seq) = last_seq(connection, &chat, &after)? else { return Ok(Err(StoreError::UnknownContent)) };
            let flag = StoredFlag { after: seq, content_id: flag.clone(), text: text.clone(), created_at: now };
            insert_flag(connection, &chat, &flag).map(Ok)
        })
        .await
    }

    /// Whether there was such a flag.
    pub async fn remove_flag(&self, chat: &ChatId, flag: &ContentId) -> Result<bool, StoreError> {
        let (chat, flag) = (chat.clone(), flag.clone());
        self.write(move |connection| {
            let mut statement =
                connection.prepare_cached("DELETE FROM flags WHERE chat_id = ?1 AND content_id = ?2")?;
            Ok(statement.execute([chat.as_str(), flag.as_str()])? > 0)
        })
        .await
    }
}

/// Where the part of the chat begins that is named by `content`: a prompt, all of whose messages
/// share its id, or a flag, behind which it begins.
pub(super) fn first_seq(connection: &Connection, chat: &ChatId, content: &ContentId) -> rusqlite::Result<Option<i64>> {
    let first = ends_of(connection, chat, content, "min(seq)")?;
    Ok(first.or(flag_place(connection, chat, content)?.map(|after| after + 1)))
}

/// The last message up to and including what is named by `content`.
fn last_seq(connection: &Connection, chat: &ChatId, content: &ContentId) -> rusqlite::Result<Option<i64>> {
    let last = ends_of(connection, chat, content, "max(seq)")?;
    Ok(last.or(flag_place(connection, chat, content)?))
}

fn ends_of(connection: &Connection, chat: &ChatId, content: &ContentId, end: &str) -> rusqlite::Result<Option<i64>> {
    connection
        .prepare_cached(&format!("SELECT {end} FROM messages WHERE chat_id = ?1 AND content_id = ?2"))?
        .query_row([chat.as_str(), content.as_str()], |row| row.get(0))
}

fn flag_place(connection: &Connection, chat: &ChatId, flag: &ContentId) -> rusqlite::Result<Option<i64>> {
    connection
        .prepare_cached("SELECT after_seq FROM flags WHERE chat_id = ?1 AND content_id = ?2")?
        .query_row([chat.as_str(), flag.as_str()], |row| row.get(0))
        .optional()
}

pub(super) fn insert_flag(connection: &Connection, chat: &ChatId, flag: &StoredFlag) -> rusqlite::Result<()> {
    connection
        .prepare_cached(
            "INSERT OR REPLACE INTO flags (chat_id, after_seq, content_id, text, created_at)
             VALUES (?1, ?2, ?3, ?4, ?5)",
        )?
        .execute(params![chat.as_str(), flag.after, flag.content_id.as_str(), flag.text, flag.created_at])
        .map(|_| ())
}

fn truncate(connection: &Connection, chat: &ChatId, seq: i64) -> rusqlite::Result<u64> {
    search::forget(connection, chat, seq)?;
    let removed = connection
        .prepare_cached("DELETE FROM messages WHERE chat_id = ?1 AND seq >= ?2")?
        .execute(params![chat.as_str(), seq])?;
    connection
        .prepare_cached("DELETE FROM flags WHERE chat_id = ?1 AND after_seq >= ?2")?
        .execute(params![chat.as_str(), seq])?;
    connection
        .prepare_cached("UPDATE chats SET message_count = message_count - ?2 WHERE id = ?1")?
        .execute(params![chat.as_str(), i64::try_from(removed).unwrap_or(i64::MAX)])?;
    Ok(removed as u64)
}

fn copy(connection: &Connection, fork: &Fork, now: i64) -> rusqlite::Result<Result<u64, StoreError>> {
    if !queries::exists(connection, &fork.from)? {
        return Ok(Err(StoreError::unknown_chat(&fork.from)));
    }
    if queries::exists(connection, &fork.id)? {
        return Ok(Err(StoreError::ChatExists { chat: fork.id.as_str().to_owned() }));
    }
    let last = match &fork.at {
        Some(at) => last_seq(connection, &fork.from, at)?,
        None => connection
            .prepare_cached("SELECT max(seq) FROM messages WHERE chat_id = ?1")?
            .query_row([fork.from.as_str()], |row| row.get(0))?,
    };
    let Some(last) = last else { return Ok(Err(StoreError::UnknownContent)) };
    let (from, id) = (fork.from.as_str(), fork.id.as_str());
    connection
        .prepare_cached(
            "INSERT INTO chats (id, title, title_source, model, agent, variant, workspace_key, created_at, updated_at,
                 next_seq)
             SELECT ?2, ?3, title_source, model, agent, variant, workspace_key, ?4, ?4, ?5 + 1 FROM chats WHERE id = ?1",
        )?
        .execute(params![from, id, fork.title, now, last])?;
    connection
        .prepare_cached(
            "INSERT INTO messages (chat_id, seq, kind, content_id, body, created_at)
             SELECT ?2, seq, kind, content_id, body, created_at FROM messages
             WHERE chat_id = ?1 AND seq <= ?3 ORDER BY seq",
        )?
        .execute(params![from, id, last])?;
    connection
        .prepare_cached(
            "INSERT INTO flags (chat_id, after_seq, content_id, text, created_at)
             SELECT ?2, after_seq, content_id, text, created_at FROM flags WHERE chat_id = ?1 AND after_seq <= ?3",
        )?
        .execute(params![from, id, last])?;
    connection
        .prepare_cached(
            "INSERT INTO chat_state (chat_id, key, value)
             SELECT ?2, key, value FROM chat_state WHERE chat_id = ?1 AND substr(key, 1, length(?3)) <> ?3",
        )?
        .execute([from, id, PRIVATE_STATE])?;
    let count = index_all(connection, &fork.id)?;
    connection
        .prepare_cached("UPDATE chats SET message_count = ?2 WHERE id = ?1")?
        .execute(params![id, queries::to_column(count)])?;
    Ok(Ok(count))
}

/// Indexes every message of a chat, and counts them.
fn index_all(connection: &Connection, chat: &ChatId) -> rusqlite::Result<u64> {
    let mut statement = connection.prepare_cached("SELECT id, body FROM messages WHERE chat_id = ?1 ORDER BY seq")?;
    let mut rows = statement.query([chat.as_str()])?;
    let mut count = 0;
    while let Some(row) = rows.next()? {
        if let Ok(message) = StoredMessage::from_json(row.get_ref(1)?.as_bytes().unwrap_or_default()) {
            search::index(connection, row.get(0)?, &search::words_of(&message))?;
        }
        count += 1;
    }
    Ok(count)
}

/// A message's place and the time that makes its cursor one of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Place {
    seq: i64,
    created_at: i64,
}

impl Place {
    fn cursor(self) -> String {
        format!("{:x}.{:x}", self.seq, self.created_at)
    }

    fn parse(cursor: &str) -> Option<Self> {
        let (seq, created_at) = cursor.split_once('.')?;
        let number = |text: &str| i64::from_str_radix(text, 16).ok();
        Some(Self { seq: number(seq)?, created_at: number(created_at)? })
    }
}

/// What a bound of a query means in a chat.
enum Bound {
    None,
    At(i64),
    Expired,
}

fn page(
    connection: &Connection,
    chat: &ChatId,
    query: &PageQuery,
) -> rusqlite::Result<Result<Option<Page>, StoreError>> {
    let total = connection
        .prepare_cached("SELECT message_count FROM chats WHERE id = ?1")?
        .query_row([chat.as_str()], |row| row.get(0))
        .optional()?;
    let Some(total) = total.map(queries::from_column) else { return Ok(Ok(None)) };
    let compaction = last_marker(connection, chat)?;
    let resolve = |bound: &Option<String>| resolve(connection, chat, bound.as_deref(), compaction);
    let (low, high, is_forward) = match (resolve(&query.after)?, resolve(&query.before)?) {
        (Bound::Expired, _) | (_, Bound::Expired) => return Ok(Err(StoreError::CursorExpired)),
        (Bound::At(low), Bound::None) => (low, i64::MAX, query.after.as_deref() != Some(LAST_COMPACTION)),
        (low, high) => (low.or(i64::MIN), high.or(i64::MAX), false),
    };
    let order = if is_forward { "ASC" } else { "DESC" };
    let limit = query.limit.map_or(-1, |limit| i64::try_from(limit).unwrap_or(i64::MAX));
    let mut statement = connection.prepare_cached(&format!(
        "{ENTRY_COLUMNS} WHERE chat_id = ?1 AND seq > ?2 AND seq < ?3 ORDER BY seq {order} LIMIT ?4"
    ))?;
    let mut rows = statement.query(params![chat.as_str(), low, high, limit])?;
    let mut entries = Vec::new();
    // The ends of the page are those of its rows, readable or not.
    let (mut first, mut last) = (None, None);
    while let Some(row) = rows.next()? {
        let place = Place { seq: row.get(0)?, created_at: row.get(3)? };
        first = first.or(Some(place));
        last = Some(place);
        entries.extend(queries::readable_entry(chat, row)?);
    }
    if !is_forward {
        entries.reverse();
        (first, last) = (last, first);
    }
    let is_there = |comparison: &str, place: Place| {
        let sql = format!("SELECT 1 FROM messages WHERE chat_id = ?1 AND seq {comparison} ?2 LIMIT 1");
        connection.prepare_cached(&sql)?.exists(params![chat.as_str(), place.seq])
    };
    let older = first.map_or(Ok(false), |first| is_there("<", first))?;
    let newer = last.map_or(Ok(false), |last| is_there(">", last))?;
    let flags_from = first.filter(|_| older).map_or(0, |first| first.seq);
    let flags_until = last.filter(|_| newer).map_or(i64::MAX, |last| last.seq);
    Ok(Ok(Some(Page {
        entries,
        flags: queries::flags(connection, chat, flags_from, flags_until)?,
        before_cursor: first.filter(|_| older).map(Place::cursor),
        after_cursor: last.filter(|_| newer).map(Place::cursor),
        total,
        compaction_cursor: compaction.map(Place::cursor),
    })))
}

impl Bound {
    fn or(&self, otherwise: i64) -> i64 {
        match self {
            Self::At(seq) => *seq,
            Self::None | Self::Expired => otherwise,
        }
    }
}

fn resolve(
    connection: &Connection,
    chat: &ChatId,
    bound: Option<&str>,
    compaction: Option<Place>,
) -> rusqlite::Result<Bound> {
    let Some(bound) = bound else { return Ok(Bound::None) };
    if bound == LAST_COMPACTION {
        return Ok(compaction.map_or(Bound::None, |place| Bound::At(place.seq)));
    }
    let Some(place) = Place::parse(bound) else { return Ok(Bound::Expired) };
    let is_there = connection
        .prepare_cached("SELECT 1 FROM messages WHERE chat_id = ?1 AND seq = ?2 AND created_at = ?3")?
        .exists(params![chat.as_str(), place.seq, place.created_at])?;
    Ok(if is_there { Bound::At(place.seq) } else { Bound::Expired })
}

fn last_marker(connection: &Connection, chat: &ChatId) -> rusqlite::Result<Option<Place>> {
    connection
        .prepare_cached(
            "SELECT seq, created_at FROM messages
             WHERE chat_id = ?1 AND kind = 'marker' ORDER BY seq DESC LIMIT 1",
        )?
        .query_row([chat.as_str()], |row| Ok(Place { seq: row.get(0)?, created_at: row.get(1)? }))
        .optional()
}
