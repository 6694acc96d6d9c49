//! The first draft of the Agent Client Protocol: threads, messages and files, as requests without a
//! version, one message per line.
//!
//! ```text
//! input ─ reader thread ─ desk ─ threads ─ engine        desk ─ files (versions)
//! output ─ writer thread ─ outbox ─ answers, and turns: what the engine says, for whoever waits
//! ```
//!
//! The headings of the document can be read in two ways. As the draft's own programs had it, the
//! client calls the methods about threads, and we stream to it and ask it for files. By the letter it
//! is the other way round: the client streams to us and asks us for files, and keeps the threads. The
//! first method of a client shows which way it reads them; all methods are served in both.

mod backend;
mod desk;
mod editor;
mod entries;
mod failure;
mod files;
mod methods;
mod params;
mod streams;
mod threads;
mod turns;

use std::io::{self, Read, Write};
use std::path::PathBuf;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use crate::frontends::assemble::workspace_in;
use crate::frontends::{FLUSH_DEADLINE, Surroundings, traffic};
use crate::process::signals;
use crate::transport::envelope::{INVALID_PARAMS, Rules};
use crate::transport::newline::{self, Connection, Dialect};
use backend::Backend;
use desk::Desk;
use editor::Editor;
use files::Files;
pub use methods::METHODS;
use threads::Threads;
use turns::Turns;

const DIALECT: Dialect = Dialect {
    rules: Rules { null_ids: false, scalar_params: INVALID_PARAMS, ..Dialect::UNVERSIONED.rules },
    ..Dialect::UNVERSIONED
};
/// What was asked for when we leave, except for turns, gets so much time to be answered.
const ANSWER_DEADLINE: Duration = Duration::from_millis(500);

/// Serves one client until it leaves, then ends all work in order. `folder` is what it works in: the
/// contract has no word for it. An error means that it could not even begin.
pub async fn serve(
    input: impl Read + Send + 'static,
    output: impl Write + Send + 'static,
    surroundings: Surroundings,
    folder: Option<PathBuf>,
) -> io::Result<()> {
    let Connection { peer, mut incoming } = newline::connect(input, traffic::LoggedWriter(output), DIALECT)?;
    let broken = peer.outbox().broken();
    let mut terminate = pin!(signals::terminate());
    let workspace = workspace_in(folder.as_deref());
    let turns = Arc::new(Turns::new(peer.clone()));
    let editor = Arc::new(Editor::new(peer.clone()));
    let backend = tokio::select! {
        biased;
        () = &mut terminate => return Ok(()),
        backend = Backend::start(surroundings, Arc::clone(&workspace), turns.clone(), editor.clone()) => backend,
    };
    let backend = Arc::new(backend);
    let threads = Threads { backend: Arc::clone(&backend), turns: Arc::clone(&turns), peer: peer.clone() };
    let desk = Desk::new(editor, Files::new(workspace), threads);
    let reason = tokio::select! {
        () = desk.run(&mut incoming) => "end of input",
        () = broken.cancelled() => "the client stopped reading",
        () = &mut terminate => "a signal",
    };
    tracing::info!(reason, "the connection ends");
    if tokio::time::timeout(ANSWER_DEADLINE, desk.all_answered()).await.is_err() {
        tracing::warn!("not everything that was asked is answered");
    }
    backend.shutdown().await;
    turns.abandon();
    peer.close();
    if tokio::time::timeout(FLUSH_DEADLINE, peer.outbox().flushed()).await.is_err() {
        tracing::warn!("the client did not read everything");
    }
    Ok(())
}
