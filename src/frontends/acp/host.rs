//! The editor as the engine may ask it, for one session: its buffers, its terminals, its user.

mod form;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use agent_client_protocol_schema::v1::{
    CreateElicitationRequest, CreateElicitationResponse, ElicitationFormMode, ElicitationSessionScope,
    ReadTextFileRequest, ReadTextFileResponse, WriteTextFileRequest,
};
use futures_util::future::BoxFuture;
use serde_json::Value;

use super::client::{ANSWER_PATIENCE, PATIENCE};
use super::methods::{ELICITATION_CREATE, FS_READ_TEXT_FILE, FS_WRITE_TEXT_FILE};
use super::terminals;
use super::voice::Voice;
use crate::base::ChatId;
use crate::base::task;
use crate::host::{Capabilities, Host, HostError, OpenChange, Question, Reply, Taken, TerminalCommand, TerminalRun};

/// A larger file is nobody's unsaved work, and is read from the disk.
const MOST_BUFFER_BYTES: u64 = 16 * 1024 * 1024;

pub(super) struct EditorHost {
    voice: Arc<Voice>,
    /// Cleared when the client turns out not to do what it announced.
    reads: AtomicBool,
    writes: AtomicBool,
    terminals: AtomicBool,
}

impl EditorHost {
    pub(super) fn new(voice: Arc<Voice>) -> Self {
        let facts = voice.client.facts();
        Self {
            reads: AtomicBool::new(facts.reads_files),
            writes: AtomicBool::new(facts.writes_files),
            terminals: AtomicBool::new(facts.terminals),
            voice,
        }
    }

    /// The editor's text of a file, which may be the disk's.
    async fn buffer(&self, path: &Path) -> Option<String> {
        if !self.reads.load(Ordering::Relaxed) {
            return None;
        }
        let request = ReadTextFileRequest::new(self.voice.id.clone(), path.to_owned());
        let answer = self.voice.client.call::<ReadTextFileResponse>(FS_READ_TEXT_FILE, &request, PATIENCE).await;
        match answer {
            Ok(answer) => Some(answer.content),
            Err(HostError::Unsupported) => {
                self.reads.store(false, Ordering::Relaxed);
                None
            }
            // It is not there, or no text.
            Err(error) => {
                tracing::debug!(%error, path = %path.display(), "the editor did not read");
                None
            }
        }
    }

    /// What the editor has of a file and the disk has not.
    async fn unsaved_text(&self, path: &Path) -> Option<String> {
        if !self.reads.load(Ordering::Relaxed) {
            return None;
        }
        let on_disk = match on_disk(path.to_owned()).await {
            OnDisk::Text(text) => Some(text),
            OnDisk::Nothing => None,
            OnDisk::NoText => return None,
        };
        let buffer = self.buffer(path).await?;
        match on_disk {
            Some(text) if is_same(&text, &buffer) => None,
            // Some clients have an empty text for what is not there.
            None if buffer.is_empty() => None,
            _ => Some(buffer),
        }
    }

    async fn write(&self, change: OpenChange) -> Result<Taken, HostError> {
        let OpenChange { path, before, after, .. } = change;
        if !self.writes.load(Ordering::Relaxed) || !has_folder(path.clone()).await {
            return Ok(Taken::NotHeld);
        }
        let unsaved = self.unsaved_text(&path).await;
        // What the user typed since is not written over.
        if unsaved.is_some() && unsaved != before {
            return Ok(Taken::Changed);
        }
        let request = WriteTextFileRequest::new(self.voice.id.clone(), path, after);
        match self.voice.client.call::<Value>(FS_WRITE_TEXT_FILE, &request, PATIENCE).await {
            Ok(_) => Ok(Taken::Saved),
            Err(HostError::Unsupported) => {
                self.writes.store(false, Ordering::Relaxed);
                Ok(Taken::NotHeld)
            }
            // The disk is as good where the user has nothing unsaved to lose.
            Err(HostError::Refused(_)) if unsaved.is_none() => Ok(Taken::NotHeld),
            Err(error) => Err(error),
        }
    }
}

impl Host for EditorHost {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            ask: self.voice.client.facts().forms,
            terminal: self.terminals.load(Ordering::Relaxed),
            ..Capabilities::default()
        }
    }

    fn ask(&self, question: Question) -> BoxFuture<'_, Result<Reply, HostError>> {
        Box::pin(async move {
            let scope = ElicitationSessionScope::new(self.voice.id.clone());
            let scope = scope.tool_call_id(question.call.as_ref().map(|call| call.to_string().into()));
            let mode = ElicitationFormMode::new(scope, form::schema(&question));
            let request = CreateElicitationRequest::new(mode, question.text.clone());
            let answer = self.voice.client.call(ELICITATION_CREATE, &request, ANSWER_PATIENCE).await?;
            let CreateElicitationResponse { action, .. } = answer;
            Ok(form::reply(&question, action))
        })
    }

    fn unsaved(&self, _: ChatId, path: PathBuf) -> BoxFuture<'_, Option<String>> {
        Box::pin(async move { self.unsaved_text(&path).await })
    }

    fn may_write_open(&self) -> bool {
        self.writes.load(Ordering::Relaxed)
    }

    fn write_open(&self, change: OpenChange) -> BoxFuture<'_, Result<Taken, HostError>> {
        Box::pin(self.write(change))
    }

    fn run_in_terminal(&self, command: TerminalCommand) -> BoxFuture<'_, Result<TerminalRun, HostError>> {
        Box::pin(async move {
            let ran = terminals::run(&self.voice, command).await;
            if ran == Err(HostError::Unsupported) {
                self.terminals.store(false, Ordering::Relaxed);
            }
            ran
        })
    }
}

/// What the disk has of a file.
enum OnDisk {
    Text(String),
    Nothing,
    /// A folder, something large, or bytes that are no text.
    NoText,
}

async fn on_disk(path: PathBuf) -> OnDisk {
    let reading = task::blocking(move || match std::fs::metadata(&path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => OnDisk::Nothing,
        Ok(metadata) if metadata.is_file() && metadata.len() <= MOST_BUFFER_BYTES => {
            let text = std::fs::read(&path).ok().and_then(|bytes| String::from_utf8(bytes).ok());
            text.filter(|text| !text.contains('\0')).map_or(OnDisk::NoText, OnDisk::Text)
        }
        _ => OnDisk::NoText,
    });
    reading.await.unwrap_or(OnDisk::NoText)
}

/// Editors differ in whether they make the folders of a new file, so those are ours to make.
async fn has_folder(path: PathBuf) -> bool {
    let looking = task::blocking(move || path.parent().is_some_and(Path::is_dir));
    looking.await.unwrap_or(false)
}

/// Editors show texts with plain line ends and without the mark; that alone is no change.
fn is_same(disk: &str, buffer: &str) -> bool {
    let plain = |text: &str| text.strip_prefix('\u{FEFF}').unwrap_or(text).replace("\r\n", "\n");
    disk == buffer || plain(disk) == plain(buffer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_ends_and_marks_are_no_changes() {
        for (disk, buffer, same) in [
            ("a\n", "a\n", true),
            ("a\r\nb\r\n", "a\nb\n", true),
            ("\u{FEFF}a", "a", true),
            ("a\n", "b\n", false),
            ("a", "a\n", false),
            ("", "", true),
        ] {
            assert_eq!(is_same(disk, buffer), same, "{disk:?} {buffer:?}");
        }
    }
}
