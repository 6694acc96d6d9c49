//! The events of a streamed message into deltas.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Map, Value, json};

use super::NAME;
use crate::base::{ModelId, text};
use crate::llm::{Delta, Replay, ServerTool, StopReason, Usage};
use crate::providers::dialects::blocks::{self, Blocks, append, str_of};
use crate::providers::dialects::{Decoder, Progress, parse_object};
use crate::providers::errors::Fault;
use crate::providers::sse::Event;

/// Decodes one answer. Feed it every event, then call [`Decoder::end`].
#[derive(Debug)]
pub struct AnthropicDecoder {
    /// Replays are marked with it: a signature is worthless to another model.
    model: String,
    blocks: Blocks<Open>,
    /// What the provider's own tools were asked, by id, until their results come.
    server_calls: HashMap<String, (String, Map<String, Value>)>,
    usage: Usage,
    paused: Arc<AtomicBool>,
}

/// A block whose end has not come.
#[derive(Debug)]
enum Open {
    Text,
    Thinking {
        shown: bool,
        signature: String,
    },
    /// `input` is what came with the start, which counts when nothing follows.
    Call {
        index: usize,
        input: Map<String, Value>,
        streamed: bool,
    },
    ServerCall {
        block: Value,
        input: String,
    },
    /// Sent back as it came.
    Opaque(Value),
    Other,
}

impl AnthropicDecoder {
    pub fn new(model: &ModelId) -> Self {
        Self {
            model: model.as_str().to_owned(),
            blocks: Blocks::new(),
            server_calls: HashMap::new(),
            usage: Usage::default(),
            paused: Arc::default(),
        }
    }

    /// Becomes true with the stop of an answer that the provider wants to go on with.
    pub(super) fn paused(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.paused)
    }

    fn start(&mut self, index: u64, block: &Value, out: &mut Vec<Delta>) -> Result<(), Fault> {
        // Some servers never end a block but by starting the next.
        if let Some(before) = self.blocks.take(index) {
            self.close(before, out);
        }
        let open = match str_of(block, "type") {
            "text" => {
                self.blocks.say(str_of(block, "text"), out);
                for citation in block.get("citations").and_then(Value::as_array).into_iter().flatten() {
                    blocks::cite(str_of(citation, "title"), str_of(citation, "url"), out);
                }
                Open::Text
            }
            "thinking" => {
                let shown = self.blocks.think(str_of(block, "thinking"), out);
                Open::Thinking { shown, signature: str_of(block, "signature").to_owned() }
            }
            "tool_use" => {
                let index = self.blocks.start_call(str_of(block, "id"), str_of(block, "name"), out);
                Open::Call { index, input: object_of(block, "input"), streamed: false }
            }
            "server_tool_use" => {
                self.blocks.note_output();
                let (id, name) = (str_of(block, "id").to_owned(), str_of(block, "name").to_owned());
                out.push(Delta::ServerTool(ServerTool::Started { id, name }));
                Open::ServerCall { block: block.clone(), input: String::new() }
            }
            "redacted_thinking" => Open::Opaque(block.clone()),
            kind if kind.ends_with("_tool_result") => {
                self.blocks.note_output();
                self.server_result(block, out);
                Open::Opaque(block.clone())
            }
            _ => Open::Other,
        };
        self.blocks.open(index, open)
    }

    fn delta(&mut self, index: u64, delta: &Value, out: &mut Vec<Delta>) -> Result<(), Fault> {
        match str_of(delta, "type") {
            "text_delta" => self.blocks.say(str_of(delta, "text"), out),
            "thinking_delta" => {
                let came = self.blocks.think(str_of(delta, "thinking"), out);
                match self.blocks.get_mut(index) {
                    Some(Open::Thinking { shown, .. }) => *shown |= came,
                    Some(_) => {}
                    None => self.blocks.open(index, Open::Thinking { shown: came, signature: String::new() })?,
                }
            }
            "signature_delta" => {
                if let Some(Open::Thinking { signature, .. }) = self.blocks.get_mut(index) {
                    append(signature, str_of(delta, "signature"))?;
                }
            }
            "input_json_delta" => match self.blocks.get_mut(index) {
                Some(Open::Call { index, streamed, .. }) => {
                    let text = str_of(delta, "partial_json");
                    if !text.is_empty() {
                        *streamed = true;
                        out.push(Delta::ToolCallArguments { index: *index, text: text.to_owned() });
                    }
                }
                Some(Open::ServerCall { input, .. }) => append(input, str_of(delta, "partial_json"))?,
                _ => {}
            },
            "citations_delta" => {
                let citation = delta.get("citation").unwrap_or(&Value::Null);
                blocks::cite(str_of(citation, "title"), str_of(citation, "url"), out);
            }
            _ => {}
        }
        Ok(())
    }

    /// Ends a block that is complete.
    fn close(&mut self, block: Open, out: &mut Vec<Delta>) {
        match block {
            Open::Thinking { shown: true, signature } => {
                let data = json!({"model": self.model, "signature": signature});
                let replay = (!signature.is_empty()).then(|| Replay { dialect: NAME.to_owned(), data });
                out.push(Delta::ReasoningEnd { replay });
            }
            // Thoughts that are not shown still have to come back.
            Open::Thinking { shown: false, signature } if !signature.is_empty() => {
                out.push(self.opaque(json!({"type": "thinking", "thinking": "", "signature": signature})));
            }
            Open::Call { index, input, streamed: false } => {
                let text = Value::Object(input).to_string();
                out.push(Delta::ToolCallArguments { index, text });
            }
            Open::ServerCall { mut block, input } => {
                let input = match serde_json::from_str(&input) {
                    Ok(input) => input,
                    Err(_) => object_of(&block, "input"),
                };
                let call = (str_of(&block, "name").to_owned(), input.clone());
                self.server_calls.insert(str_of(&block, "id").to_owned(), call);
                block["input"] = Value::Object(input);
                out.push(self.opaque(block));
            }
            Open::Opaque(block) => out.push(self.opaque(block)),
            _ => {}
        }
    }

    fn server_result(&mut self, block: &Value, out: &mut Vec<Delta>) {
        let id = str_of(block, "tool_use_id").to_owned();
        let unknown = || (str_of(block, "type").trim_end_matches("_tool_result").to_owned(), Map::new());
        let (name, input) = self.server_calls.remove(&id).unwrap_or_else(unknown);
        let content = block.get("content").unwrap_or(&Value::Null);
        let (output, error) = described(content);
        out.push(Delta::ServerTool(ServerTool::Finished { id, name, input, output, error }));
    }

    fn opaque(&self, block: Value) -> Delta {
        Delta::Opaque(Replay { dialect: NAME.to_owned(), data: json!({"model": self.model, "block": block}) })
    }

    /// The counts of the start and of the end; a count that is missing or zero changes nothing.
    fn usage(&mut self, usage: Option<&Value>, out: &mut Vec<Delta>) {
        let Some(usage) = usage else { return };
        let count =
            |key: &str, before: u64| usage.get(key).and_then(Value::as_u64).filter(|n| *n > 0).unwrap_or(before);
        let now = Usage {
            input: count("input_tokens", self.usage.input),
            output: count("output_tokens", self.usage.output),
            cache_read: count("cache_read_input_tokens", self.usage.cache_read),
            cache_write: count("cache_creation_input_tokens", self.usage.cache_write),
        };
        if now != self.usage {
            self.usage = now;
            out.push(Delta::Usage(now));
        }
    }

    /// `None` when the answer is not complete.
    fn stop(&self) -> Option<StopReason> {
        match self.blocks.stop_reason.as_deref()? {
            "max_tokens" | "model_context_window_exceeded" => Some(StopReason::MaxTokens),
            "refusal" => Some(StopReason::Refusal),
            // Imitators say `end_turn` after calls; what came counts.
            reason => {
                let stop = self.blocks.usual_stop();
                if reason == "pause_turn" && stop == Some(StopReason::EndTurn) {
                    self.paused.store(true, Ordering::Release);
                }
                stop
            }
        }
    }
}

impl Decoder for AnthropicDecoder {
    fn event(&mut self, event: &Event, out: &mut Vec<Delta>) -> Result<Progress, Fault> {
        let data = event.data.trim();
        if data.is_empty() || data == "[DONE]" {
            return Ok(Progress::More);
        }
        let chunk = parse_object(data.as_bytes())?;
        let kind = match str_of(&chunk, "type") {
            "" => event.name.as_deref().unwrap_or_default(),
            kind => kind,
        };
        let index = chunk.get("index").and_then(Value::as_u64).unwrap_or_default();
        match kind {
            "message_start" => self.usage(chunk.pointer("/message/usage"), out),
            "content_block_start" => self.start(index, chunk.get("content_block").unwrap_or(&Value::Null), out)?,
            "content_block_delta" => self.delta(index, chunk.get("delta").unwrap_or(&Value::Null), out)?,
            "content_block_stop" => {
                if let Some(block) = self.blocks.take(index) {
                    self.close(block, out);
                }
            }
            "message_delta" => {
                self.usage(chunk.get("usage"), out);
                self.blocks.note_stop(chunk.get("delta").unwrap_or(&Value::Null), "stop_reason");
            }
            "message_stop" => return Ok(Progress::Complete),
            "error" => return Err(reported(&chunk)),
            _ => {}
        }
        Ok(Progress::More)
    }

    fn whole(&mut self, body: &[u8], out: &mut Vec<Delta>) -> Result<(), Fault> {
        let message = parse_object(body)?;
        if message.get("error").is_some_and(|error| !error.is_null()) {
            return Err(reported(&message));
        }
        let blocks = message.get("content").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        for block in blocks {
            self.start(0, block, out)?;
            if let Some(block) = self.blocks.take(0) {
                self.close(block, out);
            }
        }
        self.usage(message.get("usage"), out);
        self.blocks.note_stop(&message, "stop_reason");
        Ok(())
    }

    fn end(&mut self, out: &mut Vec<Delta>) -> Result<(), Fault> {
        self.blocks.cut(|block| matches!(block, Open::Thinking { shown: true, .. }), out);
        let stop = self.stop().ok_or(Fault::PrematureStop)?;
        out.push(Delta::Stop(stop));
        Ok(())
    }
}

/// What a provider's own tool found, for the user to read, and whether it failed.
fn described(content: &Value) -> (String, bool) {
    const MAX_CHARS: usize = 2000;
    if let Some(code) = content.get("error_code").and_then(Value::as_str) {
        return (format!("failed: {code}"), true);
    }
    let line = |item: &Value| match (str_of(item, "title"), str_of(item, "url")) {
        ("", "") => str_of(item, "text").to_owned(),
        ("", url) => url.to_owned(),
        (title, "") => title.to_owned(),
        (title, url) => format!("{title}: {url}"),
    };
    match content {
        Value::Array(items) => {
            let lines: Vec<String> = items.iter().map(line).filter(|line| !line.is_empty()).collect();
            (lines.join("\n"), false)
        }
        Value::String(text) => (text.clone(), false),
        Value::Null => (String::new(), false),
        other => (text::one_line(&other.to_string(), MAX_CHARS), false),
    }
}

/// The error of an event or a body, with the status that its type stands for.
fn reported(holder: &Value) -> Fault {
    let mut error = holder.get("error").unwrap_or(holder).clone();
    let status = match str_of(&error, "type") {
        "invalid_request_error" => 400,
        "authentication_error" => 401,
        "billing_error" => 402,
        "permission_error" => 403,
        "not_found_error" => 404,
        "request_too_large" => 413,
        "rate_limit_error" => 429,
        "api_error" => 500,
        "timeout_error" => 504,
        "overloaded_error" => 529,
        _ => return Fault::Reported(error),
    };
    if let Value::Object(error) = &mut error {
        error.entry("code").or_insert_with(|| json!(status));
    }
    Fault::Reported(error)
}

fn object_of(value: &Value, key: &str) -> Map<String, Value> {
    value.get(key).and_then(Value::as_object).cloned().unwrap_or_default()
}
