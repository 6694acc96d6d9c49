//! Threads are chats: listing, making, opening and reading them, and saying something in them.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use super::backend::Backend;
use super::entries;
use super::failure::{failed, unknown_thread};
use super::methods::GET_THREAD_ENTRIES;
use super::params::ThreadCall;
use super::turns::{Answer, Turns};
use crate::base::{ChatId, time};
use crate::engine::{Done, Event, Prompt, ReplyWhen};
use crate::llm::{Message, Part, Role};
use crate::store::{ListQuery, PageQuery};
use crate::transport::newline::Peer;
use crate::transport::{Id, ResponseError};

const UNTITLED: &str = "New thread";
/// How long a client may take to tell what was said in one of its threads.
const ENTRIES_WAIT: Duration = Duration::from_secs(5);

/// Cheap to clone.
#[derive(Clone)]
pub(super) struct Threads {
    pub(super) backend: Arc<Backend>,
    pub(super) turns: Arc<Turns>,
    pub(super) peer: Peer,
}

impl Threads {
    /// `None`: the answer comes when the turn is over.
    pub(super) async fn answer(&self, request: &Id, call: ThreadCall) -> Option<Result<Value, ResponseError>> {
        Some(match call {
            ThreadCall::List => self.list().await,
            ThreadCall::Create => self.create().await,
            ThreadCall::Open(thread) => match self.is_known(&thread).await {
                Ok(true) => Ok(Value::Null),
                Ok(false) => Err(unknown_thread(&thread)),
                Err(error) => Err(error),
            },
            ThreadCall::Entries(thread) => self.entries(&thread).await,
            ThreadCall::Send { thread, role: Role::Assistant, text } => self.append(&thread, text).await,
            ThreadCall::Send { thread, role: Role::User, text } => match self.is_known(&thread).await {
                Ok(true) => {
                    let answer = Answer::Streamed { request: request.clone() };
                    return self.ask(thread, text, answer).err().map(Err);
                }
                Ok(false) => Err(unknown_thread(&thread)),
                Err(error) => Err(error),
            },
        })
    }

    /// A message that a client streamed to us. The threads are the client's then, and the answer is a
    /// message of ours in them.
    pub(super) async fn answer_stream(&self, thread: ChatId, text: String) {
        if let Err(error) = self.adopt(&thread, &text).await {
            tracing::warn!(%thread, error = error.message, "the thread's history is not known");
        }
        if let Err(error) = self.ask(thread.clone(), text, Answer::Whole) {
            tracing::warn!(%thread, error = error.message, "a message was not answered");
        }
    }

    async fn list(&self) -> Result<Value, ResponseError> {
        let query = ListQuery { workspace_key: Some(self.backend.history_key.clone()), ..ListQuery::default() };
        let chats = self.backend.engine.list(query).await.map_err(|error| failed(error.to_string()))?;
        let thread = |(chat, _): (crate::store::ChatSummary, _)| {
            let title = chat.title.filter(|title| !title.trim().is_empty());
            json!({
                "id": chat.id.as_str(),
                "title": title.as_deref().unwrap_or(UNTITLED),
                "modifiedAt": time::iso8601(chat.updated_at),
            })
        };
        Ok(json!({"threads": chats.into_iter().map(thread).collect::<Vec<_>>()}))
    }

    async fn create(&self) -> Result<Value, ResponseError> {
        let thread = ChatId::random();
        self.make(&thread).await?;
        Ok(json!({"threadId": thread.as_str()}))
    }

    async fn make(&self, thread: &ChatId) -> Result<(), ResponseError> {
        let made = self.backend.engine.create(thread, self.backend.history_key.clone()).await;
        made.map_err(|error| failed(error.to_string()))
    }

    async fn is_known(&self, thread: &ChatId) -> Result<bool, ResponseError> {
        let newest = PageQuery { limit: Some(1), ..PageQuery::default() };
        let page = self.backend.engine.history(thread, newest).await.map_err(|error| failed(error.to_string()))?;
        Ok(page.is_some())
    }

    async fn entries(&self, thread: &ChatId) -> Result<Value, ResponseError> {
        let all = self.backend.engine.history(thread, PageQuery::default()).await;
        match all.map_err(|error| failed(error.to_string()))? {
            Some((events, _)) => {
                let own = events.into_iter().filter_map(|event| match event {
                    Event::Chat { event, .. } => Some(event),
                    _ => None,
                });
                Ok(json!({"entries": entries::entries(own.collect())}))
            }
            None => Err(unknown_thread(thread)),
        }
    }

    /// Something that the client says in the assistant's name is part of the thread and answered by
    /// nobody.
    async fn append(&self, thread: &ChatId, text: String) -> Result<Value, ResponseError> {
        let message = Message { role: Role::Assistant, parts: vec![Part::Text(text)] };
        match self.backend.engine.append(thread, vec![message]).await {
            Ok(Done::Unknown) => Err(unknown_thread(thread)),
            Ok(_) => Ok(Value::Null),
            Err(error) => Err(failed(error.to_string())),
        }
    }

    /// Makes a thread of the client's one of ours, with what was said in it so far.
    async fn adopt(&self, thread: &ChatId, next: &str) -> Result<(), ResponseError> {
        if self.is_known(thread).await? {
            return Ok(());
        }
        let params = json!({"threadId": thread.as_str()});
        let kept = self.peer.request(GET_THREAD_ENTRIES, &params, ENTRIES_WAIT).await;
        self.make(thread).await?;
        let messages = match kept {
            Ok(kept) => entries::messages(&kept, next),
            Err(error) => {
                tracing::debug!(%thread, %error, "the client does not tell what was said");
                return Ok(());
            }
        };
        if !messages.is_empty() {
            let appended = self.backend.engine.append(thread, messages).await;
            appended.map_err(|error| failed(error.to_string()))?;
        }
        Ok(())
    }

    fn ask(&self, thread: ChatId, text: String, answer: Answer) -> Result<(), ResponseError> {
        self.turns.expect(&thread, answer);
        let prompt = Prompt {
            chat: Some(thread.clone()),
            text,
            model: None,
            variant: None,
            agent: Some(self.backend.settings().agent),
            trust: None,
            contexts: Vec::new(),
            workspace: Arc::clone(&self.backend.workspace),
            reply: ReplyWhen::Recorded,
        };
        // What it was accepted as does not matter: the answer comes when the turn is over.
        let submitted = self.backend.engine.submit(prompt).map(drop);
        submitted.map_err(|error| {
            self.turns.take_back(&thread);
            failed(error.to_string())
        })
    }
}
