//! The other end of a connection, as something to send to: responses, notifications and requests,
//! in the order in which they are sent.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde::Serialize;
use serde_json::Value;

use super::Dialect;
use crate::transport::envelope::{Id, Outcome, ResponseError};
use crate::transport::outbox::{Closed, Frame, Kind, Outbox, PushError};
use crate::transport::pending::Pending;

/// Cheap to clone; all clones write to the same peer.
#[derive(Clone, Debug)]
pub struct Peer {
    outbox: Outbox,
    pending: Pending,
    dialect: Dialect,
    versioned: Arc<AtomicBool>,
}

/// Why a request to the peer gave no answer.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum CallError {
    #[error("the client did not answer in time")]
    Timeout,
    #[error("the connection to the client is closed")]
    Closed,
    #[error("too many questions to the client are unanswered")]
    TooMany,
    #[error("the client refused: {}", .0.message)]
    Refused(ResponseError),
}

#[derive(Serialize)]
struct Outgoing<'a, P> {
    #[serde(skip_serializing_if = "Option::is_none")]
    jsonrpc: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<i64>,
    method: &'a str,
    params: &'a P,
}

#[derive(Serialize)]
struct Response<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    jsonrpc: Option<&'static str>,
    id: &'a Id,
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<&'a Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<ErrorObject<'a>>,
}

#[derive(Serialize)]
struct ErrorObject<'a> {
    code: i64,
    message: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    data: Option<&'a Value>,
}

impl Peer {
    pub(super) fn new(outbox: Outbox, dialect: Dialect, versioned: Arc<AtomicBool>) -> Self {
        Self { outbox, pending: Pending::new(), dialect, versioned }
    }

    /// Answers a request. Waits for room, so that a peer that does not read slows down its own work.
    pub async fn respond(&self, id: &Id, outcome: &Outcome) -> Result<(), Closed> {
        self.outbox.push(self.response(id, outcome)).await
    }

    /// Answers at once; false when there is no room for it now.
    pub fn respond_now(&self, id: &Id, outcome: &Outcome) -> bool {
        !matches!(self.outbox.try_push(self.response(id, outcome)), Err(PushError::Full(_)))
    }

    pub async fn notify(&self, method: &str, params: &impl Serialize) -> Result<(), Closed> {
        self.outbox.push(self.notification(method, params, None)).await
    }

    /// A notification, to be queued by whoever keeps an order of its own. `chat` names the chat whose
    /// order it is part of.
    pub fn notification(&self, method: &str, params: &impl Serialize, chat: Option<Arc<str>>) -> Frame {
        let body = body(&Outgoing { jsonrpc: self.version(), id: None, method, params });
        Frame::Plain { body, chat, kind: Kind::Notification }
    }

    /// Asks the peer and waits at most so long for the answer.
    pub async fn request(
        &self,
        method: &str,
        params: &(impl Serialize + Sync),
        wait: Duration,
    ) -> Result<Value, CallError> {
        self.request_or(method, params, wait, |_| ()).await
    }

    /// The same; `unanswered` is told the request's id when nobody waits for its answer any more: it
    /// took too long, or this was dropped.
    pub async fn request_or(
        &self,
        method: &str,
        params: &(impl Serialize + Sync),
        wait: Duration,
        unanswered: impl FnOnce(i64) + Send,
    ) -> Result<Value, CallError> {
        let (id, answer) = self.pending.register().map_err(|_| CallError::TooMany)?;
        let mut withdrawal = Withdrawal(Some((id, unanswered)));
        let body = body(&Outgoing { jsonrpc: self.version(), id: Some(id), method, params });
        let frame = Frame::Plain { body, chat: None, kind: Kind::Request };
        let exchange = async {
            self.outbox.push(frame).await.map_err(|_| CallError::Closed)?;
            let outcome = answer.await;
            withdrawal.0 = None;
            outcome.ok_or(CallError::Closed)?.map_err(CallError::Refused)
        };
        tokio::time::timeout(wait, exchange).await.map_err(|_| CallError::Timeout)?
    }

    /// A request whose answer nobody waits for, to be queued by whoever keeps an order of its own.
    /// `chat` names the chat whose order it is part of.
    pub fn unawaited(&self, method: &str, params: &impl Serialize, chat: Option<Arc<str>>) -> Frame {
        let id = Some(self.pending.fresh_id());
        let body = body(&Outgoing { jsonrpc: self.version(), id, method, params });
        Frame::Plain { body, chat, kind: Kind::Request }
    }

    /// Hands the peer's answer to whoever waits for it; false when nobody does.
    pub fn resolve(&self, id: &Id, outcome: Outcome) -> bool {
        self.pending.resolve(id, outcome)
    }

    pub fn outbox(&self) -> &Outbox {
        &self.outbox
    }

    /// No answer will come any more; what is queued is still written.
    pub fn close(&self) {
        self.pending.abandon_all();
        self.outbox.close();
    }

    /// A response, to be queued by whoever keeps an order of its own.
    pub fn response(&self, id: &Id, outcome: &Outcome) -> Frame {
        let error = outcome.as_ref().err().map(|error| ErrorObject {
            code: error.code,
            message: &error.message,
            data: error.data.as_ref().filter(|_| self.dialect.error_data),
        });
        let body = body(&Response { jsonrpc: self.version(), id, result: outcome.as_ref().ok(), error });
        Frame::Plain { body, chat: None, kind: Kind::Response }
    }

    fn version(&self) -> Option<&'static str> {
        self.versioned.load(Ordering::Relaxed).then_some("2.0")
    }
}

/// Speaks up when it is dropped before the answer came.
struct Withdrawal<F: FnOnce(i64)>(Option<(i64, F)>);

impl<F: FnOnce(i64)> Drop for Withdrawal<F> {
    fn drop(&mut self) {
        if let Some((id, unanswered)) = self.0.take() {
            unanswered(id);
        }
    }
}

/// One line: serde_json writes no line breaks.
fn body(message: &impl Serialize) -> Vec<u8> {
    // Our own types always serialise: they are plain data with text keys.
    serde_json::to_vec(message).unwrap_or_default()
}
