//! The prompts of one session that are not answered yet, in order. A turn's last event answers the
//! first of them.

use std::collections::VecDeque;

use agent_client_protocol_schema::v1::{PromptResponse, StopReason};
use tokio_util::sync::CancellationToken;

use super::super::failure::Failure;
use super::Voice;
use crate::engine::Ending;
use crate::transport::newline::Peer;
use crate::transport::{Frame, Id};

/// A prompt that is not answered yet.
#[derive(Debug)]
struct Pending {
    id: Id,
    cancelled: bool,
    failed: Option<String>,
    ending: Option<Ending>,
    /// Cancelled when the turn is over.
    ended: CancellationToken,
}

impl Pending {
    fn new(id: Id) -> Self {
        Self { id, cancelled: false, failed: None, ending: None, ended: CancellationToken::new() }
    }

    fn response(self, peer: &Peer) -> Frame {
        let reason = match self.ending {
            _ if self.cancelled => StopReason::Cancelled,
            Some(Ending::Stopped) => StopReason::Cancelled,
            Some(Ending::MaxTokens) => StopReason::MaxTokens,
            Some(Ending::MaxSteps) => StopReason::MaxTurnRequests,
            Some(Ending::Refused) => StopReason::Refusal,
            None => StopReason::EndTurn,
        };
        let outcome = match self.failed {
            Some(problem) if reason != StopReason::Cancelled => Err(Failure::internal(problem.trim()).into()),
            _ => Ok(serde_json::to_value(PromptResponse::new(reason)).unwrap_or_default()),
        };
        peer.response(&self.id, &outcome)
    }
}

#[derive(Debug, Default)]
pub(super) struct Turns {
    waiting: VecDeque<Pending>,
}

impl Turns {
    /// The answer to the prompt whose turn is over.
    pub(super) fn finish(&mut self, peer: &Peer) -> Option<Frame> {
        let pending = self.waiting.pop_front()?;
        pending.ended.cancel();
        Some(pending.response(peer))
    }

    pub(super) fn fail(&mut self, problem: &str) {
        if let Some(pending) = self.waiting.front_mut() {
            pending.failed = Some(problem.to_owned());
        }
    }

    pub(super) fn end_by(&mut self, ending: Ending) {
        if let Some(pending) = self.waiting.front_mut() {
            pending.ending = Some(ending);
        }
    }

    pub(super) fn is_cancelled(&self) -> bool {
        self.waiting.front().is_some_and(|pending| pending.cancelled)
    }

    /// Cancelled when the turn that runs now is over.
    pub(super) fn ended(&self) -> CancellationToken {
        self.waiting.front().map_or_else(CancellationToken::new, |pending| pending.ended.clone())
    }
}

impl Voice {
    /// A prompt that the end of its turn will answer.
    pub(in super::super) fn expect(&self, id: Id) {
        let mut state = self.state();
        state.replaying = false;
        if state.turns.waiting.is_empty() {
            state.calls.clear();
        }
        state.turns.waiting.push_back(Pending::new(id));
    }

    /// The prompt will have no turn: whoever knows that answers it.
    pub(in super::super) fn forget(&self, id: &Id) -> bool {
        let mut state = self.state();
        let before = state.turns.waiting.len();
        state.turns.waiting.retain(|pending| pending.id != *id);
        state.turns.waiting.len() < before
    }

    /// Whether this prompt is not answered yet.
    pub(in super::super) fn expects(&self, id: &Id) -> bool {
        self.state().turns.waiting.iter().any(|pending| pending.id == *id)
    }

    /// The user does not want what is being done. Whether anything is.
    pub(in super::super) fn cancel(&self) -> bool {
        let mut state = self.state();
        for pending in &mut state.turns.waiting {
            pending.cancelled = true;
        }
        if let Some(running) = state.turns.waiting.front() {
            running.ended.cancel();
        }
        !state.turns.waiting.is_empty()
    }
}
