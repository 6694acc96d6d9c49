//! Chats as things that are kept: opened, paged through, renamed, wound back, forked, flagged.

use custom_methods::Empty;
use custom_methods::chat::{
    ChatAddFlagParams, ChatClearParams, ChatContentReceivedParams, ChatForkParams, ChatHistoryParams,
    ChatHistoryResult, ChatOpenParams, ChatOpenResult, ChatPageMeta, ChatRemoveFlagParams, ChatRollbackParams,
    ChatSelection, ChatUpdateParams, RollbackInclude,
};
use custom_methods::common::ResultError;
use custom_methods::config::{ChatConfig, ConfigUpdatedParams};
use custom_methods::methods::{
    ChatAddFlag, ChatClear, ChatFork, ChatHistory, ChatOpen, ChatRemoveFlag, ChatRollback, ChatUpdate, ConfigUpdated,
};
use tower_lsp::jsonrpc::Result;

use super::super::service::{Answer, EcaServer, failed};
use super::super::to_wire::{Whose, received};
use crate::base::{ChatId, ContentId};
use crate::engine::{Done, Event, OpenedChat, OperationError, PageInfo};
use crate::store::{PageQuery, StoreError};

/// The word by which clients know that a page has to be read again from its beginning.
const CURSOR_EXPIRED: &str = "cursor_expired";
const CHAT_NOT_FOUND: &str = "chat_not_found";

impl Answer<ChatOpen> for EcaServer {
    async fn answer(&self, params: ChatOpenParams) -> Result<ChatOpenResult> {
        let chat = ChatId::new(params.chat_id.0.as_str());
        let opened = match self.engine()?.open(&chat, page_query(&params)).await {
            Ok(Done::Opened(opened)) => *opened,
            Ok(_) => return Ok(ChatOpenResult::default()),
            Err(OperationError::Store(error)) if expired(&error) => {
                return Ok(ChatOpenResult { error: Some(expired_error(&error)), ..ChatOpenResult::default() });
            }
            Err(error) => return Err(failed(error.to_string())),
        };
        let selection = self.select_for(&params.chat_id, &opened).await?;
        Ok(ChatOpenResult {
            found: true,
            chat_id: Some(params.chat_id),
            title: opened.title,
            selection: Some(selection),
            meta: Some(page_meta(opened.page)),
            error: None,
        })
    }
}

impl EcaServer {
    /// Tells the client what this chat works with, and says the same as a value.
    async fn select_for(&self, chat_id: &custom_methods::ChatId, opened: &OpenedChat) -> Result<ChatSelection> {
        let engine = self.engine()?;
        let registry = engine.registry();
        let known = opened.model.as_ref().filter(|model| registry.info(model).is_some());
        let variants = known.map(|model| registry.variants(model)).unwrap_or_default();
        let variant = opened.variant.clone().filter(|variant| variants.contains(variant));
        let tell = |chat: ChatConfig| async {
            let params = ConfigUpdatedParams { chat_id: Some(chat_id.clone()), chat: Some(chat) };
            self.starter.client.notify::<ConfigUpdated>(&params).await;
        };
        if let Some(model) = known {
            tell(ChatConfig {
                select_model: Some(model.to_string()),
                variants: Some(variants.clone()),
                select_variant: Some(variant.clone()),
                ..ChatConfig::default()
            })
            .await;
        }
        tell(ChatConfig { select_trust: Some(opened.trust), ..ChatConfig::default() }).await;
        Ok(ChatSelection {
            model: known.map(ToString::to_string),
            agent: opened.agent.clone().unwrap_or_else(|| self.session.presentation().default_agent),
            variant,
            variants,
            trust: opened.trust,
        })
    }
}

impl Answer<ChatHistory> for EcaServer {
    async fn answer(&self, params: ChatHistoryParams) -> Result<ChatHistoryResult> {
        let chat = ChatId::new(params.chat_id.0.as_str());
        match self.engine()?.history(&chat, page_query(&params)).await {
            Ok(Some((events, page))) => Ok(ChatHistoryResult {
                contents: Some(events.into_iter().filter_map(shown).collect()),
                meta: Some(page_meta(page)),
                error: None,
            }),
            Ok(None) => {
                let error = ResultError {
                    code: CHAT_NOT_FOUND.to_owned(),
                    message: format!("There is no chat {chat}."),
                    data: None,
                };
                Ok(ChatHistoryResult { error: Some(error), ..ChatHistoryResult::default() })
            }
            Err(error) if expired(&error) => {
                Ok(ChatHistoryResult { error: Some(expired_error(&error)), ..ChatHistoryResult::default() })
            }
            Err(error) => Err(failed(error.to_string())),
        }
    }
}

fn shown(event: Event) -> Option<ChatContentReceivedParams> {
    match event {
        Event::Chat { chat, event } => Some(received(Whose::own(&chat), event)),
        Event::Subagent { chat, parent, event } => Some(received(Whose { chat: &chat, parent: Some(&parent) }, event)),
        Event::ModelsChanged | Event::ProviderChanged { .. } | Event::Notice { .. } => None,
    }
}

impl Answer<ChatUpdate> for EcaServer {
    async fn answer(&self, params: ChatUpdateParams) -> Result<Empty> {
        let chat = ChatId::new(params.chat_id.0);
        changed(self.engine()?.update(&chat, params.title, params.trust).await)
    }
}

impl Answer<ChatClear> for EcaServer {
    async fn answer(&self, params: ChatClearParams) -> Result<Empty> {
        if params.messages == Some(false) {
            return Ok(Empty);
        }
        changed(self.engine()?.clear(&ChatId::new(params.chat_id.0)).await)
    }
}

impl Answer<ChatRollback> for EcaServer {
    async fn answer(&self, params: ChatRollbackParams) -> Result<Empty> {
        let includes = |what: RollbackInclude| params.include.is_empty() || params.include.contains(&what);
        let (messages, tools) = (includes(RollbackInclude::Messages), includes(RollbackInclude::Tools));
        let to = ContentId::new(params.content_id.0.as_str());
        let force = params.force.unwrap_or(false);
        changed(self.engine()?.roll_back(&ChatId::new(params.chat_id.0.as_str()), to, messages, tools, force).await)
    }
}

impl Answer<ChatAddFlag> for EcaServer {
    async fn answer(&self, params: ChatAddFlagParams) -> Result<Empty> {
        let at = ContentId::new(params.content_id.0);
        changed(self.engine()?.add_flag(&ChatId::new(params.chat_id.0), at, params.text).await)
    }
}

impl Answer<ChatRemoveFlag> for EcaServer {
    async fn answer(&self, params: ChatRemoveFlagParams) -> Result<Empty> {
        let flag = ContentId::new(params.content_id.0);
        changed(self.engine()?.remove_flag(&ChatId::new(params.chat_id.0), flag).await)
    }
}

impl Answer<ChatFork> for EcaServer {
    async fn answer(&self, params: ChatForkParams) -> Result<Empty> {
        let at = ContentId::new(params.content_id.0);
        changed(self.engine()?.fork(&ChatId::new(params.chat_id.0), at).await)
    }
}

/// An unknown chat is an error here: the client believes that it changed something.
fn changed(result: std::result::Result<Done, OperationError>) -> Result<Empty> {
    match result {
        Ok(Done::Unknown) => Err(failed("there is no such chat".to_owned())),
        Ok(_) => Ok(Empty),
        Err(error) => Err(failed(error.to_string())),
    }
}

fn page_query(params: &ChatOpenParams) -> PageQuery {
    PageQuery {
        before: params.before.clone(),
        after: params.after.clone(),
        limit: params.limit.filter(|limit| *limit > 0).and_then(|limit| usize::try_from(limit).ok()),
    }
}

fn page_meta(page: PageInfo) -> ChatPageMeta {
    ChatPageMeta {
        total: page.total,
        returned: page.returned,
        before_cursor: page.before_cursor,
        after_cursor: page.after_cursor,
        compaction_cursor: page.compaction_cursor,
    }
}

fn expired(error: &StoreError) -> bool {
    matches!(error, StoreError::CursorExpired)
}

fn expired_error(error: &StoreError) -> ResultError {
    ResultError { code: CURSOR_EXPIRED.to_owned(), message: error.to_string(), data: None }
}
