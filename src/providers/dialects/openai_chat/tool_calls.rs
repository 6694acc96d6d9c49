//! Tool calls that arrive in pieces, put together although servers number them differently.
//!
//! The rule is: the id, else the index. What deviates: empty ids, ids only in the first piece, a
//! new id in every piece, all indexes zero, no index at all, the name repeated in every piece,
//! arguments as an object instead of text.

use serde_json::Value;

use super::NAME;
use crate::llm::{Delta, Replay};

#[derive(Debug, Default)]
pub(super) struct ToolCalls {
    calls: Vec<Call>,
}

#[derive(Debug)]
struct Call {
    id: String,
    wire_index: Option<u64>,
    name: String,
    /// All arguments so far; needed to tell a new call from a continued one.
    arguments: String,
    started: bool,
    replay: Option<Replay>,
}

impl ToolCalls {
    pub(super) fn is_empty(&self) -> bool {
        self.calls.is_empty()
    }

    /// Takes one entry of `tool_calls`.
    pub(super) fn feed(&mut self, entry: &Value, out: &mut Vec<Delta>) {
        let function = entry.get("function").unwrap_or(entry);
        let id = entry.get("id").and_then(Value::as_str).unwrap_or_default();
        let name = function.get("name").and_then(Value::as_str).unwrap_or_default();
        let arguments = match function.get("arguments") {
            None | Some(Value::Null) => String::new(),
            Some(Value::String(text)) => text.clone(),
            Some(other) => other.to_string(),
        };
        if id.is_empty() && name.is_empty() && arguments.is_empty() && self.calls.is_empty() {
            return;
        }
        let wire_index = entry.get("index").and_then(Value::as_u64);
        let index = self.find(id, wire_index, name, &arguments).unwrap_or_else(|| {
            self.calls.push(Call {
                id: id.to_owned(),
                wire_index,
                name: String::new(),
                arguments: String::new(),
                started: false,
                replay: None,
            });
            self.calls.len() - 1
        });
        let call = &mut self.calls[index];
        if call.id.is_empty() {
            call.id = id.to_owned();
        }
        if call.name.is_empty() {
            call.name = name.to_owned();
        }
        call.arguments.push_str(&arguments);
        // Where Gemini puts the signature of its thoughts, without which it refuses the call later.
        if let Some(extra) = entry.get("extra_content").filter(|extra| extra.is_object()) {
            call.replay = Some(Replay { dialect: NAME.to_owned(), data: extra.clone() });
        }
        if call.started {
            if !arguments.is_empty() {
                out.push(Delta::ToolCallArguments { index, text: arguments });
            }
        } else if !call.name.is_empty() {
            call.start(index, out);
        }
        if call.started
            && let Some(replay) = call.replay.take()
        {
            out.push(Delta::ToolCallReplay { index, replay });
        }
    }

    /// The stream is over: a call that never got a name is given out as it is, so that the engine
    /// can tell the model.
    pub(super) fn end(&mut self, out: &mut Vec<Delta>) {
        for (index, call) in self.calls.iter_mut().enumerate().filter(|(_, call)| !call.started) {
            call.start(index, out);
        }
    }

    /// The call that a piece belongs to; `None` when it begins a new one.
    fn find(&self, id: &str, wire_index: Option<u64>, name: &str, arguments: &str) -> Option<usize> {
        if !id.is_empty()
            && let Some(at) = self.calls.iter().rposition(|call| call.id == id)
        {
            return Some(at);
        }
        let at = match wire_index {
            Some(_) => self.calls.iter().rposition(|call| call.wire_index == wire_index)?,
            None => self.calls.len().checked_sub(1)?,
        };
        let call = &self.calls[at];
        let is_new = if name.is_empty() {
            false
        } else if !id.is_empty() && !call.id.is_empty() {
            true
        } else if wire_index.is_none() {
            call.name != name || call.is_complete_before(arguments)
        } else {
            call.is_complete_before(arguments)
        };
        (!is_new).then_some(at)
    }
}

impl Call {
    fn start(&mut self, index: usize, out: &mut Vec<Delta>) {
        self.started = true;
        out.push(Delta::ToolCallStart { index, id: self.id.clone(), name: self.name.clone() });
        if !self.arguments.is_empty() {
            out.push(Delta::ToolCallArguments { index, text: self.arguments.clone() });
        }
    }

    /// Whether the arguments are complete and `next` begins others. The cheap looks at both ends
    /// come first, so that a name repeated in each of many pieces does not parse each time.
    fn is_complete_before(&self, next: &str) -> bool {
        self.arguments.trim_end().ends_with('}')
            && next.trim_start().starts_with('{')
            && serde_json::from_str::<Value>(&self.arguments).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// Feeds pieces and gives back what an engine would have: id, name and arguments per call.
    fn run(pieces: &[Value]) -> Vec<(String, String, String)> {
        let mut calls = ToolCalls::default();
        let mut out = Vec::new();
        for piece in pieces {
            calls.feed(piece, &mut out);
        }
        calls.end(&mut out);
        let mut result: Vec<(String, String, String)> = Vec::new();
        for delta in out {
            match delta {
                Delta::ToolCallStart { index, id, name } => {
                    assert_eq!(index, result.len(), "calls start in order");
                    result.push((id, name, String::new()));
                }
                Delta::ToolCallArguments { index, text } => result[index].2.push_str(&text),
                other => panic!("{other:?}"),
            }
        }
        result
    }

    fn call(id: &str, name: &str, arguments: &str) -> (String, String, String) {
        (id.to_owned(), name.to_owned(), arguments.to_owned())
    }

    fn f(name: &str, arguments: &str) -> Value {
        json!({"name": name, "arguments": arguments})
    }

    type Case = (&'static str, Vec<Value>, Vec<(String, String, String)>);

    #[test]
    fn calls_with_ids() {
        let cases: Vec<Case> = vec![
            (
                "openai: id and name first, then index only",
                vec![
                    json!({"index": 0, "id": "a", "function": f("ls", "")}),
                    json!({"index": 0, "function": {"arguments": "{\"p\":"}}),
                    json!({"index": 1, "id": "b", "function": f("cat", "")}),
                    json!({"index": 1, "function": {"arguments": "{}"}}),
                    json!({"index": 0, "function": {"arguments": "1}"}}),
                ],
                vec![call("a", "ls", "{\"p\":1}"), call("b", "cat", "{}")],
            ),
            (
                "id and name repeated in each piece",
                vec![
                    json!({"index": 0, "id": "a", "function": f("ls", "{\"p\"")}),
                    json!({"index": 0, "id": "a", "function": f("ls", ":1}")}),
                ],
                vec![call("a", "ls", "{\"p\":1}")],
            ),
            (
                "empty ids and names after the first piece",
                vec![
                    json!({"index": 0, "id": "a", "function": f("ls", "{")}),
                    json!({"index": 0, "id": "", "function": f("", "}")}),
                ],
                vec![call("a", "ls", "{}")],
            ),
            (
                "all indexes zero, new ids",
                vec![
                    json!({"index": 0, "id": "a", "function": f("ls", "{}")}),
                    json!({"index": 0, "id": "b", "function": f("ls", "{}")}),
                ],
                vec![call("a", "ls", "{}"), call("b", "ls", "{}")],
            ),
            (
                "a new id in every piece of the same call",
                vec![
                    json!({"index": 0, "id": "a", "function": f("ls", "{")}),
                    json!({"index": 0, "id": "x", "function": {"arguments": "}"}}),
                ],
                vec![call("a", "ls", "{}")],
            ),
        ];
        for (label, pieces, expected) in cases {
            assert_eq!(run(&pieces), expected, "{label}");
        }
    }

    #[test]
    fn calls_without_ids_and_other_oddities() {
        let cases: Vec<Case> = vec![
            (
                "no ids at all, name repeated",
                vec![
                    json!({"index": 0, "function": f("ls", "{\"a\":")}),
                    json!({"index": 0, "function": f("ls", "{}")}),
                    json!({"index": 0, "function": f("ls", "}")}),
                    json!({"index": 0, "function": f("ls", "")}),
                    json!({"index": 0, "function": f("ls", "{\"b\":1}")}),
                ],
                vec![call("", "ls", "{\"a\":{}}"), call("", "ls", "{\"b\":1}")],
            ),
            (
                "whole calls without id and index",
                vec![
                    json!({"function": f("ls", "{}")}),
                    json!({"function": f("ls", "{}")}),
                    json!({"function": f("rm", "")}),
                ],
                vec![call("", "ls", "{}"), call("", "ls", "{}"), call("", "rm", "")],
            ),
            (
                "arguments as an object",
                vec![json!({"index": 0, "id": "a", "function": {"name": "ls", "arguments": {"p": 1}}})],
                vec![call("a", "ls", "{\"p\":1}")],
            ),
            (
                "arguments before the name, null arguments",
                vec![
                    json!({"index": 0, "id": "a", "function": {"arguments": "{"}}),
                    json!({"index": 0, "function": {"name": "ls", "arguments": null}}),
                    json!({"index": 0, "function": {"arguments": "}"}}),
                ],
                vec![call("a", "ls", "{}")],
            ),
            (
                "a name that never comes",
                vec![json!({"index": 0, "id": "a", "function": {"arguments": "{}"}})],
                vec![call("a", "", "{}")],
            ),
            ("nothing in it", vec![json!({}), json!(null), json!({"index": 0})], vec![]),
        ];
        for (label, pieces, expected) in cases {
            assert_eq!(run(&pieces), expected, "{label}");
        }
    }
}
