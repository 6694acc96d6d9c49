//! Which file the history is kept in: the one that was asked for, or, while that one is of no
//! use, a further one beside it.
//!
//! A damaged file, one of a newer version and one of another program are never written to, moved
//! or deleted. Whoever opens `chats.db` then finds `chats-2.db` in its place, the same one every
//! time. Damage that shows only in the middle of a file is remembered by a small file beside it,
//! so that all servers pass the file over until somebody repairs it and takes the mark away.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use rusqlite::Connection;

use super::error::StoreError;
use super::schema;
use super::thread::Location;

/// So many files may be of no use before the history is given up.
const MOST_FILES: usize = 9;

/// An open history, and what the user should know about where it is.
pub(super) struct Opened {
    pub(super) connection: Connection,
    /// `None` in memory.
    pub(super) path: Option<PathBuf>,
    pub(super) notice: Option<String>,
}

/// Opens the first file that can be used.
pub(super) fn open(location: &Location) -> Result<Opened, StoreError> {
    let asked = match location {
        Location::Memory => return Ok(Opened { connection: schema::open(None)?, path: None, notice: None }),
        Location::File(path) => path,
    };
    let mut refused: Option<StoreError> = None;
    for number in 1..=MOST_FILES {
        let path = numbered(asked, number);
        match open_unless_marked(&path) {
            Ok(connection) => {
                let notice =
                    refused.map(|error| format!("{error} New chats are kept in {} meanwhile.", path.display()));
                return Ok(Opened { connection, path: Some(path), notice });
            }
            Err(error) if error.condemns_file() => refused = Some(refused.unwrap_or(error)),
            Err(error) => return Err(error),
        }
    }
    Err(refused.unwrap_or_else(|| StoreError::Internal("no file was tried".into())))
}

/// Remembers that a file is damaged in a place that opening it does not touch.
pub(super) fn mark_damaged(path: &Path, error: &StoreError) -> std::io::Result<()> {
    let text = format!("{error}\nWhen the file is repaired or replaced, delete this one.\n");
    match std::fs::OpenOptions::new().write(true).create_new(true).open(mark_of(path)) {
        Ok(mut file) => std::io::Write::write_all(&mut file, text.as_bytes()),
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(error),
    }
}

fn open_unless_marked(path: &Path) -> Result<Connection, StoreError> {
    let mark = mark_of(path);
    if mark.exists() {
        let reason = format!("{} says so", mark.display());
        return Err(StoreError::Damaged { place: path.display().to_string(), reason });
    }
    schema::open(Some(path))
}

fn mark_of(path: &Path) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(".damaged");
    name.into()
}

/// `chats.db`, `chats-2.db`, `chats-3.db`.
fn numbered(path: &Path, number: usize) -> PathBuf {
    if number == 1 {
        return path.to_owned();
    }
    let mut name = path.file_stem().unwrap_or_default().to_owned();
    name.push(format!("-{number}"));
    if let Some(extension) = path.extension() {
        name.push(".");
        name.push(extension);
    }
    path.with_file_name(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn further_files_are_beside_the_first() {
        for (path, number, expected) in [
            ("/d/chats.db", 1, "/d/chats.db"),
            ("/d/chats.db", 2, "/d/chats-2.db"),
            ("chats", 3, "chats-3"),
            ("/d/a.b.db", 9, "/d/a.b-9.db"),
        ] {
            assert_eq!(numbered(Path::new(path), number), Path::new(expected), "{path}");
        }
    }
}
