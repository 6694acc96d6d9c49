//! What the engine and its tools may ask a client. Each front end implements as much as its
//! client can do; a client that can do nothing is [`NoHost`].

use std::path::PathBuf;
use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio_util::sync::CancellationToken;

use crate::base::{ChatId, ToolCallId};

/// A client that can be asked. Every method answers in bounded time, except
/// [`ask`](Host::ask), which waits for a person and is dropped when its turn ends.
pub trait Host: Send + Sync {
    fn capabilities(&self) -> Capabilities;

    /// The problems the editor knows of, of one file or of all.
    fn diagnostics(&self, path: Option<PathBuf>) -> BoxFuture<'_, Result<Vec<Diagnostic>, HostError>> {
        let _ = path;
        unsupported()
    }

    fn definition(&self, place: SymbolPlace) -> BoxFuture<'_, Result<Locations, HostError>> {
        let _ = place;
        unsupported()
    }

    fn references(&self, place: SymbolPlace, include_declaration: bool) -> BoxFuture<'_, Result<Locations, HostError>> {
        let _ = (place, include_declaration);
        unsupported()
    }

    /// Asks the user.
    fn ask(&self, question: Question) -> BoxFuture<'_, Result<Reply, HostError>> {
        let _ = question;
        unsupported()
    }

    /// The text of a document that the editor has open and that differs from the disk. `None`: read
    /// the disk. `chat` is the one that wants to know.
    fn unsaved(&self, chat: ChatId, path: PathBuf) -> BoxFuture<'_, Option<String>> {
        let _ = (chat, path);
        Box::pin(std::future::ready(None))
    }

    /// Whether [`write_open`](Host::write_open) may take anything; else nobody copies a text for it.
    fn may_write_open(&self) -> bool {
        true
    }

    /// Offers a change of a file to the editor, which takes it if it holds unsaved changes of that file.
    fn write_open(&self, change: OpenChange) -> BoxFuture<'_, Result<Taken, HostError>> {
        let _ = change;
        Box::pin(std::future::ready(Ok(Taken::NotHeld)))
    }

    /// Runs a program where the user sees it, to its end or to that of its time. Only for clients
    /// with [`terminal`](Capabilities::terminal). Dropping this kills the program.
    fn run_in_terminal(&self, command: TerminalCommand) -> BoxFuture<'_, Result<TerminalRun, HostError>> {
        let _ = command;
        unsupported()
    }
}

fn unsupported<T: Send + 'static>() -> BoxFuture<'static, Result<T, HostError>> {
    Box::pin(std::future::ready(Err(HostError::Unsupported)))
}

/// What a client can be asked for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Capabilities {
    pub diagnostics: bool,
    pub definition: bool,
    pub references: bool,
    pub ask: bool,
    /// A question about a call can be shown only if the call changes a file.
    pub approves_file_changes_only: bool,
    /// No question about a call can be shown at all.
    pub approves_nothing: bool,
    /// The client has terminals in which programs can run.
    pub terminal: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HostError {
    #[error("the editor cannot do this")]
    Unsupported,
    #[error("the editor did not answer in time")]
    Timeout,
    #[error("the editor is gone")]
    Gone,
    #[error("the editor answered with an error: {0}")]
    Refused(String),
    /// In words that say what the user can do.
    #[error("{0}")]
    Impossible(String),
}

/// A change of a file, for an editor that may have it open.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenChange {
    pub chat: ChatId,
    pub path: PathBuf,
    /// What the editor's text was when the change was worked out; `None` if the disk was read.
    pub before: Option<String>,
    pub after: String,
}

/// What an editor did with a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Taken {
    /// It is in the editor's document now, and not on the disk until that is saved.
    Yes,
    /// The editor has written it to the disk.
    Saved,
    /// The editor has no unsaved text of this file: write the disk.
    NotHeld,
    /// The editor's text is another one than the change was made for.
    Changed,
}

/// One problem the editor knows of. Lines and columns are 1-based here, whatever the client sends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnostic {
    pub path: PathBuf,
    pub severity: Severity,
    pub code: Option<String>,
    pub start: (u64, u64),
    pub end: (u64, u64),
    pub source: Option<String>,
    pub message: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Severity {
    Error,
    Warning,
    Information,
    Hint,
}

/// Where a symbol stands; 1-based, the column in UTF-16 units.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SymbolPlace {
    pub path: PathBuf,
    pub line: u64,
    pub column: u64,
}

/// What the editor's language server found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Locations {
    Found(Vec<Location>),
    /// The language server is not ready yet; ask again.
    Starting,
    NoServer,
    Failed(String),
}

/// 1-based, the column in UTF-16 units.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Location {
    pub path: PathBuf,
    pub line: u64,
    pub column: u64,
}

/// A question to the user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Question {
    pub chat: ChatId,
    /// The call that asks, if it is one.
    pub call: Option<ToolCallId>,
    pub text: String,
    pub options: Vec<Choice>,
    pub allow_freeform: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Choice {
    pub label: String,
    pub description: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reply {
    Answer(String),
    /// The user closed the question.
    Cancelled,
}

/// A program for a terminal of the client.
#[derive(Debug, Clone)]
pub struct TerminalCommand {
    pub chat: ChatId,
    /// The call that runs it.
    pub call: ToolCallId,
    pub program: String,
    pub args: Vec<String>,
    pub directory: PathBuf,
    pub variables: Vec<(String, String)>,
    /// The client keeps the last so many bytes of the output.
    pub most_bytes: u64,
    pub patience: Duration,
    /// Cancelled when the program must end.
    pub stop: CancellationToken,
}

/// What came of a program in a terminal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TerminalRun {
    pub end: TerminalEnd,
    /// Both streams, as far as the client kept them.
    pub output: String,
    pub truncated: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TerminalEnd {
    Code(i32),
    Signal(String),
    TimedOut,
    Stopped,
}

/// A client that can be asked nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoHost;

impl Host for NoHost {
    fn capabilities(&self) -> Capabilities {
        Capabilities::default()
    }

    fn may_write_open(&self) -> bool {
        false
    }
}
