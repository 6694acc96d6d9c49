//! Where on a line a symbol stands, and what stands on other lines.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use crate::base::task;
use crate::base::text::{one_line, prefix};
use crate::host::Location;

/// A line of a larger file is not looked for.
const MAX_FILE: u64 = 32 * 1024 * 1024;
const MAX_LINE: usize = 64 * 1024;
const SHOWN_LINE: usize = 200;

/// The column in UTF-16 units, counted from 1, of the occurrence that is nearest to `near`, or of
/// the first. Whole words come before parts of others.
pub(super) fn column(line: &str, symbol: &str, near: Option<u64>) -> Option<u64> {
    let all: Vec<usize> = line.match_indices(symbol).map(|(at, _)| at).collect();
    let is_whole = |at: &usize| {
        let after = &line[at + symbol.len()..];
        !line[..*at].ends_with(is_word) && !after.starts_with(is_word)
    };
    let words: Vec<usize> = all.iter().copied().filter(is_whole).collect();
    let places = if words.is_empty() { all } else { words };
    let columns = places.into_iter().map(|at| line[..at].encode_utf16().count() as u64 + 1);
    let length = symbol.encode_utf16().count() as u64;
    match near {
        // Within the symbol is as good as at its beginning.
        Some(near) => {
            columns.min_by_key(|column| column.saturating_sub(near) + near.saturating_sub(column + length - 1))
        }
        None => columns.min(),
    }
}

/// What symbols consist of in one language or another.
fn is_word(c: char) -> bool {
    c.is_alphanumeric() || "_-*+!?<>='".contains(c)
}

/// Line number `number` of a text, counted from 1.
pub(super) fn line_of(text: &str, number: u64) -> Result<String, String> {
    let index = usize::try_from(number.saturating_sub(1)).unwrap_or(usize::MAX);
    text.lines().nth(index).map(str::to_owned).ok_or_else(|| format!("has only {} lines", text.lines().count()))
}

/// The same of a file.
pub(super) async fn read_line(path: PathBuf, number: u64) -> Result<String, String> {
    let read = task::blocking(move || {
        let mut lines = read_lines(&path, &[number])?;
        match lines.remove(&number) {
            Some(line) => Ok(line),
            None => Err(format!("has no line {number}")),
        }
    });
    read.await.unwrap_or_else(|_| Err("could not be read".to_owned()))
}

/// `path:line:column: text` for each.
pub(super) async fn shown(locations: Vec<Location>) -> Vec<String> {
    let plain = |location: &Location| format!("{}:{}:{}", location.path.display(), location.line, location.column);
    let fallback: Vec<String> = locations.iter().map(plain).collect();
    let reading = task::blocking(move || {
        let mut wanted: BTreeMap<&Path, Vec<u64>> = BTreeMap::new();
        for location in &locations {
            wanted.entry(&location.path).or_default().push(location.line);
        }
        let read = |(path, lines): (&Path, Vec<u64>)| (path.to_owned(), read_lines(path, &lines).unwrap_or_default());
        let texts: BTreeMap<PathBuf, BTreeMap<u64, String>> = wanted.into_iter().map(read).collect();
        let show = |location: &Location| {
            let text = texts.get(&location.path).and_then(|lines| lines.get(&location.line));
            format!("{}: {}", plain(location), text.map(|text| one_line(text, SHOWN_LINE)).unwrap_or_default())
        };
        locations.iter().map(show).map(|line| line.trim_end().to_owned()).collect()
    });
    reading.await.unwrap_or(fallback)
}

/// The lines with these numbers that the file has.
fn read_lines(path: &Path, numbers: &[u64]) -> Result<BTreeMap<u64, String>, String> {
    let metadata = std::fs::metadata(path).map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => "does not exist".to_owned(),
        kind => format!("cannot be read ({kind})"),
    })?;
    // Opening a named pipe would wait for its writer, possibly for ever.
    if !metadata.is_file() {
        return Err("is no regular file".to_owned());
    }
    let unreadable = |error: std::io::Error| format!("cannot be read ({})", error.kind());
    let mut reader = BufReader::new(std::fs::File::open(path).map_err(unreadable)?.take(MAX_FILE));
    let last = numbers.iter().copied().max().unwrap_or_default();
    let mut found = BTreeMap::new();
    let mut line = Vec::new();
    for number in 1..=last {
        line.clear();
        if reader.read_until(b'\n', &mut line).map_err(unreadable)? == 0 {
            break;
        }
        if numbers.contains(&number) {
            let text = String::from_utf8_lossy(&line);
            found.insert(number, prefix(text.trim_end_matches(['\n', '\r']), MAX_LINE).to_owned());
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_counted_in_utf16_and_words_come_first() {
        for (line, symbol, near, expected) in [
            ("let foo = bar(foo);", "foo", None, Some(5)),
            ("let foo = bar(foo);", "foo", Some(15), Some(15)),
            ("let foo = bar(foo);", "foo", Some(17), Some(15)),
            ("let foo = bar(foo);", "foo", Some(6), Some(5)),
            ("let foo = bar(foo);", "foo", Some(10), Some(5)),
            ("let foo = bar(foo);", "foo", Some(12), Some(15)),
            ("foobar foo", "foo", None, Some(8)),
            ("foobar", "oba", None, Some(3)),
            ("(some-fn! x) (fn! y)", "fn!", None, Some(15)),
            ("é😀 foo", "foo", None, Some(5)),
            ("Vec<Foo>", "Foo", None, Some(5)),
            ("nothing", "foo", None, None),
            ("", "foo", Some(1), None),
        ] {
            assert_eq!(column(line, symbol, near), expected, "{line} {symbol} {near:?}");
        }
    }

    #[test]
    fn lines_of_a_text_are_counted_from_one() {
        assert_eq!(line_of("a\nb", 2).as_deref(), Ok("b"));
        assert_eq!(line_of("a\nb", 3), Err("has only 2 lines".to_owned()));
    }

    proptest::proptest! {
        #[test]
        fn a_symbol_that_is_there_is_found(before in ".{0,8}", symbol in "[a-zé😀_]{1,5}", after in ".{0,8}", near in 0u64..30) {
            let line = format!("{before}{symbol}{after}");
            let column = column(&line, &symbol, Some(near)).unwrap();
            let units: Vec<u16> = line.encode_utf16().collect();
            let wanted: Vec<u16> = symbol.encode_utf16().collect();
            let start = usize::try_from(column).unwrap() - 1;
            proptest::prop_assert_eq!(&units[start..start + wanted.len()], &wanted[..]);
        }
    }
}
