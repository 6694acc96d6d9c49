//! The Agent Client Protocol, version 1 as published: editors talk to us in JSON-RPC, one message
//! per line.
//!
//! ```text
//! input ─ reader thread ─ desk ─┬─ sessions: open, list, close     ┐ one engine per session,
//!                               └─ session: prompt, cancel, choose ┘ one store for all
//! engine ─ events ─ voice ─ outbox ─ writer thread ─ output
//! engine ─ host ─ the editor's buffers, terminals and user
//! ```
//!
//! A session has its own folders, servers and configuration, so it has its own engine; what sessions
//! share is the history. A response always precedes what belongs behind it: a session says nothing
//! before its opening is answered, except what it shows again, and a prompt is answered by the last
//! event of its turn.

mod client;
mod desk;
mod failure;
mod from_wire;
mod host;
mod keeper;
mod list;
mod methods;
mod open;
mod options;
mod permission;
mod servers;
mod session;
mod sessions;
mod terminals;
mod tool_calls;
mod voice;
mod welcome;

use std::io::{self, Read, Write};
use std::pin::pin;
use std::time::Duration;

use crate::frontends::{FLUSH_DEADLINE, Surroundings, traffic};
use crate::process::signals;
use crate::transport::newline::{self, Connection, Dialect};
use desk::Desk;
pub use methods::METHODS;

/// Sessions end in this time, or are cut off.
const CLOSE_DEADLINE: Duration = Duration::from_secs(3);
/// The history is written in this time, or its thread goes on alone.
const STORE_DEADLINE: Duration = Duration::from_millis(500);

/// Serves one client until it leaves, then ends all work in order. An error means that it could not
/// even begin. Reading begins with the call, so that the first message is there when the rest is.
pub fn serve(
    input: impl Read + Send + 'static,
    output: impl Write + Send + 'static,
    surroundings: Surroundings,
) -> impl Future<Output = io::Result<()>> + Send {
    let connection = newline::connect(input, traffic::LoggedWriter(output), Dialect::JSON_RPC);
    async move { serve_messages(connection?, surroundings).await }
}

async fn serve_messages(connection: Connection, surroundings: Surroundings) -> io::Result<()> {
    let Connection { peer, mut incoming } = connection;
    let broken = peer.outbox().broken();
    let mut terminate = pin!(signals::terminate());
    let desk = Desk::new(peer.clone(), surroundings);
    let reason = tokio::select! {
        () = desk.run(&mut incoming) => "end of input",
        () = broken.cancelled() => "the client stopped reading",
        () = &mut terminate => "a signal",
    };
    tracing::info!(reason, "the connection ends");
    if tokio::time::timeout(CLOSE_DEADLINE, desk.close()).await.is_err() {
        tracing::warn!("some sessions did not end in time");
    }
    if tokio::time::timeout(STORE_DEADLINE, desk.ground.store.close()).await.is_err() {
        tracing::error!("the chat history did not close in time");
    }
    peer.close();
    if tokio::time::timeout(FLUSH_DEADLINE, peer.outbox().flushed()).await.is_err() {
        tracing::warn!("the client did not read everything");
    }
    Ok(())
}
