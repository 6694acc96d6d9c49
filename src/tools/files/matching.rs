//! Finds the text that an edit replaces. Pure: from a text and an edit to the new text.
//!
//! Four tiers, each tried only when the stricter ones found nothing:
//!
//! 1. exact, but for CRLF and LF, since a model is shown lines and not how they end;
//! 2. without the blanks at the ends of lines, and with any kind of line end;
//! 3. whole lines that differ in indentation;
//! 4. the same words and delimiters from the start of a line, with other white space between.
//!
//! More than one place is never a match: the model is told the places. What is not replaced stays
//! byte for byte, and what is put in gets the line ends of the file.

mod folded;
mod sequence;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::iter::once;
use std::ops::Range;

use memchr::memmem;

use folded::{Folded, LineEnd};
use sequence::{indentation, reindent};

/// Looser tiers cost memory and time, and nobody writes such a file by hand.
const LOOSE_MAX_BYTES: usize = 8 * 1024 * 1024;
/// Places are counted up to here.
const MOST_PLACES: usize = 1_000;
/// As many places are named.
const NAMED_PLACES: usize = 10;
/// Of more changes than this, the last one spans the rest.
const MOST_CHANGES: usize = 4_096;
/// A short text that is replaced by a long one in many places must not fill the memory.
const MOST_BYTES: usize = 128 * 1024 * 1024;

/// What is to be replaced by what.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Edit<'a> {
    pub(crate) original: &'a str,
    pub(crate) new: &'a str,
    /// Replace every place; with the first two tiers only.
    pub(crate) all: bool,
}

/// How sure the edit has to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rules {
    /// Only the exact text, at exactly one place.
    ExactOnce,
    /// All tiers.
    Loose,
}

/// Which tier found the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tier {
    Exact,
    TrailingBlanks,
    Indentation,
    WhiteSpace,
}

/// A range of the old text and what stands for it in the new one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Change {
    pub(crate) old: Range<usize>,
    pub(crate) new: Range<usize>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Applied {
    pub(crate) text: String,
    /// In order and apart from each other; never empty.
    pub(crate) changes: Vec<Change>,
    /// How many places were replaced.
    pub(crate) places: usize,
    pub(crate) tier: Tier,
}

/// Why nothing was replaced.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Mismatch {
    EmptyOriginal,
    /// The new text is the old one.
    NoChange,
    /// What would come out is too much.
    TooLarge,
    /// The lines, 1-based, that look like the first line of what was searched.
    NotFound {
        near: Vec<usize>,
    },
    Ambiguous {
        tier: Tier,
        places: Places,
    },
}

/// Where a text stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Places {
    /// 1-based lines of the first few.
    pub(crate) lines: Vec<usize>,
    pub(crate) count: usize,
    /// There are more than were counted.
    pub(crate) more: bool,
}

pub(crate) fn apply(text: &str, edit: Edit<'_>, rules: Rules) -> Result<Applied, Mismatch> {
    let original = folded::unix(edit.original);
    let new = folded::unix(edit.new);
    if original.is_empty() {
        return Err(Mismatch::EmptyOriginal);
    }
    if original == new {
        return Err(Mismatch::NoChange);
    }
    let exact = Folded::line_ends(text);
    let starts = overlapping(&exact.text, &original);
    match (starts.as_slice(), rules) {
        ([], _) => {}
        ([start], _) => return replace(&exact, once(*start..*start + original.len()), &new, Tier::Exact),
        (_, Rules::Loose) if edit.all => return replace_all(&exact, &original, &new, Tier::Exact),
        (starts, _) => return Err(ambiguous(&exact.text, starts, Tier::Exact)),
    }
    if rules == Rules::Loose && text.len() <= LOOSE_MAX_BYTES && !original.trim().is_empty() {
        if let Some(result) = without_trailing_blanks(text, &original, &new, edit.all) {
            return result;
        }
        if !edit.all {
            if let Some(result) = by_lines(&exact, &original, &new) {
                return result;
            }
            if let Some(result) = by_words(&exact, &original, &new) {
                return result;
            }
        }
    }
    Err(Mismatch::NotFound { near: lines_like(&exact.text, &original) })
}

fn without_trailing_blanks(text: &str, original: &str, new: &str, all: bool) -> Option<Result<Applied, Mismatch>> {
    let folded = Folded::trailing_blanks(text);
    let original = Folded::trailing_blanks(original).text;
    let starts = overlapping(&folded.text, &original);
    match starts.as_slice() {
        [] => None,
        [start] => Some(replace(&folded, once(*start..*start + original.len()), new, Tier::TrailingBlanks)),
        _ if all => Some(replace_all(&folded, &original, new, Tier::TrailingBlanks)),
        starts => Some(Err(ambiguous(&folded.text, starts, Tier::TrailingBlanks))),
    }
}

fn by_lines(folded: &Folded<'_>, original: &str, new: &str) -> Option<Result<Applied, Mismatch>> {
    let wanted: Vec<&str> = original.lines().map(str::trim).collect();
    let found = sequence::find(&wanted, sequence::trimmed_lines(&folded.text), MOST_PLACES + 1);
    one_block(folded, &found, original, new, Tier::Indentation)
}

fn by_words(folded: &Folded<'_>, original: &str, new: &str) -> Option<Result<Applied, Mismatch>> {
    let wanted: Vec<&str> = sequence::words(original).map(|word| word.text).collect();
    let mut found = sequence::find(&wanted, sequence::words(&folded.text), MOST_PLACES + 1);
    found.retain(|span| span.opens_line);
    one_block(folded, &found, original, new, Tier::WhiteSpace)
}

/// Replaces the block of lines that was found, if it is the only one, and indents the new lines as
/// the block is.
fn one_block(
    folded: &Folded<'_>,
    found: &[sequence::Span],
    original: &str,
    new: &str,
    tier: Tier,
) -> Option<Result<Applied, Mismatch>> {
    let span = match found {
        [] => return None,
        [span] => span,
        spans => {
            let starts: Vec<usize> = spans.iter().map(|span| span.range.start).collect();
            return Some(Err(ambiguous(&folded.text, &starts, tier)));
        }
    };
    let text = &*folded.text;
    let start = text[..span.range.start].rfind('\n').map_or(0, |at| at + 1);
    let mut end = span.range.end;
    let given = original.lines().find(|line| !line.trim().is_empty()).map_or("", indentation);
    let there = text[start..end].lines().find(|line| !line.trim().is_empty()).map_or("", indentation);
    let mut new = reindent(new, given, there);
    if original.ends_with('\n') {
        // The block ends before its last line end, which stays.
        if new.ends_with('\n') {
            new.pop();
        } else if new.is_empty() && text[end..].starts_with('\n') {
            end += 1;
        }
    }
    Some(replace(folded, once(start..end), &new, tier))
}

/// Replaces every place, from the left and without overlaps.
fn replace_all(folded: &Folded<'_>, original: &str, new: &str, tier: Tier) -> Result<Applied, Mismatch> {
    let starts = memmem::find_iter(folded.text.as_bytes(), original);
    replace(folded, starts.map(|at| at..at + original.len()), new, tier)
}

/// Puts `new` in place of each range of the folded text, and works out what that is in the real one.
fn replace(
    folded: &Folded<'_>,
    ranges: impl Iterator<Item = Range<usize>>,
    new: &str,
    tier: Tier,
) -> Result<Applied, Mismatch> {
    let before = folded.original;
    let common = folded.common_line_end();
    let mut text = String::with_capacity(before.len() + new.len() + 2);
    let mut changes: Vec<Change> = Vec::new();
    let (mut done, mut places) = (0, 0);
    for range in ranges {
        let old = folded.real(range.start)..folded.real(range.end);
        text.push_str(&before[done..old.start]);
        let start = text.len();
        let line_end = LineEnd::only_one_in(&before[old.clone()]).unwrap_or(common);
        text.push_str(&line_end.applied_to(new));
        if text.len() > MOST_BYTES {
            return Err(Mismatch::TooLarge);
        }
        done = old.end;
        places += 1;
        let change = Change { old, new: start..text.len() };
        match changes.last_mut() {
            Some(last) if places > MOST_CHANGES => {
                last.old.end = change.old.end;
                last.new.end = change.new.end;
            }
            _ => changes.push(change),
        }
    }
    text.push_str(&before[done..]);
    if done == before.len() {
        keep_final_newline(before, &mut text, &mut changes, common);
    }
    if is_same(before, &text, &changes) {
        return Err(Mismatch::NoChange);
    }
    Ok(Applied { text, changes, places, tier })
}

/// Whether both texts are the same, which they are before the first change and behind the last one.
fn is_same(before: &str, after: &str, changes: &[Change]) -> bool {
    let (Some(first), Some(last)) = (changes.first(), changes.last()) else { return before == after };
    before.len() == after.len() && before[first.old.start..last.old.end] == after[first.new.start..last.new.end]
}

/// Models are careless with the end of a file. Whether there is a line end stays as it was, unless
/// that is all the edit is about.
fn keep_final_newline(before: &str, text: &mut String, changes: &mut [Change], common: LineEnd) {
    let Some(last) = changes.last_mut() else { return };
    match (before.ends_with('\n'), text.ends_with('\n')) {
        (true, false) if !text.is_empty() => {
            let end = common.text();
            let is_all = before.strip_suffix(end).is_some_and(|rest| rest == *text);
            if !is_all {
                text.push_str(end);
                last.new.end = text.len();
            }
        }
        (false, true) if !before.is_empty() => {
            let kept = text.trim_end_matches(['\n', '\r']).len().max(last.new.start);
            if text[kept..].contains('\n') && text[..kept] != *before {
                text.truncate(kept);
                last.new.end = kept;
            }
        }
        _ => {}
    }
}

/// Where `wanted` starts, overlaps included: `}}` stands twice in `}}}`.
fn overlapping(text: &str, wanted: &str) -> Vec<usize> {
    let finder = memmem::Finder::new(wanted);
    let step = wanted.chars().next().map_or(1, char::len_utf8);
    let mut found = Vec::new();
    let mut from = 0;
    while let Some(at) = text.as_bytes().get(from..).and_then(|rest| finder.find(rest)) {
        found.push(from + at);
        if found.len() > MOST_PLACES {
            break;
        }
        from += at + step;
    }
    found
}

fn ambiguous(text: &str, starts: &[usize], tier: Tier) -> Mismatch {
    let (mut line, mut done) = (1, 0);
    let mut lines = Vec::new();
    for start in starts.iter().take(NAMED_PLACES) {
        line += memchr::memchr_iter(b'\n', &text.as_bytes()[done..*start]).count();
        done = *start;
        lines.push(line);
    }
    let places = Places { lines, count: starts.len().min(MOST_PLACES), more: starts.len() > MOST_PLACES };
    Mismatch::Ambiguous { tier, places }
}

/// The lines that look like the first line of `original` that is not blank.
fn lines_like(text: &str, original: &str) -> Vec<usize> {
    let Some(first) = original.lines().map(str::trim).find(|line| !line.is_empty()) else { return Vec::new() };
    let (mut line, mut done) = (1, 0);
    let mut near = Vec::new();
    for at in memmem::find_iter(text.as_bytes(), first).take(MOST_PLACES) {
        line += memchr::memchr_iter(b'\n', &text.as_bytes()[done..at]).count();
        done = at;
        let start = text[..at].rfind('\n').map_or(0, |at| at + 1);
        let end = text[at..].find('\n').map_or(text.len(), |length| at + length);
        if text[start..end].trim() == first && near.last() != Some(&line) {
            near.push(line);
            if near.len() == NAMED_PLACES / 2 {
                break;
            }
        }
    }
    near
}

/// A new text for a file that is there: with the line ends that the file has, and with the last one
/// if it was only forgotten.
pub(crate) fn in_the_style_of<'a>(before: &str, new: &'a str) -> Cow<'a, str> {
    let mut text = Cow::Borrowed(new);
    let end = Folded::line_ends(before).common_line_end();
    if !new.contains('\r') {
        text = match end.applied_to(new) {
            Cow::Borrowed(_) => text,
            Cow::Owned(converted) => Cow::Owned(converted),
        };
    }
    if before.ends_with('\n') && !text.is_empty() && !text.ends_with('\n') {
        text.to_mut().push_str(end.text());
    }
    text
}
