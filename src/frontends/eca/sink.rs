//! Engine events on their way to the client: translated on the task that emits them, then queued.

use std::sync::Arc;

use custom_methods::general::{MessageType, ShowMessageParams};
use custom_methods::methods::{ConfigUpdated, ProvidersUpdated, ShowMessage};
use futures_util::future::BoxFuture;
use lsp_types::notification::Notification;

use super::client::{Client, notification};
use super::handlers::provider_status;
use super::session::Session;
use super::start::config_update;
use super::to_wire::{Translator, Whose};
use crate::engine::{ChatEvent, Event, EventSink, NoticeLevel};
use crate::frontends::queue::queue;
use crate::transport::Frame;

/// An editor's sink: a slow editor makes the chat wait, nothing is dropped.
pub(super) struct OutboxSink {
    client: Client,
    speaker: Speaker,
}

impl OutboxSink {
    pub(super) fn new(client: Client, session: Arc<Session>) -> Self {
        Self { client, speaker: Speaker::new(session) }
    }
}

/// Puts engine events into the words of one connection.
pub(super) struct Speaker {
    session: Arc<Session>,
    translator: Translator,
}

impl Speaker {
    pub(super) fn new(session: Arc<Session>) -> Self {
        Self { session, translator: Translator::default() }
    }

    fn chat_event(&self, whose: Whose<'_>, event: ChatEvent) -> Vec<Frame> {
        self.translator.chat_event(whose, event, self.session.is_v0())
    }

    pub(super) fn frames(&self, event: Event) -> Vec<Frame> {
        match event {
            Event::Chat { chat, event } => self.chat_event(Whose::own(&chat), event),
            Event::Subagent { chat, parent, event } => {
                self.chat_event(Whose { chat: &chat, parent: Some(&parent) }, event)
            }
            Event::ModelsChanged => config_update(&self.session)
                .map(|params| notification(ConfigUpdated::METHOD, &params, None))
                .into_iter()
                .collect(),
            Event::ProviderChanged { id } => provider_status(&self.session, &id)
                .map(|status| notification(ProvidersUpdated::METHOD, &status, None))
                .into_iter()
                .collect(),
            Event::Notice { level, text } => {
                let kind = match level {
                    NoticeLevel::Info => MessageType::Info,
                    NoticeLevel::Warning => MessageType::Warning,
                    NoticeLevel::Error => MessageType::Error,
                };
                show_message(&self.session, kind, text)
            }
        }
    }
}

impl EventSink for OutboxSink {
    fn emit(&self, event: Event) -> Option<BoxFuture<'static, ()>> {
        queue(&self.client.outbox, self.speaker.frames(event))
    }
}

/// A message for the user, in the words that this client shows.
pub(super) fn show_message(session: &Session, kind: MessageType, text: String) -> Vec<Frame> {
    let lsp = session.started().is_some_and(|started| started.client.is_lsp).then(|| {
        let typ = match kind {
            MessageType::Error => lsp_types::MessageType::ERROR,
            MessageType::Warning => lsp_types::MessageType::WARNING,
            MessageType::Info => lsp_types::MessageType::INFO,
        };
        let params = lsp_types::ShowMessageParams { typ, message: text.clone() };
        notification(lsp_types::notification::ShowMessage::METHOD, &params, None)
    });
    let own = notification(ShowMessage::METHOD, &ShowMessageParams { kind, message: text }, None);
    std::iter::once(own).chain(lsp).collect()
}
