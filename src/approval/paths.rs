//! Where a path really leads, and whether that is inside of the workspace.
//!
//! A name proves nothing: `root/link/x` may lie anywhere. So links are followed to their end, also
//! those whose target does not exist yet, because a file that is created through one is created
//! there.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::io::ErrorKind;
use std::path::{Component, Path, PathBuf};

use super::key_files::is_key_file;
use crate::tool::TouchedPath;
use crate::workspace::Workspace;

/// More links in a row than this are a circle.
const MOST_LINKS: usize = 40;

/// The folders in which files are read and written without a question, with links resolved.
#[derive(Debug, Clone, Default)]
pub struct Roots {
    folders: Vec<PathBuf>,
}

/// What a path that a call touches turned out to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// As the model wrote it.
    pub path: PathBuf,
    pub is_inside: bool,
    pub is_key_file: bool,
}

impl Roots {
    /// The folders of the workspace, and the one in which long outputs are kept. Looks at the file
    /// system.
    pub fn of(workspace: &Workspace, outputs: Option<&Path>) -> Self {
        let folders = workspace.roots().iter().map(|root| root.path.as_path()).chain(outputs);
        // A folder that cannot be resolved holds nothing.
        Self { folders: folders.filter_map(resolve).collect() }
    }

    /// Follows the path to where it leads. Looks at the file system.
    pub fn place(&self, touched: &TouchedPath) -> Place {
        let real = resolve(&touched.path);
        let is_inside = real.as_deref().is_some_and(|real| self.contain(real));
        let is_key_file = is_key_file(&touched.path) || real.as_deref().is_some_and(is_key_file);
        Place { path: touched.path.clone(), is_inside, is_key_file }
    }

    fn contain(&self, real: &Path) -> bool {
        self.folders.iter().any(|folder| is_within(real, folder, Spelling::of_system()))
    }
}

/// How a file system compares names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Spelling {
    Exact,
    /// Capital and small letters are the same.
    AnyCase,
    /// The same, and paths have drives, two kinds of slashes and a long form.
    Windows,
}

impl Spelling {
    fn of_system() -> Self {
        if cfg!(windows) {
            Self::Windows
        } else if cfg!(target_vendor = "apple") {
            Self::AnyCase
        } else {
            Self::Exact
        }
    }
}

/// Whether `path` is `folder` or lies in it; both are absolute, without links and `..`.
fn is_within(path: &Path, folder: &Path, spelling: Spelling) -> bool {
    match spelling {
        Spelling::Exact => path.starts_with(folder),
        Spelling::AnyCase => {
            let parts = |path: &Path| path.iter().map(|part| part.to_string_lossy().to_lowercase()).collect::<Vec<_>>();
            parts(path).starts_with(&parts(folder))
        }
        Spelling::Windows => match (windows_parts(&path.to_string_lossy()), windows_parts(&folder.to_string_lossy())) {
            (Some(path), Some(folder)) => path.starts_with(&folder),
            _ => false,
        },
    }
}

/// The parts of an absolute Windows path, the drive or the share first; `None` for devices and for
/// names that Windows would read differently.
fn windows_parts(path: &str) -> Option<Vec<String>> {
    let path = path.replace('/', "\\");
    let (prefix, rest) = match path.strip_prefix(r"\\?\").or_else(|| path.strip_prefix(r"\\.\")) {
        Some(long) => match long.get(..4).filter(|start| start.eq_ignore_ascii_case(r"UNC\")) {
            Some(_) => ("share", long.get(4..)?.to_owned()),
            None if path.starts_with(r"\\?\") => ("drive", long.to_owned()),
            None => return None,
        },
        None => match path.strip_prefix(r"\\") {
            Some(share) => ("share", share.to_owned()),
            None => ("drive", path),
        },
    };
    let mut parts = vec![prefix.to_owned()];
    for (index, part) in rest.split('\\').filter(|part| !part.is_empty()).enumerate() {
        let is_drive = index == 0 && prefix == "drive";
        let has_drive = part.len() == 2 && part.ends_with(':') && part.starts_with(|c: char| c.is_ascii_alphabetic());
        // A colon elsewhere names a stream of a file.
        if is_drive != has_drive || !is_drive && part.contains(':') {
            return None;
        }
        // Windows drops dots and blanks at the end of a name.
        let name = part.trim_end_matches(['.', ' ']).to_lowercase();
        if name.is_empty() || part == ".." {
            return None;
        }
        parts.push(name);
    }
    (parts.len() > 1).then_some(parts)
}

/// The absolute path without links, `.` and `..`; what does not exist yet is taken as it is written.
/// `None` if it is relative or cannot be told.
fn resolve(path: &Path) -> Option<PathBuf> {
    if !path.is_absolute() {
        return None;
    }
    let mut real = PathBuf::new();
    let mut open: VecDeque<Step> = steps(path).collect();
    let mut links = 0;
    while let Some(step) = open.pop_front() {
        let name = match step {
            Step::Root(root) => {
                real = root;
                continue;
            }
            // The folder itself is real, so its parent is what the name says.
            Step::Up => {
                real.pop();
                continue;
            }
            Step::Down(name) => name,
        };
        real.push(&name);
        match std::fs::symlink_metadata(&real) {
            Ok(metadata) if metadata.file_type().is_symlink() => {
                links += 1;
                let target = std::fs::read_link(&real).ok().filter(|_| links <= MOST_LINKS)?;
                real.pop();
                for step in steps(&target).collect::<Vec<_>>().into_iter().rev() {
                    open.push_front(step);
                }
            }
            Ok(_) => {}
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {}
            Err(_) => return None,
        }
    }
    Some(real)
}

enum Step {
    Root(PathBuf),
    Up,
    Down(OsString),
}

fn steps(path: &Path) -> impl Iterator<Item = Step> + '_ {
    let mut prefix = PathBuf::new();
    path.components().filter_map(move |component| match component {
        Component::Prefix(drive) => {
            prefix.push(drive.as_os_str());
            None
        }
        Component::RootDir => {
            prefix.push(component.as_os_str());
            Some(Step::Root(prefix.clone()))
        }
        Component::CurDir => None,
        Component::ParentDir => Some(Step::Up),
        Component::Normal(name) => Some(Step::Down(name.to_owned())),
    })
}

#[cfg(test)]
mod tests;
