//! Messages that are lines: one JSON text per line, for every contract that is not framed by
//! `Content-Length`.
//!
//! The contracts that share this framing differ in little: whether a message names its version,
//! what an id may be, how long a line may get. A [`Dialect`] says so; the decoder, the reader's
//! thread, the outbox and the [`Peer`] are the same for all of them.

mod decoder;
mod peer;

use std::io::{self, Read, Write};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use tokio::sync::mpsc;

use super::envelope::{Rules, Version};
use super::outbox::{self, Framing, Outbox};
use super::reader::{Incoming, spawn_line_reader};

pub use decoder::Decoder;
pub use peer::{CallError, Peer};

/// Messages that may wait between the reader and the front end.
const INCOMING: usize = 64;
/// Bytes of messages that are read and not yet handled.
const UNHANDLED_BYTES: usize = 16 * 1024 * 1024;

/// How one contract writes its lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dialect {
    /// A longer line is skipped and reported.
    pub longest_line: usize,
    pub rules: Rules,
    /// Whether an error may carry `data`.
    pub error_data: bool,
}

impl Dialect {
    /// JSON-RPC 2.0, line by line.
    pub const JSON_RPC: Self = Self { longest_line: 64 * 1024 * 1024, rules: Rules::JSON_RPC, error_data: true };

    /// The same without `jsonrpc`; it is written only to a peer that writes it.
    pub const UNVERSIONED: Self =
        Self { rules: Rules { version: Version::Optional, ..Rules::JSON_RPC }, error_data: false, ..Self::JSON_RPC };
}

/// Both directions of one connection.
#[derive(Debug)]
pub struct Connection {
    pub peer: Peer,
    pub incoming: mpsc::Receiver<Incoming>,
}

/// Starts the reader and the writer of a connection.
pub fn connect(
    input: impl Read + Send + 'static,
    output: impl Write + Send + 'static,
    dialect: Dialect,
) -> io::Result<Connection> {
    let outbox = Outbox::new(outbox::Limits::default());
    outbox.clone().spawn_writer(Framing::Newline, output)?;
    let versioned = Arc::new(AtomicBool::new(dialect.rules.version == Version::Required));
    let (sender, incoming) = mpsc::channel(INCOMING);
    spawn_line_reader(input, Decoder::new(dialect, Arc::clone(&versioned)), UNHANDLED_BYTES, sender)?;
    Ok(Connection { peer: Peer::new(outbox, dialect, versioned), incoming })
}

#[cfg(test)]
mod tests;
