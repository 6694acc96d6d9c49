//! Pieces of text that are already here become one piece.
//!
//! A fast model sends many small pieces in one packet. Passing each on by itself costs the client
//! and us a message, a wake-up and a write apiece, and shows nothing earlier. A piece that comes
//! alone is passed on alone, at once. The connection hands over one piece at a time, so it gets the
//! chance to hand over another before we look whether there is one; no clock is involved.

use futures_util::{FutureExt, StreamExt};

use crate::llm::{Delta, DeltaStream, LlmError};

/// A gathered piece is not made longer than this.
const ENOUGH: usize = 4 * 1024;

type Item = Option<Result<Delta, LlmError>>;

pub(super) struct Gathered {
    stream: DeltaStream,
    /// Found while looking for more text; comes next.
    held_back: Option<Item>,
}

impl Gathered {
    pub(super) fn new(stream: DeltaStream) -> Self {
        Self { stream, held_back: None }
    }

    /// Dropping it may lose text that nobody has seen; only a stopped turn does that.
    pub(super) async fn next(&mut self) -> Item {
        let first = match self.held_back.take() {
            Some(item) => item,
            None => self.stream.next().await,
        };
        match first {
            Some(Ok(Delta::Text(text))) => Some(Ok(Delta::Text(self.more(text, text_of).await))),
            Some(Ok(Delta::Reasoning(text))) => Some(Ok(Delta::Reasoning(self.more(text, reasoning_of).await))),
            other => other,
        }
    }

    async fn more(&mut self, mut text: String, same_kind: fn(Delta) -> Result<String, Box<Delta>>) -> String {
        let mut waited = false;
        while text.len() < ENOUGH {
            match self.stream.next().now_or_never() {
                None if waited => break,
                None => {
                    waited = true;
                    tokio::task::yield_now().await;
                }
                Some(Some(Ok(delta))) => match same_kind(delta) {
                    Ok(more) => {
                        waited = false;
                        text.push_str(&more);
                    }
                    Err(other) => {
                        self.held_back = Some(Some(Ok(*other)));
                        break;
                    }
                },
                Some(end) => {
                    self.held_back = Some(end);
                    break;
                }
            }
        }
        text
    }
}

fn text_of(delta: Delta) -> Result<String, Box<Delta>> {
    match delta {
        Delta::Text(text) => Ok(text),
        other => Err(Box::new(other)),
    }
}

fn reasoning_of(delta: Delta) -> Result<String, Box<Delta>> {
    match delta {
        Delta::Reasoning(text) => Ok(text),
        other => Err(Box::new(other)),
    }
}

#[cfg(test)]
mod tests {
    use futures_util::stream;

    use super::*;
    use crate::llm::StopReason;

    fn text(text: &str) -> Delta {
        Delta::Text(text.into())
    }

    async fn gathered(deltas: Vec<Delta>) -> Vec<Delta> {
        let mut gathered = Gathered::new(stream::iter(deltas.into_iter().map(Ok)).boxed());
        let mut out = Vec::new();
        while let Some(Ok(delta)) = gathered.next().await {
            out.push(delta);
        }
        out
    }

    #[tokio::test]
    async fn what_is_here_becomes_one_piece_and_order_is_kept() {
        let thought = || Delta::Reasoning("t".into());
        let deltas = vec![Delta::Started, thought(), thought(), text("a"), text("b"), thought(), text("c")];
        let expected = vec![Delta::Started, Delta::Reasoning("tt".into()), text("ab"), thought(), text("c")];
        assert_eq!(gathered(deltas).await, expected);
        let end = vec![text("a"), Delta::Stop(StopReason::EndTurn)];
        assert_eq!(gathered(end.clone()).await, end);
    }

    #[tokio::test]
    async fn pieces_do_not_grow_without_end() {
        let out = gathered(vec![text(&"x".repeat(3_000)); 10]).await;
        assert!(out.len() > 3, "{}", out.len());
    }

    #[tokio::test]
    async fn an_error_after_text_is_not_lost() {
        let error = LlmError {
            status: None,
            class: crate::llm::ErrorClass::Network,
            provider: "p".into(),
            retry_after: None,
            user_text: "broken".into(),
        };
        let items = vec![Ok(text("a")), Ok(text("b")), Err(error.clone())];
        let mut gathered = Gathered::new(stream::iter(items).boxed());
        assert_eq!(gathered.next().await, Some(Ok(text("ab"))));
        assert_eq!(gathered.next().await, Some(Err(error)));
        assert_eq!(gathered.next().await, None);
    }

    #[tokio::test]
    async fn a_piece_that_comes_alone_is_passed_on_alone() {
        let mut gathered = Gathered::new(stream::iter([Ok(text("a"))]).chain(stream::pending()).boxed());
        assert_eq!(gathered.next().await, Some(Ok(text("a"))));
        assert!(gathered.next().now_or_never().is_none());
    }
}
