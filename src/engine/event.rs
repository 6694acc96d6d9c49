//! What the engine tells its front end. Plain data: each front end turns it into its own words.

use futures_util::future::BoxFuture;
use serde_json::{Map, Value};

use crate::base::{ChatId, ContentId, ToolCallId};
use crate::llm::Usage;
use crate::tool::Details;

#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    Chat {
        chat: ChatId,
        event: ChatEvent,
    },
    /// The same of a chat that works for another one.
    Subagent {
        chat: ChatId,
        parent: ChatId,
        event: ChatEvent,
    },
    /// The list of models or the default model is another one than before.
    ModelsChanged,
    /// A provider's login or models are others than before.
    ProviderChanged {
        id: String,
    },
    /// Something the user should know that belongs to no chat.
    Notice {
        level: NoticeLevel,
        text: String,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoticeLevel {
    Info,
    Warning,
    Error,
}

#[derive(Debug, Clone, PartialEq)]
pub enum ChatEvent {
    /// A chat that the client named exists from now on.
    Opened {
        title: Option<String>,
    },
    Status(ChatStatus),
    /// What the chat is doing right now.
    Progress(String),
    /// The turn is over. Exactly one per turn, last.
    Finished,
    /// The user's own message, as recorded.
    UserText {
        text: String,
        content_id: ContentId,
    },
    /// A text from us, not from the model.
    SystemText(String),
    /// Why the turn failed, as a text from us. At most one per turn, before it finishes.
    Failed(String),
    /// The turn ends for another reason than that the model is done, or that it failed. At most one
    /// per turn, before it finishes.
    Ending(Ending),
    /// What was said so far is being replaced by a summary.
    Compaction(Compaction),
    /// A piece of the model's answer.
    Text(String),
    ReasonStarted {
        id: String,
    },
    ReasonText {
        id: String,
        text: String,
    },
    ReasonFinished {
        id: String,
        total_ms: u64,
    },
    Citation {
        title: String,
        url: String,
    },
    Image {
        media_type: String,
        base64: String,
    },
    ToolCall(Box<ToolCallEvent>),
    /// A piece of what a running tool prints; may be dropped when the client is slow.
    ToolOutput {
        id: ToolCallId,
        text: String,
    },
    HookStarted {
        id: String,
        name: String,
    },
    HookFinished {
        id: String,
        name: String,
        call: Option<ToolCallId>,
        /// The exit code.
        status: i32,
        output: Option<String>,
        error: Option<String>,
    },
    Usage(UsageReport),
    Title(String),
    /// A mark of the user's between messages.
    Flag {
        text: String,
        content_id: ContentId,
    },
    /// Everything that was shown of this chat is gone; what follows is the chat as it is now.
    Cleared,
    Deleted,
}

/// Why a turn ends before the model is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// The answer reached the model's output limit.
    MaxTokens,
    /// The model was called as often as a turn may.
    MaxSteps,
    /// The model or its provider declined.
    Refused,
    /// The user stopped it.
    Stopped,
}

/// How far a compaction is. One that was begun and not ended ends with its turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Compaction {
    Started,
    Done { summary: String },
    Failed { reason: String },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChatStatus {
    Idle,
    Running,
    Stopping,
    /// The user is being asked for what a login needs.
    Login,
}

#[derive(Debug, Clone, PartialEq)]
pub struct ToolCallEvent {
    pub id: ToolCallId,
    pub name: String,
    pub server: String,
    pub origin: ToolCallOrigin,
    /// One line for people.
    pub summary: Option<String>,
    pub details: Option<Details>,
    pub stage: ToolCallStage,
}

/// Where a tool runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ToolCallOrigin {
    /// In this server.
    Native,
    /// In an MCP server.
    Mcp,
    /// At the provider of the model.
    Provider,
}

#[derive(Debug, Clone, PartialEq)]
pub enum ToolCallStage {
    /// A piece of the arguments, as the model writes them.
    Prepare {
        arguments_text: String,
    },
    Run {
        arguments: Map<String, Value>,
        manual_approval: bool,
    },
    Running {
        arguments: Map<String, Value>,
    },
    Called {
        arguments: Map<String, Value>,
        error: bool,
        outputs: Vec<String>,
        total_ms: u64,
    },
    Rejected {
        arguments: Map<String, Value>,
        reason: RejectReason,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RejectReason {
    User,
    /// A rule of the configuration.
    Config,
    Hook,
    /// The turn was stopped before the call ran to its end.
    PromptStop,
}

/// Tokens and money, after one model call.
#[derive(Debug, Clone, PartialEq)]
pub struct UsageReport {
    /// The last call alone; its occupancy is how full the context window is.
    pub last: Usage,
    /// All calls of this chat.
    pub total: Usage,
    /// Dollars, when the model's prices are known.
    pub last_cost: Option<f64>,
    pub total_cost: Option<f64>,
    pub context_limit: Option<u64>,
    pub output_limit: Option<u64>,
    /// At how many percent of the window the chat is compacted; `None` when it never is.
    pub auto_compact_percentage: Option<u32>,
    /// What fills the window; adds up to the last call's occupancy, apart from rounding.
    pub shares: Vec<Share>,
}

/// A part of what fills the context window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Share {
    pub kind: ShareKind,
    pub tokens: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ShareKind {
    Instructions,
    User,
    Assistant,
    Reasoning,
    Tools,
}

/// Where events go. One value per connection; what to do with a slow client is its policy.
pub trait EventSink: Send + Sync {
    /// Takes the event at once (`None`), or returns what must be awaited until there is room for
    /// it. Dropping that future gives the event up and breaks nothing.
    #[must_use]
    fn emit(&self, event: Event) -> Option<BoxFuture<'static, ()>>;
}
