//! Where the client's messages arrive. What concerns threads is done one after the other, in the order
//! of arrival; files are looked at beside it. Nothing here waits for the client.

use std::sync::Arc;

use serde_json::Value;
use tokio::sync::{Semaphore, mpsc};
use tokio::task::JoinHandle;

use super::editor::Editor;
use super::failure::failed;
use super::files::Files;
use super::params::{Call, FileCall, ThreadCall};
use super::streams::{Deliver, Streams};
use super::threads::Threads;
use crate::base::task;
use crate::frontends::answers::Answers;
use crate::frontends::traffic;
use crate::transport::envelope::INVALID_REQUEST;
use crate::transport::newline::Peer;
use crate::transport::{ByteHold, Id, Incoming, Message, ResponseError};

/// Requests about threads that may wait for each other, and those about files that may be worked on.
const MOST_WAITING: usize = 256;
const MOST_FILE_CALLS: usize = 64;
/// Answers that may wait for the client to read.
const MOST_LATE: usize = 256;

/// One connection.
pub(super) struct Desk {
    peer: Peer,
    answers: Answers,
    editor: Arc<Editor>,
    files: Files,
    threads: Threads,
    streams: Streams,
    lane: mpsc::Sender<Job>,
    worker: JoinHandle<()>,
    looking: Arc<Semaphore>,
}

/// A request about threads, in its place.
struct Job {
    id: Id,
    call: ThreadCall,
    _hold: ByteHold,
}

impl Desk {
    pub(super) fn new(editor: Arc<Editor>, files: Files, threads: Threads) -> Self {
        let (lane, jobs) = mpsc::channel(MOST_WAITING);
        let worker = task::spawn(work(threads.clone(), jobs));
        let delivering = threads.clone();
        let deliver: Deliver = Arc::new(move |thread, text| {
            let threads = delivering.clone();
            Box::pin(async move { threads.answer_stream(thread, text).await })
        });
        Self {
            answers: Answers::new(threads.peer.clone(), MOST_LATE),
            peer: threads.peer.clone(),
            editor,
            files,
            threads,
            streams: Streams::new(deliver),
            lane,
            worker,
            looking: Arc::new(Semaphore::new(MOST_FILE_CALLS)),
        }
    }

    /// Returns when the client has nothing more to say.
    pub(super) async fn run(&self, incoming: &mut mpsc::Receiver<Incoming>) {
        while let Some(next) = incoming.recv().await {
            match next {
                Incoming::End { .. } => return,
                Incoming::Bad { code, message, id } => {
                    tracing::warn!(code, problem = %message, "a line could not be read");
                    self.refuse(id.unwrap_or(Id::Null), ResponseError { code, message, data: None });
                }
                Incoming::Message { message, hold } => self.on_message(message, hold),
            }
        }
    }

    /// Waits until everything that was asked is answered, except for turns. Needs a deadline.
    pub(super) async fn all_answered(self) {
        drop(self.lane);
        let _ = self.worker.await;
        let _ = self.looking.acquire_many(u32::try_from(MOST_FILE_CALLS).unwrap_or(u32::MAX)).await;
    }

    fn on_message(&self, message: Message, hold: ByteHold) {
        match message {
            Message::Response { id, outcome } => {
                if let Err(error) = &outcome {
                    tracing::debug!(%id, error = error.message, "the client refused");
                }
                // Most of what we ask, pieces of answers, nobody waits for.
                let _ = self.peer.resolve(&id, outcome);
            }
            // The contract has only requests, so something was left out.
            Message::Notification { method, params } => {
                traffic::received(&method, params.as_ref());
                let message = "a request needs an id".to_owned();
                self.refuse(Id::Null, ResponseError { code: INVALID_REQUEST, message, data: None });
            }
            Message::Request { id, method, params } => {
                traffic::received(&method, params.as_ref());
                match Call::read(&method, params) {
                    Ok(call) => self.on_call(id, call, hold),
                    Err(error) => self.refuse(id, error),
                }
            }
        }
    }

    fn on_call(&self, id: Id, call: Call, hold: ByteHold) {
        self.editor.is_taken_for(call.reading());
        match call {
            Call::Thread(call) => {
                if let Err(error) = self.lane.try_send(Job { id, call, _hold: hold }) {
                    self.refuse(error.into_inner().id, failed("too many requests are unanswered"));
                }
            }
            Call::Chunk { thread, text } => {
                let pause = self.threads.backend.settings().message_pause;
                let added = self.streams.add(thread, &text, pause);
                self.answers.give(id, added.map(|()| Value::Null).map_err(failed));
            }
            Call::File(call) => self.look(id, call, hold),
        }
    }

    fn look(&self, id: Id, call: FileCall, hold: ByteHold) {
        let Ok(place) = Arc::clone(&self.looking).try_acquire_owned() else {
            return self.refuse(id, failed("too many requests are unanswered"));
        };
        let (files, peer) = (self.files.clone(), self.peer.clone());
        task::spawn(async move {
            let outcome = files.answer(call).await;
            let _ = peer.respond(&id, &outcome).await;
            drop((place, hold));
        });
    }

    fn refuse(&self, id: Id, error: ResponseError) {
        self.answers.give(id, Err(error));
    }
}

/// Does what concerns threads, one after the other.
async fn work(threads: Threads, mut jobs: mpsc::Receiver<Job>) {
    while let Some(Job { id, call, _hold }) = jobs.recv().await {
        if let Some(outcome) = threads.answer(&id, call).await
            && threads.peer.respond(&id, &outcome).await.is_err()
        {
            return;
        }
    }
}
