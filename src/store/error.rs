//! What can go wrong with the history, in sentences a user can act on.

use rusqlite::ErrorCode;

/// Why an operation of the store failed. Cloneable, because one failed opening answers every
/// operation that waits for it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    #[error("The chat history is closed because the server is shutting down.")]
    Closed,
    #[error("The chat history at {place} cannot be opened ({reason}). Check that the folder exists and is writable.")]
    Unavailable { place: String, reason: String },
    #[error(
        "The chat history at {place} is damaged ({reason}). Move the file away, together with its -wal and -shm files, to begin a new history."
    )]
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
    #[error("The chat history failed because of a bug: {0}")]
    Internal(String),
}

impl StoreError {
    /// Puts SQLite's error for the database at `place` in terms of what to do about it.
    pub(super) fn from_sqlite(place: &str, error: &rusqlite::Error) -> Self {
        let place = place.to_owned();
        let reason = error.to_string();
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

    /// Whether the connection is not to be trusted after this error.
    pub(super) fn spoils_connection(&self) -> bool {
        matches!(self, Self::Damaged { .. } | Self::Unavailable { .. } | Self::Failed { .. })
    }
}
