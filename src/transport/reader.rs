//! The thread that reads: bytes to frames to messages, off the runtime, with a bound on what may lie
//! between it and the front end.

use std::io::{self, ErrorKind, Read};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use tokio::sync::mpsc::Sender;

use super::content_length::{self, Decoded, Decoder};
use super::envelope::{self, EnvelopeError, Id, Message, PARSE_ERROR};
use super::newline;

const CHUNK: usize = 64 * 1024;
const LONGEST_PAUSE: Duration = Duration::from_millis(20);
const LOOK_FOR_RECEIVER: Duration = Duration::from_secs(1);

/// What the front end receives.
#[derive(Debug)]
pub enum Incoming {
    /// Drop `hold` when the message is handled; the reader stops reading while too many bytes are held.
    Message { message: Message, hold: ByteHold },
    /// Something that is no message; to be logged, and answered under `id` or `null`.
    Bad { code: i64, message: String, id: Option<Id> },
    /// The last item: nothing will follow. Clean means that the input ended between two messages.
    End { clean: bool },
}

/// How much the reader takes in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReaderLimits {
    pub frame: content_length::Limits,
    /// Bytes of messages that are read and not yet handled. A larger message is taken when none is.
    pub unhandled_bytes: usize,
}

impl Default for ReaderLimits {
    fn default() -> Self {
        Self { frame: content_length::Limits::default(), unhandled_bytes: 16 * 1024 * 1024 }
    }
}

/// The share of the reader's budget that one message takes until this is dropped.
#[derive(Debug)]
pub struct ByteHold {
    budget: Arc<Budget>,
    bytes: usize,
}

impl Drop for ByteHold {
    fn drop(&mut self) {
        *self.budget.lock() += self.bytes;
        self.budget.freed.notify_one();
    }
}

/// Starts the reader. The thread ends after [`Incoming::End`], or when the receiver is gone, which it
/// notices at the next message.
pub fn spawn_reader(
    source: impl Read + Send + 'static,
    limits: ReaderLimits,
    sender: Sender<Incoming>,
) -> io::Result<JoinHandle<()>> {
    spawn(source, Decoder::new(limits.frame), limits.unhandled_bytes, sender)
}

/// The same for messages that are lines.
pub fn spawn_line_reader(
    source: impl Read + Send + 'static,
    decoder: newline::Decoder,
    unhandled_bytes: usize,
    sender: Sender<Incoming>,
) -> io::Result<JoinHandle<()>> {
    spawn(source, decoder, unhandled_bytes, sender)
}

fn spawn(
    source: impl Read + Send + 'static,
    decoder: impl Cut + Send + 'static,
    unhandled_bytes: usize,
    sender: Sender<Incoming>,
) -> io::Result<JoinHandle<()>> {
    let reader = Reader { decoder, budget: Arc::new(Budget::new(unhandled_bytes)), sender };
    thread::Builder::new().name("message reader".into()).spawn(move || {
        // An error only says that nobody receives any more.
        let _ = reader.run(source);
    })
}

/// Cuts bytes into messages; one for each framing.
pub(super) trait Cut {
    fn push(&mut self, bytes: &[u8]);

    /// The next frame, or what is wrong with the bytes; `None` when more are needed.
    fn next_frame(&mut self) -> Option<Result<Vec<u8>, String>>;

    /// What is left when the input has ended. Something wrong means that it ended inside a message.
    fn rest(&mut self) -> Option<Result<Vec<u8>, String>>;

    fn read(&self, frame: &[u8]) -> Result<Message, EnvelopeError>;
}

impl Cut for Decoder {
    fn push(&mut self, bytes: &[u8]) {
        Decoder::push(self, bytes);
    }

    fn next_frame(&mut self) -> Option<Result<Vec<u8>, String>> {
        self.next().map(|decoded| match decoded {
            Decoded::Frame(frame) => Ok(frame),
            Decoded::Problem(problem) => Err(problem.to_string()),
        })
    }

    fn rest(&mut self) -> Option<Result<Vec<u8>, String>> {
        let ended = std::mem::replace(self, Decoder::new(content_length::Limits::default()));
        ended.finish().map(|problem| Err(problem.to_string()))
    }

    fn read(&self, frame: &[u8]) -> Result<Message, EnvelopeError> {
        envelope::parse(frame)
    }
}

struct ReceiverGone;

struct Reader<C> {
    decoder: C,
    budget: Arc<Budget>,
    sender: Sender<Incoming>,
}

impl<C: Cut> Reader<C> {
    fn run(mut self, mut source: impl Read) -> Result<(), ReceiverGone> {
        let mut chunk = vec![0; CHUNK];
        let mut pause = Duration::from_millis(1);
        let ended_well = loop {
            match source.read(&mut chunk) {
                Ok(0) => break true,
                Ok(length) => {
                    pause = Duration::from_millis(1);
                    self.decoder.push(chunk.get(..length).unwrap_or_default());
                    while let Some(cut) = self.decoder.next_frame() {
                        self.forward(cut)?;
                    }
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                // Some editors hand over a pipe in non-blocking mode; an empty one is no error.
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    if self.sender.is_closed() {
                        return Err(ReceiverGone);
                    }
                    thread::sleep(pause);
                    pause = (pause * 2).min(LONGEST_PAUSE);
                }
                Err(error) => {
                    tracing::warn!("reading from the client failed: {error}");
                    break false;
                }
            }
        };
        let rest = self.decoder.rest();
        let clean = ended_well && !matches!(rest, Some(Err(_)));
        if let Some(cut) = rest {
            self.forward(cut)?;
        }
        self.sender.blocking_send(Incoming::End { clean }).map_err(|_| ReceiverGone)
    }

    fn forward(&self, cut: Result<Vec<u8>, String>) -> Result<(), ReceiverGone> {
        let incoming = match cut {
            Ok(frame) => {
                let hold = self.budget.take(frame.len(), &self.sender)?;
                match self.decoder.read(&frame) {
                    Ok(message) => Incoming::Message { message, hold },
                    Err(EnvelopeError { code, message, id }) => Incoming::Bad { code, message, id },
                }
            }
            Err(problem) => Incoming::Bad { code: PARSE_ERROR, message: problem, id: None },
        };
        self.sender.blocking_send(incoming).map_err(|_| ReceiverGone)
    }
}

/// Bytes that may still be taken. A plain lock, because the reader is a thread and may block.
#[derive(Debug)]
struct Budget {
    left: Mutex<usize>,
    freed: Condvar,
    whole: usize,
}

impl Budget {
    fn new(unhandled_bytes: usize) -> Self {
        Self { left: Mutex::new(unhandled_bytes), freed: Condvar::new(), whole: unhandled_bytes }
    }

    fn lock(&self) -> MutexGuard<'_, usize> {
        self.left.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take(self: &Arc<Self>, bytes: usize, sender: &Sender<Incoming>) -> Result<ByteHold, ReceiverGone> {
        let bytes = bytes.min(self.whole);
        let mut left = self.lock();
        while *left < bytes {
            // A message may outlive the receiver, so waiting for its bytes alone could last for ever.
            if sender.is_closed() {
                return Err(ReceiverGone);
            }
            let waited = self.freed.wait_timeout(left, LOOK_FOR_RECEIVER);
            left = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        *left -= bytes;
        Ok(ByteHold { budget: Arc::clone(self), bytes })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;
    use tokio::sync::mpsc::{Receiver, channel};

    /// A source that yields what the test sends, and ends when the test drops its end.
    struct Source(mpsc::Receiver<io::Result<Vec<u8>>>);

    impl Read for Source {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let Ok(piece) = self.0.recv() else { return Ok(0) };
            let piece = piece?;
            buffer[..piece.len()].copy_from_slice(&piece);
            Ok(piece.len())
        }
    }

    fn framed(body: &str) -> String {
        format!("Content-Length: {}\r\n\r\n{body}", body.len())
    }

    fn notification(method: &str) -> String {
        framed(&format!(r#"{{"jsonrpc":"2.0","method":"{method}"}}"#))
    }

    fn read_all(input: impl Into<Vec<u8>>) -> Vec<Incoming> {
        let (sender, mut receiver) = channel(100);
        let thread = spawn_reader(io::Cursor::new(input.into()), ReaderLimits::default(), sender).unwrap();
        let received = std::iter::from_fn(|| receiver.blocking_recv()).collect();
        thread.join().unwrap();
        received
    }

    fn method(incoming: &Incoming) -> &str {
        match incoming {
            Incoming::Message { message: Message::Notification { method, .. }, .. } => method,
            other => panic!("a notification is expected: {other:?}"),
        }
    }

    #[test]
    fn messages_arrive_in_order_and_the_end_is_clean() {
        let input: String = (0..50).map(|number| notification(&format!("m{number}"))).collect();
        let received = read_all(input);
        assert_eq!(received.len(), 51);
        for (number, incoming) in received[..50].iter().enumerate() {
            assert_eq!(method(incoming), format!("m{number}"));
        }
        assert!(matches!(received[50], Incoming::End { clean: true }));
    }

    #[test]
    fn what_is_broken_is_told_and_the_next_message_served() {
        let batch = framed("[]");
        let no_version = framed(r#"{"id":7,"method":"m"}"#);
        let malformed = framed("{");
        let input = format!("garbage{batch}{no_version}{malformed}Content-Length: x\r\n\r\n{}", notification("after"));
        let received = read_all(input);
        let codes: Vec<_> = received
            .iter()
            .filter_map(|incoming| match incoming {
                Incoming::Bad { code, id, .. } => Some((*code, id.clone())),
                _ => None,
            })
            .collect();
        let expected = [(-32700, None), (-32600, None), (-32600, Some(Id::Number(7))), (-32700, None), (-32700, None)];
        assert_eq!(codes, expected);
        assert_eq!(method(&received[5]), "after");
        assert!(matches!(received[6], Incoming::End { clean: true }));
    }

    #[test]
    fn an_end_inside_a_message_is_not_clean() {
        let received = read_all("Content-Length: 10\r\n\r\n{");
        assert!(matches!(&received[..], [Incoming::Bad { code: -32700, .. }, Incoming::End { clean: false }]));
    }

    #[test]
    fn read_errors_end_the_input_but_interruptions_do_not() {
        let (input, source) = mpsc::channel();
        let (sender, mut receiver) = channel(10);
        spawn_reader(Source(source), ReaderLimits::default(), sender).unwrap();
        input.send(Err(ErrorKind::Interrupted.into())).unwrap();
        input.send(Err(ErrorKind::WouldBlock.into())).unwrap();
        input.send(Ok(notification("one").into_bytes())).unwrap();
        input.send(Err(ErrorKind::ConnectionReset.into())).unwrap();
        assert_eq!(method(&receiver.blocking_recv().unwrap()), "one");
        assert!(matches!(receiver.blocking_recv(), Some(Incoming::End { clean: false })));
        assert!(receiver.blocking_recv().is_none());
    }

    #[test]
    fn the_thread_ends_when_the_receiver_is_gone() {
        let (input, source) = mpsc::channel();
        let (sender, receiver) = channel(1);
        let thread = spawn_reader(Source(source), ReaderLimits::default(), sender).unwrap();
        drop(receiver);
        input.send(Ok(notification("one").into_bytes())).unwrap();
        thread.join().unwrap();
    }

    fn budget_reader(unhandled_bytes: usize, input: String) -> (Receiver<Incoming>, JoinHandle<()>) {
        let (sender, receiver) = channel(100);
        let limits = ReaderLimits { unhandled_bytes, ..ReaderLimits::default() };
        let thread = spawn_reader(io::Cursor::new(input.into_bytes()), limits, sender).unwrap();
        (receiver, thread)
    }

    #[test]
    fn unhandled_bytes_stop_the_reader_until_they_are_given_back() {
        // Room for one message only; the third is larger than the whole budget.
        let long = "x".repeat(300);
        let input = format!("{}{}{}", notification("one"), notification("two"), notification(&long));
        let (mut receiver, thread) = budget_reader(40, input);
        let first = receiver.blocking_recv().unwrap();
        assert_eq!(method(&first), "one");
        assert!(receiver.is_empty(), "the second message must wait for the first");
        drop(first);
        for expected in ["two", &long] {
            assert_eq!(method(&receiver.blocking_recv().unwrap()), expected);
        }
        assert!(matches!(receiver.blocking_recv(), Some(Incoming::End { clean: true })));
        thread.join().unwrap();
    }

    #[test]
    fn the_budget_is_never_exceeded() {
        let budget = Arc::new(Budget::new(40));
        // Without a receiver, taking fails where it would otherwise wait.
        let (sender, _) = channel(1);
        let first = budget.take(33, &sender).ok().unwrap();
        assert!(budget.take(8, &sender).is_err());
        let second = budget.take(7, &sender).ok().unwrap();
        drop(first);
        assert!(budget.take(1000, &sender).is_err());
        drop(second);
        let larger_than_all = budget.take(1000, &sender).ok().unwrap();
        assert!(budget.take(1, &sender).is_err());
        drop(larger_than_all);
        assert_eq!(*budget.lock(), 40);
    }

    #[test]
    fn a_reader_that_waits_for_bytes_ends_when_the_receiver_is_gone() {
        let (mut receiver, thread) = budget_reader(40, notification("one").repeat(3));
        let held = receiver.blocking_recv().unwrap();
        drop(receiver);
        thread.join().unwrap();
        drop(held);
    }
}
