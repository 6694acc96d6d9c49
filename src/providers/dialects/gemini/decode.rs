//! The chunks of Gemini's answer into deltas.
//!
//! A chunk holds whole parts: thoughts, text, calls with all their arguments, pictures. Each may
//! carry a signature that has to go back at the same place.

use std::collections::HashSet;

use serde_json::{Map, Value, json};

use super::NAME;
use crate::llm::{Delta, Image, Replay, ServerTool, StopReason, Usage};
use crate::providers::dialects::{Decoder, Progress, history, not_an_object, parse_object};
use crate::providers::errors::Fault;
use crate::providers::sse::Event;

/// Decodes one answer. Feed it every event, then call [`Decoder::end`].
#[derive(Debug)]
pub struct GeminiDecoder {
    /// The full id of the model, to which alone its signatures go back.
    source: String,
    calls: usize,
    reasoning: bool,
    finish_reason: Option<String>,
    blocked: bool,
    cited: HashSet<String>,
    searched: bool,
    usage: Option<Usage>,
}

impl GeminiDecoder {
    /// `source` is the full id of the model that answers.
    pub fn new(source: &str) -> Self {
        Self {
            source: source.to_owned(),
            calls: 0,
            reasoning: false,
            finish_reason: None,
            blocked: false,
            cited: HashSet::new(),
            searched: false,
            usage: None,
        }
    }

    fn chunk(&mut self, chunk: &Value, out: &mut Vec<Delta>) -> Result<(), Fault> {
        if let Some(error) = chunk.get("error").filter(|error| !error.is_null()) {
            return Err(Fault::Reported(error.clone()));
        }
        self.blocked |= chunk.pointer("/promptFeedback/blockReason").is_some_and(Value::is_string);
        // Several answers are never asked for; of those that come anyway the first is heard.
        let first = |candidate: &&Value| candidate.get("index").and_then(Value::as_u64).unwrap_or(0) == 0;
        let candidates = chunk.get("candidates").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        for candidate in candidates.iter().filter(first) {
            for part in candidate.pointer("/content/parts").and_then(Value::as_array).into_iter().flatten() {
                self.part(part, out);
            }
            self.grounding(candidate.get("groundingMetadata"), out);
            if let Some(reason) = candidate.get("finishReason").and_then(Value::as_str).filter(|r| !r.is_empty()) {
                self.finish_reason = Some(reason.to_owned());
            }
        }
        self.usage(chunk.get("usageMetadata"), out);
        if self.finish_reason.as_deref() == Some("MISSING_THOUGHT_SIGNATURE") {
            return Err(Fault::Reported(json!({"code": 400, "message": "a thought signature is missing"})));
        }
        Ok(())
    }

    fn part(&mut self, part: &Value, out: &mut Vec<Delta>) {
        let signature = part.get("thoughtSignature").and_then(Value::as_str).filter(|text| !text.is_empty());
        let text = part.get("text").and_then(Value::as_str);
        if part.get("thought") == Some(&Value::Bool(true)) {
            self.thought(text.unwrap_or_default(), signature, out);
        } else if let Some(call) = part.get("functionCall").filter(|call| call.is_object()) {
            self.call(call, signature, out);
        } else if let Some(text) = text {
            if !text.is_empty() {
                self.close_reasoning(out);
                out.push(Delta::Text(text.to_owned()));
            }
            self.signed("text", signature, text.len(), out);
        } else if let Some(data) = part.get("inlineData") {
            self.picture(data, out);
            self.signed("image", signature, 0, out);
        } else if part.is_object() {
            // A step of a tool on the provider's side, which wants to see it again.
            self.close_reasoning(out);
            out.push(Delta::Opaque(self.replay([("part", part.clone())])));
        }
    }

    fn thought(&mut self, text: &str, signature: Option<&str>, out: &mut Vec<Delta>) {
        if !text.is_empty() {
            self.reasoning = true;
            out.push(Delta::Reasoning(text.to_owned()));
        }
        if let Some(signature) = signature {
            if std::mem::take(&mut self.reasoning) {
                let replay = self.replay([("signature", json!(signature))]);
                out.push(Delta::ReasoningEnd { replay: Some(replay) });
            } else {
                self.signed("thought", Some(signature), 0, out);
            }
        }
    }

    fn call(&mut self, call: &Value, signature: Option<&str>, out: &mut Vec<Delta>) {
        self.close_reasoning(out);
        let index = self.calls;
        self.calls += 1;
        let field = |key: &str| call.get(key).and_then(Value::as_str).filter(|text| !text.is_empty());
        let given = field("id");
        let id = given.map_or_else(|| format!("call_{index}"), str::to_owned);
        out.push(Delta::ToolCallStart { index, id, name: field("name").unwrap_or_default().to_owned() });
        let arguments =
            call.get("args").filter(|args| !args.is_null()).map_or_else(|| "{}".to_owned(), Value::to_string);
        out.push(Delta::ToolCallArguments { index, text: arguments });
        let given = given.map(|id| ("id", json!(id)));
        let signature = signature.or_else(|| field("thoughtSignature")).map(|text| ("signature", json!(text)));
        if given.is_some() || signature.is_some() {
            let replay = self.replay(given.into_iter().chain(signature));
            out.push(Delta::ToolCallReplay { index, replay });
        }
    }

    fn picture(&mut self, data: &Value, out: &mut Vec<Delta>) {
        let field = |key: &str| data.get(key).and_then(Value::as_str).unwrap_or_default();
        let (media_type, base64) = (field("mimeType"), field("data"));
        if media_type.starts_with("image/") && !base64.is_empty() {
            self.close_reasoning(out);
            out.push(Delta::Image(Image { media_type: media_type.to_owned(), base64: base64.to_owned() }));
        }
    }

    /// Keeps the signature of a part; `bytes` is how much of the text before it was signed.
    fn signed(&self, on: &str, signature: Option<&str>, bytes: usize, out: &mut Vec<Delta>) {
        if let Some(signature) = signature {
            let data = [("signature", json!(signature)), ("on", json!(on)), ("bytes", json!(bytes))];
            out.push(Delta::Opaque(self.replay(data)));
        }
    }

    fn close_reasoning(&mut self, out: &mut Vec<Delta>) {
        if std::mem::take(&mut self.reasoning) {
            out.push(Delta::ReasoningEnd { replay: None });
        }
    }

    /// What the answer rests on. It is repeated from chunk to chunk.
    fn grounding(&mut self, grounding: Option<&Value>, out: &mut Vec<Delta>) {
        let Some(grounding) = grounding.filter(|grounding| grounding.is_object()) else { return };
        let queries = grounding.get("webSearchQueries").and_then(Value::as_array).filter(|list| !list.is_empty());
        if let Some(queries) = queries
            && !std::mem::replace(&mut self.searched, true)
        {
            out.push(Delta::ServerTool(ServerTool::Finished {
                id: "google_search".to_owned(),
                name: "web_search".to_owned(),
                input: Map::from_iter([("queries".to_owned(), json!(queries))]),
                output: String::new(),
                error: false,
            }));
        }
        for chunk in grounding.get("groundingChunks").and_then(Value::as_array).into_iter().flatten() {
            let field = |place: &str| chunk.pointer(place).and_then(Value::as_str).unwrap_or_default();
            let url = field("/web/uri");
            if !url.is_empty() && self.cited.insert(url.to_owned()) {
                out.push(Delta::Citation { title: field("/web/title").to_owned(), url: url.to_owned() });
            }
        }
    }

    fn usage(&mut self, usage: Option<&Value>, out: &mut Vec<Delta>) {
        let Some(usage) = usage.filter(|usage| usage.is_object()) else { return };
        let count = |key: &str| usage.get(key).and_then(Value::as_u64).unwrap_or(0);
        let cache_read = count("cachedContentTokenCount");
        let input = count("promptTokenCount").saturating_add(count("toolUsePromptTokenCount"));
        let usage = Usage {
            input: input.saturating_sub(cache_read),
            output: count("candidatesTokenCount").saturating_add(count("thoughtsTokenCount")),
            cache_read,
            cache_write: 0,
        };
        if usage != Usage::default() && self.usage != Some(usage) {
            self.usage = Some(usage);
            out.push(Delta::Usage(usage));
        }
    }

    fn replay<'k>(&self, data: impl IntoIterator<Item = (&'k str, Value)>) -> Replay {
        let data = data.into_iter().map(|(key, value)| (key.to_owned(), value)).collect();
        history::replay(NAME, &self.source, data)
    }

    /// `None` when the answer is not complete.
    fn stop(&self) -> Option<StopReason> {
        match self.finish_reason.as_deref() {
            Some("STOP") if self.calls > 0 => Some(StopReason::ToolCalls),
            Some("STOP") => Some(StopReason::EndTurn),
            Some("MAX_TOKENS") => Some(StopReason::MaxTokens),
            Some(
                "SAFETY"
                | "RECITATION"
                | "LANGUAGE"
                | "BLOCKLIST"
                | "PROHIBITED_CONTENT"
                | "SPII"
                | "IMAGE_SAFETY"
                | "IMAGE_PROHIBITED_CONTENT"
                | "IMAGE_RECITATION",
            ) => Some(StopReason::Refusal),
            // A call that the model got wrong, or no reason at all: another try may do better.
            Some(_) => None,
            None if self.blocked => Some(StopReason::Refusal),
            None => None,
        }
    }
}

impl Decoder for GeminiDecoder {
    fn event(&mut self, event: &Event, out: &mut Vec<Delta>) -> Result<Progress, Fault> {
        let data = event.data.trim();
        // Google sends no such end, but gateways in front of it do.
        if data == "[DONE]" {
            return Ok(Progress::Complete);
        }
        if data.is_empty() {
            return Ok(Progress::More);
        }
        self.chunk(&parse_object(data.as_bytes())?, out).map(|()| Progress::More)
    }

    /// One object, or the list of chunks that a stream without events consists of.
    fn whole(&mut self, body: &[u8], out: &mut Vec<Delta>) -> Result<(), Fault> {
        match serde_json::from_slice::<Value>(body) {
            Ok(chunk) if chunk.is_object() => self.chunk(&chunk, out),
            Ok(Value::Array(chunks)) => chunks.iter().try_for_each(|chunk| self.chunk(chunk, out)),
            _ => Err(not_an_object(body)),
        }
    }

    fn end(&mut self, out: &mut Vec<Delta>) -> Result<(), Fault> {
        self.close_reasoning(out);
        let stop = self.stop().ok_or(Fault::PrematureStop)?;
        out.push(Delta::Stop(stop));
        Ok(())
    }
}
