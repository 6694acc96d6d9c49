//! What all tools that change files share: what a file is now, telling the journal and the editor,
//! and that only one call at a time changes a file.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use tokio::sync::OwnedMutexGuard;
use tokio_util::sync::CancellationToken;

use super::diff::{self, SHOWN_BYTES};
use super::disk;
use super::matching::Change;
use super::paths::Target;
use super::replace::{NotReplaced, replace};
use super::{blocking, or_stopped, to_the_end};
use crate::host::{HostError, OpenChange, Taken};
use crate::tool::{FileChange, FileText, PlannedChange, ToolContext};

/// What a file is now.
#[derive(Debug, Clone)]
pub(super) struct Current {
    pub(super) text: FileText,
    pub(super) place: Place,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    Disk,
    /// The user is working on it; the disk has something else.
    Editor,
}

/// What the user sees of a file: what the editor has and did not save, else what is on the disk.
/// `None` if there is nothing.
pub(super) async fn current(target: &Target, context: &ToolContext) -> Result<Option<Current>, String> {
    if let Some(text) = or_stopped(&context.stop, async { Ok(unsaved(target, context).await) }).await? {
        return Ok(Some(Current { text: text.into(), place: Place::Editor }));
    }
    let path = target.real.clone();
    let loaded = blocking(&context.stop, move || disk::load(&path)).await?;
    Ok(loaded.map(|text| Current { text, place: Place::Disk }))
}

pub(super) async fn unsaved(target: &Target, context: &ToolContext) -> Option<String> {
    for name in target.names() {
        if let Some(text) = context.host.unsaved(context.chat.clone(), name).await {
            return Some(text);
        }
    }
    None
}

/// Changes a file from `before` to `after`: the journal first, then the editor if it has unsaved
/// changes of the file, else the disk. From the journal on it is not stopped any more, so that what
/// is said about the change is true. Returns where the change is.
pub(super) async fn commit(
    target: &Target,
    before: Option<Current>,
    after: FileText,
    context: &ToolContext,
) -> Result<Place, NotReplaced> {
    let (call, path) = (context.call.clone(), target.real.clone());
    let kept = before.as_ref().map(|before| before.text.bytes());
    let planned = PlannedChange { call, path, before: kept, after: Some(after.bytes()) };
    record(planned, context).await.map_err(NotReplaced::Failed)?;
    let in_editor = match &before {
        Some(Current { text, place: Place::Editor }) => Some(text),
        _ => None,
    };
    if let Some(place) = taken_by_editor(target, in_editor, &after, context).await? {
        return Ok(place);
    }
    let expected = match before {
        // The editor let go of it in between.
        Some(Current { place: Place::Editor, .. }) => return Err(NotReplaced::Changed),
        before => before.map(|before| before.text),
    };
    let path = target.real.clone();
    let written = to_the_end(move || Ok(replace(&path, expected.as_ref(), &after))).await;
    written.map_err(NotReplaced::Failed)?.map(|()| Place::Disk)
}

/// What the model must know of a change that is not on the disk.
pub(super) fn note(place: Place) -> &'static str {
    match place {
        Place::Disk => "",
        Place::Editor => {
            " The file has unsaved changes in the editor, so the change is there and not on the disk; the user was \
             asked to save it."
        }
    }
}

/// Offers the new text to the editor, whose own text was `before`; returns where it is if it took it.
async fn taken_by_editor(
    target: &Target,
    before: Option<&FileText>,
    after: &FileText,
    context: &ToolContext,
) -> Result<Option<Place>, NotReplaced> {
    if !context.host.may_write_open() {
        return Ok(None);
    }
    // An editor that shows the mark in its text wants it back.
    let mark = if before.is_some_and(FileText::is_marked) { "\u{FEFF}" } else { "" };
    for path in target.names() {
        let before = before.map(|old| old.whole().to_owned());
        let change = OpenChange { chat: context.chat.clone(), path, before, after: [mark, after].concat() };
        match context.host.write_open(change).await {
            Ok(Taken::Yes) => return Ok(Some(Place::Editor)),
            Ok(Taken::Saved) => return Ok(Some(Place::Disk)),
            Ok(Taken::NotHeld) | Err(HostError::Unsupported) => {}
            Ok(Taken::Changed) => return Err(NotReplaced::Changed),
            Err(error) => {
                return Err(NotReplaced::Failed(format!("{} was not written: {error}.", target.written.display())));
            }
        }
    }
    Ok(None)
}

/// Tells the journal; without it nothing is changed.
pub(super) async fn record(planned: PlannedChange, context: &ToolContext) -> Result<(), String> {
    let path = planned.path.display().to_string();
    let kept = async {
        let kept = context.journal.before_change(planned).await;
        kept.map_err(|error| format!("{path} was not changed, because what it is now could not be kept: {error}"))
    };
    or_stopped(&context.stop, kept).await
}

/// How to show a change. Costs time with large texts, so call it where blocking is allowed.
pub(super) fn file_change(path: &Path, before: Option<&FileText>, after: &FileText, changes: &[Change]) -> FileChange {
    let unified = diff::unified(before.map_or("", |before| before), after, changes, SHOWN_BYTES);
    FileChange {
        path: path.to_owned(),
        diff: unified.text,
        lines_added: u32::try_from(unified.added).unwrap_or(u32::MAX),
        lines_removed: u32::try_from(unified.removed).unwrap_or(u32::MAX),
        before: before.cloned(),
        after: after.clone(),
    }
}

/// One lock per file that is being changed, so that calls which run side by side do not lose each
/// other's changes.
#[derive(Debug, Default)]
pub(super) struct Locks(Mutex<HashMap<PathBuf, Weak<tokio::sync::Mutex<()>>>>);

impl Locks {
    /// Waits until no other call changes the file.
    pub(super) async fn hold(&self, path: &Path, stop: &CancellationToken) -> Result<OwnedMutexGuard<()>, String> {
        let lock = self.lock(path);
        or_stopped(stop, async { Ok(lock.lock_owned().await) }).await
    }

    fn lock(&self, path: &Path) -> Arc<tokio::sync::Mutex<()>> {
        let mut locks = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(lock) = locks.get(path).and_then(Weak::upgrade) {
            return lock;
        }
        locks.retain(|_, lock| lock.strong_count() > 0);
        let lock = Arc::default();
        locks.insert(path.to_owned(), Arc::downgrade(&lock));
        lock
    }
}
