//! `grep`: finds a regular expression in the files of a folder, with ripgrep's own parts.

mod results;
mod search;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};

use futures_util::future::BoxFuture;
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use ignore::overrides::{Override, OverrideBuilder};
use serde_json::{Value, json};

use super::paths::{self, in_words};
use super::{arguments, blocking};
use crate::tool::{Access, Arguments, Preview, Tool, ToolContext, ToolOutput, ToolSpec, TouchedPath};
use search::{Found, Search};

const DEFAULT_RESULTS: usize = 1_000;
const MOST_RESULTS: usize = 10_000;
const SUMMARY_CHARACTERS: usize = 22;
/// A pattern that becomes larger than this when compiled is a mistake or an attack.
const MAX_PATTERN_BYTES: usize = 10 * 1024 * 1024;

/// What is told of a match.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    Files,
    Content,
    Count,
}

#[derive(Debug)]
pub(super) struct Grep {
    spec: ToolSpec,
}

impl Grep {
    pub(super) fn new() -> Self {
        let description = "Searches files for a regular expression, line by line, without hidden, ignored and binary \
                           files. Gives the paths of matching files; with output_mode content the lines as \
                           path:line:text, with count the number of lines.";
        let parameters = json!({
            "type": "object",
            "required": ["path", "pattern"],
            "properties": {
                "path": {"type": "string", "description": "Absolute path of a folder or file."},
                "pattern": {"type": "string", "description": "Regular expression (Rust syntax)."},
                "include": {"type": "string", "description": "Glob for the files, as in *.{ts,tsx}."},
                "max_results": {"type": "integer", "description": "1000 if not given."},
                "output_mode": {"type": "string", "enum": ["files_with_matches", "content", "count"]}
            }
        });
        Self { spec: ToolSpec::native("grep", description, parameters) }
    }
}

fn searching(pattern: &str) -> String {
    let mut shown: String = pattern.chars().take(SUMMARY_CHARACTERS).collect();
    if shown.len() < pattern.len() {
        shown.push('…');
    }
    format!("Searching: {shown}")
}

impl Tool for Grep {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn summary(&self, arguments: &Arguments) -> Option<String> {
        let pattern = arguments.get("pattern").and_then(Value::as_str);
        Some(pattern.map_or_else(|| "Searching for files".to_owned(), searching))
    }

    fn preview<'a>(
        &'a self,
        arguments: &'a Arguments,
        context: &'a ToolContext,
    ) -> BoxFuture<'a, Result<Preview, String>> {
        Box::pin(async move {
            let path = paths::resolve(arguments::text(arguments, "path")?, context).await?;
            let pattern = arguments::text(arguments, "pattern")?;
            let paths = vec![TouchedPath { path, access: Access::Read }];
            Ok(Preview { summary: Some(searching(pattern)), paths, ..Preview::default() })
        })
    }

    fn run<'a>(&'a self, arguments: Arguments, context: ToolContext) -> BoxFuture<'a, ToolOutput> {
        Box::pin(async move {
            match grep(&arguments, &context).await {
                Ok(text) => ToolOutput::text(text),
                Err(problem) => ToolOutput::error(problem),
            }
        })
    }
}

async fn grep(arguments: &Arguments, context: &ToolContext) -> Result<String, String> {
    let pattern = arguments::text(arguments, "pattern")?.to_owned();
    let mode = match arguments::optional_text(arguments, "output_mode")? {
        None | Some("files_with_matches") => Mode::Files,
        Some("content") => Mode::Content,
        Some("count") => Mode::Count,
        Some(other) => {
            return Err(format!("`output_mode` {other:?} is not one of files_with_matches, content and count."));
        }
    };
    let most = arguments::count(arguments, "max_results")?.filter(|most| *most > 0);
    let most = most.unwrap_or(DEFAULT_RESULTS).min(MOST_RESULTS);
    let include = arguments::optional_text(arguments, "include")?.map(str::to_owned);
    let target = paths::target(arguments::text(arguments, "path")?, context).await?;
    let stop = context.stop.clone();
    blocking(&context.stop, move || {
        let matcher = matcher(&pattern)?;
        let is_file = match target.real.metadata() {
            Ok(metadata) => !metadata.is_dir(),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return Err(paths::not_found(&target.written));
            }
            Err(error) => return Err(format!("{}: {}.", target.written.display(), in_words(&error))),
        };
        // A file that is named is searched, whatever the glob.
        let include = include.filter(|_| !is_file).map(|globs| include_of(&target.real, &globs)).transpose()?;
        let search = Search { matcher, mode, most, include, stop };
        let found = if is_file { search.file(&target.real)? } else { search.folder(&target.real)? };
        Ok(report(&found, &pattern, &target.real, &target.written))
    })
    .await
}

fn matcher(pattern: &str) -> Result<RegexMatcher, String> {
    if pattern.is_empty() {
        return Err("`pattern` is empty.".to_owned());
    }
    let mut builder = RegexMatcherBuilder::new();
    builder
        .multi_line(true)
        .unicode(true)
        .octal(false)
        .line_terminator(Some(b'\n'))
        .size_limit(MAX_PATTERN_BYTES)
        .dfa_size_limit(4 * MAX_PATTERN_BYTES);
    builder.build(pattern).map_err(|error| {
        let escaped = escape(pattern);
        format!("`pattern` is not usable: {error}\nTo search for the text itself, write: {escaped}")
    })
}

/// The pattern that matches `text` and nothing else.
fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        match c {
            '\n' => escaped.push_str("\\n"),
            '\\' | '.' | '+' | '*' | '?' | '(' | ')' | '|' | '[' | ']' | '{' | '}' | '^' | '$' => {
                escaped.extend(['\\', c])
            }
            c => escaped.push(c),
        }
    }
    escaped
}

/// Globs as ripgrep takes them; several may be separated by commas.
fn include_of(root: &Path, globs: &str) -> Result<Override, String> {
    let mut builder = OverrideBuilder::new(root);
    let (mut depth, mut start) = (0_usize, 0);
    let mut parts = Vec::new();
    for (at, c) in globs.char_indices() {
        match c {
            '{' | '[' => depth += 1,
            '}' | ']' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => {
                parts.push(&globs[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&globs[start..]);
    for glob in parts.into_iter().map(str::trim).filter(|glob| !glob.is_empty()) {
        builder.add(glob).map_err(|error| format!("`include` is not a valid glob: {error}"))?;
    }
    builder.build().map_err(|error| format!("`include` is not a valid glob: {error}"))
}

/// The results as lines. Paths are given as the model would write them.
fn report(found: &Found, pattern: &str, real: &Path, written: &Path) -> String {
    let mut text = String::new();
    let named = |path: &PathBuf| match path.strip_prefix(real) {
        Ok(rest) if rest.as_os_str().is_empty() => written.display().to_string(),
        Ok(rest) => written.join(rest).display().to_string(),
        Err(_) => path.display().to_string(),
    };
    found.results.write(&mut text, named);
    if text.is_empty() {
        let binary = if found.binary && real.is_file() { " It is a binary file." } else { "" };
        text = format!("No matches for {pattern} in {}.{binary}\n", written.display());
    }
    if found.results.more {
        text.push_str("[There may be more results; narrow the search or raise max_results.]\n");
    }
    if found.out_of_time {
        text.push_str("[Not everything was searched: it took too long.]\n");
    }
    if found.unreadable > 0 {
        text.push_str(&format!("[{} files or folders could not be read.]\n", found.unreadable));
    }
    text.truncate(text.trim_end().len());
    text
}
