//! Finds what is in a workspace, by the rules of its ignore files.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use ignore::{DirEntry, IncrementalIgnore, ParallelVisitor, ParallelVisitorBuilder, WalkBuilder, WalkState};

use super::table::{Kind, Table};
use super::watch::Watcher;

/// Where version control keeps its own files; nobody means those.
const NEVER: [&str; 4] = [".git", ".hg", ".jj", ".svn"];
/// More threads would only wait for each other.
const MOST_THREADS: usize = 4;
/// What is found is handed over in portions of this size, so that a search sees it early.
const PORTION: usize = 1_024;

pub(super) fn is_never(name: &str) -> bool {
    NEVER.contains(&name)
}

/// How many threads work at once on what can be divided.
pub(super) fn threads() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from).min(MOST_THREADS)
}

/// A folder of the workspace as it is now.
#[derive(Debug, Clone)]
pub(super) struct Root {
    pub(super) number: u16,
    /// With links resolved: links below are not followed, so this one must not be one.
    pub(super) real: PathBuf,
    pub(super) ignores: bool,
}

impl Root {
    /// The absolute path of what is called `path` below this root.
    pub(super) fn absolute(&self, path: &str) -> PathBuf {
        if path.is_empty() { self.real.clone() } else { self.real.join(path) }
    }

    fn builder(&self) -> WalkBuilder {
        walk_builder(&self.real, self.ignores)
    }

    /// Tells for single paths whether they are ignored, as the rules are now.
    pub(super) fn rules(&self) -> Option<IncrementalIgnore> {
        self.builder().build_matchers().pop()
    }

    /// Walks the whole root, or only what is at or below one of `only`. Every directory is watched
    /// before it is read. `take` gets what is found, in portions, until it wants no more.
    pub(super) fn walk(
        &self,
        only: &[String],
        watcher: Option<&Arc<Watcher>>,
        stop: &AtomicBool,
        take: &(dyn Fn(&Table) -> bool + Sync),
    ) {
        let below = Arc::new(Below { root: self.clone(), only: only.to_vec() });
        if let (true, Some(watcher)) = (only.is_empty(), watcher) {
            watcher.add(self.number, "", &self.real);
        }
        let (shared, watcher) = (Arc::clone(&below), watcher.cloned());
        let mut builder = self.builder();
        builder.threads(threads()).filter_entry(move |entry| {
            let Some(path) = shared.relative(entry.path()) else { return false };
            let is_wanted = shared.is_wanted(path);
            if entry.file_name().to_str().is_none_or(is_never) || !is_wanted && !shared.is_on_the_way(path) {
                return false;
            }
            if let (true, true, Some(watcher)) = (is_wanted, is_directory(entry), &watcher) {
                watcher.add(shared.root.number, path, entry.path());
            }
            true
        });
        builder.build_parallel().visit(&mut Visitors { below: &below, stop, take });
    }
}

/// A walk by the rules of the index, of any directory.
pub(in crate::context) fn walk_builder(directory: &Path, ignores: bool) -> WalkBuilder {
    let mut builder = WalkBuilder::new(directory);
    // Outside of a repository the files above are somebody else's business: a list of everything in
    // a home folder would make each project in it empty.
    let parents = ignores && directory.ancestors().any(|above| above.join(".git").exists());
    builder
        .standard_filters(false)
        .follow_links(false)
        .ignore(ignores)
        .git_ignore(ignores)
        .git_exclude(ignores)
        .git_global(ignores)
        .parents(parents)
        .require_git(false)
        .current_dir(directory);
    builder
}

/// What a path leads to, if that is something that can be read.
pub(super) fn kind_of(path: &Path, file_type: std::fs::FileType) -> Option<Kind> {
    let file_type = if file_type.is_symlink() { std::fs::metadata(path).ok()?.file_type() } else { file_type };
    match (file_type.is_file(), file_type.is_dir()) {
        (true, _) => Some(Kind::File),
        (_, true) => Some(Kind::Directory),
        _ => None,
    }
}

fn is_directory(entry: &DirEntry) -> bool {
    entry.file_type().is_some_and(|file_type| file_type.is_dir())
}

/// Which paths below a root are meant.
#[derive(Debug)]
struct Below {
    root: Root,
    only: Vec<String>,
}

impl Below {
    /// Without the root; `None` for the root itself and for what cannot be sent to any client.
    fn relative<'a>(&self, path: &'a Path) -> Option<&'a str> {
        path.strip_prefix(&self.root.real).ok()?.to_str().filter(|path| !path.is_empty())
    }

    fn is_wanted(&self, path: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|only| is_at_or_below(path, only))
    }

    fn is_on_the_way(&self, path: &str) -> bool {
        self.only.iter().any(|only| is_at_or_below(only, path))
    }
}

/// Whether `path` is `directory` or something in it.
pub(super) fn is_at_or_below(path: &str, directory: &str) -> bool {
    path.strip_prefix(directory).is_some_and(|rest| rest.is_empty() || rest.starts_with('/') || directory.is_empty())
}

struct Visitors<'a> {
    below: &'a Below,
    stop: &'a AtomicBool,
    take: &'a (dyn Fn(&Table) -> bool + Sync),
}

impl<'a> ParallelVisitorBuilder<'a> for Visitors<'a> {
    fn build(&mut self) -> Box<dyn ParallelVisitor + 'a> {
        Box::new(Visitor { below: self.below, stop: self.stop, take: self.take, portion: Table::default() })
    }
}

struct Visitor<'a> {
    below: &'a Below,
    stop: &'a AtomicBool,
    take: &'a (dyn Fn(&Table) -> bool + Sync),
    portion: Table,
}

impl ParallelVisitor for Visitor<'_> {
    fn visit(&mut self, entry: Result<DirEntry, ignore::Error>) -> WalkState {
        if self.stop.load(Ordering::Relaxed) {
            return WalkState::Quit;
        }
        // What cannot be read is not offered; the walk goes on.
        let Ok(entry) = entry else { return WalkState::Continue };
        let Some(path) = self.below.relative(entry.path()).filter(|path| self.below.is_wanted(path)) else {
            return WalkState::Continue;
        };
        let Some(kind) = entry.file_type().and_then(|file_type| kind_of(entry.path(), file_type)) else {
            return WalkState::Continue;
        };
        let path = if cfg!(windows) { path.replace('\\', "/").into() } else { std::borrow::Cow::Borrowed(path) };
        self.portion.push(self.below.root.number, &path, kind);
        if self.portion.len() < PORTION || self.hand_over() { WalkState::Continue } else { WalkState::Quit }
    }
}

impl Visitor<'_> {
    fn hand_over(&mut self) -> bool {
        (self.take)(&std::mem::take(&mut self.portion))
    }
}

impl Drop for Visitor<'_> {
    fn drop(&mut self) {
        if self.portion.len() > 0 && !self.stop.load(Ordering::Relaxed) {
            self.hand_over();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_below_whole_parts_only() {
        for (path, directory, expected) in
            [("a/b", "a", true), ("a", "a", true), ("ab", "a", false), ("a", "a/b", false), ("a", "", true)]
        {
            assert_eq!(is_at_or_below(path, directory), expected, "{path} {directory}");
        }
    }
}
