//! A request as the body of a chat completion that even strict servers accept.
//!
//! Strict means: every tool call is followed at once by one tool message each, no tool message
//! stands without its call, roles do not repeat, arguments are a JSON object, nothing is empty.

use serde_json::{Map, Value, json};

use super::NAME;
use crate::config::{ModelConfig, ReasoningHistory};
use crate::llm::{Image, Message, Part, Request, Role};
use crate::providers::dialects::payload;

/// The whole body. `model` is the configuration of the request's model.
pub(super) fn build(request: &Request, model: &ModelConfig) -> Map<String, Value> {
    let mut body = Map::new();
    let name = model.model_name.as_deref().unwrap_or_else(|| request.model.model());
    body.insert("model".to_owned(), json!(name));
    body.insert("messages".to_owned(), messages(request, model));
    body.insert("stream".to_owned(), json!(true));
    body.insert("stream_options".to_owned(), json!({"include_usage": true}));
    let limit = match (request.max_output_tokens, model.output_limit) {
        (Some(wanted), Some(possible)) => Some(wanted.min(possible)),
        (wanted, possible) => wanted.or(possible),
    };
    if let Some(limit) = limit {
        body.insert("max_completion_tokens".to_owned(), json!(limit));
    }
    if !request.tools.is_empty() {
        body.insert("tools".to_owned(), request.tools.iter().map(payload::function_tool).collect());
    }
    payload::merge(&mut body, &model.extra_payload);
    payload::merge(&mut body, &request.payload);
    // Servers refuse options of a stream that is none.
    if body.get("stream") != Some(&Value::Bool(true)) && !model.extra_payload.contains_key("stream_options") {
        body.remove("stream_options");
    }
    body
}

fn messages(request: &Request, model: &ModelConfig) -> Value {
    let mut list = MessageList { images: model.image_input != Some(false), ..MessageList::default() };
    if !request.system.trim().is_empty() {
        list.done.push(json!({"role": "system", "content": request.system}));
    }
    let first_thought = match model.reasoning_history {
        ReasoningHistory::All => 0,
        ReasoningHistory::Turn => start_of_turn(&request.messages),
        ReasoningHistory::Off => request.messages.len(),
    };
    for (at, message) in request.messages.iter().enumerate() {
        list.thoughts = at >= first_thought;
        match message.role {
            Role::User => list.user(message),
            Role::Assistant => list.assistant(message),
        }
    }
    list.settle();
    Value::Array(list.done)
}

/// Where the last message stands in which the user said something: results of tools are none.
fn start_of_turn(messages: &[Message]) -> usize {
    let says = |part: &Part| matches!(part, Part::Text(_) | Part::Image(_));
    let speaks = |message: &Message| message.role == Role::User && message.parts.iter().any(says);
    messages.iter().rposition(speaks).unwrap_or(0)
}

/// Builds the list so that it is valid after each step.
#[derive(Default)]
struct MessageList {
    done: Vec<Value>,
    /// Calls of the last assistant message that have no result yet: the engine's id and the one
    /// that is sent.
    open_calls: Vec<(String, String)>,
    /// What the user said while calls were open; it must come after their results.
    held: Vec<Value>,
    images: bool,
    /// Whether what the model thought is sent back to it.
    thoughts: bool,
    made_up_ids: usize,
}

impl MessageList {
    fn user(&mut self, message: &Message) {
        let mut content = Vec::new();
        for part in &message.parts {
            match part {
                Part::Text(text) if !text.is_empty() => content.push(text_block(text)),
                Part::Image(image) => content.push(self.image(image)),
                Part::ToolResult { call_id, text, images, .. } => {
                    self.result(call_id, text, &mut content);
                    // A tool message carries text alone, so its pictures follow as the user's.
                    content.extend(images.iter().map(|image| self.image(image)));
                }
                _ => {}
            }
        }
        self.held.extend(content);
        if self.open_calls.is_empty() {
            self.settle();
        }
    }

    fn assistant(&mut self, message: &Message) {
        let merges = self.held.is_empty() && self.done.last().is_some_and(|last| last["role"] == "assistant");
        if !merges {
            self.settle();
        }
        let mut texts = Vec::new();
        let mut reasoning: Option<(&str, String)> = None;
        let mut calls = Vec::new();
        for part in &message.parts {
            match part {
                Part::Text(text) if !text.is_empty() => texts.push(text.as_str()),
                Part::Reasoning { text, replay: Some(replay) }
                    if self.thoughts && replay.dialect == NAME && !text.is_empty() =>
                {
                    let field = replay.data.get("field").and_then(Value::as_str).unwrap_or("reasoning_content");
                    match &mut reasoning {
                        Some((_, all)) => *all = format!("{all}\n{text}"),
                        None => reasoning = Some((field, text.clone())),
                    }
                }
                Part::ToolCall { id, name, arguments, replay } => {
                    let sent_id = if id.is_empty() { self.made_up_id() } else { id.clone() };
                    self.open_calls.push((id.clone(), sent_id.clone()));
                    let mut call = json!({
                        "id": sent_id,
                        "type": "function",
                        "function": {"name": name, "arguments": object_text(arguments)},
                    });
                    if let Some(replay) = replay.as_ref().filter(|replay| replay.dialect == NAME) {
                        call["extra_content"] = replay.data.clone();
                    }
                    calls.push(call);
                }
                _ => {}
            }
        }
        if texts.is_empty() && calls.is_empty() {
            return;
        }
        if !merges {
            self.done.push(json!({"role": "assistant", "content": null}));
        }
        if let Some(Value::Object(last)) = self.done.last_mut() {
            fill_assistant(last, &texts.concat(), reasoning, calls);
        }
    }

    /// A result goes right behind its call. One without a call would be refused, so it is told as
    /// the user's words instead of being lost.
    fn result(&mut self, call_id: &str, text: &str, content: &mut Vec<Value>) {
        let text = if text.is_empty() { "(no output)" } else { text };
        match self.open_calls.iter().position(|(id, _)| id == call_id) {
            Some(at) => {
                let (_, sent_id) = self.open_calls.remove(at);
                self.done.push(tool_message(&sent_id, text));
            }
            None => content.push(text_block(&format!("Result of an earlier tool call: {text}"))),
        }
    }

    /// Answers calls that have no result, then lets the user's held words follow.
    fn settle(&mut self) {
        for (_, sent_id) in std::mem::take(&mut self.open_calls) {
            self.done.push(tool_message(&sent_id, "(the call was interrupted and has no result)"));
        }
        let held = std::mem::take(&mut self.held);
        if held.is_empty() {
            return;
        }
        match self.done.last_mut().filter(|last| last["role"] == "user") {
            Some(last) => {
                let mut blocks = match last["content"].take() {
                    Value::Array(blocks) => blocks,
                    Value::String(text) => vec![text_block(&text)],
                    _ => Vec::new(),
                };
                blocks.extend(held);
                last["content"] = user_content(blocks);
            }
            None => self.done.push(json!({"role": "user", "content": user_content(held)})),
        }
    }

    fn made_up_id(&mut self) -> String {
        self.made_up_ids += 1;
        format!("call_{}", self.made_up_ids)
    }

    fn image(&self, Image { media_type, base64 }: &Image) -> Value {
        if self.images {
            json!({"type": "image_url", "image_url": {"url": format!("data:{media_type};base64,{base64}")}})
        } else {
            text_block("[an image that this model cannot see]")
        }
    }
}

fn fill_assistant(message: &mut Map<String, Value>, text: &str, reasoning: Option<(&str, String)>, calls: Vec<Value>) {
    if !text.is_empty() {
        let before = message.get("content").and_then(Value::as_str).unwrap_or_default();
        let joined = if before.is_empty() { text.to_owned() } else { format!("{before}\n\n{text}") };
        message.insert("content".to_owned(), json!(joined));
    }
    if let Some((field, text)) = reasoning {
        let joined = match message.get(field).and_then(Value::as_str) {
            Some(before) => format!("{before}\n{text}"),
            None => text,
        };
        message.insert(field.to_owned(), json!(joined));
    }
    if !calls.is_empty() {
        match message.get_mut("tool_calls").and_then(Value::as_array_mut) {
            Some(before) => before.extend(calls),
            None => {
                message.insert("tool_calls".to_owned(), Value::Array(calls));
            }
        }
    }
}

/// Plain text where that is all there is: not every server takes lists.
fn user_content(blocks: Vec<Value>) -> Value {
    if blocks.iter().all(|block| block["type"] == "text") {
        let texts: Vec<&str> = blocks.iter().filter_map(|block| block["text"].as_str()).collect();
        json!(texts.join("\n\n"))
    } else {
        Value::Array(blocks)
    }
}

fn text_block(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

fn tool_message(call_id: &str, text: &str) -> Value {
    json!({"role": "tool", "tool_call_id": call_id, "content": text})
}

/// Servers parse old arguments again and fail on what a model got wrong; the result that follows
/// already tells the model what was wrong.
fn object_text(arguments: &str) -> String {
    match serde_json::from_str::<Map<String, Value>>(arguments) {
        Ok(_) => arguments.to_owned(),
        Err(_) => "{}".to_owned(),
    }
}
