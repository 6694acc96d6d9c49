//! What can be done with a chat besides talking to it, as front ends ask for it.

use tokio::sync::oneshot;

use super::chat::{self, Command, Operation};
use super::{ChatEvent, Done, Engine, OperationError, PageInfo, replay};
use crate::base::{ChatId, ContentId};
use crate::llm::Message;
use crate::store::{ChatMeta, PageQuery, StoreError};

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
    pub async fn history(
        &self,
        chat: &ChatId,
        page: PageQuery,
    ) -> Result<Option<(Vec<ChatEvent>, PageInfo)>, StoreError> {
        let page = self.shared.store.load_page(chat, page).await?;
        Ok(page.map(|page| (replay::events(&page.entries, &page.flags), PageInfo::from(&page))))
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
