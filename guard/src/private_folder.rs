//! A temporary folder that belongs to one run of one program and goes with it.

use std::fs::{self, DirBuilder, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::rand::{GetRandomFlags, getrandom};

/// Only its owner may look into it. Removed with everything in it when this is dropped.
#[derive(Debug)]
pub(crate) struct PrivateFolder(PathBuf);

impl PrivateFolder {
    pub(crate) fn create(parent: &Path) -> io::Result<Self> {
        // A relative one would mean another folder to a program that goes elsewhere.
        let path = std::path::absolute(parent)?.join(format!("eca-{:032x}", random_number()?));
        // Fails if somebody was faster: what exists is never taken over.
        DirBuilder::new().mode(0o700).create(&path)?;
        Ok(Self(path))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for PrivateFolder {
    fn drop(&mut self) {
        if fs::remove_dir_all(&self.0).is_err() {
            // Some programs write-protect the folders they make.
            open_folders(&self.0);
            let _ = fs::remove_dir_all(&self.0);
        }
    }
}

/// So many of them that nobody can take the name before us.
fn random_number() -> io::Result<u128> {
    let mut bytes = [0; 16];
    // So few bytes come whole or not at all.
    getrandom(&mut bytes, GetRandomFlags::empty())?;
    Ok(u128::from_ne_bytes(bytes))
}

/// Lets the owner remove what is in the folders; goes through no link.
fn open_folders(top: &Path) {
    let mut left = vec![top.to_owned()];
    while let Some(folder) = left.pop() {
        let _ = fs::set_permissions(&folder, Permissions::from_mode(0o700));
        let entries = fs::read_dir(&folder).into_iter().flatten().flatten();
        left.extend(
            entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())).map(|entry| entry.path()),
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_private_and_goes_with_everything_in_it() {
        let parent = tempfile::tempdir().unwrap();
        let kept = parent.path().join("kept");
        fs::create_dir(&kept).unwrap();
        fs::write(kept.join("file"), "x").unwrap();
        let folder = PrivateFolder::create(parent.path()).unwrap();
        let path = folder.path().to_owned();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o700);
        fs::create_dir_all(path.join("a/b")).unwrap();
        fs::write(path.join("a/b/file"), "x").unwrap();
        std::os::unix::fs::symlink(&kept, path.join("a/link")).unwrap();
        fs::set_permissions(path.join("a/b"), Permissions::from_mode(0o500)).unwrap();
        fs::set_permissions(path.join("a"), Permissions::from_mode(0o000)).unwrap();
        drop(folder);
        assert!(!path.exists());
        assert!(kept.join("file").exists());
    }

    #[test]
    fn protected_folders_are_opened_but_not_links() {
        let parent = tempfile::tempdir().unwrap();
        let outside = parent.path().join("outside");
        fs::create_dir(&outside).unwrap();
        fs::set_permissions(&outside, Permissions::from_mode(0o500)).unwrap();
        let top = parent.path().join("top");
        fs::create_dir_all(top.join("inner")).unwrap();
        std::os::unix::fs::symlink(&outside, top.join("link")).unwrap();
        fs::set_permissions(top.join("inner"), Permissions::from_mode(0o100)).unwrap();
        open_folders(&top);
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&top.join("inner")), mode(&outside)), (0o700, 0o500));
    }
}
