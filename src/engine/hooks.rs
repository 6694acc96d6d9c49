//! Hooks of the user around what happens in chats: run, shown, and heard.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use super::event::{ChatEvent, Event, EventSink};
use crate::base::ChatId;
use crate::config::HookType;
use crate::customization::hooks::{ChatFacts, HookEvent, HookReport, HookRunner, Setting, Verdict};

/// The hooks that count for one chat or turn.
#[derive(Clone)]
pub(super) struct Hooks {
    pub(super) runner: Arc<HookRunner>,
    pub(super) setting: Arc<Setting>,
    pub(super) sink: Arc<dyn EventSink>,
}

impl Hooks {
    pub(super) fn has(&self, kind: HookType) -> bool {
        self.runner.has(kind)
    }

    /// Runs the hooks for something that happens in a chat. Without any, nothing is put together.
    pub(super) async fn run(&self, event: HookEvent, chat: &ChatFacts, stop: &CancellationToken) -> Verdict {
        if !self.has(event.kind()) {
            return Verdict::default();
        }
        let observer = |report: HookReport| self.show(&chat.chat, report);
        self.runner.run(event, &self.setting, Some(chat), &observer, stop).await
    }

    /// For what belongs to no chat; nobody is shown these.
    pub(super) async fn run_for_session(&self, event: HookEvent) {
        if self.has(event.kind()) {
            let unseen = |_: HookReport| {};
            let _ = self.runner.run(event, &self.setting, None, &unseen, &CancellationToken::new()).await;
        }
    }

    /// Never waits: a hook must not depend on a slow client.
    fn show(&self, chat: &ChatId, report: HookReport) {
        let event = match report {
            HookReport::Started { id, name, .. } => ChatEvent::HookStarted { id, name },
            HookReport::Finished { id, name, tool_call, status, output, error } => {
                ChatEvent::HookFinished { id, name, call: tool_call, status, output, error }
            }
        };
        drop(self.sink.emit(Event::Chat { chat: chat.clone(), event }));
    }
}
