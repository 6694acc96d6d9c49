//! Asking the engine from a terminal: one turn at a time, which Ctrl-C ends.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::time::{Instant, MissedTickBehavior};

use super::approval::{self, Key};
use super::input::Question;
use super::output::{Output, Report};
use crate::base::task;
use crate::base::{ChatId, ToolCallId};
use crate::engine::{ChatStatus, Decision, Engine, Prompt, ReplyWhen};
use crate::process::signals::{Asked, Requests};
use crate::workspace::Workspace;

/// A second Ctrl-C within this time leaves the program.
const LEAVE_WITHIN: Duration = Duration::from_secs(2);
/// A turn that was stopped and says nothing for so long is left behind.
const STOP_DEADLINE: Duration = Duration::from_secs(3);
const SPINNER_PERIOD: Duration = Duration::from_millis(100);

/// By the shell's convention for a program that Ctrl-C ended.
pub(super) const INTERRUPTED: i32 = 130;

/// How a turn ended.
#[derive(Debug)]
pub(super) enum Outcome {
    Answered,
    Failed,
    Stopped,
    /// The user wants to leave at once, with this exit code.
    Leave(i32),
    /// Nobody reads the answer any more.
    OutputGone(io::Error),
}

impl Outcome {
    pub(super) fn exit_code(&self) -> i32 {
        match self {
            Self::Answered => 0,
            Self::Failed => 1,
            Self::Stopped => INTERRUPTED,
            Self::Leave(code) => *code,
            // `eca chat … | head -1` got what it wanted.
            Self::OutputGone(error) if error.kind() == io::ErrorKind::BrokenPipe => 0,
            Self::OutputGone(_) => 1,
        }
    }
}

pub(super) struct Conversation {
    pub(super) engine: Engine,
    pub(super) output: Output,
    pub(super) requests: Requests,
    pub(super) workspace: Arc<Workspace>,
    pub(super) agent: Option<String>,
    /// As the user wrote it.
    pub(super) model: Option<String>,
    /// `None` before the first question.
    pub(super) chat: Option<ChatId>,
    /// When Ctrl-C last stopped an answer.
    pub(super) stopped: Option<Instant>,
    /// Whether tools run without questions.
    pub(super) trust: bool,
    /// Whether there is a person who can be asked.
    pub(super) can_ask: bool,
}

impl Conversation {
    /// Whether what the user types next is part of a login.
    pub(super) fn is_logging_in(&self) -> bool {
        self.chat.as_ref().is_some_and(|chat| self.engine.status(chat) == ChatStatus::Login)
    }

    /// Asks, and returns when the answer is written or will not come.
    pub(super) async fn ask(&mut self, question: Question) -> Outcome {
        let prompt = Prompt {
            chat: self.chat.clone(),
            text: question.text,
            model: self.model.clone(),
            variant: None,
            agent: self.agent.clone(),
            trust: self.trust.then_some(true),
            contexts: question.contexts,
            workspace: Arc::clone(&self.workspace),
            reply: ReplyWhen::Recorded,
        };
        let mut accepted = match self.engine.submit(prompt) {
            Ok(accepted) => Some(accepted),
            Err(error) => {
                tracing::error!(%error, "the question was not taken");
                return Outcome::Failed;
            }
        };
        let mut spinner = tokio::time::interval(SPINNER_PERIOD);
        spinner.set_missed_tick_behavior(MissedTickBehavior::Skip);
        self.stopped = None;
        let mut asking: Option<Asking> = None;
        loop {
            let deadline = self.stopped.map_or_else(far_away, |at| at + STOP_DEADLINE);
            tokio::select! {
                answer = async { accepted.as_mut()?.await.ok() }, if accepted.is_some() => {
                    accepted = None;
                    let Some(answer) = answer else { return Outcome::Failed };
                    self.chat = Some(answer.chat);
                    drop(answer.hold);
                    if self.stopped.is_some() {
                        self.stop();
                    }
                }
                key = async { asking.as_mut()?.key().await }, if asking.is_some() => {
                    let Some(asked) = asking.take() else { continue };
                    match key {
                        Some(Key::Decided(decision)) => self.engine.decide(&asked.chat, &asked.call, decision),
                        Some(Key::Interrupt) => {
                            self.stopped = Some(Instant::now());
                            self.stop();
                        }
                        None => self.engine.decide(&asked.chat, &asked.call, Decision::Reject),
                    }
                }
                report = self.output.report() => return match report {
                    Some(Report::Approval { chat, call }) => {
                        match self.can_ask {
                            true => asking = Some(Asking::begin(chat, call)),
                            false => self.engine.decide(&chat, &call, Decision::Reject),
                        }
                        continue;
                    }
                    Some(Report::TurnOver { .. }) if self.stopped.is_some() => Outcome::Stopped,
                    Some(Report::TurnOver { failed: true }) => Outcome::Failed,
                    Some(Report::TurnOver { failed: false }) => Outcome::Answered,
                    Some(Report::Gone(error)) => Outcome::OutputGone(error),
                    None => Outcome::OutputGone(io::Error::other("the thread that writes it ended")),
                },
                asked = self.requests.next() => match asked {
                    Asked::End(code) => return Outcome::Leave(code),
                    Asked::Interrupt if self.was_just_stopped() => return Outcome::Leave(INTERRUPTED),
                    Asked::Interrupt => {
                        self.stopped = Some(Instant::now());
                        self.stop();
                    }
                },
                () = tokio::time::sleep_until(deadline) => return Outcome::Leave(INTERRUPTED),
                _ = spinner.tick() => self.output.tick(),
            }
        }
    }

    /// Whether another Ctrl-C now is the second one. A turn often ends between the two.
    pub(super) fn was_just_stopped(&self) -> bool {
        self.stopped.is_some_and(|at| at.elapsed() < LEAVE_WITHIN)
    }

    /// Before the prompt is accepted there is no chat to stop; it is stopped then.
    fn stop(&self) {
        if let Some(chat) = &self.chat {
            self.engine.stop(chat);
        }
    }
}

/// A question that stands on the screen.
struct Asking {
    chat: ChatId,
    call: ToolCallId,
    taken_back: Arc<AtomicBool>,
    answer: tokio::task::JoinHandle<io::Result<Option<Key>>>,
}

impl Asking {
    fn begin(chat: ChatId, call: ToolCallId) -> Self {
        let taken_back = Arc::new(AtomicBool::new(false));
        let answer = task::spawn(approval::ask(Arc::clone(&taken_back)));
        Self { chat, call, taken_back, answer }
    }

    async fn key(&mut self) -> Option<Key> {
        (&mut self.answer).await.ok()?.ok().flatten()
    }
}

impl Drop for Asking {
    fn drop(&mut self) {
        self.taken_back.store(true, Ordering::Release);
    }
}

/// Later than any turn.
fn far_away() -> Instant {
    Instant::now() + Duration::from_secs(24 * 60 * 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exit_codes() {
        for (outcome, code) in [
            (Outcome::Answered, 0),
            (Outcome::Failed, 1),
            (Outcome::Stopped, 130),
            (Outcome::Leave(143), 143),
            (Outcome::OutputGone(io::ErrorKind::BrokenPipe.into()), 0),
            (Outcome::OutputGone(io::ErrorKind::StorageFull.into()), 1),
        ] {
            assert_eq!(outcome.exit_code(), code, "{outcome:?}");
        }
    }
}
