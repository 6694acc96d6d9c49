//! Positions in the text of a document, and changes of it, as LSP counts them: lines that end in any
//! of three ways, and UTF-16 units in them.

use lsp_types::{Position, Range, TextDocumentContentChangeEvent, TextEdit};

use crate::base::text::common_ends;

/// Makes the changes one after the other. A text that is not known stays so until a change brings the
/// whole, and one to which a change does not fit is known no more.
pub(super) fn apply(text: &mut Option<String>, changes: &[TextDocumentContentChangeEvent]) {
    for change in changes {
        let Some(range) = change.range else {
            *text = Some(change.text.clone());
            continue;
        };
        let Some(known) = text else { continue };
        let (start, end) = (offset(known, range.start), offset(known, range.end));
        match (start, end) {
            (Some(start), Some(end)) if start <= end => known.replace_range(start..end, &change.text),
            _ => {
                tracing::warn!(?range, "a change does not fit its document, which is not followed any more");
                *text = None;
            }
        }
    }
}

/// One edit that makes `new` of `old`.
pub(in super::super) fn edit_between(old: &str, new: &str) -> TextEdit {
    let (mut start, mut end) = common_ends(old, new);
    // No position lies inside of a line end.
    let splits = |at: usize| at > 0 && old[..at].ends_with('\r') && old[at..].starts_with('\n');
    if splits(start) {
        start -= 1;
    }
    if splits(old.len() - end) {
        end -= 1;
    }
    let range = Range { start: position(old, start), end: position(old, old.len() - end) };
    TextEdit { range, new_text: new[start..new.len() - end].to_owned() }
}

/// Whether two texts differ at most in their line ends and the mark at their start.
pub(super) fn is_same(one: &str, other: &str) -> bool {
    lines(one).eq(lines(other))
}

fn lines(text: &str) -> impl Iterator<Item = &str> {
    let text = text.strip_prefix('\u{FEFF}').unwrap_or(text);
    text.split('\n').map(|line| line.strip_suffix('\r').unwrap_or(line))
}

/// Where a position is; `None` if the text has no such line. A place behind the end of a line is its
/// end.
fn offset(text: &str, position: Position) -> Option<usize> {
    let mut start = 0;
    for _ in 0..position.line {
        start += line_length(&text[start..]).1?;
    }
    let line = &text[start..start + line_length(&text[start..]).0];
    let mut units = 0;
    for (at, c) in line.char_indices() {
        if units >= position.character as usize {
            return Some(start + at);
        }
        units += c.len_utf16();
    }
    Some(start + line.len())
}

fn position(text: &str, offset: usize) -> Position {
    let (mut line, mut start) = (0, 0);
    while let (_, Some(length)) = line_length(&text[start..]) {
        if start + length > offset {
            break;
        }
        start += length;
        line += 1;
    }
    let units = text[start..offset].chars().map(char::len_utf16).sum::<usize>();
    Position { line, character: u32::try_from(units).unwrap_or(u32::MAX) }
}

/// The length of the first line without its end and, if there is one, with it.
fn line_length(text: &str) -> (usize, Option<usize>) {
    match memchr::memchr2(b'\n', b'\r', text.as_bytes()) {
        None => (text.len(), None),
        Some(at) => (at, Some(at + if text[at..].starts_with("\r\n") { 2 } else { 1 })),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn change(range: Option<[u32; 4]>, text: &str) -> TextDocumentContentChangeEvent {
        let range = range.map(|[line, character, to_line, to]| Range {
            start: Position { line, character },
            end: Position { line: to_line, character: to },
        });
        TextDocumentContentChangeEvent { range, range_length: None, text: text.into() }
    }

    #[test]
    fn changes_are_made_where_utf_16_counts() {
        for (before, changed, after) in [
            ("a😀b\n", change(Some([0, 3, 0, 3]), "X"), Some("a😀Xb\n")),
            ("é\nü", change(Some([1, 0, 1, 1]), "u"), Some("é\nu")),
            ("one\r\ntwo\r\n", change(Some([0, 3, 1, 0]), " "), Some("one two\r\n")),
            ("a\rb\nc", change(Some([2, 0, 2, 1]), "C"), Some("a\rb\nC")),
            ("ab\n", change(Some([0, 99, 0, 99]), "!"), Some("ab!\n")),
            ("ab\n", change(Some([1, 0, 1, 0]), "end"), Some("ab\nend")),
            ("ab\n", change(None, "other"), Some("other")),
            ("ab\n", change(Some([7, 0, 7, 0]), "x"), None),
            ("ab\n", change(Some([0, 2, 0, 0]), "x"), None),
        ] {
            let mut text = Some(before.to_owned());
            apply(&mut text, std::slice::from_ref(&changed));
            assert_eq!(text.as_deref(), after, "{before:?} {changed:?}");
        }
        let mut unknown = None;
        apply(&mut unknown, &[change(Some([0, 0, 0, 0]), "x"), change(None, "whole"), change(Some([0, 0, 0, 1]), "W")]);
        assert_eq!(unknown.as_deref(), Some("Whole"));
    }

    #[test]
    fn line_ends_and_the_mark_make_no_difference() {
        assert!(is_same("\u{FEFF}a\r\nb", "a\nb") && is_same("", ""));
        assert!(!is_same("a\n", "a") && !is_same("a\nb", "a\nc"));
    }

    proptest! {
        #[test]
        fn the_edit_between_two_texts_leads_from_one_to_the_other(
            old in "[ab\r\n😀é]{0,20}",
            new in "[ab\r\n😀é]{0,20}",
        ) {
            let edit = edit_between(&old, &new);
            let mut text = Some(old);
            let change = TextDocumentContentChangeEvent { range: Some(edit.range), range_length: None, text: edit.new_text };
            apply(&mut text, &[change]);
            prop_assert_eq!(text, Some(new));
        }
    }
}
