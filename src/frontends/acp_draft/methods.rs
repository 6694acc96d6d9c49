//! Every method of the contract, once; `docs/contracts.md` is compared with this table.

use crate::frontends::method::{Method, method};

/// The table. The document's headings can be read in two ways, so all of them are served; those that
/// we have a use for are also sent, to clients that read the headings the other way.
pub const METHODS: &[Method] = &[
    method(GET_THREADS, "request", "to server"),
    method(CREATE_THREAD, "request", "to server"),
    method(OPEN_THREAD, "request", "to server"),
    method(GET_THREAD_ENTRIES, "request", "both"),
    method(SEND_MESSAGE, "request", "both"),
    method(STREAM_MESSAGE_CHUNK, "request", "both"),
    method(READ_TEXT_FILE, "request", "both"),
    method(READ_BINARY_FILE, "request", "to server"),
    method(STAT, "request", "both"),
    method(GLOB_SEARCH, "request", "to server"),
];

pub(super) const GET_THREADS: &str = "getThreads";
pub(super) const CREATE_THREAD: &str = "createThread";
pub(super) const OPEN_THREAD: &str = "openThread";
pub(super) const GET_THREAD_ENTRIES: &str = "getThreadEntries";
pub(super) const SEND_MESSAGE: &str = "sendMessage";
pub(super) const STREAM_MESSAGE_CHUNK: &str = "streamMessageChunk";
pub(super) const READ_TEXT_FILE: &str = "readTextFile";
pub(super) const READ_BINARY_FILE: &str = "readBinaryFile";
pub(super) const STAT: &str = "stat";
pub(super) const GLOB_SEARCH: &str = "globSearch";
