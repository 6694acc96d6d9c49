//! `eca stdio`: one command for clients of every contract. The first message tells which one the
//! client speaks; from then on that front end has the connection, with every byte of it.

mod detect;

use std::io::{self, Read, Write};
use std::thread;

use tokio::sync::oneshot;

use crate::config::load;
use crate::frontends::{Surroundings, acp, acp_draft, copilot, eca};
use crate::process::signals;
pub use detect::Contract;

/// Serves one client in its own contract until it leaves. An error means that it could not even
/// begin.
pub async fn serve(
    input: impl Read + Send + 'static,
    output: impl Write + Send + 'static,
    surroundings: Surroundings,
) -> io::Result<()> {
    // Before the client can hear anything of us, and end us.
    let terminated = signals::terminate();
    let (tell, told) = oneshot::channel();
    // A thread of its own: the client may take its time.
    thread::Builder::new().name("contract reader".into()).spawn(move || {
        let _ = tell.send(detect::detect(input, output));
    })?;
    let detected = tokio::select! {
        told = told => told.map_err(io::Error::other)??,
        () = terminated => return Ok(()),
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
        Contract::AcpDraft => acp_draft::serve(input, output, surroundings, load::current_directory()).await,
    }
}
