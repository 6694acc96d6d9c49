//! What is common to all work for a request: reading its specification, waiting for a model, and
//! listening to it.

use serde_json::Value;
use tokio::time::Instant;

use super::chunks::Chunks;
use super::desk::Desk;
use super::failure::Failure;
use super::methods::Work;
use super::spec::{self, Problems, Spec};
use crate::base::task;
use crate::engine::{Answer, Question};
use crate::llm::{Delta, LlmError, Message, ModelInfo, StopReason, ToolSpec};
use crate::transport::ByteHold;

/// A model that says more than this has lost its way.
const MOST_SAID: usize = 4 * 1024 * 1024;

/// One request that is being worked on.
pub(super) struct Job<'a> {
    pub(super) desk: &'a Desk,
    pub(super) work: Work,
    pub(super) deadline: Option<Instant>,
    pub(super) chunks: &'a mut Chunks,
    /// The request's share of what may be read and not yet handled.
    pub(super) hold: Option<ByteHold>,
}

/// How an answer ended.
#[derive(Debug)]
pub(super) enum End {
    Complete,
    /// Something was said, and then it broke off; it can be continued.
    Cut(Failure),
}

/// Everything a model said.
#[derive(Debug, Default)]
pub(super) struct Spoken {
    pub(super) text: String,
    pub(super) calls: Vec<ToolCall>,
}

#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct ToolCall {
    pub(super) index: usize,
    pub(super) name: String,
    pub(super) arguments: String,
}

impl Job<'_> {
    /// Reads a specification off the runtime: it may be large.
    pub(super) async fn read_spec(&self, spec: Value) -> Result<Spec, Failure> {
        let reading = task::blocking(move || spec::read(&spec));
        match reading.await {
            Ok(read) => read.map_err(|problems| Failure::spec(&problems)),
            Err(error) => {
                tracing::error!(%error, "a specification could not be read");
                Err(Failure::spec(&Problems::unreadable()))
            }
        }
    }

    /// Work that may take a while, off the runtime.
    pub(super) async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Failure> {
        task::blocking(work).await.map_err(|error| {
            tracing::error!(%error, "work for a request failed");
            Failure::bug()
        })
    }

    /// The request is fully read: the next one may take its room.
    pub(super) fn release_input(&mut self) {
        self.hold = None;
    }

    pub(super) fn ask(
        &self,
        model: &ModelInfo,
        system: &str,
        messages: &[Message],
        tools: &[ToolSpec],
    ) -> Result<Answer, Failure> {
        let question = Question {
            system: system.to_owned(),
            messages: messages.to_vec(),
            tools: tools.to_vec(),
            deadline: self.deadline,
        };
        let gone = || Failure::new(self.work.failed_code(), format!("The provider of {} is gone", model.id));
        self.desk.backend.ask(model, question).ok_or_else(gone)
    }

    /// Listens to the end. What `on_text` makes of each piece of text goes into the chunks.
    pub(super) async fn listen(
        &mut self,
        mut answer: Answer,
        spoken: &mut Spoken,
        mut on_text: impl FnMut(&str) -> String,
    ) -> Result<End, Failure> {
        let work = self.work;
        let refused = |error: &LlmError| Failure::model(work, error);
        loop {
            let delta = match self.chunks.due() {
                None => answer.next().await,
                Some(due) => tokio::select! {
                    biased;
                    delta = answer.next() => delta,
                    () = tokio::time::sleep_until(due) => {
                        self.pass_on("").await?;
                        continue;
                    }
                },
            };
            match delta {
                Some(Ok(Delta::Text(text))) => {
                    spoken.text.push_str(&text);
                    if spoken.text.len() > MOST_SAID {
                        return Err(Failure::unusable(work, "The model does not stop writing"));
                    }
                    self.pass_on(&on_text(&text)).await?;
                }
                Some(Ok(Delta::ToolCallStart { index, name, .. })) => {
                    spoken.calls.push(ToolCall { index, name, arguments: String::new() });
                }
                Some(Ok(Delta::ToolCallArguments { index, text })) => spoken.add_arguments(index, &text),
                Some(Ok(Delta::Stop(StopReason::MaxTokens))) => {
                    let failure = Failure::unusable(work, "The answer is longer than the model can write at once");
                    return Ok(End::Cut(failure));
                }
                Some(Ok(Delta::Stop(StopReason::Refusal))) => {
                    return Err(Failure::unusable(work, "The model refused to answer"));
                }
                Some(Ok(Delta::Stop(_))) | None => return Ok(End::Complete),
                Some(Ok(_)) => {}
                Some(Err(error)) if error.class.is_transient() && !spoken.text.is_empty() => {
                    return Ok(End::Cut(refused(&error)));
                }
                Some(Err(error)) => return Err(refused(&error)),
            }
        }
    }

    /// Hands a piece of the result to the client, or what waits when the piece is empty.
    pub(super) async fn pass_on(&mut self, piece: &str) -> Result<(), Failure> {
        let sent = if piece.is_empty() { self.chunks.flush_if_due().await } else { self.chunks.add(piece).await };
        // Nobody reads an answer to this any more; it only ends the work.
        sent.map_err(|_| Failure::cancelled(self.work))
    }

    /// Everything of the result was passed on.
    pub(super) async fn all_passed_on(&mut self) -> Result<(), Failure> {
        self.chunks.finish().await.map_err(|_| Failure::cancelled(self.work))
    }
}

impl Spoken {
    fn add_arguments(&mut self, index: usize, text: &str) {
        if let Some(call) = self.calls.iter_mut().rfind(|call| call.index == index)
            && call.arguments.len() + text.len() <= MOST_SAID
        {
            call.arguments.push_str(text);
        }
    }
}
