//! What a model means by a path. It should be absolute; a `file:` URI and a path in the workspace
//! are understood too.

use std::io;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use super::blocking;
use crate::base::text::{edit_distance, file_name};
use crate::tool::{Access, ToolContext, TouchedPath};
use crate::workspace::{self, Workspace};

/// As many links may follow each other, as in the kernel.
const MOST_LINKS: usize = 40;
/// So many names of a folder are compared with one that is not there.
const MOST_NAMES: usize = 2_000;
const MOST_SUGGESTIONS: usize = 5;

/// A file that a call is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Target {
    /// Absolute, as the model wrote it.
    pub(super) written: PathBuf,
    /// The file itself, behind all links. It need not exist.
    pub(super) real: PathBuf,
}

impl Target {
    pub(super) fn touched(&self, access: Access) -> TouchedPath {
        TouchedPath { path: self.written.clone(), access }
    }

    /// The names by which an editor may know the file, the likelier one first.
    pub(super) fn names(&self) -> Vec<PathBuf> {
        let climbs = self.written.components().any(|part| part == Component::ParentDir);
        let mut names = Vec::with_capacity(2);
        if !climbs {
            names.push(self.written.clone());
        }
        if climbs || self.written != self.real {
            names.push(self.real.clone());
        }
        names
    }
}

/// The absolute path that is meant. Looks at the disk for a relative one.
pub(super) async fn resolve(text: &str, context: &ToolContext) -> Result<PathBuf, String> {
    if let Some(path) = absolute(text)? {
        return Ok(path);
    }
    let (text, workspace) = (text.to_owned(), Arc::clone(&context.workspace));
    blocking(&context.stop, move || in_workspace(&text, &workspace)).await
}

/// The file that is meant, followed through its links.
pub(super) async fn target(text: &str, context: &ToolContext) -> Result<Target, String> {
    let written = resolve(text, context).await?;
    blocking(&context.stop, move || target_of(written)).await
}

pub(super) fn target_of(written: PathBuf) -> Result<Target, String> {
    match real(&written, MOST_LINKS) {
        Ok(real) => Ok(Target { written, real }),
        Err(error) => Err(format!("{}: {}", written.display(), in_words(&error))),
    }
}

fn absolute(text: &str) -> Result<Option<PathBuf>, String> {
    if text.trim().is_empty() {
        return Err("The path is empty.".to_owned());
    }
    if text.contains('\0') {
        return Err("The path contains a null character.".to_owned());
    }
    let is_uri = text.get(..5).is_some_and(|start| start.eq_ignore_ascii_case("file:"));
    if is_uri {
        return workspace::path_from_uri(text).map(Some).map_err(|reason| format!("{text}: {reason}."));
    }
    let path = Path::new(text);
    // Collecting the parts drops slashes at the end and `.` in the middle.
    Ok(path.is_absolute().then(|| path.components().collect()))
}

fn in_workspace(text: &str, workspace: &Workspace) -> Result<PathBuf, String> {
    if text == "~" || text.starts_with("~/") {
        return Err(format!("{text}: `~` is not expanded; give the absolute path."));
    }
    let candidates: Vec<PathBuf> =
        workspace.roots().iter().map(|root| root.path.join(text).components().collect()).collect();
    let there: Vec<&PathBuf> = candidates.iter().filter(|path| path.symlink_metadata().is_ok()).collect();
    match (there.as_slice(), candidates.as_slice()) {
        ([one], _) => Ok((*one).clone()),
        ([], [one]) => Ok(one.clone()),
        ([], []) => Err(format!("{text} is relative, and there is no workspace folder; give the absolute path.")),
        ([], _) => Err(format!(
            "{text} is relative and in none of the {} workspace folders; give the absolute path.",
            candidates.len()
        )),
        (several, _) => {
            let list: Vec<String> =
                several.iter().take(MOST_SUGGESTIONS).map(|path| path.display().to_string()).collect();
            Err(format!("{text} could be one of: {}. Give the absolute path.", list.join(", ")))
        }
    }
}

/// Follows all links, also those that lead to nothing yet; of what does not exist, the part that
/// does is followed.
fn real(path: &Path, links: usize) -> io::Result<PathBuf> {
    match dunce::canonicalize(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        done => return done,
    }
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(io::ErrorKind::NotFound.into());
    };
    match path.read_link() {
        Ok(_) if links == 0 => Err(io::Error::other("its links lead in a circle")),
        Ok(leads_to) => real(&parent.join(leads_to), links - 1),
        Err(_) => Ok(real(parent, links)?.join(name)),
    }
}

/// `path` as seen from the workspace folder that it lies in.
pub(super) fn from_root(path: &Path, workspace: &Workspace) -> String {
    let inside = workspace.roots().iter().filter_map(|root| path.strip_prefix(&root.path).ok());
    let shortest = inside.min_by_key(|rest| rest.as_os_str().len());
    match shortest {
        Some(rest) if rest.as_os_str().is_empty() => file_name(path),
        Some(rest) => rest.display().to_string(),
        None => path.display().to_string(),
    }
}

/// That there is nothing at `path`, with what might have been meant.
pub(super) fn not_found(path: &Path) -> String {
    let shown = path.display();
    let Some(parent) = path.parent() else { return format!("{shown} does not exist.") };
    let Ok(entries) = parent.read_dir() else {
        return format!("{shown} does not exist; there is no folder {}.", parent.display());
    };
    let wanted = file_name(path).to_lowercase();
    let mut alike: Vec<String> = entries
        .take(MOST_NAMES)
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter(|name| {
            let name = name.to_lowercase();
            name.len() <= 128 && wanted.len() <= 128 && edit_distance(&name, &wanted) <= 1 + wanted.len() / 6
        })
        .collect();
    alike.sort_unstable();
    alike.truncate(MOST_SUGGESTIONS);
    if alike.is_empty() {
        format!("{shown} does not exist.")
    } else {
        format!("{shown} does not exist; the folder has {}.", alike.join(", "))
    }
}

/// What went wrong, for people and models.
pub(super) fn in_words(error: &io::Error) -> String {
    let words = match error.kind() {
        io::ErrorKind::NotFound => "it does not exist",
        io::ErrorKind::PermissionDenied => "permission denied",
        io::ErrorKind::NotADirectory => "a part of the path is a file, not a folder",
        io::ErrorKind::IsADirectory => "it is a folder",
        io::ErrorKind::ReadOnlyFilesystem => "the file system is read-only",
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => "the disk is full",
        io::ErrorKind::InvalidFilename => "the name is too long or not allowed",
        io::ErrorKind::WouldBlock => "reading it would wait for something else",
        _ => return error.to_string(),
    };
    words.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tools::files::testing::workspace;

    #[test]
    fn a_relative_path_is_in_the_folder_that_has_it() {
        let (one, two) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        std::fs::write(one.path().join("both"), "").unwrap();
        std::fs::write(two.path().join("both"), "").unwrap();
        std::fs::write(two.path().join("second"), "").unwrap();
        let several = workspace(&[one.path(), two.path()]);
        assert_eq!(in_workspace("./second", &several).unwrap(), two.path().join("second"));
        let problem = in_workspace("both", &several).unwrap_err();
        assert!(problem.contains(one.path().to_str().unwrap()) && problem.contains("could be one of"), "{problem}");
        assert!(in_workspace("neither", &several).unwrap_err().contains("none of the 2 workspace folders"));
        assert_eq!(in_workspace("new", &workspace(&[one.path()])).unwrap(), one.path().join("new"));
        assert!(in_workspace("new", &workspace(&[])).unwrap_err().contains("no workspace folder"));
        assert!(in_workspace("~/x", &several).unwrap_err().contains("not expanded"));
    }

    #[cfg(unix)]
    #[test]
    fn absolute_paths_and_uris() {
        for (text, expected) in [
            ("/a/./b//c/", Ok(Some("/a/b/c"))),
            ("/a/../b", Ok(Some("/a/../b"))),
            ("file:///a%20b", Ok(Some("/a b"))),
            ("FILE:/a", Ok(Some("/a"))),
            ("a/b", Ok(None)),
            ("file", Ok(None)),
            ("é:x", Ok(None)),
            ("file:relative", Err(())),
            (" ", Err(())),
            ("/a\0", Err(())),
        ] {
            let found = absolute(text).map_err(drop);
            assert_eq!(found, expected.map(|path| path.map(PathBuf::from)), "{text:?}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn links_are_followed_as_far_as_they_lead() {
        use std::os::unix::fs::symlink;
        let folder = tempfile::tempdir().unwrap();
        let root = dunce::canonicalize(folder.path()).unwrap();
        symlink("target/deep", root.join("link")).unwrap();
        symlink("one", root.join("two")).unwrap();
        symlink("two", root.join("one")).unwrap();
        let real = |name: &str| target_of(root.join(name)).map(|target| target.real);
        assert_eq!(real("link/new"), Ok(root.join("target/deep/new")), "before there is anything");
        std::fs::create_dir_all(root.join("target/deep")).unwrap();
        assert_eq!(real("link/../other"), Ok(root.join("target/other")));
        assert_eq!(real("no/such/file"), Ok(root.join("no/such/file")));
        assert!(real("one").is_err() && real("one/below").is_err());
        let target = target_of(root.join("link/../other")).unwrap();
        assert_eq!(target.names(), [root.join("target/other")], "an editor knows no way around");
        let target = target_of(root.join("link")).unwrap();
        assert_eq!(target.names(), [root.join("link"), root.join("target/deep")]);
    }

    #[test]
    fn names_that_are_nearly_right_are_suggested() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("Main.rs"), "").unwrap();
        std::fs::write(folder.path().join("other.txt"), "").unwrap();
        assert!(not_found(&folder.path().join("main.rs")).ends_with("does not exist; the folder has Main.rs."));
        assert!(not_found(&folder.path().join("entirely-else")).ends_with("entirely-else does not exist."));
        assert!(not_found(&folder.path().join("no/main.rs")).contains("there is no folder"));
    }

    #[test]
    fn a_summary_shows_the_short_path() {
        let workspace = workspace(&[Path::new("/w"), Path::new("/w/inner")]);
        for (path, expected) in [("/w/a/b", "a/b"), ("/w/inner/b", "b"), ("/w", "w"), ("/x/y", "/x/y")] {
            assert_eq!(from_root(Path::new(path), &workspace), expected);
        }
    }
}
