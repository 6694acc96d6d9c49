//! Reads text files from the disk. Only regular files are opened, and without ever waiting for a
//! writer, so a pipe or a device cannot hold a call.

use std::fs::{File, FileType, Metadata};
use std::io::{self, Read};
use std::path::Path;

use super::paths::in_words;
use crate::tool::FileText;

/// Larger files are not edited or written over: both texts are held in memory, and kept to take
/// the change back.
pub(super) const MAX_TEXT_BYTES: u64 = 64 * 1024 * 1024;

/// Whether exactly this can be read from `file`.
pub(super) fn is_all_of(text: &FileText, file: &mut File) -> io::Result<bool> {
    let mut buffer = vec![0; 256 * 1024];
    let mut rest = text.whole().as_bytes();
    loop {
        match file.read(&mut buffer) {
            Ok(0) => return Ok(rest.is_empty()),
            Ok(read) => match rest.strip_prefix(&buffer[..read]) {
                Some(left) => rest = left,
                None => return Ok(false),
            },
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// Opens a regular file for reading. `None` if there is nothing.
pub(super) fn open(path: &Path) -> Result<Option<(File, Metadata)>, String> {
    let said = |words: &str| format!("{} {words}.", path.display());
    let failed = |error: &io::Error| format!("{} cannot be read: {}.", path.display(), in_words(error));
    // Asked before it is opened, because opening a device can do something.
    match path.metadata() {
        Ok(metadata) if metadata.is_file() => {}
        Ok(metadata) => return Err(said(kind(metadata.file_type()))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(failed(&error)),
    }
    let opened = match open_without_waiting(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        opened => opened.and_then(|file| file.metadata().map(|metadata| (file, metadata))),
    };
    match opened {
        Ok((file, metadata)) if metadata.is_file() => Ok(Some((file, metadata))),
        Ok((_, metadata)) => Err(said(kind(metadata.file_type()))),
        Err(error) => Err(failed(&error)),
    }
}

/// Opens for reading without waiting, whatever it is.
#[cfg(unix)]
pub(super) fn open_without_waiting(path: &Path) -> io::Result<File> {
    use rustix::fs::{Mode, OFlags};
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    loop {
        match rustix::fs::open(path, flags, Mode::empty()) {
            Err(rustix::io::Errno::INTR) => {}
            opened => return Ok(opened?.into()),
        }
    }
}

#[cfg(not(unix))]
pub(super) fn open_without_waiting(path: &Path) -> io::Result<File> {
    File::open(path)
}

fn kind(kind: FileType) -> &'static str {
    #[cfg(unix)]
    {
        use std::os::unix::fs::FileTypeExt;
        if kind.is_fifo() {
            return "is a pipe, not a file";
        }
        if kind.is_socket() {
            return "is a socket, not a file";
        }
        if kind.is_char_device() || kind.is_block_device() {
            return "is a device, not a file";
        }
    }
    if kind.is_dir() { "is a folder, not a file" } else { "is not a file" }
}

/// The whole of a text file. `None` if there is none.
pub(super) fn load(path: &Path) -> Result<Option<FileText>, String> {
    let Some((file, metadata)) = open(path)? else { return Ok(None) };
    let too_large = || format!("{} is too large to be changed as text.", path.display());
    if metadata.len() > MAX_TEXT_BYTES {
        return Err(too_large());
    }
    let mut bytes = Vec::with_capacity(usize::try_from(metadata.len()).unwrap_or_default() + 1);
    let read = file.take(MAX_TEXT_BYTES + 1).read_to_end(&mut bytes);
    read.map_err(|error| format!("{} cannot be read: {}.", path.display(), in_words(&error)))?;
    if bytes.len() as u64 > MAX_TEXT_BYTES {
        return Err(too_large());
    }
    match String::from_utf8(bytes) {
        Ok(text) if memchr::memchr(0, text.as_bytes()).is_none() => Ok(Some(FileText::of(text))),
        Ok(binary) => Err(not_text(path, binary.as_bytes())),
        Err(error) => Err(not_text(path, error.as_bytes())),
    }
}

/// Why this is no text that can be changed.
pub(super) fn not_text(path: &Path, bytes: &[u8]) -> String {
    let path = path.display();
    if bytes.starts_with(b"\xFF\xFE") || bytes.starts_with(b"\xFE\xFF") {
        return format!("{path} is UTF-16 text; only UTF-8 is understood. A shell command can convert it.");
    }
    if bytes.contains(&0) {
        return format!("{path} is a binary file.");
    }
    let at = str::from_utf8(bytes).map_or_else(|error| error.valid_up_to(), str::len);
    let line = 1 + memchr::memchr_iter(b'\n', &bytes[..at]).count();
    format!("{path} is not UTF-8 text (line {line} has other bytes), so it cannot be changed here.")
}
