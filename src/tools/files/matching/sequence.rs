//! Finds a sequence of lines or words in a text, in time that grows with the text alone.

use std::collections::VecDeque;
use std::ops::Range;

/// A line or a word, and where it stands.
#[derive(Debug, Clone, Copy)]
pub(super) struct Item<'a> {
    pub(super) text: &'a str,
    pub(super) start: usize,
    pub(super) end: usize,
    /// Only blanks stand before it on its line.
    pub(super) opens_line: bool,
}

/// Where a sequence stands: from the start of its first item to the end of its last.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) range: Range<usize>,
    pub(super) opens_line: bool,
}

/// Every place of `wanted`, overlaps included, up to `most` of them. This is the search of Knuth,
/// Morris and Pratt over items instead of letters.
pub(super) fn find<'a>(wanted: &[&str], items: impl Iterator<Item = Item<'a>>, most: usize) -> Vec<Span> {
    let mut found = Vec::new();
    if wanted.is_empty() {
        return found;
    }
    let borders = borders(wanted);
    let mut recent: VecDeque<(usize, bool)> = VecDeque::with_capacity(wanted.len());
    let mut matched = 0;
    for item in items {
        if recent.len() == wanted.len() {
            recent.pop_front();
        }
        recent.push_back((item.start, item.opens_line));
        while matched > 0 && wanted[matched] != item.text {
            matched = borders[matched - 1];
        }
        matched += usize::from(wanted[matched] == item.text);
        if matched == wanted.len() {
            let (start, opens_line) = recent.front().copied().unwrap_or((item.start, item.opens_line));
            found.push(Span { range: start..item.end, opens_line });
            if found.len() == most {
                break;
            }
            matched = borders[matched - 1];
        }
    }
    found
}

/// For each prefix, how long the longest shorter prefix is that also ends it.
fn borders(wanted: &[&str]) -> Vec<usize> {
    let mut borders = vec![0; wanted.len()];
    let mut length = 0;
    for at in 1..wanted.len() {
        while length > 0 && wanted[at] != wanted[length] {
            length = borders[length - 1];
        }
        length += usize::from(wanted[at] == wanted[length]);
        borders[at] = length;
    }
    borders
}

/// The lines of `text` without the white space around them; each stands from its first byte to
/// before its line end.
pub(super) fn trimmed_lines(text: &str) -> impl Iterator<Item = Item<'_>> {
    let mut at = 0;
    text.split_inclusive('\n').map(move |line| {
        let start = at;
        at += line.len();
        let end = start + line.strip_suffix('\n').unwrap_or(line).len();
        Item { text: line.trim(), start, end, opens_line: true }
    })
}

/// The words of `text` and the delimiters between them. White space separates and does not count.
pub(super) fn words(text: &str) -> impl Iterator<Item = Item<'_>> {
    let mut at = 0;
    let mut opens_line = true;
    std::iter::from_fn(move || {
        let rest = &text[at..];
        let blanks = rest.len() - rest.trim_ascii_start().len();
        opens_line |= rest[..blanks].contains('\n');
        let start = at + blanks;
        let rest = &text[start..];
        let first = rest.chars().next()?;
        let length = if is_delimiter(first) {
            first.len_utf8()
        } else {
            rest.find(|c: char| is_delimiter(c) || c.is_ascii_whitespace()).unwrap_or(rest.len())
        };
        at = start + length;
        Some(Item { text: &text[start..at], start, end: at, opens_line: std::mem::take(&mut opens_line) })
    })
}

fn is_delimiter(c: char) -> bool {
    matches!(c, '(' | ')' | ':' | '[' | ']' | '{' | '}' | '>' | '<' | '=' | ',' | ';')
}

/// The blanks at the start of a line.
pub(super) fn indentation(line: &str) -> &str {
    &line[..line.len() - line.trim_start_matches([' ', '\t']).len()]
}

/// `text`, written for a block with the indentation `given`, moved to one with the indentation
/// `there`. Lines keep how far they stand in from each other.
pub(super) fn reindent(text: &str, given: &str, there: &str) -> String {
    let mut moved = String::with_capacity(text.len() + 64);
    for line in text.split_inclusive('\n') {
        let own = indentation(line);
        let content = &line[own.len()..];
        if content.trim().is_empty() {
            moved.push_str(content);
        } else if let Some(further) = own.strip_prefix(given) {
            moved.extend([there, further, content]);
        } else {
            // It stands further out than the block: as much further out there.
            let missing = given.len().saturating_sub(own.len());
            let kept = there.len().saturating_sub(missing);
            moved.extend([there.get(..kept).unwrap_or(there), content]);
        }
    }
    moved
}
