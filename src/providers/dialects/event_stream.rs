//! Amazon's binary event stream: frames with two checksums around small JSON payloads.
//!
//! A frame is a prelude (total length, length of the headers, checksum of both), typed headers, a
//! payload, and a checksum of everything before it; all numbers are big-endian. The result is the
//! same [`Event`] that server-sent events become: `name` is the event's type, and for a failure
//! `exception/<type>` or `error/<code>`.

use bytes::{Buf, Bytes, BytesMut};
use futures_util::{Stream, StreamExt, stream};

use crate::llm::LlmError;
use crate::providers::sse::{Event, MAX_EVENT_BYTES};

#[derive(Debug, Clone, PartialEq)]
pub(super) enum FrameError {
    Malformed(&'static str),
    /// The bytes could not be read.
    Source(LlmError),
}

/// The events of a body. One that ends inside a frame just ends: the decoder above knows whether
/// the answer was complete.
pub(super) fn events<S>(source: S) -> impl Stream<Item = Result<Event, FrameError>> + Send
where
    S: Stream<Item = Result<Bytes, LlmError>> + Send + Unpin + 'static,
{
    let start = Some((source, Frames::default()));
    stream::unfold(start, |state| async move {
        let (mut source, mut frames) = state?;
        loop {
            match frames.next() {
                Ok(Some(event)) => return Some((Ok(event), Some((source, frames)))),
                Ok(None) => {}
                Err(what) => return Some((Err(FrameError::Malformed(what)), None)),
            }
            match source.next().await? {
                Ok(chunk) => frames.push(&chunk),
                Err(error) => return Some((Err(FrameError::Source(error)), None)),
            }
        }
    })
}

const PRELUDE: usize = 12;
const CHECKSUM: usize = 4;

/// Takes bytes split anywhere and gives whole frames.
#[derive(Debug, Default)]
struct Frames {
    waiting: BytesMut,
}

impl Frames {
    fn push(&mut self, bytes: &[u8]) {
        self.waiting.extend_from_slice(bytes);
    }

    /// The next event, or `None` when more bytes are needed. After an error nothing can be read.
    fn next(&mut self) -> Result<Option<Event>, &'static str> {
        loop {
            let Some(mut prelude) = self.waiting.get(..PRELUDE) else { return Ok(None) };
            if checksum(&prelude[..8]) != (&prelude[8..]).get_u32() {
                return Err("a frame of the stream has a wrong prelude");
            }
            let (total, headers) = (prelude.get_u32() as usize, prelude.get_u32() as usize);
            if total > MAX_EVENT_BYTES {
                return Err("one event of the stream is larger than 16 MiB");
            }
            if total.checked_sub(PRELUDE + CHECKSUM).is_none_or(|room| headers > room) {
                return Err("a frame of the stream is shorter than its headers");
            }
            if self.waiting.len() < total {
                // Room for all of it at once, so that a large frame is not copied again and again.
                self.waiting.reserve(total - self.waiting.len());
                return Ok(None);
            }
            let frame = self.waiting.split_to(total);
            let (content, mut sum) = frame.split_at(total - CHECKSUM);
            if checksum(content) != sum.get_u32() {
                return Err("a frame of the stream has a wrong checksum");
            }
            let (headers, payload) = content[PRELUDE..].split_at(headers);
            if let Some(event) = event(&Headers::parse(headers)?, payload)? {
                return Ok(Some(event));
            }
        }
    }
}

/// The headers that matter.
#[derive(Debug, Default)]
struct Headers {
    message_type: String,
    event_type: String,
    exception_type: String,
    error_code: String,
    error_message: String,
}

impl Headers {
    fn parse(mut bytes: &[u8]) -> Result<Self, &'static str> {
        const CUT: &str = "the headers of a frame are cut";
        let mut headers = Self::default();
        while !bytes.is_empty() {
            let name_length = usize::from(bytes.get_u8());
            let (name, rest) = bytes.split_at_checked(name_length).ok_or(CUT)?;
            let (kind, rest) = rest.split_first().ok_or(CUT)?;
            bytes = rest;
            let length = match kind {
                // True and false have no value.
                0 | 1 => 0,
                2 => 1,
                3 => 2,
                4 => 4,
                5 | 8 => 8,
                6 | 7 if bytes.len() >= 2 => usize::from(bytes.get_u16()),
                9 => 16,
                _ => return Err(CUT),
            };
            let (value, rest) = bytes.split_at_checked(length).ok_or(CUT)?;
            bytes = rest;
            let slot = match name {
                b":message-type" => &mut headers.message_type,
                b":event-type" => &mut headers.event_type,
                b":exception-type" => &mut headers.exception_type,
                b":error-code" => &mut headers.error_code,
                b":error-message" => &mut headers.error_message,
                _ => continue,
            };
            *slot = String::from_utf8_lossy(value).into_owned();
        }
        Ok(headers)
    }
}

/// `None` for kinds of messages that mean nothing to anyone here.
fn event(headers: &Headers, payload: &[u8]) -> Result<Option<Event>, &'static str> {
    let text = std::str::from_utf8(payload).map_err(|_| "the stream is not UTF-8 text")?;
    let (name, data) = match headers.message_type.as_str() {
        "event" => (headers.event_type.clone(), text),
        "exception" => (format!("exception/{}", headers.exception_type), text),
        "error" => (format!("error/{}", headers.error_code), headers.error_message.as_str()),
        _ => return Ok(None),
    };
    Ok(Some(Event { name: Some(name), data: data.to_owned(), terminated: true }))
}

/// CRC-32 as in Ethernet and zip.
fn checksum(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0, |sum, byte| CRC_TABLE[((sum ^ u32::from(*byte)) & 0xFF) as usize] ^ (sum >> 8))
}

const CRC_TABLE: [u32; 256] = crc_table();

const fn crc_table() -> [u32; 256] {
    let mut table = [0; 256];
    let mut index = 0;
    while index < 256 {
        let mut value = index as u32;
        let mut bit = 0;
        while bit < 8 {
            value = if value & 1 == 1 { 0xEDB8_8320 ^ (value >> 1) } else { value >> 1 };
            bit += 1;
        }
        table[index] = value;
        index += 1;
    }
    table
}

/// A frame with text headers, for tests of everything that reads frames.
#[cfg(test)]
pub(super) fn frame(headers: &[(&str, &str)], payload: &str) -> Vec<u8> {
    let mut block = Vec::new();
    for (name, value) in headers {
        block.push(u8::try_from(name.len()).unwrap());
        block.extend_from_slice(name.as_bytes());
        block.push(7);
        block.extend_from_slice(&u16::try_from(value.len()).unwrap().to_be_bytes());
        block.extend_from_slice(value.as_bytes());
    }
    raw_frame(&block, payload.as_bytes())
}

#[cfg(test)]
fn raw_frame(headers: &[u8], payload: &[u8]) -> Vec<u8> {
    let total = u32::try_from(PRELUDE + headers.len() + payload.len() + CHECKSUM).unwrap();
    let mut frame = total.to_be_bytes().to_vec();
    frame.extend_from_slice(&u32::try_from(headers.len()).unwrap().to_be_bytes());
    frame.extend_from_slice(&checksum(&frame).to_be_bytes());
    frame.extend_from_slice(headers);
    frame.extend_from_slice(payload);
    frame.extend_from_slice(&checksum(&frame).to_be_bytes());
    frame
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::llm::ErrorClass;

    fn normal(kind: &str, payload: &str) -> Vec<u8> {
        frame(&[(":message-type", "event"), (":event-type", kind), (":content-type", "application/json")], payload)
    }

    async fn decode(pieces: Vec<Bytes>) -> Vec<Result<Event, FrameError>> {
        events(stream::iter(pieces.into_iter().map(Ok)).boxed()).collect().await
    }

    async fn decode_whole(bytes: &[u8]) -> Vec<Result<Event, FrameError>> {
        decode(vec![Bytes::copy_from_slice(bytes)]).await
    }

    fn event(name: &str, data: &str) -> Result<Event, FrameError> {
        Ok(Event { name: Some(name.to_owned()), data: data.to_owned(), terminated: true })
    }

    #[test]
    fn the_checksum_is_the_published_one() {
        assert_eq!(checksum(b"123456789"), 0xCBF4_3926);
        assert_eq!(checksum(b""), 0);
    }

    /// Vectors that Amazon publishes for this format.
    #[tokio::test]
    async fn published_frames() {
        let empty = [0, 0, 0, 0x10, 0, 0, 0, 0, 0x05, 0xC2, 0x48, 0xEB, 0x7D, 0x98, 0xC8, 0xFF];
        assert_eq!(decode_whole(&empty).await, vec![], "no headers, no payload");
        let mut payload = vec![0, 0, 0, 0x1D, 0, 0, 0, 0, 0xFD, 0x52, 0x8C, 0x5A];
        payload.extend_from_slice(br"{'foo':'bar'}");
        payload.extend_from_slice(&[0xC3, 0x65, 0x39, 0x36]);
        assert_eq!(decode_whole(&payload).await, vec![], "a payload, and no type that says what it is");
        payload[20] ^= 1;
        assert!(decode_whole(&payload).await[0].is_err());
    }

    #[tokio::test]
    async fn whole_split_and_byte_by_byte() {
        let mut bytes = normal("messageStart", r#"{"role":"assistant"}"#);
        bytes.extend(normal("contentBlockDelta", "{\"é\":\"€😀\"}"));
        bytes.extend(frame(&[(":message-type", "exception"), (":exception-type", "throttlingException")], "{}"));
        bytes.extend(frame(&[(":message-type", "error"), (":error-code", "X"), (":error-message", "bad")], ""));
        let expected = vec![
            event("messageStart", r#"{"role":"assistant"}"#),
            event("contentBlockDelta", "{\"é\":\"€😀\"}"),
            event("exception/throttlingException", "{}"),
            event("error/X", "bad"),
        ];
        assert_eq!(decode_whole(&bytes).await, expected);
        for at in 0..=bytes.len() {
            let halves = vec![Bytes::copy_from_slice(&bytes[..at]), Bytes::copy_from_slice(&bytes[at..])];
            assert_eq!(decode(halves).await, expected, "split at {at}");
        }
        assert_eq!(decode(bytes.iter().map(|byte| Bytes::copy_from_slice(&[*byte])).collect()).await, expected);
    }

    #[tokio::test]
    async fn a_cut_body_just_ends() {
        let first = normal("a", "{}");
        let mut bytes = first.clone();
        bytes.extend(normal("b", "{}"));
        for end in 0..bytes.len() {
            let expected = if end >= first.len() { vec![event("a", "{}")] } else { vec![] };
            assert_eq!(decode_whole(&bytes[..end]).await, expected, "{end}");
        }
    }

    #[tokio::test]
    async fn every_flipped_bit_is_noticed() {
        let bytes = normal("contentBlockDelta", r#"{"delta":{"text":"hi"}}"#);
        for at in 0..bytes.len() {
            for bit in 0..8 {
                let mut broken = bytes.clone();
                broken[at] ^= 1 << bit;
                let events = decode_whole(&broken).await;
                assert!(matches!(events.as_slice(), [Err(FrameError::Malformed(_))]), "{at}.{bit}: {events:?}");
            }
        }
    }

    #[tokio::test]
    async fn lengths_that_lie_are_errors_and_not_memory() {
        let prelude = |total: u32, headers: u32| {
            let mut bytes = total.to_be_bytes().to_vec();
            bytes.extend_from_slice(&headers.to_be_bytes());
            bytes.extend_from_slice(&checksum(&bytes).to_be_bytes());
            bytes
        };
        for (total, headers) in [(u32::MAX, 0), (17 * 1024 * 1024, 0), (0, 0), (15, 0), (40, 25), (16, u32::MAX)] {
            let events = decode_whole(&prelude(total, headers)).await;
            assert!(matches!(events.as_slice(), [Err(FrameError::Malformed(_))]), "{total} {headers}: {events:?}");
        }
        for headers in
            [&b"\x05ab"[..], b"\x01a", b"\x01a\x07\x00", b"\x01a\x07\x00\x09x", b"\x01a\x63", b"\x01a\x04abc"]
        {
            let events = decode_whole(&raw_frame(headers, b"{}")).await;
            assert!(matches!(events.as_slice(), [Err(FrameError::Malformed(_))]), "{headers:?}: {events:?}");
        }
        let not_text = raw_frame(b"\x0d:message-type\x07\x00\x05event", b"\xFF\xFE");
        assert!(decode_whole(&not_text).await[0].is_err());
    }

    #[tokio::test]
    async fn headers_of_every_type_are_passed_over() {
        let mut headers = Vec::new();
        for (kind, value) in [(0u8, &b""[..]), (1, b""), (2, b"1"), (3, b"12"), (4, b"1234"), (5, b"12345678")] {
            headers.extend_from_slice(&[1, b'h', kind]);
            headers.extend_from_slice(value);
        }
        headers.extend_from_slice(b"\x01h\x06\x00\x03abc\x01h\x0812345678\x01h\x091234567890123456");
        headers.extend_from_slice(b"\x0d:message-type\x07\x00\x05event\x0b:event-type\x07\x00\x01z");
        assert_eq!(decode_whole(&raw_frame(&headers, b"{}")).await, vec![event("z", "{}")]);
    }

    #[tokio::test]
    async fn a_read_error_comes_through_and_ends_it() {
        let error = LlmError {
            class: ErrorClass::Network,
            status: None,
            provider: "p".into(),
            retry_after: None,
            user_text: "broken".into(),
        };
        let bytes = Bytes::from(normal("a", "{}"));
        let source = stream::iter(vec![Ok(bytes), Err(error.clone()), Ok(Bytes::new())]).boxed();
        let found: Vec<_> = events(source).collect().await;
        assert_eq!(found, vec![event("a", "{}"), Err(FrameError::Source(error))]);
    }
}
