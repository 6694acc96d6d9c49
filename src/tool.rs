//! What a tool is: the words between the engine, which runs the model's calls, and everything
//! that a model can call.

pub mod file_text;
pub mod seen;

use std::any::Any;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use futures_util::future::BoxFuture;
use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;

use crate::base::{ChatId, ToolCallId};
use crate::config::ToolCallConfig;
use crate::host::Host;
use crate::llm::Image;
use crate::workspace::Workspace;

pub use file_text::FileText;
pub use seen::SeenFiles;

/// The server name of the tools that are built in.
pub const NATIVE_SERVER: &str = "eca";

/// The arguments of a call: a JSON object, checked against the required parameters.
pub type Arguments = Map<String, Value>;

/// Something the model can call. One value serves all chats; what belongs to a call is in its
/// [`ToolContext`].
pub trait Tool: Send + Sync {
    fn spec(&self) -> &ToolSpec;

    /// One line for people from what is known of the arguments, which may be nothing yet.
    fn summary(&self, arguments: &Arguments) -> Option<String> {
        let _ = arguments;
        None
    }

    /// What this call would do, worked out before anybody is asked. Changes nothing. An error ends
    /// the call without running it; its text is for the model.
    fn preview<'a>(
        &'a self,
        arguments: &'a Arguments,
        context: &'a ToolContext,
    ) -> BoxFuture<'a, Result<Preview, String>> {
        let _ = (arguments, context);
        Box::pin(std::future::ready(Ok(Preview::default())))
    }

    /// Carries the call out. Returns soon after `context.stop` is cancelled, with what really
    /// happened; may also be dropped at any await.
    fn run<'a>(&'a self, arguments: Arguments, context: ToolContext) -> BoxFuture<'a, ToolOutput>;
}

/// How a tool is offered.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolSpec {
    /// [`NATIVE_SERVER`], or the name of the MCP server.
    pub server: String,
    /// Without the server's name.
    pub name: String,
    pub origin: ToolOrigin,
    /// For the model; paid for on every call of the model, so short.
    pub description: String,
    /// A JSON schema of type object.
    pub parameters: Arc<Value>,
}

impl ToolSpec {
    pub fn native(name: &str, description: &str, parameters: Value) -> Self {
        Self {
            server: NATIVE_SERVER.to_owned(),
            name: name.to_owned(),
            origin: ToolOrigin::Native,
            description: description.to_owned(),
            parameters: Arc::new(parameters),
        }
    }

    /// The name that the model sees.
    pub fn full_name(&self) -> String {
        format!("{}__{}", self.server, self.name)
    }

    /// The parameters without which the tool cannot run.
    pub fn required(&self) -> impl Iterator<Item = &str> {
        self.parameters.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str)
    }
}

/// A summary that names the file of an argument as soon as there is one: "Reading a.txt".
pub fn summary_of_file(doing: &str, arguments: &Arguments, name: &str) -> String {
    let path = arguments.get(name).and_then(Value::as_str).map(Path::new);
    match path.and_then(Path::file_name) {
        Some(file) => format!("{doing} {}", file.to_string_lossy()),
        None => format!("{doing} file"),
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ToolOrigin {
    Native,
    Mcp,
}

/// What a call would do.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Preview {
    /// One line for people.
    pub summary: Option<String>,
    pub details: Option<Details>,
    /// The files and folders it touches; one outside the workspace, or a key file, is asked about.
    pub paths: Vec<TouchedPath>,
    /// The text that a shell would run; judged command by command.
    pub shell: Option<String>,
    /// Why this call is asked about, whatever the allow rules say.
    pub must_ask: Option<String>,
    /// What the run of the call need not work out again.
    pub prepared: Prepared,
}

/// What a preview worked out, for the run of the same call to take up. The run must see for itself
/// whether it still holds: the user may have taken a while to agree.
#[derive(Clone, Default)]
pub struct Prepared(Arc<Mutex<Option<Box<dyn Any + Send>>>>);

impl Prepared {
    pub fn new(value: impl Any + Send) -> Self {
        Self(Arc::new(Mutex::new(Some(Box::new(value)))))
    }

    /// Gives it away, once.
    pub fn take<T: Any>(&self) -> Option<T> {
        let value = self.0.lock().unwrap_or_else(PoisonError::into_inner).take()?;
        value.downcast().ok().map(|value| *value)
    }
}

impl std::fmt::Debug for Prepared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Prepared")
    }
}

impl PartialEq for Prepared {
    /// It only spares work: what a call would do is the same with and without it.
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

/// A path that a call touches, absolute, as the model wrote it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TouchedPath {
    pub path: PathBuf,
    pub access: Access,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    Read,
    Write,
}

/// What there is to show of a call besides its arguments and outputs.
#[derive(Debug, Clone, PartialEq)]
pub enum Details {
    FileChange(FileChange),
    ShellCommand(ShellDetails),
    /// Outputs that are JSON, laid out for reading.
    JsonOutputs(Vec<String>),
    Task(TaskDetails),
    Subagent(SubagentDetails),
}

/// How a file changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileChange {
    pub path: PathBuf,
    /// Unified, with three lines of context and no file header; bounded.
    pub diff: String,
    pub lines_added: u32,
    pub lines_removed: u32,
    /// The whole text before, for contracts that show both; `None` for a new file.
    pub before: Option<FileText>,
    pub after: FileText,
}

/// What a shell tool runs, taken apart.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ShellDetails {
    pub commands: Vec<ShellUnit>,
    pub background: bool,
}

/// One command of a command line.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ShellUnit {
    pub command: String,
    pub args: Vec<String>,
    /// Under which name a consent to this command is remembered; none if it never is.
    pub approval_key: Option<String>,
    /// Whether such a consent is there.
    pub remembered: bool,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TaskDetails {
    pub tasks: Vec<TaskItem>,
    pub active_summary: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskItem {
    pub id: u64,
    pub subject: String,
    pub description: String,
    pub status: TaskStatus,
    pub priority: TaskPriority,
    /// The unfinished tasks that must be done before this one.
    pub blocked_by: Vec<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TaskStatus {
    Pending,
    InProgress,
    Done,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TaskPriority {
    High,
    Medium,
    Low,
}

/// How far a subagent is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SubagentDetails {
    pub chat: Option<ChatId>,
    pub model: String,
    pub variant: Option<String>,
    pub agent: String,
    pub max_steps: Option<u32>,
    pub step: u32,
}

/// What came of a call.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ToolOutput {
    pub error: bool,
    pub contents: Vec<Content>,
    /// Replace those of the preview when there are any.
    pub details: Option<Details>,
    pub summary: Option<String>,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Content {
    Text(String),
    Image(Image),
}

impl ToolOutput {
    pub fn text(text: impl Into<String>) -> Self {
        Self { contents: vec![Content::Text(text.into())], ..Self::default() }
    }

    pub fn error(text: impl Into<String>) -> Self {
        Self { error: true, ..Self::text(text) }
    }
}

/// Everything a call may use that is not in its arguments.
#[derive(Clone)]
pub struct ToolContext {
    pub chat: ChatId,
    pub call: ToolCallId,
    /// The name of the agent that calls.
    pub agent: String,
    pub workspace: Arc<Workspace>,
    /// Cancelled when the call must end.
    pub stop: CancellationToken,
    /// The client, as far as it can be asked.
    pub host: Arc<dyn Host>,
    /// What the model of this chat has seen of files.
    pub seen: Arc<SeenFiles>,
    /// Told about every change of a file before it is made.
    pub journal: Arc<dyn Journal>,
    pub live: Arc<dyn LiveOutput>,
    /// The agent's settings.
    pub settings: Arc<ToolCallConfig>,
    /// Whether the model can look at images.
    pub sees_images: bool,
    /// What the preview of this call left for its run.
    pub prepared: Prepared,
}

impl std::fmt::Debug for ToolContext {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ToolContext").field("chat", &self.chat).field("call", &self.call).finish_non_exhaustive()
    }
}

/// Keeps what a file was, so that a change can be taken back, also after a restart.
pub trait Journal: Send + Sync {
    /// Returns when `before` is kept; the file must not be changed if it could not be.
    fn before_change(&self, change: PlannedChange) -> BoxFuture<'_, Result<(), String>>;
}

/// A change that is about to be made to one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlannedChange {
    pub call: ToolCallId,
    pub path: PathBuf,
    /// The bytes before; `None` when there is no file yet.
    pub before: Option<Bytes>,
    /// The bytes after; `None` when the file will be gone.
    pub after: Option<Bytes>,
}

/// Where a running call can show what it is doing. Never blocks; what is too much is dropped.
pub trait LiveOutput: Send + Sync {
    /// A piece of what the tool prints.
    fn output(&self, text: &str);
    /// One line about how far it is.
    fn progress(&self, text: &str);
    /// New details, for tools that show their steps.
    fn details(&self, details: Details);
}

/// For calls that nobody watches.
#[derive(Debug, Clone, Copy, Default)]
pub struct Unwatched;

impl LiveOutput for Unwatched {
    fn output(&self, _: &str) {}
    fn progress(&self, _: &str) {}
    fn details(&self, _: Details) {}
}
