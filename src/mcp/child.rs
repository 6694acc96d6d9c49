//! A server that is a process: how it is started, and what it says on its error output.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::io::AsyncRead;
use tokio::task::JoinHandle;

use super::failure::Failure;
use super::lines::{Line, Lines};
use super::pace::Pace;
use super::shared::Definition;
use crate::base::task;
use crate::base::text::one_line;
use crate::http::redact;
use crate::process::piped::{Piped, Pipes, piped};

/// What the guard reports, like a shell, for a program that cannot be started.
const CANNOT_START: i32 = 127;
const MOST_LINE: usize = 4 * 1024;
/// The last lines, for whoever asks why it ended.
const KEPT_LINES: usize = 5;
const SHOWN_LINE: usize = 300;
/// A program that has closed its pipes is about to end.
const END_PATIENCE: Duration = Duration::from_millis(300);

/// The last words of a program.
#[derive(Debug, Clone, Default)]
struct LastWords(Arc<Mutex<VecDeque<String>>>);

impl LastWords {
    fn add(&self, line: String) {
        let mut lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if lines.len() == KEPT_LINES {
            lines.pop_front();
        }
        lines.push_back(line);
    }

    fn get(&self) -> Vec<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
    }
}

/// Starts the program of `definition`.
pub(super) fn start(server: &str, definition: &Definition) -> Result<(Piped, Pipes), Failure> {
    let config = &definition.config;
    let command = config.command.as_deref().unwrap_or_default();
    if command.is_empty() {
        return Err(Failure::Lasting("it has neither a command nor a url".to_owned()));
    }
    let variables = config.env.iter().map(|(name, value)| (name.as_str(), value.expose()));
    let is_bad = |text: &str| text.contains('\0');
    let bad_variable =
        variables.clone().any(|(name, value)| is_bad(name) || is_bad(value) || name.contains('=') || name.is_empty());
    if is_bad(command) || config.args.iter().any(|arg| is_bad(arg)) || bad_variable {
        return Err(Failure::Lasting("its command or environment contains what no program can be given".to_owned()));
    }
    let directory = definition.directory.as_deref().filter(|directory| directory.is_dir());
    let started = piped(command, &config.args, variables, directory);
    started.map_err(|error| {
        tracing::warn!(server, %error, "an MCP server cannot be started");
        Failure::Passing(format!("it cannot be started ({})", error.kind()))
    })
}

/// Writes everything on the error output to our log, as long as there is any.
async fn listen(server: String, errors: impl AsyncRead + Unpin, last_words: LastWords, secrets: Arc<Vec<String>>) {
    let mut lines = Lines::new(errors, MOST_LINE);
    let mut pace = Pace::new();
    while let Ok(Some(line)) = lines.next().await {
        let (Line::Whole(bytes) | Line::TooLong { head: bytes, .. }) = line;
        pace.admit(1, bytes.len()).await;
        let text = String::from_utf8_lossy(&bytes);
        let text = redact(text.trim_end(), secrets.iter().map(String::as_str));
        if !text.trim().is_empty() {
            tracing::info!(server, text, "MCP server's error output");
            last_words.add(one_line(&text, SHOWN_LINE));
        }
    }
}

/// A program with what it says on its error output.
pub(super) struct Process {
    pub(super) program: Piped,
    last_words: LastWords,
    listener: JoinHandle<()>,
}

impl Process {
    pub(super) fn new(
        server: &str,
        program: Piped,
        errors: impl AsyncRead + Unpin + Send + 'static,
        secrets: &Arc<Vec<String>>,
    ) -> Self {
        let last_words = LastWords::default();
        let listening = listen(server.to_owned(), errors, last_words.clone(), Arc::clone(secrets));
        Self { program, last_words, listener: task::spawn(listening) }
    }

    /// Lets it end by itself for a moment, then ends it.
    pub(super) async fn end(self, patience: Duration) {
        self.program.end(patience).await;
    }
}

/// Why the program ended; it is gone afterwards.
pub(super) async fn post_mortem(process: Process) -> Failure {
    let Process { program, last_words, listener } = process;
    let code = program.end(END_PATIENCE).await;
    // What it said last may not have been read yet.
    let _ = tokio::time::timeout(END_PATIENCE, listener).await;
    let words = last_words.get();
    match code {
        Some(CANNOT_START) => {
            Failure::Lasting(words.last().cloned().unwrap_or_else(|| "its command cannot be found".to_owned()))
        }
        code => {
            let code = code
                .map_or_else(|| "it closed its output".to_owned(), |code| format!("it ended with exit code {code}"));
            let said = words.last().map(|line| format!(": {line}")).unwrap_or_default();
            Failure::Passing(format!("{code}{said}"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_last_words_are_kept_without_secrets() {
        let last_words = LastWords::default();
        let text = format!("one\n\n  \n\u{1b}[31mtwo s3cr3t!\n{}\nthree\nfour\nfive\nsix", "x".repeat(100_000));
        let secrets = Arc::new(vec!["s3cr3t!".to_owned()]);
        listen("s".to_owned(), text.as_bytes(), last_words.clone(), secrets).await;
        let words = last_words.get();
        assert_eq!(words.len(), KEPT_LINES);
        assert_eq!(words.last().map(String::as_str), Some("six"));
        assert!(words.iter().all(|line| line.chars().count() <= SHOWN_LINE && !line.contains("s3cr3t")), "{words:?}");
    }
}
