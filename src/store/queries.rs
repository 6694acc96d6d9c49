//! Every statement the store runs, as functions over an open connection.
//!
//! They run inside a transaction that [`super::thread`] owns, and know nothing of threads or
//! files.

use rusqlite::{Connection, OptionalExtension, Row, params};

use super::record::StoredMessage;
use super::{ChatMeta, ChatSummary, ListQuery, ListSort, MessageKind, StoredChat, StoredEntry, TitleSource};
use crate::base::{ChatId, ContentId, ModelId};
use crate::llm::Usage;

/// Totals stop here: half of what SQLite counts exactly, so that adding never overflows.
const TOKEN_CAP: i64 = (1 << 62) - 1;

/// A message ready to be written.
pub(super) struct NewRow {
    pub(super) kind: MessageKind,
    pub(super) content_id: Option<ContentId>,
    pub(super) body: String,
}

pub(super) fn create_or_touch_chat(connection: &Connection, meta: &ChatMeta, now: i64) -> rusqlite::Result<()> {
    connection
        .prepare_cached(
            "INSERT INTO chats (id, model, agent, workspace_key, created_at, updated_at)
             VALUES (?1, ?2, ?3, ?4, ?5, ?5)
             ON CONFLICT (id) DO UPDATE SET
                 model = coalesce(excluded.model, model),
                 agent = coalesce(excluded.agent, agent),
                 workspace_key = coalesce(excluded.workspace_key, workspace_key),
                 updated_at = max(updated_at, excluded.updated_at)",
        )?
        .execute(params![
            meta.id.as_str(),
            meta.model.as_ref().map(ModelId::as_str),
            meta.agent,
            meta.workspace_key,
            now
        ])?;
    Ok(())
}

pub(super) fn append(connection: &Connection, chat: &ChatId, rows: &[NewRow], now: i64) -> rusqlite::Result<Vec<i64>> {
    let count = i64::try_from(rows.len()).unwrap_or(i64::MAX);
    let end: i64 = connection
        .prepare_cached(
            "INSERT INTO chats (id, created_at, updated_at, next_seq) VALUES (?1, ?2, ?2, 1 + ?3)
             ON CONFLICT (id) DO UPDATE SET
                 next_seq = next_seq + ?3,
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
        insert.execute(params![chat.as_str(), seq, row.kind.as_str(), content_id, row.body, now])?;
        seqs.push(seq);
    }
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

pub(super) fn set_selection(
    connection: &Connection,
    chat: &ChatId,
    model: Option<&ModelId>,
    agent: Option<&str>,
) -> rusqlite::Result<bool> {
    let changed = connection
        .prepare_cached("UPDATE chats SET model = coalesce(?2, model), agent = coalesce(?3, agent) WHERE id = ?1")?
        .execute(params![chat.as_str(), model.map(ModelId::as_str), agent])?;
    Ok(changed > 0)
}

pub(super) fn add_usage(
    connection: &Connection,
    chat: &ChatId,
    last: Usage,
    cost: Option<f64>,
) -> rusqlite::Result<bool> {
    let changed = connection
        .prepare_cached(
            "UPDATE chats SET
                 total_input = min(total_input + ?2, ?7),
                 total_output = min(total_output + ?3, ?7),
                 total_cache_read = min(total_cache_read + ?4, ?7),
                 total_cache_write = min(total_cache_write + ?5, ?7),
                 last_input = ?2, last_output = ?3, last_cache_read = ?4, last_cache_write = ?5,
                 cost_usd = CASE WHEN ?6 IS NULL THEN cost_usd ELSE coalesce(cost_usd, 0.0) + ?6 END
             WHERE id = ?1",
        )?
        .execute(params![
            chat.as_str(),
            to_column(last.input),
            to_column(last.output),
            to_column(last.cache_read),
            to_column(last.cache_write),
            cost,
            TOKEN_CAP
        ])?;
    Ok(changed > 0)
}

pub(super) fn load(connection: &Connection, chat: &ChatId) -> rusqlite::Result<Option<StoredChat>> {
    let found = connection
        .prepare_cached(
            "SELECT title, title_source, model, agent, workspace_key, created_at, updated_at, cost_usd,
                 total_input, total_output, total_cache_read, total_cache_write,
                 last_input, last_output, last_cache_read, last_cache_write
             FROM chats WHERE id = ?1",
        )?
        .query_row([chat.as_str()], |row| chat_from_row(chat, row))
        .optional()?;
    let Some(mut stored) = found else { return Ok(None) };
    let mut statement = connection.prepare_cached(
        "SELECT seq, kind, content_id, created_at, body FROM messages WHERE chat_id = ?1 ORDER BY seq",
    )?;
    let mut rows = statement.query([chat.as_str()])?;
    while let Some(row) = rows.next()? {
        match entry_from_row(row) {
            Ok(entry) => stored.messages.push(entry),
            // One bad message must not cost the chat.
            Err(error) => {
                let seq: i64 = row.get(0)?;
                tracing::warn!(%chat, seq, %error, "a stored message cannot be read and is left out");
            }
        }
    }
    Ok(Some(stored))
}

pub(super) fn list(connection: &Connection, query: &ListQuery) -> rusqlite::Result<Vec<ChatSummary>> {
    let column = match query.sort {
        ListSort::UpdatedAt => "updated_at",
        ListSort::CreatedAt => "created_at",
    };
    let mut statement = connection.prepare_cached(&format!(
        "SELECT id, title, model, created_at, updated_at,
             (SELECT count(*) FROM messages WHERE chat_id = chats.id)
         FROM chats WHERE ?1 IS NULL OR workspace_key = ?1
         ORDER BY {column} DESC, rowid DESC LIMIT ?2"
    ))?;
    // A negative limit is SQLite's word for none.
    let limit = query.limit.map_or(-1, |limit| i64::try_from(limit).unwrap_or(i64::MAX));
    statement
        .query_map(params![query.workspace_key, limit], |row| {
            Ok(ChatSummary {
                id: ChatId::new(row.get::<_, String>(0)?),
                title: row.get(1)?,
                model: model_from_row(row, 2)?,
                created_at: row.get(3)?,
                updated_at: row.get(4)?,
                message_count: from_column(row.get(5)?),
            })
        })?
        .collect()
}

pub(super) fn delete(connection: &Connection, chat: &ChatId) -> rusqlite::Result<bool> {
    Ok(connection.prepare_cached("DELETE FROM chats WHERE id = ?1")?.execute([chat.as_str()])? > 0)
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
        messages: Vec::new(),
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

fn to_column(tokens: u64) -> i64 {
    i64::try_from(tokens).unwrap_or(TOKEN_CAP).min(TOKEN_CAP)
}

fn from_column(number: i64) -> u64 {
    u64::try_from(number).unwrap_or(0)
}
