//! Answers to requests, given without waiting where they are made: what comes next must be heard
//! although the client does not read.

use std::sync::Arc;

use tokio::sync::Semaphore;

use crate::base::task;
use crate::transport::newline::Peer;
use crate::transport::{Id, Outcome};

/// Answers for one connection.
#[derive(Debug, Clone)]
pub(super) struct Answers {
    peer: Peer,
    /// Those that wait for the client to read.
    late: Arc<Semaphore>,
}

impl Answers {
    /// So many may wait.
    pub(super) fn new(peer: Peer, most_late: usize) -> Self {
        Self { peer, late: Arc::new(Semaphore::new(most_late)) }
    }

    pub(super) fn give(&self, id: Id, outcome: Outcome) {
        if self.peer.respond_now(&id, &outcome) {
            return;
        }
        let Ok(place) = Arc::clone(&self.late).try_acquire_owned() else {
            tracing::warn!(%id, "the client floods us and does not read; a request is not answered");
            return;
        };
        let peer = self.peer.clone();
        task::spawn(async move {
            let _ = peer.respond(&id, &outcome).await;
            drop(place);
        });
    }
}
