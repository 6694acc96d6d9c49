//! The transport between us and a server that is a process: one message per line.
//!
//! The library has such a transport too. This one bounds what a server can make us hold, keeps what
//! we send in order (a cancellation must not overtake its call), reads large lines beside the
//! runtime, and goes on after nonsense.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use rmcp::RoleClient;
use rmcp::model::{ClientJsonRpcMessage, ServerJsonRpcMessage};
use rmcp::transport::Transport;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use super::lines::{Line, Lines, MAX_LINE_BYTES, Meaning, read_line};
use super::pace::Pace;
use crate::base::task;
use crate::base::text::one_line;

/// Messages that wait for us.
const INCOMING: usize = 64;
/// What they may weigh together, in KiB.
const INCOMING_KIB: usize = 40 * 1024;
/// Messages that wait for the server.
const OUTGOING: usize = 64;
const OUTGOING_BYTES: usize = 64 * 1024 * 1024;
/// A server that does not read for so long does not live.
const WRITE_PATIENCE: Duration = Duration::from_secs(30);
/// Reading more than this at once would keep a worker of the runtime busy for too long.
const LARGE_BYTES: usize = 128 * 1024;
/// Nonsense is quoted so often, then only counted.
const QUOTED: u64 = 5;
const SHOWN_NONSENSE: usize = 120;

pub(super) struct PipeTransport {
    incoming: mpsc::Receiver<Arrived>,
    outgoing: Option<mpsc::Sender<Outgoing>>,
    queued: Arc<AtomicUsize>,
}

/// A message, and the room it takes until somebody has it.
struct Arrived {
    // Apart, because a queue makes room for dozens of its elements at once.
    message: Box<ServerJsonRpcMessage>,
    _room: Arc<OwnedSemaphorePermit>,
}

struct Outgoing {
    line: Vec<u8>,
    written: oneshot::Sender<io::Result<()>>,
}

impl PipeTransport {
    /// `closed` is cancelled when the server's output ends or its input breaks.
    pub(super) fn new(
        server: &str,
        output: impl AsyncRead + Unpin + Send + 'static,
        input: impl AsyncWrite + Unpin + Send + 'static,
        closed: CancellationToken,
    ) -> Self {
        Self::with_patience(server, output, input, closed, WRITE_PATIENCE)
    }

    fn with_patience(
        server: &str,
        output: impl AsyncRead + Unpin + Send + 'static,
        input: impl AsyncWrite + Unpin + Send + 'static,
        closed: CancellationToken,
        patience: Duration,
    ) -> Self {
        let (to_us, incoming) = mpsc::channel(INCOMING);
        let (outgoing, to_server) = mpsc::channel(OUTGOING);
        let queued = Arc::new(AtomicUsize::new(0));
        let reader = Reader {
            server: server.to_owned(),
            to_us,
            room: Arc::new(Semaphore::new(INCOMING_KIB)),
            replies: outgoing.downgrade(),
            queued: Arc::clone(&queued),
            skipped: 0,
        };
        let ended = closed.clone().drop_guard();
        task::spawn(async move {
            reader.run(Lines::new(output, MAX_LINE_BYTES)).await;
            drop(ended);
        });
        let broken = closed;
        let in_queue = Arc::clone(&queued);
        task::spawn(async move {
            if let Err(error) = write(input, to_server, &in_queue, patience).await {
                tracing::debug!(%error, "an MCP server's input is closed");
                broken.cancel();
            }
        });
        Self { incoming, outgoing: Some(outgoing), queued }
    }
}

impl Transport<RoleClient> for PipeTransport {
    type Error = io::Error;

    /// The message takes its place in the queue at once; the future waits until it is written.
    fn send(&mut self, item: ClientJsonRpcMessage) -> impl Future<Output = io::Result<()>> + Send + 'static {
        let closed = || io::Error::new(io::ErrorKind::BrokenPipe, "the connection is closed");
        let queued = self.outgoing.as_ref().ok_or_else(closed).and_then(|queue| enqueue(queue, &self.queued, &item));
        async move { queued?.await.map_err(|_| closed())? }
    }

    async fn receive(&mut self) -> Option<ServerJsonRpcMessage> {
        self.incoming.recv().await.map(|arrived| *arrived.message)
    }

    async fn close(&mut self) -> io::Result<()> {
        // Without a sender the writer ends, and the server reads the end of its input.
        self.outgoing = None;
        Ok(())
    }
}

fn enqueue(
    queue: &mpsc::Sender<Outgoing>,
    queued: &AtomicUsize,
    message: &ClientJsonRpcMessage,
) -> io::Result<oneshot::Receiver<io::Result<()>>> {
    let mut line = serde_json::to_vec(message).map_err(io::Error::other)?;
    line.push(b'\n');
    let (written, done) = oneshot::channel();
    let length = line.len();
    let full = || io::Error::new(io::ErrorKind::WouldBlock, "the server does not read what it is sent");
    // A single message may be as large as it is; a heap of them may not.
    let before = queued.fetch_add(length, Ordering::Relaxed);
    let sent = if before > 0 && before + length > OUTGOING_BYTES {
        Err(full())
    } else {
        queue.try_send(Outgoing { line, written }).map_err(|_| full())
    };
    if sent.is_err() {
        queued.fetch_sub(length, Ordering::Relaxed);
    }
    sent.map(|()| done)
}

/// Writes until nobody can send any more. What is left in the queue after an error is dropped, which
/// its senders notice.
async fn write(
    mut input: impl AsyncWrite + Unpin,
    mut queue: mpsc::Receiver<Outgoing>,
    queued: &AtomicUsize,
    patience: Duration,
) -> io::Result<()> {
    while let Some(Outgoing { line, written }) = queue.recv().await {
        let writing = async {
            input.write_all(&line).await?;
            input.flush().await
        };
        let slow = || io::Error::new(io::ErrorKind::TimedOut, "the server does not read what it is sent");
        let result = tokio::time::timeout(patience, writing).await.unwrap_or_else(|_| Err(slow()));
        queued.fetch_sub(line.len(), Ordering::Relaxed);
        match result {
            Ok(()) => drop(written.send(Ok(()))),
            Err(error) => {
                let kind = error.kind();
                let _ = written.send(Err(error));
                return Err(kind.into());
            }
        }
    }
    Ok(())
}

struct Reader {
    server: String,
    to_us: mpsc::Sender<Arrived>,
    room: Arc<Semaphore>,
    replies: mpsc::WeakSender<Outgoing>,
    queued: Arc<AtomicUsize>,
    skipped: u64,
}

impl Reader {
    async fn run(mut self, mut lines: Lines<impl AsyncRead + Unpin>) {
        let mut pace = Pace::new();
        loop {
            let line = match lines.next().await {
                Ok(Some(line)) => line,
                Ok(None) => return,
                Err(error) => {
                    tracing::debug!(server = self.server, %error, "an MCP server cannot be read");
                    return;
                }
            };
            let bytes = match &line {
                Line::Whole(bytes) => bytes.len(),
                Line::TooLong { .. } => MAX_LINE_BYTES,
            };
            pace.admit(1, bytes).await;
            if !self.take(line, bytes).await {
                return;
            }
        }
    }

    /// Returns whether anybody still listens.
    async fn take(&mut self, line: Line, bytes: usize) -> bool {
        let kib = u32::try_from((bytes / 1024 + 1).min(INCOMING_KIB)).unwrap_or(u32::MAX);
        let Ok(room) = Arc::clone(&self.room).acquire_many_owned(kib).await else { return false };
        let room = Arc::new(room);
        let quote = self.quote(&line);
        let meaning = if bytes > LARGE_BYTES {
            task::blocking(move || read_line(line)).await.unwrap_or_default()
        } else {
            read_line(line)
        };
        let Meaning { messages, replies, skipped } = meaning;
        if let Some(reason) = skipped {
            self.note_skipped(&reason, quote);
        }
        if let Some(queue) = self.replies.upgrade() {
            for reply in replies {
                // A server that sends requests nobody can read and does not read answers gets none.
                let _ = enqueue(&queue, &self.queued, &reply);
            }
        }
        for message in messages {
            if self.to_us.send(Arrived { message: Box::new(message), _room: Arc::clone(&room) }).await.is_err() {
                return false;
            }
        }
        true
    }

    /// The start of the line, for as long as nonsense is quoted.
    fn quote(&self, line: &Line) -> Option<String> {
        let (Line::Whole(start) | Line::TooLong { head: start, .. }) = line;
        let start = &start[..start.len().min(4 * SHOWN_NONSENSE)];
        (self.skipped < QUOTED).then(|| one_line(&String::from_utf8_lossy(start), SHOWN_NONSENSE))
    }

    fn note_skipped(&mut self, reason: &str, quote: Option<String>) {
        self.skipped += 1;
        let server = &self.server;
        match quote {
            Some(start) => tracing::warn!(server, reason, start, "skipped on an MCP server's output"),
            None if self.skipped.is_multiple_of(1_000) => {
                tracing::warn!(server, lines = self.skipped, "an MCP server goes on writing nonsense");
            }
            None => {}
        }
    }
}

#[cfg(test)]
mod tests;
