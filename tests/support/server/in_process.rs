//! A front end whose messages are lines, in this process, behind real pipes, on a runtime like the
//! program's own.

use std::io::{PipeReader, PipeWriter};

use tokio::sync::oneshot;

use crate::peer::{HANG_GUARD, Peer, text_of};

/// A running server and its client.
pub struct InProcess {
    pub peer: Peer,
    ended: oneshot::Receiver<std::io::Result<()>>,
}

impl InProcess {
    /// `peer` is the client, `serve` the server.
    pub fn start<F>(
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
            // On a worker, as in the program: the thread that blocks here runs no tasks.
            let result = runtime.block_on(async { tokio::spawn(serve(server_input, server_output)).await });
            runtime.shutdown_background();
            if let Ok(result) = result {
                let _ = over.send(result);
            }
        });
        Self { peer: peer(client_input, client_output), ended }
    }

    /// Waits until the server has ended; nothing may be left to be read.
    pub async fn wait_for_end(mut self) {
        let ended = tokio::time::timeout(HANG_GUARD, &mut self.ended).await;
        ended.expect("the server did not end").expect("the server broke").expect("the server failed");
        self.peer.end_of_output().await;
        let unread: Vec<String> = self.peer.take_unread().iter().map(text_of).collect();
        assert!(unread.is_empty(), "nobody read:\n  {}", unread.join("\n  "));
    }
}
