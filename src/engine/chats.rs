//! What can be done with a chat besides talking to it, as front ends ask for it.

use tokio::sync::oneshot;

use super::chat::{self, Command, Operation};
use super::{ChatEvent, Done, Engine, Event, OperationError, PageInfo, Shared, ToolCallStage, replay};
use crate::base::{ChatId, ContentId};
use crate::llm::Message;
use crate::store::{ChatMeta, Page, PageQuery, Store, StoreError};
use crate::tool::Details;

/// So much of what a subagent said is shown with the chat it worked for.
const MOST_OF_SUBAGENT: usize = 1_000;

impl Engine {
    /// Makes a chat in which nothing has been said yet. `workspace_key` says with which others it is
    /// listed.
    pub async fn create(&self, chat: &ChatId, workspace_key: String) -> Result<(), StoreError> {
        let meta = ChatMeta { workspace_key: Some(workspace_key), ..ChatMeta::new(chat.clone()) };
        self.shared.store.create_or_touch_chat(meta).await
    }

    /// Adds texts that were said elsewhere to the end of a chat; no model is asked, and the client is
    /// told nothing. A turn that runs is ended first.
    pub async fn append(&self, chat: &ChatId, messages: Vec<Message>) -> Result<Done, OperationError> {
        self.operate(chat, Operation::Append(messages)).await
    }

    /// Shows a chat, or a page of it, again: the client hears everything before this returns.
    pub async fn open(&self, chat: &ChatId, page: PageQuery) -> Result<Done, OperationError> {
        self.operate(chat, Operation::Open(page)).await
    }

    /// A page of a chat, told to nobody.
    pub async fn history(&self, chat: &ChatId, page: PageQuery) -> Result<Option<(Vec<Event>, PageInfo)>, StoreError> {
        let Some(page) = self.shared.store.load_page(chat, page).await? else { return Ok(None) };
        Ok(Some((self.shared.replayed(chat, &page).await, PageInfo::from(&page))))
    }

    /// What chats are called.
    pub fn titles(&self) -> Titles {
        Titles { store: self.shared.store.clone() }
    }

    /// Removes a chat from memory and store; a running turn is closed first. The client is told
    /// before this returns, also when the chat was unknown.
    pub async fn delete(&self, chat: &ChatId) -> Result<(), DeleteError> {
        let (reply, done) = oneshot::channel();
        self.shared
            .with_handle(chat, chat::Origin::Client, |handle| {
                handle.interrupt();
                handle.send(Command::Delete { reply })
            })
            .map_err(|()| DeleteError::Busy)?;
        match done.await {
            Ok(result) => result.map_err(DeleteError::Store),
            Err(_) => Err(DeleteError::ShuttingDown),
        }
    }

    /// Renames a chat, or says whether its tools may run without questions.
    pub async fn update(
        &self,
        chat: &ChatId,
        title: Option<String>,
        trust: Option<bool>,
    ) -> Result<Done, OperationError> {
        self.operate(chat, Operation::Update { title, trust }).await
    }

    /// Forgets the messages of a chat and keeps the chat.
    pub async fn clear(&self, chat: &ChatId) -> Result<Done, OperationError> {
        self.operate(chat, Operation::Clear).await
    }

    /// Winds a chat back to before a message of the user, and undoes what tools did to files since.
    pub async fn roll_back(
        &self,
        chat: &ChatId,
        to: ContentId,
        messages: bool,
        tools: bool,
        force: bool,
    ) -> Result<Done, OperationError> {
        self.operate(chat, Operation::Rollback { to, messages, tools, force }).await
    }

    pub async fn add_flag(&self, chat: &ChatId, at: ContentId, text: String) -> Result<Done, OperationError> {
        self.operate(chat, Operation::AddFlag { at, text }).await
    }

    pub async fn remove_flag(&self, chat: &ChatId, flag: ContentId) -> Result<Done, OperationError> {
        self.operate(chat, Operation::RemoveFlag { flag }).await
    }

    /// A chat of its own that goes on from a message of this one.
    pub async fn fork(&self, chat: &ChatId, at: ContentId) -> Result<Done, OperationError> {
        self.operate(chat, Operation::Fork { at }).await
    }

    async fn operate(&self, chat: &ChatId, operation: Operation) -> Result<Done, OperationError> {
        let (reply, done) = oneshot::channel();
        self.shared
            .with_handle(chat, chat::Origin::Client, |handle| handle.send(Command::Operate { operation, reply }))
            .map_err(|()| OperationError::Busy)?;
        done.await.unwrap_or(Err(OperationError::ShuttingDown))
    }
}

impl Shared {
    /// The events that show a page of a chat again. What a subagent did stands before the end of the
    /// call that it worked for.
    pub(super) async fn replayed(&self, chat: &ChatId, page: &Page) -> Vec<Event> {
        let mut events = Vec::new();
        for event in replay::events(&page.entries, &page.flags) {
            if let Some(child) = ended_subagent(&event) {
                events.extend(self.replayed_subagent(chat, child).await);
            }
            events.push(Event::Chat { chat: chat.clone(), event });
        }
        events
    }

    async fn replayed_subagent(&self, parent: &ChatId, child: &ChatId) -> Vec<Event> {
        // A chat of its own is not shown in another one, whatever a file that was imported says.
        let is_subagent = matches!(self.store.head(child).await, Ok(Some(head)) if head.parent.is_some());
        let query = PageQuery { limit: Some(MOST_OF_SUBAGENT), ..PageQuery::default() };
        let page = if is_subagent { self.store.load_page(child, query).await.ok().flatten() } else { None };
        let events = page.map(|page| replay::events(&page.entries, &page.flags)).unwrap_or_default();
        let of_child = |event| Event::Subagent { chat: child.clone(), parent: parent.clone(), event };
        events.into_iter().map(of_child).collect()
    }
}

/// The subagent that worked for a call, when this is the call's end.
fn ended_subagent(event: &ChatEvent) -> Option<&ChatId> {
    let ChatEvent::ToolCall(call) = event else { return None };
    match (&call.stage, &call.details) {
        (ToolCallStage::Called { .. } | ToolCallStage::Rejected { .. }, Some(Details::Subagent(subagent))) => {
            subagent.chat.as_ref()
        }
        _ => None,
    }
}

/// Tells what chats are called, without keeping the engine alive.
#[derive(Debug, Clone)]
pub struct Titles {
    store: Store,
}

impl Titles {
    /// The chat's title; for a chat that works for another one, that one's. `None` when it has none.
    pub async fn of(&self, chat: &ChatId) -> Option<String> {
        let head = self.store.head(chat).await.ok().flatten()?;
        match head.parent {
            Some(parent) => self.store.head(&parent).await.ok().flatten()?.title,
            None => head.title,
        }
    }
}

#[derive(Debug, thiserror::Error)]
pub enum DeleteError {
    #[error("the chat has too many messages waiting; try again when it has caught up")]
    Busy,
    #[error("the server is shutting down")]
    ShuttingDown,
    #[error("the chat could not be removed from the store: {0}")]
    Store(StoreError),
}
