//! A front end whose messages are lines, in this process, behind real pipes.

use std::future::Future;
use std::io::{PipeReader, PipeWriter};
use std::ops::{Deref, DerefMut};

use tokio::sync::oneshot;

use crate::peer::{HANG_GUARD, Peer};

/// A running front end and its client.
pub(crate) struct LineServer {
    peer: Peer,
    ended: oneshot::Receiver<std::io::Result<()>>,
}

impl LineServer {
    pub(crate) fn start<F>(serve: impl FnOnce(PipeReader, PipeWriter) -> F + Send + 'static) -> Self
    where
        F: Future<Output = std::io::Result<()>> + Send + 'static,
    {
        Self::start_with(Peer::of_lines, serve)
    }

    /// With a client of this kind, on a runtime like the program's own.
    pub(crate) fn start_with<F>(
        peer: fn(PipeReader, PipeWriter) -> Peer,
        serve: impl FnOnce(PipeReader, PipeWriter) -> F + Send + 'static,
    ) -> Self
    where
        F: Future<Output = std::io::Result<()>> + Send + 'static,
    {
        let (server_input, client_output) = std::io::pipe().unwrap();
        let (client_input, server_output) = std::io::pipe().unwrap();
        let (over, ended) = oneshot::channel();
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
            let served = serve(server_input, server_output);
            let result = runtime.block_on(async { tokio::spawn(served).await });
            runtime.shutdown_background();
            if let Ok(result) = result {
                let _ = over.send(result);
            }
        });
        Self { peer: peer(client_input, client_output), ended }
    }

    /// Waits until it has ended in order and its output is read.
    pub(crate) async fn wait_for_end(&mut self) {
        let ended = tokio::time::timeout(HANG_GUARD, &mut self.ended).await;
        ended.expect("the server did not end").expect("the server broke").expect("the server failed");
        self.end_of_output().await;
    }
}

impl Deref for LineServer {
    type Target = Peer;
    fn deref(&self) -> &Peer {
        &self.peer
    }
}

impl DerefMut for LineServer {
    fn deref_mut(&mut self) -> &mut Peer {
        &mut self.peer
    }
}
