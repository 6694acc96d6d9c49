//! The Copilot CLI contract: an application that turns API specifications into user interfaces asks
//! for them here, in JSON-RPC, one message per line.
//!
//! ```text
//! input ─ reader thread ─ desk ─ one task per request ─ spec, prompts, engine::ask ─ model
//! output ─ writer thread ─ outbox ─ responses, and stream/chunk while code is being written
//! ```
//!
//! Requests stand for themselves: nothing is stored, and only `chat` remembers a little per tab.
//! Where no model is connected, `generate` builds a plain interface from the specification alone.

mod backend;
mod budget;
mod chat;
mod chunks;
mod code;
mod customize;
mod desk;
mod failure;
mod generate;
mod job;
mod methods;
mod offline;
mod params;
mod prompts;
mod reply;
mod spec;

use std::io::{self, Read, Write};
use std::pin::pin;

use crate::frontends::{FLUSH_DEADLINE, Surroundings, traffic};
use crate::process::signals;
use crate::transport::envelope::{INVALID_PARAMS, Rules};
use crate::transport::newline::{self, Connection, Dialect};
use backend::Backend;
use desk::{Desk, End};
pub use methods::METHODS;

/// A specification may have 50 MB, and is escaped once more inside of a line.
const DIALECT: Dialect =
    Dialect { rules: Rules { null_ids: false, scalar_params: INVALID_PARAMS, ..Rules::JSON_RPC }, ..Dialect::JSON_RPC };

/// Serves one client until it leaves, then ends all work in order. An error means that it could not
/// even begin.
pub async fn serve(
    input: impl Read + Send + 'static,
    output: impl Write + Send + 'static,
    surroundings: Surroundings,
) -> io::Result<()> {
    let Connection { peer, mut incoming } = newline::connect(input, traffic::LoggedWriter(output), DIALECT)?;
    let broken = peer.outbox().broken();
    // Heard from now on: an application may end us before we have begun.
    let mut terminate = pin!(signals::terminate());
    let backend = tokio::select! {
        biased;
        () = &mut terminate => return Ok(()),
        backend = Backend::start(surroundings) => backend,
    };
    let desk = Desk::new(peer.clone(), backend);
    let reason = tokio::select! {
        end = desk.run(&mut incoming) => match end {
            End::Input => "end of input",
            End::Exit => "exit",
        },
        () = broken.cancelled() => "the client stopped reading",
        () = &mut terminate => "a signal",
    };
    tracing::info!(reason, "the connection ends");
    desk.cancel_all();
    let last_words = async {
        desk.all_answered().await;
        peer.close();
        peer.outbox().flushed().await;
    };
    if tokio::time::timeout(FLUSH_DEADLINE, last_words).await.is_err() {
        tracing::warn!("the client did not read everything");
    }
    Ok(())
}
