//! Large contents of the journal, each in a file of its own beside the database.
//!
//! A file is written and flushed before the row that names it is committed, and that before the
//! user's file is changed; so a row without its file is damage, and is told as such. A file without
//! a row is what a kill between the two left. When a row goes, a trigger puts the file's name on a
//! list in the same transaction ([`super::schema`]), and a [`Sweep`] removes what is on the list.
//!
//! Several servers share the folder. A file that no row names is left alone while it is young: its
//! row may be about to be written. What is old is removed inside of a transaction, and a row is
//! written only while its file is there, so that one server cannot take away what another one is
//! about to name.

use std::ffi::OsString;
use std::fs::{self, File, ReadDir};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use rusqlite::Connection;
use uuid::Uuid;

use super::error::StoreError;
use super::schema;
use super::upkeep::in_spare_transaction;
use crate::base::private;

/// Larger contents are files. SQLite writes every page of a row twice, into its log and from there
/// into the database, and other servers wait meanwhile. Below this, making and flushing a file takes
/// longer than that.
pub(super) const MOST_BYTES_IN_ROW: usize = 256 * 1024;

/// A file that no row names may belong to a row that is about to be written, up to this age.
const LEFT_OVER_AFTER: Duration = Duration::from_secs(60 * 60);

/// Names and files that one step of a sweep looks at.
const NAMES_PER_STEP: i64 = 64;
const FILES_PER_STEP: usize = 128;

/// What could not be removed is not tried again at once, with every write.
const TRIED_AGAIN_AFTER: Duration = Duration::from_secs(60);

/// Where the large contents of the open database are. The thread says it, and whoever prepares a
/// row asks.
#[derive(Debug, Default)]
pub(super) struct Contents(Mutex<Option<PathBuf>>);

impl Contents {
    /// Takes up another database. One in memory keeps all contents itself.
    pub(super) fn are_beside(&self, database: Option<&Path>) -> Option<PathBuf> {
        let folder = database.map(folder_of);
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone_from(&folder);
        folder
    }

    pub(super) fn folder(&self) -> Option<PathBuf> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// `chats.db-contents` for `chats.db`, like the side files of SQLite.
fn folder_of(database: &Path) -> PathBuf {
    let mut name = OsString::from(database);
    name.push("-contents");
    name.into()
}

/// A file that is removed again unless a row names it.
#[derive(Debug)]
pub(super) struct NewFile {
    folder: PathBuf,
    name: String,
    is_named: bool,
}

impl NewFile {
    /// Written and flushed, with its folder. Takes a while, so call it where blocking is allowed.
    pub(super) fn write(folder: &Path, content: &[u8]) -> Result<Self, StoreError> {
        let name = Uuid::new_v4().simple().to_string();
        let file = Self { folder: folder.to_owned(), name, is_named: false };
        file.fill(content).map_err(|error| schema::unavailable(&folder.display().to_string(), &error))?;
        Ok(file)
    }

    fn fill(&self, content: &[u8]) -> io::Result<()> {
        let is_new_folder = !self.folder.exists();
        private::create_folder(&self.folder)?;
        let mut file = private::create_file(&self.folder.join(&self.name))?;
        file.write_all(content)?;
        file.sync_all()?;
        leave_memory_to_others(&file);
        private::flush_folder(&self.folder);
        if is_new_folder && let Some(parent) = self.folder.parent() {
            private::flush_folder(parent);
        }
        Ok(())
    }

    /// The name for a row of the open database, if the file is still there.
    pub(super) fn name_in(&self, contents: &Contents) -> Option<&str> {
        let is_there = || self.folder.join(&self.name).symlink_metadata().is_ok();
        (contents.folder().as_ref() == Some(&self.folder) && is_there()).then_some(&self.name)
    }

    /// A row names it. Whether that row lasts is for the sweep to see.
    pub(super) fn named(&mut self) {
        self.is_named = true;
    }
}

impl Drop for NewFile {
    fn drop(&mut self) {
        if !self.is_named
            && let Err(error) = remove(&self.folder, &self.name)
        {
            tracing::debug!(%error, "a content of the journal is left to the next sweep");
        }
    }
}

/// The content of a file that must have this size; `None` when it is not there as it was written.
pub(super) fn read(folder: &Path, name: &str, size: u64) -> io::Result<Option<Vec<u8>>> {
    if !is_there(folder, name, size) {
        return Ok(None);
    }
    let mut content = Vec::with_capacity(usize::try_from(size).unwrap_or_default());
    File::open(folder.join(name))?.take(size.saturating_add(1)).read_to_end(&mut content)?;
    Ok((content.len() as u64 == size).then_some(content))
}

/// Whether the file is there and has this size.
pub(super) fn is_there(folder: &Path, name: &str, size: u64) -> bool {
    let fits = |metadata: fs::Metadata| metadata.is_file() && metadata.len() == size;
    is_ours(name) && folder.join(name).symlink_metadata().is_ok_and(fits)
}

/// The removal of files that are not needed any more, step by step.
#[derive(Debug, Default)]
pub(super) struct Sweep {
    /// `None` when there are no files.
    folder: Option<PathBuf>,
    /// The names on the list are looked at from here on; `None` when nothing was put on it.
    released: Option<String>,
    /// The files that were not looked at yet.
    files: Option<ReadDir>,
    files_due: Option<Instant>,
    not_before: Option<Instant>,
}

impl Sweep {
    pub(super) fn of(folder: &Path) -> Self {
        let mut sweep = Self { folder: Some(folder.to_owned()), files_due: Some(Instant::now()), ..Self::default() };
        sweep.after_writing();
        sweep
    }

    /// Rows may be gone, and time has passed.
    pub(super) fn after_writing(&mut self) {
        let Some(folder) = &self.folder else { return };
        let now = Instant::now();
        if self.not_before.is_none_or(|time| time <= now) {
            self.released = Some(String::new());
        }
        if self.files_due.is_some_and(|due| due <= now) {
            self.files_due = now.checked_add(LEFT_OVER_AFTER);
            // Most often there is no folder.
            self.files = fs::read_dir(folder).ok();
        }
    }

    pub(super) fn is_due(&self) -> bool {
        self.is_due_for_released() || self.files.is_some()
    }

    pub(super) fn is_due_for_released(&self) -> bool {
        self.released.is_some()
    }

    /// Waits for the next write.
    pub(super) fn wait(&mut self) {
        self.released = None;
        self.files = None;
    }

    /// What is on the list goes first.
    pub(super) fn step(&mut self, connection: &Connection) -> rusqlite::Result<()> {
        let Some(folder) = self.folder.clone() else { return Ok(()) };
        match self.released.take() {
            Some(from) => self.remove_released(connection, &folder, &from),
            None => self.remove_left_over(connection, &folder),
        }
    }

    fn remove_released(&mut self, connection: &Connection, folder: &Path, from: &str) -> rusqlite::Result<()> {
        let mut statement =
            connection.prepare_cached("SELECT file FROM released_contents WHERE file > ?1 ORDER BY file LIMIT ?2")?;
        let names: Vec<String> =
            statement.query_map((from, NAMES_PER_STEP), |row| row.get(0))?.collect::<Result<_, _>>()?;
        let Some(last) = names.last().cloned() else { return Ok(()) };
        let (gone, left): (Vec<String>, Vec<String>) = names.into_iter().partition(|name| {
            remove(folder, name)
                .inspect_err(|error| tracing::warn!(%error, name, "a content of the journal cannot be removed"))
                .is_ok()
        });
        if !left.is_empty() {
            self.not_before = Instant::now().checked_add(TRIED_AGAIN_AFTER);
        }
        self.released = Some(last);
        if gone.is_empty() {
            return Ok(());
        }
        // Only now: a file that is still there must stay on the list.
        in_spare_transaction(connection, |connection| {
            let mut statement = connection.prepare_cached("DELETE FROM released_contents WHERE file = ?1")?;
            gone.iter().try_for_each(|name| statement.execute([name]).map(|_| ()))
        })
    }

    fn remove_left_over(&mut self, connection: &Connection, folder: &Path) -> rusqlite::Result<()> {
        let Some(files) = &mut self.files else { return Ok(()) };
        let mut old = Vec::new();
        for _ in 0..FILES_PER_STEP {
            match files.next() {
                Some(Ok(entry)) => old.extend(old_file_of_ours(&entry)),
                end => {
                    if let Some(Err(error)) = end {
                        tracing::debug!(%error, "the contents of the journal cannot be looked at");
                    }
                    self.files = None;
                    break;
                }
            }
        }
        old.retain(|name| !is_named(connection, name).unwrap_or(true));
        if old.is_empty() {
            return Ok(());
        }
        in_spare_transaction(connection, |connection| {
            for name in &old {
                if !is_named(connection, name)?
                    && let Err(error) = remove(folder, name)
                {
                    tracing::warn!(%error, name, "a content of the journal cannot be removed");
                }
            }
            Ok(())
        })
    }
}

/// The name of a file that is ours and not young any more.
fn old_file_of_ours(entry: &fs::DirEntry) -> Option<String> {
    let name = entry.file_name().into_string().ok().filter(|name| is_ours(name))?;
    let written = entry.metadata().and_then(|metadata| metadata.modified()).ok()?;
    SystemTime::now().duration_since(written).is_ok_and(|age| age > LEFT_OVER_AFTER).then_some(name)
}

fn is_named(connection: &Connection, name: &str) -> rusqlite::Result<bool> {
    connection.prepare_cached("SELECT 1 FROM changes WHERE file = ?1")?.exists([name])
}

/// A name from a damaged database must not lead elsewhere.
fn is_ours(name: &str) -> bool {
    Uuid::try_parse(name).is_ok()
}

/// A file that is gone already is as good as removed, and so is one that is none of ours.
fn remove(folder: &Path, name: &str) -> io::Result<()> {
    if !is_ours(name) {
        return Ok(());
    }
    match fs::remove_file(folder.join(name)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Most contents are never read: a rollback is rare. So they should not push the files that somebody
/// works with out of the system's memory.
fn leave_memory_to_others(file: &File) {
    #[cfg(target_os = "linux")]
    if let Err(error) = rustix::fs::fadvise(file, 0, None, rustix::fs::Advice::DontNeed) {
        tracing::debug!(%error, "a content of the journal stays in memory");
    }
    #[cfg(not(target_os = "linux"))]
    let _ = file;
}
