//! Every statement the store runs, as functions over an open connection.
//!
//! They run inside a transaction that [`super::thread`] owns, and know nothing of threads or
//! files.

use rusqlite::{Connection, OptionalExtension, Row, params, params_from_iter};

use super::record::StoredMessage;
use super::{
    ChatMeta, ChatSettings, ChatSummary, ListQuery, ListSort, MOST_MESSAGE_BYTES, MessageKind, NewMessage, StoreError,
    StoredChat, StoredEntry, StoredFlag, TitleSource, search,
};
use crate::base::{ChatId, ContentId, ModelId};
use crate::llm::Usage;

/// Totals stop here: half of what SQLite counts exactly, so that adding never overflows.
const TOKEN_CAP: i64 = (1 << 62) - 1;

/// A message ready to be written.
#[derive(Debug)]
pub(super) struct NewRow {
    pub(super) kind: MessageKind,
    pub(super) content_id: Option<ContentId>,
    pub(super) body: String,
    /// What a search finds it by.
    pub(super) words: String,
    /// `None` is now.
    pub(super) created_at: Option<i64>,
}

impl NewRow {
    pub(super) fn from_message(item: NewMessage) -> Result<Self, StoreError> {
        Self::from_stored(item.kind, item.content_id, &StoredMessage::new(item.message, item.extra))
    }

    pub(super) fn from_stored(
        kind: MessageKind,
        content_id: Option<ContentId>,
        message: &StoredMessage,
    ) -> Result<Self, StoreError> {
        let body = message
            .to_json()
            .map_err(|error| StoreError::Internal(format!("a message could not be serialised: {error}")))?;
        StoreError::demand_size("This message", body.len(), MOST_MESSAGE_BYTES)?;
        Ok(Self { kind, content_id, body, words: search::words_of(message), created_at: None })
    }
}

pub(super) fn create_or_touch_chat(connection: &Connection, meta: &ChatMeta, now: i64) -> rusqlite::Result<()> {
    connection
        .prepare_cached(
            "INSERT INTO chats (id, model, agent, workspace_key, variant, trust, parent_chat, created_at, updated_at)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?8)
             ON CONFLICT (id) DO UPDATE SET
                 model = coalesce(excluded.model, model),
                 agent = coalesce(excluded.agent, agent),
                 workspace_key = coalesce(excluded.workspace_key, workspace_key),
                 variant = coalesce(excluded.variant, variant),
                 trust = coalesce(excluded.trust, trust),
                 parent_chat = coalesce(excluded.parent_chat, parent_chat),
                 updated_at = max(updated_at, excluded.updated_at)",
        )?
        .execute(params![
            meta.id.as_str(),
            meta.model.as_ref().map(ModelId::as_str),
            meta.agent,
            meta.workspace_key,
            meta.variant,
            meta.trust,
            meta.parent.as_ref().map(ChatId::as_str),
            now
        ])?;
    Ok(())
}

pub(super) fn append(connection: &Connection, chat: &ChatId, rows: &[NewRow], now: i64) -> rusqlite::Result<Vec<i64>> {
    let count = i64::try_from(rows.len()).unwrap_or(i64::MAX);
    let end: i64 = connection
        .prepare_cached(
            "INSERT INTO chats (id, created_at, updated_at, next_seq, message_count) VALUES (?1, ?2, ?2, 1 + ?3, ?3)
             ON CONFLICT (id) DO UPDATE SET
                 next_seq = next_seq + ?3,
                 message_count = message_count + ?3,
                 updated_at = max(updated_at, excluded.updated_at)
             RETURNING next_seq",
        )?
        .query_row(params![chat.as_str(), now, count], |row| row.get(0))?;
    let mut insert = connection.prepare_cached(
        "INSERT INTO messages (chat_id, seq, kind, content_id, body, created_at) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
    )?;
    let mut seqs = Vec::with_capacity(rows.len());
    for (seq, row) in (end - count..end).zip(rows) {
        let content_id = row.content_id.as_ref().map(ContentId::as_str);
        let created_at = row.created_at.unwrap_or(now);
        insert.execute(params![chat.as_str(), seq, row.kind.as_str(), content_id, row.body, created_at])?;
        search::index(connection, connection.last_insert_rowid(), &row.words)?;
        seqs.push(seq);
    }
    super::lease::renew(connection, chat, now)?;
    Ok(seqs)
}

pub(super) fn set_title(
    connection: &Connection,
    chat: &ChatId,
    title: &str,
    source: TitleSource,
) -> rusqlite::Result<bool> {
    // `IS` compares with NULL as well, unlike `=`.
    let changed = connection
        .prepare_cached(
            "UPDATE chats SET title = ?2, title_source = ?3
             WHERE id = ?1 AND (?3 = 'user' OR title_source IS NOT 'user')",
        )?
        .execute(params![chat.as_str(), title, source.as_str()])?;
    Ok(changed > 0)
}

pub(super) fn set_settings(connection: &Connection, chat: &ChatId, settings: &ChatSettings) -> rusqlite::Result<bool> {
    let changed = connection
        .prepare_cached(
            "UPDATE chats SET
                 model = coalesce(?2, model),
                 agent = coalesce(?3, agent),
                 variant = CASE WHEN ?4 THEN ?5 ELSE variant END,
                 trust = coalesce(?6, trust)
             WHERE id = ?1",
        )?
        .execute(params![
            chat.as_str(),
            settings.model.as_ref().map(ModelId::as_str),
            settings.agent,
            settings.variant.is_some(),
            settings.variant.as_ref().and_then(Option::as_ref),
            settings.trust
        ])?;
    Ok(changed > 0)
}

pub(super) fn set_state(
    connection: &Connection,
    chat: &ChatId,
    key: &str,
    value: Option<&str>,
) -> rusqlite::Result<bool> {
    if !exists(connection, chat)? {
        return Ok(false);
    }
    match value {
        Some(value) => connection
            .prepare_cached("INSERT OR REPLACE INTO chat_state (chat_id, key, value) VALUES (?1, ?2, ?3)")?
            .execute([chat.as_str(), key, value])?,
        None => connection
            .prepare_cached("DELETE FROM chat_state WHERE chat_id = ?1 AND key = ?2")?
            .execute([chat.as_str(), key])?,
    };
    Ok(true)
}

pub(super) fn state(connection: &Connection, chat: &ChatId, key: &str) -> rusqlite::Result<Option<String>> {
    connection
        .prepare_cached("SELECT value FROM chat_state WHERE chat_id = ?1 AND key = ?2")?
        .query_row([chat.as_str(), key], |row| row.get(0))
        .optional()
}

/// Counts a call of the chat's own model.
pub(super) fn add_usage(
    connection: &Connection,
    chat: &ChatId,
    last: Usage,
    cost: Option<f64>,
) -> rusqlite::Result<bool> {
    connection
        .prepare_cached(
            "UPDATE chats SET last_input = ?2, last_output = ?3, last_cache_read = ?4, last_cache_write = ?5
             WHERE id = ?1",
        )?
        .execute(params![
            chat.as_str(),
            to_column(last.input),
            to_column(last.output),
            to_column(last.cache_read),
            to_column(last.cache_write),
        ])?;
    add_spending(connection, chat, last, cost)
}

pub(super) fn add_spending(
    connection: &Connection,
    chat: &ChatId,
    usage: Usage,
    cost: Option<f64>,
) -> rusqlite::Result<bool> {
    let changed = connection
        .prepare_cached(
            "UPDATE chats SET
                 total_input = min(total_input + ?2, ?7),
                 total_output = min(total_output + ?3, ?7),
                 total_cache_read = min(total_cache_read + ?4, ?7),
                 total_cache_write = min(total_cache_write + ?5, ?7),
                 cost_usd = CASE WHEN ?6 IS NULL THEN cost_usd ELSE coalesce(cost_usd, 0.0) + ?6 END
             WHERE id = ?1",
        )?
        .execute(params![
            chat.as_str(),
            to_column(usage.input),
            to_column(usage.output),
            to_column(usage.cache_read),
            to_column(usage.cache_write),
            cost,
            TOKEN_CAP
        ])?;
    Ok(changed > 0)
}

pub(super) fn load(connection: &Connection, chat: &ChatId) -> rusqlite::Result<Option<StoredChat>> {
    let Some(mut stored) = head(connection, chat)? else { return Ok(None) };
    let mut statement = connection.prepare_cached(&format!("{ENTRY_COLUMNS} WHERE chat_id = ?1 ORDER BY seq"))?;
    let mut rows = statement.query([chat.as_str()])?;
    while let Some(row) = rows.next()? {
        stored.messages.extend(readable_entry(chat, row)?);
    }
    stored.flags = flags(connection, chat, 0, i64::MAX)?;
    Ok(Some(stored))
}

/// The chat without its messages and flags.
pub(super) fn head(connection: &Connection, chat: &ChatId) -> rusqlite::Result<Option<StoredChat>> {
    connection
        .prepare_cached(
            "SELECT title, title_source, model, agent, workspace_key, created_at, updated_at, cost_usd,
                 total_input, total_output, total_cache_read, total_cache_write,
                 last_input, last_output, last_cache_read, last_cache_write,
                 variant, trust, parent_chat, imported_at, message_count
             FROM chats WHERE id = ?1",
        )?
        .query_row([chat.as_str()], |row| chat_from_row(chat, row))
        .optional()
}

/// The columns that [`readable_entry`] reads.
pub(super) const ENTRY_COLUMNS: &str = "SELECT seq, kind, content_id, created_at, body FROM messages";

/// The row as an entry, if it can be understood: one bad message must not cost the chat.
pub(super) fn readable_entry(chat: &ChatId, row: &Row<'_>) -> rusqlite::Result<Option<StoredEntry>> {
    match entry_from_row(row) {
        Ok(entry) => Ok(Some(entry)),
        Err(error) => {
            let seq: i64 = row.get(0)?;
            tracing::warn!(%chat, seq, %error, "a stored message cannot be read and is left out");
            Ok(None)
        }
    }
}

/// The flags that stand behind the messages from `first` to `last`.
pub(super) fn flags(
    connection: &Connection,
    chat: &ChatId,
    first: i64,
    last: i64,
) -> rusqlite::Result<Vec<StoredFlag>> {
    let mut statement = connection.prepare_cached(
        "SELECT after_seq, content_id, text, created_at FROM flags
         WHERE chat_id = ?1 AND after_seq BETWEEN ?2 AND ?3 ORDER BY after_seq, id",
    )?;
    let flag = |row: &Row<'_>| {
        Ok(StoredFlag {
            after: row.get(0)?,
            content_id: ContentId::new(row.get::<_, String>(1)?),
            text: row.get(2)?,
            created_at: row.get(3)?,
        })
    };
    statement.query_map(params![chat.as_str(), first, last], flag)?.collect()
}

pub(super) fn exists(connection: &Connection, chat: &ChatId) -> rusqlite::Result<bool> {
    connection.prepare_cached("SELECT 1 FROM chats WHERE id = ?1")?.exists([chat.as_str()])
}

pub(super) fn list(connection: &Connection, query: &ListQuery) -> rusqlite::Result<Vec<ChatSummary>> {
    let column = match query.sort {
        ListSort::UpdatedAt => "updated_at",
        ListSort::CreatedAt => "created_at",
    };
    // Two statements, because a condition that may be absent would keep SQLite from its index.
    let filter = if query.workspace_key.is_some() { "AND workspace_key = ?2" } else { "" };
    let mut statement = connection.prepare_cached(&format!(
        "SELECT id, title, model, created_at, updated_at, message_count, workspace_key
         FROM chats WHERE parent_chat IS NULL {filter}
         ORDER BY {column} DESC, rowid DESC LIMIT ?1"
    ))?;
    // A negative limit is SQLite's word for none.
    let limit = query.limit.map_or(-1, |limit| i64::try_from(limit).unwrap_or(i64::MAX));
    let arguments = std::iter::once(rusqlite::types::Value::from(limit))
        .chain(query.workspace_key.clone().map(rusqlite::types::Value::from));
    statement
        .query_map(params_from_iter(arguments), |row| {
            Ok(ChatSummary {
                id: ChatId::new(row.get::<_, String>(0)?),
                title: row.get(1)?,
                model: model_from_row(row, 2)?,
                created_at: row.get(3)?,
                updated_at: row.get(4)?,
                message_count: from_column(row.get(5)?),
                workspace_key: row.get(6)?,
            })
        })?
        .collect()
}

pub(super) fn delete(connection: &Connection, chat: &ChatId, now: i64) -> rusqlite::Result<bool> {
    let mut statement = connection.prepare_cached(
        "WITH RECURSIVE family (id) AS (
             SELECT id FROM chats WHERE id = ?1
             UNION SELECT chats.id FROM chats JOIN family ON chats.parent_chat = family.id
         )
         SELECT id FROM family",
    )?;
    let family: Vec<ChatId> = statement
        .query_map([chat.as_str()], |row| Ok(ChatId::new(row.get::<_, String>(0)?)))?
        .collect::<Result<_, _>>()?;
    for member in &family {
        search::forget(connection, member, 0)?;
        connection
            .prepare_cached(
                "INSERT OR REPLACE INTO tombstones (chat_id, deleted_at)
                 SELECT id, ?2 FROM chats WHERE id = ?1 AND imported_at IS NOT NULL",
            )?
            .execute(params![member.as_str(), now])?;
        connection.prepare_cached("DELETE FROM leases WHERE chat_id = ?1")?.execute([member.as_str()])?;
        connection.prepare_cached("DELETE FROM chats WHERE id = ?1")?.execute([member.as_str()])?;
    }
    Ok(!family.is_empty())
}

fn chat_from_row(chat: &ChatId, row: &Row<'_>) -> rusqlite::Result<StoredChat> {
    let usage = |first: usize| -> rusqlite::Result<Usage> {
        Ok(Usage {
            input: from_column(row.get(first)?),
            output: from_column(row.get(first + 1)?),
            cache_read: from_column(row.get(first + 2)?),
            cache_write: from_column(row.get(first + 3)?),
        })
    };
    Ok(StoredChat {
        id: chat.clone(),
        title: row.get(0)?,
        title_source: row.get::<_, Option<String>>(1)?.as_deref().and_then(TitleSource::parse),
        model: model_from_row(row, 2)?,
        agent: row.get(3)?,
        workspace_key: row.get(4)?,
        created_at: row.get(5)?,
        updated_at: row.get(6)?,
        cost_usd: row.get(7)?,
        total_usage: usage(8)?,
        last_usage: usage(12)?,
        variant: row.get(16)?,
        trust: row.get(17)?,
        parent: row.get::<_, Option<String>>(18)?.map(ChatId::new),
        imported_at: row.get(19)?,
        message_count: from_column(row.get(20)?),
        messages: Vec::new(),
        flags: Vec::new(),
    })
}

/// The row as an entry, or why it cannot be understood.
fn entry_from_row(row: &Row<'_>) -> Result<StoredEntry, Box<dyn std::error::Error>> {
    let (message, extra) = StoredMessage::from_json(row.get_ref(4)?.as_bytes()?)?.into_message()?;
    Ok(StoredEntry {
        seq: row.get(0)?,
        kind: MessageKind::from(row.get_ref(1)?.as_str()?),
        content_id: row.get::<_, Option<String>>(2)?.map(ContentId::new),
        created_at: row.get(3)?,
        message,
        extra,
    })
}

/// A model whose name no longer has the form `provider/model` is as good as none.
fn model_from_row(row: &Row<'_>, index: usize) -> rusqlite::Result<Option<ModelId>> {
    Ok(row.get::<_, Option<String>>(index)?.as_deref().and_then(ModelId::parse))
}

pub(super) fn to_column(tokens: u64) -> i64 {
    i64::try_from(tokens).unwrap_or(TOKEN_CAP).min(TOKEN_CAP)
}

pub(super) fn from_column(number: i64) -> u64 {
    u64::try_from(number).unwrap_or(0)
}
