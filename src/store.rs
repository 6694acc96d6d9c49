//! Keeps chats across restarts and crashes: one SQLite database, shared by every running server.
//!
//! A [`Store`] is a cheap handle. Nothing is opened until its first operation; then one plain
//! thread opens the database and serves a bounded queue. Writes that wait together are committed
//! together, and an operation is answered only after its commit is in the write-ahead log: what
//! was acknowledged survives a kill of this process at any moment (a power cut may take the last
//! moments with it, which is what `synchronous=NORMAL` trades for speed). Reads go through the
//! same thread: a chat is read when it is resumed, which is rare, and so a read always sees the
//! writes queued before it.
//!
//! When the database cannot be opened every operation says why, and opening is tried again later;
//! callers are expected to go on without history. What lies in the database is described by
//! structs of its own ([`record`]), so that neither a new engine nor an old file binds the other.

mod error;
mod queries;
mod record;
mod schema;
mod thread;

#[cfg(test)]
mod tests;

use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::Value;
use tokio::sync::{mpsc, oneshot};

use crate::base::time::now_ms;
use crate::base::{ChatId, ContentId, ModelId};
use crate::llm::{Message, Usage};

pub use error::StoreError;

use record::StoredMessage;
use thread::{Access, Instruction, Location, Task};

/// How many operations may wait for the thread; more wait in their callers.
const QUEUE_LENGTH: usize = 256;

/// A failed opening is not repeated before this much time has passed.
const REOPEN_INTERVAL: Duration = Duration::from_secs(1);

/// What is known of a chat when it is created or taken up again. `None` leaves what is stored.
#[derive(Debug, Clone, PartialEq)]
pub struct ChatMeta {
    pub id: ChatId,
    pub model: Option<ModelId>,
    pub agent: Option<String>,
    /// Opaque to the store; chats with the same key are listed together.
    pub workspace_key: Option<String>,
}

impl ChatMeta {
    /// A chat of which only the id is known.
    pub fn new(id: ChatId) -> Self {
        Self { id, model: None, agent: None, workspace_key: None }
    }
}

/// One message to be appended.
#[derive(Debug, Clone, PartialEq)]
pub struct NewMessage {
    pub kind: MessageKind,
    pub content_id: Option<ContentId>,
    pub message: Message,
    /// What the engine wants back beside the message and no model sees.
    pub extra: Option<Value>,
}

impl NewMessage {
    /// A message without content id or extra data.
    pub fn new(kind: MessageKind, message: Message) -> Self {
        Self { kind, content_id: None, message, extra: None }
    }
}

/// What a row of a chat is to the engine; the store gives it no meaning.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MessageKind {
    User,
    Assistant,
    ToolResult,
    SystemNote,
    Marker,
    /// Written by a version that knows more kinds than this one.
    Other(String),
}

impl MessageKind {
    pub fn as_str(&self) -> &str {
        match self {
            Self::User => "user",
            Self::Assistant => "assistant",
            Self::ToolResult => "tool_result",
            Self::SystemNote => "system_note",
            Self::Marker => "marker",
            Self::Other(name) => name,
        }
    }
}

impl From<&str> for MessageKind {
    fn from(name: &str) -> Self {
        match name {
            "user" => Self::User,
            "assistant" => Self::Assistant,
            "tool_result" => Self::ToolResult,
            "system_note" => Self::SystemNote,
            "marker" => Self::Marker,
            other => Self::Other(other.to_owned()),
        }
    }
}

/// Who chose a chat's title. A title made automatically never replaces the user's own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TitleSource {
    Auto,
    User,
}

impl TitleSource {
    fn as_str(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::User => "user",
        }
    }

    fn parse(text: &str) -> Option<Self> {
        match text {
            "auto" => Some(Self::Auto),
            "user" => Some(Self::User),
            _ => None,
        }
    }
}

/// A chat as it was left, with its messages in order. Rows that cannot be read are left out, so
/// a tool call may lack its result: the engine repairs what it sends to a model.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredChat {
    pub id: ChatId,
    pub title: Option<String>,
    pub title_source: Option<TitleSource>,
    pub model: Option<ModelId>,
    pub agent: Option<String>,
    pub workspace_key: Option<String>,
    pub created_at: i64,
    pub updated_at: i64,
    pub total_usage: Usage,
    /// Usage of the latest request, which tells how full the context window is.
    pub last_usage: Usage,
    /// `None` while no price was known for any request.
    pub cost_usd: Option<f64>,
    pub messages: Vec<StoredEntry>,
}

/// One stored message. `seq` grows along the chat and is never used twice in it.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredEntry {
    pub seq: i64,
    pub kind: MessageKind,
    pub content_id: Option<ContentId>,
    pub message: Message,
    pub extra: Option<Value>,
    pub created_at: i64,
}

/// Which chats to list, newest first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ListQuery {
    /// `None` lists the chats of every workspace.
    pub workspace_key: Option<String>,
    pub limit: Option<usize>,
    pub sort: ListSort,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ListSort {
    #[default]
    UpdatedAt,
    CreatedAt,
}

/// A chat in a list. `message_count` counts rows of every kind.
#[derive(Debug, Clone, PartialEq)]
pub struct ChatSummary {
    pub id: ChatId,
    pub title: Option<String>,
    pub model: Option<ModelId>,
    pub created_at: i64,
    pub updated_at: i64,
    pub message_count: u64,
}

/// A handle to the database; clones share it. When the last one is dropped, what is queued is
/// still written.
#[derive(Clone)]
pub struct Store {
    shared: Arc<Shared>,
}

struct Shared {
    location: Location,
    reopen_interval: Duration,
    state: Mutex<State>,
}

enum State {
    Idle,
    Running(mpsc::Sender<Instruction>),
    Closed,
}

impl Store {
    /// The database at `path`, which is opened (and created) by the first operation.
    pub fn at(path: PathBuf) -> Self {
        Self::with(Location::File(path), REOPEN_INTERVAL)
    }

    /// A database that is forgotten with its last handle.
    pub fn in_memory() -> Self {
        Self::with(Location::Memory, REOPEN_INTERVAL)
    }

    /// Creates the chat, or marks it as used now and takes over what `meta` knows.
    pub async fn create_or_touch_chat(&self, meta: ChatMeta) -> Result<(), StoreError> {
        let now = now_ms();
        self.write(move |connection| queries::create_or_touch_chat(connection, &meta, now)).await
    }

    /// Appends `items` in order, all or none, creating the chat if it is missing. Their sequence
    /// numbers come back once they are durable.
    pub async fn append(&self, chat: &ChatId, items: Vec<NewMessage>) -> Result<Vec<i64>, StoreError> {
        let (chat, now) = (chat.clone(), now_ms());
        let mut rows = Vec::with_capacity(items.len());
        for item in items {
            // Serialising here keeps the one thread for what only it can do.
            let body = StoredMessage::new(item.message, item.extra)
                .to_json()
                .map_err(|error| StoreError::Internal(format!("a message could not be serialised: {error}")))?;
            rows.push(queries::NewRow { kind: item.kind, content_id: item.content_id, body });
        }
        self.write(move |connection| queries::append(connection, &chat, &rows, now)).await
    }

    /// Whether the title was set: not when the chat is unknown, nor when `source` is automatic
    /// and the user has named the chat.
    pub async fn set_title(&self, chat: &ChatId, title: &str, source: TitleSource) -> Result<bool, StoreError> {
        let (chat, title) = (chat.clone(), title.to_owned());
        self.write(move |connection| queries::set_title(connection, &chat, &title, source)).await
    }

    /// Remembers the chosen model and agent; `None` leaves what is stored. Whether the chat exists.
    pub async fn set_selection(
        &self,
        chat: &ChatId,
        model: Option<ModelId>,
        agent: Option<String>,
    ) -> Result<bool, StoreError> {
        let chat = chat.clone();
        self.write(move |connection| queries::set_selection(connection, &chat, model.as_ref(), agent.as_deref())).await
    }

    /// Adds one request's usage to the totals and remembers it as the latest. Whether the chat
    /// exists: usage that arrives after a deletion does not bring the chat back.
    pub async fn add_usage(&self, chat: &ChatId, last: Usage, cost: Option<f64>) -> Result<bool, StoreError> {
        let chat = chat.clone();
        let cost = cost.filter(|dollars| dollars.is_finite());
        self.write(move |connection| queries::add_usage(connection, &chat, last, cost)).await
    }

    /// The chat with its readable messages, or `None` when there is no such chat.
    pub async fn load(&self, chat: &ChatId) -> Result<Option<StoredChat>, StoreError> {
        let chat = chat.clone();
        self.read(move |connection| queries::load(connection, &chat)).await
    }

    pub async fn list(&self, query: ListQuery) -> Result<Vec<ChatSummary>, StoreError> {
        self.read(move |connection| queries::list(connection, &query)).await
    }

    /// Removes the chat and everything that belongs to it. Whether there was one.
    pub async fn delete(&self, chat: &ChatId) -> Result<bool, StoreError> {
        let chat = chat.clone();
        self.write(move |connection| queries::delete(connection, &chat)).await
    }

    /// Writes what is queued, folds the log into the database and ends the thread. Operations
    /// from now on answer [`StoreError::Closed`]. The caller bounds the wait; when it stops
    /// waiting, the thread still finishes.
    pub async fn close(&self) {
        let previous = std::mem::replace(&mut *self.state(), State::Closed);
        if let State::Running(sender) = previous {
            let (done, finished) = oneshot::channel();
            if sender.send(Instruction::Close(done)).await.is_ok() {
                // An error means that the thread has ended already, which is what is wanted.
                let _ = finished.await;
            }
        }
    }

    fn with(location: Location, reopen_interval: Duration) -> Self {
        Self { shared: Arc::new(Shared { location, reopen_interval, state: Mutex::new(State::Idle) }) }
    }

    /// `work` runs inside a transaction that other writes may share, and may run a second time
    /// when that transaction is lost: it must leave its own captures as they were.
    async fn write<T, F>(&self, work: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: FnMut(&rusqlite::Connection) -> rusqlite::Result<T> + Send + 'static,
    {
        self.run(Access::Write, work).await
    }

    /// `work` sees one consistent state of the database.
    async fn read<T, F>(&self, work: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: FnMut(&rusqlite::Connection) -> rusqlite::Result<T> + Send + 'static,
    {
        self.run(Access::Read, work).await
    }

    async fn run<T, F>(&self, access: Access, work: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: FnMut(&rusqlite::Connection) -> rusqlite::Result<T> + Send + 'static,
    {
        let sender = self.sender()?;
        let (reply, answer) = oneshot::channel();
        let task = Task::boxed(work, reply);
        if sender.send(Instruction::Run(access, task)).await.is_err() {
            return Err(self.gone());
        }
        // Keeping no sender while waiting lets the thread end when the last handle is dropped.
        drop(sender);
        answer.await.unwrap_or_else(|_| Err(self.gone()))
    }

    /// The queue of the running thread, which is started when there is none.
    fn sender(&self) -> Result<mpsc::Sender<Instruction>, StoreError> {
        let mut state = self.state();
        match &*state {
            State::Closed => return Err(StoreError::Closed),
            State::Running(sender) if !sender.is_closed() => return Ok(sender.clone()),
            State::Running(_) | State::Idle => {}
        }
        let sender = thread::start(self.shared.location.clone(), self.shared.reopen_interval, QUEUE_LENGTH)?;
        *state = State::Running(sender.clone());
        Ok(sender)
    }

    /// Why the thread did not answer.
    fn gone(&self) -> StoreError {
        match *self.state() {
            State::Closed => StoreError::Closed,
            State::Idle | State::Running(_) => StoreError::Internal("the thread that keeps it ended early".into()),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // The state is replaced in one assignment, so a poisoned lock guards nothing broken.
        self.shared.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Store").field("location", &self.shared.location).finish_non_exhaustive()
    }
}
