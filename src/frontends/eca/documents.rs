//! The documents that an LSP client has open, as they are in the editor, so that what its user typed
//! and did not save is read by tools and never overwritten.
//!
//! The protocol does not say whether a document is saved. It is taken for unsaved when it was changed
//! since it was opened or saved and is not what the disk has: an editor that takes up a change of the
//! disk reports it like typing.

#[cfg(test)]
mod tests;
mod text;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::{BoxFuture, Shared};
use lsp_types::{TextDocumentContentChangeEvent, Uri};
use tokio::sync::Notify;

pub(super) use text::edit_between;

use crate::base::task;
use crate::workspace::path_from_uri;

/// A larger document is not followed.
const MOST_BYTES: usize = 8 * 1024 * 1024;
/// All documents together.
const MOST_BYTES_IN_ALL: usize = 64 * 1024 * 1024;
const MOST_DOCUMENTS: usize = 10_000;
/// How long a disk may take to tell what a file is.
const CHECK_PATIENCE: Duration = Duration::from_secs(2);

type Check = Shared<BoxFuture<'static, bool>>;

#[derive(Debug, Default)]
pub(super) struct Documents {
    table: Mutex<Table>,
    changed: Notify,
}

#[derive(Debug, Default)]
struct Table {
    open: HashMap<PathBuf, Document>,
    /// Of all texts.
    bytes: usize,
}

#[derive(Debug)]
struct Document {
    /// Where the links in its path lead, known soon after it was opened: a tool may come another way.
    real: Arc<OnceLock<PathBuf>>,
    uri: Uri,
    version: i32,
    /// `None`: too large, or not understood; not followed until it comes whole.
    text: Option<String>,
    state: State,
}

#[derive(Debug, Clone)]
enum State {
    Saved,
    Unsaved,
    /// Being compared with the disk.
    Checking(Check),
}

/// What the editor has of a file.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Held {
    /// Nothing that the disk does not have.
    Nothing,
    Unsaved(Unsaved),
    /// Something that was not saved, and what it is is not known.
    Unknown,
}

/// A document that differs from the disk.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Unsaved {
    pub(super) uri: Uri,
    pub(super) version: i32,
    pub(super) text: String,
}

impl Documents {
    pub(super) fn opened(&self, uri: Uri, version: i32, text: String) {
        let Ok(path) = path_from_uri(uri.as_str()) else { return };
        let mut table = self.table();
        table.close(&path);
        if table.open.len() >= MOST_DOCUMENTS {
            tracing::warn!("an editor has more than {MOST_DOCUMENTS} documents open; the rest is not followed");
            return;
        }
        let kept = table.room_for(&text).then_some(text);
        // An editor may open a document with changes of an earlier session.
        let state = kept.as_ref().map_or(State::Saved, |text| State::Checking(check(&path, text)));
        table.bytes += kept.as_ref().map_or(0, String::len);
        let real = real_path(&path);
        table.open.insert(path, Document { real, uri, version, text: kept, state });
    }

    pub(super) fn changed(&self, uri: &Uri, version: i32, changes: &[TextDocumentContentChangeEvent]) {
        let Ok(path) = path_from_uri(uri.as_str()) else { return };
        let mut guard = self.table();
        let table = &mut *guard;
        let Some(document) = table.open.get_mut(&path) else { return };
        document.version = version;
        let before = document.text.as_ref().map_or(0, String::len);
        text::apply(&mut document.text, changes);
        let after = document.text.as_ref().map_or(0, String::len);
        table.bytes = table.bytes - before + after;
        if after > MOST_BYTES || table.bytes > MOST_BYTES_IN_ALL {
            document.text = None;
            table.bytes -= after;
        }
        document.state = match (&document.state, &document.text) {
            // A second change while the first is looked at: typing, most likely.
            (State::Checking(check), _) if check.peek() != Some(&false) => State::Unsaved,
            (State::Unsaved, _) | (_, None) => State::Unsaved,
            (State::Saved | State::Checking(_), Some(text)) => State::Checking(check(&path, text)),
        };
        drop(guard);
        self.changed.notify_waiters();
    }

    pub(super) fn saved(&self, uri: &Uri) {
        let Ok(path) = path_from_uri(uri.as_str()) else { return };
        if let Some(document) = self.table().open.get_mut(&path) {
            document.state = State::Saved;
        }
    }

    pub(super) fn closed(&self, uri: &Uri) {
        if let Ok(path) = path_from_uri(uri.as_str()) {
            self.table().close(&path);
            self.changed.notify_waiters();
        }
    }

    /// The text of a document that is another one than on the disk, if it is kept here.
    pub(super) async fn unsaved(&self, path: &Path) -> Option<String> {
        match self.held(path).await {
            Held::Unsaved(unsaved) => Some(unsaved.text),
            Held::Nothing | Held::Unknown => None,
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.table().open.is_empty()
    }

    /// What the editor has of a file that the disk has not.
    pub(super) async fn held(&self, path: &Path) -> Held {
        let Some((state, uri, version, text)) = self.look(path) else { return Held::Nothing };
        let is_unsaved = match state {
            State::Saved => false,
            State::Unsaved => true,
            // What cannot be found out is not overwritten.
            State::Checking(check) => tokio::time::timeout(CHECK_PATIENCE, check).await.unwrap_or(true),
        };
        if !is_unsaved {
            return Held::Nothing;
        }
        let Some(text) = text else { return Held::Unknown };
        // It may have been typed back, or taken up from the disk in several steps.
        let differs = tokio::time::timeout(CHECK_PATIENCE, check(path, &text)).await.unwrap_or(true);
        if !differs {
            self.note_same(path, version);
            return Held::Nothing;
        }
        Held::Unsaved(Unsaved { uri, version, text })
    }

    /// Waits until the editor has reported `text` as its own, but not for ever. Returns whether it has.
    pub(super) async fn becomes(&self, path: &Path, text: &str, patience: Duration) -> bool {
        let reported = async {
            loop {
                let mut news = std::pin::pin!(self.changed.notified());
                news.as_mut().enable();
                if self.is(path, text) {
                    return;
                }
                news.await;
            }
        };
        tokio::time::timeout(patience, reported).await.is_ok()
    }

    /// Whether this is what the editor has, as far as it has told.
    pub(super) fn is(&self, path: &Path, text: &str) -> bool {
        self.table().find(path).is_some_and(|document| document.text.as_deref() == Some(text))
    }

    fn look(&self, path: &Path) -> Option<(State, Uri, i32, Option<String>)> {
        let table = self.table();
        let document = table.find(path)?;
        Some((document.state.clone(), document.uri.clone(), document.version, document.text.clone()))
    }

    fn note_same(&self, path: &Path, version: i32) {
        if let Some(document) = self.table().find_mut(path)
            && document.version == version
        {
            document.state = State::Saved;
        }
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Table {
    fn room_for(&self, text: &str) -> bool {
        text.len() <= MOST_BYTES && self.bytes + text.len() <= MOST_BYTES_IN_ALL
    }

    fn find(&self, path: &Path) -> Option<&Document> {
        let leads_there = |document: &&Document| document.real.get().is_some_and(|real| real == path);
        self.open.get(path).or_else(|| self.open.values().find(leads_there))
    }

    fn find_mut(&mut self, path: &Path) -> Option<&mut Document> {
        if self.open.contains_key(path) {
            return self.open.get_mut(path);
        }
        self.open.values_mut().find(|document| document.real.get().is_some_and(|real| real == path))
    }

    fn close(&mut self, path: &Path) {
        if let Some(Document { text: Some(text), .. }) = self.open.remove(path) {
            self.bytes -= text.len();
        }
    }
}

fn real_path(path: &Path) -> Arc<OnceLock<PathBuf>> {
    let (path, real) = (path.to_owned(), Arc::new(OnceLock::new()));
    let found = Arc::clone(&real);
    task::blocking(move || {
        // What does not exist yet has no links to follow.
        if let Ok(real) = dunce::canonicalize(path) {
            let _ = found.set(real);
        }
    });
    real
}

/// Whether `text` is not what the disk has; known soon.
fn check(path: &Path, text: &str) -> Check {
    let (path, text): (PathBuf, Arc<str>) = (path.to_owned(), text.into());
    let compared = task::blocking(move || differs(&path, &text));
    let check = compared.map(|differs| differs.unwrap_or(true)).boxed().shared();
    // So that it is known without anybody asking.
    task::spawn(check.clone());
    check
}

/// Line ends and the mark at the start are the editor's own affair, and so is a file in an encoding
/// of its own.
fn differs(path: &Path, text: &str) -> bool {
    match path.metadata() {
        Ok(metadata) if metadata.is_file() => {
            // A line end may be one byte there and two here.
            if metadata.len() > 2 * text.len() as u64 + 3 {
                return true;
            }
            let Ok(disk) = std::fs::read(path) else { return false };
            String::from_utf8(disk).is_ok_and(|disk| !text::is_same(&disk, text))
        }
        Ok(_) => false,
        Err(error) => error.kind() == std::io::ErrorKind::NotFound && !text.is_empty(),
    }
}
