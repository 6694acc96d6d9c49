//! Cutting text without breaking characters, names for people, and how alike two texts are.

use std::path::Path;

/// The longest prefix of `text` that has at most `max` bytes and ends on a character border.
pub fn prefix(text: &str, max: usize) -> &str {
    if text.len() <= max {
        return text;
    }
    let mut end = max;
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// The text in parts of at most `max` bytes, cut at character borders; `max` is at least 4.
pub fn pieces(text: &str, max: usize) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let piece = prefix(rest, max);
        rest = &rest[piece.len()..];
        (!piece.is_empty()).then_some(piece)
    })
}

/// One line of at most `max` characters: control characters and runs of white space become one
/// space, Markdown heading marks at the start are dropped.
pub fn one_line(text: &str, max: usize) -> String {
    let cleaned: String = text
        .trim_start_matches(['#', ' ', '\t', '\n', '\r'])
        .chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect();
    let joined = cleaned.split_whitespace().collect::<Vec<_>>().join(" ");
    joined.chars().take(max).collect::<String>().trim_end().to_owned()
}

/// The last part of a path, or all of one that has no parts.
pub fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned()
}

/// How many bytes two texts have in common at their start and at their end, in whole characters and
/// without counting anything twice.
pub fn common_ends(one: &str, other: &str) -> (usize, usize) {
    let shorter = one.len().min(other.len());
    let mut start = common_start(one.as_bytes(), other.as_bytes());
    while !(one.is_char_boundary(start) && other.is_char_boundary(start)) {
        start -= 1;
    }
    let mut end = common_end(one.as_bytes(), other.as_bytes()).min(shorter - start);
    while !(one.is_char_boundary(one.len() - end) && other.is_char_boundary(other.len() - end)) {
        end -= 1;
    }
    (start, end)
}

/// By pieces, which the machine compares faster than bytes.
const PIECE: usize = 1024;

fn common_start(one: &[u8], other: &[u8]) -> usize {
    let pieces = one.chunks_exact(PIECE).zip(other.chunks_exact(PIECE)).take_while(|(a, b)| a == b).count();
    let same = pieces * PIECE;
    same + one[same..].iter().zip(&other[same..]).take_while(|(a, b)| a == b).count()
}

fn common_end(one: &[u8], other: &[u8]) -> usize {
    let pieces = one.rchunks_exact(PIECE).zip(other.rchunks_exact(PIECE)).take_while(|(a, b)| a == b).count();
    let same = pieces * PIECE;
    let (one, other) = (&one[..one.len() - same], &other[..other.len() - same]);
    same + one.iter().rev().zip(other.iter().rev()).take_while(|(a, b)| a == b).count()
}

/// Levenshtein's distance in characters, for texts that are short.
pub fn edit_distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(x != *y);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefix_ends_on_a_character_border() {
        assert_eq!(prefix("aé", 2), "a");
        assert_eq!(prefix("aé", 3), "aé");
    }

    #[test]
    fn pieces_are_the_text() {
        assert_eq!(pieces("aéé", 4).collect::<Vec<_>>(), ["aé", "é"]);
        assert_eq!(pieces("", 4).count(), 0);
    }

    #[test]
    fn one_line_is_one_line() {
        assert_eq!(one_line("## A\ttitle\nof  two lines", 40), "A title of two lines");
        assert_eq!(one_line("abcdef", 3), "abc");
    }
}
