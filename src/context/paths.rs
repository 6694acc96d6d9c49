//! What a path means that somebody typed, and reading what is there without waiting for ever.

use std::path::{Component, Path, PathBuf};

use crate::workspace::path_from_uri;

/// Where relative paths begin, and where `~` leads.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Places {
    pub roots: Vec<PathBuf>,
    pub home: Option<PathBuf>,
}

impl Places {
    /// The absolute paths that `written` may mean: one, or one for each root when it is relative.
    pub(super) fn meant_by(&self, written: &str) -> Vec<PathBuf> {
        if written.is_empty() || written.contains('\0') {
            return Vec::new();
        }
        if let Some(below) = written.strip_prefix('~')
            && (below.is_empty() || below.starts_with('/'))
        {
            return self.home.iter().map(|home| without_dots(&home.join(below.trim_start_matches('/')))).collect();
        }
        if Path::new(written).is_absolute() {
            return vec![without_dots(Path::new(written))];
        }
        if written.starts_with("file:") {
            return path_from_uri(written).into_iter().collect();
        }
        self.roots.iter().map(|root| without_dots(&root.join(written))).collect()
    }
}

/// The path without `.` and `..`, by its name alone.
pub(super) fn without_dots(path: &Path) -> PathBuf {
    let mut clean = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => drop(clean.pop()),
            other => clean.push(other),
        }
    }
    clean
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn paths_are_absolute_at_home_or_below_the_roots() {
        let places = Places { roots: vec!["/w/one".into(), "/w/two".into()], home: Some("/home/me".into()) };
        for (written, expected) in [
            ("/a/./b/../c/", &["/a/c"][..]),
            ("~", &["/home/me"]),
            ("~/x", &["/home/me/x"]),
            ("~x", &["/w/one/~x", "/w/two/~x"]),
            ("src/a.rs", &["/w/one/src/a.rs", "/w/two/src/a.rs"]),
            ("./a", &["/w/one/a", "/w/two/a"]),
            ("../a", &["/w/a", "/w/a"]),
            ("file:///a%20b", &["/a b"]),
            ("", &[]),
            ("a\0b", &[]),
        ] {
            let meant: Vec<String> = places.meant_by(written).iter().map(|path| path.display().to_string()).collect();
            assert_eq!(meant, expected, "{written}");
        }
        assert_eq!(Places::default().meant_by("~/x"), Vec::<PathBuf>::new());
        assert_eq!(Places::default().meant_by("x"), Vec::<PathBuf>::new());
    }
}
