//! `stream/chunk`: pieces of one request's result, numbered, not too many, and the last one marked.

use std::time::Duration;

use serde::Serialize;
use tokio::time::Instant;

use super::methods::STREAM_CHUNK;
use crate::transport::newline::Peer;
use crate::transport::{Closed, Id};

/// At most twenty a second.
const PAUSE: Duration = Duration::from_millis(50);

/// The chunks of one request. Nothing is sent when the client does not want any.
pub(super) struct Chunks {
    peer: Peer,
    id: Id,
    wanted: bool,
    index: u64,
    waiting: String,
    /// When the next one may be sent.
    next: Option<Instant>,
    done: bool,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Params<'a> {
    request_id: &'a Id,
    chunk: &'a str,
    done: bool,
    index: u64,
}

impl Chunks {
    pub(super) fn new(peer: Peer, id: Id, wanted: bool) -> Self {
        Self { peer, id, wanted, index: 0, waiting: String::new(), next: None, done: false }
    }

    /// What the request itself says about streaming counts too.
    pub(super) fn only_if(&mut self, wanted: bool) {
        self.wanted &= wanted;
    }

    /// Adds a piece; waits when the client does not read.
    pub(super) async fn add(&mut self, piece: &str) -> Result<(), Closed> {
        if !self.wanted || piece.is_empty() {
            return Ok(());
        }
        self.waiting.push_str(piece);
        if self.next.is_none_or(|next| next <= Instant::now()) { self.flush().await } else { Ok(()) }
    }

    /// When [`flush_if_due`](Self::flush_if_due) is to be called, if nothing is added before.
    pub(super) fn due(&self) -> Option<Instant> {
        self.next.filter(|_| !self.waiting.is_empty())
    }

    pub(super) async fn flush_if_due(&mut self) -> Result<(), Closed> {
        if self.due().is_some_and(|due| due <= Instant::now()) { self.flush().await } else { Ok(()) }
    }

    async fn flush(&mut self) -> Result<(), Closed> {
        self.send(false).await?;
        self.next = Some(Instant::now() + PAUSE);
        Ok(())
    }

    /// Everything was added.
    pub(super) async fn finish(&mut self) -> Result<(), Closed> {
        if self.wanted && !self.done { self.send(true).await } else { Ok(()) }
    }

    /// The request failed: whoever saw a part of the result learns that no more will come.
    pub(super) async fn break_off(&mut self) -> Result<(), Closed> {
        self.waiting.clear();
        if self.index > 0 { self.finish().await } else { Ok(()) }
    }

    async fn send(&mut self, done: bool) -> Result<(), Closed> {
        let params = Params { request_id: &self.id, chunk: &self.waiting, done, index: self.index };
        self.peer.notify(STREAM_CHUNK, &params).await?;
        self.waiting.clear();
        self.index += 1;
        self.done = done;
        Ok(())
    }
}
