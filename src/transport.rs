//! Moves JSON-RPC messages between a byte stream and the front ends, and knows nothing else: no
//! method names, no lifecycle, no protocol types.
//!
//! ```text
//! stdin ─► reader thread ─► content_length or newline ─► envelope ─► bounded channel ─► front end
//! front end, engine ─► outbox (one ordered, bounded queue) ─► writer thread ─► stdout
//! front end ─► pending (requests to the client that wait for an answer)
//! ```
//!
//! Reader and writer are plain threads, so a peer that neither sends nor reads blocks a thread and
//! never the runtime. Everything that leaves goes through the [`Outbox`], in the order in which it
//! was pushed, one `write` per frame.

pub mod content_length;
pub mod envelope;
pub mod escape;
pub mod newline;
pub mod outbox;
pub mod pending;
pub mod reader;
pub mod standard_streams;

pub use content_length::{Decoded, Decoder, FrameProblem};
pub use envelope::{EnvelopeError, Id, Message, Outcome, ResponseError};
pub use escape::escape_json_into;
pub use outbox::{Closed, Frame, Framing, Kind, Outbox, PushError, TextFrame, WriterHandle};
pub use pending::{Pending, PendingCall, TooManyPending};
pub use reader::{ByteHold, Incoming, ReaderLimits, spawn_line_reader, spawn_reader};
