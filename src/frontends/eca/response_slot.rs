//! Things that must live until a response is queued.
//!
//! `chat/prompt` is answered in the middle of a chat's messages: what the chat says next must not
//! overtake the response. The framework's handlers cannot see when their response leaves, so the
//! dispatcher gives each request a slot, and a handler puts in it what holds the chat back.

use std::any::Any;
use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};

tokio::task_local! {
    static CURRENT: ResponseSlot;
}

/// Clones are the same slot; what is in it is dropped with the last one.
#[derive(Clone, Default)]
pub(super) struct ResponseSlot(Arc<Mutex<Vec<Box<dyn Any + Send>>>>);

impl ResponseSlot {
    /// Runs a request's handler with this slot at hand.
    pub(super) fn scope<F: Future>(&self, handler: F) -> impl Future<Output = F::Output> + use<F> {
        CURRENT.scope(self.clone(), handler)
    }

    /// The response is queued: let go.
    pub(super) fn release(self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }
}

/// Keeps `thing` until the response of the request that is being handled is queued. Outside of a
/// request it is dropped at once.
pub(super) fn keep_until_queued(thing: impl Send + 'static) {
    let _ = CURRENT.try_with(|slot| slot.0.lock().unwrap_or_else(PoisonError::into_inner).push(Box::new(thing)));
}
