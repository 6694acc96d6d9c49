//! The thread that writes, so that a client which does not read blocks nobody else.

use std::io::{self, ErrorKind, Write};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use super::lane::Frame;
use super::{Outbox, Shared};

const KEPT_CAPACITY: usize = 1024 * 1024;
const LONGEST_PAUSE: Duration = Duration::from_millis(20);

/// How bodies are told apart on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// `Content-Length: N`, an empty line, the body.
    ContentLength,
    /// One body per line; bodies must not contain line breaks.
    Newline,
}

/// The running writer thread.
#[derive(Debug)]
pub struct WriterHandle {
    thread: JoinHandle<()>,
}

impl WriterHandle {
    pub fn is_finished(&self) -> bool {
        self.thread.is_finished()
    }

    /// Blocks until the writer has ended, which it does once the outbox is closed and drained, or broken.
    /// May block for as long as the client does not read; see [`Outbox::wait_flushed`].
    pub fn join(self) {
        // A panic of the sink has already marked the outbox as broken.
        let _ = self.thread.join();
    }
}

impl Outbox {
    /// Starts the only writer. The sink must not buffer by lines, because each frame is handed over in
    /// exactly one `write` (see [`raw_stdout`](crate::transport::standard_streams::raw_stdout)).
    pub fn spawn_writer(self, framing: Framing, sink: impl Write + Send + 'static) -> io::Result<WriterHandle> {
        let shared = Arc::clone(self.shared());
        let thread = thread::Builder::new().name("outbox writer".into()).spawn(move || run(&shared, framing, sink))?;
        Ok(WriterHandle { thread })
    }
}

/// Marks the outbox as broken when the writer ends before its time, also by a panic of the sink.
struct BreakUnlessDone<'a> {
    shared: &'a Shared,
    done: bool,
}

impl Drop for BreakUnlessDone<'_> {
    fn drop(&mut self) {
        if !self.done {
            self.shared.break_off();
        }
    }
}

fn run(shared: &Shared, framing: Framing, mut sink: impl Write) {
    let mut guard = BreakUnlessDone { shared, done: false };
    let mut buffer = Vec::new();
    while let Some(frame) = shared.wait_for_frame() {
        encode(framing, &frame, &mut buffer);
        drop(frame);
        if let Err(error) = write_whole(&mut sink, &buffer) {
            tracing::warn!("writing to the client failed: {error}");
            return;
        }
        buffer.clear();
        if buffer.capacity() > KEPT_CAPACITY {
            buffer.shrink_to(KEPT_CAPACITY / 16);
        }
    }
    guard.done = true;
}

fn encode(framing: Framing, frame: &Frame, buffer: &mut Vec<u8>) {
    let length = frame.body_len();
    buffer.clear();
    buffer.reserve(length + 40);
    match framing {
        Framing::ContentLength => {
            // Writing into a vector cannot fail.
            let _ = write!(buffer, "Content-Length: {length}\r\n\r\n");
            frame.append_to(buffer);
        }
        Framing::Newline => {
            frame.append_to(buffer);
            buffer.push(b'\n');
        }
    }
}

/// One `write` call, repeated only for what it left over.
fn write_whole(sink: &mut impl Write, bytes: &[u8]) -> io::Result<()> {
    let mut rest = bytes;
    let mut pause = Duration::from_millis(1);
    while !rest.is_empty() {
        match sink.write(rest) {
            Ok(0) => return Err(ErrorKind::WriteZero.into()),
            Ok(written) => {
                rest = rest.get(written..).unwrap_or_default();
                pause = Duration::from_millis(1);
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            // Some editors hand over a pipe in non-blocking mode; a full one is no error.
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                thread::sleep(pause);
                pause = (pause * 2).min(LONGEST_PAUSE);
            }
            Err(error) => return Err(error),
        }
    }
    sink.flush()
}
