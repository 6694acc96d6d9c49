//! Server-sent events out of a byte stream, with a limit on the size of one event.
//!
//! The parsing is `sse-stream`'s: it takes bytes split anywhere, any line ending and a byte order
//! mark, in linear time. What it lacks is here: a limit, a count of bytes, and the last event of
//! servers that end the body without the blank line the standard asks for.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::task::{Context, Poll};

use bytes::Bytes;
use futures_util::{Stream, StreamExt, stream};
use sse_stream::SseByteStream;

use crate::llm::LlmError;

/// An event beyond this size is a mistake or an attack.
pub const MAX_EVENT_BYTES: usize = 16 * 1024 * 1024;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// The `event:` line, when there was one.
    pub name: Option<String>,
    /// The `data:` lines, joined with line feeds.
    pub data: String,
    /// Whether the blank line after the event came. Without it the body ended here, and the
    /// event may be cut.
    pub terminated: bool,
}

#[derive(Debug, Clone, PartialEq)]
pub enum SseError {
    TooLarge,
    NotUtf8,
    /// The bytes could not be read.
    Source(LlmError),
}

/// The events of one body. Dropping it drops the source.
pub struct Events {
    inner: Pin<Box<dyn Stream<Item = Result<Event, SseError>> + Send>>,
    meter: Arc<Meter>,
}

/// Counts shared between the source, which the parser owns, and the events that come out of it.
#[derive(Debug, Default)]
struct Meter {
    since_event: AtomicUsize,
    total: AtomicU64,
    source_ended: AtomicBool,
}

impl Events {
    pub fn new(source: impl Stream<Item = Result<Bytes, LlmError>> + Send + 'static) -> Self {
        Self::with_limit(source, MAX_EVENT_BYTES)
    }

    /// How many bytes have been read.
    pub fn total_bytes(&self) -> u64 {
        self.meter.total.load(Ordering::Relaxed)
    }

    fn with_limit(source: impl Stream<Item = Result<Bytes, LlmError>> + Send + 'static, limit: usize) -> Self {
        let meter = Arc::new(Meter::default());
        let counted = {
            let meter = Arc::clone(&meter);
            source.map(move |chunk| {
                let chunk = chunk.map_err(SourceError::Read)?;
                meter.total.fetch_add(chunk.len() as u64, Ordering::Relaxed);
                let waiting = meter.since_event.fetch_add(chunk.len(), Ordering::Relaxed) + chunk.len();
                if waiting > limit { Err(SourceError::TooLarge) } else { Ok(chunk) }
            })
        };
        let tail = {
            let meter = Arc::clone(&meter);
            stream::once(async move {
                meter.source_ended.store(true, Ordering::Relaxed);
                Ok(Bytes::from_static(b"\n\n"))
            })
        };
        let events = {
            let meter = Arc::clone(&meter);
            SseByteStream::new(counted.chain(tail)).filter_map(move |event| {
                let event = convert(event, &meter);
                async move { event }
            })
        };
        Self { inner: Box::pin(events), meter }
    }
}

impl Stream for Events {
    type Item = Result<Event, SseError>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.inner.as_mut().poll_next(context)
    }
}

impl std::fmt::Debug for Events {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Events").field("meter", &self.meter).finish_non_exhaustive()
    }
}

#[derive(Debug, thiserror::Error)]
enum SourceError {
    #[error("the event is too large")]
    TooLarge,
    #[error(transparent)]
    Read(LlmError),
}

/// Blocks without data (an id, a retry time) are of no use to anyone here.
fn convert(event: Result<sse_stream::Sse, sse_stream::Error>, meter: &Meter) -> Option<Result<Event, SseError>> {
    match event {
        Ok(event) => {
            meter.since_event.store(0, Ordering::Relaxed);
            let terminated = !meter.source_ended.load(Ordering::Relaxed);
            let name = event.event;
            event.data.map(|data| Ok(Event { name, data, terminated }))
        }
        Err(sse_stream::Error::Body(error)) => Some(Err(match error.downcast::<SourceError>() {
            Ok(error) => match *error {
                SourceError::TooLarge => SseError::TooLarge,
                SourceError::Read(error) => SseError::Source(error),
            },
            Err(_) => SseError::NotUtf8,
        })),
        // A body that ends inside a character is a cut body, not a wrong one.
        Err(_) if meter.source_ended.load(Ordering::Relaxed) => None,
        Err(_) => Some(Err(SseError::NotUtf8)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::llm::ErrorClass;

    async fn decode_chunks(chunks: Vec<Bytes>, limit: usize) -> Vec<Result<Event, SseError>> {
        Events::with_limit(stream::iter(chunks.into_iter().map(Ok)), limit).collect().await
    }

    async fn decode(text: &[u8]) -> Vec<Result<Event, SseError>> {
        decode_chunks(vec![Bytes::copy_from_slice(text)], MAX_EVENT_BYTES).await
    }

    fn event(name: Option<&str>, data: &str) -> Result<Event, SseError> {
        Ok(Event { name: name.map(str::to_owned), data: data.to_owned(), terminated: true })
    }

    type Case = (&'static [u8], Vec<Result<Event, SseError>>);

    fn table() -> Vec<Case> {
        vec![
            (b"data: a\n\ndata: b\n\n", vec![event(None, "a"), event(None, "b")]),
            (b"\xEF\xBB\xBFdata: a\n\n", vec![event(None, "a")]),
            (b"data:a\n\n", vec![event(None, "a")]),
            (b"data:  a\n\n", vec![event(None, " a")]),
            (b"event: ping\ndata: {}\n\n", vec![event(Some("ping"), "{}")]),
            (b"data: a\r\rdata: b\r\r", vec![event(None, "a"), event(None, "b")]),
            (b"data: a\r\n\r\ndata: b\r\n\r\n", vec![event(None, "a"), event(None, "b")]),
            (b"data: a\ndata: b\ndata:\n\n", vec![event(None, "a\nb\n")]),
            (b": keep-alive\n\n: again\n\ndata: a\n: inside\ndata: b\n\n", vec![event(None, "a\nb")]),
            (b"id: 1\nretry: 5\n\ndata: a\n\n", vec![event(None, "a")]),
            ("data: é€😀\n\n".as_bytes(), vec![event(None, "é€😀")]),
            (b"unknown: x\ndata: a\n\n", vec![event(None, "a")]),
            (b"\n\n\n", vec![]),
        ]
    }

    #[tokio::test]
    async fn whole_and_split_at_every_byte() {
        for (text, expected) in table() {
            assert_eq!(decode(text).await, expected, "{:?}", String::from_utf8_lossy(text));
            for at in 0..=text.len() {
                let halves = vec![Bytes::copy_from_slice(&text[..at]), Bytes::copy_from_slice(&text[at..])];
                assert_eq!(decode_chunks(halves, MAX_EVENT_BYTES).await, expected, "{at} {text:?}");
            }
            let single = text.iter().map(|byte| Bytes::copy_from_slice(&[*byte])).collect();
            assert_eq!(decode_chunks(single, MAX_EVENT_BYTES).await, expected, "byte by byte {text:?}");
        }
    }

    #[tokio::test]
    async fn truncated_anywhere_only_the_last_event_is_marked_as_cut() {
        let text = b"data: one\n\ndata: two\n\n";
        for end in 0..text.len() {
            let events: Vec<Event> = decode(&text[..end]).await.into_iter().map(Result::unwrap).collect();
            for (index, event) in events.iter().enumerate() {
                let whole = ["one", "two"][index];
                assert!(if event.terminated { event.data == whole } else { whole.starts_with(&event.data) }, "{end}");
                assert!(event.terminated || index + 1 == events.len(), "{end}");
            }
        }
        assert_eq!(decode(b"data: one\n\ndata: \xC3").await, vec![event(None, "one")], "cut inside a character");
        let last = decode(b"data: [DONE]").await;
        assert_eq!(last, vec![Ok(Event { name: None, data: "[DONE]".into(), terminated: false })]);
    }

    #[tokio::test]
    async fn an_event_beyond_the_limit_is_an_error_and_not_memory() {
        let endless = stream::repeat_with(|| Ok(Bytes::from_static(b"data: xxxxxxxxxxxxxxxx")));
        let mut events = Events::with_limit(endless, 1000);
        assert_eq!(events.next().await, Some(Err(SseError::TooLarge)));
        assert_eq!(events.next().await, None);
        assert!(events.total_bytes() < 2000);
    }

    #[tokio::test]
    async fn the_limit_is_per_event_not_per_stream() {
        let chunks = vec![Bytes::from_static(b"data: 0123456789\n\n"); 100];
        let events = decode_chunks(chunks, 40).await;
        assert_eq!(events.len(), 100);
        assert!(events.iter().all(Result::is_ok));
    }

    #[tokio::test]
    async fn a_large_event_passes_in_many_small_pieces() {
        let mut chunks = vec![Bytes::from_static(b"data: ")];
        chunks.extend(std::iter::repeat_n(Bytes::from(vec![b'x'; 1024]), 8 * 1024));
        chunks.push(Bytes::from_static(b"\n\n"));
        let events = decode_chunks(chunks, MAX_EVENT_BYTES).await;
        assert_eq!(events.len(), 1);
        assert_eq!(events[0].as_ref().unwrap().data.len(), 8 * 1024 * 1024);
    }

    #[tokio::test]
    async fn bytes_that_are_not_utf8_are_an_error() {
        assert_eq!(decode(b"data: a\n\ndata: \xFF\xFE\n\n").await, vec![event(None, "a"), Err(SseError::NotUtf8)]);
    }

    #[tokio::test]
    async fn a_read_error_comes_through_and_drops_the_open_event() {
        let error = LlmError {
            class: ErrorClass::Network,
            status: None,
            provider: "p".into(),
            retry_after: None,
            user_text: "broken".into(),
        };
        let source = stream::iter(vec![Ok(Bytes::from_static(b"data: a\n\ndata: b")), Err(error.clone())]);
        let events: Vec<_> = Events::new(source).collect().await;
        assert_eq!(events, vec![event(None, "a"), Err(SseError::Source(error))]);
    }
}
