//! Sending events of one chat, with the rule that a stopped turn never waits for a slow client.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use super::event::{ChatEvent, Event, EventSink};
use crate::base::ChatId;

/// The turn was stopped while it wanted to say something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stopped;

/// A turn's way out. Clones share the token.
#[derive(Clone)]
pub(super) struct Emitter {
    pub(super) chat: ChatId,
    pub(super) sink: Arc<dyn EventSink>,
    pub(super) stop: CancellationToken,
}

impl Emitter {
    pub(super) async fn emit(&self, event: ChatEvent) -> Result<(), Stopped> {
        if self.stop.is_cancelled() {
            return Err(Stopped);
        }
        match self.sink.emit(Event::Chat { chat: self.chat.clone(), event }) {
            None => Ok(()),
            Some(room) => tokio::select! {
                biased;
                () = self.stop.cancelled() => Err(Stopped),
                () = room => Ok(()),
            },
        }
    }
}

/// Says something that no turn can take back, however slow the client is.
pub(super) async fn say(sink: &dyn EventSink, event: Event) {
    if let Some(room) = sink.emit(event) {
        room.await;
    }
}
