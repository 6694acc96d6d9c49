//! Chats: prompt, stop, delete, list.

use std::sync::Arc;

use custom_methods::chat::{
    ChatDeleteParams, ChatListParams, ChatListResult, ChatListSortBy, ChatPromptParams, ChatPromptResult,
    ChatPromptStatus, ChatPromptStopParams, ChatSummary,
};
use custom_methods::methods::{ChatDelete, ChatList, ChatPrompt, ChatPromptStop};
use custom_methods::{ChatId as WireChatId, Empty};
use tower_lsp::jsonrpc::Result;

use super::super::response_slot::keep_until_queued;
use super::super::service::{Answer, EcaServer, Take, failed};
use super::super::{from_wire, to_wire};
use crate::base::ChatId;
use crate::base::task;
use crate::engine::{AcceptedStatus, DeleteError};
use crate::store::{ListQuery, ListSort};
use crate::workspace::Workspace;

impl Answer<ChatPrompt> for EcaServer {
    async fn answer(&self, params: ChatPromptParams) -> Result<ChatPromptResult> {
        let started = self.started()?;
        if params.context.is_some() && !started.client.is_modern {
            self.session.speak_v0();
        }
        let v0 = self.session.is_v0();
        let named = params.chat_id.clone();
        let refused = |message: String| ChatPromptResult {
            chat_id: named.clone().unwrap_or_else(|| WireChatId(String::new())),
            model: "error".into(),
            status: if v0 { ChatPromptStatus::ConnectionError } else { ChatPromptStatus::Error },
            result_message: message,
        };
        let mut prompt = match from_wire::prompt(params, self.session.workspace(), v0) {
            Ok(prompt) => prompt,
            Err(problem) => return Ok(refused(problem.to_string())),
        };
        prompt.agent.get_or_insert_with(|| self.session.presentation().default_agent);
        // Nothing is awaited before this: a stop that follows must find the prompt submitted.
        let accepted = match started.engine.submit(prompt) {
            Ok(accepted) => accepted,
            Err(error) => return Ok(refused(error.to_string())),
        };
        let Ok(accepted) = accepted.await else { return Ok(refused("the server is shutting down".into())) };
        self.session.note_prompt(accepted.chat.clone(), &accepted.model);
        keep_until_queued(accepted.hold);
        let status = match accepted.status {
            AcceptedStatus::Prompting if v0 => ChatPromptStatus::Success,
            AcceptedStatus::Prompting => ChatPromptStatus::Prompting,
            AcceptedStatus::Error if v0 => ChatPromptStatus::ConnectionError,
            AcceptedStatus::Error => ChatPromptStatus::Error,
            AcceptedStatus::ConnectionError => ChatPromptStatus::ConnectionError,
            AcceptedStatus::Login => ChatPromptStatus::Login,
            AcceptedStatus::Idle => ChatPromptStatus::Idle,
        };
        Ok(ChatPromptResult {
            chat_id: to_wire::wire_chat_id(&accepted.chat),
            model: accepted.model,
            status,
            result_message: accepted.message,
        })
    }
}

impl Take<ChatPromptStop> for EcaServer {
    fn take(&self, params: ChatPromptStopParams) {
        if let Ok(engine) = self.engine() {
            engine.stop(&ChatId::new(params.chat_id.0));
        }
    }
}

impl Answer<ChatDelete> for EcaServer {
    async fn answer(&self, params: ChatDeleteParams) -> Result<Empty> {
        let named = params.chat_id.map(|id| ChatId::new(id.0));
        let Some(chat) = named.or_else(|| self.session.last_prompted()) else { return Ok(Empty) };
        match self.engine()?.delete(&chat).await {
            Ok(()) => Ok(Empty),
            Err(error @ (DeleteError::Busy | DeleteError::ShuttingDown | DeleteError::Store(_))) => {
                Err(failed(error.to_string()))
            }
        }
    }
}

/// Worktrees of one repository share their chats; finding out looks at the disk.
async fn history_key(workspace: Arc<Workspace>) -> String {
    let plain = workspace.key();
    task::blocking(move || crate::workspace::history_key(&workspace)).await.unwrap_or(plain)
}

impl Answer<ChatList> for EcaServer {
    async fn answer(&self, params: ChatListParams) -> Result<ChatListResult> {
        let query = ListQuery {
            workspace_key: Some(history_key(self.session.workspace()).await),
            limit: params.limit.filter(|limit| *limit > 0).and_then(|limit| usize::try_from(limit).ok()),
            sort: match params.sort_by {
                Some(ChatListSortBy::CreatedAt) => ListSort::CreatedAt,
                _ => ListSort::UpdatedAt,
            },
        };
        let chats = self.engine()?.list(query).await.map_err(|error| failed(error.to_string()))?;
        let summary = |(chat, status)| {
            let chat: crate::store::ChatSummary = chat;
            ChatSummary {
                id: to_wire::wire_chat_id(&chat.id),
                title: chat.title,
                status: to_wire::status(status),
                created_at: Some(chat.created_at),
                updated_at: Some(chat.updated_at),
                model: chat.model.map(|model| model.to_string()),
                message_count: chat.message_count,
            }
        };
        Ok(ChatListResult { chats: chats.into_iter().map(summary).collect() })
    }
}
