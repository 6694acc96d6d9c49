//! Brings in the chats that the public server keeps for a workspace.
//!
//! Its files are only read. A chat is taken once: one whose id is in the history, or was deleted
//! from it, is left alone, so that this can run at every start. A file that cannot be read is a
//! problem to be told; the others are taken all the same.
//!
//! Two layouts are known: a folder `chats` with one file per chat and an index, and before that
//! one file with all of them. Both lie in a folder whose name ends with a hash of the workspace's
//! paths.

mod convert;
mod files;

#[cfg(test)]
mod tests;

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use super::transfer::{self, PreparedChat};
use super::{Store, StoreError, queries, upkeep};
use crate::base::ChatId;
use crate::base::task;
use crate::base::time::now_ms;
use files::{Candidate, Found, Layout};

/// Problems told of one import; more are only counted and logged.
const MOST_PROBLEMS: usize = 20;

/// Where to look, and for whom.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PublicChats {
    /// The folders in which the public server has one folder per workspace: its cache, and in its
    /// later versions its data.
    pub places: Vec<PathBuf>,
    /// The workspace as the public server knows it: its paths, sorted and joined with `:`, both
    /// with worktrees mapped to their repository and as the editor named them.
    pub path_keys: Vec<String>,
    /// Under which the chats are listed here.
    pub workspace_key: String,
}

/// What an import did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ImportReport {
    pub imported: usize,
    /// Those that are here already, or were deleted here.
    pub skipped: usize,
    /// How many problems there were.
    pub failed: usize,
    /// The first of them.
    pub problems: Vec<ImportProblem>,
}

/// A file, or a chat in it, that was not taken. Its text never quotes the file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}: {message}", file.display())]
pub struct ImportProblem {
    pub file: PathBuf,
    pub message: String,
}

impl Store {
    /// Takes the chats of the public server that are not here yet.
    pub async fn import_public(&self, source: PublicChats) -> Result<ImportReport, StoreError> {
        let known = self.read(known_ids).await?;
        let workspace_key = source.workspace_key.clone();
        let (found, known) = blocking(move || (files::find(&source, &known), known)).await?;
        let Found { candidates, mut report } = found;
        let mut seen = known;
        for candidate in candidates {
            self.import_file(candidate, &workspace_key, &mut seen, &mut report).await?;
        }
        Ok(report)
    }

    async fn import_file(
        &self,
        candidate: Candidate,
        workspace_key: &str,
        seen: &mut HashSet<String>,
        report: &mut ImportReport,
    ) -> Result<(), StoreError> {
        // A file with all chats is large, and is not read again as long as it stays the same.
        let state = (candidate.layout == Layout::AllChats).then(|| files::state_of(&candidate.file)).flatten();
        let name = format!("imported {}", candidate.file.display());
        if let Some(state) = state {
            let name = name.clone();
            if self.read(move |connection| upkeep::find(connection, &name)).await? == Some(state) {
                return Ok(());
            }
        }
        let (file, workspace_key) = (candidate.file.clone(), workspace_key.to_owned());
        let chats = match blocking(move || prepare(&candidate, &workspace_key)).await? {
            Ok(chats) => chats,
            Err(message) => {
                report.problem(&file, message);
                return Ok(());
            }
        };
        for chat in chats {
            let chat = match chat {
                Ok(chat) => chat,
                Err(message) => {
                    report.problem(&file, message);
                    continue;
                }
            };
            let is_taken = seen.insert(chat.id.as_str().to_owned()) && self.take(chat).await?;
            *(if is_taken { &mut report.imported } else { &mut report.skipped }) += 1;
        }
        match state {
            Some(state) => self.write(move |connection| upkeep::set(connection, &name, state)).await,
            None => Ok(()),
        }
    }

    /// Whether it was not there yet: another server may import at the same time.
    async fn take(&self, chat: PreparedChat) -> Result<bool, StoreError> {
        let now = now_ms();
        self.write(move |connection| {
            if is_known(connection, &chat.id)? {
                return Ok(false);
            }
            transfer::insert_prepared(connection, &chat, now)?;
            Ok(true)
        })
        .await
    }
}

impl ImportReport {
    fn problem(&mut self, file: &Path, message: String) {
        tracing::info!(file = %file.display(), message, "a chat of the public server is not imported");
        self.failed += 1;
        if self.problems.len() < MOST_PROBLEMS {
            self.problems.push(ImportProblem { file: file.to_owned(), message });
        }
    }
}

/// The chats of a file, or why there are none; and of each, why it is of no use.
fn prepare(candidate: &Candidate, workspace_key: &str) -> Result<Vec<Result<PreparedChat, String>>, String> {
    let prepared = |(chat, parent)| {
        PreparedChat::new(chat, parent, Some(workspace_key)).map_err(|error: StoreError| error.to_string())
    };
    Ok(convert::chats(candidate)?.into_iter().map(|chat| chat.and_then(prepared)).collect())
}

/// Every id that is not to be imported.
fn known_ids(connection: &rusqlite::Connection) -> rusqlite::Result<HashSet<String>> {
    let mut statement = connection.prepare_cached("SELECT id FROM chats UNION SELECT chat_id FROM tombstones")?;
    statement.query_map([], |row| row.get(0))?.collect()
}

fn is_known(connection: &rusqlite::Connection, chat: &ChatId) -> rusqlite::Result<bool> {
    let is_deleted =
        connection.prepare_cached("SELECT 1 FROM tombstones WHERE chat_id = ?1")?.exists([chat.as_str()])?;
    Ok(is_deleted || queries::exists(connection, chat)?)
}

/// Reads files where waiting for them holds up nobody.
async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, StoreError> {
    let done = task::blocking(work).await;
    done.map_err(|error| StoreError::Internal(format!("the import of a chat broke: {error}")))
}
