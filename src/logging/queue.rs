//! One place that log lines go to: a bounded queue and the thread that empties it.

use std::io::{ErrorKind, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::time::{Duration, Instant};

/// How many lines may wait.
pub(super) const CAPACITY: usize = 1024;

/// How long to wait before asking again: a full queue at the end, or a pipe that an editor has set
/// to non-blocking and that is full.
const RETRY_DELAY: Duration = Duration::from_millis(5);

enum Message {
    Line(Arc<str>),
    Flush(SyncSender<()>),
}

/// The sending side.
#[derive(Clone, Debug)]
pub(super) struct Queue {
    sender: SyncSender<Message>,
    dropped: Arc<AtomicU64>,
}

impl Queue {
    /// `None` when the system gives us no thread; then there are no logs.
    pub(super) fn start(sink: Box<dyn Write + Send>) -> Option<Self> {
        let (sender, receiver) = sync_channel(CAPACITY);
        let dropped = Arc::new(AtomicU64::new(0));
        let counter = Arc::clone(&dropped);
        std::thread::Builder::new()
            .name("log".to_owned())
            .stack_size(128 * 1024)
            .spawn(move || write_lines(sink, &receiver, &counter))
            .ok()?;
        Some(Self { sender, dropped })
    }

    /// Never waits.
    pub(super) fn push(&self, line: Arc<str>) {
        if self.sender.try_send(Message::Line(line)).is_err() {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Asks for an answer once everything before it has been written; `false` when there is no
    /// room for the question now.
    pub(super) fn ask_for_flush(&self, done: &SyncSender<()>) -> bool {
        !matches!(self.sender.try_send(Message::Flush(done.clone())), Err(TrySendError::Full(_)))
    }
}

/// Waits until all queues have written what they hold, or until `deadline`. All are asked before
/// any is waited for, so that a stuck one costs the others nothing.
pub(super) fn flush(queues: &[Queue], deadline: Instant) {
    let (done, answers) = sync_channel(queues.len());
    let mut unasked: Vec<&Queue> = queues.iter().collect();
    loop {
        unasked.retain(|queue| !queue.ask_for_flush(&done));
        if unasked.is_empty() || Instant::now() >= deadline {
            break;
        }
        std::thread::sleep(RETRY_DELAY);
    }
    drop(done);
    // The channel also ends when a thread has died together with the question it held.
    while answers.recv_timeout(deadline.saturating_duration_since(Instant::now())).is_ok() {}
}

impl std::fmt::Debug for Message {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Line(_) => "Line",
            Self::Flush(_) => "Flush",
        })
    }
}

fn write_lines(mut sink: Box<dyn Write + Send>, receiver: &Receiver<Message>, dropped: &AtomicU64) {
    while let Ok(message) = receiver.recv() {
        match message {
            Message::Line(line) => {
                write_all(&mut sink, line.as_bytes());
                report_dropped(&mut sink, dropped);
            }
            Message::Flush(done) => {
                report_dropped(&mut sink, dropped);
                let _ = sink.flush();
                let _ = done.try_send(());
            }
        }
    }
}

fn report_dropped(sink: &mut Box<dyn Write + Send>, dropped: &AtomicU64) {
    let count = dropped.swap(0, Ordering::Relaxed);
    if count > 0 {
        let text = format!("{count} log lines dropped");
        write_all(sink, super::layer::line(crate::base::time::now_ms(), "WARN", None, &text).as_bytes());
    }
}

/// Like the standard one, but a full non-blocking pipe is waited for instead of losing a part of a
/// line. Other errors mean that nobody reads any more.
fn write_all(sink: &mut Box<dyn Write + Send>, mut bytes: &[u8]) {
    while !bytes.is_empty() {
        match sink.write(bytes) {
            Ok(0) => return,
            Ok(written) => bytes = bytes.get(written..).unwrap_or_default(),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock => std::thread::sleep(RETRY_DELAY),
            Err(_) => return,
        }
    }
}
