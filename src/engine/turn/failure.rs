//! What a turn does when the model's answer fails: go on where it broke off, wait, or say so.

use std::time::Duration;

use super::super::emitter::Stopped;
use super::super::event::ChatEvent;
use super::super::request;
use super::{Turn, TurnEnd};
use crate::llm::{ErrorClass, LlmError, Message, Part, Role};
use crate::providers::retry;

impl Turn {
    /// An answer that broke off after some text can be continued; half a tool call cannot.
    pub(super) fn can_go_on(&self, error: &LlmError, continued: u32) -> bool {
        let open = self.open.lock();
        retry::is_worthwhile(&self.retry, error)
            && continued < self.retry.max_auto_continues
            && open.calls.is_empty()
            && open.parts.iter().any(|part| matches!(part, Part::Text(_)))
    }

    /// Keeps what came and asks the model to go on where it stopped. The request to do so is part
    /// of this turn alone: the history reads as one answer.
    pub(super) async fn go_on(&mut self, error: &LlmError, continued: u32) -> Result<(), Stopped> {
        tracing::info!(chat = %self.emitter.chat, %error, continued, "a broken answer is continued");
        let parts = self.close_open().await?;
        self.record(Message { role: Role::Assistant, parts }).await?;
        let text = "The connection broke in the middle of your answer. Go on exactly where it ends, without \
                    repeating or introducing anything.";
        self.history.push(Message { role: Role::User, parts: vec![Part::Text(text.into())] });
        self.emitter.emit(ChatEvent::Progress("Response interrupted, continuing...".into())).await?;
        match retry::delay(&self.retry, continued, error.retry_after, random01()) {
            Some(delay) => self.wait(delay).await,
            None => Ok(()),
        }
    }

    /// A model that cannot use an image may still answer to the words around it.
    pub(super) fn can_do_without_images(&self, error: &LlmError) -> bool {
        error.class == ErrorClass::InvalidImage && request::has_images(&self.history)
    }

    /// Goes on with words in the place of images, now and whenever this model answers in this chat.
    pub(super) async fn do_without_images(&mut self) -> Result<(), Stopped> {
        self.tools.memory.note_blind(&self.model);
        request::hide_images(&mut self.history);
        let text = format!("\n{} cannot use the images of this chat; it goes on without them.\n", self.model);
        self.emitter.emit(ChatEvent::SystemText(text)).await
    }

    pub(super) async fn wait(&self, delay: Duration) -> Result<(), Stopped> {
        tokio::select! {
            biased;
            () = self.emitter.stop.cancelled() => Err(Stopped),
            () = tokio::time::sleep(delay) => Ok(()),
        }
    }

    async fn close_open(&self) -> Result<Vec<Part>, Stopped> {
        while let Some(event) = self.open.first_end() {
            self.emitter.emit(event).await?;
            self.open.forget_first();
        }
        Ok(self.open.lock().take_unfinished())
    }

    /// Closes what is open, keeps what came, and says what went wrong.
    pub(super) async fn fail(&mut self, text: &str) -> Result<(), Stopped> {
        let parts = self.close_open().await?;
        if !parts.is_empty() {
            self.record(Message { role: Role::Assistant, parts }).await?;
        }
        self.end = TurnEnd::Failed(text.to_owned());
        self.emitter.emit(ChatEvent::Failed(format!("\n\n{text}"))).await
    }

    pub(super) fn cut_short(&self) -> LlmError {
        self.premature("ended the answer before it was complete. Try again.")
    }

    pub(super) fn empty_answer(&self) -> LlmError {
        self.premature("sent an empty answer. Try again, or choose another model.")
    }

    fn premature(&self, what: &str) -> LlmError {
        LlmError {
            class: ErrorClass::PrematureStop,
            status: None,
            provider: self.provider.id().to_owned(),
            retry_after: None,
            user_text: format!("{} {what}", self.model),
        }
    }
}

/// Spreads the retries of many clients.
pub(in crate::engine) fn random01() -> f64 {
    let (high, _) = uuid::Uuid::new_v4().as_u64_pair();
    (high >> 32) as f64 / f64::from(u32::MAX)
}
