//! What can go wrong with the history, in sentences a user can act on.

use std::path::Path;

use rusqlite::ErrorCode;

use crate::base::ChatId;

/// Why an operation of the store failed. Cloneable, because one failed opening answers every
/// operation that waits for it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    #[error("The chat history is closed because the server is shutting down.")]
    Closed,
    #[error("The chat history at {place} cannot be opened ({reason}). Check that the folder exists and is writable.")]
    Unavailable { place: String, reason: String },
    #[error("The chat history at {place} is damaged ({reason}). The file is left as it is.")]
    Damaged { place: String, reason: String },
    #[error(
        "The chat history at {place} was written by a newer version (format {found}, this version knows {known}). Update this server, or use another history file."
    )]
    NewerVersion { place: String, found: i64, known: i64 },
    #[error(
        "The file {place} is a database of another program and was left as it is. Choose another path for the chat history."
    )]
    NotOurs { place: String },
    #[error(
        "The chat history at {place} was locked by another program for too long. Try again, and look for a program that keeps the file open."
    )]
    Busy { place: String },
    #[error("The disk with the chat history at {place} is full. Free some space.")]
    Full { place: String },
    #[error("The chat history at {place} cannot be used: {reason}")]
    Failed { place: String, reason: String },
    #[error("The index of words in the chat history at {place} is broken and is made anew. Search again in a moment.")]
    IndexDamaged { place: String },
    #[error("There is no chat {chat:?} in the history.")]
    UnknownChat { chat: String },
    #[error("There is a chat {chat:?} already.")]
    ChatExists { chat: String },
    #[error("This message is not in the chat any more.")]
    UnknownContent,
    #[error("This place in the chat is gone. Load the chat again.")]
    CursorExpired,
    #[error("What {path} was before is not kept any more.")]
    ContentGone { path: String },
    #[error("{what} is too large to be kept: {bytes} bytes, at most {limit}.")]
    TooLarge { what: String, bytes: usize, limit: usize },
    #[error("This is no chat that can be imported: {reason}")]
    BadExport { reason: String },
    #[error("The chat history failed because of a bug: {0}")]
    Internal(String),
}

impl StoreError {
    /// Puts SQLite's error for the database at `place` in terms of what to do about it.
    pub(super) fn from_sqlite(place: &str, error: &rusqlite::Error) -> Self {
        let place = place.to_owned();
        let reason = error.to_string();
        // There is one virtual table, the index of words. It is made from the messages, so its
        // damage is none of theirs.
        if error.sqlite_error().is_some_and(|error| error.extended_code == rusqlite::ffi::SQLITE_CORRUPT_VTAB) {
            return Self::IndexDamaged { place };
        }
        match error.sqlite_error_code() {
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked | ErrorCode::FileLockingProtocolFailed) => {
                Self::Busy { place }
            }
            Some(ErrorCode::DiskFull) => Self::Full { place },
            Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => Self::Damaged { place, reason },
            Some(ErrorCode::CannotOpen | ErrorCode::PermissionDenied | ErrorCode::ReadOnly) => {
                Self::Unavailable { place, reason }
            }
            _ => Self::Failed { place, reason },
        }
    }

    /// Refuses what is larger than `limit`.
    pub(super) fn demand_size(what: &str, bytes: usize, limit: usize) -> Result<(), Self> {
        if bytes <= limit { Ok(()) } else { Err(Self::TooLarge { what: what.to_owned(), bytes, limit }) }
    }

    pub(super) fn unknown_chat(chat: &ChatId) -> Self {
        Self::UnknownChat { chat: chat.as_str().to_owned() }
    }

    pub(super) fn content_gone(path: &Path) -> Self {
        Self::ContentGone { path: path.display().to_string() }
    }

    /// Whether this version can do nothing with the file, now or later.
    pub(super) fn condemns_file(&self) -> bool {
        matches!(self, Self::Damaged { .. } | Self::NewerVersion { .. } | Self::NotOurs { .. })
    }

    /// Whether the connection is not to be trusted after this error.
    pub(super) fn spoils_connection(&self) -> bool {
        matches!(self, Self::Damaged { .. } | Self::Unavailable { .. } | Self::Failed { .. })
    }
}
