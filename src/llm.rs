//! The vocabulary every model speaks inside the engine: request, message, delta, usage, error.
//!
//! No vendor's wire format shows here. A dialect under `providers/dialects` turns a [`Request`]
//! into its own body and its own stream into [`Delta`]s. The shapes are cut for all of them:
//! reasoning carries an opaque part to replay, tool calls are parallel and streamed, arguments
//! stay text until they are complete (invalid JSON is the engine's to report, not a stream error),
//! usage is additive, a refusal is a stop reason.

use std::time::Duration;

use futures_util::stream::BoxStream;
use serde_json::{Map, Value};

use crate::base::ModelId;

/// One call of a model.
#[derive(Debug, Clone, PartialEq)]
pub struct Request {
    pub model: ModelId,
    /// Instructions that come before the conversation.
    pub system: String,
    pub messages: Vec<Message>,
    pub tools: Vec<ToolSpec>,
    /// `None` lets the dialect choose the model's own limit.
    pub max_output_tokens: Option<u64>,
    /// Whether the model may think visibly; a title needs none.
    pub reasoning: bool,
    /// Whether the provider may search the web on its own, where it can.
    pub web_search: bool,
    /// What the chosen variant adds to the body, merged over the model's own extra payload.
    pub payload: Map<String, Value>,
    /// The same for all calls of one chat, so that a provider finds its cache again.
    pub cache_key: Option<String>,
}

impl Request {
    /// A request with nothing but its model; set what it needs.
    pub fn to(model: ModelId) -> Self {
        Self {
            model,
            system: String::new(),
            messages: Vec::new(),
            tools: Vec::new(),
            max_output_tokens: None,
            reasoning: true,
            web_search: false,
            payload: Map::new(),
            cache_key: None,
        }
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct Message {
    pub role: Role,
    pub parts: Vec<Part>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    User,
    Assistant,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Part {
    Text(String),
    Image(Image),
    /// What the model thought. `replay` is the vendor's opaque part (a signature, encrypted
    /// content) and only means something to the dialect named in it.
    Reasoning {
        text: String,
        replay: Option<Replay>,
    },
    /// `arguments` is the text as the model wrote it; it may be invalid JSON.
    ToolCall {
        id: String,
        name: String,
        arguments: String,
        replay: Option<Replay>,
    },
    ToolResult {
        call_id: String,
        text: String,
        images: Vec<Image>,
        error: bool,
    },
    /// Something the vendor did on its own side, such as a search, that it wants to see again.
    Opaque(Replay),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Image {
    pub media_type: String,
    pub base64: String,
}

/// Opaque data that must be sent back to the vendor that produced it, and to no other.
#[derive(Debug, Clone, PartialEq)]
pub struct Replay {
    pub dialect: String,
    pub data: Value,
}

/// A tool as offered to the model.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolSpec {
    pub name: String,
    pub description: String,
    /// JSON Schema of the arguments object.
    pub parameters: Value,
}

/// One step of a model's answer.
#[derive(Debug, Clone, PartialEq)]
pub enum Delta {
    /// The provider took the request; the answer is on its way. Comes once, first.
    Started,
    Text(String),
    /// Reasoning text; a new block starts when the previous one ended or another kind came.
    Reasoning(String),
    /// The open reasoning block is complete.
    ReasoningEnd {
        replay: Option<Replay>,
    },
    /// `index` tells parallel calls of one answer apart; `id` is the provider's, possibly empty.
    ToolCallStart {
        index: usize,
        id: String,
        name: String,
    },
    ToolCallArguments {
        index: usize,
        text: String,
    },
    /// What the vendor wants back with this call.
    ToolCallReplay {
        index: usize,
        replay: Replay,
    },
    Citation {
        title: String,
        url: String,
    },
    Image(Image),
    /// A tool that runs at the provider; shown, never run by us.
    ServerTool(ServerTool),
    /// To be sent back to this vendor at this place of the answer.
    Opaque(Replay),
    /// Totals of this request so far; a later one replaces an earlier one.
    Usage(Usage),
    /// The answer is complete. Comes once, last.
    Stop(StopReason),
}

/// A step of a tool that runs at the provider.
#[derive(Debug, Clone, PartialEq)]
pub enum ServerTool {
    Started { id: String, name: String },
    Finished { id: String, name: String, input: Map<String, Value>, output: String, error: bool },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StopReason {
    EndTurn,
    ToolCalls,
    MaxTokens,
    Refusal,
}

/// Tokens of one request. `input` excludes what was read from or written to a cache.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    pub input: u64,
    pub output: u64,
    pub cache_read: u64,
    pub cache_write: u64,
}

impl Usage {
    /// How much of the context window the request and its answer occupy.
    pub fn occupancy(&self) -> u64 {
        self.input + self.output + self.cache_read + self.cache_write
    }
}

impl std::ops::Add for Usage {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            input: self.input + other.input,
            output: self.output + other.output,
            cache_read: self.cache_read + other.cache_read,
            cache_write: self.cache_write + other.cache_write,
        }
    }
}

/// What is known of a model.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelInfo {
    pub id: ModelId,
    pub context_limit: Option<u64>,
    pub output_limit: Option<u64>,
    /// Price in US dollars per million tokens.
    pub cost: Option<Cost>,
    pub tools: bool,
    pub reasoning: bool,
    pub vision: bool,
    /// Whether its provider searches the web for it.
    pub web_search: bool,
}

impl ModelInfo {
    /// A model of which only the name is known: assumed to take tools and to reason, as most do.
    pub fn named(id: ModelId) -> Self {
        Self {
            id,
            context_limit: None,
            output_limit: None,
            cost: None,
            tools: true,
            reasoning: true,
            vision: false,
            web_search: false,
        }
    }
}

#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Cost {
    pub input: f64,
    pub output: f64,
    pub cache_read: f64,
    pub cache_write: f64,
}

impl Cost {
    /// Dollars for `usage`.
    pub fn of(&self, usage: Usage) -> f64 {
        let tokens = |n: u64| n as f64 / 1_000_000.0;
        tokens(usage.input) * self.input
            + tokens(usage.output) * self.output
            + tokens(usage.cache_read) * self.cache_read
            + tokens(usage.cache_write) * self.cache_write
    }
}

/// A failed or broken model call, classified where it happened.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{user_text}")]
pub struct LlmError {
    pub class: ErrorClass,
    /// The status of the provider's answer, if there was one and it said so.
    pub status: Option<u16>,
    pub provider: String,
    /// When the provider said how long to wait.
    pub retry_after: Option<Duration>,
    /// What happened and what to do about it, for the user. Never holds a secret.
    pub user_text: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorClass {
    /// The key is missing, wrong or not allowed.
    Auth,
    RateLimited,
    Overloaded,
    /// Could not connect, or the connection broke.
    Network,
    /// The stream ended before the answer was complete.
    PrematureStop,
    ContextOverflow,
    /// An image in the request cannot be read, or is not wanted.
    InvalidImage,
    /// The provider does not accept the request as it is.
    BadRequest,
    /// An answer that does not follow the dialect.
    Protocol,
    Unknown,
}

impl ErrorClass {
    /// Whether the same request may succeed later.
    pub fn is_transient(self) -> bool {
        matches!(self, Self::RateLimited | Self::Overloaded | Self::Network | Self::PrematureStop)
    }
}

/// The deltas of one answer. Dropping it closes the connection.
pub type DeltaStream = BoxStream<'static, Result<Delta, LlmError>>;

/// A source of models. One value per configured provider.
pub trait Provider: Send + Sync + std::fmt::Debug {
    /// The id in front of the slash.
    fn id(&self) -> &str;

    /// The name under which this provider's [`Replay`]s are marked.
    fn dialect(&self) -> &'static str;

    /// Starts one answer. Connection errors come as the first item of the stream; nothing is
    /// retried here.
    fn stream(&self, request: Request) -> DeltaStream;
}
