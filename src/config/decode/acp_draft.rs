//! The section `acpDraft`.

use std::time::Duration;

use serde_json::{Map, Value};

use super::{Decoder, current_agent_name, expected};
use crate::config::{AcpDraftConfig, Config};

/// Who pauses longer in the middle of a message has left it.
const LONGEST_PAUSE_MS: u64 = 60_000;

impl<'a> Decoder<'a> {
    pub(super) fn acp_draft(&mut self, values: &'a Map<String, Value>, config: &mut Config) {
        let draft = &mut config.acp_draft;
        self.object(values, "acpDraft", |decoder, entry| {
            decoder.value(entry, "agent", agent, &mut draft.agent);
            decoder.value(entry, "messagePauseMs", pause, &mut draft.message_pause);
        });
    }
}

fn agent(found: Option<&Value>) -> Result<String, String> {
    match found {
        None => Ok(AcpDraftConfig::default().agent),
        Some(Value::String(name)) if !name.trim().is_empty() => Ok(current_agent_name(name).to_owned()),
        Some(other) => Err(expected("the name of an agent", other)),
    }
}

fn pause(found: Option<&Value>) -> Result<Duration, String> {
    let Some(value) = found else { return Ok(AcpDraftConfig::default().message_pause) };
    let time = value.as_u64().filter(|time| (1..=LONGEST_PAUSE_MS).contains(time));
    let wanted = format!("a whole number from 1 to {LONGEST_PAUSE_MS}");
    time.map(Duration::from_millis).ok_or_else(|| expected(&wanted, value))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::apply;
    use super::*;
    use crate::config::document::Document;

    #[test]
    fn values_defaults_and_problems() {
        let default = AcpDraftConfig::default();
        let with =
            |agent: &str, ms: u64| AcpDraftConfig { agent: agent.to_owned(), message_pause: Duration::from_millis(ms) };
        for (value, expected, problems) in [
            (json!({}), default.clone(), 0),
            (json!({"agent": " code ", "messagePauseMs": 20}), with("code", 20), 0),
            (json!({"agent": "build", "messagePauseMs": null}), with("code", 300), 0),
            (json!({"agent": null}), default.clone(), 0),
            (json!({"agent": "", "messagePauseMs": 0}), default.clone(), 2),
            (json!({"agent": 3, "messagePauseMs": "soon"}), default.clone(), 2),
            (json!({"messagePauseMs": 60_001}), default, 1),
        ] {
            let mut config = Config::default();
            let mut found = Vec::new();
            let document = Document::from_value("test", json!({"acpDraft": value.clone()})).expect("an object");
            apply(&mut config, &document, false, &mut found);
            assert_eq!(config.acp_draft, expected, "{value}");
            assert_eq!(found.len(), problems, "{value}: {found:?}");
        }
    }
}
