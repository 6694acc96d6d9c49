//! Chunks of a chat completion into deltas, whichever server they come from.

use serde_json::{Value, json};

use super::NAME;
use super::plain;
use super::think::{Piece, ThinkTags};
use super::tool_calls::ToolCalls;
use crate::llm::{Delta, Image, Replay, StopReason, Usage};
use crate::providers::dialects::{Decoder, Progress, parse_object};
use crate::providers::errors::Fault;
use crate::providers::sse::Event;

/// The names under which servers stream what a model thinks. Some send the same text under two of
/// them, so only the first that has any counts.
const REASONING_FIELDS: [&str; 3] = ["reasoning_content", "reasoning", "reasoning_text"];

/// Decodes one answer. Feed it every event, then call [`Decoder::end`].
#[derive(Debug)]
pub struct ChatDecoder {
    tags: ThinkTags,
    calls: ToolCalls,
    /// The open reasoning block, if any, and the field it came in.
    reasoning: Option<Option<&'static str>>,
    usage: Option<Usage>,
    finish_reason: Option<String>,
    refused: bool,
    /// The provider said that nothing more comes.
    done: bool,
    /// Whether anything of an answer came.
    any_output: bool,
}

impl ChatDecoder {
    /// `None` for a tag is the usual one, an empty text switches tags off.
    pub fn new(think_tag_start: Option<&str>, think_tag_end: Option<&str>) -> Self {
        Self {
            tags: ThinkTags::new(think_tag_start, think_tag_end),
            calls: ToolCalls::default(),
            reasoning: None,
            usage: None,
            finish_reason: None,
            refused: false,
            done: false,
            any_output: false,
        }
    }

    fn chunk(&mut self, chunk: &Value, out: &mut Vec<Delta>) -> Result<(), Fault> {
        if let Some(error) = chunk.get("error").filter(|error| !error.is_null()) {
            return Err(Fault::Reported(error.clone()));
        }
        let choices = chunk.get("choices").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        // Several answers are never asked for; a server that sends them anyway has its first heard.
        let first = |choice: &&Value| choice.get("index").and_then(Value::as_u64).unwrap_or(0) == 0;
        for choice in choices.iter().filter(first) {
            if let Some(error) = choice.get("error").filter(|error| !error.is_null()) {
                return Err(Fault::Reported(error.clone()));
            }
            if let Some(delta) = choice.get("delta").or_else(|| choice.get("message")) {
                self.delta(delta, out);
            } else if let Some(text) = choice.get("text").and_then(Value::as_str) {
                self.content(text, out);
            }
            if let Some(reason) = choice.get("finish_reason").and_then(Value::as_str).filter(|r| !r.is_empty()) {
                self.finish_reason = Some(reason.to_owned());
            }
            self.usage(choice.get("usage"), out);
        }
        self.usage(chunk.pointer("/x_groq/usage"), out);
        self.usage(chunk.get("usage"), out);
        Ok(())
    }

    fn delta(&mut self, delta: &Value, out: &mut Vec<Delta>) {
        let field = |name: &'static str| {
            let text = delta.get(name).and_then(Value::as_str).filter(|text| !text.is_empty());
            text.map(|text| (name, text))
        };
        if let Some((name, text)) = REASONING_FIELDS.into_iter().find_map(field) {
            self.think(text, Some(name), out);
        }
        match delta.get("content") {
            Some(Value::String(text)) => self.content(text, out),
            Some(Value::Array(blocks)) => blocks.iter().for_each(|block| self.block(block, out)),
            _ => {}
        }
        if let Some((_, text)) = field("refusal") {
            self.refused = true;
            self.say(text.to_owned(), out);
        }
        let list = |name: &str| delta.get(name).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        out.extend(list("annotations").iter().filter_map(citation));
        for image in list("images").iter().filter_map(image) {
            self.close_reasoning(out);
            self.any_output = true;
            out.push(Delta::Image(image));
        }
        for entry in list("tool_calls") {
            let pieces = self.tags.end();
            self.pieces(pieces, out);
            self.close_reasoning(out);
            self.calls.feed(entry, out);
            self.any_output |= !self.calls.is_empty();
        }
    }

    /// One block of a content list: `{type: text, text}` or `{type: thinking, thinking}`, the
    /// latter as text or as a list of text blocks.
    fn block(&mut self, block: &Value, out: &mut Vec<Delta>) {
        if let Some(text) = block.as_str() {
            return self.content(text, out);
        }
        match (block.get("thinking"), block.get("text").and_then(Value::as_str)) {
            (Some(Value::String(text)), _) => self.think(text, None, out),
            (Some(Value::Array(parts)), _) => {
                for text in parts.iter().filter_map(|part| part.get("text").and_then(Value::as_str)) {
                    self.think(text, None, out);
                }
            }
            (_, Some(text)) => self.content(text, out),
            _ => {}
        }
    }

    fn content(&mut self, text: &str, out: &mut Vec<Delta>) {
        let pieces = self.tags.feed(text);
        self.pieces(pieces, out);
    }

    fn pieces(&mut self, pieces: Vec<Piece>, out: &mut Vec<Delta>) {
        for piece in pieces {
            match piece {
                Piece::Text(text) => self.say(text, out),
                Piece::Reasoning(text) => self.think(&text, None, out),
                Piece::ReasoningEnd => self.close_reasoning(out),
            }
        }
    }

    fn say(&mut self, text: String, out: &mut Vec<Delta>) {
        self.close_reasoning(out);
        self.any_output = true;
        out.push(Delta::Text(text));
    }

    fn think(&mut self, text: &str, field: Option<&'static str>, out: &mut Vec<Delta>) {
        if text.is_empty() {
            return;
        }
        self.reasoning.get_or_insert(field);
        self.any_output = true;
        out.push(Delta::Reasoning(text.to_owned()));
    }

    fn close_reasoning(&mut self, out: &mut Vec<Delta>) {
        if let Some(field) = self.reasoning.take() {
            // Only a field of its own can be sent back as one; from tags and blocks nothing is.
            let replay = field.map(|field| Replay { dialect: NAME.to_owned(), data: json!({"field": field}) });
            out.push(Delta::ReasoningEnd { replay });
        }
    }

    fn usage(&mut self, usage: Option<&Value>, out: &mut Vec<Delta>) {
        let Some(usage) = usage.filter(|usage| usage.is_object()) else { return };
        let count = |place: &str| usage.pointer(place).and_then(Value::as_u64);
        let cache_read = ["/prompt_tokens_details/cached_tokens", "/prompt_cache_hit_tokens", "/cached_tokens"]
            .iter()
            .find_map(|place| count(place))
            .unwrap_or(0);
        let cache_write = count("/prompt_tokens_details/cache_write_tokens").unwrap_or(0);
        let usage = Usage {
            input: count("/prompt_tokens").unwrap_or(0).saturating_sub(cache_read).saturating_sub(cache_write),
            output: count("/completion_tokens").unwrap_or(0),
            cache_read,
            cache_write,
        };
        if usage != Usage::default() && self.usage != Some(usage) {
            self.usage = Some(usage);
            out.push(Delta::Usage(usage));
        }
    }

    /// `None` when the answer is not complete.
    fn stop(&self) -> Option<StopReason> {
        let usual = if self.calls.is_empty() { StopReason::EndTurn } else { StopReason::ToolCalls };
        match self.finish_reason.as_deref() {
            Some("length" | "max_tokens" | "model_length" | "model_context_window_exceeded") => {
                Some(StopReason::MaxTokens)
            }
            Some("content_filter" | "sensitive" | "refusal") => Some(StopReason::Refusal),
            // How some servers say that they gave up.
            Some("error" | "network_error" | "insufficient_system_resource" | "abort") => None,
            Some(_) if self.refused => Some(StopReason::Refusal),
            // Servers say `stop` after tool calls and `tool_calls` without any; what came counts.
            Some(_) => Some(usual),
            None if self.done && self.any_output => Some(usual),
            None => None,
        }
    }
}

impl Decoder for ChatDecoder {
    fn event(&mut self, event: &Event, out: &mut Vec<Delta>) -> Result<Progress, Fault> {
        let data = event.data.trim();
        if data == "[DONE]" {
            self.done = true;
            return Ok(Progress::Complete);
        }
        if data.is_empty() {
            return Ok(Progress::More);
        }
        if event.name.is_none()
            && let Some(text) = plain::text(data)
        {
            if self.tags.are_behind() && !text.is_empty() {
                self.say(text, out);
            } else {
                self.content(&text, out);
            }
            return Ok(Progress::More);
        }
        let chunk = parse_object(data.as_bytes())?;
        if event.name.as_deref() == Some("error") && chunk.get("error").is_none() {
            return Err(Fault::Reported(chunk));
        }
        self.chunk(&chunk, out).map(|()| Progress::More)
    }

    fn whole(&mut self, body: &[u8], out: &mut Vec<Delta>) -> Result<(), Fault> {
        self.done = true;
        self.chunk(&parse_object(body)?, out)
    }

    fn end(&mut self, out: &mut Vec<Delta>) -> Result<(), Fault> {
        let pieces = self.tags.end();
        self.pieces(pieces, out);
        self.close_reasoning(out);
        self.calls.end(out);
        let stop = self.stop().ok_or(Fault::PrematureStop)?;
        out.push(Delta::Stop(stop));
        Ok(())
    }
}

/// A page that the answer rests on: `{type: url_citation, url_citation: {title, url}}`.
fn citation(annotation: &Value) -> Option<Delta> {
    let found = annotation.get("url_citation")?;
    let text = |name: &str| found.get(name).and_then(Value::as_str);
    let url = text("url").filter(|url| !url.is_empty())?;
    let title = text("title").filter(|title| !title.is_empty()).unwrap_or(url);
    Some(Delta::Citation { title: title.to_owned(), url: url.to_owned() })
}

/// A picture that the model made: `{type: image_url, image_url: {url: data:…;base64,…}}`.
fn image(entry: &Value) -> Option<Image> {
    let url = entry.pointer("/image_url/url").and_then(Value::as_str)?;
    let (media_type, base64) = url.strip_prefix("data:")?.split_once(";base64,")?;
    Some(Image { media_type: media_type.to_owned(), base64: base64.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn citations_and_pictures_are_passed_on() {
        let chunk = json!({"choices": [{"delta": {
            "content": "see",
            "annotations": [
                {"type": "url_citation", "url_citation": {"title": "T", "url": "https://t", "start_index": 0}},
                {"type": "url_citation", "url_citation": {"url": "https://u"}},
                {"type": "file_citation"},
            ],
            "images": [
                {"type": "image_url", "image_url": {"url": "data:image/png;base64,QUJD"}},
                {"type": "image_url", "image_url": {"url": "https://elsewhere"}},
            ],
        }}]});
        let mut out = Vec::new();
        assert!(ChatDecoder::new(None, None).chunk(&chunk, &mut out).is_ok());
        let citation = |title: &str, url: &str| Delta::Citation { title: title.into(), url: url.into() };
        let image = Image { media_type: "image/png".into(), base64: "QUJD".into() };
        let expected = [
            Delta::Text("see".into()),
            citation("T", "https://t"),
            citation("https://u", "https://u"),
            Delta::Image(image),
        ];
        assert_eq!(out, expected);
    }
}
