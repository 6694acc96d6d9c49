//! The lines of Ollama's answer into deltas.

use serde_json::{Map, Value};

use super::NAME;
use crate::llm::{Delta, Replay, StopReason, Usage};
use crate::providers::dialects::{Decoder, Progress, parse_object};
use crate::providers::errors::Fault;
use crate::providers::sse::Event;

/// Decodes one answer. Feed it every line, then call [`Decoder::end`].
#[derive(Debug, Default)]
pub struct OllamaDecoder {
    calls: usize,
    reasoning: bool,
    done: bool,
    done_reason: Option<String>,
}

impl OllamaDecoder {
    fn line(&mut self, line: &Value, out: &mut Vec<Delta>) -> Result<(), Fault> {
        if let Some(error) = line.get("error").filter(|error| !error.is_null()) {
            // Mostly a bare sentence, which an error object holds as its message.
            let error = if error.is_object() { error.clone() } else { line.clone() };
            return Err(Fault::Reported(error));
        }
        if let Some(message) = line.get("message") {
            self.message(message, out);
        }
        if line.get("done") == Some(&Value::Bool(true)) {
            self.done = true;
            self.done_reason = line.get("done_reason").and_then(Value::as_str).map(str::to_owned);
            let count = |key: &str| line.get(key).and_then(Value::as_u64).unwrap_or(0);
            let usage = Usage { input: count("prompt_eval_count"), output: count("eval_count"), ..Usage::default() };
            if usage != Usage::default() {
                out.push(Delta::Usage(usage));
            }
        }
        Ok(())
    }

    fn message(&mut self, message: &Value, out: &mut Vec<Delta>) {
        let text = |key: &str| message.get(key).and_then(Value::as_str).filter(|text| !text.is_empty());
        if let Some(thought) = text("thinking") {
            self.reasoning = true;
            out.push(Delta::Reasoning(thought.to_owned()));
        }
        if let Some(words) = text("content") {
            self.close_reasoning(out);
            out.push(Delta::Text(words.to_owned()));
        }
        for call in message.get("tool_calls").and_then(Value::as_array).into_iter().flatten() {
            self.call(call, out);
        }
    }

    /// A call comes whole. Older servers give no ids, and their indexes all are zero.
    fn call(&mut self, call: &Value, out: &mut Vec<Delta>) {
        let function = call.get("function").unwrap_or(call);
        if !function.is_object() {
            return;
        }
        self.close_reasoning(out);
        let index = self.calls;
        self.calls += 1;
        let given = call.get("id").and_then(Value::as_str).filter(|id| !id.is_empty());
        let id = given.map_or_else(|| format!("call_{index}"), str::to_owned);
        let name = function.get("name").and_then(Value::as_str).unwrap_or_default().to_owned();
        out.push(Delta::ToolCallStart { index, id, name });
        let text = match function.get("arguments") {
            None | Some(Value::Null) => "{}".to_owned(),
            Some(Value::String(text)) => text.clone(),
            Some(arguments) => arguments.to_string(),
        };
        if !text.is_empty() {
            out.push(Delta::ToolCallArguments { index, text });
        }
    }

    fn close_reasoning(&mut self, out: &mut Vec<Delta>) {
        if std::mem::take(&mut self.reasoning) {
            let replay = Replay { dialect: NAME.to_owned(), data: Value::Object(Map::new()) };
            out.push(Delta::ReasoningEnd { replay: Some(replay) });
        }
    }
}

impl Decoder for OllamaDecoder {
    fn event(&mut self, event: &Event, out: &mut Vec<Delta>) -> Result<Progress, Fault> {
        self.line(&parse_object(event.data.as_bytes())?, out)?;
        Ok(if self.done { Progress::Complete } else { Progress::More })
    }

    fn whole(&mut self, body: &[u8], out: &mut Vec<Delta>) -> Result<(), Fault> {
        self.line(&parse_object(body)?, out)
    }

    fn end(&mut self, out: &mut Vec<Delta>) -> Result<(), Fault> {
        self.close_reasoning(out);
        if !self.done {
            return Err(Fault::PrematureStop);
        }
        let stop = match self.done_reason.as_deref() {
            Some("length") => StopReason::MaxTokens,
            _ if self.calls > 0 => StopReason::ToolCalls,
            _ => StopReason::EndTurn,
        };
        out.push(Delta::Stop(stop));
        Ok(())
    }
}
