//! Puts a new file in the place of an old one, whole or not at all: written beside it, flushed, and
//! renamed over it when the old one is still what it was.

use std::fs::{self, File, Metadata};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use super::disk;
use super::paths::in_words;
use crate::base::private;
use crate::tool::FileText;

/// Why a file was not replaced. It is as it was.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum NotReplaced {
    /// It is not what it was expected to be.
    Changed,
    Failed(String),
}

/// Writes `content` to `path`, which has no links in it and must still be `expected`; `None`: there
/// must be nothing. Folders are made as needed.
pub(super) fn replace(path: &Path, expected: Option<&FileText>, content: &FileText) -> Result<(), NotReplaced> {
    let failed = |error: &io::Error| NotReplaced::Failed(format!("{}: {}.", path.display(), in_words(error)));
    let Some(expected) = expected else { return create(path, content) };
    let Some((mut file, metadata)) = disk::open(path).map_err(NotReplaced::Failed)? else {
        return Err(NotReplaced::Changed);
    };
    if is_read_only(path, &metadata) {
        return Err(NotReplaced::Failed(format!("{} is read-only.", path.display())));
    }
    let temporary = Temporary::beside(path, 0o600).map_err(|error| folder_failed(path, &error))?;
    let written = temporary.write(content).and_then(|()| {
        keep_attributes(&file, &metadata, &temporary.file)?;
        temporary.file.sync_all()
    });
    written.map_err(|error| failed(&error))?;
    // As late as it can be: what is written from here on to the rename is lost.
    let is_same = reopened(path, &mut file).and_then(|()| disk::is_all_of(expected, &mut file));
    match is_same {
        Ok(true) => {}
        Ok(false) => return Err(NotReplaced::Changed),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(NotReplaced::Changed),
        Err(error) => return Err(failed(&error)),
    }
    // Windows replaces no file that is open.
    drop(file);
    temporary.rename_over(path).map_err(|error| failed(&error))
}

/// Makes `path` what it was: these bytes, or nothing. Whatever is there now goes; its permissions
/// stay.
pub(crate) fn restore(path: &Path, content: Option<&[u8]>) -> io::Result<()> {
    let Some(content) = content else {
        return match fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        };
    };
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    let there = disk::open(path).ok().flatten();
    let temporary = Temporary::beside(path, if there.is_some() { 0o600 } else { 0o666 })?;
    let mut new = fs::OpenOptions::new().write(true).open(&temporary.path)?;
    new.write_all(content)?;
    if let Some((old, metadata)) = &there {
        keep_attributes(old, metadata, &new)?;
    }
    new.sync_all()?;
    // Windows replaces no file that is open.
    drop(there);
    temporary.rename_over(path)
}

/// Says why `path` could not be replaced, as far as that shows without trying.
pub(super) fn check(path: &Path) -> Result<(), String> {
    if path.metadata().is_ok_and(|metadata| is_read_only(path, &metadata)) {
        return Err(format!("{} is read-only.", path.display()));
    }
    #[cfg(unix)]
    if let Some(folder) = path.ancestors().skip(1).find(|folder| folder.exists())
        && let Err(error) = rustix::fs::access(folder, rustix::fs::Access::WRITE_OK)
    {
        return Err(format!(
            "{} cannot be written: in {}, {}.",
            path.display(),
            folder.display(),
            in_words(&error.into())
        ));
    }
    Ok(())
}

fn reopened(path: &Path, file: &mut File) -> io::Result<()> {
    *file = disk::open_without_waiting(path)?;
    Ok(())
}

fn create(path: &Path, content: &FileText) -> Result<(), NotReplaced> {
    let failed = |error: &io::Error| NotReplaced::Failed(format!("{}: {}.", path.display(), in_words(error)));
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).map_err(|error| folder_failed(path, &error))?;
    }
    let temporary = Temporary::beside(path, 0o666).map_err(|error| folder_failed(path, &error))?;
    temporary.write(content).and_then(|()| temporary.file.sync_all()).map_err(|error| failed(&error))?;
    match rename_to_nothing(&temporary.path, path) {
        Ok(()) => {
            sync_folder(path);
            Ok(())
        }
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Err(NotReplaced::Changed),
        Err(error) => Err(failed(&error)),
    }
}

fn folder_failed(path: &Path, error: &io::Error) -> NotReplaced {
    let folder = path.parent().unwrap_or(path).display();
    NotReplaced::Failed(format!("{} cannot be written: in {folder}, {}.", path.display(), in_words(error)))
}

/// A file that is removed again unless it is renamed.
struct Temporary {
    path: PathBuf,
    file: File,
}

impl Temporary {
    fn beside(path: &Path, mode: u32) -> io::Result<Self> {
        let path = path.with_file_name(format!(".eca-{}.tmp", uuid::Uuid::new_v4().simple()));
        let mut options = fs::OpenOptions::new();
        options.write(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, mode);
        #[cfg(not(unix))]
        let _ = mode;
        let file = options.open(&path)?;
        Ok(Self { path, file })
    }

    fn write(&self, content: &FileText) -> io::Result<()> {
        (&self.file).write_all(content.whole().as_bytes())
    }

    fn rename_over(self, path: &Path) -> io::Result<()> {
        fs::rename(&self.path, path)?;
        sync_folder(path);
        Ok(())
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        // After a rename there is nothing to remove.
        let _ = fs::remove_file(&self.path);
    }
}

/// Renames without replacing anything.
#[cfg(any(target_os = "linux", target_os = "macos"))]
pub(super) fn rename_to_nothing(from: &Path, to: &Path) -> io::Result<()> {
    use rustix::fs::{CWD, RenameFlags, renameat_with};
    use rustix::io::Errno;
    match renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE) {
        // Not every file system can.
        Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => rename_after_a_look(from, to),
        done => Ok(done?),
    }
}

#[cfg(not(any(target_os = "linux", target_os = "macos")))]
pub(super) fn rename_to_nothing(from: &Path, to: &Path) -> io::Result<()> {
    rename_after_a_look(from, to)
}

fn rename_after_a_look(from: &Path, to: &Path) -> io::Result<()> {
    if to.symlink_metadata().is_ok() {
        return Err(io::ErrorKind::AlreadyExists.into());
    }
    fs::rename(from, to)
}

/// Makes a rename last.
pub(super) fn sync_folder(path: &Path) {
    if let Some(folder) = path.parent() {
        private::flush_folder(folder);
    }
}

/// The rename would not ask: it needs no right on the old file. A file without any right to write
/// is left alone also by those who may write everything.
fn is_read_only(path: &Path, metadata: &Metadata) -> bool {
    #[cfg(unix)]
    if rustix::fs::access(path, rustix::fs::Access::WRITE_OK).is_err() {
        return true;
    }
    let _ = path;
    metadata.permissions().readonly()
}

/// The owner and what goes with the file, as far as that is allowed, and the mode in any case.
fn keep_attributes(old: &File, metadata: &Metadata, new: &File) -> io::Result<()> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::{MetadataExt, fchown};
        let (owner, group) = (metadata.uid(), metadata.gid());
        let other = new.metadata().is_ok_and(|now| (now.uid(), now.gid()) != (owner, group));
        if other && fchown(new, Some(owner), Some(group)).is_err() {
            let _ = fchown(new, None, Some(group));
        }
    }
    #[cfg(any(target_os = "linux", target_os = "macos"))]
    extended::copy(old, new);
    let _ = old;
    // Last, because a change of the owner takes bits away.
    new.set_permissions(metadata.permissions())
}

/// Access lists and the like.
#[cfg(any(target_os = "linux", target_os = "macos"))]
mod extended {
    use std::ffi::CStr;
    use std::fs::File;

    use rustix::fs::{XattrFlags, fgetxattr, flistxattr, fsetxattr};

    const MAX_BYTES: usize = 64 * 1024;

    /// As far as it goes: some attributes belong to the system.
    pub(super) fn copy(old: &File, new: &File) {
        let mut names = vec![0; MAX_BYTES];
        let Ok(length) = flistxattr(old, &mut names[..]) else { return };
        let mut value = vec![0; MAX_BYTES];
        for name in names[..length].split_inclusive(|byte| *byte == 0) {
            let Ok(name) = CStr::from_bytes_with_nul(name) else { continue };
            if let Ok(length) = fgetxattr(old, name, &mut value[..]) {
                let _ = fsetxattr(new, name, &value[..length], XattrFlags::empty());
            }
        }
    }
}
