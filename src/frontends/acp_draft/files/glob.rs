//! Finds the files of a workspace whose paths match a pattern.

use std::path::{Path, PathBuf};

use globset::GlobBuilder;
use ignore::WalkBuilder;

/// More than anybody looks at.
const MOST_MATCHES: usize = 10_000;
/// A walk that has seen so many entries is broken off.
const MOST_ENTRIES: usize = 2_000_000;

/// Why there is no list.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum GlobError {
    Pattern(String),
    TooMany(&'static str),
}

/// The files below these folders, sorted and absolute. `*` stays inside of a folder, `**` does not; a
/// pattern that is not absolute is seen from each folder. Ignored files and `.git` are left out.
pub(super) fn search(roots: &[PathBuf], pattern: &str) -> Result<Vec<PathBuf>, GlobError> {
    if pattern.trim().is_empty() {
        return Err(GlobError::Pattern("the pattern is empty".to_owned()));
    }
    let pattern = pattern.strip_prefix("./").unwrap_or(pattern);
    let is_absolute = Path::new(pattern).is_absolute();
    let glob = GlobBuilder::new(pattern).literal_separator(true).build();
    let matcher = glob.map_err(|error| GlobError::Pattern(error.to_string()))?.compile_matcher();
    let mut found = Vec::new();
    let mut entries = 0;
    for root in roots {
        let walk = WalkBuilder::new(root)
            .hidden(false)
            .require_git(false)
            .filter_entry(|entry| entry.file_name() != ".git")
            .build();
        for entry in walk.flatten() {
            entries += 1;
            if entries > MOST_ENTRIES {
                return Err(GlobError::TooMany("the folder has too many files to look at all of them"));
            }
            if !entry.file_type().is_some_and(|kind| kind.is_file()) {
                continue;
            }
            let seen = if is_absolute { entry.path() } else { entry.path().strip_prefix(root).unwrap_or(entry.path()) };
            if matcher.is_match(seen) {
                if found.len() == MOST_MATCHES {
                    return Err(GlobError::TooMany("more than 10000 files match; a narrower pattern is needed"));
                }
                found.push(entry.into_path());
            }
        }
    }
    found.sort_unstable();
    found.dedup();
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_find_what_they_say() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        std::fs::create_dir_all(root.join("src/deep")).unwrap();
        std::fs::create_dir_all(root.join(".git")).unwrap();
        std::fs::create_dir_all(root.join("target")).unwrap();
        for file in ["a.rs", "src/b.rs", "src/deep/c.rs", "src/d.txt", ".git/x.rs", "target/y.rs", ".hidden.rs"] {
            std::fs::write(root.join(file), "").unwrap();
        }
        std::fs::write(root.join(".gitignore"), "target/\n").unwrap();
        let roots = [root.to_owned()];
        let found = |pattern: &str| -> Vec<String> {
            let name = |path: PathBuf| path.strip_prefix(root).unwrap().display().to_string();
            search(&roots, pattern).unwrap().into_iter().map(name).collect()
        };
        assert_eq!(found("*.rs"), [".hidden.rs", "a.rs"]);
        assert_eq!(found("./src/*.rs"), ["src/b.rs"]);
        assert_eq!(found("**/*.rs"), [".hidden.rs", "a.rs", "src/b.rs", "src/deep/c.rs"]);
        assert_eq!(found("src/**/*.{rs,txt}"), ["src/b.rs", "src/d.txt", "src/deep/c.rs"]);
        assert_eq!(found(&format!("{}/src/*", root.display())), ["src/b.rs", "src/d.txt"]);
        assert_eq!(found("nothing"), Vec::<String>::new());
        for bad in ["[", "", " "] {
            assert!(matches!(search(&roots, bad), Err(GlobError::Pattern(_))), "{bad:?}");
        }
    }
}
