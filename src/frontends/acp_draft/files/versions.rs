//! A number for each file that grows whenever the file is another one than before, so that a client
//! notices that somebody else has changed it.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

/// What identifies a content.
pub(in super::super) type Digest = [u8; 32];

/// Of so many files the version is known.
const MOST_FILES: usize = 4_096;

/// The versions of what was served. Versions of one file never go back: one that was forgotten goes
/// on above every version that was forgotten so far.
#[derive(Debug, Default)]
pub(super) struct Versions {
    files: HashMap<PathBuf, Known>,
    first: u64,
    clock: u64,
}

#[derive(Debug)]
struct Known {
    version: u64,
    digest: Digest,
    used: u64,
}

impl Versions {
    /// The version of a file that has this content now.
    pub(super) fn of(&mut self, path: &Path, digest: Digest) -> u64 {
        self.clock += 1;
        if let Some(known) = self.files.get_mut(path) {
            known.used = self.clock;
            if known.digest != digest {
                known.digest = digest;
                known.version += 1;
            }
            return known.version;
        }
        if self.files.len() >= MOST_FILES {
            self.forget_oldest();
        }
        let known = Known { version: self.first, digest, used: self.clock };
        self.files.insert(path.to_owned(), known);
        self.first
    }

    fn forget_oldest(&mut self) {
        let oldest = self.files.iter().min_by_key(|(_, known)| known.used).map(|(path, _)| path.clone());
        if let Some(forgotten) = oldest.and_then(|path| self.files.remove(&path)) {
            self.first = self.first.max(forgotten.version + 1);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn digest(content: u8) -> Digest {
        [content; 32]
    }

    #[test]
    fn a_version_grows_with_every_change_and_with_nothing_else() {
        let mut versions = Versions::default();
        let path = Path::new("/a");
        let seen: Vec<u64> = [1, 1, 2, 2, 1].map(|content| versions.of(path, digest(content))).to_vec();
        assert_eq!(seen, [0, 0, 1, 1, 2]);
        assert_eq!(versions.of(Path::new("/b"), digest(1)), 0);
    }

    #[test]
    fn what_was_forgotten_never_gets_an_old_version_again() {
        let mut versions = Versions::default();
        let path = Path::new("/a");
        for content in 0..5 {
            versions.of(path, digest(content));
        }
        for other in 0..MOST_FILES {
            versions.of(Path::new(&format!("/{other}")), digest(0));
        }
        assert!(versions.files.len() <= MOST_FILES && !versions.files.contains_key(path));
        assert_eq!(versions.of(path, digest(0)), 5, "it had 4 before");
    }

    proptest! {
        #[test]
        fn the_same_version_means_the_same_content(reads in prop::collection::vec((0..3_u8, 0..3_u8), 0..60)) {
            let mut versions = Versions::default();
            let mut last: HashMap<u8, (u64, u8)> = HashMap::new();
            for (file, content) in reads {
                let version = versions.of(Path::new(&file.to_string()), digest(content));
                if let Some((before, was)) = last.insert(file, (version, content)) {
                    prop_assert_eq!(version == before, content == was);
                    prop_assert!(version >= before);
                }
            }
        }
    }
}
