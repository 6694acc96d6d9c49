//! What the model of one chat has last seen of each file, so that an edit can be checked against
//! it. In memory only and bounded: a file that was forgotten counts as never seen.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// The whole of what is kept of one chat.
const MAX_BYTES: usize = 32 * 1024 * 1024;
const MAX_FILES: usize = 2_048;

/// Shared by the calls of one chat. Paths are those of the files themselves, with symlinks resolved.
#[derive(Debug, Default)]
pub struct SeenFiles(Mutex<Inner>);

#[derive(Debug, Default)]
struct Inner {
    files: HashMap<PathBuf, Entry>,
    bytes: usize,
    clock: u64,
}

#[derive(Debug)]
struct Entry {
    content: Arc<str>,
    used: u64,
}

impl SeenFiles {
    /// The model has read, got as context, or itself written this content.
    pub fn saw(&self, path: &Path, content: Arc<str>) {
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

    /// What the model saw last, if that is known.
    pub fn last(&self, path: &Path) -> Option<Arc<str>> {
        let mut inner = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        inner.clock += 1;
        let used = inner.clock;
        let entry = inner.files.get_mut(path)?;
        entry.used = used;
        Some(Arc::clone(&entry.content))
    }

    /// The file is gone or no longer what it was.
    pub fn forget(&self, path: &Path) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).forget(path);
    }
}

impl Inner {
    fn forget(&mut self, path: &Path) {
        if let Some(entry) = self.files.remove(path) {
            self.bytes -= entry.content.len();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_used_is_forgotten_first() {
        let seen = SeenFiles::default();
        let big: Arc<str> = "x".repeat(MAX_BYTES / 2).into();
        seen.saw(Path::new("/a"), Arc::clone(&big));
        seen.saw(Path::new("/b"), Arc::clone(&big));
        assert!(seen.last(Path::new("/a")).is_some());
        seen.saw(Path::new("/c"), "small".into());
        assert!(seen.last(Path::new("/b")).is_none());
        assert!(seen.last(Path::new("/a")).is_some());
        seen.saw(Path::new("/a"), "y".repeat(MAX_BYTES + 1).into());
        assert!(seen.last(Path::new("/a")).is_none(), "too large to be kept, so no longer known");
        seen.forget(Path::new("/c"));
        assert_eq!(seen.last(Path::new("/c")), None);
    }
}
