//! A conversation put in the order that every vendor accepts, before any of them sees it.
//!
//! Histories are untidy: turns break off, results get lost, other models' calls have other ids.
//! What comes out is strict: turns alternate (outcomes of calls are the user's side), none is empty, every call has a unique id, an object
//! of arguments and exactly one outcome, and only what this vendor itself gave is replayed.

use std::borrow::Cow;
use std::collections::HashSet;

use serde_json::{Map, Value};

use crate::llm::{Image, Message, Part, Replay, Role};

/// One side's turn.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Turn<'a> {
    User(Vec<Said<'a>>),
    Assistant(Answer<'a>),
}

/// Something the user gave.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Said<'a> {
    Text(Cow<'a, str>),
    Image(&'a Image),
}

/// All that the model did before the user's side spoke again.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Answer<'a> {
    /// Holds at least one text, image or call.
    pub(super) parts: Vec<Did<'a>>,
    /// One for each call, in the order of the calls.
    pub(super) outcomes: Vec<Outcome<'a>>,
}

/// Something the model did.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Did<'a> {
    Text(Cow<'a, str>),
    Image(&'a Image),
    /// Only what can be replayed.
    Reasoning {
        text: &'a str,
        replay: &'a Value,
    },
    Call(Call<'a>),
    Opaque(&'a Value),
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Call<'a> {
    pub(super) id: String,
    pub(super) name: String,
    pub(super) arguments: Map<String, Value>,
    pub(super) replay: Option<&'a Value>,
}

/// What became of a call.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Outcome<'a> {
    pub(super) call_id: String,
    pub(super) name: String,
    /// What this vendor gave with the call.
    pub(super) replay: Option<&'a Value>,
    pub(super) text: Cow<'a, str>,
    pub(super) images: Vec<&'a Image>,
    pub(super) error: bool,
}

/// What may be sent to whom.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rules<'r> {
    pub(super) dialect: &'r str,
    /// The model's full id, which a replay must come from; `None` takes those of any model.
    pub(super) source: Option<&'r str>,
    /// Whether the model takes images; they become words otherwise.
    pub(super) images: bool,
}

/// The data of something to replay to the model named by `source`.
pub(super) fn replay(dialect: &str, source: &str, mut data: Map<String, Value>) -> Replay {
    data.insert("source".to_owned(), Value::from(source));
    Replay { dialect: dialect.to_owned(), data: Value::Object(data) }
}

/// The turns of `messages`.
pub(super) fn turns<'a>(messages: &'a [Message], rules: Rules<'_>) -> Vec<Turn<'a>> {
    let mut builder = Builder::new(rules);
    for message in messages {
        match message.role {
            Role::User => builder.user(&message.parts),
            Role::Assistant => builder.assistant(&message.parts),
        }
    }
    builder.settle();
    builder.done
}

struct Builder<'a, 'r> {
    rules: Rules<'r>,
    done: Vec<Turn<'a>>,
    /// The answer that is still open, because calls wait for outcomes or more may follow.
    open: Answer<'a>,
    /// The engine's ids of the open answer's calls, and what came for them.
    waiting: Vec<(&'a str, Option<Outcome<'a>>)>,
    /// What the user said since; it comes after the outcomes.
    held: Vec<Said<'a>>,
    used_ids: HashSet<String>,
}

impl<'a, 'r> Builder<'a, 'r> {
    fn new(rules: Rules<'r>) -> Self {
        Self {
            rules,
            done: Vec::new(),
            open: Answer::default(),
            waiting: Vec::new(),
            held: Vec::new(),
            used_ids: HashSet::new(),
        }
    }

    fn user(&mut self, parts: &'a [Part]) {
        for part in parts {
            match part {
                Part::Text(text) if !text.is_empty() => self.held.push(Said::Text(Cow::Borrowed(text))),
                Part::Image(image) => {
                    let said = self.image(image);
                    self.held.push(said);
                }
                Part::ToolResult { call_id, text, images, error } => self.result(call_id, text, images, *error),
                _ => {}
            }
        }
    }

    fn assistant(&mut self, parts: &'a [Part]) {
        if !self.held.is_empty() || self.waiting.iter().any(|(_, outcome)| outcome.is_some()) {
            self.settle();
        }
        for part in parts {
            match part {
                Part::Text(text) if !text.is_empty() => self.open.parts.push(Did::Text(Cow::Borrowed(text))),
                Part::Image(image) if self.rules.images => self.open.parts.push(Did::Image(image)),
                Part::Image(_) => self.open.parts.push(Did::Text(Cow::Borrowed("[an image]"))),
                Part::Reasoning { text, replay } => {
                    if let Some(replay) = self.own(replay.as_ref()) {
                        self.open.parts.push(Did::Reasoning { text, replay });
                    }
                }
                Part::Opaque(replay) => self.open.parts.extend(self.own(Some(replay)).map(Did::Opaque)),
                Part::ToolCall { id, name, arguments, replay } => {
                    let call = Call {
                        id: self.unique_id(id),
                        name: plain_name(name),
                        arguments: serde_json::from_str(arguments).unwrap_or_default(),
                        replay: self.own(replay.as_ref()),
                    };
                    self.waiting.push((id, None));
                    self.open.parts.push(Did::Call(call));
                }
                Part::Text(_) | Part::ToolResult { .. } => {}
            }
        }
    }

    /// A result without its call would be refused, so it is told as the user's words.
    fn result(&mut self, call_id: &str, text: &'a str, images: &'a [Image], error: bool) {
        let text = if text.is_empty() { "(no output)" } else { text };
        let free = self.waiting.iter().position(|(id, outcome)| *id == call_id && outcome.is_none());
        let Some(at) = free else {
            self.held.push(Said::Text(Cow::Owned(format!("Result of an earlier tool call: {text}"))));
            let images: Vec<Said<'a>> = images.iter().map(|image| self.image(image)).collect();
            return self.held.extend(images);
        };
        let mut outcome = Outcome { text: Cow::Borrowed(text), error, ..self.no_outcome(at) };
        if self.rules.images {
            outcome.images = images.iter().collect();
        } else if !images.is_empty() {
            outcome.text = Cow::Owned(format!("{text}\n\n{UNSEEN}"));
        }
        self.waiting[at].1 = Some(outcome);
    }

    /// Closes the open answer and what the user said after it.
    fn settle(&mut self) {
        let waiting = std::mem::take(&mut self.waiting);
        let outcomes: Vec<Outcome<'a>> = waiting
            .into_iter()
            .enumerate()
            .map(|(at, (_, outcome))| outcome.unwrap_or_else(|| self.no_outcome(at)))
            .collect();
        let parts = std::mem::take(&mut self.open).parts;
        let substance = |part: &Did<'_>| matches!(part, Did::Text(_) | Did::Image(_) | Did::Call(_));
        if parts.iter().any(substance) {
            self.done.push(Turn::Assistant(Answer { parts, outcomes }));
        }
        let held = std::mem::take(&mut self.held);
        if held.is_empty() {
            return;
        }
        match self.done.last_mut() {
            Some(Turn::User(last)) => last.extend(held),
            _ => self.done.push(Turn::User(held)),
        }
    }

    /// The outcome of the open answer's call number `at` when none came.
    fn no_outcome(&self, at: usize) -> Outcome<'a> {
        let call = self.open.parts.iter().filter_map(|part| if let Did::Call(call) = part { Some(call) } else { None });
        let call = call.clone().nth(at);
        Outcome {
            call_id: call.map(|call| call.id.clone()).unwrap_or_default(),
            name: call.map(|call| call.name.clone()).unwrap_or_default(),
            replay: call.and_then(|call| call.replay),
            text: Cow::Borrowed("(the call was interrupted and has no result)"),
            images: Vec::new(),
            error: true,
        }
    }

    fn own(&self, replay: Option<&'a Replay>) -> Option<&'a Value> {
        let replay = replay.filter(|replay| replay.dialect == self.rules.dialect)?;
        let source = replay.data.get("source").and_then(Value::as_str);
        (self.rules.source.is_none() || self.rules.source == source).then_some(&replay.data)
    }

    fn image(&self, image: &'a Image) -> Said<'a> {
        if self.rules.images { Said::Image(image) } else { Said::Text(Cow::Borrowed(UNSEEN)) }
    }

    /// The id to send: the call's own where every vendor takes it and it was not used before.
    fn unique_id(&mut self, id: &str) -> String {
        const MAX_BYTES: usize = 64;
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
        let mut sent = id.to_owned();
        let mut number = self.used_ids.len();
        while sent.is_empty() || sent.len() > MAX_BYTES || !sent.chars().all(plain) || self.used_ids.contains(&sent) {
            number += 1;
            sent = format!("call_{number}");
        }
        self.used_ids.insert(sent.clone());
        sent
    }
}

const UNSEEN: &str = "[an image that this model cannot see]";

/// A name that every vendor takes. Models make names up, and the call stays in the history.
fn plain_name(name: &str) -> String {
    const MAX: usize = 64;
    let plain = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '_' | '-') { c } else { '_' };
    let name: String = name.chars().take(MAX).map(plain).collect();
    // Some vendors want a letter first.
    match name.chars().next() {
        None => "unknown".to_owned(),
        Some(first) if first.is_ascii_alphabetic() || first == '_' => name,
        Some(_) => format!("_{}", &name[..name.len().min(MAX - 1)]),
    }
}

#[cfg(test)]
mod tests;
