//! From messages to the service and back: the order in which things happen.
//!
//! Notifications run one after the other. A request is polled once, right here, in the order of
//! arrival, and moves to a task of its own only if it is not done then: so a stop that follows a
//! prompt finds the prompt submitted. Nothing here waits for the client, a model or a person.

use std::sync::Arc;

use futures_util::FutureExt;
use serde_json::Value;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tower::{Service, ServiceExt};
use tower_lsp::jsonrpc::{Error, ErrorCode, Id, Request, Response};

use super::response_slot::ResponseSlot;
use crate::base::task;
use crate::frontends::traffic;
use crate::transport::{self, Frame, Incoming, Kind, Message, Outbox, Pending};

/// Requests that may be unanswered at a time; more are refused.
const MAX_IN_FLIGHT: usize = 1024;

/// Why the client's messages ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    /// End of input.
    Input,
    /// The service was told to exit.
    Exit,
}

pub(super) struct Dispatcher<S> {
    pub(super) service: S,
    pub(super) outbox: Outbox,
    pub(super) pending: Arc<Pending>,
    pub(super) in_flight: Arc<Semaphore>,
}

impl<S, E> Dispatcher<S>
where
    S: Service<Request, Response = Option<Response>, Error = E>,
    S::Future: Send + 'static,
    E: Send + 'static,
{
    pub(super) fn new(service: S, outbox: Outbox, pending: Arc<Pending>) -> Self {
        Self { service, outbox, pending, in_flight: Arc::new(Semaphore::new(MAX_IN_FLIGHT)) }
    }

    pub(super) async fn run(&mut self, incoming: &mut mpsc::Receiver<Incoming>) -> End {
        while let Some(next) = incoming.recv().await {
            match next {
                Incoming::End { .. } => return End::Input,
                Incoming::Bad { code, message, id } => {
                    tracing::warn!(code, %message, "a message could not be read");
                    let error = Error { code: ErrorCode::from(code), message: message.into(), data: None };
                    let id = id.map_or(Id::Null, framework_id);
                    // Dropped when the client floods us and does not read: it would not see it.
                    let _ = self.outbox.try_push(response_frame(&Response::from_error(id, error)));
                }
                Incoming::Message { message, .. } => {
                    if self.on_message(message).await.is_err() {
                        return End::Exit;
                    }
                }
            }
        }
        End::Input
    }

    /// Waits until every request that is being handled has its answer queued. Needs a deadline.
    pub(super) async fn all_answered(&self) {
        let all = u32::try_from(MAX_IN_FLIGHT).unwrap_or(u32::MAX);
        let _ = self.in_flight.acquire_many(all).await;
    }

    /// An error means that the service has exited.
    async fn on_message(&mut self, message: Message) -> Result<(), E> {
        match message {
            Message::Response { id, outcome } => {
                if !self.pending.resolve(&id, outcome) {
                    tracing::debug!(?id, "an answer to nothing we asked");
                }
                Ok(())
            }
            Message::Notification { method, params } => {
                traffic::received(&method, params.as_ref());
                let request = request(method, None, params);
                self.service.ready().await?.call(request).await.map(|_| ())
            }
            Message::Request { id, method, params } => {
                traffic::received(&method, params.as_ref());
                self.on_request(framework_id(id), method, params).await
            }
        }
    }

    async fn on_request(&mut self, id: Id, method: String, params: Option<Value>) -> Result<(), E> {
        let Ok(permit) = Arc::clone(&self.in_flight).try_acquire_owned() else {
            let error = Error {
                code: ErrorCode::ServerError(-32000),
                message: "too many requests are unanswered".into(),
                data: None,
            };
            let _ = self.outbox.try_push(response_frame(&Response::from_error(id, error)));
            return Ok(());
        };
        // What follows an initialize depends on its outcome, so the lane waits for that one.
        let wait_here = method == "initialize";
        let slot = ResponseSlot::default();
        let call = self.service.ready().await?.call(request(method, Some(id), params));
        let mut call = Box::pin(slot.scope(call));
        let done = if wait_here { Some(call.as_mut().await) } else { call.as_mut().now_or_never() };
        match done {
            Some(response) => self.answer(response?, slot, permit),
            None => {
                let outbox = self.outbox.clone();
                task::spawn(async move {
                    if let Ok(Some(response)) = call.await {
                        let _ = outbox.push(response_frame(&response)).await;
                    }
                    slot.release();
                    drop(permit);
                });
            }
        }
        Ok(())
    }

    fn answer(&self, response: Option<Response>, slot: ResponseSlot, permit: OwnedSemaphorePermit) {
        let Some(response) = response else { return slot.release() };
        match self.outbox.try_push(response_frame(&response)) {
            Err(transport::PushError::Full(frame)) => {
                let outbox = self.outbox.clone();
                task::spawn(async move {
                    let _ = outbox.push(frame).await;
                    slot.release();
                    drop(permit);
                });
            }
            Ok(()) | Err(transport::PushError::Closed) => slot.release(),
        }
    }
}

fn request(method: String, id: Option<Id>, params: Option<Value>) -> Request {
    let mut builder = Request::build(method);
    if let Some(id) = id {
        builder = builder.id(id);
    }
    if let Some(params) = params {
        builder = builder.params(params);
    }
    builder.finish()
}

fn response_frame(response: &Response) -> Frame {
    let body = serde_json::to_vec(response).unwrap_or_default();
    Frame::Plain { body, chat: None, kind: Kind::Response }
}

fn framework_id(id: transport::Id) -> Id {
    match id {
        transport::Id::Number(number) => Id::Number(number),
        transport::Id::String(text) => Id::String(text),
        transport::Id::Null => Id::Null,
    }
}
