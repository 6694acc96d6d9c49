//! Linked worktrees of one git repository share their history; this finds the repository.
//!
//! Only files are read, and few small ones: no git runs. A linked worktree has a file `.git` that
//! names its place inside the repository's own `.git`, and that place names the worktree in turn.
//! Both must agree, because the first of them comes with a workspace, which may be a stranger's.

use std::io::Read;
use std::path::{Component, Path, PathBuf};

/// The files that git writes here hold one path.
const MOST_BYTES: u64 = 16 * 1024;

/// The main worktree of the repository that `root` is a linked worktree of. `None` for everything
/// else: ordinary clones, bare repositories, submodules, folders without git.
pub(super) fn main_worktree(root: &Path) -> Option<PathBuf> {
    let link = root.join(".git");
    if !std::fs::symlink_metadata(&link).ok()?.is_file() {
        return None;
    }
    let text = read(&link)?;
    let place = text.lines().find_map(|line| line.strip_prefix("gitdir:"))?;
    let place = normalised(&root.join(place.trim()))?;
    let named_back = normalised(&place.join(first_line(&read(&place.join("gitdir"))?)?))?;
    if dunce::canonicalize(named_back).ok()? != dunce::canonicalize(&link).ok()? {
        return None;
    }
    // A submodule has no such file.
    let common = normalised(&place.join(first_line(&read(&place.join("commondir"))?)?))?;
    let is_in_worktree = common.file_name()? == ".git" && common.is_dir();
    is_in_worktree.then(|| common.parent().map(Path::to_owned)).flatten()
}

/// A path is a line without its end; spaces may belong to it.
fn first_line(text: &str) -> Option<&str> {
    text.lines().find(|line| !line.trim().is_empty())
}

fn read(file: &Path) -> Option<String> {
    let mut text = String::new();
    let read = std::fs::File::open(file).ok()?.take(MOST_BYTES).read_to_string(&mut text);
    read.is_ok().then_some(text)
}

/// Without `.` and `..`, as text: git does not follow links here either.
fn normalised(path: &Path) -> Option<PathBuf> {
    let mut out = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => {
                if !out.pop() {
                    return None;
                }
            }
            other => out.push(other),
        }
    }
    out.is_absolute().then_some(out)
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use super::*;

    struct Repository {
        folder: tempfile::TempDir,
    }

    impl Repository {
        /// A repository `main` with a linked worktree `linked`, as git lays them out.
        fn new() -> Self {
            let repository = Self { folder: tempfile::tempdir().unwrap() };
            repository.write("main/.git/HEAD", "ref: refs/heads/main\n");
            repository.link("main/.git/worktrees/linked", "linked");
            repository
        }

        fn path(&self, name: &str) -> PathBuf {
            self.folder.path().join(name)
        }

        fn write(&self, name: &str, text: &str) {
            std::fs::create_dir_all(self.path(name).parent().unwrap()).unwrap();
            std::fs::write(self.path(name), text).unwrap();
        }

        fn link(&self, place: &str, worktree: &str) {
            let link = format!("{worktree}/.git");
            self.write(&link, &format!("gitdir: {}\n", self.path(place).display()));
            self.write(&format!("{place}/gitdir"), &format!("{}\n", self.path(&link).display()));
            self.write(&format!("{place}/commondir"), "../..\n");
        }

        fn found(&self, root: &str) -> Option<PathBuf> {
            main_worktree(&self.path(root))
        }
    }

    #[test]
    fn a_linked_worktree_leads_to_the_repository() {
        let repository = Repository::new();
        assert_eq!(repository.found("linked"), Some(repository.path("main")));
        assert_eq!(repository.found("main"), None, "an ordinary clone is itself");
        assert_eq!(repository.found("nowhere"), None);
        // Newer versions of git can write relative paths.
        repository.write("linked/.git", "gitdir: ../main/.git/worktrees/linked\n");
        repository.write("main/.git/worktrees/linked/gitdir", "../../../../linked/.git\n");
        assert_eq!(repository.found("linked"), Some(repository.path("main")));
    }

    #[test]
    fn a_worktree_that_the_repository_does_not_know_is_itself() {
        let repository = Repository::new();
        repository
            .write("stranger/.git", &format!("gitdir: {}\n", repository.path("main/.git/worktrees/linked").display()));
        assert_eq!(repository.found("stranger"), None);
        std::fs::rename(repository.path("linked"), repository.path("moved")).unwrap();
        assert_eq!(repository.found("moved"), None, "git itself asks for a repair then");
    }

    #[test]
    fn other_layouts_are_themselves() {
        let repository = Repository::new();
        // A submodule: no `commondir`.
        repository.write("main/.git/modules/sub/HEAD", "");
        repository.write("main/sub/.git", "gitdir: ../.git/modules/sub\n");
        assert_eq!(repository.found("main/sub"), None);
        // A worktree of a bare repository: there is no main worktree.
        repository.write("bare.git/HEAD", "");
        repository.link("bare.git/worktrees/w", "w");
        assert_eq!(repository.found("w"), None);
        for (name, text) in [
            ("a", ""),
            ("b", "gitdir:"),
            ("c", "gitdir: /nowhere/at/all"),
            ("d", "nonsense\n\0"),
            ("e", "gitdir: ../../../../../../../../../.."),
        ] {
            repository.write(&format!("{name}/.git"), text);
            assert_eq!(repository.found(name), None, "{text:?}");
        }
        repository.write("f/.git", &"x".repeat(100_000));
        assert_eq!(repository.found("f"), None);
        std::fs::create_dir_all(repository.path("g")).unwrap();
        std::os::unix::fs::symlink(repository.path("linked/.git"), repository.path("g/.git")).unwrap();
        assert_eq!(repository.found("g"), None, "a link to the link is not git's");
    }

    #[test]
    fn links_on_the_way_do_not_matter() {
        let repository = Repository::new();
        std::os::unix::fs::symlink(repository.path("linked"), repository.path("alias")).unwrap();
        assert_eq!(repository.found("alias"), Some(repository.path("main")));
    }
}
