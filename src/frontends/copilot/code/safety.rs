//! Makes harmless what the application refuses to run, while the code streams by.
//!
//! The application looks for certain words anywhere in the code and rejects all of it when it finds
//! one, in a name or a text too. So a word that is only part of a longer name is taken apart by a
//! space, which changes nothing; the thing itself is replaced by something of the same form that
//! does nothing. Replacements hold no quotes, so that they are harmless inside of a text as well.

/// One forbidden word.
struct Rule {
    /// What the application looks for.
    word: &'static str,
    /// Stands for it where it is meant.
    instead: &'static str,
    /// The same after a dot; without it, a space makes it harmless there too.
    member: Option<&'static str>,
    /// Where a space makes it harmless: an offset into the word.
    split: usize,
}

const RULES: [Rule; 12] = [
    rule("eval(", "((_code) => undefined)(", Some("valueOf("), 4),
    rule("new Function(", "((..._code) => () => undefined)(", None, 12),
    rule("document.cookie", "({ cookie: String() }).cookie", Some("document.title"), 8),
    rule("window.parent", "window.self", Some("window.self"), 6),
    rule("window.top", "window.self", Some("window.self"), 6),
    rule("window.opener", "window.self", Some("window.self"), 6),
    // As a method of something else these two are ordinary names.
    rule("require(", "((_name) => ({}))(", None, 7),
    rule("import(", "((_name) => Promise.resolve({}))(", None, 6),
    rule("process.env", "({})", Some("self"), 7),
    // Not a thing that a browser has; in a text it is the end of a sentence.
    rule("global.", "global .", None, 6),
    rule("globalThis.", "window.", Some("window."), 10),
    rule("globalThis[", "window[", Some("window["), 10),
];

const fn rule(word: &'static str, instead: &'static str, member: Option<&'static str>, split: usize) -> Rule {
    Rule { word, instead, member, split }
}

/// Rewrites a stream of code; what may be the beginning of a forbidden word is held back.
#[derive(Debug, Default)]
pub(in crate::frontends::copilot) struct Guard {
    held: String,
    last: Option<char>,
    replaced: Vec<&'static str>,
}

enum Found {
    Nothing,
    /// The text ends inside of what may become the word.
    Perhaps,
    /// The word, in so many bytes.
    Word(&'static Rule, usize),
}

impl Guard {
    pub(in crate::frontends::copilot) fn push(&mut self, code: &str) -> String {
        self.held.push_str(code);
        self.release(false)
    }

    pub(in crate::frontends::copilot) fn finish(&mut self) -> String {
        self.release(true)
    }

    pub(in crate::frontends::copilot) fn replaced(&self) -> Vec<&'static str> {
        self.replaced.clone()
    }

    fn release(&mut self, is_end: bool) -> String {
        let held = std::mem::take(&mut self.held);
        let mut out = String::with_capacity(held.len());
        let mut at = 0;
        while let Some(first) = held[at..].chars().next() {
            match find(&held[at..], is_end) {
                Found::Nothing => {
                    out.push(first);
                    self.last = Some(first);
                    at += first.len_utf8();
                }
                Found::Perhaps => {
                    self.held.push_str(&held[at..]);
                    break;
                }
                Found::Word(rule, length) => {
                    let after = held[at + length..].chars().next();
                    self.put(rule, &held[at..at + length], after, &mut out);
                    at += length;
                }
            }
        }
        out
    }

    fn put(&mut self, rule: &'static Rule, written: &str, after: Option<char>, out: &mut String) {
        let ends_in_name = rule.word.ends_with(is_name);
        let is_part = self.last.is_some_and(is_name) || ends_in_name && after.is_some_and(is_name);
        let instead = if self.last == Some('.') { rule.member } else { Some(rule.instead) };
        match instead.filter(|_| !is_part) {
            Some(instead) => {
                out.push_str(instead);
                if !self.replaced.contains(&rule.word) && rule.word != "global." {
                    self.replaced.push(rule.word);
                }
            }
            None if written == rule.word => {
                out.push_str(&rule.word[..rule.split]);
                out.push(' ');
                out.push_str(&rule.word[rule.split..]);
            }
            None => out.push_str(written),
        }
        self.last = rule.word.chars().next_back();
    }
}

/// What stands at the beginning of a text. Before a bracket white space counts for nothing.
fn find(text: &str, is_end: bool) -> Found {
    let mut perhaps = false;
    for rule in &RULES {
        match matched(rule.word, text) {
            // What follows decides whether the name goes on.
            Matched::All(length) if length == text.len() && !is_end => perhaps = true,
            Matched::All(length) => return Found::Word(rule, length),
            Matched::SoFar => perhaps = true,
            Matched::Not => {}
        }
    }
    if perhaps && !is_end { Found::Perhaps } else { Found::Nothing }
}

enum Matched {
    Not,
    SoFar,
    All(usize),
}

fn matched(word: &str, text: &str) -> Matched {
    let mut rest = text;
    for wanted in word.chars() {
        if matches!(wanted, '(' | '[') {
            // More of it than this is no way to write code, and must not be held back.
            let blank = rest.bytes().take_while(|byte| byte.is_ascii_whitespace()).count();
            if blank <= 32 {
                rest = &rest[blank..];
            }
        }
        match rest.strip_prefix(wanted) {
            Some(after) => rest = after,
            None if rest.is_empty() => return Matched::SoFar,
            None => return Matched::Not,
        }
    }
    Matched::All(text.len() - rest.len())
}

fn is_name(character: char) -> bool {
    character.is_alphanumeric() || character == '_' || character == '$'
}

/// Writes forbidden words inside of JSON texts with an escape, so that they mean the same and are
/// not found. For data that becomes part of code.
pub(in crate::frontends::copilot) fn escape_forbidden(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    let mut rest = json;
    while let Some(first) = rest.chars().next() {
        match RULES.iter().find(|rule| rest.starts_with(rule.word)) {
            Some(rule) => {
                let (before, from) = rule.word.split_at(rule.split);
                let mark = from.chars().next().map_or(0, u32::from);
                out.push_str(before);
                out.push_str(&format!("\\u{mark:04x}"));
                rest = &rest[rule.split + 1..];
            }
            None => {
                out.push(first);
                rest = &rest[first.len_utf8()..];
            }
        }
    }
    out
}
