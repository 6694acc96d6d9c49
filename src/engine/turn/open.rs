//! What a turn has begun and not ended, shared with the chat that may have to close it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::time::Instant;

use super::super::event::{ChatEvent, RejectReason};
use super::super::tool_call::machine::{self, Effect, Input, State, Why};
use super::super::tool_call::{OpenCall, ServerCall};
use crate::base::ToolCallId;
use crate::llm::{Part, Replay};

/// What a turn has begun and not ended.
#[derive(Debug, Default)]
pub(super) struct Open {
    pub(super) parts: Vec<Part>,
    pub(super) reason: Option<OpenReason>,
    pub(super) calls: Vec<OpenCall>,
    pub(super) server_calls: Vec<ServerCall>,
}

#[derive(Debug)]
pub(super) struct OpenReason {
    pub(super) id: String,
    pub(super) started: Instant,
    pub(super) text: String,
}

impl OpenReason {
    /// What tells the client that it has ended.
    pub(super) fn finished(&self) -> ChatEvent {
        let total_ms = u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX);
        ChatEvent::ReasonFinished { id: self.id.clone(), total_ms }
    }
}

/// What closing a turn leaves to be said and kept.
#[derive(Debug, Default)]
pub(in crate::engine) struct Closed {
    pub(in crate::engine) events: Vec<ChatEvent>,
    /// The results of calls that are in the history already.
    pub(in crate::engine) results: Vec<(OpenCall, Part)>,
    /// What is worth keeping of an answer that broke off.
    pub(in crate::engine) parts: Vec<Part>,
}

/// Shared between a turn and its chat.
#[derive(Debug, Clone, Default)]
pub(in crate::engine) struct OpenState(Arc<Mutex<Open>>);

impl OpenState {
    pub(super) fn lock(&self) -> MutexGuard<'_, Open> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes what is open and says how it ends.
    pub(in crate::engine) fn close(&self) -> Closed {
        let mut closed = Closed::default();
        let mut open = self.lock();
        if let Some(reason) = &open.reason {
            closed.events.push(reason.finished());
            open.end_reason(None);
        }
        for mut call in std::mem::take(&mut open.calls) {
            call.close(&mut closed);
        }
        let server_calls = std::mem::take(&mut open.server_calls);
        closed.events.extend(server_calls.iter().map(|call| call.rejected(RejectReason::PromptStop)));
        closed.parts = open.take_unfinished();
        closed
    }

    /// What closes the first thing that is open of an answer that broke off. It stays open until it
    /// is forgotten: a turn that is stopped before it could say this leaves it to its chat.
    pub(super) fn first_end(&self) -> Option<ChatEvent> {
        let open = self.lock();
        let reason = open.reason.as_ref().map(OpenReason::finished);
        let call = || open.calls.first().map(OpenCall::lost);
        let server_call = || open.server_calls.first().map(|call| call.rejected(RejectReason::PromptStop));
        reason.or_else(call).or_else(server_call)
    }

    pub(super) fn forget_first(&self) {
        let mut open = self.lock();
        if open.reason.is_some() {
            open.end_reason(None);
        } else if !open.calls.is_empty() {
            open.calls.remove(0);
        } else if !open.server_calls.is_empty() {
            open.server_calls.remove(0);
        }
    }

    /// The call as it stands now.
    pub(super) fn call(&self, id: &ToolCallId) -> Option<OpenCall> {
        self.lock().calls.iter().find(|call| call.id == *id).cloned()
    }

    pub(super) fn change(&self, id: &ToolCallId, change: impl FnOnce(&mut OpenCall)) {
        if let Some(call) = self.lock().calls.iter_mut().find(|call| call.id == *id) {
            change(call);
        }
    }

    pub(super) fn forget(&self, id: &ToolCallId) {
        self.lock().calls.retain(|call| call.id != *id);
    }
}

impl OpenCall {
    /// The answer broke off before the call was complete.
    fn lost(&self) -> ChatEvent {
        let (_, effects) = machine::step(self.state, Input::StreamLost);
        let why = effects.into_iter().find_map(|effect| match effect {
            Effect::EmitRejected(why) => Some(why),
            _ => None,
        });
        self.rejected(why.unwrap_or(Why::StreamLost))
    }

    /// The turn is over, so this call is; what was already said or kept of its end is not repeated.
    fn close(&mut self, closed: &mut Closed) {
        for input in [Input::Stop, if self.outcome.is_some() { Input::Finished } else { Input::GraceOver }] {
            let (next, effects) = if matches!(self.state, State::Done(_)) {
                (self.state, Vec::new())
            } else {
                machine::step(self.state, input)
            };
            self.state = next;
            for effect in effects {
                match effect {
                    Effect::EmitRejected(why) if !self.told => closed.events.push(self.rejected(why)),
                    Effect::Record(result) if self.wants_result => {
                        closed.results.push((self.clone(), self.result(result)))
                    }
                    _ => {}
                }
            }
        }
    }
}

impl Open {
    pub(super) fn add_text(&mut self, text: &str) {
        match self.parts.last_mut() {
            Some(Part::Text(last)) => last.push_str(text),
            _ => self.parts.push(Part::Text(text.to_owned())),
        }
    }

    /// The call takes its place among the parts, because vendors want thoughts and calls back in
    /// the order in which they came; it is filled in when the answer is complete.
    pub(super) fn add_call(&mut self, call: OpenCall) {
        self.parts.push(Part::ToolCall {
            id: call.id.to_string(),
            name: call.name.clone(),
            arguments: String::new(),
            replay: None,
        });
        self.calls.push(call);
    }

    /// The parts of a complete answer.
    pub(super) fn take_parts(&mut self) -> Vec<Part> {
        let mut parts = std::mem::take(&mut self.parts);
        for part in &mut parts {
            let Part::ToolCall { id, arguments, replay, .. } = part else { continue };
            if let Some(call) = self.calls.iter().find(|call| call.id.as_str() == id) {
                arguments.clone_from(&call.arguments);
                replay.clone_from(&call.replay);
            }
        }
        parts
    }

    /// The parts of an answer that broke off: half a call is worth nothing.
    pub(super) fn take_unfinished(&mut self) -> Vec<Part> {
        let mut parts = std::mem::take(&mut self.parts);
        parts.retain(|part| !matches!(part, Part::ToolCall { .. }));
        parts
    }

    pub(super) fn end_reason(&mut self, replay: Option<Replay>) {
        if let Some(reason) = self.reason.take() {
            self.parts.push(Part::Reasoning { text: reason.text, replay });
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.parts.is_empty() && self.reason.is_none() && self.calls.is_empty()
    }
}
