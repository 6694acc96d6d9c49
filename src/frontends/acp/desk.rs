//! Where messages arrive: each request gets exactly one answer, and what belongs behind an answer
//! comes behind it.

use std::collections::HashSet;
use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use agent_client_protocol_schema::v1::{
    CancelNotification, SessionUpdate, SetSessionConfigOptionRequest, SetSessionConfigOptionResponse,
    SetSessionModeRequest,
};
use dashmap::DashMap;
use dashmap::mapref::entry::Entry;
use futures_util::FutureExt;
use futures_util::future::join_all;
use serde::Serialize;
use serde_json::{Value, json};
use tokio::sync::{Semaphore, mpsc};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::client::Client;
use super::failure::Failure;
use super::from_wire::{list_field, params, said, text_field};
use super::methods::{
    AUTHENTICATE, CANCEL_REQUEST, INITIALIZE, SESSION_CANCEL, SESSION_CLOSE, SESSION_DELETE, SESSION_LIST,
    SESSION_LOAD, SESSION_NEW, SESSION_PROMPT, SESSION_RESUME, SESSION_SET_CONFIG_OPTION, SESSION_SET_MODE,
    SESSION_SET_MODEL,
};
use super::open::Ground;
use super::session::Session;
use super::sessions::Done;
use super::{sessions, welcome};
use crate::base::{ChatId, shared_map, task};
use crate::engine::Engine;
use crate::frontends::answers::Answers;
use crate::frontends::queue::queue;
use crate::frontends::{Surroundings, traffic};
use crate::transport::newline::Peer;
use crate::transport::{ByteHold, Id, Incoming, Message, Outcome, ResponseError};

/// Requests that may be worked on at once, turns apart.
const MOST_REQUESTS: usize = 256;
/// Requests that are being worked on when the input ends get so long.
const LAST_REQUESTS: Duration = Duration::from_millis(500);
/// The providers are not asked again so soon for another session.
const MODELS_ARE_FRESH: Duration = Duration::from_secs(300);

/// One connection.
pub(super) struct Desk {
    pub(super) ground: Ground,
    pub(super) sessions: DashMap<ChatId, Arc<Session>>,
    /// Sessions that are being opened or closed.
    pub(super) busy: Mutex<HashSet<ChatId>>,
    /// When the models were last asked for, and an engine that knows them.
    models: Mutex<Option<(Instant, Engine)>>,
    answers: Answers,
    running: DashMap<Id, CancellationToken>,
    room: Arc<Semaphore>,
    is_initialized: AtomicBool,
    closing: CancellationToken,
}

impl Desk {
    pub(super) fn new(peer: Peer, surroundings: Surroundings) -> Arc<Self> {
        let ground = Ground {
            store: surroundings.store(),
            surroundings,
            client: Client::new(peer.clone()),
            memory: Arc::default(),
        };
        Arc::new(Self {
            ground,
            sessions: shared_map(),
            busy: Mutex::default(),
            models: Mutex::default(),
            answers: Answers::new(peer, MOST_REQUESTS),
            running: shared_map(),
            room: Arc::new(Semaphore::new(MOST_REQUESTS)),
            is_initialized: AtomicBool::new(false),
            closing: CancellationToken::new(),
        })
    }

    /// Serves until the input ends.
    pub(super) async fn run(self: &Arc<Self>, incoming: &mut mpsc::Receiver<Incoming>) {
        while let Some(next) = incoming.recv().await {
            match next {
                Incoming::End { .. } => return,
                Incoming::Bad { code, message, id } => {
                    tracing::warn!(code, problem = %message, "a line could not be read");
                    self.answers.give(id.unwrap_or(Id::Null), Err(ResponseError { code, message, data: None }));
                }
                Incoming::Message { message, hold } => self.on_message(message, hold),
            }
        }
    }

    /// Ends all work; every request is answered before this returns. Needs a deadline.
    pub(super) async fn close(&self) {
        let everything = u32::try_from(MOST_REQUESTS).unwrap_or(u32::MAX);
        // What was asked before the input ended is answered, if that is soon done.
        drop(tokio::time::timeout(LAST_REQUESTS, self.room.acquire_many(everything)).await);
        self.closing.cancel();
        let open: Vec<Arc<Session>> = self.sessions.iter().map(|entry| Arc::clone(entry.value())).collect();
        self.sessions.clear();
        join_all(open.iter().map(|session| session.close())).await;
        let _ = self.room.acquire_many(everything).await;
    }

    pub(super) fn session(&self, id: &str) -> Result<Arc<Session>, Failure> {
        let found = self.sessions.get(&ChatId::new(id)).map(|entry| Arc::clone(entry.value()));
        found.ok_or_else(|| Failure::unknown_session(id))
    }

    fn on_message(self: &Arc<Self>, message: Message, hold: ByteHold) {
        match message {
            Message::Response { id, outcome } => {
                if !self.ground.client.peer.resolve(&id, outcome) {
                    tracing::debug!(%id, "an answer that nobody waits for");
                }
            }
            Message::Notification { method, params } => {
                traffic::received(&method, params.as_ref());
                self.on_notification(&method, params);
            }
            Message::Request { id, method, params } => {
                traffic::received(&method, params.as_ref());
                self.on_request(id, &method, params, hold);
            }
        }
    }

    fn on_notification(&self, method: &str, given: Option<Value>) {
        match method {
            SESSION_CANCEL => match params::<CancelNotification>(given) {
                Ok(cancel) => match self.session(&cancel.session_id.0) {
                    Ok(session) => session.cancel(),
                    Err(failure) => tracing::debug!(problem = failure.message, "nothing to cancel"),
                },
                Err(failure) => tracing::warn!(problem = failure.message, "a cancellation cannot be read"),
            },
            CANCEL_REQUEST => {
                let id = given.as_ref().and_then(|params| params.get("requestId")).and_then(Id::from_value);
                if let Some(id) = id {
                    self.cancel_request(&id);
                }
            }
            other => tracing::debug!(method = other, "an unknown notification is ignored"),
        }
    }

    fn cancel_request(&self, id: &Id) {
        if let Some(token) = self.running.get(id) {
            token.cancel();
        }
        let of_prompt = self.sessions.iter().find(|entry| entry.voice.expects(id));
        if let Some(session) = of_prompt.map(|entry| Arc::clone(entry.value())) {
            session.cancel();
        }
    }

    fn on_request(self: &Arc<Self>, id: Id, method: &str, given: Option<Value>, hold: ByteHold) {
        let outcome = match method {
            INITIALIZE => self.initialize(given),
            _ if !self.is_initialized.load(Ordering::Relaxed) => Err(Failure::request("initialize has to come first")),
            SESSION_PROMPT => match self.prompt(&id, given) {
                Ok(()) => return,
                Err(failure) => Err(failure),
            },
            SESSION_SET_MODE | SESSION_SET_CONFIG_OPTION | SESSION_SET_MODEL => match self.choose(method, given) {
                Ok((session, result)) => return self.answer_and_tell(&id, &session, result),
                Err(failure) => Err(failure),
            },
            SESSION_NEW | SESSION_LOAD | SESSION_RESUME | SESSION_LIST | SESSION_CLOSE | SESSION_DELETE
            | AUTHENTICATE => match self.accept(&id, method, given, hold) {
                Ok(()) => return,
                Err(failure) => Err(failure),
            },
            other => Err(Failure::unknown_method(other)),
        };
        self.answers.give(id, outcome.map_err(ResponseError::from));
    }

    fn initialize(&self, given: Option<Value>) -> Result<Value, Failure> {
        let (facts, response) = welcome::initialize(given)?;
        tracing::info!(client = facts.name, "initialize");
        self.ground.client.introduce(facts);
        self.is_initialized.store(true, Ordering::Relaxed);
        Ok(response)
    }

    fn prompt(&self, id: &Id, given: Option<Value>) -> Result<(), Failure> {
        let given = given.unwrap_or_else(|| json!({}));
        let session = self.session(&text_field(&given, "sessionId")?)?;
        if self.running.contains_key(id) || session.voice.expects(id) {
            return Err(Failure::request("a request with this id is still being answered"));
        }
        session.prompt(id.clone(), said(list_field(&given, "prompt", true)?)?)
    }

    /// What the user chose; the session has news behind the answer.
    fn choose(&self, method: &str, given: Option<Value>) -> Result<(Arc<Session>, Value), Failure> {
        match method {
            SESSION_SET_MODE => {
                let request: SetSessionModeRequest = params(given)?;
                let session = self.session(&request.session_id.0)?;
                session.set_mode(&request.mode_id.0)?;
                Ok((session, json!({})))
            }
            SESSION_SET_MODEL => {
                let given = given.unwrap_or_else(|| json!({}));
                let session = self.session(&text_field(&given, "sessionId")?)?;
                session.set_model(&text_field(&given, "modelId")?)?;
                Ok((session, json!({})))
            }
            _ => {
                let request: SetSessionConfigOptionRequest = params(given)?;
                let session = self.session(&request.session_id.0)?;
                session.set_option(&request.config_id.0, &request.value)?;
                let options = session.config_options();
                // The answer tells all of them, so they are no news behind it.
                let told = session.told_mode();
                session.note_told(&told.unwrap_or_else(|| session.modes().current_mode_id), &options);
                Ok((session, result(&SetSessionConfigOptionResponse::new(options))))
            }
        }
    }

    fn answer_and_tell(&self, id: &Id, session: &Arc<Session>, result: Value) {
        let peer = &self.ground.client.peer;
        let news = session.option_news().into_iter().map(|update: SessionUpdate| session.voice.frame(update));
        let frames = std::iter::once(peer.response(id, &Ok(result))).chain(news).collect();
        if let Some(rest) = queue(peer.outbox(), frames) {
            task::spawn(rest);
        }
    }

    /// Gives a request its place and begins with it.
    fn accept(self: &Arc<Self>, id: &Id, method: &str, given: Option<Value>, hold: ByteHold) -> Result<(), Failure> {
        let Entry::Vacant(entry) = self.running.entry(id.clone()) else {
            return Err(Failure::request("a request with this id is still being answered"));
        };
        let Ok(place) = Arc::clone(&self.room).try_acquire_owned() else {
            return Err(Failure::internal(format!("{MOST_REQUESTS} requests are being worked on; try again later")));
        };
        let token = self.closing.child_token();
        entry.insert(token.clone());
        let (desk, id, method) = (Arc::clone(self), id.clone(), method.to_owned());
        task::spawn(async move {
            let working = AssertUnwindSafe(sessions::carry_out(&desk, &method, given)).catch_unwind();
            let outcome = tokio::select! {
                biased;
                () = token.cancelled() => Err(Failure::cancelled()),
                outcome = working => outcome.unwrap_or_else(|_| Err(Failure::bug())),
            };
            drop(hold);
            // Free before the answer is sent: the client may use the id again when it has it.
            desk.running.remove(&id);
            let (outcome, begun): (Outcome, _) = match outcome {
                Ok(Done { result, opened }) => (Ok(result), opened),
                Err(failure) => (Err(failure.into()), None),
            };
            let _ = desk.ground.client.peer.respond(&id, &outcome).await;
            if let Some(opened) = begun {
                let ask_models = desk.must_ask_models(&opened.session.engine);
                opened.keeper.begin(ask_models);
            }
            drop(place);
        });
        Ok(())
    }

    /// Whether a new session has to look for models itself. Those that another one has found are
    /// taken over when it is built; see [`known_models`](Self::known_models).
    fn must_ask_models(&self, engine: &Engine) -> bool {
        let mut models = self.models.lock().unwrap_or_else(PoisonError::into_inner);
        if models.as_ref().is_some_and(|(asked, _)| asked.elapsed() < MODELS_ARE_FRESH) {
            return false;
        }
        *models = Some((Instant::now(), engine.clone()));
        true
    }

    /// Gives a new engine the models that another one has found.
    pub(super) fn known_models(&self, engine: &Engine) {
        let models = self.models.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, known)) = models.as_ref() {
            engine.registry().adopt(&known.registry());
        }
    }
}

/// Our own types always serialise: they are plain data with text keys.
pub(super) fn result(response: &impl Serialize) -> Value {
    serde_json::to_value(response).unwrap_or_else(|_| json!({}))
}
