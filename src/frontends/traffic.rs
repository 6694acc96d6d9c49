//! `--verbose`: every message in the log, with what looks like a secret blanked.

use std::io::{self, Write};

use serde_json::Value;

use crate::logging::TRAFFIC_TARGET;

/// A message is shown up to here.
const MAX_SHOWN_BYTES: usize = 4_096;
const BLANK: &str = "****";

pub(super) fn received(method: &str, params: Option<&Value>) {
    if tracing::enabled!(target: TRAFFIC_TARGET, tracing::Level::INFO) {
        let params = params.cloned().map(|mut params| {
            blank_secrets(&mut params);
            shown(&params.to_string())
        });
        tracing::info!(target: TRAFFIC_TARGET, "--> {method} {}", params.unwrap_or_default());
    }
}

/// Passes frames on and logs them. One `write` is one frame.
pub(super) struct LoggedWriter<W>(pub(super) W);

impl<W: Write> Write for LoggedWriter<W> {
    fn write(&mut self, frame: &[u8]) -> io::Result<usize> {
        if tracing::enabled!(target: TRAFFIC_TARGET, tracing::Level::INFO) {
            log_frame(frame);
        }
        self.0.write(frame)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

fn log_frame(frame: &[u8]) {
    let body = frame.windows(4).position(|window| window == b"\r\n\r\n").map_or(frame, |end| &frame[end + 4..]);
    let text = match serde_json::from_slice::<Value>(body) {
        Ok(mut message) => {
            blank_secrets(&mut message);
            shown(&message.to_string())
        }
        // The rest of a frame that was written in pieces.
        Err(_) => return,
    };
    tracing::info!(target: TRAFFIC_TARGET, "<-- {text}");
}

fn shown(text: &str) -> String {
    let cut = crate::base::text::prefix(text, MAX_SHOWN_BYTES);
    if cut.len() < text.len() { format!("{cut}… ({} bytes)", text.len()) } else { cut.to_owned() }
}

fn blank_secrets(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            for (name, field) in fields {
                match field {
                    Value::String(text) if is_secret(name) => BLANK.clone_into(text),
                    other => blank_secrets(other),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(blank_secrets),
        _ => {}
    }
}

fn is_secret(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    ["key", "token", "secret", "password", "authorization", "cookie"].iter().any(|word| name.contains(word))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn secrets_are_blanked_wherever_they_stand() {
        let mut message = json!({"providers": [{"apiKey": "sk-1", "url": "http://x"}], "headers": {"Authorization": "b"}, "tokens": 5});
        blank_secrets(&mut message);
        assert_eq!(
            message,
            json!({"providers": [{"apiKey": "****", "url": "http://x"}], "headers": {"Authorization": "****"}, "tokens": 5})
        );
    }

    #[test]
    fn long_messages_are_cut() {
        assert!(shown(&"x".repeat(10_000)).ends_with("… (10000 bytes)"));
        assert_eq!(shown("short"), "short");
    }
}
