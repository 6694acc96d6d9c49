//! What can be done with a chat besides talking to it: open, rename, clear, flag, fork, wind back.

use std::path::PathBuf;

use tokio::sync::oneshot;

use super::super::emitter::say;
use super::super::event::{ChatEvent, Event};
use super::super::request;
use super::ChatActor;
use crate::base::task;
use crate::base::{ChatId, ContentId, ModelId, text};
use crate::llm::{Message, Role};
use crate::store::{Change, Fork, MessageKind, NewMessage, Page, PageQuery, StoreError, TitleSource};

const MAX_TITLE_CHARS: usize = 40;

/// What to do with a chat.
#[derive(Debug, Clone)]
pub(in crate::engine) enum Operation {
    /// Show it again, or a page of it.
    Open(PageQuery),
    Update {
        title: Option<String>,
        trust: Option<bool>,
    },
    Clear,
    Rollback {
        to: ContentId,
        messages: bool,
        tools: bool,
        force: bool,
    },
    AddFlag {
        at: ContentId,
        text: String,
    },
    RemoveFlag {
        flag: ContentId,
    },
    Fork {
        at: ContentId,
    },
    /// Texts that were said elsewhere.
    Append(Vec<Message>),
}

pub(in crate::engine) type Reply = oneshot::Sender<Result<Done, OperationError>>;

/// What came of an operation.
#[derive(Debug)]
pub enum Done {
    /// There is no such chat.
    Unknown,
    Opened(Box<OpenedChat>),
    Forked {
        chat: ChatId,
        title: String,
    },
    Changed,
}

/// A chat that was shown.
#[derive(Debug, Clone, PartialEq)]
pub struct OpenedChat {
    pub title: Option<String>,
    pub model: Option<ModelId>,
    pub agent: Option<String>,
    pub variant: Option<String>,
    pub trust: bool,
    pub page: PageInfo,
}

/// Where a page stands in its chat.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PageInfo {
    pub total: u64,
    pub returned: u64,
    pub before_cursor: Option<String>,
    pub after_cursor: Option<String>,
    pub compaction_cursor: Option<String>,
}

impl From<&Page> for PageInfo {
    fn from(page: &Page) -> Self {
        Self {
            total: page.total,
            returned: u64::try_from(page.entries.len()).unwrap_or(u64::MAX),
            before_cursor: page.before_cursor.clone(),
            after_cursor: page.after_cursor.clone(),
            compaction_cursor: page.compaction_cursor.clone(),
        }
    }
}

/// Why an operation could not be carried out; nothing was changed then.
#[derive(Debug, thiserror::Error)]
pub enum OperationError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("these files were changed by somebody else since: {}", list(.0))]
    ChangedSince(Vec<PathBuf>),
    #[error("what these files were before is no longer kept: {}", list(.0))]
    NotKept(Vec<PathBuf>),
    #[error("{} could not be restored: {reason}", .path.display())]
    NotRestored { path: PathBuf, reason: String },
    /// Another server works on the chat; the text says which.
    #[error("{0}")]
    Elsewhere(String),
    #[error("the chat is busy; try again")]
    Busy,
    #[error("the server is shutting down")]
    ShuttingDown,
}

fn list(paths: &[PathBuf]) -> String {
    paths.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", ")
}

impl ChatActor {
    pub(super) async fn on_operation(&mut self, operation: Operation, reply: Reply) {
        let result = self.operate(operation).await;
        let _ = reply.send(result);
    }

    async fn operate(&mut self, operation: Operation) -> Result<Done, OperationError> {
        // What is said of a chat needs its head only: a long one is read when somebody talks to it.
        if self.shared.store.head(&self.id).await?.is_none() {
            return Ok(Done::Unknown);
        }
        match operation {
            Operation::Open(query) => self.open(query).await,
            Operation::Update { title, trust } => self.update(title, trust).await,
            Operation::Clear => {
                self.close_turn().await;
                self.shared.store.clear(&self.id).await?;
                self.forget_history();
                self.emit(ChatEvent::Cleared).await;
                Ok(Done::Changed)
            }
            Operation::Rollback { to, messages, tools, force } => self.roll_back(to, messages, tools, force).await,
            Operation::AddFlag { at, text } => {
                self.shared.store.add_flag(&self.id, &at, &ContentId::random(), &text).await?;
                self.emit(ChatEvent::Cleared).await;
                self.show(PageQuery::default()).await?;
                Ok(Done::Changed)
            }
            Operation::RemoveFlag { flag } => {
                self.shared.store.remove_flag(&self.id, &flag).await?;
                Ok(Done::Changed)
            }
            Operation::Fork { at } => self.fork(Some(at)).await,
            Operation::Append(messages) => self.append_messages(messages).await,
        }
    }

    async fn append_messages(&mut self, messages: Vec<Message>) -> Result<Done, OperationError> {
        self.close_turn().await;
        if let Some(problem) = self.claim().await {
            return Err(OperationError::Elsewhere(problem));
        }
        let item = |message: &Message| match message.role {
            Role::Assistant => NewMessage::new(MessageKind::Assistant, message.clone()),
            Role::User => {
                let content_id = Some(ContentId::random());
                NewMessage { content_id, ..NewMessage::new(MessageKind::User, message.clone()) }
            }
        };
        self.shared.store.append(&self.id, messages.iter().map(item).collect()).await?;
        let prompts = messages.iter().filter(|message| message.role == Role::User).count();
        self.prompts = self.prompts.saturating_add(u32::try_from(prompts).unwrap_or(u32::MAX));
        self.history.extend(messages);
        Ok(Done::Changed)
    }

    async fn open(&mut self, query: PageQuery) -> Result<Done, OperationError> {
        let store = self.shared.store.clone();
        let Some(head) = store.head(&self.id).await? else { return Ok(Done::Unknown) };
        // A subagent's chat is shown inside its parent.
        if head.parent.is_some() {
            return Ok(Done::Unknown);
        }
        // Read before anything is said: a cursor may have expired.
        let Some(page) = store.load_page(&self.id, query).await? else { return Ok(Done::Unknown) };
        self.emit(ChatEvent::Cleared).await;
        self.emit(ChatEvent::Opened { title: head.title.clone() }).await;
        self.show_page(&page).await;
        self.emit(ChatEvent::Title(head.title.clone().unwrap_or_default())).await;
        Ok(Done::Opened(Box::new(OpenedChat {
            title: head.title,
            model: head.model,
            agent: head.agent,
            variant: head.variant,
            trust: if self.loaded { self.live.mail.trusts() } else { head.trust.unwrap_or(false) },
            page: PageInfo::from(&page),
        })))
    }

    pub(super) async fn show(&self, query: PageQuery) -> Result<(), StoreError> {
        if let Some(page) = self.shared.store.load_page(&self.id, query).await? {
            self.show_page(&page).await;
        }
        Ok(())
    }

    async fn show_page(&self, page: &Page) {
        for event in self.shared.replayed(&self.id, page).await {
            say(&*self.sink, event).await;
        }
    }

    async fn update(&mut self, title: Option<String>, trust: Option<bool>) -> Result<Done, OperationError> {
        if let Some(title) = title {
            let title = text::one_line(&title, MAX_TITLE_CHARS);
            self.shared.store.set_title(&self.id, &title, TitleSource::User).await?;
            self.named_by_user = true;
            self.emit(ChatEvent::Title(title)).await;
        }
        if let Some(trust) = trust {
            self.live.mail.set_trust(trust);
            let settings = crate::store::ChatSettings { trust: Some(trust), ..Default::default() };
            self.shared.store.set_settings(&self.id, settings).await?;
        }
        Ok(Done::Changed)
    }

    pub(super) async fn fork(&mut self, at: Option<ContentId>) -> Result<Done, OperationError> {
        let head = self.shared.store.head(&self.id).await?;
        let old = head.and_then(|head| head.title).unwrap_or_else(|| "Chat".to_owned());
        let title = forked_title(&old);
        let id = ChatId::random();
        let fork = Fork { from: self.id.clone(), at, id: id.clone(), title: Some(title.clone()) };
        self.shared.store.fork(fork).await?;
        let of_fork = |event: ChatEvent| Event::Chat { chat: id.clone(), event };
        say(&*self.sink, of_fork(ChatEvent::Opened { title: Some(title.clone()) })).await;
        if let Some(page) = self.shared.store.load_page(&id, PageQuery::default()).await? {
            for event in self.shared.replayed(&id, &page).await {
                say(&*self.sink, event).await;
            }
        }
        say(&*self.sink, of_fork(ChatEvent::Title(title.clone()))).await;
        self.emit(ChatEvent::SystemText(format!("\n\nThis chat goes on as \"{title}\" in a chat of its own.\n\n")))
            .await;
        Ok(Done::Forked { chat: id, title })
    }

    /// Files first: when one cannot be restored, the chat is left as it was.
    async fn roll_back(
        &mut self,
        to: ContentId,
        messages: bool,
        tools: bool,
        force: bool,
    ) -> Result<Done, OperationError> {
        self.close_turn().await;
        let store = self.shared.store.clone();
        if tools {
            let changes = store.changes_since(&self.id, &to).await?;
            self.restore_files(&changes, force).await?;
            store.forget_changes(&changes).await?;
        }
        if messages {
            store.truncate_before(&self.id, &to).await?;
            self.forget_history();
            self.loaded = false;
            self.origin = super::Origin::Client;
            self.load().await;
            self.emit(ChatEvent::Cleared).await;
            self.show(PageQuery::default()).await?;
        }
        Ok(Done::Changed)
    }

    /// Restores what the files were, the newest change first. Files that a person touched since are
    /// left alone, and then nothing is restored, unless it is forced.
    async fn restore_files(&self, changes: &[Change], force: bool) -> Result<(), OperationError> {
        let lost: Vec<PathBuf> =
            changes.iter().filter(|change| !change.is_kept).map(|change| change.path.clone()).collect();
        if !lost.is_empty() {
            return Err(OperationError::NotKept(lost));
        }
        if !force {
            // Only the newest change of a file tells what it should be now.
            let mut newest: Vec<&Change> = Vec::new();
            for change in changes {
                if !newest.iter().any(|seen| seen.path == change.path) {
                    newest.push(change);
                }
            }
            let mut touched = Vec::new();
            for change in newest {
                let now = read(change.path.clone()).await?;
                if !change.is_untouched(now.as_deref()) {
                    touched.push(change.path.clone());
                }
            }
            if !touched.is_empty() {
                return Err(OperationError::ChangedSince(touched));
            }
        }
        for change in changes {
            let before = self.shared.store.content_before(change).await?;
            restore(change.path.clone(), before).await?;
            self.memory.seen.forget(&change.path);
        }
        Ok(())
    }

    fn forget_history(&mut self) {
        self.history.clear();
        self.prompts = 0;
        self.totals = Default::default();
        *self.memory.tasks.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = Default::default();
    }
}

async fn read(path: PathBuf) -> Result<Option<Vec<u8>>, OperationError> {
    let asked = path.clone();
    let read = task::blocking(move || match std::fs::read(&asked) {
        Ok(content) => Ok(Some(content)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error.to_string()),
    });
    let read = read.await.map_err(|error| error.to_string()).and_then(|read| read);
    read.map_err(|reason| OperationError::NotRestored { path, reason })
}

async fn restore(path: PathBuf, content: Option<Vec<u8>>) -> Result<(), OperationError> {
    let place = path.clone();
    let restored = task::blocking(move || crate::tools::files::restore(&place, content.as_deref()));
    let restored = restored.await.map_err(|error| error.to_string()).and_then(|done| done.map_err(|e| e.to_string()));
    restored.map_err(|reason| OperationError::NotRestored { path, reason })
}

/// `Title (2)` after `Title`, `Title (3)` after that.
fn forked_title(old: &str) -> String {
    let numbered = old.rsplit_once(" (").and_then(|(base, rest)| {
        let number: u32 = rest.strip_suffix(')')?.parse().ok()?;
        Some((base, number))
    });
    match numbered {
        Some((base, number)) => format!("{base} ({})", number.saturating_add(1)),
        None => format!("{old} (2)"),
    }
}

/// How much of the history a model still gets: everything since the last compaction.
pub(super) fn since_compaction(messages: Vec<crate::store::StoredEntry>) -> Vec<crate::llm::Message> {
    let marker = messages.iter().rposition(|entry| entry.kind == crate::store::MessageKind::Marker).unwrap_or(0);
    request::repair(messages.into_iter().skip(marker).map(|entry| entry.message).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forks_are_numbered() {
        for (old, new) in [("a", "a (2)"), ("a (2)", "a (3)"), ("a (b)", "a (b) (2)"), ("", " (2)")] {
            assert_eq!(forked_title(old), new);
        }
    }
}
