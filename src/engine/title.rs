//! A short title for a chat, made by the chat's own model beside the answer.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;

use crate::base::{ModelId, text};
use crate::llm::{Delta, Message, Part, Provider, Request, Role};

/// Clients show titles in tabs; longer ones are cut.
const MAX_TITLE_CHARS: usize = 40;
/// A message contributes at most so much to the request.
const MAX_MESSAGE_BYTES: usize = 2_000;
/// Models like to wrap a title in these.
const QUOTES: [char; 5] = ['"', '\'', '`', '*', ' '];
const TIMEOUT: Duration = Duration::from_secs(60);

/// One title to be made.
pub(super) struct TitleJob {
    pub(super) provider: Arc<dyn Provider>,
    pub(super) model: ModelId,
    /// How the title is asked for.
    pub(super) instructions: String,
    pub(super) history: Vec<Message>,
}

impl TitleJob {
    /// `None` when the model gave nothing that can serve as a title; a chat can live without one.
    pub(super) async fn run(self) -> Option<String> {
        let request = Request {
            system: self.instructions,
            messages: vec![Message { role: Role::User, parts: vec![Part::Text(transcript(&self.history))] }],
            reasoning: false,
            ..Request::to(self.model)
        };
        let mut stream = self.provider.stream(request);
        let collect = async {
            let mut title = String::new();
            while let Some(delta) = stream.next().await {
                match delta {
                    Ok(Delta::Text(piece)) => title.push_str(&piece),
                    Ok(Delta::Stop(_)) => break,
                    Ok(_) => {}
                    Err(error) => {
                        tracing::debug!(%error, "no title");
                        return None;
                    }
                }
                if title.len() > MAX_MESSAGE_BYTES {
                    break;
                }
            }
            first_useful_line(&title)
        };
        tokio::time::timeout(TIMEOUT, collect).await.ok().flatten()
    }
}

/// The title as it is shown and stored.
pub(super) fn first_useful_line(answer: &str) -> Option<String> {
    answer
        .lines()
        .map(|line| text::one_line(text::one_line(line, MAX_MESSAGE_BYTES).trim_matches(QUOTES), MAX_TITLE_CHARS))
        .find(|line| !line.is_empty())
}

/// The last text of each message: what the user wrote comes after the contexts it is about.
fn transcript(history: &[Message]) -> String {
    let texts = history.iter().filter_map(|message| {
        let text = message.parts.iter().rev().find_map(|part| match part {
            Part::Text(text) => Some(text::prefix(text, MAX_MESSAGE_BYTES)),
            _ => None,
        })?;
        Some((message.role, text))
    });
    match texts.collect::<Vec<_>>()[..] {
        [(_, only)] => only.to_owned(),
        ref texts => texts
            .iter()
            .map(|(role, text)| match role {
                Role::User => format!("User: {text}\n"),
                Role::Assistant => format!("Assistant: {text}\n"),
            })
            .collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_title_is_one_short_line() {
        assert_eq!(first_useful_line("\n# \"Fix the parser\"\nbecause"), Some("Fix the parser".into()));
        assert_eq!(first_useful_line("**Bold title**"), Some("Bold title".into()));
        assert_eq!(first_useful_line(" \n\n"), None);
        assert_eq!(first_useful_line(&"x".repeat(90)).map(|t| t.len()), Some(40));
    }
}
