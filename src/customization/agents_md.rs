//! `AGENTS.md`: what a project and a user want every model to know, with the files it includes.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::read::{Border, Origin, Reader, directory};
use crate::config::files::{resolve, without_dots};

const NAME: &str = "AGENTS.md";
/// What other assistants call the same file.
const OTHER_NAME: &str = "CLAUDE.md";

const MAX_DEPTH: usize = 5;
const MAX_FILES: usize = 64;
const MAX_TOTAL_BYTES: usize = 512 * 1024;
const MAX_MENTIONS: usize = 64;
const MAX_PARENTS: usize = 32;

/// A file whose text goes into the system prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContextFile {
    pub path: PathBuf,
    pub origin: Origin,
    pub text: String,
}

/// Those of the workspace folders, each after the ones above it, then the user's own.
pub(super) fn load(reader: &mut Reader<'_>) -> Vec<ContextFile> {
    let mut gathered = Gathered::default();
    let settings = &reader.sources.settings;
    let (parents, compat) = (settings.include_parent_agents_files, settings.compat_rules);
    for root in reader.roots.clone() {
        if parents {
            let above: Vec<&Path> = root.ancestors().skip(1).take(MAX_PARENTS).collect();
            for folder in above.into_iter().rev() {
                gathered.add(reader, &folder.join(NAME), Border::Folder(folder), 0);
            }
        }
        let own = root.join(NAME);
        if own.exists() {
            gathered.add(reader, &own, Border::Workspace, 0);
        } else {
            reader.stamp.note(&own);
            if compat {
                gathered.add(reader, &root.join(OTHER_NAME), Border::Workspace, 0);
            }
        }
    }
    if !reader.sources.isolated {
        let global = reader.sources.config_dir.join(NAME);
        gathered.add(reader, &global, Border::None, 0);
    }
    gathered.files
}

/// Whether the folder says something in its own `AGENTS.md`.
pub(super) fn is_in(root: &Path) -> bool {
    root.join(NAME).exists()
}

#[derive(Default)]
struct Gathered {
    files: Vec<ContextFile>,
    bytes: usize,
    /// With their links followed, so that a circle ends.
    seen: BTreeSet<PathBuf>,
}

impl Gathered {
    fn add(&mut self, reader: &mut Reader<'_>, path: &Path, border: Border<'_>, depth: usize) {
        reader.stamp.note(path);
        let Ok(real) = dunce::canonicalize(path) else { return };
        if !self.seen.insert(real) {
            return;
        }
        if self.files.len() >= MAX_FILES || depth > MAX_DEPTH {
            return reader.report(path, None, "too many files include one another; it is ignored");
        }
        let Some(file) = reader.file(path, border) else { return };
        if self.bytes + file.text.len() > MAX_TOTAL_BYTES {
            let message = format!("what {NAME} includes is larger than {} KiB; it is ignored", MAX_TOTAL_BYTES / 1024);
            return reader.report(path, None, message);
        }
        self.bytes += file.text.len();
        let text = file.text.strip_prefix('\u{feff}').unwrap_or(&file.text).replace("\r\n", "\n").trim().to_owned();
        // A file that lies in the workspace is the workspace's, whoever includes it.
        let border = match file.origin {
            Origin::Workspace => Border::Workspace,
            Origin::Global => border,
        };
        let mentioned = mentions(&text);
        if !text.is_empty() {
            self.files.push(ContextFile { path: path.to_owned(), origin: file.origin, text });
        }
        for mention in mentioned {
            let Ok(included) = resolve(Path::new(&mention), directory(path), reader.home.as_deref()) else { continue };
            self.add(reader, &without_dots(&included), border, depth + 1);
        }
    }
}

/// The paths in `@path.ext`, outside of code.
fn mentions(text: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    let mut fence: Option<&str> = None;
    for line in text.lines() {
        let start = line.trim_start();
        let mark = ["```", "~~~"].into_iter().find(|mark| start.starts_with(mark));
        match (fence, mark) {
            (None, Some(mark)) => fence = Some(mark),
            (Some(open), Some(mark)) if open == mark => fence = None,
            (None, None) => found.extend(outside_code(line).into_iter().flat_map(mentions_in)),
            _ => {}
        }
        if found.len() >= MAX_MENTIONS {
            break;
        }
    }
    found.truncate(MAX_MENTIONS);
    found
}

/// The parts of a line that are not between equally long runs of backticks.
fn outside_code(line: &str) -> Vec<&str> {
    let run_at = |text: &str| text.len() - text.trim_start_matches('`').len();
    let mut parts = Vec::new();
    let mut rest = line;
    while let Some(open) = rest.find('`') {
        let length = run_at(&rest[open..]);
        let inside = open + length;
        // The closing run is the next one of the same length.
        let mut at = inside;
        let close = loop {
            let Some(next) = rest[at..].find('`').map(|next| next + at) else { break None };
            match run_at(&rest[next..]) {
                found if found == length => break Some(next + length),
                found => at = next + found,
            }
        };
        let end = close.unwrap_or(inside);
        parts.push(&rest[..open]);
        rest = &rest[end..];
    }
    parts.push(rest);
    parts
}

fn mentions_in(text: &str) -> impl Iterator<Item = String> + '_ {
    text.match_indices('@').filter_map(|(at, _)| {
        let before = text[..at].chars().next_back();
        // `me@host.org` is an address.
        if before.is_some_and(|c| c.is_alphanumeric() || matches!(c, '.' | '_' | '-' | '/' | '@' | '+')) {
            return None;
        }
        let rest = &text[at + 1..];
        let end = rest.find(|c: char| c.is_whitespace() || "()[]{}<>\"'`,;!?*|".contains(c)).unwrap_or(rest.len());
        let path = rest[..end].trim_end_matches(['.', ':']);
        let extension = Path::new(path).extension()?.to_str()?;
        let plausible = !path.starts_with('@') && extension.len() <= 10 && extension.chars().all(char::is_alphanumeric);
        plausible.then(|| path.to_owned())
    })
}

#[cfg(test)]
mod tests;
