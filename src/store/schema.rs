//! Opens the database file and brings its schema to the version this server knows.
//!
//! A migration is a step of SQL that is never edited once released; a change of the schema is a
//! further step. `user_version` counts the steps a file has seen.

use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags, Transaction, TransactionBehavior};

use super::error::StoreError;
use crate::base::private;

/// How long a statement waits for a lock another server holds.
pub(super) const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

/// Marks our files for `file(1)` and for the check below ("ECA1").
pub(super) const APPLICATION_ID: i64 = 0x4543_4131;

/// What a database in memory is called in an error.
pub(super) const MEMORY: &str = "(memory)";

/// The log is cut back to this length after something large was written.
const LOG_BYTES: i64 = 16 * 1024 * 1024;

/// `messages.id` exists so that a full-text index can point at rows: SQLite may renumber hidden
/// row ids. `chats.next_seq` exists so that a sequence number is not used again after a rollback.
pub(super) const MIGRATIONS: &[&str] = &[
    "
    CREATE TABLE chats (
        id TEXT PRIMARY KEY NOT NULL,
        title TEXT,
        title_source TEXT,
        model TEXT,
        agent TEXT,
        workspace_key TEXT,
        created_at INTEGER NOT NULL,
        updated_at INTEGER NOT NULL,
        next_seq INTEGER NOT NULL DEFAULT 1,
        total_input INTEGER NOT NULL DEFAULT 0,
        total_output INTEGER NOT NULL DEFAULT 0,
        total_cache_read INTEGER NOT NULL DEFAULT 0,
        total_cache_write INTEGER NOT NULL DEFAULT 0,
        last_input INTEGER NOT NULL DEFAULT 0,
        last_output INTEGER NOT NULL DEFAULT 0,
        last_cache_read INTEGER NOT NULL DEFAULT 0,
        last_cache_write INTEGER NOT NULL DEFAULT 0,
        cost_usd REAL
    ) STRICT;
    CREATE INDEX chats_by_workspace ON chats (workspace_key, updated_at);
    CREATE TABLE messages (
        id INTEGER PRIMARY KEY,
        chat_id TEXT NOT NULL REFERENCES chats (id) ON DELETE CASCADE,
        seq INTEGER NOT NULL,
        kind TEXT NOT NULL,
        content_id TEXT,
        body TEXT NOT NULL,
        created_at INTEGER NOT NULL,
        UNIQUE (chat_id, seq)
    ) STRICT;
",
    HISTORY,
    SEARCH,
    CONTENTS,
];

/// Counts are columns, so that a list counts nothing. `flags.after_seq` and `changes.place` are
/// sequence numbers of messages. `upkeep` holds what is done bit by bit; the words of the
/// messages that are there already are such work, because a start must not wait for it.
const HISTORY: &str = "
    ALTER TABLE chats ADD COLUMN message_count INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE chats ADD COLUMN variant TEXT;
    ALTER TABLE chats ADD COLUMN trust INTEGER;
    ALTER TABLE chats ADD COLUMN parent_chat TEXT;
    ALTER TABLE chats ADD COLUMN imported_at INTEGER;
    UPDATE chats SET message_count = (SELECT count(*) FROM messages WHERE chat_id = chats.id);
    DROP INDEX chats_by_workspace;
    CREATE INDEX chats_by_workspace ON chats (workspace_key, updated_at) WHERE parent_chat IS NULL;
    CREATE INDEX chats_by_update ON chats (updated_at) WHERE parent_chat IS NULL;
    CREATE INDEX chats_by_creation ON chats (created_at) WHERE parent_chat IS NULL;
    CREATE INDEX chats_by_parent ON chats (parent_chat) WHERE parent_chat IS NOT NULL;
    CREATE INDEX messages_by_content ON messages (chat_id, content_id) WHERE content_id IS NOT NULL;
    CREATE INDEX messages_by_marker ON messages (chat_id, seq) WHERE kind = 'marker';
    CREATE TABLE flags (
        id INTEGER PRIMARY KEY,
        chat_id TEXT NOT NULL REFERENCES chats (id) ON DELETE CASCADE,
        after_seq INTEGER NOT NULL,
        content_id TEXT NOT NULL,
        text TEXT NOT NULL,
        created_at INTEGER NOT NULL,
        UNIQUE (chat_id, content_id)
    ) STRICT;
    CREATE TABLE chat_state (
        chat_id TEXT NOT NULL REFERENCES chats (id) ON DELETE CASCADE,
        key TEXT NOT NULL,
        value TEXT NOT NULL,
        PRIMARY KEY (chat_id, key)
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE changes (
        id INTEGER PRIMARY KEY,
        chat_id TEXT NOT NULL REFERENCES chats (id) ON DELETE CASCADE,
        place INTEGER NOT NULL,
        call_id TEXT NOT NULL,
        call_order INTEGER NOT NULL,
        path BLOB NOT NULL,
        existed INTEGER NOT NULL,
        kept INTEGER NOT NULL,
        size INTEGER NOT NULL,
        after_hash BLOB,
        created_at INTEGER NOT NULL,
        before BLOB
    ) STRICT;
    CREATE INDEX changes_by_place ON changes (chat_id, place);
    CREATE TABLE leases (
        chat_id TEXT PRIMARY KEY NOT NULL,
        server TEXT NOT NULL,
        pid INTEGER NOT NULL,
        host TEXT NOT NULL,
        has_lock INTEGER NOT NULL,
        claimed_at INTEGER NOT NULL,
        renewed_at INTEGER NOT NULL
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE tombstones (
        chat_id TEXT PRIMARY KEY NOT NULL,
        deleted_at INTEGER NOT NULL
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE upkeep (name TEXT PRIMARY KEY NOT NULL, value INTEGER NOT NULL) STRICT, WITHOUT ROWID;
    INSERT INTO upkeep VALUES
        ('indexed', 0),
        ('index_until', (SELECT coalesce(max(id), 0) FROM messages));
";

/// The words of the messages, by `messages.id`. The table keeps no text of its own: the text is
/// in the messages already.
pub(super) const SEARCH: &str = "
    CREATE VIRTUAL TABLE search USING fts5 (
        text, content = '', contentless_delete = 1, tokenize = 'unicode61 remove_diacritics 2'
    );
";

/// A large content of the journal is a file, by this name ([`super::contents`]). Whatever lets go of
/// the row lets go of the file: its name is put on a list in the same transaction, also when the row
/// goes with its chat.
const CONTENTS: &str = "
    ALTER TABLE changes ADD COLUMN file TEXT;
    CREATE UNIQUE INDEX changes_by_file ON changes (file) WHERE file IS NOT NULL;
    CREATE TABLE released_contents (file TEXT PRIMARY KEY NOT NULL) STRICT, WITHOUT ROWID;
    CREATE TRIGGER change_deleted AFTER DELETE ON changes WHEN old.file IS NOT NULL
    BEGIN
        INSERT OR IGNORE INTO released_contents VALUES (old.file);
    END;
    CREATE TRIGGER change_let_go AFTER UPDATE OF file ON changes WHEN old.file IS NOT NULL AND new.file IS NOT old.file
    BEGIN
        INSERT OR IGNORE INTO released_contents VALUES (old.file);
    END;
";

/// A connection ready for use, to a file or to a database in memory. Waits for other servers that
/// are opening the same file.
pub(super) fn open(path: Option<&Path>) -> Result<Connection, StoreError> {
    let deadline = Instant::now() + BUSY_TIMEOUT;
    loop {
        match open_once(path) {
            // Switching to the write-ahead log fails at once, without the busy timeout, when
            // another server does the same.
            Err(StoreError::Busy { .. }) if Instant::now() < deadline => {
                std::thread::sleep(Duration::from_millis(10));
            }
            outcome => return outcome,
        }
    }
}

fn open_once(path: Option<&Path>) -> Result<Connection, StoreError> {
    let place = path.map_or_else(|| MEMORY.to_owned(), |path| path.display().to_string());
    let place = place.as_str();
    let sqlite = |error: rusqlite::Error| StoreError::from_sqlite(place, &error);
    let connection = match path {
        None => Connection::open_in_memory().map_err(sqlite)?,
        Some(path) => {
            create_file(path).map_err(|error| unavailable(place, &error))?;
            let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
            Connection::open_with_flags(path, flags).map_err(sqlite)?
        }
    };
    connection.busy_timeout(BUSY_TIMEOUT).map_err(sqlite)?;
    // Until the file is known to be ours it must not change, not even by a checkpoint on closing.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true).map_err(sqlite)?;
    check_owner(&connection, place)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, false).map_err(sqlite)?;
    // Room that is freed later can be given back bit by bit. For a file that has a content it is
    // too late to choose.
    let pages: i64 = connection.pragma_query_value(None, "page_count", |row| row.get(0)).map_err(sqlite)?;
    if pages == 0 {
        connection.pragma_update(None, "auto_vacuum", "INCREMENTAL").map_err(sqlite)?;
    }
    // A file system without shared memory keeps the rollback journal, which is slower but as safe.
    let mode: String =
        connection.pragma_update_and_check(None, "journal_mode", "WAL", |row| row.get(0)).map_err(sqlite)?;
    tracing::debug!(place, mode, "chat history opened");
    connection.pragma_update(None, "synchronous", "NORMAL").map_err(sqlite)?;
    connection.pragma_update(None, "journal_size_limit", LOG_BYTES).map_err(sqlite)?;
    connection.pragma_update(None, "foreign_keys", true).map_err(sqlite)?;
    migrate(&connection, place)?;
    Ok(connection)
}

/// Refuses files of newer versions and of other programs.
fn check_owner(connection: &Connection, place: &str) -> Result<(), StoreError> {
    let sqlite = |error: rusqlite::Error| StoreError::from_sqlite(place, &error);
    let transaction = Transaction::new_unchecked(connection, TransactionBehavior::Deferred).map_err(sqlite)?;
    let version = version(connection).map_err(sqlite)?;
    let application: i64 = connection.pragma_query_value(None, "application_id", |row| row.get(0)).map_err(sqlite)?;
    let objects: i64 =
        connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0)).map_err(sqlite)?;
    transaction.finish().map_err(sqlite)?;
    let untouched = version == 0 && application == 0 && objects == 0;
    if application != APPLICATION_ID && !untouched {
        return Err(StoreError::NotOurs { place: place.to_owned() });
    }
    refuse_newer(version, place)
}

/// Each step is a transaction of its own; another server may do some of them meanwhile.
fn migrate(connection: &Connection, place: &str) -> Result<(), StoreError> {
    let sqlite = |error: rusqlite::Error| StoreError::from_sqlite(place, &error);
    while version(connection).map_err(sqlite)? != known_version() {
        let transaction = Transaction::new_unchecked(connection, TransactionBehavior::Immediate).map_err(sqlite)?;
        let version = version(connection).map_err(sqlite)?;
        refuse_newer(version, place)?;
        if let Some(step) = usize::try_from(version).ok().and_then(|index| MIGRATIONS.get(index)) {
            connection.execute_batch(step).map_err(sqlite)?;
            connection.pragma_update(None, "application_id", APPLICATION_ID).map_err(sqlite)?;
            connection.pragma_update(None, "user_version", version + 1).map_err(sqlite)?;
        }
        transaction.commit().map_err(sqlite)?;
    }
    Ok(())
}

fn refuse_newer(version: i64, place: &str) -> Result<(), StoreError> {
    match version {
        // No version of this program writes a negative number.
        i64::MIN..0 => Err(StoreError::NotOurs { place: place.to_owned() }),
        found if found > known_version() => {
            Err(StoreError::NewerVersion { place: place.to_owned(), found, known: known_version() })
        }
        _ => Ok(()),
    }
}

/// Refuses to go on with a file that was brought to another version after it was opened.
pub(super) fn demand_known_version(connection: &Connection, place: &str) -> Result<(), StoreError> {
    let found = connection
        .prepare_cached("PRAGMA user_version")
        .and_then(|mut statement| statement.query_row([], |row| row.get(0)))
        .map_err(|error| StoreError::from_sqlite(place, &error))?;
    let known = known_version();
    if found == known { Ok(()) } else { Err(StoreError::NewerVersion { place: place.to_owned(), found, known }) }
}

fn version(connection: &Connection) -> rusqlite::Result<i64> {
    connection.pragma_query_value(None, "user_version", |row| row.get(0))
}

pub(super) fn known_version() -> i64 {
    i64::try_from(MIGRATIONS.len()).unwrap_or(i64::MAX)
}

/// Makes the file readable by its owner only, before SQLite writes the first byte; SQLite gives
/// its side files the same permissions.
fn create_file(path: &Path) -> std::io::Result<()> {
    // Closing any descriptor of a file drops this process's POSIX locks on it. The new file's
    // descriptor must be gone before another thread's SQLite opens the same file.
    static CREATING: Mutex<()> = Mutex::new(());

    if let Some(parent) = path.parent().filter(|parent| !parent.as_os_str().is_empty()) {
        private::create_folder(parent)?;
    }
    let _alone = CREATING.lock().unwrap_or_else(PoisonError::into_inner);
    match private::create_file(path).map(drop) {
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => Ok(()),
        outcome => outcome,
    }
}

pub(super) fn unavailable(place: &str, error: &std::io::Error) -> StoreError {
    if error.kind() == std::io::ErrorKind::StorageFull {
        StoreError::Full { place: place.to_owned() }
    } else {
        StoreError::Unavailable { place: place.to_owned(), reason: error.to_string() }
    }
}
