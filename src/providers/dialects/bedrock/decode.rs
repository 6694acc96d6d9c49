//! The events of a converse stream into deltas.

use serde_json::{Value, json};

use super::NAME;
use crate::base::ModelId;
use crate::llm::{Delta, Replay, StopReason, Usage};
use crate::providers::dialects::blocks::{self, Blocks, append, str_of};
use crate::providers::dialects::{Decoder, Progress, parse_object};
use crate::providers::errors::Fault;
use crate::providers::sse::Event;

/// Decodes one answer. Feed it every event, then call [`Decoder::end`].
#[derive(Debug)]
pub struct BedrockDecoder {
    /// Replays are marked with it: a signature is worthless to another model.
    model: String,
    blocks: Blocks<Open>,
}

/// A block whose end has not come. Text blocks need no record.
#[derive(Debug)]
enum Open {
    Call { index: usize, streamed: bool },
    Reasoning { shown: bool, signature: String, redacted: String },
}

impl BedrockDecoder {
    pub fn new(model: &ModelId) -> Self {
        Self { model: model.as_str().to_owned(), blocks: Blocks::new() }
    }

    fn start(&mut self, index: u64, start: &Value, out: &mut Vec<Delta>) -> Result<(), Fault> {
        if let Some(call) = start.get("toolUse") {
            let call = self.start_call(call, out);
            self.blocks.open(index, Open::Call { index: call, streamed: false })?;
        }
        Ok(())
    }

    fn start_call(&mut self, call: &Value, out: &mut Vec<Delta>) -> usize {
        self.blocks.start_call(str_of(call, "toolUseId"), str_of(call, "name"), out)
    }

    fn delta(&mut self, index: u64, delta: &Value, out: &mut Vec<Delta>) -> Result<(), Fault> {
        self.blocks.say(str_of(delta, "text"), out);
        if let Some(citation) = delta.get("citation") {
            cite(citation, out);
        }
        let arguments = delta.pointer("/toolUse/input").and_then(Value::as_str).unwrap_or_default();
        if let Some(Open::Call { index, streamed }) = self.blocks.get_mut(index)
            && !arguments.is_empty()
        {
            *streamed = true;
            out.push(Delta::ToolCallArguments { index: *index, text: arguments.to_owned() });
        }
        if let Some(reasoning) = delta.get("reasoningContent") {
            let came = self.blocks.think(str_of(reasoning, "text"), out);
            if self.blocks.get_mut(index).is_none() {
                let fresh = Open::Reasoning { shown: false, signature: String::new(), redacted: String::new() };
                self.blocks.open(index, fresh)?;
            }
            if let Some(Open::Reasoning { shown, signature, redacted }) = self.blocks.get_mut(index) {
                *shown |= came;
                append(signature, str_of(reasoning, "signature"))?;
                append(redacted, str_of(reasoning, "redactedContent"))?;
            }
        }
        Ok(())
    }

    /// One block of an answer that came in one piece.
    fn block(&mut self, block: &Value, out: &mut Vec<Delta>) {
        self.blocks.say(str_of(block, "text"), out);
        if let Some(call) = block.get("toolUse") {
            let index = self.start_call(call, out);
            let input = call.get("input").filter(|input| input.is_object()).cloned();
            let text = input.unwrap_or_else(|| json!({})).to_string();
            out.push(Delta::ToolCallArguments { index, text });
        }
        if let Some(reasoning) = block.get("reasoningContent") {
            let spoken = reasoning.get("reasoningText").unwrap_or(&Value::Null);
            let shown = self.blocks.think(str_of(spoken, "text"), out);
            let signature = str_of(spoken, "signature").to_owned();
            let redacted = str_of(reasoning, "redactedContent").to_owned();
            self.close(Open::Reasoning { shown, signature, redacted }, out);
        }
        let cited = block.get("citationsContent").unwrap_or(&Value::Null);
        for part in cited.get("content").and_then(Value::as_array).into_iter().flatten() {
            self.blocks.say(str_of(part, "text"), out);
        }
        for citation in cited.get("citations").and_then(Value::as_array).into_iter().flatten() {
            cite(citation, out);
        }
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

    /// `None` when the answer is not complete.
    fn stop(&self) -> Option<StopReason> {
        match self.blocks.stop_reason.as_deref()? {
            "max_tokens" | "model_context_window_exceeded" => Some(StopReason::MaxTokens),
            "guardrail_intervened" | "content_filtered" | "refusal" => Some(StopReason::Refusal),
            // The model wrote something that is no answer; another try may give one.
            "malformed_model_output" | "malformed_tool_use" => None,
            _ => self.blocks.usual_stop(),
        }
    }
}

impl Decoder for BedrockDecoder {
    fn event(&mut self, event: &Event, out: &mut Vec<Delta>) -> Result<Progress, Fault> {
        let name = event.name.as_deref().unwrap_or_default();
        if let Some((_, kind)) = name.split_once('/') {
            return Err(reported(kind, &event.data));
        }
        let chunk = parse_object(event.data.as_bytes())?;
        let index = chunk.get("contentBlockIndex").and_then(Value::as_u64).unwrap_or_default();
        match name {
            "contentBlockStart" => self.start(index, chunk.get("start").unwrap_or(&Value::Null), out)?,
            "contentBlockDelta" => self.delta(index, chunk.get("delta").unwrap_or(&Value::Null), out)?,
            "contentBlockStop" => {
                if let Some(block) = self.blocks.take(index) {
                    self.close(block, out);
                }
            }
            "messageStop" => self.blocks.note_stop(&chunk, "stopReason"),
            "metadata" => {
                usage(chunk.get("usage"), out);
                // It comes last, after the stop.
                if self.blocks.stop_reason.is_some() {
                    return Ok(Progress::Complete);
                }
            }
            _ => {}
        }
        Ok(Progress::More)
    }

    fn whole(&mut self, body: &[u8], out: &mut Vec<Delta>) -> Result<(), Fault> {
        let answer = parse_object(body)?;
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
        self.blocks.note_stop(&answer, "stopReason");
        Ok(())
    }

    fn end(&mut self, out: &mut Vec<Delta>) -> Result<(), Fault> {
        self.blocks.cut(|block| matches!(block, Open::Reasoning { shown: true, .. }), out);
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
    blocks::cite(str_of(citation, "title"), url, out);
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
