//! Requests about sessions as a whole: new, load, resume, list, close, delete.

use std::sync::{Arc, PoisonError};

use agent_client_protocol_schema::v1::{
    CloseSessionRequest, CloseSessionResponse, DeleteSessionRequest, DeleteSessionResponse, ListSessionsRequest,
    LoadSessionResponse, NewSessionResponse, ResumeSessionResponse,
};
use serde_json::{Value, json};

use super::desk::{Desk, result};
use super::failure::Failure;
use super::from_wire::{params, text_field};
use super::methods::{
    AUTHENTICATE, SESSION_CLOSE, SESSION_DELETE, SESSION_LIST, SESSION_LOAD, SESSION_NEW, SESSION_RESUME,
};
use super::open::{Opened, Wanted, open};
use super::session::Session;
use super::{list, welcome};
use crate::base::ChatId;
use crate::base::task;
use crate::engine::Done as EngineDone;
use crate::store::{PageQuery, StoredChat};

/// More sessions than anybody has open; each has an engine.
const MOST_SESSIONS: usize = 128;

/// A request that succeeded.
pub(super) struct Done {
    pub(super) result: Value,
    /// A session that begins its work behind the answer.
    pub(super) opened: Option<Opened>,
}

impl From<Value> for Done {
    fn from(result: Value) -> Self {
        Self { result, opened: None }
    }
}

pub(super) async fn carry_out(desk: &Desk, method: &str, given: Option<Value>) -> Result<Done, Failure> {
    match method {
        SESSION_NEW => new(desk, &given.unwrap_or_else(|| json!({}))).await,
        SESSION_LOAD => again(desk, &given.unwrap_or_else(|| json!({})), Replay::All).await,
        SESSION_RESUME => again(desk, &given.unwrap_or_else(|| json!({})), Replay::Nothing).await,
        SESSION_LIST => {
            let request: ListSessionsRequest = params(given)?;
            Ok(result(&list::list(&desk.ground.store, request).await?).into())
        }
        SESSION_CLOSE => close(desk, params(given)?).await,
        SESSION_DELETE => delete(desk, params(given)?).await,
        AUTHENTICATE => Ok(welcome::authenticate(&desk.ground, given).await?.into()),
        other => Err(Failure::unknown_method(other)),
    }
}

/// What a client wants to see of a session that it opens again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Replay {
    All,
    Nothing,
}

async fn new(desk: &Desk, given: &Value) -> Result<Done, Failure> {
    let wanted = Wanted::read(given, true)?;
    let chat = ChatId::random();
    let opened = begin(desk, chat, wanted, None).await?;
    let (modes, options) = shown(&opened.session);
    let id = opened.session.voice.id.clone();
    let response = NewSessionResponse::new(id).modes(modes).config_options(options);
    finish(desk, opened, result(&response))
}

async fn again(desk: &Desk, given: &Value, replay: Replay) -> Result<Done, Failure> {
    let id = text_field(given, "sessionId")?;
    let wanted = Wanted::read(given, replay == Replay::All)?;
    let chat = ChatId::from_client(&id).map_err(|_| Failure::unknown_session(&id))?;
    let _busy = Busy::with(desk, &chat)?;
    let kept = kept(desk, &chat).await?;
    let open_already = desk.sessions.remove(&chat).map(|(_, session)| session);
    if kept.is_none() && open_already.is_none() {
        return Err(Failure::unknown_session(&id));
    }
    // It may come with other folders and servers, so it is built anew.
    if let Some(session) = open_already {
        session.close().await;
    }
    let opened = begin(desk, chat.clone(), wanted, kept).await?;
    let mut unfinished = Unfinished(Some(Arc::clone(&opened.session)));
    if replay == Replay::All {
        let shown = opened.session.engine.open(&chat, PageQuery::default()).await;
        match shown.map_err(|error| Failure::internal(error.to_string()))? {
            EngineDone::Opened(_) | EngineDone::Unknown => {}
            EngineDone::Forked { .. } | EngineDone::Changed => return Err(Failure::bug()),
        }
    }
    unfinished.0 = None;
    let (modes, options) = shown(&opened.session);
    let response = match replay {
        Replay::All => result(&LoadSessionResponse::new().modes(modes).config_options(options)),
        Replay::Nothing => result(&ResumeSessionResponse::new().modes(modes).config_options(options)),
    };
    finish(desk, opened, response)
}

async fn close(desk: &Desk, request: CloseSessionRequest) -> Result<Done, Failure> {
    let session = desk.session(&request.session_id.0)?;
    let _busy = Busy::with(desk, &session.chat)?;
    desk.sessions.remove(&session.chat);
    session.close().await;
    Ok(result(&CloseSessionResponse::new()).into())
}

/// A session that is gone already is as deleted as it can be.
async fn delete(desk: &Desk, request: DeleteSessionRequest) -> Result<Done, Failure> {
    let Ok(chat) = ChatId::from_client(&request.session_id.0) else {
        return Ok(result(&DeleteSessionResponse::new()).into());
    };
    let _busy = Busy::with(desk, &chat)?;
    if let Some((_, session)) = desk.sessions.remove(&chat) {
        session.close().await;
    }
    let deleted = desk.ground.store.delete(&chat).await;
    deleted.map_err(|error| Failure::internal(format!("the session could not be deleted: {error}")))?;
    Ok(result(&DeleteSessionResponse::new()).into())
}

async fn begin(desk: &Desk, chat: ChatId, wanted: Wanted, kept: Option<StoredChat>) -> Result<Opened, Failure> {
    if desk.sessions.len() >= MOST_SESSIONS {
        return Err(Failure::internal(format!("{MOST_SESSIONS} sessions are open; close some of them")));
    }
    let opened = open(&desk.ground, chat, wanted, kept).await?;
    desk.known_models(&opened.session.engine);
    Ok(opened)
}

fn shown(
    session: &Session,
) -> (agent_client_protocol_schema::v1::SessionModeState, Vec<agent_client_protocol_schema::v1::SessionConfigOption>) {
    let (modes, options) = (session.modes(), session.config_options());
    session.note_told(&modes.current_mode_id, &options);
    (modes, options)
}

/// From here on the session can be talked to.
fn finish(desk: &Desk, opened: Opened, result: Value) -> Result<Done, Failure> {
    desk.sessions.insert(opened.session.chat.clone(), Arc::clone(&opened.session));
    Ok(Done { result, opened: Some(opened) })
}

/// What the store has of a chat that a user can open.
async fn kept(desk: &Desk, chat: &ChatId) -> Result<Option<StoredChat>, Failure> {
    let head = desk.ground.store.head(chat).await;
    let head = head.map_err(|error| Failure::internal(format!("the session could not be read: {error}")))?;
    // A subagent's chat is shown inside its parent.
    Ok(head.filter(|head| head.parent.is_none()))
}

/// One request at a time opens or ends a session.
struct Busy<'a> {
    desk: &'a Desk,
    chat: ChatId,
}

impl<'a> Busy<'a> {
    fn with(desk: &'a Desk, chat: &ChatId) -> Result<Self, Failure> {
        let mut busy = desk.busy.lock().unwrap_or_else(PoisonError::into_inner);
        if !busy.insert(chat.clone()) {
            return Err(Failure::request(format!("session {chat} is being opened or closed by another request")));
        }
        drop(busy);
        Ok(Self { desk, chat: chat.clone() })
    }
}

impl Drop for Busy<'_> {
    fn drop(&mut self) {
        self.desk.busy.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.chat);
    }
}

/// A session whose opening was cancelled ends.
struct Unfinished(Option<Arc<Session>>);

impl Drop for Unfinished {
    fn drop(&mut self) {
        if let Some(session) = self.0.take() {
            task::spawn(async move { session.close().await });
        }
    }
}
