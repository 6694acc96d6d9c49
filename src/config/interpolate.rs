//! `${env:…}` and `${file:…}` inside configuration strings.
//!
//! A string is read once from left to right, and inserted text is never looked at again: a file
//! that happens to contain `${cmd:…}` must not become a program that runs. Forms that we do not
//! know stay as they are, because other readers expand `${NAME}` by themselves.

use std::io::Read;
use std::path::Path;

use serde_json::Value;

use super::document::KeyPath;

/// A larger file is a mistake rather than a setting.
const MAX_FILE_BYTES: u64 = 1024 * 1024;

/// How far a balancing brace is looked for; without a bound, hostile text costs quadratic time.
const MAX_BALANCED_BYTES: usize = 4096;

/// Known forms that this version does not carry out.
const NOT_YET: [&str; 4] = ["netrc", "cmd", "classpath", "plugin"];

/// What the forms may look at.
pub struct Context<'a> {
    pub env: &'a dyn Fn(&str) -> Option<String>,
    /// Where relative files are: the directory of the containing file.
    pub directory: &'a Path,
    /// What `~` stands for.
    pub home: Option<&'a Path>,
}

impl std::fmt::Debug for Context<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Context").field("directory", &self.directory).finish_non_exhaustive()
    }
}

/// Expands every string inside `value`; returns the place and reason of each failure.
pub fn expand_value(value: &mut Value, context: &Context<'_>) -> Vec<(Vec<String>, String)> {
    let mut failures = Vec::new();
    walk(value, &mut Vec::new(), context, &mut failures);
    failures
}

/// Expands one string; what fails becomes empty and is described in the second part.
pub fn expand(text: &str, context: &Context<'_>) -> (String, Vec<String>) {
    let mut out = String::with_capacity(text.len());
    let mut failures = Vec::new();
    let mut rest = text;
    while let Some(start) = rest.find("${") {
        out.push_str(&rest[..start]);
        let after = &rest[start + 2..];
        let form = is_known(after).then(|| closing_brace(after)).flatten().map(|end| &after[..end]);
        let Some(form) = form else {
            // Only the opening mark is passed over, so that a known form inside still counts.
            out.push_str("${");
            rest = after;
            continue;
        };
        match expand_form(form, context) {
            Some(Ok(inserted)) => out.push_str(&inserted),
            Some(Err(failure)) => failures.push(failure),
            None => out.extend(["${", form, "}"]),
        }
        rest = &after[form.len() + 1..];
    }
    out.push_str(rest);
    (out, failures)
}

fn walk(value: &mut Value, path: &mut KeyPath, context: &Context<'_>, failures: &mut Vec<(KeyPath, String)>) {
    match value {
        Value::String(text) => {
            if text.contains("${") {
                let (expanded, reasons) = expand(text, context);
                *text = expanded;
                failures.extend(reasons.into_iter().map(|reason| (path.clone(), reason)));
            }
        }
        Value::Array(elements) => {
            for (index, element) in elements.iter_mut().enumerate() {
                path.push(index.to_string());
                walk(element, path, context, failures);
                path.pop();
            }
        }
        Value::Object(entries) => {
            for (key, entry) in entries.iter_mut() {
                path.push(key.clone());
                walk(entry, path, context, failures);
                path.pop();
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn is_known(after: &str) -> bool {
    let starts_with_form = |name: &str| after.strip_prefix(name).is_some_and(|rest| rest.starts_with(':'));
    ["env", "file"].iter().chain(&NOT_YET).any(|name| starts_with_form(name))
}

/// Where the form that starts at the beginning of `after` ends: at the brace that balances the
/// opening one, or at the first brace when nothing near balances it.
fn closing_brace(after: &str) -> Option<usize> {
    let mut depth = 0_usize;
    for (index, byte) in after.bytes().enumerate().take(MAX_BALANCED_BYTES) {
        match byte {
            b'{' => depth += 1,
            b'}' if depth == 0 => return Some(index),
            b'}' => depth -= 1,
            _ => {}
        }
    }
    after.find('}')
}

/// `None` when `form` is none of ours and stays as it is written.
fn expand_form(form: &str, context: &Context<'_>) -> Option<Result<String, String>> {
    let (name, body) = form.split_once(':')?;
    match name {
        "env" => {
            let (variable, default) = match body.split_once(':') {
                Some((variable, default)) => (variable, Some(default)),
                None => (body, None),
            };
            if variable.is_empty() {
                return None;
            }
            let found = (context.env)(variable).or_else(|| default.map(str::to_owned));
            Some(found.ok_or_else(|| format!("the environment variable {variable} is not set")))
        }
        "file" => {
            let path = Path::new(body);
            (!body.is_empty()).then(|| read_file(path, context).map_err(|why| format!("${{file:{body}}}: {why}")))
        }
        _ if NOT_YET.contains(&name) => Some(Err(format!("${{{name}:…}} is not supported by this version"))),
        _ => None,
    }
}

fn read_file(path: &Path, context: &Context<'_>) -> Result<String, String> {
    let path = match path.strip_prefix("~") {
        Ok(below) => context.home.ok_or("the home directory is not known")?.join(below),
        Err(_) => context.directory.join(path),
    };
    let mut bytes = Vec::new();
    open_regular_file(&path)?
        .take(MAX_FILE_BYTES + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| format!("cannot be read ({})", error.kind()))?;
    if bytes.len() as u64 > MAX_FILE_BYTES {
        return Err("larger than 1 MiB".to_owned());
    }
    let text = String::from_utf8(bytes).map_err(|_| "not UTF-8 text".to_owned())?;
    Ok(text.trim_end_matches(['\n', '\r']).to_owned())
}

/// Opening a named pipe would wait for its writer, possibly for ever.
fn open_regular_file(path: &Path) -> Result<std::fs::File, String> {
    let unreadable = |error: std::io::Error| format!("cannot be read ({})", error.kind());
    if !std::fs::metadata(path).map_err(unreadable)?.is_file() {
        return Err("not a regular file".to_owned());
    }
    std::fs::File::open(path).map_err(unreadable)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn env(name: &str) -> Option<String> {
        match name {
            "SET" => Some("value".to_owned()),
            "EMPTY" => Some(String::new()),
            "TRICK" => Some("${env:SET}${file:secret.txt}".to_owned()),
            "ÜMLAUT" => Some("grün".to_owned()),
            _ => None,
        }
    }

    #[test]
    fn environment_forms() {
        let context = Context { env: &env, directory: Path::new("/nowhere"), home: None };
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
            ("${env:TRICK}", "${env:SET}${file:secret.txt}", 0),
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
            ("a${cmd:echo hi}b", "ab", 1),
            ("${netrc:machine} ${classpath:p.md} ${plugin:root}", "  ", 3),
        ] {
            let (actual, reasons) = expand(text, &context);
            assert_eq!(actual, expected, "{text}");
            assert_eq!(reasons.len(), failures, "{text}: {reasons:?}");
        }
    }

    #[test]
    fn files_are_read_once_and_not_scanned_again() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("key.txt"), "s3cret ${env:SET}\r\n\n").unwrap();
        std::fs::write(dir.path().join("big"), vec![b'x'; 1024 * 1024 + 1]).unwrap();
        std::fs::write(dir.path().join("just"), vec![b'x'; 1024 * 1024]).unwrap();
        std::fs::write(dir.path().join("binary"), [0xff, 0xfe]).unwrap();
        let context = Context { env: &env, directory: dir.path(), home: Some(dir.path()) };
        let absolute = format!("${{file:{}}}", dir.path().join("key.txt").display());
        for text in ["${file:key.txt}", "${file:~/key.txt}", "${file:./key.txt}", absolute.as_str()] {
            assert_eq!(expand(text, &context), ("s3cret ${env:SET}".to_owned(), vec![]), "{text}");
        }
        assert_eq!(expand("${file:just}", &context).0.len(), 1024 * 1024);
        for text in ["${file:missing}", "${file:big}", "${file:binary}", "${file:.}"] {
            let (expanded, reasons) = expand(text, &context);
            assert_eq!((expanded.as_str(), reasons.len()), ("", 1), "{text}");
        }
        let homeless = Context { home: None, ..context };
        assert_eq!(expand("${file:~/key.txt}", &homeless).1.len(), 1);
    }

    #[test]
    fn every_string_is_expanded_and_failures_name_their_place() {
        let context = Context { env: &env, directory: Path::new("/nowhere"), home: None };
        let mut value = json!({"a": ["${env:SET}", 1, {"b": "${cmd:pass show key}"}], "${env:SET}": null});
        let failures = expand_value(&mut value, &context);
        assert_eq!(value, json!({"a": ["value", 1, {"b": ""}], "${env:SET}": null}));
        assert_eq!(failures.len(), 1);
        assert_eq!(failures[0].0, ["a", "2", "b"]);
        assert!(failures[0].1.contains("${cmd:…}") && !failures[0].1.contains("pass show"), "{failures:?}");
    }
}
