//! The events of a response into deltas, from OpenAI itself and from servers that send a part.
//!
//! Three sources may tell the same: the deltas of an item, the item when it is done, and the list
//! of all items at the end. Each item is passed on once, from the first source that has it.

use serde_json::{Map, Value, json};

use super::NAME;
use super::items::{Items, Kind, text};
use crate::llm::{Delta, Image, Replay, ServerTool, StopReason, Usage};
use crate::providers::dialects::{Decoder, Progress, history, parse_object};
use crate::providers::errors::Fault;
use crate::providers::sse::Event;

/// Decodes one answer. Feed it every event, then call [`Decoder::end`].
#[derive(Debug)]
pub struct ResponsesDecoder {
    /// The full id of the model, to which alone its reasoning goes back.
    source: String,
    items: Items,
    /// The item whose reasoning is open.
    reasoning: Option<usize>,
    refused: bool,
    usage: Option<Usage>,
    /// Set by the event that ends the response; `Err` when it says that nothing good came.
    ended: Option<Result<Ending, ()>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ending {
    Complete,
    MaxTokens,
    Filtered,
}

impl ResponsesDecoder {
    /// `source` is the full id of the model that answers.
    pub fn new(source: &str) -> Self {
        Self {
            source: source.to_owned(),
            items: Items::default(),
            reasoning: None,
            refused: false,
            usage: None,
            ended: None,
        }
    }

    fn take(&mut self, kind: &str, event: &Value, out: &mut Vec<Delta>) -> Result<Progress, Fault> {
        match kind {
            "response.output_text.delta" => self.text(event, out),
            "response.refusal.delta" => {
                self.refused = true;
                self.text(event, out);
            }
            "response.output_text.annotation.added" => {
                let at = self.items.running(Kind::Message, event);
                self.cite(at, event.get("annotation"), out);
            }
            "response.reasoning_summary_text.delta" | "response.reasoning_text.delta" => self.think(event, out),
            "response.reasoning_summary_text.done" | "response.reasoning_summary_part.done" => {
                let at = self.items.running(Kind::Reasoning, event);
                if let Some(item) = self.items.get(at) {
                    item.paragraph_ended = item.emitted;
                }
            }
            "response.function_call_arguments.delta" => self.arguments(event, out),
            "response.output_item.added" => self.added(event, out),
            "response.output_item.done" => {
                if let (Some(at), Some(item)) = (self.items.completed(event), event.get("item")) {
                    self.finish(at, item, out);
                }
            }
            "response.completed" | "response.incomplete" | "response.failed" | "response.done" => {
                let response = event.get("response").unwrap_or(event);
                self.response(response, kind, out)?;
                return Ok(Progress::Complete);
            }
            "response.cancelled" => {
                self.ended = Some(Err(()));
                return Ok(Progress::Complete);
            }
            "error" => {
                let error = event.get("error").filter(|error| !error.is_null()).unwrap_or(event);
                return Err(Fault::Reported(error.clone()));
            }
            _ => {}
        }
        Ok(Progress::More)
    }

    /// The end of a response, or a whole one.
    fn response(&mut self, response: &Value, kind: &str, out: &mut Vec<Delta>) -> Result<(), Fault> {
        let status = text(response, "status");
        if let Some(error) = response.get("error").filter(|error| !error.is_null()) {
            return Err(Fault::Reported(error.clone()));
        }
        if kind == "response.failed" || status == "failed" {
            return Err(Fault::Reported(json!({"code": "server_error"})));
        }
        for item in response.get("output").and_then(Value::as_array).into_iter().flatten() {
            if let Some(at) = self.items.listed(item) {
                self.finish(at, item, out);
            }
        }
        self.usage(response.get("usage"), out);
        let incomplete = kind == "response.incomplete" || status == "incomplete";
        let reason = response.pointer("/incomplete_details/reason").and_then(Value::as_str);
        self.ended = Some(match (incomplete, reason) {
            (false, _) if status == "cancelled" => Err(()),
            (false, _) => Ok(Ending::Complete),
            (true, Some("max_output_tokens" | "max_tokens")) => Ok(Ending::MaxTokens),
            (true, Some("content_filter")) => Ok(Ending::Filtered),
            (true, _) => Err(()),
        });
        Ok(())
    }

    fn added(&mut self, event: &Value, out: &mut Vec<Delta>) {
        let Some(item) = event.get("item") else { return };
        let at = self.items.added(event);
        match Kind::of(item) {
            Kind::Call if !text(item, "name").is_empty() => self.start_call(at, item, out),
            Kind::WebSearch => self.start_server_tool(at, "web_search", out),
            Kind::ImageGeneration => self.start_server_tool(at, "image_generation", out),
            // A call without a name waits for its complete item.
            Kind::Call | Kind::Message | Kind::Reasoning | Kind::Other => {}
        }
    }

    /// An item is complete: whatever of it was not passed on yet is now.
    fn finish(&mut self, at: usize, item: &Value, out: &mut Vec<Delta>) {
        match Kind::of(item) {
            Kind::Message => self.finish_message(at, item, out),
            Kind::Reasoning => self.finish_reasoning(at, item, out),
            Kind::Call => {
                self.start_call(at, item, out);
                let arguments = arguments_text(item.get("arguments"));
                if let Some(known) = self.items.get(at)
                    && let Some(index) = known.call_index
                    && !std::mem::replace(&mut known.emitted, true)
                    && !arguments.is_empty()
                {
                    out.push(Delta::ToolCallArguments { index, text: arguments });
                }
            }
            Kind::WebSearch => {
                let input = item.get("action").and_then(Value::as_object).cloned().unwrap_or_default();
                self.end_server_tool(at, "web_search", input, item, out);
                out.push(Delta::Opaque(self.replay(item, &["type", "id", "status", "action"])));
            }
            Kind::ImageGeneration => {
                let result = text(item, "result");
                self.end_server_tool(at, "image_generation", Map::new(), item, out);
                if !result.is_empty() {
                    let format = Some(text(item, "output_format")).filter(|format| !format.is_empty()).unwrap_or("png");
                    out.push(Delta::Image(Image { media_type: format!("image/{format}"), base64: result.to_owned() }));
                }
            }
            Kind::Other => {}
        }
    }

    fn finish_message(&mut self, at: usize, item: &Value, out: &mut Vec<Delta>) {
        let said = self.items.get(at).is_some_and(|item| item.emitted);
        let cited = self.items.get(at).is_some_and(|item| item.cited);
        for block in item.get("content").and_then(Value::as_array).into_iter().flatten() {
            let refusal = text(block, "refusal");
            self.refused |= !refusal.is_empty();
            let words = if refusal.is_empty() { text(block, "text") } else { refusal };
            if !said {
                self.say(at, words, out);
            }
            if !cited {
                for annotation in block.get("annotations").and_then(Value::as_array).into_iter().flatten() {
                    self.cite(at, Some(annotation), out);
                }
            }
        }
    }

    fn finish_reasoning(&mut self, at: usize, item: &Value, out: &mut Vec<Delta>) {
        let thought = self.items.get(at).is_some_and(|item| item.emitted);
        if !thought {
            let list = |key: &str| item.get(key).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
            let blocks = if list("summary").is_empty() { list("content") } else { list("summary") };
            let blocks: Vec<&str> = blocks.iter().map(|block| text(block, "text")).filter(|t| !t.is_empty()).collect();
            self.think_at(at, &blocks.join("\n\n"), out);
        }
        // The readable content only goes back where there is nothing encrypted: the vendor that
        // encrypts refuses it, the servers that do not encrypt want it.
        let encrypted = !text(item, "encrypted_content").is_empty();
        let keys = ["type", "id", "summary", if encrypted { "encrypted_content" } else { "content" }];
        let mut replay = self.replay(item, &keys);
        if let Some(kept) = replay.data.get_mut("item").and_then(Value::as_object_mut) {
            kept.entry("summary").or_insert_with(|| json!([]));
        }
        if self.reasoning == Some(at) {
            self.reasoning = None;
            out.push(Delta::ReasoningEnd { replay: Some(replay) });
        } else if encrypted {
            // Nothing to show, or shown and closed before: the thoughts still go back.
            out.push(Delta::Opaque(replay));
        }
    }

    fn text(&mut self, event: &Value, out: &mut Vec<Delta>) {
        let at = self.items.running(Kind::Message, event);
        self.say(at, text(event, "delta"), out);
    }

    fn say(&mut self, at: usize, words: &str, out: &mut Vec<Delta>) {
        if words.is_empty() {
            return;
        }
        self.close_reasoning(out);
        if let Some(item) = self.items.get(at) {
            item.emitted = true;
        }
        out.push(Delta::Text(words.to_owned()));
    }

    fn cite(&mut self, at: usize, annotation: Option<&Value>, out: &mut Vec<Delta>) {
        let Some(annotation) = annotation.filter(|annotation| text(annotation, "type") == "url_citation") else {
            return;
        };
        if let Some(item) = self.items.get(at) {
            item.cited = true;
        }
        let (title, url) = (text(annotation, "title").to_owned(), text(annotation, "url").to_owned());
        out.push(Delta::Citation { title, url });
    }

    fn think(&mut self, event: &Value, out: &mut Vec<Delta>) {
        let at = self.items.running(Kind::Reasoning, event);
        self.think_at(at, text(event, "delta"), out);
    }

    fn think_at(&mut self, at: usize, thought: &str, out: &mut Vec<Delta>) {
        if thought.is_empty() {
            return;
        }
        if self.reasoning != Some(at) {
            self.close_reasoning(out);
        }
        self.reasoning = Some(at);
        let Some(item) = self.items.get(at) else { return };
        item.emitted = true;
        let pause = if std::mem::take(&mut item.paragraph_ended) { "\n\n" } else { "" };
        out.push(Delta::Reasoning(format!("{pause}{thought}")));
    }

    /// Something else began before the provider said that the thoughts are complete.
    fn close_reasoning(&mut self, out: &mut Vec<Delta>) {
        if self.reasoning.take().is_some() {
            out.push(Delta::ReasoningEnd { replay: None });
        }
    }

    fn start_call(&mut self, at: usize, item: &Value, out: &mut Vec<Delta>) {
        let index = self.items.calls();
        let Some(known) = self.items.get(at).filter(|known| known.call_index.is_none()) else { return };
        known.call_index = Some(index);
        let id = Some(text(item, "call_id")).filter(|id| !id.is_empty()).unwrap_or(text(item, "id")).to_owned();
        self.close_reasoning(out);
        out.push(Delta::ToolCallStart { index, id, name: text(item, "name").to_owned() });
    }

    fn arguments(&mut self, event: &Value, out: &mut Vec<Delta>) {
        let piece = text(event, "delta");
        let at = self.items.running(Kind::Call, event);
        // Without its name a call cannot begin; the complete item will bring both.
        if let Some(item) = self.items.get(at)
            && let Some(index) = item.call_index
            && !piece.is_empty()
        {
            item.emitted = true;
            out.push(Delta::ToolCallArguments { index, text: piece.to_owned() });
        }
    }

    fn start_server_tool(&mut self, at: usize, name: &str, out: &mut Vec<Delta>) {
        self.close_reasoning(out);
        if let Some(item) = self.items.get(at) {
            out.push(Delta::ServerTool(ServerTool::Started { id: item.id.clone(), name: name.to_owned() }));
            item.emitted = true;
        }
    }

    fn end_server_tool(
        &mut self,
        at: usize,
        name: &str,
        input: Map<String, Value>,
        item: &Value,
        out: &mut Vec<Delta>,
    ) {
        if self.items.get(at).is_some_and(|item| !item.emitted) {
            self.start_server_tool(at, name, out);
        }
        let id = self.items.get(at).map(|item| item.id.clone()).unwrap_or_default();
        let error = text(item, "status") == "failed";
        let step = ServerTool::Finished { id, name: name.to_owned(), input, output: String::new(), error };
        out.push(Delta::ServerTool(step));
    }

    fn replay(&self, item: &Value, keys: &[&str]) -> Replay {
        let kept: Map<String, Value> =
            keys.iter().filter_map(|key| Some(((*key).to_owned(), item.get(*key)?.clone()))).collect();
        history::replay(NAME, &self.source, Map::from_iter([("item".to_owned(), Value::Object(kept))]))
    }

    fn usage(&mut self, usage: Option<&Value>, out: &mut Vec<Delta>) {
        let Some(usage) = usage.filter(|usage| usage.is_object()) else { return };
        let count = |place: &str| usage.pointer(place).and_then(Value::as_u64).unwrap_or(0);
        let cache_read = count("/input_tokens_details/cached_tokens");
        let cache_write = count("/input_tokens_details/cache_write_tokens");
        let usage = Usage {
            input: count("/input_tokens").saturating_sub(cache_read).saturating_sub(cache_write),
            output: count("/output_tokens"),
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
        match self.ended? {
            Ok(Ending::MaxTokens) => Some(StopReason::MaxTokens),
            Ok(Ending::Filtered) => Some(StopReason::Refusal),
            Ok(Ending::Complete) if self.refused => Some(StopReason::Refusal),
            Ok(Ending::Complete) if self.items.calls() > 0 => Some(StopReason::ToolCalls),
            Ok(Ending::Complete) => Some(StopReason::EndTurn),
            Err(()) => None,
        }
    }
}

impl Decoder for ResponsesDecoder {
    fn event(&mut self, event: &Event, out: &mut Vec<Delta>) -> Result<Progress, Fault> {
        let data = event.data.trim();
        if data == "[DONE]" {
            return Ok(Progress::Complete);
        }
        if data.is_empty() {
            return Ok(Progress::More);
        }
        let value = parse_object(data.as_bytes())?;
        let kind = match text(&value, "type") {
            "" => event.name.as_deref().unwrap_or_default(),
            kind => kind,
        };
        if kind.is_empty() && value.get("error").is_some_and(|error| !error.is_null()) {
            return self.take("error", &value, out);
        }
        self.take(kind, &value, out)
    }

    fn whole(&mut self, body: &[u8], out: &mut Vec<Delta>) -> Result<(), Fault> {
        let response = parse_object(body)?;
        if !response.get("output").is_some_and(Value::is_array) && response.get("error").is_none_or(Value::is_null) {
            return Err(Fault::Protocol("the response has no output".to_owned()));
        }
        self.response(&response, "", out)
    }

    fn end(&mut self, out: &mut Vec<Delta>) -> Result<(), Fault> {
        self.close_reasoning(out);
        let stop = self.stop().ok_or(Fault::PrematureStop)?;
        out.push(Delta::Stop(stop));
        Ok(())
    }
}

/// Arguments are text; some servers send the object itself.
fn arguments_text(arguments: Option<&Value>) -> String {
    match arguments {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
    }
}
