//! A conversation as the turns that strict vendors accept, before any of them puts it into JSON.
//!
//! Anthropic and Bedrock check the same things: the user speaks first and last, roles alternate,
//! no text is blank, every call is answered at once and only once, thinking comes first in its
//! turn and never last. A history that another model wrote, or that a crash cut, breaks all of
//! these, so the rules are kept here once, for any history.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use serde_json::{Map, Value};

use crate::base::ModelId;
use crate::llm::{Image, Message, Part, Replay, Role};

/// What a dialect lets into its turns.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rules<'a> {
    /// Only replays of this dialect are sent back.
    pub dialect: &'static str,
    /// Thinking is only sent back to the model that thought it.
    pub model: &'a ModelId,
    /// Whether the model can see.
    pub images: bool,
    /// Whether pictures may stand inside a tool's result.
    pub images_in_results: bool,
    /// Whether calls and results may stand as such; else they are told as text.
    pub tools: bool,
    pub max_name_chars: usize,
    /// Whether the conversation may end with the assistant, for a turn that is to be continued.
    pub may_end_with_assistant: bool,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Turn<'a> {
    pub role: Role,
    pub blocks: Vec<Block<'a>>,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Block<'a> {
    /// Never blank.
    Text(Cow<'a, str>),
    Picture(Picture<'a>),
    Call {
        id: String,
        name: String,
        input: Map<String, Value>,
    },
    Answer(Answer<'a>),
    Thinking {
        text: &'a str,
        signature: &'a str,
    },
    /// A block of the vendor's own, as it came.
    Opaque(&'a Value),
}

/// An image of a kind that the vendors take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Picture<'a> {
    /// `png`, `jpeg`, `gif` or `webp`.
    pub format: &'static str,
    pub base64: &'a str,
}

/// The result of a call; it has a text or a picture.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Answer<'a> {
    pub id: String,
    pub text: Cow<'a, str>,
    pub pictures: Vec<Picture<'a>>,
    pub error: bool,
}

/// The turns of `messages`. There is always at least one, and unless the rules say otherwise the
/// last one is the user's.
pub(super) fn strict<'a>(messages: &'a [Message], rules: Rules<'_>) -> Vec<Turn<'a>> {
    let mut builder = Builder::new(rules);
    for (at, message) in messages.iter().enumerate() {
        match message.role {
            Role::User => builder.user(message),
            Role::Assistant => {
                let unfinished = rules.may_end_with_assistant && at + 1 == messages.len();
                builder.assistant(message, unfinished);
            }
        }
    }
    builder.finish()
}

impl Block<'_> {
    pub(super) fn is_thinking(&self) -> bool {
        match self {
            Self::Thinking { .. } => true,
            Self::Opaque(block) => is_thinking_block(block),
            _ => false,
        }
    }
}

/// Whether the last turn answers calls of a turn that did not start with thinking. A model that is
/// told to think in such a place refuses the request.
pub(super) fn answers_thoughtless_calls(turns: &[Turn<'_>]) -> bool {
    let [.., assistant, user] = turns else { return false };
    let answers = user.blocks.iter().any(|block| matches!(block, Block::Answer(_)));
    answers && !assistant.blocks.first().is_some_and(Block::is_thinking)
}

struct Builder<'a, 'r> {
    rules: Rules<'r>,
    done: Vec<Turn<'a>>,
    /// The assistant's turn that is still open.
    assistant: Vec<Block<'a>>,
    /// The calls of the open turn, in order.
    calls: Vec<OpenCall<'a>>,
    /// What the user said after the open turn, results aside.
    user: Vec<Block<'a>>,
    /// Pictures that the assistant made. It may not show them itself, so the user does.
    made: Vec<Block<'a>>,
    used_ids: HashSet<String>,
}

struct OpenCall<'a> {
    /// The id in our history, which may be empty or occur twice in a conversation.
    known_as: &'a str,
    sent_id: String,
    answer: Option<Answer<'a>>,
}

const OPENING: &str = "(The conversation starts with an earlier answer.)";
const CONTINUE: &str = "Continue.";
const NO_OUTPUT: &str = "(no output)";
const INTERRUPTED: &str = "(the call was interrupted and has no result)";
const UNSEEN_IMAGE: &str = "[an image that this model cannot see]";

impl<'a, 'r> Builder<'a, 'r> {
    fn new(rules: Rules<'r>) -> Self {
        Self {
            rules,
            done: Vec::new(),
            assistant: Vec::new(),
            calls: Vec::new(),
            user: Vec::new(),
            made: Vec::new(),
            used_ids: HashSet::new(),
        }
    }

    fn user(&mut self, message: &'a Message) {
        for part in &message.parts {
            match part {
                Part::Text(text) if !is_blank(text) => self.user.push(Block::Text(Cow::Borrowed(text))),
                Part::Image(image) => self.user.push(self.image(image)),
                Part::ToolResult { call_id, text, images, error } => self.result(call_id, text, images, *error),
                _ => {}
            }
        }
    }

    /// `unfinished` means that the provider goes on with this message, so a call of its own may
    /// still be without its result.
    fn assistant(&mut self, message: &'a Message, unfinished: bool) {
        let interrupted = !self.user.is_empty() || self.calls.iter().any(|call| call.answer.is_some());
        if interrupted {
            self.close();
        }
        let own: Vec<Option<&Value>> = message.parts.iter().map(|part| self.own_block(part)).collect();
        let stands = paired(&own, unfinished);
        for (at, part) in message.parts.iter().enumerate() {
            match part {
                Part::Text(text) if !is_blank(text) => self.assistant.push(Block::Text(Cow::Borrowed(text))),
                Part::Image(image) => self.made.push(self.image(image)),
                Part::Reasoning { text, replay: Some(replay) } => {
                    if let Some(signature) = self.signature(replay) {
                        self.assistant.push(Block::Thinking { text, signature });
                    }
                }
                Part::ToolCall { id, name, arguments, .. } => self.call(id, name, arguments),
                Part::Opaque(_) => self.assistant.extend(own[at].filter(|_| stands[at]).map(Block::Opaque)),
                _ => {}
            }
        }
    }

    fn call(&mut self, id: &'a str, name: &str, arguments: &str) {
        if !self.rules.tools {
            let text = format!("[Called the tool {name} with {arguments}]");
            return self.assistant.push(Block::Text(Cow::Owned(text)));
        }
        let sent_id = self.fresh_id(id);
        self.calls.push(OpenCall { known_as: id, sent_id: sent_id.clone(), answer: None });
        // What is no object was refused when it came; the result says so to the model.
        let input = serde_json::from_str(arguments).unwrap_or_default();
        let name = match plain(name, self.rules.max_name_chars) {
            name if name.is_empty() => "unknown_tool".to_owned(),
            name => name,
        };
        self.assistant.push(Block::Call { id: sent_id, name, input });
    }

    fn result(&mut self, call_id: &str, text: &'a str, images: &'a [Image], error: bool) {
        let open = self.calls.iter().position(|call| call.known_as == call_id && call.answer.is_none());
        let inside = open.is_some() && self.rules.images_in_results && !error;
        let mut blocks: Vec<Block<'a>> = images.iter().map(|image| self.image(image)).collect();
        let pictures = |blocks: &[Block<'a>]| -> Vec<Picture<'a>> {
            blocks
                .iter()
                .filter_map(|block| if let Block::Picture(picture) = block { Some(*picture) } else { None })
                .collect()
        };
        let shown = if inside { pictures(&blocks) } else { Vec::new() };
        if inside {
            blocks.retain(|block| !matches!(block, Block::Picture(_)));
        }
        let text = if is_blank(text) && shown.is_empty() { NO_OUTPUT } else { text };
        match open.and_then(|at| self.calls.get_mut(at)) {
            Some(call) => {
                let id = call.sent_id.clone();
                call.answer = Some(Answer { id, text: Cow::Borrowed(text), pictures: shown, error });
            }
            // A result without its call would be refused; told as words it is not lost.
            None => self.user.push(Block::Text(Cow::Owned(format!("Result of an earlier tool call: {text}")))),
        }
        self.user.extend(blocks);
    }

    /// Ends the open turn of the assistant and what the user answered to it.
    fn close(&mut self) {
        let mut blocks = std::mem::take(&mut self.assistant);
        while blocks.last().is_some_and(Block::is_thinking) {
            blocks.pop();
        }
        // Thinking that does not come first is refused; left out it is only forgotten.
        if !blocks.first().is_some_and(Block::is_thinking) {
            blocks.retain(|block| !block.is_thinking());
        }
        if !blocks.is_empty() {
            if self.done.is_empty() {
                self.done.push(Turn { role: Role::User, blocks: vec![Block::Text(Cow::Borrowed(OPENING))] });
            }
            self.done.push(Turn { role: Role::Assistant, blocks });
        }
        let calls = std::mem::take(&mut self.calls);
        let mut said: Vec<Block<'a>> = calls.into_iter().map(|call| Block::Answer(call.into_answer())).collect();
        // Only with the next words of the user: alone they would open a turn that nobody began.
        if !self.user.is_empty() {
            said.append(&mut self.made);
        }
        said.append(&mut self.user);
        if said.is_empty() {
            return;
        }
        match self.done.last_mut().filter(|last| last.role == Role::User) {
            Some(last) => last.blocks.extend(said),
            None => self.done.push(Turn { role: Role::User, blocks: said }),
        }
    }

    fn finish(mut self) -> Vec<Turn<'a>> {
        self.close();
        let ends_with_user = self.done.last().is_some_and(|last| last.role == Role::User);
        if self.done.is_empty() || !(ends_with_user || self.rules.may_end_with_assistant) {
            self.done.push(Turn { role: Role::User, blocks: vec![Block::Text(Cow::Borrowed(CONTINUE))] });
        }
        // What a model is to go on with must not end in white space.
        let last = self.done.last_mut().filter(|last| last.role == Role::Assistant);
        if let Some(Block::Text(text)) = last.and_then(|last| last.blocks.last_mut()) {
            *text = Cow::Owned(text.trim_end().to_owned());
        }
        self.done
    }

    fn signature(&self, replay: &'a Replay) -> Option<&'a str> {
        let ours = replay.dialect == self.rules.dialect && thought_by(replay) == Some(self.rules.model.as_str());
        replay.data.get("signature").and_then(Value::as_str).filter(|signature| ours && !signature.is_empty())
    }

    /// The block that may go back to the provider and, if it is a thought, to the model.
    fn own_block(&self, part: &'a Part) -> Option<&'a Value> {
        let Part::Opaque(replay) = part else { return None };
        let block =
            replay.data.get("block").filter(|block| block.is_object() && replay.dialect == self.rules.dialect)?;
        let from = thought_by(replay)?;
        let model = self.rules.model;
        let ours = if is_thinking_block(block) {
            from == model.as_str()
        } else {
            from.split('/').next() == Some(model.provider())
        };
        ours.then_some(block)
    }

    fn image(&self, image: &'a Image) -> Block<'a> {
        let format = match image.media_type.trim().to_ascii_lowercase().as_str() {
            "image/png" => Some("png"),
            "image/jpeg" | "image/jpg" => Some("jpeg"),
            "image/gif" => Some("gif"),
            "image/webp" => Some("webp"),
            _ => None,
        };
        match format.filter(|_| self.rules.images && !is_blank(&image.base64)) {
            Some(format) => Block::Picture(Picture { format, base64: &image.base64 }),
            None => Block::Text(Cow::Borrowed(UNSEEN_IMAGE)),
        }
    }

    /// An id that the vendors accept and that no other call of this request has. The same history
    /// always gets the same ids, so that a cached prefix stays one.
    fn fresh_id(&mut self, id: &str) -> String {
        const MAX: usize = 64;
        const ROOM_FOR_NUMBER: usize = 10;
        let base = match plain(id, MAX) {
            id if id.is_empty() => "call".to_owned(),
            id => id,
        };
        let mut candidate = base.clone();
        let mut number = 1usize;
        while !self.used_ids.insert(candidate.clone()) {
            number += 1;
            candidate = format!("{}_{number}", plain(&base, MAX - ROOM_FOR_NUMBER));
        }
        candidate
    }
}

impl<'a> OpenCall<'a> {
    fn into_answer(self) -> Answer<'a> {
        let Self { sent_id, answer, .. } = self;
        let missing = || Answer { id: sent_id, text: Cow::Borrowed(INTERRUPTED), pictures: Vec::new(), error: true };
        answer.unwrap_or_else(missing)
    }
}

/// For each block, whether it may stand: a provider's own call and its result only stand together,
/// the call first. Everything else stands alone.
fn paired(blocks: &[Option<&Value>], unfinished: bool) -> Vec<bool> {
    let text = |block: Option<&Value>, key: &str| block?.get(key)?.as_str().map(str::to_owned);
    let mut stands = vec![true; blocks.len()];
    let mut open: HashMap<String, usize> = HashMap::new();
    for (at, block) in blocks.iter().enumerate() {
        if let Some(call) = text(*block, "tool_use_id") {
            match open.remove(&call) {
                Some(begin) => stands[begin] = true,
                None => stands[at] = false,
            }
        } else if text(*block, "type").is_some_and(|kind| kind.ends_with("tool_use")) {
            stands[at] = unfinished;
            if let Some(id) = text(*block, "id") {
                open.insert(id, at);
            }
        }
    }
    stands
}

fn thought_by(replay: &Replay) -> Option<&str> {
    replay.data.get("model").and_then(Value::as_str)
}

fn is_thinking_block(block: &Value) -> bool {
    let kind = block.get("type").and_then(Value::as_str).unwrap_or_default();
    matches!(kind, "thinking" | "redacted_thinking") || block.get("reasoningContent").is_some()
}

fn is_blank(text: &str) -> bool {
    text.chars().all(char::is_whitespace)
}

/// `text` with only the characters that ids and names may have.
fn plain(text: &str, max_chars: usize) -> String {
    let allowed = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '_' | '-') { c } else { '_' };
    text.chars().take(max_chars).map(allowed).collect()
}

#[cfg(test)]
pub(super) mod tests;
