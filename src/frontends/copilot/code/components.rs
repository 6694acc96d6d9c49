//! What a module of React code declares. Not a parser: a reader that knows strings, comments and
//! names, which is enough to count and never fails.

/// How many components the code has: declarations with a capital letter whose code contains JSX; at
/// least one where there is a default export.
pub(in crate::frontends::copilot) fn component_count(code: &str) -> usize {
    let plain = without_texts(code);
    let found = declarations(&plain);
    let with_jsx = found.iter().enumerate().filter(|(index, (at, _))| {
        let end = found.get(index + 1).map_or(plain.len(), |(next, _)| *next);
        contains_jsx(&plain[*at..end])
    });
    let count = with_jsx.count();
    if count == 0 && exports_default(&plain) { 1 } else { count }
}

/// The names of all declarations with a capital letter, in order.
pub(in crate::frontends::copilot) fn declares(code: &str) -> Vec<&str> {
    let plain = without_texts(code);
    declarations(&plain).into_iter().filter_map(|(_, range)| code.get(range)).collect()
}

pub(in crate::frontends::copilot) fn has_default_export(code: &str) -> bool {
    exports_default(&without_texts(code))
}

/// The comment that a module begins with, if it says something.
pub(in crate::frontends::copilot) fn opening_remark(code: &str) -> Option<String> {
    let first = code.trim_start().lines().next()?.trim();
    let text = match first.strip_prefix("//") {
        Some(text) => text,
        None => first.strip_prefix("/*")?.strip_suffix("*/")?,
    };
    let text = text.trim_matches(['*', '/', ' ', '\t']);
    let is_directive = text.starts_with(['@', '#']) || text.starts_with("eslint");
    (!is_directive && text.split_whitespace().count() >= 3).then(|| crate::base::text::one_line(text, 300))
}

fn exports_default(plain: &str) -> bool {
    let mut words = plain.split(|c: char| !is_name(c)).filter(|word| !word.is_empty());
    let mut last = "";
    words.any(|word| {
        let found = word == "default" && (last == "export" || last == "as");
        last = word;
        found
    })
}

/// Where declarations begin, and where their names stand.
fn declarations(plain: &str) -> Vec<(usize, std::ops::Range<usize>)> {
    let mut found = Vec::new();
    let mut at = 0;
    while at < plain.len() {
        let rest = &plain[at..];
        let length = rest.find(|c: char| !is_name(c)).unwrap_or(rest.len());
        if length == 0 {
            at += rest.chars().next().map_or(1, char::len_utf8);
            continue;
        }
        let word = &rest[..length];
        let start = at;
        at += length;
        if !["function", "const", "let", "var", "class"].contains(&word) {
            continue;
        }
        let after = plain[at..].trim_start_matches([' ', '\t', '\n', '\r', '*']);
        let from = plain.len() - after.len();
        let length = after.find(|c: char| !is_name(c)).unwrap_or(after.len());
        let is_component = after.starts_with(|c: char| c.is_uppercase());
        // A constant in capitals holds data.
        let is_data = length > 1 && after[..length].chars().all(|c| c.is_uppercase() || c.is_numeric() || c == '_');
        if is_component && !is_data && from > at {
            found.push((start, from..from + length));
        }
    }
    found
}

/// `<Name`, `<div` or `<>`, where no type could stand.
fn contains_jsx(plain: &str) -> bool {
    let bytes = plain.as_bytes();
    plain.match_indices('<').any(|(at, _)| {
        let before = plain[..at].trim_end().chars().next_back();
        let glued = at > 0 && bytes.get(at - 1).is_some_and(|byte| is_name(char::from(*byte)));
        let after = &plain[at + 1..];
        let name = after.find(|c: char| !is_name(c) && c != '.').unwrap_or(after.len());
        let follows = after[name..].trim_start().chars().next();
        let opens = after.starts_with('>') || name > 0 && after.starts_with(|c: char| c.is_alphabetic());
        // `useState<string>(` is glued to a name; `<T,>` and `<T extends` are types; `a <b` compares.
        let is_generic = follows == Some(',') || after[name..].trim_start().starts_with("extends ");
        let compares = before.is_some_and(|c| is_name(c) && !ends_with_keyword(&plain[..at])) && name > 0;
        opens && !glued && !is_generic && !compares
    })
}

fn ends_with_keyword(text: &str) -> bool {
    let text = text.trim_end();
    ["return", "default", "case", "yield", "await"].iter().any(|word| text.ends_with(word))
}

fn is_name(character: char) -> bool {
    character.is_alphanumeric() || character == '_' || character == '$'
}

/// The code with texts and comments blanked, byte for byte in place. An apostrophe after a letter
/// belongs to a word of a JSX text, and a text in quotes ends with its line at the latest.
fn without_texts(code: &str) -> String {
    let mut out = String::with_capacity(code.len());
    let mut rest = code;
    let mut last = ' ';
    while let Some(first) = rest.chars().next() {
        let skipped = match first {
            '/' if rest.starts_with("//") && last != ':' => rest.find('\n').unwrap_or(rest.len()),
            '/' if rest.starts_with("/*") => rest.find("*/").map_or(rest.len(), |end| end + 2),
            '"' | '\'' if !(first == '\'' && is_name(last)) => quoted(rest, first),
            '`' => quoted(rest, first),
            _ => 0,
        };
        if skipped == 0 {
            out.push(first);
            last = first;
            rest = &rest[first.len_utf8()..];
            continue;
        }
        let (blank, after) = rest.split_at(skipped);
        out.extend(blank.bytes().map(|byte| if byte == b'\n' { '\n' } else { ' ' }));
        last = ' ';
        rest = after;
    }
    out
}

/// The length of a quoted text; 0 when its quote is not closed where it should be.
fn quoted(text: &str, quote: char) -> usize {
    let mut escaped = false;
    for (at, character) in text.char_indices().skip(1) {
        match character {
            '\n' if quote != '`' => return 0,
            c if c == quote && !escaped => return at + c.len_utf8(),
            c => escaped = c == '\\' && !escaped,
        }
    }
    0
}
