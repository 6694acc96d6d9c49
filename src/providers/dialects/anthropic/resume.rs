//! Goes on with an answer that the provider interrupted itself.
//!
//! After many searches of its own the provider stops with `pause_turn` and expects the same
//! conversation again with its unfinished answer at the end. Nobody above needs to know: it is
//! still one answer to one request.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use futures_util::{StreamExt, stream};

use super::{Anthropic, AnthropicDecoder};
use crate::llm::{Delta, DeltaStream, LlmError, Message, Part, Request, Role, Usage};

/// A provider that pauses more often is in a loop.
const MAX_PAUSES: u32 = 8;

/// The whole answer to `request`, over as many requests as the provider wants.
pub(super) fn stream(provider: Anthropic, request: Request) -> DeltaStream {
    let (current, paused) = ask(&provider, &request, false);
    let answer = Answer {
        provider,
        request,
        current,
        paused,
        pauses: 0,
        parts: Vec::new(),
        usage_before: Usage::default(),
        usage: Usage::default(),
    };
    stream::unfold(answer, |mut answer| async move {
        let item = answer.next().await?;
        Some((item, answer))
    })
    .boxed()
}

struct Answer {
    provider: Anthropic,
    request: Request,
    current: DeltaStream,
    paused: Arc<AtomicBool>,
    pauses: u32,
    /// What the provider has answered since it last paused.
    parts: Vec<Part>,
    usage_before: Usage,
    usage: Usage,
}

impl Answer {
    async fn next(&mut self) -> Option<Result<Delta, LlmError>> {
        loop {
            let delta = match self.current.next().await? {
                Ok(delta) => delta,
                Err(error) => return Some(Err(error)),
            };
            match delta {
                Delta::Stop(_) if self.wants_more() => self.resume(),
                // The first request already said so.
                Delta::Started if self.pauses > 0 => {}
                Delta::Usage(usage) => {
                    self.usage = usage;
                    return Some(Ok(Delta::Usage(self.usage_before + usage)));
                }
                delta => {
                    self.keep(&delta);
                    return Some(Ok(delta));
                }
            }
        }
    }

    fn wants_more(&self) -> bool {
        self.paused.load(Ordering::Acquire) && self.pauses < MAX_PAUSES && !self.parts.is_empty()
    }

    fn resume(&mut self) {
        self.pauses += 1;
        self.usage_before = self.usage_before + std::mem::take(&mut self.usage);
        let parts = std::mem::take(&mut self.parts);
        match self.request.messages.last_mut().filter(|_| self.pauses > 1) {
            Some(unfinished) => unfinished.parts.extend(parts),
            None => self.request.messages.push(Message { role: Role::Assistant, parts }),
        }
        (self.current, self.paused) = ask(&self.provider, &self.request, true);
    }

    fn keep(&mut self, delta: &Delta) {
        match delta {
            Delta::Text(more) => match self.parts.last_mut() {
                Some(Part::Text(text)) => text.push_str(more),
                _ => self.parts.push(Part::Text(more.clone())),
            },
            Delta::Reasoning(more) => match self.parts.last_mut() {
                Some(Part::Reasoning { text, replay: None }) => text.push_str(more),
                _ => self.parts.push(Part::Reasoning { text: more.clone(), replay: None }),
            },
            Delta::ReasoningEnd { replay: Some(end) } => {
                if let Some(Part::Reasoning { replay, .. }) = self.parts.last_mut() {
                    *replay = Some(end.clone());
                }
            }
            Delta::Opaque(replay) => self.parts.push(Part::Opaque(replay.clone())),
            _ => {}
        }
    }
}

fn ask(provider: &Anthropic, request: &Request, resumed: bool) -> (DeltaStream, Arc<AtomicBool>) {
    let decoder = AnthropicDecoder::new(&request.model);
    let paused = decoder.paused();
    (provider.ask(request, resumed, decoder), paused)
}
