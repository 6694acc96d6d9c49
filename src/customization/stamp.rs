//! Whether anything that was read has changed since, without reading it again.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// What every file and folder that was looked at looked like, also those that were not there.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Stamp(BTreeMap<PathBuf, Option<Mark>>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct Mark {
    modified: Option<SystemTime>,
    length: u64,
    /// Editors replace a file as a whole, which keeps neither of these two.
    #[cfg(unix)]
    identity: (u64, i64, i64),
}

impl Stamp {
    /// Remembers how `path` looks now; the first look counts.
    pub(super) fn note(&mut self, path: &Path) {
        if !self.0.contains_key(path) {
            self.0.insert(path.to_owned(), look(path));
        }
    }

    pub(super) fn is_stale(&self) -> bool {
        self.0.iter().any(|(path, mark)| look(path) != *mark)
    }
}

fn look(path: &Path) -> Option<Mark> {
    let metadata = std::fs::metadata(path).ok()?;
    #[cfg(unix)]
    let identity = {
        use std::os::unix::fs::MetadataExt;
        (metadata.ino(), metadata.ctime(), metadata.ctime_nsec())
    };
    Some(Mark {
        modified: metadata.modified().ok(),
        length: metadata.len(),
        #[cfg(unix)]
        identity,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn appearing_changing_and_vanishing_is_noticed() {
        let folder = tempfile::tempdir().unwrap();
        let (file, missing) = (folder.path().join("f"), folder.path().join("m"));
        std::fs::write(&file, "1").unwrap();
        let stamp = || {
            let mut stamp = Stamp::default();
            stamp.note(&file);
            stamp.note(&missing);
            stamp
        };
        let before = stamp();
        assert!(!before.is_stale());
        std::fs::write(&file, "12").unwrap();
        assert!(before.is_stale());
        let before = stamp();
        std::fs::write(&missing, "").unwrap();
        assert!(before.is_stale());
        let before = stamp();
        std::fs::remove_file(&file).unwrap();
        assert!(before.is_stale());
    }

    #[cfg(unix)]
    #[test]
    fn a_file_that_was_replaced_is_noticed_whatever_its_size_and_time() {
        let folder = tempfile::tempdir().unwrap();
        let (file, other) = (folder.path().join("f"), folder.path().join("g"));
        std::fs::write(&file, "1").unwrap();
        std::fs::write(&other, "2").unwrap();
        let time = std::fs::metadata(&file).unwrap().modified().unwrap();
        std::fs::File::options().write(true).open(&other).unwrap().set_modified(time).unwrap();
        let mut stamp = Stamp::default();
        stamp.note(&file);
        std::fs::rename(&other, &file).unwrap();
        assert!(stamp.is_stale());
    }
}
