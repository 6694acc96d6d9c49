//! The client as the server sees it: a place to send notifications and requests to, in order.

use std::sync::Arc;
use std::time::Duration;

use lsp_types::notification::Notification;
use lsp_types::request::Request;
use serde::Serialize;
use serde_json::Value;

use crate::transport::{Frame, Kind, Outbox, Pending};

/// Cheap to clone.
#[derive(Clone)]
pub(super) struct Client {
    pub(super) outbox: Outbox,
    pub(super) pending: Arc<Pending>,
}

/// Why a request to the client gave no usable answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum RequestError {
    #[error("the editor did not answer in time")]
    Timeout,
    #[error("the connection to the editor is closed")]
    Closed,
    #[error("too many questions to the editor are unanswered")]
    TooMany,
    #[error("the editor refused: {0}")]
    Refused(String),
    #[error("the editor's answer has an unexpected shape: {0}")]
    Shape(String),
}

#[derive(Serialize)]
struct Outgoing<'a, P> {
    jsonrpc: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<i64>,
    method: &'a str,
    params: &'a P,
}

impl Client {
    pub(super) async fn notify<N: Notification>(&self, params: &N::Params) {
        // A closed outbox means that the client is gone; the connection ends for that reason.
        let _ = self.outbox.push(notification(N::METHOD, params, None)).await;
    }

    /// Asks the client. Bounded in time: some clients never answer what they do not know.
    pub(super) async fn request<R: Request>(
        &self,
        params: &R::Params,
        wait: Duration,
    ) -> Result<R::Result, RequestError> {
        let (id, answer) = self.pending.register().map_err(|_| RequestError::TooMany)?;
        let body = body(Some(id), R::METHOD, params);
        let frame = Frame::Plain { body, chat: None, kind: Kind::Request };
        let exchange = async {
            self.outbox.push(frame).await.map_err(|_| RequestError::Closed)?;
            answer.await.ok_or(RequestError::Closed)?.map_err(|error| RequestError::Refused(error.message))
        };
        let value: Value = tokio::time::timeout(wait, exchange).await.map_err(|_| RequestError::Timeout)??;
        serde_json::from_value(value).map_err(|error| RequestError::Shape(error.to_string()))
    }
}

/// A notification as a frame. `chat` names the chat it belongs to, whose order it is part of.
pub(super) fn notification(method: &str, params: &impl Serialize, chat: Option<Arc<str>>) -> Frame {
    Frame::Plain { body: body(None, method, params), chat, kind: Kind::Notification }
}

fn body(id: Option<i64>, method: &str, params: &impl Serialize) -> Vec<u8> {
    // Our own types always serialise: they are plain data with text keys.
    serde_json::to_vec(&Outgoing { jsonrpc: "2.0", id, method, params }).unwrap_or_default()
}
