//! A chat as a document of its own, to be taken to another machine or kept elsewhere.
//!
//! The document is JSON with a version. It holds the chat with its messages, flags and state, and
//! the chats that worked for it. It does not hold what tools did to files, and not whether the
//! chat is trusted: that is for the user to say, not for a file.

use rusqlite::{Connection, params};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::history::insert_flag;
use super::queries::{self, NewRow, to_column};
use super::record::StoredMessage;
use super::{MessageKind, PRIVATE_STATE, Store, StoreError, StoredChat, StoredFlag, TitleSource};
use crate::base::ids::BadChatId;
use crate::base::time::now_ms;
use crate::base::{ChatId, ContentId, ModelId};
use crate::llm::Usage;

const FORMAT: &str = "eca-chat";
const VERSION: u32 = 1;

/// Chats that work for chats that work for chats end somewhere.
const MOST_GENERATIONS: usize = 8;

#[derive(Debug, Serialize, Deserialize)]
struct Document {
    format: String,
    version: u32,
    #[serde(default)]
    exported_at: i64,
    chat: ChatDocument,
}

#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct ChatDocument {
    pub(super) id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) title: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) title_source: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) model: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) agent: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) variant: Option<String>,
    #[serde(default)]
    pub(super) created_at: i64,
    #[serde(default)]
    pub(super) updated_at: i64,
    #[serde(default)]
    pub(super) total_usage: UsageDocument,
    #[serde(default)]
    pub(super) last_usage: UsageDocument,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) cost_usd: Option<f64>,
    #[serde(default)]
    pub(super) messages: Vec<MessageDocument>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) flags: Vec<FlagDocument>,
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub(super) state: Map<String, Value>,
    /// The chats that worked for this one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) subagents: Vec<ChatDocument>,
}

#[derive(Debug, Default, Clone, Copy, Serialize, Deserialize)]
pub(super) struct UsageDocument {
    #[serde(default)]
    input: u64,
    #[serde(default)]
    output: u64,
    #[serde(default)]
    cache_read: u64,
    #[serde(default)]
    cache_write: u64,
}

impl From<Usage> for UsageDocument {
    fn from(usage: Usage) -> Self {
        let Usage { input, output, cache_read, cache_write } = usage;
        Self { input, output, cache_read, cache_write }
    }
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct MessageDocument {
    pub(super) kind: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) content_id: Option<String>,
    #[serde(default)]
    pub(super) created_at: i64,
    pub(super) body: StoredMessage,
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct FlagDocument {
    /// Behind how many of the messages it stands.
    pub(super) after: usize,
    pub(super) content_id: String,
    pub(super) text: String,
    #[serde(default)]
    pub(super) created_at: i64,
}

impl Store {
    /// The chat as a document that [`Store::import`] takes. Messages that cannot be read are left
    /// out.
    pub async fn export(&self, chat: &ChatId) -> Result<Value, StoreError> {
        let id = chat.clone();
        let document = self.read(move |connection| document(connection, &id, MOST_GENERATIONS)).await?;
        let chat = document.ok_or_else(|| StoreError::unknown_chat(chat))?;
        let document = Document { format: FORMAT.into(), version: VERSION, exported_at: now_ms(), chat };
        serde_json::to_value(document).map_err(|error| StoreError::Internal(error.to_string()))
    }

    /// Takes a document of [`Store::export`] as a chat of the given workspace. It keeps its id, or
    /// gets a new one if there is such a chat already.
    pub async fn import(&self, document: Value, workspace_key: Option<String>) -> Result<ChatId, StoreError> {
        let bad = |reason: String| StoreError::BadExport { reason };
        let format = document.get("format").and_then(Value::as_str);
        if format != Some(FORMAT) {
            return Err(bad(format!("its format is not {FORMAT:?}")));
        }
        match document.get("version").and_then(Value::as_u64) {
            Some(version) if version == u64::from(VERSION) => {}
            Some(version) => return Err(bad(format!("it has version {version}, and this server knows {VERSION}"))),
            None => return Err(bad("it has no version".into())),
        }
        let read: Result<Document, _> = serde_path_to_error::deserialize(document);
        let mut chat = read.map_err(|error| bad(format!("{}: {}", error.path(), error.inner())))?.chat;
        chat.keep_generations(MOST_GENERATIONS);
        let family = prepare(chat, workspace_key.as_deref())?;
        let now = now_ms();
        self.write(move |connection| {
            let mut renamed = std::collections::HashMap::new();
            let mut first = None;
            for chat in &family {
                // Ids of a reserved form are for chats that work for others.
                let is_free = chat.parent.is_some() || ChatId::from_client(chat.id.as_str()).is_ok();
                let is_free = is_free && !queries::exists(connection, &chat.id)?;
                let id = if is_free { chat.id.clone() } else { fresh_id(chat) };
                let parent = chat.parent.as_ref().map(|parent| renamed.get(parent).unwrap_or(parent));
                insert(connection, chat, &id, parent, now)?;
                renamed.insert(chat.id.clone(), id.clone());
                first = first.or(Some(id));
            }
            first.ok_or(rusqlite::Error::QueryReturnedNoRows)
        })
        .await
    }
}

/// A chat of a document, with its messages ready to be written.
#[derive(Debug)]
pub(super) struct PreparedChat {
    pub(super) id: ChatId,
    parent: Option<ChatId>,
    workspace_key: Option<String>,
    head: ChatDocument,
    rows: Vec<NewRow>,
}

impl ChatDocument {
    fn keep_generations(&mut self, most: usize) {
        if most == 0 {
            self.subagents.clear();
        }
        self.subagents.iter_mut().for_each(|chat| chat.keep_generations(most - 1));
    }
}

/// The chat and then the chats that worked for it.
fn prepare(chat: ChatDocument, workspace_key: Option<&str>) -> Result<Vec<PreparedChat>, StoreError> {
    let mut family = Vec::new();
    let mut waiting = vec![(chat, None)];
    while let Some((mut chat, parent)) = waiting.pop() {
        let id = ChatId::new(chat.id.as_str());
        waiting.extend(std::mem::take(&mut chat.subagents).into_iter().map(|child| (child, Some(id.clone()))));
        family.push(PreparedChat::new(chat, parent, workspace_key)?);
    }
    Ok(family)
}

impl PreparedChat {
    pub(super) fn new(
        mut chat: ChatDocument,
        parent: Option<ChatId>,
        workspace_key: Option<&str>,
    ) -> Result<Self, StoreError> {
        match ChatId::from_client(&chat.id) {
            Ok(_) | Err(BadChatId::Reserved) => {}
            Err(reason) => return Err(StoreError::BadExport { reason: reason.to_string() }),
        }
        let rows = std::mem::take(&mut chat.messages).into_iter().map(|message| {
            let kind = MessageKind::from(message.kind.as_str());
            let body = message.body.without_unknown_parts();
            let row = NewRow::from_stored(kind, message.content_id.map(ContentId::new), &body)?;
            Ok(NewRow { created_at: Some(message.created_at), ..row })
        });
        Ok(Self {
            rows: rows.collect::<Result<_, StoreError>>()?,
            id: ChatId::new(chat.id.as_str()),
            parent,
            workspace_key: workspace_key.map(str::to_owned),
            head: chat,
        })
    }
}

fn fresh_id(chat: &PreparedChat) -> ChatId {
    match &chat.parent {
        // The prefix is what keeps clients from naming such a chat.
        Some(_) => ChatId::new(format!("subagent-{}", ChatId::random())),
        None => ChatId::random(),
    }
}

/// Writes a chat that does not exist yet.
pub(super) fn insert_prepared(connection: &Connection, chat: &PreparedChat, now: i64) -> rusqlite::Result<()> {
    insert(connection, chat, &chat.id, chat.parent.as_ref(), now)
}

fn insert(
    connection: &Connection,
    chat: &PreparedChat,
    id: &ChatId,
    parent: Option<&ChatId>,
    now: i64,
) -> rusqlite::Result<()> {
    let head = &chat.head;
    let (total, last) = (head.total_usage, head.last_usage);
    let model = head.model.as_deref().and_then(ModelId::parse);
    let title_source = head.title_source.as_deref().and_then(TitleSource::parse).map(TitleSource::as_str);
    connection
        .prepare_cached(
            "INSERT INTO chats (id, title, title_source, model, agent, variant, workspace_key, parent_chat,
                 created_at, updated_at, imported_at, cost_usd,
                 total_input, total_output, total_cache_read, total_cache_write,
                 last_input, last_output, last_cache_read, last_cache_write)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20)",
        )?
        .execute(params![
            id.as_str(),
            head.title,
            title_source,
            model.as_ref().map(ModelId::as_str),
            head.agent,
            head.variant,
            chat.workspace_key,
            parent.map(ChatId::as_str),
            head.created_at,
            head.updated_at,
            now,
            head.cost_usd.filter(|dollars| dollars.is_finite()),
            to_column(total.input),
            to_column(total.output),
            to_column(total.cache_read),
            to_column(total.cache_write),
            to_column(last.input),
            to_column(last.output),
            to_column(last.cache_read),
            to_column(last.cache_write),
        ])?;
    // Appending never makes a chat older than it is, and this one was last used long ago.
    let seqs = queries::append(connection, id, &chat.rows, head.updated_at)?;
    for flag in &head.flags {
        let after = flag.after.checked_sub(1).and_then(|at| seqs.get(at).or(seqs.last())).copied().unwrap_or(0);
        let content_id = ContentId::new(flag.content_id.as_str());
        let flag = StoredFlag { after, content_id, text: flag.text.clone(), created_at: flag.created_at };
        insert_flag(connection, id, &flag)?;
    }
    for (key, value) in head.state.iter().filter(|(key, _)| !key.starts_with(PRIVATE_STATE)) {
        queries::set_state(connection, id, key, Some(&value.to_string()))?;
    }
    Ok(())
}

fn document(connection: &Connection, chat: &ChatId, generations: usize) -> rusqlite::Result<Option<ChatDocument>> {
    let Some(stored) = queries::head(connection, chat)? else { return Ok(None) };
    let flags = queries::flags(connection, chat, 0, i64::MAX)?;
    let (messages, seqs) = messages(connection, chat)?;
    let flags = flags.into_iter().map(|flag| FlagDocument {
        after: seqs.partition_point(|seq| *seq <= flag.after),
        content_id: flag.content_id.as_str().to_owned(),
        text: flag.text,
        created_at: flag.created_at,
    });
    let mut document = ChatDocument { messages, flags: flags.collect(), ..head_document(stored) };
    let mut statement = connection.prepare_cached("SELECT key, value FROM chat_state WHERE chat_id = ?1")?;
    let mut rows = statement.query([chat.as_str()])?;
    while let Some(row) = rows.next()? {
        let key: String = row.get(0)?;
        if let (false, Ok(value)) = (key.starts_with(PRIVATE_STATE), serde_json::from_str(row.get_ref(1)?.as_str()?)) {
            document.state.insert(key, value);
        }
    }
    if generations > 0 {
        let mut statement = connection.prepare_cached("SELECT id FROM chats WHERE parent_chat = ?1 ORDER BY rowid")?;
        let children = statement.query_map([chat.as_str()], |row| Ok(ChatId::new(row.get::<_, String>(0)?)))?;
        for child in children.collect::<Result<Vec<_>, _>>()? {
            document.subagents.extend(self::document(connection, &child, generations - 1)?);
        }
    }
    Ok(Some(document))
}

fn head_document(stored: StoredChat) -> ChatDocument {
    ChatDocument {
        id: stored.id.as_str().to_owned(),
        title: stored.title,
        title_source: stored.title_source.map(|source| source.as_str().to_owned()),
        model: stored.model.map(|model| model.as_str().to_owned()),
        agent: stored.agent,
        variant: stored.variant,
        created_at: stored.created_at,
        updated_at: stored.updated_at,
        total_usage: stored.total_usage.into(),
        last_usage: stored.last_usage.into(),
        cost_usd: stored.cost_usd,
        ..ChatDocument::default()
    }
}

/// The readable messages, and their numbers.
fn messages(connection: &Connection, chat: &ChatId) -> rusqlite::Result<(Vec<MessageDocument>, Vec<i64>)> {
    let mut statement = connection.prepare_cached(
        "SELECT seq, kind, content_id, created_at, body FROM messages WHERE chat_id = ?1 ORDER BY seq",
    )?;
    let mut rows = statement.query([chat.as_str()])?;
    let (mut messages, mut seqs) = (Vec::new(), Vec::new());
    while let Some(row) = rows.next()? {
        let Ok(body) = StoredMessage::from_json(row.get_ref(4)?.as_bytes().unwrap_or_default()) else { continue };
        let Ok(kind) = row.get(1) else { continue };
        let body = body.without_unknown_parts();
        messages.push(MessageDocument { kind, content_id: row.get(2)?, created_at: row.get(3)?, body });
        seqs.push(row.get(0)?);
    }
    Ok((messages, seqs))
}
