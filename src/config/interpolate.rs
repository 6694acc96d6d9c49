//! `${env:…}`, `${file:…}`, `${netrc:…}` and `${cmd:…}` inside configuration strings.
//!
//! A string is read once from left to right, and inserted text is never looked at again: a file
//! that happens to contain `${cmd:…}` must not become a program that runs. Nothing is run here
//! either: whoever expands says what a command has printed, and one that has not run yet leaves its
//! string unset. Forms that we do not know stay as they are, because other readers expand `${NAME}`
//! by themselves.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use super::document::KeyPath;
use super::files::{read_text, resolve};
use super::netrc::{self, Wanted};

/// A larger file is a mistake rather than a setting.
pub(super) const MAX_FILE_BYTES: u64 = 1024 * 1024;

/// How far a balancing brace is looked for; without a bound, hostile text costs quadratic time.
const MAX_BALANCED_BYTES: usize = 4096;

const FORMS: [&str; 6] = ["env", "file", "netrc", "cmd", "classpath", "plugin"];

/// What a command printed, or why it failed; `None` when it has not run yet.
pub(super) type CommandLookup<'a> = &'a dyn Fn(&str) -> Option<Result<String, String>>;

/// What the forms may look at.
pub(super) struct Context<'a> {
    pub(super) env: &'a dyn Fn(&str) -> Option<String>,
    /// Where relative files are: the directory of the containing file.
    pub(super) directory: &'a Path,
    /// What `~` stands for.
    pub(super) home: Option<&'a Path>,
    /// Looked into instead of the user's own.
    pub(super) netrc_file: Option<&'a Path>,
    pub(super) command: CommandLookup<'a>,
}

/// What expanding found out on its way.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Findings {
    /// The place and reason of everything that is wrong.
    pub(super) failures: Vec<(KeyPath, String)>,
    /// Every command, whether it has run or not.
    pub(super) commands: BTreeSet<String>,
    /// Files whose change would change the result.
    pub(super) files: BTreeSet<PathBuf>,
}

/// Expands every string inside `values`. What waits for a command is taken out.
pub(super) fn expand_values(values: &mut Map<String, Value>, context: &Context<'_>) -> Findings {
    let mut findings = Findings::default();
    walk_object(values, &mut Vec::new(), context, &mut findings);
    findings
}

/// The files that `${file:…}` forms inside `value` name.
pub(super) fn named_files(value: &Value, directory: &Path, home: Option<&Path>) -> BTreeSet<PathBuf> {
    let mut files = BTreeSet::new();
    each_string(value, &mut |text| {
        let bodies = Pieces { rest: text }.filter_map(|piece| match piece {
            Piece::Form { name: "file", body } => Some(body),
            _ => None,
        });
        files.extend(bodies.filter_map(|body| resolve(Path::new(body), directory, home).ok()));
    });
    files
}

/// Whether there is anything to expand.
pub(super) fn has_forms(value: &Value) -> bool {
    let mut found = false;
    each_string(value, &mut |text| found |= Pieces { rest: text }.any(|piece| matches!(piece, Piece::Form { .. })));
    found
}

/// The names of the forms in `text`.
pub(super) fn form_names(text: &str) -> impl Iterator<Item = &str> {
    Pieces { rest: text }.filter_map(|piece| match piece {
        Piece::Form { name, .. } => Some(name),
        Piece::Text(_) => None,
    })
}

fn each_string(value: &Value, action: &mut dyn FnMut(&str)) {
    match value {
        Value::String(text) => action(text),
        Value::Array(elements) => elements.iter().for_each(|element| each_string(element, action)),
        Value::Object(entries) => entries.values().for_each(|entry| each_string(entry, action)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn walk_object(entries: &mut Map<String, Value>, path: &mut KeyPath, context: &Context<'_>, findings: &mut Findings) {
    entries.retain(|key, entry| {
        path.push(key.clone());
        let keep = walk(entry, path, context, findings);
        path.pop();
        keep
    });
}

/// Returns whether the value is there already.
fn walk(value: &mut Value, path: &mut KeyPath, context: &Context<'_>, findings: &mut Findings) -> bool {
    match value {
        Value::String(text) if text.contains('$') => match expand(text, path, context, findings) {
            Some(expanded) => *text = expanded,
            None => return false,
        },
        Value::Array(elements) => {
            let mut index = 0;
            elements.retain_mut(|element| {
                path.push(index.to_string());
                index += 1;
                let keep = walk(element, path, context, findings);
                path.pop();
                keep
            });
        }
        Value::Object(entries) => walk_object(entries, path, context, findings),
        Value::String(_) | Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
    true
}

/// Expands one string; what fails becomes empty. `None` when it waits for a command.
fn expand(text: &str, path: &KeyPath, context: &Context<'_>, findings: &mut Findings) -> Option<String> {
    let mut out = String::with_capacity(text.len());
    let mut complete = true;
    for piece in (Pieces { rest: text }) {
        match piece {
            Piece::Text(plain) if takes_variables(path) => insert_variables(plain, context.env, &mut out),
            Piece::Text(plain) => out.push_str(plain),
            Piece::Form { name, body } => match expand_form(name, body, path, context, findings) {
                Some(Ok(inserted)) => out.push_str(&inserted),
                Some(Err(failure)) => findings.failures.push((path.clone(), failure)),
                None => complete = false,
            },
        }
    }
    complete.then_some(out)
}

/// Entries of MCP servers are copied from place to place, and everywhere else a shell's way to
/// write a variable works in them.
fn takes_variables(path: &KeyPath) -> bool {
    path.first().is_some_and(|key| key == "mcpServers")
}

/// Puts `text` into `out` with the values of `$NAME` and `${NAME}`. What is not set stays as it is:
/// it may be meant for the program that gets to see it.
fn insert_variables(text: &str, env: &dyn Fn(&str) -> Option<String>, out: &mut String) {
    let mut rest = text;
    while let Some(at) = rest.find('$') {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        let written = variable_at_start(rest).unwrap_or((&rest[..1], ""));
        match env(written.1) {
            Some(value) if !written.1.is_empty() => out.push_str(&value),
            _ => out.push_str(written.0),
        }
        rest = &rest[written.0.len()..];
    }
    out.push_str(rest);
}

/// The variable that `text` starts with: as it is written, and its name.
fn variable_at_start(text: &str) -> Option<(&str, &str)> {
    let after = text.strip_prefix('$')?;
    let (inner, braces) = after.strip_prefix('{').map_or((after, 0), |inner| (inner, 1));
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let name = &inner[..inner.find(|c: char| !is_part(c)).unwrap_or(inner.len())];
    let is_name = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    let is_closed = braces == 0 || inner[name.len()..].starts_with('}');
    (is_name && is_closed).then(|| (&text[..1 + 2 * braces + name.len()], name))
}

fn expand_form(
    name: &str,
    body: &str,
    path: &KeyPath,
    context: &Context<'_>,
    findings: &mut Findings,
) -> Option<Result<String, String>> {
    match name {
        "env" => {
            let (variable, default) = match body.split_once(':') {
                Some((variable, default)) => (variable, Some(default)),
                None => (body, None),
            };
            let found = (context.env)(variable).or_else(|| default.map(str::to_owned));
            Some(found.ok_or_else(|| format!("the environment variable {variable} is not set")))
        }
        "file" => {
            let text = resolve(Path::new(body), context.directory, context.home).and_then(|file| {
                findings.files.insert(file.clone());
                read_text(&file, MAX_FILE_BYTES)
            });
            let text = text.map(|text| text.trim_end_matches(['\n', '\r']).to_owned());
            Some(text.map_err(|why| format!("${{file:{body}}}: {why}")))
        }
        "netrc" => {
            let Some(wanted) = Wanted::parse(body) else {
                return Some(Err("${netrc:…} must name a machine".to_owned()));
            };
            let found = netrc::look_up(&wanted, context.netrc_file, context.home);
            findings.files.extend(found.file);
            findings.failures.extend(found.warning.map(|warning| (path.clone(), warning)));
            Some(found.password.map_err(|why| format!("${{netrc:{body}}}: {why}")))
        }
        "cmd" => {
            findings.commands.insert(body.to_owned());
            (context.command)(body)
        }
        _ => Some(Err(format!("${{{name}:…}} is not supported by this version"))),
    }
}

/// A string, taken apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Piece<'a> {
    Text(&'a str),
    /// `${name:body}` with a name that we know and a body that is not empty.
    Form {
        name: &'a str,
        body: &'a str,
    },
}

struct Pieces<'a> {
    rest: &'a str,
}

impl<'a> Iterator for Pieces<'a> {
    type Item = Piece<'a>;

    fn next(&mut self) -> Option<Piece<'a>> {
        if self.rest.is_empty() {
            return None;
        }
        if let Some((name, body, length)) = form_at_start(self.rest) {
            self.rest = &self.rest[length..];
            return Some(Piece::Form { name, body });
        }
        // Only the opening mark of an unknown form is passed over, so that a known one inside it
        // still counts.
        let from = if self.rest.starts_with("${") { 2 } else { 0 };
        let length = self.rest[from..].find("${").map_or(self.rest.len(), |at| at + from);
        let (text, rest) = self.rest.split_at(length);
        self.rest = rest;
        Some(Piece::Text(text))
    }
}

/// Name, body and whole length of the form that `text` starts with.
fn form_at_start(text: &str) -> Option<(&str, &str, usize)> {
    let after = text.strip_prefix("${")?;
    let (name, rest) = after.split_at(after.find(':')?);
    if !FORMS.contains(&name) {
        return None;
    }
    let rest = &rest[1..];
    let end = closing_brace(rest)?;
    let body = &rest[..end];
    let is_blank = body.is_empty() || name == "env" && body.starts_with(':');
    (!is_blank).then_some((name, body, 2 + name.len() + 1 + end + 1))
}

/// Where the form whose body starts with `rest` ends: at the brace that balances the opening one,
/// or at the first brace when nothing near balances it.
fn closing_brace(rest: &str) -> Option<usize> {
    let mut depth = 0_usize;
    for (index, byte) in rest.bytes().enumerate().take(MAX_BALANCED_BYTES) {
        match byte {
            b'{' => depth += 1,
            b'}' if depth == 0 => return Some(index),
            b'}' => depth -= 1,
            _ => {}
        }
    }
    rest.find('}')
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn env(name: &str) -> Option<String> {
        match name {
            "SET" => Some("value".to_owned()),
            "EMPTY" => Some(String::new()),
            "TRICK" => Some("${env:SET}${file:secret.txt}${cmd:echo run}".to_owned()),
            "ÜMLAUT" => Some("grün".to_owned()),
            _ => None,
        }
    }

    fn command(text: &str) -> Option<Result<String, String>> {
        match text {
            "echo hi" => Some(Ok("hi ${env:SET}".to_owned())),
            "false" => Some(Err("failed".to_owned())),
            _ => None,
        }
    }

    fn context(directory: &Path) -> Context<'_> {
        Context { env: &env, directory, home: Some(directory), netrc_file: None, command: &command }
    }

    /// The expansion of one string and what went wrong with it.
    fn expanded(text: &str, context: &Context<'_>) -> (Option<String>, Vec<String>) {
        let mut values = Map::from_iter([("k".to_owned(), Value::from(text))]);
        let findings = expand_values(&mut values, context);
        let text = values.remove("k").and_then(|value| value.as_str().map(str::to_owned));
        (text, findings.failures.into_iter().map(|(_, why)| why).collect())
    }

    #[test]
    fn forms() {
        let context = context(Path::new("/nowhere"));
        for (text, expected, failures) in [
            ("plain", "plain", 0),
            ("a ${env:SET} b", "a value b", 0),
            ("${env:SET}${env:SET}", "valuevalue", 0),
            ("${env:EMPTY:default}", "", 0),
            ("${env:UNSET:default}", "default", 0),
            ("${env:UNSET:http://host:80/x}", "http://host:80/x", 0),
            ("${env:UNSET:}", "", 0),
            ("x${env:UNSET}y", "xy", 1),
            ("${env:}", "${env:}", 0),
            ("${env::x}", "${env::x}", 0),
            ("${env:TRICK}", "${env:SET}${file:secret.txt}${cmd:echo run}", 0),
            ("${env:UNSET:{\"a\":{}}}!", "{\"a\":{}}!", 0),
            ("${env:SET:{\"a\":{}}}!", "value!", 0),
            ("${env:UNSET:${env:SET}}", "${env:SET}", 0),
            ("${env:UNSET:{}", "{", 0),
            ("${env:SET", "${env:SET", 0),
            ("${HOME} ${env:SET}", "${HOME} value", 0),
            ("${unknown:${env:SET}}", "${unknown:value}", 0),
            ("$ $$ ${ } $env:SET", "$ $$ ${ } $env:SET", 0),
            ("$${env:SET}", "$value", 0),
            ("größe ${env:ÜMLAUT} 日本", "größe grün 日本", 0),
            ("${", "${", 0),
            ("a${cmd:echo hi}b", "ahi ${env:SET}b", 0),
            ("a${cmd:false}b", "ab", 1),
            ("${netrc:machine} ${netrc:@} ${classpath:p.md} ${plugin:root}", "   ", 4),
        ] {
            let (actual, reasons) = expanded(text, &context);
            assert_eq!(actual.as_deref(), Some(expected), "{text}");
            assert_eq!(reasons.len(), failures, "{text}: {reasons:?}");
        }
    }

    #[test]
    fn servers_of_mcp_may_use_variables_as_a_shell_does() {
        let texts = [
            ("$SET", "value"),
            ("${SET}/x$SET-y", "value/xvalue-y"),
            ("$SETX $UNSET ${UNSET}", "$SETX $UNSET ${UNSET}"),
            ("${env:TRICK}", "${env:SET}${file:secret.txt}${cmd:echo run}"),
            ("a${env:SET}$SET", "avaluevalue"),
            ("$", "$"),
            ("$$SET ${SET ${} $1", "$value ${SET ${} $1"),
            ("größe$SET日", "größevalue日"),
            ("$EMPTY|", "|"),
        ];
        for (text, expected) in texts {
            let mut values = json!({"mcpServers": {"s": {"args": [text], "env": {"$SET": text}}}, "other": text});
            expand_values(values.as_object_mut().unwrap(), &context(Path::new("/nowhere")));
            let server = &values["mcpServers"]["s"];
            assert_eq!((&server["args"][0], &server["env"]["$SET"]), (&json!(expected), &json!(expected)), "{text}");
        }
        let mut values = json!({"other": "$SET ${SET}"});
        expand_values(values.as_object_mut().unwrap(), &context(Path::new("/nowhere")));
        assert_eq!(values, json!({"other": "$SET ${SET}"}));
    }

    #[test]
    fn what_waits_for_a_command_is_unset() {
        let mut values = json!({"key": "Bearer ${cmd:pass a}", "list": ["${cmd:pass b}", "${cmd:echo hi}"], "n": 1});
        let findings = expand_values(values.as_object_mut().unwrap(), &context(Path::new("/nowhere")));
        assert_eq!(values, json!({"list": ["hi ${env:SET}"], "n": 1}));
        assert_eq!(findings.commands.into_iter().collect::<Vec<_>>(), ["echo hi", "pass a", "pass b"]);
        assert_eq!(findings.failures, []);
    }

    #[test]
    fn files_are_read_once_and_not_scanned_again() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("key.txt"), "s3cret ${env:SET}\r\n\n").unwrap();
        std::fs::write(dir.path().join("big"), vec![b'x'; 1024 * 1024 + 1]).unwrap();
        std::fs::write(dir.path().join("just"), vec![b'x'; 1024 * 1024]).unwrap();
        std::fs::write(dir.path().join("binary"), [0xff, 0xfe]).unwrap();
        let context = context(dir.path());
        let absolute = format!("${{file:{}}}", dir.path().join("key.txt").display());
        for text in ["${file:key.txt}", "${file:~/key.txt}", "${file:./key.txt}", absolute.as_str()] {
            assert_eq!(expanded(text, &context), (Some("s3cret ${env:SET}".to_owned()), vec![]), "{text}");
        }
        assert_eq!(expanded("${file:just}", &context).0.unwrap().len(), 1024 * 1024);
        for text in ["${file:missing}", "${file:big}", "${file:binary}", "${file:.}"] {
            let (text_now, reasons) = expanded(text, &context);
            assert_eq!((text_now.as_deref(), reasons.len()), (Some(""), 1), "{text}");
        }
        let homeless = Context { home: None, ..context };
        assert_eq!(expanded("${file:~/key.txt}", &homeless).1.len(), 1);
    }

    #[test]
    fn every_string_is_expanded_and_failures_name_their_place() {
        let mut value = json!({"a": ["${env:SET}", 1, {"b": "${env:UNSET}"}], "${env:SET}": null});
        let findings = expand_values(value.as_object_mut().unwrap(), &context(Path::new("/nowhere")));
        assert_eq!(value, json!({"a": ["value", 1, {"b": ""}], "${env:SET}": null}));
        assert_eq!(findings.failures.len(), 1);
        assert_eq!(findings.failures[0].0, ["a", "2", "b"]);
    }

    #[test]
    fn files_and_forms_are_found_without_expanding() {
        let value = json!({"a": ["x${file:k}${env:SET}", {"b": "${file:~/k2}${file:/k3}"}], "c": "${cmd:${file:no}}"});
        let files: Vec<_> = named_files(&value, Path::new("/d"), Some(Path::new("/h"))).into_iter().collect();
        assert_eq!(files, [Path::new("/d/k"), Path::new("/h/k2"), Path::new("/k3")]);
        assert!(has_forms(&value));
        assert!(!has_forms(&json!({"a": "${HOME}", "${env:X}": [1, "$"]})));
    }
}
