//! Chats that work for another chat: what ties them to it, and what they give back.
//!
//! A subagent is a chat like any other, with an actor and a history of its own. It differs in what
//! it shares with the chat that started it: its events say whose they are, the user's trust and
//! consents count for both, and what it costs is counted there too.

use std::sync::{Arc, Mutex, PoisonError};

use dashmap::mapref::entry::Entry;
use futures_util::future::BoxFuture;
use tokio::sync::{oneshot, watch};

use super::Shared;
use super::chat::{self, Command};
use super::chat_tools::TurnMail;
use super::event::{Event, EventSink};
use super::prompt::Prompt;
use super::turn::{Totals, TurnEnd};
use crate::approval::Remembered;
use crate::base::{ChatId, ToolCallId};

const PREFIX: &str = "subagent-";
/// A provider's id of a call that is longer is not made part of a chat's id.
const MAX_CALL_ID: usize = 100;

/// What a subagent has of the chat that it works for.
pub(super) struct Lineage {
    pub(super) parent: ChatId,
    pub(super) mail: Arc<TurnMail>,
    pub(super) remembered: Arc<Mutex<Remembered>>,
    /// Where the parent finds what was spent for it.
    pub(super) spent: Arc<Mutex<Totals>>,
    /// How many times the model was asked.
    pub(super) steps: watch::Sender<u32>,
}

impl Lineage {
    pub(super) fn spend(&self, totals: Totals) {
        self.spent.lock().unwrap_or_else(PoisonError::into_inner).add(totals.usage, totals.cost);
    }
}

/// What a subagent is to do, and whom it tells how that ended.
pub(super) struct Task {
    pub(super) prompt: Prompt,
    pub(super) report: oneshot::Sender<Report>,
}

/// What a subagent gives back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Report {
    pub(super) end: TurnEnd,
    /// The last thing it said.
    pub(super) text: String,
}

/// Says of every event of a chat for whom that chat works.
pub(super) struct SubagentSink {
    sink: Arc<dyn EventSink>,
    parent: ChatId,
}

impl SubagentSink {
    pub(super) fn new(sink: Arc<dyn EventSink>, parent: ChatId) -> Self {
        Self { sink, parent }
    }
}

impl EventSink for SubagentSink {
    fn emit(&self, event: Event) -> Option<BoxFuture<'static, ()>> {
        self.sink.emit(match event {
            Event::Chat { chat, event } => Event::Subagent { chat, parent: self.parent.clone(), event },
            other => other,
        })
    }
}

impl Shared {
    /// A chat id for the subagent that a call starts. It is made of the call's, which is unique in
    /// its chat only, so an id that is taken becomes another one.
    pub(super) async fn subagent_chat(&self, call: &ToolCallId) -> ChatId {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        let plain = Some(call.as_str()).filter(|call| call.len() <= MAX_CALL_ID && call.chars().all(is_plain));
        if let Some(call) = plain {
            let id = ChatId::new(format!("{PREFIX}{call}"));
            if !self.chats.contains_key(&id) && matches!(self.store.head(&id).await, Ok(None)) {
                return id;
            }
        }
        ChatId::new(format!("{PREFIX}{}", ChatId::random()))
    }

    /// Starts the chat and gives it its task.
    pub(super) fn start_subagent(self: &Arc<Self>, chat: &ChatId, lineage: Lineage, task: Task) -> Result<(), String> {
        let problem = || "The agent could not be started.".to_owned();
        // The lock is held until the task is handed over: the chat leaves the table when it is done.
        let Entry::Vacant(entry) = self.chats.entry(chat.clone()) else { return Err(problem()) };
        let lineage = Some(Arc::new(lineage));
        let handle = entry.insert(chat::spawn(chat.clone(), chat::Origin::Minted, Arc::clone(self), lineage));
        handle.send(Command::Task(Box::new(task))).map_err(|()| problem())
    }

    /// Ends the running turn of a chat, if there is one.
    pub(super) fn stop(&self, chat: &ChatId) {
        if let Some(handle) = self.chats.get(chat) {
            handle.interrupt();
            // A full inbox means that many commands wait; the interruption above has ended the turn.
            let _ = handle.send(Command::Stop);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::ChatEvent;

    #[derive(Default)]
    struct Heard(Mutex<Vec<Event>>);

    impl EventSink for Heard {
        fn emit(&self, event: Event) -> Option<BoxFuture<'static, ()>> {
            self.0.lock().unwrap().push(event);
            None
        }
    }

    #[test]
    fn events_say_for_whom_the_chat_works() {
        let heard = Arc::new(Heard::default());
        let sink = SubagentSink::new(Arc::<Heard>::clone(&heard), ChatId::new("parent"));
        let (chat, event) = (ChatId::new("subagent-1"), ChatEvent::Finished);
        assert!(sink.emit(Event::Chat { chat: chat.clone(), event: event.clone() }).is_none());
        assert!(sink.emit(Event::ModelsChanged).is_none());
        let expected = [Event::Subagent { chat, parent: ChatId::new("parent"), event }, Event::ModelsChanged];
        assert_eq!(*heard.0.lock().unwrap(), expected);
    }
}
