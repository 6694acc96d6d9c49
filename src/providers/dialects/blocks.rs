//! What the dialects share whose answers come in blocks: which are open, and what has been said.

use std::collections::HashMap;

use serde_json::Value;

use crate::llm::{Delta, StopReason};
use crate::providers::errors::Fault;

/// An answer of more open blocks, or a block with more hidden text, is none.
const MAX_OPEN_BLOCKS: usize = 1000;
const MAX_HIDDEN_BYTES: usize = 4 * 1024 * 1024;

/// An answer so far. `B` is a block whose end has not come.
#[derive(Debug)]
pub(super) struct Blocks<B> {
    open: HashMap<u64, B>,
    calls: usize,
    any_output: bool,
    pub(super) stop_reason: Option<String>,
}

impl<B> Blocks<B> {
    pub(super) fn new() -> Self {
        Self { open: HashMap::new(), calls: 0, any_output: false, stop_reason: None }
    }

    pub(super) fn say(&mut self, text: &str, out: &mut Vec<Delta>) {
        if !text.is_empty() {
            self.any_output = true;
            out.push(Delta::Text(text.to_owned()));
        }
    }

    /// Returns whether there is anything to see.
    pub(super) fn think(&mut self, text: &str, out: &mut Vec<Delta>) -> bool {
        if !text.is_empty() {
            self.any_output = true;
            out.push(Delta::Reasoning(text.to_owned()));
        }
        !text.is_empty()
    }

    /// Returns the number of the call.
    pub(super) fn start_call(&mut self, id: &str, name: &str, out: &mut Vec<Delta>) -> usize {
        let index = self.calls;
        self.calls += 1;
        self.any_output = true;
        out.push(Delta::ToolCallStart { index, id: id.to_owned(), name: name.to_owned() });
        index
    }

    /// Something came that is no text.
    pub(super) fn note_output(&mut self) {
        self.any_output = true;
    }

    pub(super) fn open(&mut self, index: u64, block: B) -> Result<(), Fault> {
        if self.open.len() >= MAX_OPEN_BLOCKS {
            return Err(Fault::Protocol(format!("more than {MAX_OPEN_BLOCKS} open blocks")));
        }
        self.open.insert(index, block);
        Ok(())
    }

    pub(super) fn get_mut(&mut self, index: u64) -> Option<&mut B> {
        self.open.get_mut(&index)
    }

    pub(super) fn take(&mut self, index: u64) -> Option<B> {
        self.open.remove(&index)
    }

    /// Keeps the reason in the member `key` of `holder`, if there is one.
    pub(super) fn note_stop(&mut self, holder: &Value, key: &str) {
        let reason = str_of(holder, key);
        if !reason.is_empty() {
            self.stop_reason = Some(reason.to_owned());
        }
    }

    /// Why an answer stopped that gave no reason of its own: by what it brought. `None` when it is not
    /// complete.
    pub(super) fn usual_stop(&self) -> Option<StopReason> {
        match (self.calls > 0, self.any_output) {
            (true, _) => Some(StopReason::ToolCalls),
            (false, true) => Some(StopReason::EndTurn),
            (false, false) => None,
        }
    }

    /// Closes what is still seen to be open: a block that was cut is not sent back.
    pub(super) fn cut(&mut self, is_seen_thinking: impl Fn(&B) -> bool, out: &mut Vec<Delta>) {
        if self.open.drain().any(|(_, block)| is_seen_thinking(&block)) {
            out.push(Delta::ReasoningEnd { replay: None });
        }
    }
}

/// Adds to what is not shown and has to be sent back.
pub(super) fn append(target: &mut String, text: &str) -> Result<(), Fault> {
    if target.len() + text.len() > MAX_HIDDEN_BYTES {
        return Err(Fault::Protocol("a block that is not shown is too large".to_owned()));
    }
    target.push_str(text);
    Ok(())
}

/// A source, by its title if it has one.
pub(super) fn cite(title: &str, url: &str, out: &mut Vec<Delta>) {
    if !url.is_empty() {
        let title = if title.is_empty() { url } else { title };
        out.push(Delta::Citation { title: title.to_owned(), url: url.to_owned() });
    }
}

pub(super) fn str_of<'a>(value: &'a Value, key: &str) -> &'a str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}
