//! One turn: ask the model, answer its tool calls, ask again, until it has nothing more to call.
//!
//! A turn is a task of its own with a snapshot of the history. It tells the client what happens
//! through its [`Emitter`] and tells the chat what to keep through [`TurnEvent`]s, waiting until
//! it is kept. What it has begun and not ended stands in [`OpenState`], so that the chat can close a
//! turn that was stopped, even one that had to be aborted.

mod breakdown;
mod calls;
mod compact;
mod content;
mod failure;
mod gather;
mod hooked;
mod open;

use std::sync::Arc;

use serde_json::Value;
use tokio::sync::{mpsc, oneshot};

use super::chat_tools::TurnTools;
use super::emitter::{Emitter, Stopped};
use super::event::{ChatEvent, Ending, UsageReport};
use super::prompt::Held;
use super::request;
use super::subagent::Lineage;
use super::title::TitleJob;
use super::tool_call::{OpenCall, RepeatGuard};
use crate::base::{ContentId, ModelId, ToolCallId};
use crate::config::{PromptsConfig, RetryConfig};
use crate::llm::{Cost, Delta, LlmError, Message, ModelInfo, Part, Provider, Request, Role, StopReason, Usage};
use crate::providers::retry;

pub(super) use breakdown::shares;
pub(super) use compact::Cause;
pub(super) use failure::random01;
use gather::Gathered;
pub(super) use open::OpenState;

/// Everything a turn needs; nothing in it is shared with another turn but the open state.
pub(super) struct Turn {
    pub(super) emitter: Emitter,
    pub(super) provider: Arc<dyn Provider>,
    pub(super) model: ModelId,
    pub(super) info: Option<ModelInfo>,
    pub(super) retry: RetryConfig,
    pub(super) max_steps: u32,
    pub(super) variant_payload: request::Payload,
    pub(super) system: String,
    pub(super) history: Vec<Message>,
    pub(super) tools: TurnTools,
    pub(super) totals: Totals,
    pub(super) open: OpenState,
    pub(super) events: mpsc::Sender<TurnEvent>,
    /// What the user should know before the answer.
    pub(super) notes: Vec<String>,
    pub(super) connection: Option<ConnectionReport>,
    /// A title to be made before the answer; only when the pace is deterministic.
    pub(super) title_first: Option<TitleJob>,
    /// What the turn is for, when it is not for answering.
    pub(super) compact_now: Option<Cause>,
    pub(super) auto_compact_percentage: u32,
    /// How full the window was after the last call.
    pub(super) occupancy: u64,
    /// The progress that the client was told last.
    pub(super) told_progress: &'static str,
    /// Whether this turn has compacted its chat.
    pub(super) compacted: bool,
    /// Whether a hook wants the turn to end.
    pub(super) ended_by_hook: bool,
    pub(super) prompts: PromptsConfig,
    /// Whoever wants to know how often the model was asked.
    pub(super) steps: Option<Arc<Lineage>>,
    pub(super) end: TurnEnd,
}

const GENERATING: &str = "Generating";

/// What the chat must keep. `done` is answered when it is.
pub(super) enum TurnEvent {
    Record {
        message: Message,
        extra: Option<Value>,
        done: oneshot::Sender<()>,
    },
    /// Something the user said while the turn ran; it becomes a message of its own.
    Steered {
        text: String,
        content_id: ContentId,
        done: oneshot::Sender<()>,
    },
    Usage {
        last: Usage,
        cost: Option<f64>,
        /// What the chat has used by then, with what others used for it.
        done: oneshot::Sender<Totals>,
    },
    /// From now on the model's history begins with this message.
    Compacted {
        message: Message,
        automatic: bool,
        done: oneshot::Sender<()>,
    },
    Title(String),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum TurnEnd {
    Finished,
    /// The user knows why.
    Failed(String),
    /// It was not done after all the model calls it may make.
    OutOfSteps(u32),
    Stopped,
}

/// Tells a waiting prompt whether the provider answers at all, then keeps silent until that
/// response is queued.
pub(super) struct ConnectionReport {
    pub(super) report: oneshot::Sender<Result<(), String>>,
    pub(super) held: Held,
}

#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Totals {
    pub(super) usage: Usage,
    pub(super) cost: Option<f64>,
}

impl Totals {
    /// The price of a call may be unknown; the sum is then of those that are known.
    pub(super) fn add(&mut self, last: Usage, cost: Option<f64>) {
        self.usage = self.usage + last;
        if let Some(cost) = cost {
            self.cost = Some(self.cost.unwrap_or_default() + cost);
        }
    }
}

/// Why asking the model gave no answer.
enum AskError {
    Stopped,
    Llm(LlmError),
}

impl From<Stopped> for AskError {
    fn from(Stopped: Stopped) -> Self {
        Self::Stopped
    }
}

/// What the user asked, as opposed to what tools answered.
fn is_question(message: &Message) -> bool {
    message.role == Role::User && !message.parts.iter().any(|part| matches!(part, Part::ToolResult { .. }))
}

struct Answer {
    parts: Vec<Part>,
    calls: Vec<OpenCall>,
    stop: StopReason,
}

impl Turn {
    pub(super) async fn run(mut self) -> TurnEnd {
        match self.steps().await {
            Ok(()) => self.end,
            Err(Stopped) => TurnEnd::Stopped,
        }
    }

    async fn steps(&mut self) -> Result<(), Stopped> {
        if self.connection.is_none() {
            self.tell_notes().await?;
        }
        if let Some(job) = self.title_first.take() {
            let title = tokio::select! {
                biased;
                () = self.emitter.stop.cancelled() => return Err(Stopped),
                title = job.run() => title,
            };
            if let Some(title) = title {
                let _ = self.events.send(TurnEvent::Title(title.clone())).await;
                self.emitter.emit(ChatEvent::Title(title)).await?;
            }
        }
        if let Some(cause) = self.compact_now.take() {
            return self.compact(cause).await.map(|_| ());
        }
        if self.tools.memory.is_blind(&self.model) {
            request::hide_images(&mut self.history);
        }
        self.progress("Waiting model").await?;
        let mut repeats = RepeatGuard::default();
        let mut continued = 0;
        for step in 1..=self.max_steps {
            if let Some(lineage) = &self.steps {
                lineage.steps.send_replace(step);
            }
            if self.is_nearly_full() && !self.make_room(Cause::NearlyFull).await? {
                return Ok(());
            }
            let answer = match self.ask().await {
                Ok(answer) => answer,
                Err(AskError::Stopped) => return Err(Stopped),
                Err(AskError::Llm(error)) if self.can_go_on(&error, continued) => {
                    continued += 1;
                    self.go_on(&error, continued).await?;
                    continue;
                }
                Err(AskError::Llm(error)) if self.can_do_without_images(&error) => {
                    self.do_without_images().await?;
                    continue;
                }
                Err(AskError::Llm(error)) if self.can_make_room(&error) => {
                    if self.make_room(Cause::Overflow).await? {
                        continue;
                    }
                    return Ok(());
                }
                Err(AskError::Llm(error)) => return self.fail(&error.user_text).await,
            };
            if !self.settle(answer, &mut repeats).await? {
                return Ok(());
            }
        }
        self.emitter.emit(ChatEvent::Ending(Ending::MaxSteps)).await?;
        self.end = TurnEnd::OutOfSteps(self.max_steps);
        let text = format!(
            "\n\nThis turn was ended after {} model calls. Raise `chat.maxSteps` in the configuration, or \
             write \"continue\" to go on.",
            self.max_steps
        );
        self.emitter.emit(ChatEvent::SystemText(text)).await
    }

    /// Compacts in the middle of the work and goes on with it.
    async fn make_room(&mut self, cause: Cause) -> Result<bool, Stopped> {
        let question = self.history.iter().rfind(|message| is_question(message)).cloned();
        let done = self.compact(cause).await?;
        if let Some(Message { parts, .. }) = question
            && let Some(summary) = self.history.first_mut()
        {
            summary.parts.extend(parts);
        }
        self.go_on_after_compaction();
        Ok(done)
    }

    /// Keeps the answer and runs its tool calls. Returns whether the model wants to go on.
    async fn settle(&mut self, answer: Answer, repeats: &mut RepeatGuard) -> Result<bool, Stopped> {
        let Answer { parts, calls, stop } = answer;
        self.record(Message { role: Role::Assistant, parts }).await?;
        for call in &calls {
            self.open.change(&call.id, |call| call.wants_result = true);
        }
        let notice = match stop {
            StopReason::MaxTokens => Some("\n\nThe model reached its output limit; the answer is incomplete."),
            StopReason::Refusal => Some("\n\nThe model or its provider declined to answer this."),
            StopReason::EndTurn | StopReason::ToolCalls => None,
        };
        if let Some(notice) = notice {
            self.emitter.emit(ChatEvent::SystemText(notice.into())).await?;
        }
        if calls.is_empty() {
            let ending = match stop {
                StopReason::MaxTokens => Some(Ending::MaxTokens),
                StopReason::Refusal => Some(Ending::Refused),
                StopReason::EndTurn | StopReason::ToolCalls => None,
            };
            self.emit_all(ending.map(ChatEvent::Ending)).await?;
            return Ok(false);
        }
        for call in &calls {
            if repeats.saw(&call.name, &call.arguments) {
                let text = format!("\n\nThe model keeps calling {:?} with the same arguments.", call.name);
                self.emitter.emit(ChatEvent::SystemText(text)).await?;
            }
        }
        let ids: Vec<ToolCallId> = calls.into_iter().map(|call| call.id).collect();
        let batch = self.run_calls(&ids).await?;
        if batch.ended_by_hook {
            return Ok(false);
        }
        if calls::ends_turn(batch, &self.tools) {
            let text = "\n\nThe call was rejected. What should be done instead?";
            self.emitter.emit(ChatEvent::SystemText(text.into())).await?;
            return Ok(false);
        }
        self.take_steer().await?;
        Ok(true)
    }

    /// What the user said meanwhile comes before the next call of the model.
    async fn take_steer(&mut self) -> Result<(), Stopped> {
        // How jobs ended is for the model alone: the client knows it by other means.
        let notices = self.tools.jobs.take_notices(&self.emitter.chat);
        if !notices.is_empty() {
            self.record(request::user_text(&notices.join("\n\n"))).await?;
        }
        let Some(text) = self.tools.live.take_steer() else { return Ok(()) };
        let (content_id, message) = (ContentId::random(), request::user_text(&text));
        self.history.push(message);
        let (done, kept) = oneshot::channel();
        let event = TurnEvent::Steered { text: text.clone(), content_id: content_id.clone(), done };
        self.tell(event, kept).await?;
        self.emitter.emit(ChatEvent::UserText { text: format!("{text}\n"), content_id }).await
    }

    /// One answer, tried again while nothing was shown and the error is worth it.
    async fn ask(&mut self) -> Result<Answer, AskError> {
        let mut request = request::assemble(&self.model, &self.system, &self.history, self.info.as_ref());
        request.payload.clone_from(&self.variant_payload);
        request.web_search = self.tools.web_search;
        request.cache_key = Some(self.emitter.chat.to_string());
        request.tools = self.tools.toolbox.offers();
        let mut attempt = 0;
        loop {
            let mut error = match self.listen(request.clone()).await {
                Err(AskError::Llm(error)) => error,
                other => return other,
            };
            let shown = !self.open.lock().is_empty();
            let max = retry::max_retries(&self.retry, &error);
            attempt += 1;
            match retry::delay(&self.retry, attempt, error.retry_after, random01()) {
                Some(delay) if attempt <= max && !shown => {
                    tracing::info!(chat = %self.emitter.chat, %error, attempt, "the model call is tried again");
                    let text = retry::progress_text(&self.retry, &error, delay, attempt, max);
                    self.told_progress = "";
                    self.emitter.emit(ChatEvent::Progress(text)).await?;
                    self.wait(delay).await?;
                }
                _ => {
                    if let Some(wait) = retry::too_long(&self.retry, &error) {
                        error.user_text = format!("{} {wait}", error.user_text);
                    }
                    self.report_connection(Err(error.user_text.clone())).await?;
                    return Err(AskError::Llm(error));
                }
            }
        }
    }

    async fn listen(&mut self, request: Request) -> Result<Answer, AskError> {
        let mut stream = Gathered::new(self.provider.stream(request));
        let mut usage = None;
        // Registered once, not once per piece.
        let stopped = self.emitter.stop.clone();
        let mut stopped = std::pin::pin!(stopped.cancelled());
        let stop = loop {
            let next = tokio::select! {
                biased;
                () = &mut stopped => return Err(AskError::Stopped),
                next = stream.next() => next,
            };
            let delta = match next {
                Some(Ok(delta)) => delta,
                Some(Err(error)) => return Err(AskError::Llm(error)),
                None => return Err(AskError::Llm(self.cut_short())),
            };
            match delta {
                Delta::Started => {
                    self.report_connection(Ok(())).await?;
                    continue;
                }
                Delta::Stop(reason) => break reason,
                Delta::Usage(now) => usage = Some(now),
                delta => {
                    self.progress(GENERATING).await?;
                    self.on_content(delta).await?;
                }
            }
        };
        drop(stream);
        // A refusal needs no words.
        if stop != StopReason::Refusal && self.open.lock().is_empty() {
            return Err(AskError::Llm(self.empty_answer()));
        }
        self.finish_answer(stop, usage).await
    }

    async fn finish_answer(&mut self, stop: StopReason, usage: Option<Usage>) -> Result<Answer, AskError> {
        self.end_reason(None).await?;
        if let Some(usage) = usage {
            self.report_usage(usage).await?;
        }
        let mut open = self.open.lock();
        // The calls stay open until each has its own end on the wire.
        Ok(Answer { parts: open.take_parts(), calls: open.calls.clone(), stop })
    }

    /// Says what the turn is doing, unless that is what it last said.
    async fn progress(&mut self, text: &'static str) -> Result<(), Stopped> {
        if self.told_progress != text {
            self.told_progress = text;
            self.emitter.emit(ChatEvent::Progress(text.into())).await?;
        }
        Ok(())
    }

    async fn emit_all(&self, events: impl IntoIterator<Item = ChatEvent>) -> Result<(), Stopped> {
        for event in events {
            self.emitter.emit(event).await?;
        }
        Ok(())
    }

    async fn report_usage(&mut self, last: Usage) -> Result<(), Stopped> {
        self.occupancy = last.occupancy();
        let cost = self.count_usage(last).await?;
        self.emit_usage(last, cost).await
    }

    /// Adds a call to what this chat has used, here and in the store. Returns what it cost.
    async fn count_usage(&mut self, last: Usage) -> Result<Option<f64>, Stopped> {
        let cost = self.info.as_ref().and_then(|info| info.cost).map(|cost: Cost| cost.of(last));
        let (done, counted) = oneshot::channel();
        self.events.send(TurnEvent::Usage { last, cost, done }).await.map_err(|_| Stopped)?;
        self.totals = counted.await.map_err(|_| Stopped)?;
        Ok(cost)
    }

    /// After a compaction nobody has counted yet; this is an estimate until the next call.
    async fn emit_occupancy(&self) -> Result<(), Stopped> {
        self.emit_usage(Usage { input: self.occupancy, ..Usage::default() }, None).await
    }

    async fn emit_usage(&self, last: Usage, cost: Option<f64>) -> Result<(), Stopped> {
        let report = UsageReport {
            last,
            total: self.totals.usage,
            last_cost: cost,
            total_cost: self.totals.cost,
            context_limit: self.info.as_ref().and_then(|info| info.context_limit),
            output_limit: self.info.as_ref().and_then(|info| info.output_limit),
            auto_compact_percentage: Some(self.auto_compact_percentage).filter(|percentage| *percentage > 0),
            shares: breakdown::shares(&self.system, &self.history, last.occupancy()),
        };
        self.emitter.emit(ChatEvent::Usage(report)).await
    }

    async fn record(&mut self, message: Message) -> Result<(), Stopped> {
        self.record_with(message, None).await
    }

    /// `extra` is what a replay needs to show the message as it was shown.
    async fn record_with(&mut self, message: Message, extra: Option<Value>) -> Result<(), Stopped> {
        self.history.push(message.clone());
        let (done, kept) = oneshot::channel();
        self.tell(TurnEvent::Record { message, extra, done }, kept).await
    }

    /// Hands something to the chat and waits until it is kept. Not cut short by a stop: the chat
    /// is there to take it, and what the model said must not be lost.
    async fn tell(&self, event: TurnEvent, kept: oneshot::Receiver<()>) -> Result<(), Stopped> {
        self.events.send(event).await.map_err(|_| Stopped)?;
        kept.await.map_err(|_| Stopped)
    }

    async fn report_connection(&mut self, outcome: Result<(), String>) -> Result<(), Stopped> {
        if let Some(connection) = self.connection.take() {
            let _ = connection.report.send(outcome);
            connection.held.released().await;
            self.tell_notes().await?;
        }
        Ok(())
    }

    async fn tell_notes(&mut self) -> Result<(), Stopped> {
        let notes = std::mem::take(&mut self.notes);
        self.emit_all(notes.into_iter().map(ChatEvent::SystemText)).await
    }
}
