//! Where hooks of the user have a say in a chat: when it begins, before and after a turn, when
//! its status changes and when it is deleted.

use std::sync::{Arc, PoisonError};

use tokio_util::sync::CancellationToken;

use super::super::event::{ChatEvent, ChatStatus};
use super::super::hooks::Hooks;
use super::super::prompt::Prompt;
use super::super::request;
use super::ChatActor;
use crate::base::task;
use crate::base::{ContentId, ModelId};
use crate::config::HookType;
use crate::customization::hooks::event::ChatStatus as HookedStatus;
use crate::customization::hooks::{ChatFacts, HookEvent, Said};
use crate::customization::prompt::additional_context;
use crate::llm::{Part, Role};
use crate::store::{MessageKind, NewMessage};

/// Turns that hooks start one after the other; more would be a loop.
const MOST_FOLLOW_UPS: u32 = 10;

/// What the last prompt was, for what follows it.
#[derive(Clone)]
pub(super) struct Last {
    prompt: Prompt,
    hooks: Hooks,
    facts: Arc<ChatFacts>,
    follow_ups: u32,
}

impl ChatActor {
    /// Runs what comes before a turn. `false` when a hook does not want it; the user knows why then.
    pub(super) async fn hooks_before_turn(&mut self, prompt: &Prompt, model: &ModelId, is_command: bool) -> bool {
        let hooks = self.hooks(prompt);
        let settings = self.shared.settings();
        let (agent, _) =
            settings.config().agent_name(prompt.agent.as_deref().unwrap_or(&settings.config().default_agent));
        let facts = Arc::new(self.facts(prompt, &agent, Some(model)));
        self.last =
            Some(Last { prompt: prompt.clone(), hooks: hooks.clone(), facts: Arc::clone(&facts), follow_ups: 0 });
        let stop = self.new_stop();
        if !std::mem::replace(&mut self.began, true) {
            let event = match &self.lineage {
                Some(lineage) => HookEvent::SubagentStart { parent: lineage.parent.clone() },
                None => HookEvent::ChatStart { resumed: self.history.len() > 1 },
            };
            let said = hooks.run(event, &facts, &stop).await;
            self.tell_hook_messages(&said.messages).await;
            self.start_contexts =
                said.additional_context.into_iter().map(|said| (format!("hook {}", said.hook), said.text)).collect();
        }
        if !hooks.has(HookType::PreRequest) {
            return true;
        }
        let text = prompt.text.trim().to_owned();
        let event = HookEvent::PreRequest { prompt: text, replaceable: !is_command };
        let said = hooks.run(event, &facts, &stop).await;
        self.tell_hook_messages(&said.messages).await;
        let blocked = said.blocked.map(|said| (said.hook, Some(said.text)));
        if let Some((hook, why)) = blocked.or_else(|| said.stopped.map(|stopped| (stopped.hook, stopped.reason))) {
            let why = why.map(|why| format!(": {why}")).unwrap_or_default();
            self.emit(ChatEvent::SystemText(format!("\n\nThe hook \"{hook}\" does not want this prompt sent{why}\n")))
                .await;
            self.emit_status(ChatStatus::Idle).await;
            self.emit(ChatEvent::Finished).await;
            return false;
        }
        if let Some(message) = self.history.last_mut().filter(|message| message.role == Role::User) {
            if let (Some(replaced), Some(Part::Text(text))) = (said.replaced_prompt, message.parts.last_mut()) {
                *text = replaced;
            }
            if !said.additional_context.is_empty() {
                let texts = said.additional_context.iter().map(|said| said.text.as_str());
                message.parts.push(Part::Text(additional_context(texts)));
            }
        }
        true
    }

    /// Runs what comes after a turn that answered. What a hook wants to be done next begins a turn.
    pub(super) async fn follow_up(&mut self) -> bool {
        let Some(last) = self.last.clone() else { return false };
        let kind = if self.lineage.is_some() { HookType::SubagentPostRequest } else { HookType::PostRequest };
        if !last.hooks.has(kind) || last.follow_ups >= MOST_FOLLOW_UPS {
            return false;
        }
        let (response, follow_up_active) = (self.last_answer(), last.follow_ups > 0);
        let event = match &self.lineage {
            Some(lineage) => {
                let parent = lineage.parent.clone();
                HookEvent::SubagentPostRequest { response, follow_up_active, parent }
            }
            None => HookEvent::PostRequest { response, follow_up_active, parent: None },
        };
        let stop = self.new_stop();
        let said = last.hooks.run(event, &last.facts, &stop).await;
        self.tell_hook_messages(&said.messages).await;
        let Some(text) = said.follow_up.filter(|_| said.stopped.is_none() && !stop.is_cancelled()) else {
            return false;
        };
        let Some(model) = self.model.clone() else { return false };
        let Some(provider) = self.shared.settings().registry.provider(model.provider()) else { return false };
        let (content_id, message) = (ContentId::random(), request::user_text(&text));
        let item =
            NewMessage { content_id: Some(content_id.clone()), ..NewMessage::new(MessageKind::User, message.clone()) };
        self.append(item).await;
        self.history.push(message);
        self.emit(ChatEvent::UserText { text: format!("{text}\n"), content_id }).await;
        self.last = Some(Last { follow_ups: last.follow_ups + 1, ..last.clone() });
        self.start_turn(&last.prompt, model, provider, Vec::new(), None, None).await;
        true
    }

    pub(super) async fn hooks_at_end(&self) {
        if let Some(last) = &self.last {
            let _ = last.hooks.run(HookEvent::ChatEnd, &last.facts, &CancellationToken::new()).await;
        }
    }

    /// Beside everything else: nobody waits for it.
    pub(super) fn hooks_on_status(&self, status: ChatStatus) {
        let Some(last) = self.last.clone().filter(|last| last.hooks.has(HookType::ChatStatusChanged)) else { return };
        let pending = self.live.mail.waiting();
        let word = match status {
            ChatStatus::Idle => "idle",
            ChatStatus::Running => "running",
            ChatStatus::Stopping => "stopping",
            ChatStatus::Login => "login",
        };
        let event = HookEvent::ChatStatusChanged(HookedStatus {
            status: word.to_owned(),
            awaiting_user_input: !pending.is_empty(),
            pending_approvals: pending,
            parent: self.lineage.as_ref().map(|lineage| lineage.parent.clone()),
            ..HookedStatus::default()
        });
        task::spawn(async move { last.hooks.run(event, &last.facts, &CancellationToken::new()).await });
    }

    /// A token that a stop cancels, for what happens outside of a turn.
    fn new_stop(&self) -> CancellationToken {
        let stop = CancellationToken::new();
        *self.live.turn.lock().unwrap_or_else(PoisonError::into_inner) = stop.clone();
        stop
    }

    async fn tell_hook_messages(&self, messages: &[Said]) {
        for said in messages {
            self.emit(ChatEvent::SystemText(format!("\n\n{}\n\n", said.text))).await;
        }
    }
}
