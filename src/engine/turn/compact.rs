//! Making room: what was said so far becomes a summary that the model goes on from.
//!
//! The user's view of the chat and the store keep everything; only what is sent to the model
//! begins anew. It happens before the window is full, after the provider said that it is, or
//! because the user wants it, and at most once in a turn unless the user asked for it.

use tokio::sync::oneshot;

use super::super::emitter::Stopped;
use super::super::event::{ChatEvent, Compaction};
use super::super::request;
use super::{AskError, Turn, TurnEvent};
use crate::customization::prompt;
use crate::customization::template::Variables;
use crate::llm::{Delta, ErrorClass, LlmError, Message, Part, Role, Usage};

/// Characters per token, roughly, where nobody has counted.
const CHARS_PER_TOKEN: usize = 4;
/// Tool outputs beyond the newest so many tokens are left out when even the summary does not fit.
const KEPT_OUTPUT_TOKENS: usize = 40_000;
const MAX_SUMMARY_BYTES: usize = 256 * 1024;

/// Why a chat is compacted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::engine) enum Cause {
    /// The user's words about what matters, possibly none.
    User(String),
    NearlyFull,
    Overflow,
}

impl Cause {
    pub(in crate::engine) fn is_automatic(&self) -> bool {
        !matches!(self, Self::User(_))
    }
}

impl Turn {
    /// Whether the window is so full that the next call should find it compacted.
    pub(super) fn is_nearly_full(&self) -> bool {
        let Some(limit) = self.info.as_ref().and_then(|info| info.context_limit) else { return false };
        let percentage = u64::from(self.auto_compact_percentage);
        // Nothing but the message that is being answered cannot be made shorter.
        !self.compacted
            && percentage > 0
            && self.history.len() > 1
            && self.occupancy.saturating_mul(100) >= limit.saturating_mul(percentage)
    }

    /// Replaces what the model gets of the history by a summary of it. `false` when that failed,
    /// which the user was told then.
    pub(super) async fn compact(&mut self, cause: Cause) -> Result<bool, Stopped> {
        self.compacted = true;
        if self.compaction_is_blocked(&cause).await? {
            return Ok(false);
        }
        self.emitter.emit(ChatEvent::Progress("Compacting...".into())).await?;
        self.emitter.emit(ChatEvent::Compaction(Compaction::Started)).await?;
        if cause == Cause::Overflow {
            leave_out_old_outputs(&mut self.history);
        }
        let (summary, usage) = match self.summarise(&cause).await {
            Err(AskError::Stopped) => return Err(Stopped),
            Err(AskError::Llm(error)) => {
                let text = format!("The chat could not be compacted: {}", error.user_text);
                self.emitter
                    .emit(ChatEvent::Compaction(Compaction::Failed { reason: error.user_text.clone() }))
                    .await?;
                self.fail(&text).await?;
                return Ok(false);
            }
            Ok(summary) => summary,
        };
        if let Some(usage) = usage {
            self.count_usage(usage).await?;
        }
        let summary = self.add_to_summary(&cause, summary).await;
        let message = request::summary(&summary);
        self.occupancy = u64::try_from(summary.len() / CHARS_PER_TOKEN).unwrap_or(u64::MAX);
        self.history = vec![message.clone()];
        let (done, kept) = oneshot::channel();
        self.tell(TurnEvent::Compacted { message, automatic: cause.is_automatic(), done }, kept).await?;
        self.emitter.emit(ChatEvent::Compaction(Compaction::Done { summary })).await?;
        let by = if cause.is_automatic() { " automatically, to make room" } else { "" };
        let text = format!("\n\nThe chat was compacted{by}. Everything said so far is kept and can be searched.\n\n");
        self.emitter.emit(ChatEvent::SystemText(text)).await?;
        self.emit_occupancy().await?;
        Ok(true)
    }

    /// Asks the model for the summary, behind the same beginning as every other request so that
    /// the provider finds its cache again.
    async fn summarise(&mut self, cause: &Cause) -> Result<(String, Option<Usage>), AskError> {
        let mut history = self.history.clone();
        let about = match cause {
            Cause::User(about) => about.as_str(),
            Cause::NearlyFull | Cause::Overflow => "",
        };
        history.push(request::user_text(&prompt::compact(&self.prompts, about, &Variables::default())));
        let mut request = request::assemble(&self.model, &self.system, &history, self.info.as_ref());
        request.tools = self.tools.toolbox.offers();
        request.payload.clone_from(&self.variant_payload);
        request.cache_key = Some(self.emitter.chat.to_string());
        let mut stream = self.provider.stream(request);
        let (mut summary, mut usage) = (String::new(), None);
        loop {
            let next = tokio::select! {
                biased;
                () = self.emitter.stop.cancelled() => return Err(AskError::Stopped),
                next = futures_util::StreamExt::next(&mut stream) => next,
            };
            match next {
                Some(Ok(Delta::Text(text))) if summary.len() + text.len() <= MAX_SUMMARY_BYTES => {
                    summary.push_str(&text)
                }
                Some(Ok(Delta::Usage(now))) => usage = Some(now),
                Some(Ok(Delta::Stop(_))) => break,
                Some(Ok(_)) => {}
                Some(Err(error)) => return Err(AskError::Llm(error)),
                None => return Err(AskError::Llm(self.cut_short())),
            }
        }
        if summary.trim().is_empty() {
            return Err(AskError::Llm(self.empty_answer()));
        }
        Ok((summary, usage))
    }

    /// Whether this failure is a full window that compacting may help against.
    pub(super) fn can_make_room(&self, error: &LlmError) -> bool {
        error.class == ErrorClass::ContextOverflow && !self.compacted && self.history.len() > 1
    }

    /// What the model is told after a compaction in the middle of its work.
    pub(super) fn go_on_after_compaction(&mut self) {
        let text = "Go on with what you were doing, from the summary above.";
        match self.history.last_mut() {
            Some(last) if last.role == Role::User => last.parts.push(Part::Text(text.to_owned())),
            _ => self.history.push(request::user_text(text)),
        }
    }
}

/// Empties the older tool outputs, so that at least a summary can be asked for.
fn leave_out_old_outputs(history: &mut [Message]) {
    let mut room = KEPT_OUTPUT_TOKENS * CHARS_PER_TOKEN;
    for message in history.iter_mut().rev() {
        for part in message.parts.iter_mut().rev() {
            let Part::ToolResult { text, images, .. } = part else { continue };
            match room.checked_sub(text.len()) {
                Some(left) => room = left,
                None => {
                    room = 0;
                    *text = "[left out to make room]".to_owned();
                    images.clear();
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_outputs_stay() {
        let result = |bytes: usize| Message {
            role: Role::User,
            parts: vec![Part::ToolResult {
                call_id: "c".into(),
                text: "x".repeat(bytes),
                images: vec![],
                error: false,
            }],
        };
        let mut history = vec![result(10), result(100_000), result(100_000)];
        leave_out_old_outputs(&mut history);
        let lengths: Vec<usize> = history
            .iter()
            .flat_map(|message| &message.parts)
            .map(|part| match part {
                Part::ToolResult { text, .. } => text.len(),
                _ => 0,
            })
            .collect();
        assert_eq!(lengths, [23, 23, 100_000]);
    }
}
