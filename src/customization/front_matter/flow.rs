//! Lists and maps in brackets, and texts in quotes: the part of YAML that looks like JSON.

use serde_json::{Map, Value};

use super::MAX_DEPTH;
use super::scalar::plain;

/// The value that `text` begins with, and what follows it. `None` for what is no such value.
pub(super) fn value(text: &str) -> Option<(Value, &str)> {
    any(text.trim_start(), 0)
}

/// The text in quotes that `text` begins with, and what follows it.
pub(super) fn quoted(text: &str) -> Option<(String, &str)> {
    match text.as_bytes().first()? {
        b'\'' => single(&text[1..]),
        b'"' => double(&text[1..]),
        _ => None,
    }
}

fn any(text: &str, depth: usize) -> Option<(Value, &str)> {
    if depth > MAX_DEPTH {
        return None;
    }
    match text.as_bytes().first()? {
        b'[' => list(&text[1..], depth),
        b'{' => map(&text[1..], depth),
        b'"' | b'\'' => quoted(text).map(|(text, rest)| (Value::String(text), rest)),
        _ => {
            let end = text.find([',', ']', '}', '[', '{']).unwrap_or(text.len());
            Some((plain(text[..end].trim()), &text[end..]))
        }
    }
}

fn list(mut rest: &str, depth: usize) -> Option<(Value, &str)> {
    let mut list = Vec::new();
    loop {
        rest = rest.trim_start();
        if let Some(after) = rest.strip_prefix(']') {
            return Some((Value::Array(list), after));
        }
        let (value, after) = any(rest, depth + 1)?;
        list.push(value);
        rest = next(after, ']')?;
    }
}

fn map(mut rest: &str, depth: usize) -> Option<(Value, &str)> {
    let mut map = Map::new();
    loop {
        rest = rest.trim_start();
        if let Some(after) = rest.strip_prefix('}') {
            return Some((Value::Object(map), after));
        }
        let (key, after) = match quoted(rest) {
            Some((key, after)) => (key, after.trim_start().strip_prefix(':')?),
            None => {
                let (key, after) = rest.split_once(':')?;
                let plausible = !key.contains([',', ']', '}', '[', '{']) && after.starts_with([' ', '\t', ',', '}']);
                plausible.then(|| (key.trim().to_owned(), after))?
            }
        };
        let after = after.trim_start();
        let (value, after) = if after.starts_with([',', '}']) { (Value::Null, after) } else { any(after, depth + 1)? };
        map.insert(key, value);
        rest = next(after, '}')?;
    }
}

/// Where the next element begins, or the bracket that closes.
fn next(after: &str, close: char) -> Option<&str> {
    let after = after.trim_start();
    after.strip_prefix(',').or_else(|| after.starts_with(close).then_some(after))
}

fn single(text: &str) -> Option<(String, &str)> {
    let mut out = String::new();
    let mut rest = text;
    loop {
        let (part, after) = rest.split_once('\'')?;
        out.push_str(part);
        match after.strip_prefix('\'') {
            Some(after) => {
                out.push('\'');
                rest = after;
            }
            None => return Some((out, after)),
        }
    }
}

fn double(text: &str) -> Option<(String, &str)> {
    let mut out = String::new();
    let mut rest = text;
    loop {
        let at = rest.find(['"', '\\'])?;
        out.push_str(&rest[..at]);
        let (found, after) = rest[at..].split_at(1);
        if found == "\"" {
            return Some((out, after));
        }
        rest = escape(after, &mut out)?;
    }
}

/// Reads what follows a backslash.
fn escape<'a>(text: &'a str, out: &mut String) -> Option<&'a str> {
    let c = text.chars().next()?;
    let rest = &text[c.len_utf8()..];
    let digits = match c {
        'x' => 2,
        'u' => 4,
        'U' => 8,
        _ => 0,
    };
    if digits > 0 {
        let (code, rest) = hexadecimal(rest, digits)?;
        // Beyond the first plane JSON writes two halves.
        let low = rest.strip_prefix("\\u").and_then(|rest| hexadecimal(rest, 4));
        let (code, rest) = match (code, low) {
            (0xd800..=0xdbff, Some((low @ 0xdc00..=0xdfff, rest))) => {
                (0x1_0000 + ((code - 0xd800) << 10) + (low - 0xdc00), rest)
            }
            _ => (code, rest),
        };
        out.push(char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER));
        return Some(rest);
    }
    out.push(match c {
        'n' => '\n',
        't' => '\t',
        'r' => '\r',
        'b' => '\u{8}',
        'f' => '\u{c}',
        '0' => '\0',
        'e' => '\u{1b}',
        '"' | '\\' | '/' | ' ' => c,
        _ => return None,
    });
    Some(rest)
}

fn hexadecimal(text: &str, digits: usize) -> Option<(u32, &str)> {
    let (number, rest) = text.split_at_checked(digits)?;
    let only_digits = number.bytes().all(|byte| byte.is_ascii_hexdigit());
    Some((u32::from_str_radix(only_digits.then_some(number)?, 16).ok()?, rest))
}
