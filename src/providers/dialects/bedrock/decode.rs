//! The events of a converse stream into deltas.

use std::collections::HashMap;

use serde_json::{Value, json};

use super::NAME;
use crate::base::{ModelId, text};
use crate::llm::{Delta, Replay, StopReason, Usage};
use crate::providers::dialects::{Decoder, Progress};
use crate::providers::errors::Fault;
use crate::providers::sse::Event;

/// An answer of more open blocks, or a block with more hidden text, is none.
const MAX_OPEN_BLOCKS: usize = 1000;
const MAX_HIDDEN_BYTES: usize = 4 * 1024 * 1024;

/// Decodes one answer. Feed it every event, then call [`Decoder::end`].
#[derive(Debug)]
pub struct BedrockDecoder {
    /// Replays are marked with it: a signature is worthless to another model.
    model: String,
    open: HashMap<u64, Open>,
    calls: usize,
    stop_reason: Option<String>,
    any_output: bool,
}

/// A block whose end has not come. Text blocks need no record.
#[derive(Debug)]
enum Open {
    Call { index: usize, streamed: bool },
    Reasoning { shown: bool, signature: String, redacted: String },
}

impl BedrockDecoder {
    pub fn new(model: &ModelId) -> Self {
        Self { model: model.as_str().to_owned(), open: HashMap::new(), calls: 0, stop_reason: None, any_output: false }
    }

    fn start(&mut self, index: u64, start: &Value, out: &mut Vec<Delta>) -> Result<(), Fault> {
        if let Some(call) = start.get("toolUse") {
            let call = self.start_call(call, out);
            self.remember(index, Open::Call { index: call, streamed: false })?;
        }
        Ok(())
    }

    fn start_call(&mut self, call: &Value, out: &mut Vec<Delta>) -> usize {
        let index = self.calls;
        self.calls += 1;
        self.any_output = true;
        let (id, name) = (str_of(call, "toolUseId").to_owned(), str_of(call, "name").to_owned());
        out.push(Delta::ToolCallStart { index, id, name });
        index
    }

    fn delta(&mut self, index: u64, delta: &Value, out: &mut Vec<Delta>) -> Result<(), Fault> {
        self.say(str_of(delta, "text"), out);
        if let Some(citation) = delta.get("citation") {
            cite(citation, out);
        }
        let arguments = delta.pointer("/toolUse/input").and_then(Value::as_str).unwrap_or_default();
        if let Some(Open::Call { index, streamed }) = self.open.get_mut(&index)
            && !arguments.is_empty()
        {
            *streamed = true;
            out.push(Delta::ToolCallArguments { index: *index, text: arguments.to_owned() });
        }
        if let Some(reasoning) = delta.get("reasoningContent") {
            let came = self.think(str_of(reasoning, "text"), out);
            if !self.open.contains_key(&index) {
                let fresh = Open::Reasoning { shown: false, signature: String::new(), redacted: String::new() };
                self.remember(index, fresh)?;
            }
            if let Some(Open::Reasoning { shown, signature, redacted }) = self.open.get_mut(&index) {
                *shown |= came;
                append(signature, str_of(reasoning, "signature"))?;
                append(redacted, str_of(reasoning, "redactedContent"))?;
            }
        }
        Ok(())
    }

    /// One block of an answer that came in one piece.
    fn block(&mut self, block: &Value, out: &mut Vec<Delta>) {
        self.say(str_of(block, "text"), out);
        if let Some(call) = block.get("toolUse") {
            let index = self.start_call(call, out);
            let input = call.get("input").filter(|input| input.is_object()).cloned();
            let text = input.unwrap_or_else(|| json!({})).to_string();
            out.push(Delta::ToolCallArguments { index, text });
        }
        if let Some(reasoning) = block.get("reasoningContent") {
            let spoken = reasoning.get("reasoningText").unwrap_or(&Value::Null);
            let shown = self.think(str_of(spoken, "text"), out);
            let signature = str_of(spoken, "signature").to_owned();
            let redacted = str_of(reasoning, "redactedContent").to_owned();
            self.close(Open::Reasoning { shown, signature, redacted }, out);
        }
        let cited = block.get("citationsContent").unwrap_or(&Value::Null);
        for part in cited.get("content").and_then(Value::as_array).into_iter().flatten() {
            self.say(str_of(part, "text"), out);
        }
        for citation in cited.get("citations").and_then(Value::as_array).into_iter().flatten() {
            cite(citation, out);
        }
    }

    fn say(&mut self, text: &str, out: &mut Vec<Delta>) {
        if !text.is_empty() {
            self.any_output = true;
            out.push(Delta::Text(text.to_owned()));
        }
    }

    fn think(&mut self, text: &str, out: &mut Vec<Delta>) -> bool {
        if !text.is_empty() {
            self.any_output = true;
            out.push(Delta::Reasoning(text.to_owned()));
        }
        !text.is_empty()
    }

    fn remember(&mut self, index: u64, block: Open) -> Result<(), Fault> {
        if self.open.len() >= MAX_OPEN_BLOCKS {
            return Err(Fault::Protocol(format!("more than {MAX_OPEN_BLOCKS} open blocks")));
        }
        self.open.insert(index, block);
        Ok(())
    }

    /// Ends a block that is complete.
    fn close(&mut self, block: Open, out: &mut Vec<Delta>) {
        let replay = |data: Value| Replay { dialect: NAME.to_owned(), data };
        match block {
            Open::Call { index, streamed: false } => {
                out.push(Delta::ToolCallArguments { index, text: "{}".to_owned() });
            }
            Open::Call { .. } => {}
            Open::Reasoning { shown, signature, redacted } => {
                if shown {
                    let signed = json!({"model": self.model, "signature": signature});
                    out.push(Delta::ReasoningEnd { replay: (!signature.is_empty()).then(|| replay(signed)) });
                } else if !signature.is_empty() {
                    // Thoughts that are not shown still have to come back.
                    let block = json!({"reasoningContent": {"reasoningText": {"text": "", "signature": signature}}});
                    out.push(Delta::Opaque(replay(json!({"model": self.model, "block": block}))));
                }
                if !redacted.is_empty() {
                    let block = json!({"reasoningContent": {"redactedContent": redacted}});
                    out.push(Delta::Opaque(replay(json!({"model": self.model, "block": block}))));
                }
            }
        }
    }

    fn stop_reason(&mut self, holder: &Value) {
        if let Some(reason) = holder.get("stopReason").and_then(Value::as_str).filter(|reason| !reason.is_empty()) {
            self.stop_reason = Some(reason.to_owned());
        }
    }

    /// `None` when the answer is not complete.
    fn stop(&self) -> Option<StopReason> {
        match self.stop_reason.as_deref()? {
            "max_tokens" | "model_context_window_exceeded" => Some(StopReason::MaxTokens),
            "guardrail_intervened" | "content_filtered" | "refusal" => Some(StopReason::Refusal),
            // The model wrote something that is no answer; another try may give one.
            "malformed_model_output" | "malformed_tool_use" => None,
            _ if self.calls > 0 => Some(StopReason::ToolCalls),
            _ if self.any_output => Some(StopReason::EndTurn),
            _ => None,
        }
    }
}

impl Decoder for BedrockDecoder {
    fn event(&mut self, event: &Event, out: &mut Vec<Delta>) -> Result<Progress, Fault> {
        let name = event.name.as_deref().unwrap_or_default();
        if let Some((_, kind)) = name.split_once('/') {
            return Err(reported(kind, &event.data));
        }
        let chunk = parse(event.data.as_bytes())?;
        let index = chunk.get("contentBlockIndex").and_then(Value::as_u64).unwrap_or_default();
        match name {
            "contentBlockStart" => self.start(index, chunk.get("start").unwrap_or(&Value::Null), out)?,
            "contentBlockDelta" => self.delta(index, chunk.get("delta").unwrap_or(&Value::Null), out)?,
            "contentBlockStop" => {
                if let Some(block) = self.open.remove(&index) {
                    self.close(block, out);
                }
            }
            "messageStop" => self.stop_reason(&chunk),
            "metadata" => {
                usage(chunk.get("usage"), out);
                // It comes last, after the stop.
                if self.stop_reason.is_some() {
                    return Ok(Progress::Complete);
                }
            }
            _ => {}
        }
        Ok(Progress::More)
    }

    fn whole(&mut self, body: &[u8], out: &mut Vec<Delta>) -> Result<(), Fault> {
        let answer = parse(body)?;
        let content = answer.pointer("/output/message/content").and_then(Value::as_array);
        let Some(content) = content else {
            let has_words = answer.get("message").or_else(|| answer.get("Message")).is_some();
            return Err(if has_words {
                Fault::Reported(answer)
            } else {
                Fault::Protocol("no message in it".to_owned())
            });
        };
        for block in content {
            self.block(block, out);
        }
        usage(answer.get("usage"), out);
        self.stop_reason(&answer);
        Ok(())
    }

    fn end(&mut self, out: &mut Vec<Delta>) -> Result<(), Fault> {
        // A block that was cut is not sent back; only what is shown has to be closed.
        let shown = self.open.drain().any(|(_, block)| matches!(block, Open::Reasoning { shown: true, .. }));
        if shown {
            out.push(Delta::ReasoningEnd { replay: None });
        }
        let stop = self.stop().ok_or(Fault::PrematureStop)?;
        out.push(Delta::Stop(stop));
        Ok(())
    }
}

fn usage(usage: Option<&Value>, out: &mut Vec<Delta>) {
    let Some(usage) = usage else { return };
    let count = |key: &str| usage.get(key).and_then(Value::as_u64).unwrap_or_default();
    let usage = Usage {
        input: count("inputTokens"),
        output: count("outputTokens"),
        cache_read: count("cacheReadInputTokens"),
        cache_write: count("cacheWriteInputTokens"),
    };
    if usage != Usage::default() {
        out.push(Delta::Usage(usage));
    }
}

fn cite(citation: &Value, out: &mut Vec<Delta>) {
    let url = citation.pointer("/location/web/url").and_then(Value::as_str).unwrap_or_default();
    if !url.is_empty() {
        let title = if str_of(citation, "title").is_empty() { url } else { str_of(citation, "title") };
        out.push(Delta::Citation { title: title.to_owned(), url: url.to_owned() });
    }
}

/// A failure inside the stream, with the status that its kind stands for.
fn reported(kind: &str, data: &str) -> Fault {
    let lower = kind.to_ascii_lowercase();
    let status = match lower.trim_end_matches("exception") {
        "throttling" | "toomanyrequests" => 429,
        "serviceunavailable" | "modelnotready" => 503,
        "internalserver" | "modelstreamerror" | "modelerror" => 500,
        "modeltimeout" => 504,
        "validation" => 400,
        "accessdenied" | "unrecognizedclient" | "expiredtoken" => 403,
        "resourcenotfound" => 404,
        _ => 0,
    };
    let words: Value = serde_json::from_str(data).unwrap_or_default();
    let message = [str_of(&words, "message"), str_of(&words, "Message"), data.trim()];
    let message = message.into_iter().find(|message| !message.is_empty() && *message != "{}").unwrap_or(kind);
    Fault::Reported(json!({"type": kind, "code": status, "message": message}))
}

fn append(target: &mut String, text: &str) -> Result<(), Fault> {
    if target.len() + text.len() > MAX_HIDDEN_BYTES {
        return Err(Fault::Protocol("a block that is not shown is too large".to_owned()));
    }
    target.push_str(text);
    Ok(())
}

fn str_of<'a>(value: &'a Value, key: &str) -> &'a str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}

fn parse(data: &[u8]) -> Result<Value, Fault> {
    match serde_json::from_slice::<Value>(data) {
        Ok(chunk) if chunk.is_object() => Ok(chunk),
        _ => {
            let start = String::from_utf8_lossy(&data[..data.len().min(400)]);
            Err(Fault::Protocol(format!("an event is not a JSON object: {}", text::one_line(&start, 80))))
        }
    }
}
