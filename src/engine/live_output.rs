//! What a running tool shows meanwhile. It is thrown away rather than waited for when the client is
//! slow, and said only so often: the end of the call says everything once more.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use super::emitter::Emitter;
use super::event::{ChatEvent, Event};
use crate::base::{ToolCallId, text};
use crate::tool::{Details, LiveOutput};

/// Progress is not told more often than this.
const EVERY: Duration = Duration::from_millis(250);
const MAX_LINE: usize = 200;

/// Gives the call's event with new details, and its id.
type Running = Box<dyn Fn(Option<Details>) -> Option<(ToolCallId, ChatEvent)> + Send + Sync>;

/// The live output of one call.
pub(super) struct CallOutput {
    emitter: Emitter,
    running: Running,
    told: Mutex<Option<Instant>>,
}

impl CallOutput {
    pub(super) fn with(emitter: Emitter, running: Running) -> Self {
        Self { emitter, running, told: Mutex::new(None) }
    }

    fn say(&self, event: ChatEvent) {
        if !self.emitter.stop.is_cancelled() {
            // No room: given up.
            drop(self.emitter.sink.emit(Event::Chat { chat: self.emitter.chat.clone(), event }));
        }
    }

    fn is_due(&self) -> bool {
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        let due = told.is_none_or(|told| told.elapsed() >= EVERY);
        if due {
            *told = Some(Instant::now());
        }
        due
    }
}

impl LiveOutput for CallOutput {
    fn output(&self, text: &str) {
        if let Some((id, _)) = (self.running)(None) {
            self.say(ChatEvent::ToolOutput { id, text: text.to_owned() });
        }
    }

    fn progress(&self, text: &str) {
        if self.is_due() {
            self.say(ChatEvent::Progress(text::one_line(text, MAX_LINE)));
        }
    }

    fn details(&self, details: Details) {
        if let Some((_, event)) = (self.running)(Some(details)) {
            self.say(event);
        }
    }
}
