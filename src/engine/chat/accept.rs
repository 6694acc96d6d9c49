//! Accepting a prompt: the order of what happens between a client's request and its response.

use std::sync::{Arc, PoisonError};
use std::time::Duration;

use futures_util::future::join;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use super::super::event::{ChatEvent, ChatStatus};
use super::super::mcp_parts::ServerResources;
use super::super::prompt::{Accepted, AcceptedStatus, Hold, Prompt, ReplyWhen};
use super::super::request::{self, Payload};
use super::super::turn::{Cause, ConnectionReport};
use super::super::{Pace, replay};
use super::commands::Typed;
use super::{ChatActor, Origin};
use crate::base::task;
use crate::base::{ContentId, ModelId};
use crate::context::Places;
use crate::context::render::{self, Rendered};
use crate::llm::{Message, Part, Provider, Role};
use crate::providers::VariantChoice;
use crate::store::{ChatMeta, MessageKind, NewMessage, StoreError};

/// A client that wants to know whether the provider answers waits at most so long.
const CONNECTION_WAIT: Duration = Duration::from_secs(10);

/// A configuration is complete by then, or it never will be: its commands end in this time.
const SETTINGS_WAIT: Duration = Duration::from_secs(30);

impl ChatActor {
    /// Progress, durable record, echo, response, and only then the turn.
    pub(super) async fn on_prompt(&mut self, prompt: Prompt, reply: oneshot::Sender<Accepted>) {
        self.close_turn().await;
        let known = self.load().await;
        if !known && self.origin == Origin::Client {
            self.emit(ChatEvent::Opened { title: None }).await;
        }
        let Some((prompt, reply)) = self.take_login(prompt, reply).await else { return };
        self.wait_for_settings().await;
        if let Some(trust) = prompt.trust {
            self.live.mail.set_trust(trust);
        }
        let _ = self.live.mail.take_steer();
        let (compact_now, expanded) = match self.read_command(&prompt).await {
            Typed::Problem(problem) => return self.refuse_command(&prompt, &problem, reply).await,
            Typed::Local(native, rest) => return self.run_local(&prompt, native, &rest, reply).await,
            Typed::Compact(about) => (Some(Cause::User(about)), None),
            Typed::Expanded(text) => (None, Some(text)),
            Typed::ForModel => (None, None),
        };
        if let Some(problem) = self.claim().await {
            return self.refuse_command(&prompt, &problem, reply).await;
        }
        let is_command = compact_now.is_some() || expanded.is_some();
        let default_agent = self.shared.settings().config().default_agent.clone();
        let wanted = prompt.model.as_deref().unwrap_or_default();
        let chosen = self.choose_model(wanted, prompt.agent.as_deref().unwrap_or(&default_agent));
        self.announce(&prompt).await;
        self.clear_done_tasks().await;
        let mut notes = match &compact_now {
            // A wish about the chat is not part of it.
            Some(_) => {
                let text = format!("{}\n", prompt.text.trim());
                self.emit(ChatEvent::UserText { text, content_id: ContentId::random() }).await;
                Vec::new()
            }
            None => self.record_prompt(&prompt, expanded, chosen.as_ref().ok().map(|(model, _)| model)).await,
        };
        let (hold, held) = Hold::new();
        match chosen {
            Ok((model, provider)) => {
                notes.extend(self.lost_by_switching_to(&model, provider.dialect()));
                self.model = Some(model.clone());
                let accepted = Accepted {
                    chat: self.id.clone(),
                    model: model.to_string(),
                    status: AcceptedStatus::Prompting,
                    message: format!("Sent to {model}."),
                    hold,
                };
                let connection = if prompt.reply == ReplyWhen::Connected {
                    let (report, outcome) = oneshot::channel();
                    task::spawn(reply_when_connected(accepted, outcome, reply));
                    Some(ConnectionReport { report, held })
                } else {
                    let _ = reply.send(accepted);
                    held.released().await;
                    None
                };
                // A client that waits for the connection is told of the provider, not of hooks.
                if connection.is_some() || self.hooks_before_turn(&prompt, &model, is_command).await {
                    self.start_turn(&prompt, model, provider, notes, connection, compact_now).await;
                }
            }
            Err(problem) => {
                let _ = reply.send(Accepted {
                    chat: self.id.clone(),
                    model: wanted.to_owned(),
                    status: AcceptedStatus::Error,
                    message: problem.clone(),
                    hold,
                });
                held.released().await;
                self.emit(ChatEvent::Failed(format!("\n\n{problem}"))).await;
                self.emit(ChatEvent::Status(ChatStatus::Idle)).await;
                self.emit(ChatEvent::Finished).await;
            }
        }
    }

    /// A prompt that comes before the configuration is complete would choose among too few models,
    /// or use one without its key. Whatever else the user does with this chat ends the wait: the
    /// prompt then goes on, and is stopped or replaced right after it began, in order.
    async fn wait_for_settings(&self) {
        let mut holds = self.shared.holds.subscribe();
        if *holds.borrow() == 0 {
            return;
        }
        let interrupted = CancellationToken::new();
        *self.live.turn.lock().unwrap_or_else(PoisonError::into_inner) = interrupted.clone();
        self.emit(ChatEvent::Progress("Reading the configuration".into())).await;
        if !self.inbox.is_empty() {
            return;
        }
        tokio::select! {
            _ = holds.wait_for(|holds| *holds == 0) => {}
            () = interrupted.cancelled() => {}
            () = tokio::time::sleep(SETTINGS_WAIT) => tracing::warn!("the configuration is still not complete"),
        }
    }

    /// The model that is asked for, else the one this chat has, else the agent's, else the default.
    pub(super) fn choose_model(&self, wanted: &str, agent: &str) -> Result<(ModelId, Arc<dyn Provider>), String> {
        let settings = self.shared.settings();
        let registry = &settings.registry;
        let with_provider = |model: ModelId| registry.provider(model.provider()).map(|provider| (model, provider));
        if wanted.trim().is_empty()
            && let Some(kept) = self.model.clone().and_then(with_provider)
        {
            return Ok(kept);
        }
        let preferred = settings.config().agent_of(agent).default_model;
        let chosen_by_us = matches!(wanted.trim(), "" | "auto");
        if let Some(name) = preferred.as_deref().filter(|_| chosen_by_us)
            && let Some(found) = registry.resolve(name, self.model.as_ref()).ok().and_then(with_provider)
        {
            return Ok(found);
        }
        let model = registry.resolve(wanted, self.model.as_ref()).map_err(|unknown| unknown.to_string())?;
        let missing = format!("{model} has no provider in the configuration. Choose another model.");
        with_provider(model).ok_or(missing)
    }

    /// Vendors sign or encrypt what their models think and look up, and refuse each other's; it is
    /// left out of the request then, which the user should know.
    fn lost_by_switching_to(&self, model: &ModelId, dialect: &str) -> Option<String> {
        let before = self.model.as_ref().filter(|before| *before != model)?;
        let replay = |part: &Part| match part {
            Part::Reasoning { replay, .. } | Part::ToolCall { replay, .. } => replay.clone(),
            Part::Opaque(replay) => Some(replay.clone()),
            Part::Text(_) | Part::Image(_) | Part::ToolResult { .. } => None,
        };
        let mut replays = self.history.iter().flat_map(|message| &message.parts).filter_map(replay);
        replays.any(|replay| replay.dialect != dialect).then(|| {
            format!("{model} cannot read the thoughts that {before} left in this chat; the rest is sent along.\n\n")
        })
    }

    /// What the chosen variant, or else the agent's, adds to every request of the turn. Only a
    /// choice of the user's own is worth a note when the model does not have it.
    pub(super) fn variant_payload(
        &self,
        wanted: Option<&str>,
        agent: &str,
        model: &ModelId,
        notes: &mut Vec<String>,
    ) -> Payload {
        let wanted = wanted.map(str::trim).filter(|name| !name.is_empty());
        let settings = self.shared.settings();
        let preferred = settings.config().agent_of(agent).variant;
        let choice = settings.registry.variant(model, wanted.or(preferred.as_deref()));
        if let (Some(name), VariantChoice::Unknown(_)) = (wanted, &choice) {
            let name = crate::base::text::one_line(name, 40);
            notes.push(format!("{model} has no variant \"{name}\"; it answers as it does without one.\n\n"));
        }
        choice.into_payload()
    }

    pub(super) async fn announce(&self, prompt: &Prompt) {
        let text = match (prompt.contexts.is_empty(), self.shared.pace) {
            (false, _) => "Parsing given context",
            (true, Pace::Normal) => "Starting",
            (true, Pace::Deterministic) => return,
        };
        self.emit(ChatEvent::Progress(text.into())).await;
    }

    /// Makes the user's message part of the history, in memory and in the store, and echoes it.
    /// Returns what the user should be told about contexts that could not be used.
    pub(super) async fn record_prompt(
        &mut self,
        prompt: &Prompt,
        expanded: Option<String>,
        model: Option<&ModelId>,
    ) -> Vec<String> {
        self.close_unanswered().await;
        let text = prompt.text.trim().to_owned();
        let content_id = ContentId::random();
        let mut parts = Vec::new();
        let mut notes = Vec::new();
        // What a model writes with an `@` before it was not pointed at by the user.
        let rendered = match self.lineage {
            Some(_) => Rendered::default(),
            None => self.render_contexts(prompt, &text, model).await,
        };
        parts.extend(rendered.parts);
        for file in rendered.seen {
            self.memory.seen.saw(&file.path, file.content);
        }
        if !rendered.problems.is_empty() {
            notes.push(format!("Left out of this prompt:\n- {}\n\n", rendered.problems.join("\n- ")));
        }
        // Last, after what it is about.
        let typed = expanded.is_some().then(|| text.clone());
        parts.push(Part::Text(expanded.unwrap_or_else(|| text.clone())));
        let message = Message { role: Role::User, parts };
        self.prompts += 1;
        let item = NewMessage {
            content_id: Some(content_id.clone()),
            extra: typed.and_then(|typed| replay::typed_extra(&typed)),
            ..NewMessage::new(MessageKind::User, message.clone())
        };
        let kept = self.keep_prompt(item, prompt, model).await;
        self.history.push(message);
        if let Err(error) = kept {
            self.shared.warn_about_store(&error).await;
        }
        self.emit(ChatEvent::UserText { text: format!("{text}\n"), content_id }).await;
        notes
    }

    /// A question that was left without an answer must not read like a part of the next one.
    async fn close_unanswered(&mut self) {
        let ends_open = self.history.last().is_some_and(|last| last.role == Role::User);
        if std::mem::take(&mut self.unanswered) && ends_open {
            self.keep(request::interrupted_answer()).await;
        }
    }

    /// What the user points at, as parts of the message.
    async fn render_contexts(&self, prompt: &Prompt, text: &str, model: Option<&ModelId>) -> Rendered {
        let settings = self.shared.settings();
        let info = model.and_then(|model| settings.registry.info(model));
        let roots = prompt.workspace.roots().iter().map(|root| root.path.clone()).collect();
        let sources = render::Sources {
            places: Places { roots, home: self.shared.home.clone() },
            index: Some(self.shared.indexes.of(&prompt.workspace, &settings.config().index)),
            config: settings.config().index.clone(),
            http: settings.http.clone(),
            resources: Arc::new(ServerResources(self.shared.servers.clone())),
            prepare_image: crate::tools::files::prepare_image,
            sees_images: info.as_ref().is_some_and(|info| info.vision),
        };
        let budget = render::Budget::of(info.and_then(|info| info.context_limit));
        render::render(text, &prompt.contexts, &sources, budget).await
    }

    async fn keep_prompt(&self, item: NewMessage, prompt: &Prompt, model: Option<&ModelId>) -> Result<(), StoreError> {
        let meta = ChatMeta {
            model: model.cloned(),
            agent: prompt.agent.clone(),
            workspace_key: Some(super::commands::history_key(prompt).await),
            parent: self.lineage.as_ref().map(|lineage| lineage.parent.clone()),
            ..ChatMeta::new(self.id.clone())
        };
        // Queued together, so that both are one commit.
        let (touched, appended) =
            join(self.shared.store.create_or_touch_chat(meta), self.shared.store.append(&self.id, vec![item])).await;
        touched.and(appended.map(|_| ()))
    }
}

async fn reply_when_connected(
    mut accepted: Accepted,
    outcome: oneshot::Receiver<Result<(), String>>,
    reply: oneshot::Sender<Accepted>,
) {
    // Connected, stopped before it connected, or still trying: the rest comes as chat text.
    if let Ok(Ok(Err(problem))) = tokio::time::timeout(CONNECTION_WAIT, outcome).await {
        accepted.status = AcceptedStatus::ConnectionError;
        accepted.message = problem;
    }
    let _ = reply.send(accepted);
}
