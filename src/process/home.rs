//! The user's home, where programs run when nothing says where.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

static HOME: OnceLock<PathBuf> = OnceLock::new();

/// Says where it is, which only the start of the program reads from the environment. The first word
/// counts.
pub fn use_home(path: PathBuf) {
    let _ = HOME.set(path);
}

/// `None` before [`use_home`], and where there is none.
pub fn home() -> Option<&'static Path> {
    HOME.get().map(PathBuf::as_path)
}
