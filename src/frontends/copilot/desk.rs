//! Where requests arrive: each gets its place, its deadline and exactly one answer.

use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use dashmap::DashMap;
use dashmap::mapref::entry::Entry;
use futures_util::FutureExt;
use serde_json::{Value, json};
use tokio::sync::{Semaphore, mpsc};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::backend::Backend;
use super::chat::{self, Tabs};
use super::chunks::Chunks;
use super::failure::Failure;
use super::job::Job;
use super::methods::{CANCEL, CANCEL_REQUEST, EXIT, INITIALIZE, SHUTDOWN, Work};
use super::params::{Call, Initialize, wrapped};
use super::{customize, generate};
use crate::base::{shared_map, task};
use crate::frontends::answers::Answers;
use crate::frontends::traffic;
use crate::transport::newline::Peer;
use crate::transport::{ByteHold, Id, Incoming, Message, Outcome, ResponseError};

/// Requests that may be worked on or wait; the contract names this number.
pub(super) const MOST_REQUESTS: usize = 100;
/// How many models the handshake names.
const MOST_MODELS: usize = 200;

/// One connection.
pub(super) struct Desk {
    pub(super) peer: Peer,
    pub(super) backend: Backend,
    /// Turns with the models.
    pub(super) models: Semaphore,
    room: Arc<Semaphore>,
    answers: Answers,
    running: DashMap<Id, CancellationToken>,
    streaming: AtomicBool,
    tabs: Mutex<Tabs>,
    closing: CancellationToken,
}

/// Why the client's messages ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    Input,
    Exit,
}

impl Desk {
    pub(super) fn new(peer: Peer, backend: Backend) -> Arc<Self> {
        let parallel = usize::try_from(backend.settings().parallel_requests).unwrap_or(1);
        Arc::new(Self {
            answers: Answers::new(peer.clone(), MOST_REQUESTS),
            peer,
            backend,
            models: Semaphore::new(parallel.clamp(1, MOST_REQUESTS)),
            room: Arc::new(Semaphore::new(MOST_REQUESTS)),
            running: shared_map(),
            streaming: AtomicBool::new(true),
            tabs: Mutex::default(),
            closing: CancellationToken::new(),
        })
    }

    pub(super) async fn run(self: &Arc<Self>, incoming: &mut mpsc::Receiver<Incoming>) -> End {
        while let Some(next) = incoming.recv().await {
            match next {
                Incoming::End { .. } => return End::Input,
                Incoming::Bad { code, message, id } => {
                    tracing::warn!(code, problem = %message, "a line could not be read");
                    self.answer(id.unwrap_or(Id::Null), Err(ResponseError { code, message, data: None }));
                }
                Incoming::Message { message, hold } => {
                    if let Some(end) = self.on_message(message, hold) {
                        return end;
                    }
                }
            }
        }
        End::Input
    }

    /// No further work; what runs ends at once, and is answered.
    pub(super) fn cancel_all(&self) {
        self.closing.cancel();
    }

    /// Waits until every request has its answer queued. Needs a deadline.
    pub(super) async fn all_answered(&self) {
        let _ = self.room.acquire_many(u32::try_from(MOST_REQUESTS).unwrap_or(u32::MAX)).await;
    }

    pub(super) fn tabs(&self) -> MutexGuard<'_, Tabs> {
        self.tabs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn on_message(self: &Arc<Self>, message: Message, hold: ByteHold) -> Option<End> {
        match message {
            Message::Response { id, .. } => {
                tracing::debug!(%id, "an answer to nothing we asked");
                None
            }
            Message::Notification { method, params } => {
                traffic::received(&method, params.as_ref());
                self.on_notification(&method, params.as_ref())
            }
            Message::Request { id, method, params } => {
                traffic::received(&method, params.as_ref());
                self.on_request(id, &method, params, hold)
            }
        }
    }

    fn on_notification(&self, method: &str, params: Option<&Value>) -> Option<End> {
        match method {
            EXIT | SHUTDOWN => return Some(End::Exit),
            CANCEL | CANCEL_REQUEST => {
                let id = params.and_then(|params| params.get("id").or_else(|| params.get("requestId")));
                if let Some(token) = id.and_then(Id::from_value).and_then(|id| self.running.get(&id)) {
                    token.cancel();
                }
            }
            other => tracing::debug!(method = other, "an unknown notification is ignored"),
        }
        None
    }

    fn on_request(self: &Arc<Self>, id: Id, method: &str, params: Option<Value>, hold: ByteHold) -> Option<End> {
        let answer = match method {
            INITIALIZE => Initialize::read(params).map(|client| self.welcome(&client)),
            EXIT | SHUTDOWN => {
                self.answer(id, Ok(Value::Null));
                return Some(End::Exit);
            }
            _ => match Call::read(method, params) {
                None => Err(Failure::unknown_method(method)),
                Some(Err(failure)) => Err(failure),
                Some(Ok(call)) => match self.accept(&id, call, hold) {
                    Ok(()) => return None,
                    Err(failure) => Err(failure),
                },
            },
        };
        self.answer(id, answer.map_err(ResponseError::from));
        None
    }

    fn answer(&self, id: Id, outcome: Outcome) {
        self.answers.give(id, outcome);
    }

    fn welcome(&self, client: &Initialize) -> Value {
        tracing::info!(client = client.client, streaming = client.streaming, "initialize");
        self.streaming.store(client.streaming, Ordering::Relaxed);
        let formats: Vec<&str> = client.formats.iter().map(|format| format.word()).collect();
        json!({
            "serverName": "copilot-cli",
            "serverVersion": env!("CARGO_PKG_VERSION"),
            "capabilities": {
                "codeGeneration": true,
                "customization": true,
                "streaming": true,
                "chat": true,
                "specFormats": formats,
                "models": self.backend.model_names(MOST_MODELS),
            },
        })
    }

    /// Gives a request its place and begins with it.
    fn accept(self: &Arc<Self>, id: &Id, call: Call, hold: ByteHold) -> Result<(), Failure> {
        let token = self.closing.child_token();
        let Entry::Vacant(entry) = self.running.entry(id.clone()) else { return Err(Failure::id_in_use()) };
        let Ok(place) = Arc::clone(&self.room).try_acquire_owned() else {
            return Err(Failure::queue_full(MOST_REQUESTS));
        };
        entry.insert(token.clone());
        let (desk, id, arrived) = (Arc::clone(self), id.clone(), Instant::now());
        task::spawn(async move {
            let wanted = desk.streaming.load(Ordering::Relaxed);
            let mut chunks = Chunks::new(desk.peer.clone(), id.clone(), wanted);
            let outcome = desk.carry_out(call, hold, arrived, &token, &mut chunks).await;
            if outcome.is_err() {
                let _ = chunks.break_off().await;
            }
            // Free before the answer is sent: the client may use the id again when it has it.
            desk.running.remove(&id);
            let _ = desk.peer.respond(&id, &outcome.map_err(ResponseError::from)).await;
            drop(place);
        });
        Ok(())
    }

    async fn carry_out(
        &self,
        call: Call,
        hold: ByteHold,
        arrived: Instant,
        token: &CancellationToken,
        chunks: &mut Chunks,
    ) -> Result<Value, Failure> {
        let (call, is_wrapped) = unwrapped(call).await?;
        let work = call.work();
        let patience = self.patience(work);
        let deadline = patience.map(|patience| arrived + patience);
        let mut job = Job { desk: self, work, deadline, chunks, hold: Some(hold) };
        let working = AssertUnwindSafe(async {
            match call {
                Call::Generate(call) => generate::run(&mut job, call).await,
                Call::Customize(call) => customize::run(&mut job, call).await,
                Call::Chat(call) => chat::run(&mut job, call).await,
            }
        })
        .catch_unwind();
        let in_time = async {
            match deadline {
                Some(deadline) => tokio::time::timeout_at(deadline, working).await.ok(),
                None => Some(working.await),
            }
        };
        let outcome = tokio::select! {
            biased;
            () = token.cancelled() => return Err(Failure::cancelled(work)),
            outcome = in_time => outcome,
        };
        let result = match outcome {
            None => return Err(Failure::timeout(work, patience.unwrap_or_default().as_secs_f64())),
            Some(Err(_)) => return Err(Failure::bug()),
            Some(Ok(result)) => result?,
        };
        Ok(if is_wrapped { with_message(result) } else { result })
    }

    fn patience(&self, work: Work) -> Option<std::time::Duration> {
        let settings = self.backend.settings();
        match work {
            Work::Generate => settings.generate_timeout,
            Work::Customize => settings.customize_timeout,
            Work::Chat => settings.chat_timeout,
        }
    }
}

/// The request that was meant, and whether it came inside of a chat message.
async fn unwrapped(call: Call) -> Result<(Call, bool), Failure> {
    let Call::Chat(chat) = call else { return Ok((call, false)) };
    if !chat.message.trim_start().starts_with('{') {
        return Ok((Call::Chat(chat), false));
    }
    // It may hold a whole specification, so it is read off the runtime.
    let reading = task::blocking(move || (wrapped(&chat.message), chat));
    match reading.await {
        Ok((None, chat)) => Ok((Call::Chat(chat), false)),
        Ok((Some(inside), _)) => inside.map(|call| (call, true)),
        Err(_) => Err(Failure::bug()),
    }
}

/// A client that asked in a chat message also looks for a message in the answer.
fn with_message(mut result: Value) -> Value {
    let said = ["question", "description"].iter().find_map(|name| result.get(*name)).cloned();
    if let Value::Object(entries) = &mut result {
        entries.insert("message".to_owned(), said.unwrap_or_else(|| "Done.".into()));
    }
    result
}
