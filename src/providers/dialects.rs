//! The wire formats of the vendors, each as pure functions, and the exchange they all share.
//!
//! A dialect turns a request into a JSON body and a stream of events into deltas ([`Decoder`]).
//! Everything that touches a socket (sending, status, framing, the idle watchdog, the limits) is
//! in [`exchange`] and knows no dialect.

pub mod anthropic;
pub mod bedrock;
mod blocks;
mod claude;
mod endpoint;
mod event_stream;
pub mod exchange;
pub mod gemini;
mod history;
mod lines;
pub mod ollama;
pub mod openai_chat;
pub mod openai_responses;
mod payload;
#[cfg(test)]
mod recorded;
#[cfg(test)]
mod testing;
mod turns;
mod watchdog;

use std::time::Duration;

use serde_json::Value;

use super::errors::Fault;
use super::sse::Event;
use crate::base::text;
use crate::llm::Delta;

/// Turns one answer into deltas. Pure: no clock, no socket.
pub trait Decoder: Send + 'static {
    /// Takes one event of a streamed answer. What was decoded before a fault stays in `out`.
    fn event(&mut self, event: &Event, out: &mut Vec<Delta>) -> Result<Progress, Fault>;

    /// Takes an answer that came in one piece; [`Decoder::end`] follows.
    fn whole(&mut self, body: &[u8], out: &mut Vec<Delta>) -> Result<(), Fault>;

    /// The answer is over: closes what is open and adds the stop, or says that it came too early.
    fn end(&mut self, out: &mut Vec<Delta>) -> Result<(), Fault>;
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    More,
    /// The provider said that this was the last event.
    Complete,
}

/// How long a provider may be silent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timeouts {
    /// Between two pieces of a stream, and before its first.
    pub stream_idle: Duration,
    /// Before the first byte of an answer that comes in one piece.
    pub whole_answer: Duration,
}

impl Timeouts {
    /// An answer in one piece is silent for as long as the model needs to write all of it.
    pub fn new(stream_idle: Duration) -> Self {
        Self { stream_idle, whole_answer: stream_idle.max(Duration::from_secs(600)) }
    }
}

/// A model as its provider lists it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ListedModel {
    pub name: String,
    pub context_limit: Option<u64>,
    pub output_limit: Option<u64>,
    /// `None` when the provider does not say.
    pub capabilities: Option<Capabilities>,
}

/// What a provider says its model can do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Capabilities {
    pub tools: bool,
    pub reasoning: bool,
    pub vision: bool,
}

/// One event of a stream, or a whole answer, as the JSON object that it must be.
fn parse_object(data: &[u8]) -> Result<Value, Fault> {
    match serde_json::from_slice::<Value>(data) {
        Ok(value) if value.is_object() => Ok(value),
        _ => Err(not_an_object(data)),
    }
}

fn not_an_object(data: &[u8]) -> Fault {
    let start = String::from_utf8_lossy(&data[..data.len().min(400)]);
    Fault::Protocol(format!("a chunk is not a JSON object: {}", text::one_line(&start, 80)))
}
