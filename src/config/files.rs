//! Reading the small files that a configuration consists of, without ever waiting for one.

use std::io::{self, Read};
use std::path::{Component, Path, PathBuf};

/// The text of a regular file of at most `max_bytes`. The error is a short reason.
pub(crate) fn read_text(path: &Path, max_bytes: u64) -> Result<String, String> {
    let bytes = read_bytes(path, max_bytes)?;
    String::from_utf8(bytes).map_err(|_| "not UTF-8 text".to_owned())
}

pub(crate) fn read_bytes(path: &Path, max_bytes: u64) -> Result<Vec<u8>, String> {
    let unreadable = |error: io::Error| format!("cannot be read ({})", error.kind());
    // Opening a named pipe would wait for its writer, possibly for ever.
    if !std::fs::metadata(path).map_err(unreadable)?.is_file() {
        return Err("not a regular file".to_owned());
    }
    let mut bytes = Vec::new();
    let file = std::fs::File::open(path).map_err(unreadable)?;
    file.take(max_bytes + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    if bytes.len() as u64 > max_bytes {
        let (size, unit) = if max_bytes < 1024 * 1024 { (max_bytes / 1024, "KiB") } else { (max_bytes >> 20, "MiB") };
        return Err(format!("larger than {size} {unit}"));
    }
    Ok(bytes)
}

/// What a path in a configuration means: `~` is the home folder, and a relative path starts at
/// `directory`.
pub(crate) fn resolve(path: &Path, directory: &Path, home: Option<&Path>) -> Result<PathBuf, String> {
    match path.strip_prefix("~") {
        Ok(below) => Ok(home.ok_or("the home directory is not known")?.join(below)),
        Err(_) => Ok(directory.join(path)),
    }
}

/// Whether `path` is in `folder`, by its name or by what its links lead to. Who controls the folder
/// controls both.
pub(crate) fn is_inside(path: &Path, folder: &Path) -> bool {
    let real = |path: &Path| dunce::canonicalize(path).ok();
    let named = without_dots(path).starts_with(without_dots(folder));
    named
        || real(folder).is_some_and(|folder| real(path).is_some_and(|path| path.starts_with(&folder)))
        || real(folder).is_some_and(|folder| without_dots(path).starts_with(folder))
}

/// `path` without `.` and `..`, by its name alone.
pub(crate) fn without_dots(path: &Path) -> PathBuf {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inside_by_name_or_by_link() {
        let folder = tempfile::tempdir().unwrap();
        let (repo, outside) = (folder.path().join("repo"), folder.path().join("outside"));
        std::fs::create_dir(&repo).unwrap();
        std::fs::create_dir(&outside).unwrap();
        std::fs::write(repo.join("f"), "").unwrap();
        assert!(is_inside(&repo.join("f"), &repo));
        assert!(is_inside(&repo.join("not/there"), &repo));
        assert!(is_inside(&outside.join("../repo/f"), &repo));
        assert!(!is_inside(&repo.join("../outside/f"), &repo));
        assert!(!is_inside(&folder.path().join("repository/f"), &repo));
        #[cfg(unix)]
        {
            use std::os::unix::fs::symlink;
            symlink(repo.join("f"), outside.join("into")).unwrap();
            symlink(outside.join("into"), repo.join("away")).unwrap();
            symlink(&repo, folder.path().join("alias")).unwrap();
            assert!(is_inside(&outside.join("into"), &repo));
            assert!(is_inside(&repo.join("away"), &repo));
            assert!(is_inside(&folder.path().join("alias/f"), &repo));
            assert!(is_inside(&repo.join("f"), &folder.path().join("alias")));
        }
    }
}
