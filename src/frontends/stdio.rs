//! `eca stdio`: one command for clients of every contract. The first message tells which one the
//! client speaks; from then on that front end has the connection, with every byte of it.

mod detect;

use std::io::{self, Read, Write};
use std::thread;
use std::time::Duration;

use tokio::sync::oneshot;

use crate::frontends::{Surroundings, acp, copilot, eca, traffic};
use crate::process::signals;
use crate::transport::envelope::METHOD_NOT_FOUND;
use crate::transport::newline::{self, Connection, Dialect};
use crate::transport::{Id, Incoming, Message, ResponseError};
pub use detect::Contract;

/// What is queued for the client when we leave gets so much time to be written.
const FLUSH_DEADLINE: Duration = Duration::from_millis(300);

/// Serves one client in its own contract until it leaves. An error means that it could not even
/// begin.
pub async fn serve(
    input: impl Read + Send + 'static,
    output: impl Write + Send + 'static,
    surroundings: Surroundings,
) -> io::Result<()> {
    let (tell, told) = oneshot::channel();
    // A thread of its own: the client may take its time.
    thread::Builder::new().name("contract reader".into()).spawn(move || {
        let _ = tell.send(detect::detect(input, output));
    })?;
    let detected = tokio::select! {
        told = told => told.map_err(io::Error::other)??,
        () = signals::terminate() => return Ok(()),
    };
    let Some(detect::Detected { contract, input, output }) = detected else { return Ok(()) };
    tracing::info!(?contract, "the client's contract is known");
    serve_as(contract, input, output, surroundings).await
}

/// Serves one client in a contract that is known.
pub async fn serve_as(
    contract: Contract,
    input: impl Read + Send + 'static,
    output: impl Write + Send + 'static,
    surroundings: Surroundings,
) -> io::Result<()> {
    match contract {
        Contract::Eca => eca::serve(input, output, surroundings).await,
        Contract::Copilot => copilot::serve(input, output, surroundings).await,
        Contract::AcpV1 => acp::serve(input, output, surroundings).await,
        Contract::AcpDraft => {
            refuse(input, output, Dialect::UNVERSIONED, "the first draft of the Agent Client Protocol").await
        }
    }
}

/// Answers every request with the news that its contract is not served, in that contract's form.
async fn refuse(
    input: impl Read + Send + 'static,
    output: impl Write + Send + 'static,
    dialect: Dialect,
    contract: &str,
) -> io::Result<()> {
    let Connection { peer, mut incoming } = newline::connect(input, traffic::LoggedWriter(output), dialect)?;
    let broken = peer.outbox().broken();
    let version = env!("CARGO_PKG_VERSION");
    let answer = async {
        while let Some(next) = incoming.recv().await {
            let (id, error) = match next {
                Incoming::End { .. } => return,
                Incoming::Bad { code, message, id } => (id.unwrap_or(Id::Null), (code, message)),
                Incoming::Message { message: Message::Request { id, method, .. }, .. } => {
                    let method = crate::base::text::one_line(&method, 100);
                    (id, (METHOD_NOT_FOUND, format!("{method}: eca {version} does not speak {contract} yet")))
                }
                Incoming::Message { .. } => continue,
            };
            let (code, message) = error;
            if peer.respond(&id, &Err(ResponseError { code, message, data: None })).await.is_err() {
                return;
            }
        }
    };
    tokio::select! {
        () = answer => {}
        () = broken.cancelled() => {}
        () = signals::terminate() => {}
    }
    peer.close();
    let _ = tokio::time::timeout(FLUSH_DEADLINE, peer.outbox().flushed()).await;
    Ok(())
}
