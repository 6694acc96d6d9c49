//! The ECA contract: JSON-RPC in Content-Length frames, as every ECA client and every LSP client
//! speaks it.
//!
//! ```text
//! input ─ reader thread ─ dispatch ─ PanicGuard ─ Normalise ─ LspService ─ handlers ─ engine
//! output ─ writer thread ─ outbox ─ responses, and engine events through the sink
//! ```

mod client;
mod dispatch;
mod documents;
mod from_wire;
mod handlers;
mod host;
mod layers;
mod lines;
mod reload;
mod response_slot;
mod servers;
mod service;
mod session;
mod sink;
mod start;
mod to_wire;

use std::io::{self, Read, Write};
use std::sync::Arc;

use tokio::sync::mpsc;
use tower::Service;
use tower_lsp::jsonrpc::{Request, Response};
use tower_lsp::{ClientSocket, ExitedError};

use crate::frontends::{FLUSH_DEADLINE, Surroundings, traffic};
use crate::process::signals;
use crate::transport::{Framing, Incoming, Outbox, Pending, ReaderLimits, outbox, spawn_reader};
use client::Client;
use dispatch::{Dispatcher, End};
pub(super) use lines::Lines;
use session::Session;
use start::Starter;

/// Messages that may wait between the reader and the dispatcher.
const INCOMING: usize = 64;

/// The service without our transport, for another server loop: a test runs it under the framework's
/// own, to show that only the transport is ours. What the engine says by itself goes to `output`.
pub fn service(
    output: impl Write + Send + 'static,
    surroundings: Surroundings,
) -> io::Result<(
    impl Service<Request, Response = Option<Response>, Error = ExitedError, Future: Send> + Send,
    ClientSocket,
)> {
    let outbox = Outbox::held(outbox::Limits::default());
    outbox.clone().spawn_writer(Framing::ContentLength, output)?;
    let client = Client { outbox, pending: Arc::default() };
    Ok(service::build(Arc::default(), Starter { surroundings, client }))
}

/// Serves one client until it leaves, then ends all work in order. An error means that it could not
/// even begin. Reading begins with the call, so that the first message is there when the rest is.
pub fn serve(
    input: impl Read + Send + 'static,
    output: impl Write + Send + 'static,
    surroundings: Surroundings,
) -> impl Future<Output = io::Result<()>> + Send {
    let (sender, incoming) = mpsc::channel::<Incoming>(INCOMING);
    let reading = spawn_reader(input, ReaderLimits::default(), sender);
    async move {
        reading?;
        serve_messages(incoming, output, surroundings).await
    }
}

async fn serve_messages(
    mut incoming: mpsc::Receiver<Incoming>,
    output: impl Write + Send + 'static,
    surroundings: Surroundings,
) -> io::Result<()> {
    let outbox = Outbox::held(outbox::Limits::default());
    let broken = outbox.broken();
    outbox.clone().spawn_writer(Framing::ContentLength, traffic::LoggedWriter(output))?;
    let pending = Arc::new(Pending::default());
    let session = Arc::new(Session::default());
    let client = Client { outbox: outbox.clone(), pending: Arc::clone(&pending) };
    let (service, _) = service::build(Arc::clone(&session), Starter { surroundings, client });
    let mut dispatcher = Dispatcher::new(service, outbox.clone(), pending);
    let exit = session.exit_requested();
    let reason = tokio::select! {
        end = dispatcher.run(&mut incoming) => match end {
            End::Input => "end of input",
            End::Exit => "exit",
        },
        () = exit.cancelled() => "exit",
        () = broken.cancelled() => "the client stopped reading",
        () = signals::terminate() => "a signal",
    };
    tracing::info!(reason, "the connection ends");
    // Whatever else works for this connection ends with it.
    session.request_exit();
    if let Some(started) = session.started() {
        let (saved, ()) = tokio::join!(started.engine.shutdown(), started.servers.shutdown());
        if let Err(error) = saved {
            tracing::error!(%error, "shutdown");
        }
    }
    let last_words = async {
        dispatcher.all_answered().await;
        outbox.close();
        outbox.flushed().await;
    };
    if tokio::time::timeout(FLUSH_DEADLINE, last_words).await.is_err() {
        tracing::warn!("the client did not read everything");
    }
    Ok(())
}
