//! The offline guide: a provider that needs no network, no key and no model.
//!
//! It exists so that a fresh installation answers at once, says how to connect a real model on
//! this very machine, and lets any editor integration be tried: streaming, reasoning, code,
//! tool calls, long answers, errors. It matches keywords, says so, and never poses as an AI.

mod answers;
mod tool_demo;

use std::collections::VecDeque;
use std::path::PathBuf;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream;

use super::registry::ProviderView;
use crate::base::{ModelId, text};
use crate::llm::{
    Cost, Delta, DeltaStream, ErrorClass, LlmError, Message, ModelInfo, Part, Provider, Request, Role, StopReason,
    Usage,
};

/// What the guide may know about this machine. Names only, never a key.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GuideView {
    pub config_path: PathBuf,
    pub providers: Vec<ProviderView>,
    /// Names of the `*_API_KEY` variables that are set.
    pub key_variables: Vec<String>,
    pub local_discovery: bool,
    pub version: String,
}

pub struct Guide {
    view: Box<dyn Fn() -> GuideView + Send + Sync>,
    /// Between two pieces of text, so that streaming can be seen.
    pause: Duration,
}

impl Guide {
    pub const ID: &str = "eca";
    pub const MODEL: &str = "guide";

    pub fn new(view: impl Fn() -> GuideView + Send + Sync + 'static) -> Self {
        Self { view: Box::new(view), pause: Duration::from_millis(12) }
    }

    /// Zero streams as fast as it is read.
    pub fn with_pause(self, pause: Duration) -> Self {
        Self { pause, ..self }
    }

    /// The one model. It is free, and has a window so that an editor has something to show.
    pub fn model() -> ModelInfo {
        ModelInfo {
            context_limit: Some(128_000),
            cost: Some(Cost::default()),
            ..ModelInfo::named(ModelId::new(Self::ID, Self::MODEL))
        }
    }
}

impl Provider for Guide {
    fn id(&self) -> &str {
        Self::ID
    }

    fn dialect(&self) -> &'static str {
        Self::ID
    }

    fn stream(&self, request: Request) -> DeltaStream {
        play(answer(&request, &self.view), input_tokens(&request), self.pause)
    }
}

impl std::fmt::Debug for Guide {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Guide").field("pause", &self.pause).finish_non_exhaustive()
    }
}

/// One part of an answer before it is cut into deltas.
#[derive(Debug, Clone, PartialEq)]
enum Step {
    Reasoning(String),
    Text(String),
    Call { id: String, name: String, arguments: String },
    Fail(String),
}

/// What the user's words ask for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wish {
    Welcome,
    Connect,
    Reasoning,
    Code,
    Words(usize),
    Tool,
    Error,
}

/// However long the answer is, its pauses do not add up to more than this.
const LONGEST_SHOW: Duration = Duration::from_secs(10);
const MAX_WORDS: usize = 20_000;
const DEFAULT_WORDS: usize = 600;
const TITLE_CHARS: usize = 40;

fn answer(request: &Request, view: &dyn Fn() -> GuideView) -> Vec<Step> {
    let asked = last_user_text(&request.messages);
    if is_title_request(request) {
        return vec![Step::Text(title(asked))];
    }
    let results = tool_demo::results(&request.messages);
    if !results.is_empty() {
        return vec![Step::Text(tool_demo::summary(&results))];
    }
    match wish(asked) {
        Wish::Welcome => vec![Step::Text(answers::welcome(&view()))],
        Wish::Connect => vec![Step::Text(answers::how_to_connect(&view()))],
        Wish::Reasoning => {
            let (thought, said) = answers::reasoning(asked);
            vec![Step::Reasoning(thought), Step::Text(said)]
        }
        Wish::Code => vec![Step::Text(answers::code())],
        Wish::Words(count) => vec![Step::Text(answers::words(count))],
        Wish::Tool => tool_demo::call(request, asked),
        Wish::Error => vec![
            Step::Text("You asked for an error; here it comes.\n".to_owned()),
            Step::Fail(
                "This is the error you asked the built-in guide for. Nothing is broken: it only shows how your \
                 editor displays a failed model call."
                    .to_owned(),
            ),
        ],
    }
}

/// Matches whole words. A question about connecting comes before the demonstrations, because "how
/// do I connect a model that can use tools" does not ask for a tool call.
fn wish(asked: &str) -> Wish {
    let lower = asked.to_lowercase();
    let words: Vec<&str> = lower.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).collect();
    let says = |any: &[&str]| words.iter().any(|word| any.contains(word));
    let connect = ["connect", "model", "models", "key", "keys", "config", "configure", "configuration", "setup"];
    if let Some(count) = word_count(&words) {
        return Wish::Words(count);
    }
    match () {
        () if says(&["how", "where"]) && says(&connect) => Wish::Connect,
        () if says(&["error", "errors"]) => Wish::Error,
        () if says(&["tool", "tools"]) => Wish::Tool,
        () if says(&["reason", "reasoning", "think", "thinking", "thought"]) => Wish::Reasoning,
        () if says(&["code"]) => Wish::Code,
        () if says(&["long", "stream", "streaming"]) => Wish::Words(DEFAULT_WORDS),
        () if says(&connect) => Wish::Connect,
        () => Wish::Welcome,
    }
}

/// The number in "stream 2000", "2000 words" or "/stream 2000".
fn word_count(words: &[&str]) -> Option<usize> {
    let number = |word: &str| -> Option<usize> {
        let digits = word.bytes().all(|b| b.is_ascii_digit());
        // A number too large to read is still a number.
        digits.then(|| word.parse().unwrap_or(MAX_WORDS).clamp(1, MAX_WORDS))
    };
    words.windows(2).find_map(|pair| match pair {
        ["stream", count] => number(count),
        [count, "word" | "words"] => number(count),
        _ => None,
    })
}

/// The user's own words: contexts that the engine adds come before them, in parts of their own.
fn last_user_text(messages: &[Message]) -> &str {
    let of_user = messages.iter().rev().filter(|message| message.role == Role::User);
    let mut texts = of_user.flat_map(|message| message.parts.iter().rev()).filter_map(|part| match part {
        Part::Text(text) => Some(text.as_str()),
        _ => None,
    });
    texts.next().unwrap_or_default()
}

fn is_title_request(request: &Request) -> bool {
    !request.reasoning && request.tools.is_empty() && request.system.to_lowercase().contains("title")
}

fn title(asked: &str) -> String {
    let line = text::one_line(asked, TITLE_CHARS);
    let mut chars = line.chars();
    match chars.next() {
        Some(first) => first.to_uppercase().chain(chars).collect(),
        None => "First steps".to_owned(),
    }
}

/// An estimate: about four characters make a token.
fn tokens(text: &str) -> u64 {
    text.chars().count().div_ceil(4) as u64
}

fn input_tokens(request: &Request) -> u64 {
    let parts = request.messages.iter().flat_map(|message| &message.parts);
    let said: u64 = parts
        .map(|part| match part {
            Part::Text(text) | Part::Reasoning { text, .. } | Part::ToolResult { text, .. } => tokens(text),
            Part::ToolCall { name, arguments, .. } => tokens(name) + tokens(arguments),
            Part::Image(_) | Part::Opaque(_) => 0,
        })
        .sum();
    said + tokens(&request.system)
}

/// Turns an answer into deltas, paced so that a person sees them arrive.
fn play(steps: Vec<Step>, input: u64, pause: Duration) -> DeltaStream {
    let mut output = 0;
    let mut calls = 0;
    let mut failed = false;
    let mut deltas = VecDeque::from([Ok(Delta::Started)]);
    for step in steps {
        match step {
            Step::Reasoning(text) => {
                output += tokens(&text);
                deltas.extend(pieces(&text).map(|piece| Ok(Delta::Reasoning(piece))));
                deltas.push_back(Ok(Delta::ReasoningEnd { replay: None }));
            }
            Step::Text(text) => {
                output += tokens(&text);
                deltas.extend(pieces(&text).map(|piece| Ok(Delta::Text(piece))));
            }
            Step::Call { id, name, arguments } => {
                output += tokens(&name) + tokens(&arguments);
                deltas.push_back(Ok(Delta::ToolCallStart { index: calls, id, name }));
                let argument = |text| Ok(Delta::ToolCallArguments { index: calls, text });
                deltas.extend(pieces(&arguments).map(argument));
                calls += 1;
            }
            Step::Fail(user_text) => {
                let provider = Guide::ID.to_owned();
                deltas.push_back(Err(LlmError {
                    class: ErrorClass::Unknown,
                    status: None,
                    provider,
                    retry_after: None,
                    user_text,
                }));
                failed = true;
            }
        }
    }
    if !failed {
        deltas.push_back(Ok(Delta::Usage(Usage { input, output, ..Usage::default() })));
        deltas.push_back(Ok(Delta::Stop(if calls > 0 { StopReason::ToolCalls } else { StopReason::EndTurn })));
    }
    let pause_every = pieces_per_pause(pause, deltas.len());
    stream::unfold((deltas, 0_usize), move |(mut deltas, sent)| async move {
        let next = deltas.pop_front()?;
        if sent > 0 && sent % pause_every == 0 && !pause.is_zero() {
            tokio::time::sleep(pause).await;
        }
        Some((next, (deltas, sent + 1)))
    })
    .boxed()
}

/// How many pieces go out between two pauses, so that all pauses together stay bounded.
fn pieces_per_pause(pause: Duration, pieces: usize) -> usize {
    // The timer does not sleep for less than a millisecond.
    let whole = pause.as_millis().max(1) * pieces as u128;
    usize::try_from(whole.div_ceil(LONGEST_SHOW.as_millis())).unwrap_or(usize::MAX).max(1)
}

/// Words with the white space after them; put together they are the text.
fn pieces(text: &str) -> impl Iterator<Item = String> {
    let mut pieces: Vec<String> = Vec::new();
    for piece in text.split_inclusive(char::is_whitespace) {
        match pieces.last_mut() {
            Some(last) if piece.trim().is_empty() => last.push_str(piece),
            _ => pieces.push(piece.to_owned()),
        }
    }
    pieces.into_iter()
}

#[cfg(test)]
mod tests;
