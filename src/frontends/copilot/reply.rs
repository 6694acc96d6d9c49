//! The answer to a wish, while it arrives: a line of JSON that says what it is, then code; or a
//! call of a tool; or whatever a model makes of that.

use serde_json::{Map, Value};

use super::code::Intake;
use super::job::ToolCall;
use super::prompts::{ASK, SUBMIT};
use crate::base::text::one_line;

/// A header is read again with each piece; a longer one is read once, in the end.
const LONGEST_HEADER: usize = 32 * 1024;
/// Lines of politeness before the header.
const MOST_PREAMBLE: usize = 5;
const LONGEST_TEXT: usize = 600;
const MOST_TEXTS: usize = 10;

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Reply {
    Code { description: Option<String>, assumptions: Vec<String> },
    Question { question: String, options: Vec<String> },
}

#[derive(Debug, Default)]
pub(super) struct ReplyReader {
    head: Head,
    intake: Intake,
    /// Code that was found only in the end, and has not been passed on.
    rest: String,
}

#[derive(Debug)]
enum Head {
    Reading(String),
    /// What the header says; nothing when there is none.
    Read(Map<String, Value>),
}

impl Default for Head {
    fn default() -> Self {
        Self::Reading(String::new())
    }
}

enum Found {
    NeedMore,
    Header(Map<String, Value>, usize),
    None,
}

impl ReplyReader {
    /// Takes a piece of the answer; returns what of it is code.
    pub(super) fn push(&mut self, text: &str) -> String {
        match &mut self.head {
            Head::Read(header) if is_question(header) => String::new(),
            Head::Read(_) => self.intake.push(text),
            Head::Reading(held) => {
                held.push_str(text);
                if held.len() > LONGEST_HEADER || !text.contains(['}', '\n']) {
                    return String::new();
                }
                let held = held.clone();
                self.settle(&held, header(&held))
            }
        }
    }

    pub(super) fn go_on(&mut self) -> String {
        self.intake.go_on()
    }

    /// The answer is complete: says what it is, if it is anything.
    pub(super) fn finish(&mut self, calls: &[ToolCall]) -> Option<Reply> {
        if let Some((header, code)) = calls.iter().find_map(called) {
            if let Some(code) = code {
                self.intake = Intake::default();
                self.rest = self.intake.push(&as_block(&code));
            }
            self.head = Head::Read(header);
        }
        if let Head::Reading(held) = &mut self.head {
            let held = std::mem::take(held);
            // As if a last fence had come, so that nothing is waited for any more.
            let found = match header(&format!("{held}\n```\n")) {
                Found::NeedMore => Found::None,
                found => found,
            };
            self.rest = self.settle(&held, found);
        }
        let Head::Read(header) = &self.head else { return None };
        if is_question(header) {
            let question = text(header, "question")?;
            return Some(Reply::Question { question, options: texts(header, "options") });
        }
        let reply = Reply::Code { description: text(header, "description"), assumptions: texts(header, "assumptions") };
        if self.intake.is_empty()
            && let Some(code) = header.get("code").and_then(Value::as_str)
        {
            let code = as_block(code);
            self.rest = self.intake.push(&code);
        }
        self.rest.push_str(&self.intake.finish());
        (!self.intake.is_empty()).then_some(reply)
    }

    pub(super) fn take_rest(&mut self) -> String {
        std::mem::take(&mut self.rest)
    }

    pub(super) fn intake(&self) -> &Intake {
        &self.intake
    }

    /// The header is known, or known not to be there: the rest is code.
    fn settle(&mut self, held: &str, found: Found) -> String {
        let (header, rest) = match found {
            Found::NeedMore => return String::new(),
            Found::Header(header, end) => (header, held.get(end..).unwrap_or_default()),
            Found::None => (Map::new(), held),
        };
        let code = if is_question(&header) { String::new() } else { self.intake.push(rest) };
        self.head = Head::Read(header);
        code
    }
}

/// The header at the beginning of an answer, and where it ends.
fn header(text: &str) -> Found {
    let mut at = 0;
    for _ in 0..MOST_PREAMBLE {
        let rest = &text[at..];
        let start = rest.trim_start();
        at += rest.len() - start.len();
        if start.is_empty() {
            return Found::NeedMore;
        }
        if start.starts_with('{') {
            return object(text, at);
        }
        let Some(line) = start.find('\n') else { return Found::NeedMore };
        let first = start[..line].trim();
        if first.starts_with("```json") {
            let begins = at + line + 1;
            return match object(text, begins + blank(&text[begins..])) {
                Found::Header(header, end) => match after_fence(&text[end..]) {
                    Some(length) => Found::Header(header, end + length),
                    None => Found::NeedMore,
                },
                other => other,
            };
        }
        if first.starts_with("```") || looks_like_code(first) {
            return Found::None;
        }
        at += line + 1;
    }
    Found::None
}

fn object(text: &str, at: usize) -> Found {
    let mut values = serde_json::Deserializer::from_str(&text[at..]).into_iter::<Value>();
    match values.next() {
        Some(Ok(Value::Object(header))) => {
            let is_header = ["kind", "question", "code", "description"].iter().any(|name| header.contains_key(*name));
            if is_header { Found::Header(header, at + values.byte_offset()) } else { Found::None }
        }
        Some(Err(error)) if error.is_eof() => Found::NeedMore,
        None => Found::NeedMore,
        Some(_) => Found::None,
    }
}

/// The length of the fence line that ends a block of its own, if there is one; `None` when that is
/// not known yet.
fn after_fence(rest: &str) -> Option<usize> {
    let start = blank(rest);
    let Some(after) = rest[start..].strip_prefix("```") else {
        let may_follow = "```".starts_with(&rest[start..]);
        return (!may_follow).then_some(0);
    };
    let line = after.find('\n')?;
    // A fence with a language opens the next block.
    Some(if after[..line].trim().is_empty() { start + 3 + line } else { 0 })
}

fn blank(text: &str) -> usize {
    text.len() - text.trim_start().len()
}

fn looks_like_code(line: &str) -> bool {
    ["import ", "export ", "//", "/*", "const ", "function "].iter().any(|word| line.starts_with(word))
}

/// Code as a block, so that nothing of it is taken for prose; blocks stay as they are.
fn as_block(code: &str) -> String {
    if code.trim_start().starts_with("```") { code.to_owned() } else { format!("````tsx\n{}\n````\n", code.trim_end()) }
}

/// What a call says, and the code in it.
fn called(call: &ToolCall) -> Option<(Map<String, Value>, Option<String>)> {
    let Ok(Value::Object(mut arguments)) = serde_json::from_str(&call.arguments) else { return None };
    match call.name.as_str() {
        ASK => {
            arguments.insert("kind".to_owned(), "clarify".into());
            Some((arguments, None))
        }
        SUBMIT => {
            let Some(Value::String(code)) = arguments.remove("code") else { return None };
            arguments.insert("kind".to_owned(), "code".into());
            Some((arguments, Some(code)))
        }
        _ => None,
    }
}

fn is_question(header: &Map<String, Value>) -> bool {
    match header.get("kind").and_then(Value::as_str) {
        Some(kind) => kind == "clarify",
        None => header.contains_key("question") && !header.contains_key("code"),
    }
}

fn text(header: &Map<String, Value>, name: &str) -> Option<String> {
    let text = one_line(header.get(name)?.as_str()?, LONGEST_TEXT);
    (!text.is_empty()).then_some(text)
}

fn texts(header: &Map<String, Value>, name: &str) -> Vec<String> {
    let list = header.get(name).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let one = |value: &Value| value.as_str().map(|text| one_line(text, LONGEST_TEXT)).filter(|text| !text.is_empty());
    list.iter().filter_map(one).take(MOST_TEXTS).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const CODE: &str = "export default function App() {\n  return <p>Hi</p>;\n}\n";

    /// The answer in pieces of every size: what was streamed, the reply, and the code.
    fn read(answer: &str, calls: &[ToolCall]) -> (Option<Reply>, String) {
        let mut results = Vec::new();
        for size in [1, 3, 7, 50, answer.len().max(1)] {
            let mut reader = ReplyReader::default();
            let mut streamed = String::new();
            let characters: Vec<char> = answer.chars().collect();
            for piece in characters.chunks(size) {
                streamed.push_str(&reader.push(&piece.iter().collect::<String>()));
            }
            let reply = reader.finish(calls);
            streamed.push_str(&reader.take_rest());
            if matches!(reply, Some(Reply::Code { .. })) {
                assert_eq!(streamed, reader.intake().code(), "in pieces of {size}: {answer}");
            }
            results.push((reply, reader.intake().code().to_owned()));
        }
        let first = results.remove(0);
        for other in results {
            assert_eq!(other, first, "{answer}");
        }
        first
    }

    fn call(name: &str, arguments: Value) -> ToolCall {
        ToolCall { name: name.into(), arguments: arguments.to_string(), ..ToolCall::default() }
    }

    #[test]
    fn a_header_and_code_in_every_dress() {
        let header = r#"{"kind":"code","description":"Added a search field","assumptions":["a","b"]}"#;
        let pretty = serde_json::to_string_pretty(&serde_json::from_str::<Value>(header).unwrap()).unwrap();
        let expected =
            Reply::Code { description: Some("Added a search field".into()), assumptions: vec!["a".into(), "b".into()] };
        for answer in [
            format!("{header}\n```tsx\n{CODE}```\n"),
            format!("\n{header}\n\n```\n{CODE}```"),
            format!("{header}\n{CODE}"),
            format!("{pretty}\n```jsx\n{CODE}```\nEnjoy!"),
            format!("Sure, here it is:\n\n{header}\n```tsx\n{CODE}```\n"),
            format!("```json\n{header}\n```\n\n```tsx\n{CODE}```\n"),
        ] {
            let (reply, code) = read(&answer, &[]);
            assert_eq!((reply.as_ref(), code.as_str()), (Some(&expected), CODE), "{answer}");
        }
    }

    #[test]
    fn code_without_a_header_is_code() {
        for answer in [format!("```tsx\n{CODE}```"), CODE.to_owned(), format!("Here you are.\n```tsx\n{CODE}```")] {
            let (reply, code) = read(&answer, &[]);
            assert_eq!(reply, Some(Reply::Code { description: None, assumptions: vec![] }), "{answer}");
            assert_eq!(code, CODE);
        }
        let inside = json!({"kind": "code", "code": CODE, "description": "d"}).to_string();
        let (reply, code) = read(&inside, &[]);
        assert_eq!(reply, Some(Reply::Code { description: Some("d".into()), assumptions: vec![] }));
        assert_eq!(code.trim_end(), CODE.trim_end());
    }

    #[test]
    fn questions() {
        let expected = Reply::Question { question: "Which table?".into(), options: vec!["A".into(), "B".into()] };
        for answer in [
            r#"{"kind":"clarify","question":"Which table?","options":["A","B",5]}"#,
            "{\"question\":\"Which table?\",\"options\":[\"A\",\"B\"]}\nSome more words.",
            "```json\n{\"kind\":\"clarify\",\"question\":\"Which table?\",\"options\":[\"A\",\"B\"]}\n```",
        ] {
            assert_eq!(read(answer, &[]).0.as_ref(), Some(&expected), "{answer}");
        }
        let asked = call(ASK, json!({"question": "Which table?", "options": ["A", "B"]}));
        assert_eq!(read("Let me ask.", &[asked]).0, Some(expected));
    }

    #[test]
    fn calls_count_before_words() {
        let submitted = call(SUBMIT, json!({"code": CODE, "description": "d", "assumptions": ["x"]}));
        let (reply, code) = read("", std::slice::from_ref(&submitted));
        assert_eq!(reply, Some(Reply::Code { description: Some("d".into()), assumptions: vec!["x".into()] }));
        assert_eq!(code.trim_end(), CODE.trim_end());
        let broken = ToolCall { arguments: "{\"code\": \"x".into(), ..submitted };
        assert_eq!(read("", &[broken]).0, None);
        assert_eq!(read("", &[call("other", json!({}))]).0, None);
    }

    #[test]
    fn neither() {
        for answer in ["", "I cannot do that.", "{\"kind\":\"clarify\"}", "{\"kind\":\"code\"}", "{\"a\":1}"] {
            assert_eq!(read(answer, &[]).0, None, "{answer}");
        }
    }
}
