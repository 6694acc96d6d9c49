//! Reading what users wrote: bounded in size, number and depth, and never out of a workspace.
//!
//! A file of a workspace is a stranger's. Its text may be read; what its links lead to outside, and
//! files that hold keys, may not, and it is interpolated only once its content is trusted.

use std::collections::{BTreeSet, VecDeque};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use super::Sources;
use super::front_matter::{self, Split};
use super::stamp::Stamp;
use crate::config::ConfigProblem;
use crate::config::commands::{CommandCall, Memory};
use crate::config::files::{is_inside, read_text, resolve, without_dots};
use crate::config::texts::{self, TextContext};
use crate::config::trust::{Withheld, WithheldKey};

/// A larger text is not meant for a prompt.
const MAX_FILE_BYTES: u64 = 256 * 1024;
/// What all files of one load may have together.
const MAX_TOTAL_BYTES: usize = 4 * 1024 * 1024;
const MAX_DEPTH: usize = 8;
/// Names that one folder tree may have before it is no longer looked at.
const MAX_ENTRIES: usize = 5_000;
const MAX_FILES: usize = 500;
/// More would only repeat themselves.
const MAX_PROBLEMS: usize = 50;
/// The same bound as for the configuration.
const MAX_COMMANDS: usize = 64;

/// Whose a file is, for those who read what it says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// The user's own.
    Global,
    Workspace,
}

/// Where a file, with its links followed, may lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Border<'a> {
    /// The user's own files may be anywhere.
    None,
    /// In one of the workspace folders.
    Workspace,
    Folder(&'a Path),
}

/// A file that was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct File {
    /// As it was looked for.
    pub(super) path: PathBuf,
    pub(super) origin: Origin,
    pub(super) text: String,
    written: Option<SystemTime>,
}

/// A file in its two parts, interpolated where that is allowed.
#[derive(Debug)]
pub(super) struct Document {
    pub(super) path: PathBuf,
    pub(super) origin: Origin,
    pub(super) split: Split,
    /// Whether the user owns or trusts it.
    pub(super) trusted: bool,
    /// What would be trusted.
    pub(super) hash: Option<String>,
}

/// One load in progress.
pub(super) struct Reader<'a> {
    pub(super) sources: &'a Sources,
    memory: &'a Memory,
    pub(super) home: Option<PathBuf>,
    /// With their links resolved, so that a folder has one name in the list of trusted files.
    pub(super) roots: Vec<PathBuf>,
    pub(super) problems: Vec<ConfigProblem>,
    pub(super) withheld: Vec<Withheld>,
    calls: BTreeSet<CommandCall>,
    pub(super) stamp: Stamp,
    bytes_left: usize,
}

impl<'a> Reader<'a> {
    pub(super) fn new(sources: &'a Sources, memory: &'a Memory) -> Self {
        let real = |root: &PathBuf| dunce::canonicalize(root).unwrap_or_else(|_| root.clone());
        Self {
            sources,
            memory,
            home: sources.home(),
            roots: sources.roots.iter().map(real).collect(),
            problems: Vec::new(),
            withheld: Vec::new(),
            calls: BTreeSet::new(),
            stamp: Stamp::default(),
            bytes_left: MAX_TOTAL_BYTES,
        }
    }

    pub(super) fn calls(&self) -> Vec<CommandCall> {
        self.calls.iter().cloned().collect()
    }

    pub(super) fn report(&mut self, file: &Path, line: Option<usize>, message: impl Into<String>) {
        if self.problems.len() < MAX_PROBLEMS {
            self.problems.push(ConfigProblem { source: file.display().to_string(), line, message: message.into() });
        }
    }

    /// What is looked for in the user's own folder is the user's, also when that folder is opened as
    /// a workspace. By its name alone: a link of a workspace that leads there is the workspace's.
    pub(super) fn origin_of(&self, path: &Path) -> Origin {
        let own = without_dots(path).starts_with(&self.sources.config_dir);
        let of_workspace = !own && self.roots.iter().any(|root| is_inside(path, root));
        if of_workspace { Origin::Workspace } else { Origin::Global }
    }

    pub(super) fn border_of(&self, path: &Path) -> Border<'static> {
        match self.origin_of(path) {
            Origin::Global => Border::None,
            Origin::Workspace => Border::Workspace,
        }
    }

    /// The folders that patterns in a file are relative to, by all their names: its own one for a
    /// file of a workspace, all of them for the user's.
    pub(super) fn roots_for(&self, file: &Path) -> Vec<PathBuf> {
        let names = self.roots.iter().zip(&self.sources.roots);
        let own = names.clone().find(|(real, _)| is_inside(file, real));
        let chosen: Vec<_> = own.map_or_else(|| names.collect(), |own| vec![own]);
        chosen.into_iter().flat_map(|(real, written)| [real.clone(), written.clone()]).collect()
    }

    /// The text of a file; `None` when there is none, or when it cannot be used, which is reported.
    pub(super) fn file(&mut self, path: &Path, border: Border<'_>) -> Option<File> {
        self.stamp.note(path);
        let metadata = match std::fs::metadata(path) {
            Ok(metadata) => metadata,
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => return None,
            Err(error) => {
                self.report(path, None, format!("cannot be read ({}); it is ignored", error.kind()));
                return None;
            }
        };
        let text = self.check_border(path, border).and_then(|()| read_text(path, MAX_FILE_BYTES));
        let text = match text {
            Ok(text) if text.len() > self.bytes_left => {
                self.report(path, None, "all files together are larger than 4 MiB; it is ignored");
                return None;
            }
            Ok(text) => text,
            Err(why) => {
                self.report(path, None, format!("{why}; it is ignored"));
                return None;
            }
        };
        self.bytes_left -= text.len();
        let origin = self.origin_of(path);
        Some(File { path: path.to_owned(), origin, text, written: metadata.modified().ok() })
    }

    /// The same, and none while there is nothing in it: so it is for a moment when somebody saves it.
    pub(super) fn filled_file(&mut self, path: &Path, border: Border<'_>) -> Option<File> {
        self.file(path, border).filter(|file| !file.text.is_empty())
    }

    /// The same, in its parts and interpolated. `None` also while it waits for a command.
    pub(super) fn document(&mut self, path: &Path) -> Option<Document> {
        let border = self.border_of(path);
        let file = self.filled_file(path, border)?;
        self.document_of(file)
    }

    pub(super) fn document_of(&mut self, file: File) -> Option<Document> {
        // The user's own files are trusted, those of a workspace by their content.
        let hash = match file.origin {
            Origin::Global => None,
            Origin::Workspace => self.hash(&file),
        };
        let trusted =
            file.origin == Origin::Global || hash.is_some() && self.sources.trusted.get(&file.path) == hash.as_ref();
        let text = if trusted { self.expand(&file)? } else { self.keep(&file, &hash) };
        match front_matter::split(&text) {
            Ok(split) => Some(Document { path: file.path, origin: file.origin, split, trusted, hash }),
            Err(flaw) => {
                self.report(&file.path, Some(flaw.line), format!("{}; the file is ignored", flaw.message));
                None
            }
        }
    }

    fn hash(&self, file: &File) -> Option<String> {
        let root = self.roots.iter().find(|root| is_inside(&file.path, root))?;
        texts::hash(&file.text, directory(&file.path), root, self.home.as_deref())
    }

    /// Notes what of a workspace's file does not count because it is not trusted.
    pub(super) fn withhold(&mut self, file: &Path, hash: &Option<String>, keys: Vec<WithheldKey>) {
        match self.withheld.iter_mut().find(|withheld| withheld.file == file) {
            Some(known) => known.keys.extend(keys),
            None => self.withheld.push(Withheld { file: file.to_owned(), hash: hash.clone(), keys }),
        }
    }

    /// The text as it is written.
    fn keep(&mut self, file: &File, hash: &Option<String>) -> String {
        let dangers = texts::dangers(&file.text);
        if !dangers.is_empty() {
            self.withhold(&file.path, hash, dangers);
        }
        file.text.clone()
    }

    fn expand(&mut self, file: &File) -> Option<String> {
        let env = |name: &str| (self.sources.env)(name);
        let expanded = texts::expand(
            &file.text,
            &TextContext {
                env: &env,
                directory: directory(&file.path),
                home: self.home.as_deref(),
                memory: self.memory,
                written: file.written,
            },
        );
        for failure in expanded.failures {
            self.report(&file.path, None, failure);
        }
        for included in expanded.files {
            self.stamp.note(&included);
        }
        for call in expanded.commands {
            if self.calls.len() < MAX_COMMANDS || self.calls.contains(&call) {
                self.calls.insert(call);
            } else {
                self.report(&file.path, None, format!("more than {MAX_COMMANDS} commands; the rest is not run"));
            }
        }
        expanded.text
    }

    fn check_border(&self, path: &Path, border: Border<'_>) -> Result<(), String> {
        if border == Border::None {
            return Ok(());
        }
        let real = dunce::canonicalize(path).map_err(|error| format!("cannot be read ({})", error.kind()))?;
        let inside = match border {
            Border::None => true,
            Border::Workspace => self.roots.iter().any(|root| real.starts_with(root)),
            Border::Folder(folder) => dunce::canonicalize(folder).is_ok_and(|folder| real.starts_with(folder)),
        };
        if !inside {
            return Err("leads out of the workspace".to_owned());
        }
        if real.is_file() && holds_keys(&real) {
            return Err("looks like a file of keys".to_owned());
        }
        Ok(())
    }

    /// The files below `start`, sorted, or `start` itself when it is a file. A folder that has an
    /// entry named `unit` is looked at no further.
    pub(super) fn walk(&mut self, start: &Path, unit: Option<&str>, wanted: impl Fn(&Path) -> bool) -> Vec<PathBuf> {
        let border = self.border_of(start);
        let mut found = Vec::new();
        let mut seen = BTreeSet::new();
        let mut entries = 0;
        let mut is_cut = false;
        let mut open = VecDeque::from([(start.to_owned(), 0)]);
        while let Some((path, depth)) = open.pop_front() {
            if found.len() >= MAX_FILES {
                is_cut = true;
                break;
            }
            self.stamp.note(&path);
            let Ok(metadata) = std::fs::metadata(&path) else { continue };
            if metadata.is_file() {
                if depth == 0 || wanted(&path) {
                    found.push(path);
                }
                continue;
            }
            // A link may lead back up, or to what was seen under another name.
            let is_new = dunce::canonicalize(&path).is_ok_and(|real| seen.insert(real));
            if !metadata.is_dir() || !is_new || depth > MAX_DEPTH {
                continue;
            }
            if let Err(why) = self.check_border(&path, border) {
                self.report(&path, None, format!("{why}; it is ignored"));
                continue;
            }
            let mut names = self.names_in(&path, MAX_ENTRIES - entries);
            entries += names.len();
            let holds = |unit: &&str| names.iter().any(|name| name.file_name().is_some_and(|name| name == *unit));
            if let Some(unit) = unit.filter(holds) {
                names = vec![path.join(unit)];
            }
            open.extend(names.into_iter().map(|name| (name, depth + 1)));
        }
        if is_cut || entries >= MAX_ENTRIES {
            self.report(start, None, "too many files; only some are read");
        }
        found.sort();
        found
    }

    /// The visible names of a folder, at most `limit`, sorted.
    fn names_in(&mut self, folder: &Path, limit: usize) -> Vec<PathBuf> {
        let entries = match std::fs::read_dir(folder) {
            Ok(entries) => entries,
            Err(error) => {
                self.report(folder, None, format!("cannot be read ({}); it is ignored", error.kind()));
                return Vec::new();
            }
        };
        let visible = |name: &std::ffi::OsString| {
            let name = name.to_string_lossy();
            !name.starts_with('.') && !name.ends_with('~') && name != "node_modules"
        };
        let names = entries.filter_map(Result::ok).filter(|entry| visible(&entry.file_name()));
        let mut names: Vec<PathBuf> = names.map(|entry| entry.path()).take(limit).collect();
        names.sort();
        names
    }

    /// Where the paths that a configuration names are: `~` is the home folder, a relative one is
    /// looked for in every workspace folder. One that is nowhere is reported.
    pub(super) fn configured(&mut self, paths: &[String], key: &str) -> Vec<PathBuf> {
        let mut found = Vec::new();
        for path in paths {
            let written = Path::new(path);
            let start_anywhere = written.is_absolute() || written.starts_with("~");
            let starts = if start_anywhere { vec![PathBuf::new()] } else { self.roots.clone() };
            let before = found.len();
            for start in starts {
                let Ok(candidate) = resolve(written, &start, self.home.as_deref()) else { continue };
                self.stamp.note(&candidate);
                if candidate.exists() {
                    found.push(candidate);
                }
            }
            if found.len() == before && (start_anywhere || !self.roots.is_empty()) {
                self.report(written, None, format!("`{key}` names it, and it does not exist"));
            }
        }
        found
    }
}

/// The folder of a file.
pub(super) fn directory(file: &Path) -> &Path {
    file.parent().unwrap_or(Path::new(""))
}

/// Whether the name says that keys or passwords are in it.
fn holds_keys(file: &Path) -> bool {
    let name = file.file_name().map(|name| name.to_string_lossy().to_lowercase()).unwrap_or_default();
    let extension = name.rsplit_once('.').map_or("", |(_, extension)| extension);
    let endings = ["env", "pem", "key", "p12", "pfx", "jks", "keystore", "kdbx", "gpg"];
    let beginnings =
        [".env", "id_", ".netrc", "_netrc", ".npmrc", ".pypirc", ".pgpass", ".git-credentials", "credentials"];
    endings.contains(&extension) || beginnings.iter().any(|beginning| name.starts_with(beginning))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_keys_are_known_by_their_names() {
        for name in [".env", ".env.local", "prod.env", "id_rsa", "server.PEM", "x.key", ".netrc", "credentials.json"] {
            assert!(holds_keys(Path::new("/r").join(name).as_path()), "{name}");
        }
        for name in ["AGENTS.md", "environment.md", "keys.md", "identity.txt", "key"] {
            assert!(!holds_keys(Path::new("/r").join(name).as_path()), "{name}");
        }
    }
}
