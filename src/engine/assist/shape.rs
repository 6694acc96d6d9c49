//! Texts before they are shown to a model, and after it answered. Pure.

use std::ops::RangeInclusive;

use crate::base::text;
use crate::customization::prompt::CURSOR;

/// How much of a text a model sees around the cursor.
const BEFORE: usize = 64 * 1024;
const AFTER: usize = 16 * 1024;
/// A shorter beginning of a line may well stand twice.
const SHORTEST_REPEATED: usize = 3;

/// The lines around a selection: all of them if there are not more than `most_lines` and
/// `most_bytes`, else as many before it as behind it.
pub(super) fn around<'a>(
    file: &'a str,
    selected: Option<&RangeInclusive<u32>>,
    most_lines: usize,
    most_bytes: usize,
) -> &'a str {
    let starts: Vec<usize> = std::iter::once(0)
        .chain(file.match_indices('\n').map(|(at, _)| at + 1))
        .filter(|at| *at < file.len())
        .collect();
    if starts.len() <= most_lines && file.len() <= most_bytes {
        return file;
    }
    let line = |number: u32| usize::try_from(number.saturating_sub(1)).unwrap_or(usize::MAX).min(starts.len());
    let (first, behind) = selected.map_or((0, 0), |lines| (line(*lines.start()), line(*lines.end()) + 1));
    let spare = most_lines.saturating_sub(behind.saturating_sub(first));
    let from = first.saturating_sub(spare / 2);
    let to = (from + most_lines).min(starts.len()).max(from);
    // At the end of a file there is more room before the selection.
    let from = to.saturating_sub(most_lines).min(from);
    let begin = starts.get(from).copied().unwrap_or(file.len());
    let end = starts.get(to).copied().unwrap_or(file.len());
    text::prefix(&file[begin..end], most_bytes)
}

/// Where line and column, both from 1 and the column in UTF-16 units, are in `text`; the nearest
/// place if they are nowhere.
pub(super) fn offset(text: &str, line: u32, column: u32) -> usize {
    let mut start = 0;
    for _ in 1..line.max(1) {
        match text[start..].find('\n') {
            Some(at) => start += at + 1,
            None => return text.len(),
        }
    }
    let line = text[start..].split('\n').next().unwrap_or_default();
    let line = line.strip_suffix('\r').unwrap_or(line);
    let (mut units, wanted) = (0, usize::try_from(column.saturating_sub(1)).unwrap_or(usize::MAX));
    for (at, character) in line.char_indices() {
        if units >= wanted {
            return start + at;
        }
        units += character.len_utf16();
    }
    start + line.len()
}

/// What the model sees: the text around the cursor, with the mark in it.
pub(super) fn marked(before: &str, after: &str, path: Option<&str>) -> String {
    let mut begin = before.len().saturating_sub(BEFORE);
    while !before.is_char_boundary(begin) {
        begin += 1;
    }
    let (before, after) = (&before[begin..], text::prefix(after, AFTER));
    let name = path.map(|path| format!("File: {path}\n\n")).unwrap_or_default();
    format!("{name}{}{CURSOR}{}", before.replace(CURSOR, ""), after.replace(CURSOR, ""))
}

/// What of an answer can be inserted at the cursor.
pub(super) fn proposal(answer: &str, before: &str, after: &str) -> Option<String> {
    let mut text = unfenced(answer).unwrap_or(answer).replace(CURSOR, "");
    let line = before.rsplit('\n').next().unwrap_or_default().trim_start();
    if line.len() >= SHORTEST_REPEATED
        && let Some(rest) = text.trim_start().strip_prefix(line)
    {
        text = rest.to_owned();
    }
    let rest_of_line = after.split('\n').next().unwrap_or_default().trim_end();
    if let Some(shorter) = text.trim_end().strip_suffix(rest_of_line)
        && (rest_of_line.len() >= SHORTEST_REPEATED || closes_nothing_of(&text, rest_of_line))
    {
        text = shorter.to_owned();
    }
    (!text.trim().is_empty()).then_some(text)
}

/// Whether all of `rest`, with which `text` ends, are brackets and quotes that are not opened in it: an editor
/// put them behind the cursor when the user opened them.
fn closes_nothing_of(text: &str, rest: &str) -> bool {
    let count = |text: &str, wanted: char| text.chars().filter(|character| *character == wanted).count();
    let is_surplus = |closing: char| {
        let opening = match closing {
            ')' => '(',
            ']' => '[',
            '}' => '{',
            '"' | '\'' | '`' => return count(text, closing) % 2 == 1 && count(rest, closing) == 1,
            _ => return false,
        };
        count(text, closing) >= count(text, opening) + count(rest, closing)
    };
    !rest.is_empty() && rest.chars().all(is_surplus)
}

/// The answer as it replaces the selection: without a fence around it that the selection does not
/// have, and with a line end behind it if the selection has one.
pub(super) fn fitted(answer: &str, selection: &str) -> String {
    let inner = if unfenced(selection).is_some() { None } else { unfenced(answer) };
    let text = inner.unwrap_or(answer);
    let ends_line = text.ends_with('\n');
    match (selection.ends_with('\n'), ends_line) {
        (true, false) => format!("{text}\n"),
        (false, true) => text.trim_end_matches(['\r', '\n']).to_owned(),
        _ => text.to_owned(),
    }
}

/// The inside of an answer that is one fenced block and nothing else.
fn unfenced(answer: &str) -> Option<&str> {
    let block = answer.trim();
    let (opening, rest) = block.split_once('\n')?;
    let width = opening.bytes().take_while(|byte| *byte == b'`').count();
    if width < 3 || opening[width..].contains('`') {
        return None;
    }
    let closes = |line: &str| {
        let line = line.trim();
        line.len() >= width && line.bytes().all(|byte| byte == b'`')
    };
    let (inner, closing) = rest.rsplit_once('\n').unwrap_or(("", rest));
    // A block that is closed in the middle is not one block.
    (closes(closing) && !inner.lines().any(closes)).then_some(inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_file_is_shown_around_the_selection() {
        let file: String = (1..=10).map(|line| format!("{line}\n")).collect();
        for (selected, most, shown) in [
            (Some(5..=5), 10, &file[..]),
            (Some(5..=5), 3, "4\n5\n6\n"),
            (Some(1..=1), 3, "1\n2\n3\n"),
            (Some(10..=10), 3, "8\n9\n10\n"),
            (Some(99..=100), 3, "8\n9\n10\n"),
            (Some(2..=8), 3, "2\n3\n4\n"),
            (None, 2, "1\n2\n"),
        ] {
            assert_eq!(around(&file, selected.as_ref(), most, 1_000), shown, "{selected:?} of {most}");
        }
        assert_eq!(around("é\n", None, 1, 1), "");
        assert_eq!(around("", Some(&(1..=1)), 1, 1), "");
    }

    #[test]
    fn a_place_is_found_or_the_nearest() {
        let text = "ab\r\n\u{1F600}c\n";
        for (line, column, at) in
            [(1, 1, 0), (1, 3, 2), (1, 9, 2), (2, 1, 4), (2, 3, 8), (2, 4, 9), (3, 1, 10), (9, 9, 10)]
        {
            assert_eq!(offset(text, line, column), at, "{line}:{column}");
        }
        // The second half of a pair is no place; the next one is.
        assert_eq!(offset(text, 2, 2), 8);
        assert_eq!((offset("", 0, 0), offset("x", u32::MAX, u32::MAX)), (0, 1));
    }

    #[test]
    fn the_mark_stands_once_in_what_the_model_sees() {
        assert_eq!(marked("a", "b", None), format!("a{CURSOR}b"));
        let seen = marked(&format!("{CURSOR}{}", "é".repeat(BEFORE)), &"é".repeat(AFTER), Some("x.rs"));
        assert!(seen.starts_with("File: x.rs\n\né") && seen.len() <= BEFORE + AFTER + 40);
        assert_eq!(seen.matches(CURSOR).count(), 1);
    }

    #[test]
    fn only_what_is_missing_is_proposed() {
        for (answer, before, after, proposed) in [
            ("bar()", "  foo.", "\n", Some("bar()")),
            ("foo.bar()", "  foo.", "\n", Some("bar()")),
            ("```rust\nbar()\n```", "  foo.", "", Some("bar()")),
            ("bar();", "foo.", ");\nnext", Some("bar();")),
            ("bar() + 1;", "foo.", " + 1;\nnext", Some("bar()")),
            ("x)", "foo(", ")", Some("x")),
            ("g(x))", "foo(", ")", Some("g(x)")),
            ("g(x)", "foo(", ")", Some("g(x)")),
            ("1])", "foo([", "])\nnext", Some("1")),
            ("g(x))", "foo((", "))", Some("g(x))")),
            ("it's\"", "say \"", "\"", Some("it's")),
            ("a\" + \"b\"", "x = \"", "\"", Some("a\" + \"b")),
            ("\"a\"", "x = ", "\"", Some("\"a\"")),
            ("x;", "y = ", ";", Some("x;")),
            (&format!("a{CURSOR}b"), "", "", Some("ab")),
            (" \n", "x", "", None),
            ("", "x", "", None),
        ] {
            assert_eq!(proposal(answer, before, after).as_deref(), proposed, "{answer:?}");
        }
    }

    #[test]
    fn an_answer_takes_the_form_of_the_selection() {
        for (answer, selection, fitted_text) in [
            ("b", "a", "b"),
            ("b\n", "a", "b"),
            ("b", "a\n", "b\n"),
            ("```\nb\n```", "a\n", "b\n"),
            ("```js\nb\n```\n", "a", "b"),
            ("```\nb\n```", "```\na\n```", "```\nb\n```"),
            ("```\na\n```\ntext\n```\nb\n```", "a", "```\na\n```\ntext\n```\nb\n```"),
            ("````md\n```\na\n```\n````", "a", "```\na\n```"),
            ("```\n```", "a", ""),
        ] {
            assert_eq!(fitted(answer, selection), fitted_text, "{answer:?} for {selection:?}");
        }
    }
}
