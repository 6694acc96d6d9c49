//! Reasoning that a model writes between tags at the start of its answer.
//!
//! A tag counts only before the first visible text: later, it is something the model talks about.
//! Nothing is ever lost: what turns out not to be a tag is text, and a block that is not closed is
//! reasoning to its end.

/// A piece of an answer's content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Piece {
    Text(String),
    Reasoning(String),
    /// The closing tag.
    ReasoningEnd,
}

#[derive(Debug)]
pub(super) struct ThinkTags {
    start: String,
    end: String,
    state: State,
    /// What cannot be decided yet: white space before a tag, or a part of one.
    held: String,
    /// Whether a block was closed, after which white space before the text is only layout.
    after_block: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    BeforeText,
    Inside,
    InText,
}

impl ThinkTags {
    /// An empty tag switches the recognition off.
    pub(super) fn new(start: Option<&str>, end: Option<&str>) -> Self {
        let start = start.unwrap_or("<think>").to_owned();
        let end = end.unwrap_or("</think>").to_owned();
        let state = if start.is_empty() || end.is_empty() { State::InText } else { State::BeforeText };
        Self { start, end, state, held: String::new(), after_block: false }
    }

    /// Whether no tag can come any more, so that all content is text.
    pub(super) fn are_behind(&self) -> bool {
        self.state == State::InText
    }

    pub(super) fn feed(&mut self, text: &str) -> Vec<Piece> {
        if self.state == State::InText {
            return piece(Piece::Text, text.to_owned());
        }
        self.held.push_str(text);
        let mut pieces = Vec::new();
        loop {
            match self.state {
                State::BeforeText => {
                    let trimmed = self.held.trim_start();
                    if let Some(rest) = trimmed.strip_prefix(self.start.as_str()) {
                        self.held = rest.to_owned();
                        self.state = State::Inside;
                    } else if self.start.starts_with(trimmed) {
                        // Only white space, or the beginning of a tag.
                        return pieces;
                    } else {
                        pieces.extend(self.flush_text());
                        self.state = State::InText;
                        return pieces;
                    }
                }
                State::Inside => {
                    if let Some(at) = self.held.find(&self.end) {
                        let rest = self.held.split_off(at);
                        pieces.extend(piece(Piece::Reasoning, std::mem::take(&mut self.held)));
                        pieces.push(Piece::ReasoningEnd);
                        self.held = rest[self.end.len()..].to_owned();
                        self.after_block = true;
                        self.state = State::BeforeText;
                    } else {
                        let keep = partial_tag(&self.held, &self.end);
                        let rest = self.held.split_off(self.held.len() - keep);
                        pieces.extend(piece(Piece::Reasoning, std::mem::replace(&mut self.held, rest)));
                        return pieces;
                    }
                }
                State::InText => return pieces,
            }
        }
    }

    /// The content is over, or something else came: gives out what was held back.
    pub(super) fn end(&mut self) -> Vec<Piece> {
        match self.state {
            State::BeforeText => self.flush_text(),
            State::Inside => piece(Piece::Reasoning, std::mem::take(&mut self.held)),
            State::InText => Vec::new(),
        }
    }

    fn flush_text(&mut self) -> Vec<Piece> {
        let held = std::mem::take(&mut self.held);
        piece(Piece::Text, if self.after_block { held.trim_start().to_owned() } else { held })
    }
}

fn piece(kind: fn(String) -> Piece, text: String) -> Vec<Piece> {
    if text.is_empty() { Vec::new() } else { vec![kind(text)] }
}

/// How many bytes at the end of `text` may be the beginning of `tag`.
fn partial_tag(text: &str, tag: &str) -> usize {
    let longest = text.len().min(tag.len().saturating_sub(1));
    (1..=longest).rev().find(|size| text.as_bytes().ends_with(&tag.as_bytes()[..*size])).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn joined(pieces: Vec<Piece>) -> (String, String) {
        let (mut reasoning, mut text) = (String::new(), String::new());
        for piece in pieces {
            match piece {
                Piece::Text(part) => text.push_str(&part),
                Piece::Reasoning(part) => reasoning.push_str(&part),
                Piece::ReasoningEnd => {}
            }
        }
        (reasoning, text)
    }

    fn run(parts: &[&str]) -> (String, String) {
        let mut tags = ThinkTags::new(None, None);
        let mut pieces: Vec<Piece> = parts.iter().flat_map(|part| tags.feed(part)).collect();
        pieces.extend(tags.end());
        joined(pieces)
    }

    #[test]
    fn whole_and_split_anywhere() {
        let cases = [
            ("<think>why</think>\n\nbecause", "why", "because"),
            ("\n <think>é€</think>😀", "é€", "😀"),
            ("<think>a</think>\n<think>b</think>c", "ab", "c"),
            ("<think>a <b> </thin </think>x", "a <b> </thin ", "x"),
            ("<think></think>x", "", "x"),
            ("<think>never closed </thi", "never closed </thi", ""),
            ("<thinking> is text", "", "<thinking> is text"),
            ("<thi", "", "<thi"),
            ("text with <think>inside</think>", "", "text with <think>inside</think>"),
            ("<think>a</think>b <think>c</think>", "a", "b <think>c</think>"),
            ("  plain", "", "  plain"),
            ("</think>x", "", "</think>x"),
            ("   ", "", "   "),
            ("", "", ""),
        ];
        for (input, reasoning, text) in cases {
            let expected = (reasoning.to_owned(), text.to_owned());
            assert_eq!(run(&[input]), expected, "{input}");
            for at in (0..=input.len()).filter(|at| input.is_char_boundary(*at)) {
                assert_eq!(run(&[&input[..at], &input[at..]]), expected, "{input} at {at}");
            }
            let single: Vec<String> = input.chars().map(String::from).collect();
            assert_eq!(run(&single.iter().map(String::as_str).collect::<Vec<_>>()), expected, "{input} singly");
        }
    }

    #[test]
    fn tags_can_be_others_or_none() {
        let mut tags = ThinkTags::new(Some("<thought>"), Some("</thought>"));
        assert_eq!(joined(tags.feed("<thought>a</thought>b")), ("a".to_owned(), "b".to_owned()));
        let mut none = ThinkTags::new(Some(""), None);
        assert_eq!(joined(none.feed("<think>a</think>b")), (String::new(), "<think>a</think>b".to_owned()));
    }

    #[test]
    fn text_that_is_no_tag_is_not_held_back() {
        let mut tags = ThinkTags::new(None, None);
        assert_eq!(tags.feed("Hel"), vec![Piece::Text("Hel".into())]);
        assert_eq!(tags.feed("<"), vec![Piece::Text("<".into())]);
    }
}
