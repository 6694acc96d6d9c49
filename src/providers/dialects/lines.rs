//! One JSON text per line, as Ollama streams: the lines of a body as events, with a limit on one.

use std::collections::VecDeque;

use bytes::{Bytes, BytesMut};
use futures_util::stream::BoxStream;
use futures_util::{Stream, StreamExt, stream};

use crate::llm::LlmError;
use crate::providers::sse::{Event, MAX_EVENT_BYTES, SseError};

/// The lines of a body. Blank ones are left out; a last one without its line feed is marked as
/// not terminated, because it may be cut.
pub(super) fn events(
    source: impl Stream<Item = Result<Bytes, LlmError>> + Send + 'static,
) -> BoxStream<'static, Result<Event, SseError>> {
    with_limit(source, MAX_EVENT_BYTES)
}

fn with_limit(
    source: impl Stream<Item = Result<Bytes, LlmError>> + Send + 'static,
    limit: usize,
) -> BoxStream<'static, Result<Event, SseError>> {
    let state = State { source: source.boxed(), open: BytesMut::new(), ready: VecDeque::new(), over: false, limit };
    stream::unfold(state, |mut state| async move {
        loop {
            if let Some(item) = state.ready.pop_front() {
                return Some((item, state));
            }
            if state.over {
                return None;
            }
            let chunk = state.source.next().await;
            state.take(chunk);
        }
    })
    .boxed()
}

struct State {
    source: BoxStream<'static, Result<Bytes, LlmError>>,
    /// The line that has no end yet.
    open: BytesMut,
    ready: VecDeque<Result<Event, SseError>>,
    over: bool,
    limit: usize,
}

impl State {
    fn take(&mut self, chunk: Option<Result<Bytes, LlmError>>) {
        match chunk {
            Some(Ok(chunk)) => {
                // Only the new bytes are searched, so that a long line costs its length once.
                let mut rest = &chunk[..];
                while let Some(at) = rest.iter().position(|byte| *byte == b'\n') {
                    self.open.extend_from_slice(&rest[..at]);
                    rest = &rest[at + 1..];
                    self.end_line(true);
                    if self.over {
                        return;
                    }
                }
                self.open.extend_from_slice(rest);
                if self.open.len() > self.limit {
                    self.fail(SseError::TooLarge);
                }
            }
            Some(Err(error)) => self.fail(SseError::Source(error)),
            None => {
                self.end_line(false);
                self.over = true;
            }
        }
    }

    fn end_line(&mut self, terminated: bool) {
        let line = self.open.split();
        if line.len() > self.limit {
            return self.fail(SseError::TooLarge);
        }
        match std::str::from_utf8(&line) {
            Ok(line) => {
                let line = line.trim_start_matches('\u{feff}').trim();
                if !line.is_empty() {
                    self.ready.push_back(Ok(Event { name: None, data: line.to_owned(), terminated }));
                }
            }
            // A body that ends inside a character is a cut body, not a wrong one.
            Err(_) if !terminated => {}
            Err(_) => self.fail(SseError::NotUtf8),
        }
    }

    fn fail(&mut self, error: SseError) {
        self.ready.push_back(Err(error));
        self.open.clear();
        self.over = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::llm::ErrorClass;

    async fn decode(pieces: Vec<Bytes>, limit: usize) -> Vec<Result<Event, SseError>> {
        with_limit(stream::iter(pieces.into_iter().map(Ok)), limit).collect().await
    }

    fn line(data: &str, terminated: bool) -> Result<Event, SseError> {
        Ok(Event { name: None, data: data.to_owned(), terminated })
    }

    #[tokio::test]
    async fn whole_and_split_at_every_byte() {
        let table: [(&[u8], Vec<_>); 5] = [
            (b"{\"a\":1}\n{\"b\":2}\n", vec![line("{\"a\":1}", true), line("{\"b\":2}", true)]),
            (b"\xEF\xBB\xBFa\r\n\r\n \nb", vec![line("a", true), line("b", false)]),
            ("é€😀\n".as_bytes(), vec![line("é€😀", true)]),
            (b"a\n\xC3", vec![line("a", true)]),
            (b"", vec![]),
        ];
        for (text, expected) in table {
            for at in 0..=text.len() {
                let halves = vec![Bytes::copy_from_slice(&text[..at]), Bytes::copy_from_slice(&text[at..])];
                assert_eq!(decode(halves, 1000).await, expected, "{text:?} at {at}");
            }
        }
    }

    #[tokio::test]
    async fn a_line_beyond_the_limit_is_an_error_and_not_memory() {
        let endless = stream::repeat_with(|| Ok(Bytes::from_static(b"xxxxxxxxxxxxxxxx")));
        let all: Vec<_> = with_limit(endless, 100).collect().await;
        assert_eq!(all, vec![Err(SseError::TooLarge)]);
        let many = vec![Bytes::from_static(b"0123456789\n"); 100];
        assert_eq!(decode(many, 20).await.len(), 100, "the limit is per line");
    }

    #[tokio::test]
    async fn bad_bytes_and_read_errors_end_the_lines() {
        assert_eq!(
            decode(vec![Bytes::from_static(b"a\n\xFF\nb\n")], 100).await,
            vec![line("a", true), Err(SseError::NotUtf8)]
        );
        let error = LlmError {
            class: ErrorClass::Network,
            status: None,
            provider: "p".into(),
            retry_after: None,
            user_text: "x".into(),
        };
        let source = stream::iter(vec![Ok(Bytes::from_static(b"a\nb")), Err(error.clone())]);
        let all: Vec<_> = events(source).collect().await;
        assert_eq!(all, vec![line("a", true), Err(SseError::Source(error))]);
    }
}
