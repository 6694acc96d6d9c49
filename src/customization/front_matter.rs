//! The block of settings at the top of a Markdown file, between two lines of `---`.
//!
//! It is YAML, of which people use a small part here: maps, lists, texts in and without quotes,
//! lists and maps on one line, and texts over several lines. That part is read, forgivingly where
//! what is meant is clear: a colon or a star in a plain text, or an opening bracket that belongs to
//! a sentence, is text. Anchors, tags and several documents are not read.

mod flow;
mod scalar;

use serde_json::{Map, Value};

use scalar::{plain, without_comment};

/// A longer block is not meant for us.
const MAX_BYTES: usize = 64 * 1024;
const MAX_DEPTH: usize = 16;
/// Brackets that are not closed within so many lines are text; each line costs another look.
const MAX_FLOW_LINES: usize = 200;

/// A file in its two parts.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Split {
    pub(super) values: Map<String, Value>,
    pub(super) body: String,
    /// Where the body begins, from 1 on.
    pub(super) body_line: usize,
}

/// What is wrong with the block, and on which line of the file.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Flaw {
    pub(super) line: usize,
    pub(super) message: &'static str,
}

/// Takes a file apart. One without the block is all body.
pub(super) fn split(text: &str) -> Result<Split, Flaw> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text).replace("\r\n", "\n");
    let Some((block, body)) = block_and_body(&text) else {
        return Ok(Split::new(Map::new(), &text, &text));
    };
    if block.len() > MAX_BYTES {
        return Err(Flaw { line: 1, message: "the block of settings is larger than 64 KiB" });
    }
    Ok(Split::new(parse(block)?, body, &text))
}

impl Split {
    fn new(values: Map<String, Value>, body: &str, whole: &str) -> Self {
        let before = &whole[..whole.len() - body.trim_start().len()];
        Self { values, body: body.trim().to_owned(), body_line: before.matches('\n').count() + 1 }
    }
}

/// The lines between the two marks, and what follows.
fn block_and_body(text: &str) -> Option<(&str, &str)> {
    let (first, rest) = text.split_once('\n')?;
    if first.trim_end() != "---" {
        return None;
    }
    let mut start = 0;
    for line in rest.split_inclusive('\n') {
        if matches!(line.trim_end(), "---" | "...") {
            return Some((&rest[..start], &rest[start + line.len()..]));
        }
        start += line.len();
    }
    // A rule at the top of a text that is only a text.
    None
}

fn parse(block: &str) -> Result<Map<String, Value>, Flaw> {
    let mut lines = Vec::new();
    for (index, raw) in block.lines().enumerate() {
        let text = raw.trim();
        let indent = raw.len() - raw.trim_start_matches(' ').len();
        // The first line of the block is the second one of the file.
        lines.push(Line { number: index + 2, indent, text, raw });
    }
    let mut parser = Parser { lines, at: 0 };
    let Some(first) = parser.peek() else { return Ok(Map::new()) };
    let Value::Object(values) = parser.block(first.indent, 0)? else {
        return Err(Flaw { line: first.number, message: "expected `name: value`" });
    };
    match parser.peek() {
        Some(line) => Err(Flaw { line: line.number, message: "the indentation fits nothing above" }),
        None => Ok(values),
    }
}

#[derive(Debug, Clone, Copy)]
struct Line<'a> {
    /// In the file, from 1 on.
    number: usize,
    indent: usize,
    /// Without white space around it.
    text: &'a str,
    raw: &'a str,
}

struct Parser<'a> {
    lines: Vec<Line<'a>>,
    at: usize,
}

impl<'a> Parser<'a> {
    /// The next line that says something.
    fn peek(&mut self) -> Option<Line<'a>> {
        while let Some(line) = self.lines.get(self.at) {
            if !line.text.is_empty() && !line.text.starts_with('#') {
                return Some(*line);
            }
            self.at += 1;
        }
        None
    }

    /// The map or list whose lines are indented by `indent`.
    fn block(&mut self, indent: usize, depth: usize) -> Result<Value, Flaw> {
        let line = self.peek().map_or(0, |line| line.number);
        if depth > MAX_DEPTH {
            return Err(Flaw { line, message: "nested too deeply" });
        }
        match self.peek() {
            Some(line) if item(line.text).is_some() => self.list(indent, depth),
            _ => self.map(indent, depth),
        }
    }

    fn map(&mut self, indent: usize, depth: usize) -> Result<Value, Flaw> {
        let mut map = Map::new();
        while let Some(line) = self.peek() {
            let flaw = |message| Err(Flaw { line: line.number, message });
            if line.indent < indent || line.indent == indent && item(line.text).is_some() {
                break;
            }
            if line.raw.trim_start_matches(' ').starts_with('\t') {
                return flaw("tabs cannot indent");
            }
            if line.indent > indent {
                return flaw("the indentation fits nothing above");
            }
            let Some((key, rest)) = key_and_rest(line.text) else {
                return flaw("expected `name: value`");
            };
            self.at += 1;
            let value = self.value(rest, indent, depth)?;
            map.insert(key, value);
        }
        Ok(Value::Object(map))
    }

    fn list(&mut self, indent: usize, depth: usize) -> Result<Value, Flaw> {
        let mut list = Vec::new();
        while let Some(line) = self.peek() {
            if line.indent < indent {
                break;
            }
            let Some(rest) = item(line.text).filter(|_| line.indent == indent) else {
                // A key after its list, which may stand as far left as the list itself.
                if line.indent == indent {
                    break;
                }
                return Err(Flaw { line: line.number, message: "the indentation fits nothing above" });
            };
            let opens_block = item(rest).is_some() || key_and_rest(rest).is_some() && !rest.starts_with(['[', '{']);
            if opens_block {
                // `- name: x` is a map whose first line begins behind the dash.
                let inner = indent + (line.text.len() - rest.len());
                self.lines[self.at] = Line { indent: inner, text: rest, ..line };
                list.push(self.block(inner, depth + 1)?);
            } else {
                self.at += 1;
                list.push(self.value(rest, indent, depth)?);
            }
        }
        Ok(Value::Array(list))
    }

    /// The value that begins with `rest`, behind a key or a dash at `indent`.
    fn value(&mut self, rest: &'a str, indent: usize, depth: usize) -> Result<Value, Flaw> {
        match rest.as_bytes().first() {
            None => self.below(indent, depth),
            Some(b'#') => self.below(indent, depth),
            Some(b'|' | b'>') if scalar::Style::read(rest).is_some() => Ok(self.lines_of_text(rest, indent)),
            Some(b'[' | b'{') => Ok(self.flow(rest, indent)),
            Some(b'"' | b'\'') => Ok(match flow::quoted(rest) {
                Some((text, after)) if without_comment(after).is_empty() => Value::String(text),
                _ => self.plain(rest, indent),
            }),
            Some(_) => Ok(self.plain(rest, indent)),
        }
    }

    /// What stands on the following lines, further to the right; a list may stand as far left as
    /// its key.
    fn below(&mut self, indent: usize, depth: usize) -> Result<Value, Flaw> {
        match self.peek() {
            Some(line) if line.indent > indent => self.block(line.indent, depth + 1),
            Some(line) if line.indent == indent && item(line.text).is_some() && !self.inside_list(indent) => {
                self.list(indent, depth + 1)
            }
            _ => Ok(Value::Null),
        }
    }

    /// Whether the line before is an item of a list at `indent`.
    fn inside_list(&self, indent: usize) -> bool {
        let before =
            self.lines[..self.at].iter().rev().find(|line| !line.text.is_empty() && !line.text.starts_with('#'));
        before.is_some_and(|line| line.indent == indent && item(line.text).is_some())
    }

    /// A text without quotes, with the lines that continue it.
    fn plain(&mut self, rest: &'a str, indent: usize) -> Value {
        let mut text = without_comment(rest).to_owned();
        let mut continued = false;
        while let Some(line) = self.peek().filter(|line| line.indent > indent) {
            text.push(' ');
            text.push_str(without_comment(line.text));
            continued = true;
            self.at += 1;
        }
        if continued { Value::String(text) } else { plain(&text) }
    }

    /// A list or map in brackets, possibly over several lines; otherwise the text that it is.
    fn flow(&mut self, rest: &'a str, indent: usize) -> Value {
        let mut text = rest.to_owned();
        let mut next = self.at;
        loop {
            if let Some((value, after)) = flow::value(&text)
                && without_comment(after).is_empty()
            {
                self.at = next;
                return value;
            }
            // A closing bracket may stand as far left as the key.
            let continues =
                |line: &&Line<'_>| line.indent > indent || line.text.starts_with([']', '}']) || line.text.is_empty();
            let Some(line) = self.lines.get(next).filter(continues) else { break };
            if next - self.at >= MAX_FLOW_LINES {
                break;
            }
            text.push(' ');
            text.push_str(without_comment(line.text));
            next += 1;
        }
        self.plain(rest, indent)
    }

    /// A text that keeps or folds its lines.
    fn lines_of_text(&mut self, header: &str, indent: usize) -> Value {
        let mut lines: Vec<&str> = Vec::new();
        while let Some(line) = self.lines.get(self.at) {
            if !line.text.is_empty() && line.indent <= indent {
                break;
            }
            lines.push(line.raw);
            self.at += 1;
        }
        Value::String(scalar::Style::read(header).map(|style| style.join(&lines)).unwrap_or_default())
    }
}

/// What follows the dash of a list's item.
fn item(text: &str) -> Option<&str> {
    let rest = text.strip_prefix('-')?;
    (rest.is_empty() || rest.starts_with([' ', '\t'])).then(|| rest.trim_start())
}

fn key_and_rest(text: &str) -> Option<(String, &str)> {
    if text.starts_with(['"', '\'']) {
        let (key, after) = flow::quoted(text)?;
        let rest = after.trim_start().strip_prefix(':')?;
        return (rest.is_empty() || rest.starts_with([' ', '\t'])).then(|| (key, rest.trim_start()));
    }
    let colon = text.match_indices(':').map(|(at, _)| at).find(|at| {
        let rest = &text[at + 1..];
        rest.is_empty() || rest.starts_with([' ', '\t'])
    })?;
    let key = text[..colon].trim_end();
    (!key.is_empty()).then(|| (key.to_owned(), text[colon + 1..].trim_start()))
}

#[cfg(test)]
mod tests;
