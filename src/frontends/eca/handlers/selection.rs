//! What the user selects in the client: a model, a variant of it, an agent. Each prompt carries
//! its own choice; here the client learns what goes with the new selection.

use custom_methods::ChatId as WireChatId;
use custom_methods::chat::{
    ChatSelectedAgentChangedParams, ChatSelectedBehaviorChangedParams, ChatSelectedModelChangedParams,
};
use custom_methods::config::{ChatConfig, ConfigUpdatedParams};
use custom_methods::methods::{
    ChatSelectedAgentChanged, ChatSelectedBehaviorChanged, ChatSelectedModelChanged, ConfigUpdated, ToolServerUpdated,
};
use lsp_types::notification::Notification;

use super::super::client::notification;
use super::super::service::{EcaServer, Take};
use super::super::session::{Session, Started};
use super::super::{from_wire, servers, to_wire};
use crate::base::task;
use crate::base::{ChatId, ModelId};
use crate::engine::Engine;
use crate::frontends::queue::queue;
use crate::transport::Frame;

impl Take<ChatSelectedModelChanged> for EcaServer {
    fn take(&self, params: ChatSelectedModelChangedParams) {
        if let Ok(started) = self.started() {
            self.send(model_selected(&self.session, started, params));
        }
    }
}

impl Take<ChatSelectedAgentChanged> for EcaServer {
    fn take(&self, params: ChatSelectedAgentChangedParams) {
        if let Ok(started) = self.started() {
            self.send(agent_selected(&self.session, started, params));
        }
    }
}

impl Take<ChatSelectedBehaviorChanged> for EcaServer {
    fn take(&self, params: ChatSelectedBehaviorChangedParams) {
        Take::<ChatSelectedAgentChanged>::take(self, params);
    }
}

/// The variants of the model that the client shows as selected, and the one to select.
pub(in super::super) fn shown_variants(
    session: &Session,
    engine: &Engine,
    agent: &str,
    default_model: &ModelId,
) -> (Vec<String>, Option<String>) {
    let selection = session.selection();
    let told = || session.was_prompted().then(|| session.told_model()).flatten();
    let model = selection.model.clone().or_else(told).unwrap_or_else(|| default_model.clone());
    let agent = selection.agent.as_deref().unwrap_or(agent);
    variants(engine, &model, selection.variant.as_deref(), agent)
}

/// A model's variants, and which of them to select: the wished one, else the agent's.
fn variants(engine: &Engine, model: &ModelId, wished: Option<&str>, agent: &str) -> (Vec<String>, Option<String>) {
    let names = engine.registry().variants(model);
    let preferred = engine.agent(agent).variant;
    let known = |name: &&str| names.iter().any(|known| known == name);
    let selected = wished.filter(known).or_else(|| preferred.as_deref().filter(known)).map(str::to_owned);
    (names, selected)
}

fn model_selected(session: &Session, started: &Started, params: ChatSelectedModelChangedParams) -> Vec<Frame> {
    let (chat, chats_model) = scope(session, params.chat_id);
    let selection = session.selection();
    let current = chats_model.or_else(|| selection.model.clone());
    let wanted = params.model.as_deref().unwrap_or_default();
    let model = match started.engine.registry().resolve(wanted, current.as_ref()) {
        Ok(model) => model,
        Err(error) => {
            // A prompt with this model will say so to the user; until then there is nothing to offer.
            tracing::debug!(%error, "an unknown model was selected");
            return vec![updated(session, chat, None, Vec::new(), None)];
        }
    };
    let agent = selection.agent.unwrap_or_else(|| session.presentation().default_agent);
    let (names, selected) = variants(&started.engine, &model, params.variant.as_deref(), &agent);
    if chat.is_none() {
        session.select(|selection| {
            selection.model = Some(model);
            selection.variant.clone_from(&selected);
        });
    }
    vec![updated(session, chat, None, names, selected)]
}

fn agent_selected(session: &Session, started: &Started, params: ChatSelectedAgentChangedParams) -> Vec<Frame> {
    let named = params.agent.or(params.behavior).unwrap_or_else(|| session.presentation().default_agent);
    let agent = from_wire::agent(&named);
    let (chat, chats_model) = scope(session, params.chat_id);
    let current = chats_model.clone().or_else(|| session.selection().model);
    let mut frames = Vec::new();
    // A chat that has a model keeps it, whatever the agent prefers.
    if let Some(preferred) = started.engine.agent_model(agent, current.as_ref()) {
        let model = chats_model.unwrap_or(preferred);
        let (names, selected) = variants(&started.engine, &model, None, agent);
        if chat.is_none() {
            session.select(|selection| {
                selection.model = Some(model.clone());
                selection.variant.clone_from(&selected);
            });
        }
        frames.push(updated(session, chat.clone(), Some(model), names, selected));
    }
    if chat.is_none() {
        session.select(|selection| selection.agent = Some(agent.to_owned()));
    }
    let lists = servers::tool_lists(started, agent);
    frames.extend(lists.iter().map(|list| notification(ToolServerUpdated::METHOD, list, None)));
    frames
}

/// The chat a selection is for, with its model; one that nobody prompted is not known, and the
/// selection is then for all.
fn scope(session: &Session, chat: Option<WireChatId>) -> (Option<ChatId>, Option<ModelId>) {
    let chat = chat.and_then(|id| ChatId::from_client(&id.0).ok());
    match chat.and_then(|chat| Some((session.chat_model(&chat)?, chat))) {
        Some((model, chat)) => (Some(chat), model),
        None => (None, None),
    }
}

fn updated(
    session: &Session,
    chat: Option<ChatId>,
    model: Option<ModelId>,
    variants: Vec<String>,
    selected: Option<String>,
) -> Frame {
    let config = ChatConfig {
        select_model: model.map(|model| model.to_string()),
        variants: Some(variants),
        select_variant: Some(selected),
        ..ChatConfig::default()
    };
    if chat.is_none() {
        session.note_told(&config);
    }
    let params = ConfigUpdatedParams { chat_id: chat.as_ref().map(to_wire::wire_chat_id), chat: Some(config) };
    notification(ConfigUpdated::METHOD, &params, None)
}

impl EcaServer {
    /// Queues `frames` in order, at once as long as there is room.
    pub(super) fn send(&self, frames: Vec<Frame>) {
        if let Some(rest) = queue(&self.client().outbox, frames) {
            task::spawn(rest);
        }
    }
}

#[cfg(test)]
mod tests;
