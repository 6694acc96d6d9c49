//! Files and folders for nobody but their owner, and names that last.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io;
use std::path::Path;

/// A folder, with the folders above it, unless it is there.
pub fn create_folder(path: &Path) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path)
}

/// A file that was not there before.
pub fn create_file(path: &Path) -> io::Result<File> {
    open_file(path, OpenOptions::new().write(true).create_new(true))
}

/// The same with other options; a file that they create is private.
pub fn open_file(path: &Path, options: &mut OpenOptions) -> io::Result<File> {
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(options, 0o600);
    options.open(path)
}

/// Makes the names in a folder last. Some file systems cannot be asked for it; then there is nothing
/// to do.
pub fn flush_folder(folder: &Path) {
    if cfg!(unix)
        && let Err(error) = File::open(folder).and_then(|folder| folder.sync_all())
    {
        tracing::debug!(%error, "a folder could not be flushed");
    }
}
