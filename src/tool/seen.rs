//! What the model of one chat has last seen of each file, so that an edit can be checked against
//! it. In memory only and bounded: a file that was forgotten counts as never seen.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use super::FileText;

/// The whole of what is kept of one chat.
const MAX_BYTES: usize = 32 * 1024 * 1024;
const MAX_FILES: usize = 2_048;
/// Of so many files, the pages that were shown are remembered; and so many gaps between them.
const MAX_PAGED: usize = 64;
const MAX_PAGES: usize = 256;

/// Shared by the calls of one chat. Paths are those of the files themselves, with symlinks resolved.
#[derive(Debug, Default)]
pub struct SeenFiles(Mutex<Inner>);

#[derive(Debug, Default)]
struct Inner {
    files: HashMap<PathBuf, Entry>,
    bytes: usize,
    clock: u64,
    paged: HashMap<PathBuf, Pages>,
    hashes: RandomState,
}

/// The lines that were shown of a content which was not shown whole yet.
#[derive(Debug)]
struct Pages {
    content: u64,
    /// In order and apart from each other.
    shown: Vec<Range<usize>>,
    used: u64,
}

#[derive(Debug)]
struct Entry {
    content: FileText,
    used: u64,
}

impl SeenFiles {
    /// The model has read, got as context, or itself written this content.
    pub fn saw(&self, path: &Path, content: impl Into<FileText>) {
        let content = content.into();
        let mut inner = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        inner.clock += 1;
        let used = inner.clock;
        inner.forget(path);
        if content.len() > MAX_BYTES {
            return;
        }
        while inner.bytes + content.len() > MAX_BYTES || inner.files.len() >= MAX_FILES {
            let Some(oldest) = inner.files.iter().min_by_key(|(_, entry)| entry.used).map(|(path, _)| path.clone())
            else {
                break;
            };
            inner.forget(&oldest);
        }
        inner.bytes += content.len();
        inner.files.insert(path.to_owned(), Entry { content, used });
    }

    /// The model was shown some lines of this content, which has `total`. When it was shown all of
    /// them, page by page and without a change in between, it has seen the content.
    pub fn saw_lines(&self, path: &Path, content: &FileText, shown: Range<usize>, total: usize) {
        let is_all = self.0.lock().unwrap_or_else(PoisonError::into_inner).turn_page(path, content, shown, total);
        if is_all {
            self.saw(path, content.clone());
        }
    }

    /// What the model saw last, if that is known.
    pub fn last(&self, path: &Path) -> Option<FileText> {
        let mut inner = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        inner.clock += 1;
        let used = inner.clock;
        let entry = inner.files.get_mut(path)?;
        entry.used = used;
        Some(entry.content.clone())
    }

    /// The file is gone or no longer what it was.
    pub fn forget(&self, path: &Path) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).forget(path);
    }
}

impl Inner {
    /// Returns whether that was the last page that was missing.
    fn turn_page(&mut self, path: &Path, content: &str, shown: Range<usize>, total: usize) -> bool {
        self.clock += 1;
        let used = self.clock;
        let content = self.hashes.hash_one(content);
        let mut pages =
            self.paged.remove(path).filter(|pages| pages.content == content).map_or(vec![], |old| old.shown);
        pages.push(shown);
        pages.sort_unstable_by_key(|page| page.start);
        pages.dedup_by(|next, page| {
            let meets = next.start <= page.end;
            if meets {
                page.end = page.end.max(next.end);
            }
            meets
        });
        pages.truncate(MAX_PAGES);
        if pages.first().is_some_and(|page| *page == (0..total)) {
            return true;
        }
        if self.paged.len() >= MAX_PAGED
            && let Some(oldest) = self.paged.iter().min_by_key(|(_, pages)| pages.used).map(|(path, _)| path.clone())
        {
            self.paged.remove(&oldest);
        }
        self.paged.insert(path.to_owned(), Pages { content, shown: pages, used });
        false
    }

    fn forget(&mut self, path: &Path) {
        self.paged.remove(path);
        if let Some(entry) = self.files.remove(path) {
            self.bytes -= entry.content.len();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_of_one_content_add_up() {
        let seen = SeenFiles::default();
        let path = Path::new("/a");
        seen.saw_lines(path, &"old".into(), 0..4, 10);
        seen.saw_lines(path, &"new".into(), 4..10, 10);
        assert_eq!(seen.last(path), None, "it changed in between");
        seen.saw_lines(path, &"new".into(), 0..2, 10);
        assert_eq!(seen.last(path), None);
        seen.saw_lines(path, &"new".into(), 1..5, 10);
        assert_eq!(seen.last(path).as_deref(), Some("new"));
        seen.saw_lines(path, &"newer".into(), 0..1, 2);
        assert_eq!(seen.last(path).as_deref(), Some("new"), "a page of something else changes nothing");
        seen.saw_lines(path, &"".into(), 0..0, 0);
        assert_eq!(seen.last(path).as_deref(), Some(""));
        for n in 0..2 * MAX_PAGED {
            seen.saw_lines(&PathBuf::from(format!("/{n}")), &"x".into(), 0..1, 2);
        }
        for n in 0..2 * MAX_PAGES {
            seen.saw_lines(path, &"y".into(), 2 * n..2 * n + 1, 10_000);
        }
        let inner = seen.0.lock().unwrap();
        assert!(inner.paged.len() <= MAX_PAGED && inner.paged[path].shown.len() <= MAX_PAGES);
    }

    #[test]
    fn the_least_used_is_forgotten_first() {
        let seen = SeenFiles::default();
        let big = FileText::of("x".repeat(MAX_BYTES / 2));
        seen.saw(Path::new("/a"), big.clone());
        seen.saw(Path::new("/b"), big);
        assert!(seen.last(Path::new("/a")).is_some());
        seen.saw(Path::new("/c"), "small");
        assert!(seen.last(Path::new("/b")).is_none());
        assert!(seen.last(Path::new("/a")).is_some());
        seen.saw(Path::new("/a"), "y".repeat(MAX_BYTES + 1));
        assert!(seen.last(Path::new("/a")).is_none(), "too large to be kept, so no longer known");
        seen.forget(Path::new("/c"));
        assert_eq!(seen.last(Path::new("/c")), None);
    }
}
