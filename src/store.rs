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
//! callers are expected to go on without history. A file that this version cannot use at all is
//! left as it is, and a new one is begun beside it ([`place`]). What lies in the database is
//! described by structs of its own ([`record`]), so that neither a new engine nor an old file
//! binds the other.
//!
//! Each area has a module with its operations and their statements: [`history`] reads and cuts
//! chats, [`search`] finds words in them, [`journal`] remembers what tools did to files, with large
//! [`contents`] in files beside the database, [`lease`] tells which server works on a chat,
//! [`transfer`] and [`public_chats`] bring chats in and out, [`upkeep`] is what happens when nobody
//! waits.

mod contents;
mod error;
mod extra;
mod history;
mod journal;
mod lease;
mod place;
pub mod public_chats;
mod queries;
mod record;
mod schema;
mod search;
mod thread;
mod transfer;
mod types;
mod upkeep;

#[cfg(test)]
mod tests;

use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::Value;
use tokio::sync::{mpsc, oneshot};

use crate::base::time::now_ms;
use crate::base::{ChatId, ModelId};
use crate::llm::Usage;

pub use error::StoreError;
pub use extra::{CallRecord, Compaction, MessageExtra, ServerToolRecord};
pub use history::{Fork, LAST_COMPACTION, Page, PageQuery};
pub use journal::{Change, MOST_CONTENT_BYTES, NewChange};
pub use lease::{Claim, Holder};
pub use public_chats::{ImportProblem, ImportReport, PublicChats};
pub use search::{SearchHit, SearchQuery};
pub use types::{
    ChatMeta, ChatSettings, ChatSummary, ListQuery, ListSort, MessageKind, NewMessage, StoredChat, StoredEntry,
    StoredFlag, TitleSource,
};

use contents::Contents;
use lease::OwnLock;
use queries::NewRow;
use thread::{Access, Instruction, Location, Task};

/// How many operations may wait for the thread; more wait in their callers.
const QUEUE_LENGTH: usize = 256;

/// A failed opening is not repeated before this much time has passed.
const REOPEN_INTERVAL: Duration = Duration::from_secs(1);

/// A single message may be so long, pictures included; a row of SQLite ends at a billion bytes.
const MOST_MESSAGE_BYTES: usize = 128 * 1024 * 1024;

/// Begins the names of values that stay with their chat.
pub const PRIVATE_STATE: &str = "private.";

/// What is kept under one key of a chat is small.
const MOST_STATE_BYTES: usize = 4 * 1024 * 1024;

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
    notices: Arc<Notices>,
    contents: Arc<Contents>,
    /// By which other servers see that this one lives.
    own_lock: Arc<Mutex<OwnLock>>,
}

/// What the user should be told of the history, in sentences; the thread writes them.
type Notices = Mutex<Vec<String>>;

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
        // Serialising here keeps the one thread for what only it can do.
        let rows = items.into_iter().map(NewRow::from_message).collect::<Result<Vec<_>, _>>()?;
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
        self.set_settings(chat, ChatSettings { model, agent, ..ChatSettings::default() }).await
    }

    /// Remembers what the user chose. Whether the chat exists.
    pub async fn set_settings(&self, chat: &ChatId, settings: ChatSettings) -> Result<bool, StoreError> {
        let chat = chat.clone();
        self.write(move |connection| queries::set_settings(connection, &chat, &settings)).await
    }

    /// Keeps a small value with the chat under a name; `None` removes it. Whether the chat exists.
    /// What is kept under a name that begins with [`PRIVATE_STATE`] stays with this chat: it is
    /// not copied, exported or imported. That is for what a document from elsewhere must not be
    /// able to say, such as what the user allowed.
    pub async fn set_state(&self, chat: &ChatId, key: &str, value: Option<&Value>) -> Result<bool, StoreError> {
        let text = value.map(Value::to_string);
        let bytes = text.as_ref().map_or(0, String::len);
        StoreError::demand_size(&format!("the state {key:?} of a chat"), bytes, MOST_STATE_BYTES)?;
        let (chat, key) = (chat.clone(), key.to_owned());
        self.write(move |connection| queries::set_state(connection, &chat, &key, text.as_deref())).await
    }

    /// What was kept under this name; text that is no JSON any more is as good as none.
    pub async fn state(&self, chat: &ChatId, key: &str) -> Result<Option<Value>, StoreError> {
        let (chat, key) = (chat.clone(), key.to_owned());
        let text = self.read(move |connection| queries::state(connection, &chat, &key)).await?;
        Ok(text.and_then(|text| serde_json::from_str(&text).ok()))
    }

    /// Adds one request's usage to the totals and remembers it as the latest. Whether the chat
    /// exists: usage that arrives after a deletion does not bring the chat back.
    pub async fn add_usage(&self, chat: &ChatId, last: Usage, cost: Option<f64>) -> Result<bool, StoreError> {
        let chat = chat.clone();
        let cost = cost.filter(|dollars| dollars.is_finite());
        self.write(move |connection| queries::add_usage(connection, &chat, last, cost)).await
    }

    /// Adds what others used for a chat. What its own last call used stays.
    pub async fn add_spending(&self, chat: &ChatId, usage: Usage, cost: Option<f64>) -> Result<bool, StoreError> {
        let chat = chat.clone();
        let cost = cost.filter(|dollars| dollars.is_finite());
        self.write(move |connection| queries::add_spending(connection, &chat, usage, cost)).await
    }

    /// The chat with its readable messages, or `None` when there is no such chat.
    pub async fn load(&self, chat: &ChatId) -> Result<Option<StoredChat>, StoreError> {
        let chat = chat.clone();
        self.read(move |connection| queries::load(connection, &chat)).await
    }

    pub async fn list(&self, query: ListQuery) -> Result<Vec<ChatSummary>, StoreError> {
        self.read(move |connection| queries::list(connection, &query)).await
    }

    /// Removes the chat and everything that belongs to it, the chats that worked for it included.
    /// Whether there was one. One that was imported is not imported again.
    pub async fn delete(&self, chat: &ChatId) -> Result<bool, StoreError> {
        let (chat, now) = (chat.clone(), now_ms());
        self.write(move |connection| queries::delete(connection, &chat, now)).await
    }

    /// What the user should be told of the history itself, such as that a damaged file was left
    /// alone. Each sentence is given out once.
    pub fn take_notices(&self) -> Vec<String> {
        std::mem::take(&mut *self.shared.notices.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Writes what is queued, folds the log into the database and ends the thread. Operations
    /// from now on answer [`StoreError::Closed`]. The caller bounds the wait; when it stops
    /// waiting, the thread still finishes.
    pub async fn close(&self) {
        self.release_all().await;
        let previous = std::mem::replace(&mut *self.lifecycle(), State::Closed);
        if let State::Running(sender) = previous {
            let (done, finished) = oneshot::channel();
            if sender.send(Instruction::Close(done)).await.is_ok() {
                // An error means that the thread has ended already, which is what is wanted.
                let _ = finished.await;
            }
        }
    }

    fn with(location: Location, reopen_interval: Duration) -> Self {
        Self {
            shared: Arc::new(Shared {
                location,
                reopen_interval,
                state: Mutex::new(State::Idle),
                notices: Arc::default(),
                contents: Arc::default(),
                own_lock: Arc::default(),
            }),
        }
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

    /// A write that may refuse; what refuses must not have written anything yet.
    async fn write_checked<T, F>(&self, work: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: FnMut(&rusqlite::Connection) -> rusqlite::Result<Result<T, StoreError>> + Send + 'static,
    {
        self.write(work).await?
    }

    /// A read that may refuse.
    async fn read_checked<T, F>(&self, work: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: FnMut(&rusqlite::Connection) -> rusqlite::Result<Result<T, StoreError>> + Send + 'static,
    {
        self.read(work).await?
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
        let mut state = self.lifecycle();
        match &*state {
            State::Closed => return Err(StoreError::Closed),
            State::Running(sender) if !sender.is_closed() => return Ok(sender.clone()),
            State::Running(_) | State::Idle => {}
        }
        let (location, notices) = (self.shared.location.clone(), Arc::clone(&self.shared.notices));
        let contents = Arc::clone(&self.shared.contents);
        let sender = thread::start(location, self.shared.reopen_interval, QUEUE_LENGTH, notices, contents)?;
        *state = State::Running(sender.clone());
        Ok(sender)
    }

    /// Why the thread did not answer.
    fn gone(&self) -> StoreError {
        match *self.lifecycle() {
            State::Closed => StoreError::Closed,
            State::Idle | State::Running(_) => StoreError::Internal("the thread that keeps it ended early".into()),
        }
    }

    fn lifecycle(&self) -> MutexGuard<'_, State> {
        // The state is replaced in one assignment, so a poisoned lock guards nothing broken.
        self.shared.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Store").field("location", &self.shared.location).finish_non_exhaustive()
    }
}
