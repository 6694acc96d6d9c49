//! Which variables a command line may set without making it something else.
//!
//! Programs obey variables: `PATH`, `LD_PRELOAD`, `GIT_SSH_COMMAND` and hundreds more decide what
//! runs. So the harmless ones are listed, not the others.

use super::words::Word;

const HARMLESS: [&str; 25] = [
    "CARGO_TERM_COLOR",
    "CI",
    "CLICOLOR",
    "CLICOLOR_FORCE",
    "COLUMNS",
    "FORCE_COLOR",
    "GOARCH",
    "GOOS",
    "LANG",
    "LANGUAGE",
    "LINES",
    "NODE_ENV",
    "NO_COLOR",
    "PYTHONDONTWRITEBYTECODE",
    "PYTHONUNBUFFERED",
    "RAILS_ENV",
    "RUST_BACKTRACE",
    "RUST_LOG",
    "SOURCE_DATE_EPOCH",
    "TERM",
    "TZ",
    "COLORTERM",
    "DEBIAN_FRONTEND",
    "GIT_TERMINAL_PROMPT",
    "GIT_OPTIONAL_LOCKS",
];

/// Parts of names in small letters that programs know all the same.
const OBEYED: [&str; 6] = ["proxy", "path", "config", "prompt", "preload", "editor"];

/// Whether setting this variable changes nothing about what runs: before a command, which sees it,
/// or for the shell itself.
pub(super) fn is_harmless(name: &str, before_command: bool) -> bool {
    let is_listed = HARMLESS.contains(&name) || name.strip_prefix("LC_").is_some_and(|rest| !rest.is_empty());
    // What a script calls its own variables; exported only if the user has one of that name.
    let is_own = !before_command
        && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_')
        && name.bytes().any(|byte| byte.is_ascii_lowercase())
        && !OBEYED.iter().any(|part| name.contains(part));
    is_listed || is_own
}

/// The variable that `NAME=…` or `NAME+=…` sets, as written; with its subscript, which makes it none
/// of the harmless ones.
pub(super) fn assigned_name(raw: &str) -> Option<&str> {
    let (left, _) = raw.split_once('=')?;
    let name = left.strip_suffix('+').unwrap_or(left);
    let plain = name.split('[').next().unwrap_or_default();
    let mut bytes = plain.bytes();
    let starts = bytes.next().is_some_and(|byte| byte.is_ascii_alphabetic() || byte == b'_');
    let is_name = starts && bytes.all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    (is_name && (plain.len() == name.len() || name.ends_with(']'))).then_some(name)
}

/// Whether the words so far begin a command whose further words are assignments.
pub(super) fn declares(words: &[Word]) -> bool {
    let declaring = ["export", "declare", "typeset", "readonly", "local"];
    words.first().is_some_and(|word| declaring.contains(&word.text.as_str()))
}
