//! ECA's messages without a connection: one JSON line per message, for `eca chat --json`.
//!
//! A script that reads these lines knows what an editor would be sent, because the same code
//! says it.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use custom_methods::general::MessageType;

use super::session::{ClientFacts, Presentation, Session, Started};
use super::sink::{Speaker, show_message};
use crate::config::load::Loaded;
use crate::engine::{Engine, Event};
use crate::frontends::assemble::{trust_command, withheld_text};
use crate::mcp::Servers;
use crate::transport::Frame;

/// Turns engine events into lines `{"method":…,"params":…}`.
pub(in crate::frontends) struct Lines {
    session: Arc<Session>,
    speaker: Speaker,
}

impl Default for Lines {
    fn default() -> Self {
        let session = Arc::new(Session::default());
        Self { speaker: Speaker::new(Arc::clone(&session)), session }
    }
}

/// What of a message is shown; the rest of the envelope is the same in all of them.
#[derive(Serialize, Deserialize)]
struct Line<'a> {
    #[serde(borrow)]
    method: std::borrow::Cow<'a, str>,
    #[serde(borrow)]
    params: &'a RawValue,
}

impl Lines {
    /// Tells of the engine whose events these are. Returns what the configuration's problems say.
    pub(in crate::frontends) fn start(&self, engine: &Engine, loaded: &Loaded) -> Vec<String> {
        let (client, engine) = (ClientFacts::default(), engine.clone());
        self.session.start(Started { client, engine, servers: Servers::default(), problems: Vec::new() });
        self.session.present(Presentation::of(&loaded.config));
        let warning = |problem| show_message(&self.session, MessageType::Warning, format!("Configuration: {problem}"));
        let withheld = loaded.withheld.iter().flat_map(|withheld| {
            let text = format!("{} {}", withheld_text(withheld), trust_command(withheld));
            show_message(&self.session, MessageType::Warning, text)
        });
        lines(loaded.problems.iter().flat_map(warning).chain(withheld))
    }

    /// Without the line breaks.
    pub(in crate::frontends) fn of(&self, event: Event) -> Vec<String> {
        lines(self.speaker.frames(event))
    }
}

fn lines(frames: impl IntoIterator<Item = Frame>) -> Vec<String> {
    frames.into_iter().filter_map(|frame| line(&frame.body())).collect()
}

fn line(body: &[u8]) -> Option<String> {
    let line: Line<'_> = serde_json::from_slice(body).ok()?;
    serde_json::to_string(&line).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::ChatId;
    use crate::engine::ChatEvent;

    #[test]
    fn a_line_is_the_message_without_its_envelope() {
        let lines = Lines::default();
        let chat = ChatId::new("c");
        let event = |event| Event::Chat { chat: chat.clone(), event };
        assert_eq!(
            lines.of(event(ChatEvent::Text("a\n\"b\"".into()))),
            [
                r#"{"method":"chat/contentReceived","params":{"chatId":"c","role":"assistant","content":{"type":"text","text":"a\n\"b\""}}}"#
            ]
        );
        let failed = lines.of(event(ChatEvent::Failed("no".into())));
        assert_eq!(failed, lines.of(event(ChatEvent::SystemText("no".into()))));
        assert!(failed[0].contains(r#""role":"system""#), "{failed:?}");
    }
}
