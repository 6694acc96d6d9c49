//! What of a chat outlives its turns: messages, usage and title, in memory and in the store.

use std::sync::{Arc, PoisonError};

use serde_json::Value;

use super::super::event::ChatEvent;
use super::super::prompt::Prompt;
use super::super::request;
use super::super::title::TitleJob;
use super::super::tools::task::TaskList;
use super::super::turn::{Totals, TurnEvent};
use super::{ChatActor, Command, Origin, TASKS, operations};
use crate::base::ModelId;
use crate::base::task;
use crate::customization::prompt;
use crate::llm::{Message, Provider, Role};
use crate::store::{Compaction, MessageExtra, MessageKind, NewMessage, TitleSource};

/// A title is made at the first prompt and again when the subject is clearer.
const TITLE_AT_PROMPTS: [u32; 2] = [1, 3];

impl ChatActor {
    pub(super) fn title_job(&self, model: &ModelId, provider: &Arc<dyn Provider>, prompt: &Prompt) -> Option<TitleJob> {
        let settings = self.shared.settings();
        let config = settings.config();
        let due = config.chat.title
            && self.lineage.is_none()
            && !self.named_by_user
            && TITLE_AT_PROMPTS.contains(&self.prompts);
        let prompts = config.prompts_of(prompt.agent.as_deref().unwrap_or(&config.default_agent));
        due.then(|| TitleJob {
            provider: Arc::clone(provider),
            model: model.clone(),
            history: self.history.clone(),
            instructions: prompt::title(&prompts),
        })
    }

    pub(super) fn make_title_aside(&self, job: TitleJob) {
        let inbox = self.own_inbox.clone();
        task::spawn(async move {
            if let (Some(title), Some(inbox)) = (job.run().await, inbox.upgrade()) {
                let _ = inbox.send(Command::Title(title)).await;
            }
        });
    }

    pub(super) async fn on_title(&mut self, title: String) {
        if self.named_by_user {
            return;
        }
        self.keep_title(&title).await;
        self.emit(ChatEvent::Title(title)).await;
    }

    async fn keep_title(&self, title: &str) {
        if let Err(error) = self.shared.store.set_title(&self.id, title, TitleSource::Auto).await {
            self.shared.warn_about_store(&error).await;
        }
    }

    pub(super) async fn on_turn_event(&mut self, event: TurnEvent) {
        match event {
            TurnEvent::Record { message, extra, done } => {
                self.keep_with(message, extra).await;
                let _ = done.send(());
            }
            TurnEvent::Steered { text, content_id, done } => {
                let message = request::user_text(&text);
                let item =
                    NewMessage { content_id: Some(content_id), ..NewMessage::new(MessageKind::User, message.clone()) };
                self.append(item).await;
                self.history.push(message);
                let _ = done.send(());
            }
            TurnEvent::Usage { last, cost, done } => {
                self.totals.add(last, cost);
                self.occupancy = last.occupancy();
                if let Some(lineage) = &self.lineage {
                    lineage.spend(Totals { usage: last, cost });
                }
                if let Err(error) = self.shared.store.add_usage(&self.id, last, cost).await {
                    self.shared.warn_about_store(&error).await;
                }
                self.count_spent().await;
                let _ = done.send(self.totals);
            }
            TurnEvent::Compacted { message, automatic, done } => {
                let extra =
                    MessageExtra { compaction: Some(Compaction { auto: automatic }), ..MessageExtra::default() };
                let marker =
                    NewMessage { extra: extra.to_value(), ..NewMessage::new(MessageKind::Marker, message.clone()) };
                self.append(marker).await;
                self.history = vec![message];
                let _ = done.send(());
            }
            TurnEvent::Title(title) => self.keep_title(&title).await,
        }
    }

    /// Counts what others used for this chat.
    pub(super) async fn count_spent(&mut self) {
        let Some(Totals { usage, cost }) = self.memory.take_spent() else { return };
        self.totals.add(usage, cost);
        if let Err(error) = self.shared.store.add_spending(&self.id, usage, cost).await {
            self.shared.warn_about_store(&error).await;
        }
    }

    pub(super) async fn keep(&mut self, message: Message) {
        self.keep_with(message, None).await;
    }

    pub(super) async fn keep_with(&mut self, message: Message, extra: Option<Value>) {
        let kind = match message.role {
            Role::Assistant => MessageKind::Assistant,
            Role::User => MessageKind::ToolResult,
        };
        self.append(NewMessage { extra, ..NewMessage::new(kind, message.clone()) }).await;
        self.history.push(message);
    }

    pub(super) async fn append(&self, item: NewMessage) {
        if let Err(error) = self.shared.store.append(&self.id, vec![item]).await {
            self.shared.warn_about_store(&error).await;
        }
    }

    /// Brings the chat back from the store, once. Returns whether it was known before.
    pub(super) async fn load(&mut self) -> bool {
        if std::mem::replace(&mut self.loaded, true) {
            return true;
        }
        // An id that we just made up cannot be in the store.
        if self.origin == Origin::Minted {
            return true;
        }
        match self.shared.store.load(&self.id).await {
            Ok(Some(stored)) => {
                let prompts = stored.messages.iter().filter(|entry| entry.kind == MessageKind::User).count();
                self.prompts = u32::try_from(prompts).unwrap_or(u32::MAX);
                self.memory.note_calls(stored.messages.iter().map(|entry| &entry.message));
                let last = stored.messages.last().map(|entry| entry.kind.clone());
                self.unanswered = !matches!(last, None | Some(MessageKind::Marker | MessageKind::SystemNote));
                self.history = operations::since_compaction(stored.messages);
                self.live.mail.set_trust(stored.trust.unwrap_or(false));
                self.model = stored.model;
                self.totals = Totals { usage: stored.total_usage, cost: stored.cost_usd };
                self.occupancy = stored.last_usage.occupancy();
                if let Ok(Some(tasks)) = self.shared.store.state(&self.id, TASKS).await {
                    *self.memory.tasks.lock().unwrap_or_else(PoisonError::into_inner) = TaskList::from_json(&tasks);
                }
                self.named_by_user = stored.title_source == Some(TitleSource::User);
                true
            }
            Ok(None) => false,
            Err(error) => {
                self.shared.warn_about_store(&error).await;
                false
            }
        }
    }
}
