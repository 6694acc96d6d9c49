//! Where the guard is: the small process between us and each program we start.
//!
//! What it does is in the crate `process_guard`. It is the program `eca-guard` beside ours, because
//! there is one per running program and ours is large; without it, ours does the same. On other
//! systems than Linux programs are started directly in a process group of their own.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use process_guard::Origin;
use tokio::process::Command;

pub use process_guard::run_if_asked;

/// The name of the small program.
const SMALL: &str = "eca-guard";

#[derive(Debug)]
struct Executables {
    ours: PathBuf,
    /// What another version of the guard turns to.
    origin: PathBuf,
    small: Option<PathBuf>,
}

static EXECUTABLES: OnceLock<Executables> = OnceLock::new();

/// Says which executable the server is: in tests and benchmarks, the one under test. The first word
/// counts.
pub fn use_executable(path: PathBuf) {
    let _ = EXECUTABLES.set(Executables { small: beside(&path), origin: path.clone(), ours: path });
}

/// Says where the executable of this process is. That place may hold another version before long; the
/// kernel's link to what runs here does not.
pub fn use_own_executable(path: PathBuf) {
    let running = PathBuf::from(format!("/proc/{}/exe", std::process::id()));
    let origin = if running.exists() { running } else { path.clone() };
    let _ = EXECUTABLES.set(Executables { small: beside(&path), origin, ours: path });
}

fn executables() -> io::Result<&'static Executables> {
    EXECUTABLES.get().ok_or_else(|| io::Error::other("no guard executable is known"))
}

/// The server's own executable, for programs that call us.
pub(super) fn executable() -> io::Result<&'static Path> {
    executables().map(|executables| executables.ours.as_path())
}

/// One of the hidden commands of `process_guard`, to which its order is still to be added.
pub(super) fn command(name: &str) -> io::Result<Command> {
    let executables = executables()?;
    // Looked at every time: both may be gone since, or in the middle of being replaced.
    let files = executables.small.iter().chain([&executables.ours]);
    let mut command = Command::new(files.into_iter().find(|file| is_executable(file)).unwrap_or(&executables.origin));
    command.arg(name).args(Origin::ours(&executables.origin).options());
    Ok(command)
}

/// Where the small program belongs; links to ours, such as those under other names, are followed.
fn beside(executable: &Path) -> Option<PathBuf> {
    cfg!(target_os = "linux")
        .then(|| dunce::canonicalize(executable).ok())
        .flatten()
        .map(|real| real.with_file_name(SMALL))
}

#[cfg(unix)]
fn is_executable(path: &Path) -> bool {
    use rustix::fs::{Access, access};
    path.is_file() && access(path, Access::EXEC_OK).is_ok()
}

#[cfg(not(unix))]
fn is_executable(path: &Path) -> bool {
    path.is_file()
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    #[test]
    fn the_small_program_is_looked_for_beside_the_real_file() {
        let folder = tempfile::tempdir().unwrap();
        let place = dunce::canonicalize(folder.path()).unwrap();
        fs::create_dir_all(place.join("bin")).unwrap();
        fs::write(place.join("bin/eca"), "").unwrap();
        symlink(place.join("bin/eca"), place.join("copilot-cli")).unwrap();
        assert_eq!(beside(&place.join("bin/eca")), Some(place.join("bin/eca-guard")));
        assert_eq!(beside(&place.join("copilot-cli")), Some(place.join("bin/eca-guard")));
        assert_eq!(beside(&place.join("missing")), None);
    }

    #[test]
    fn only_a_file_that_can_be_run_is_used() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        assert!(!is_executable(&file), "nothing is there");
        assert!(!is_executable(folder.path()), "a folder is no program");
        fs::write(&file, "").unwrap();
        fs::set_permissions(&file, Permissions::from_mode(0o644)).unwrap();
        assert!(!is_executable(&file), "it was unpacked without its mode");
        fs::set_permissions(&file, Permissions::from_mode(0o755)).unwrap();
        assert!(is_executable(&file));
        let link = folder.path().join("link");
        symlink(&file, &link).unwrap();
        assert!(is_executable(&link));
    }
}
