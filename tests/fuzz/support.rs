//! What the targets share: cutting input into pieces, and the promises that every dialect keeps.

use std::collections::BTreeSet;
use std::future::Future;
use std::sync::Arc;

use bytes::Bytes;
use eca::llm::{Delta, LlmError};
use eca::providers::dialects::Decoder;
use eca::providers::dialects::exchange::{Framing, decode};
use eca::providers::errors::Origin;
use futures_util::{StreamExt, stream};

type Item = Result<Delta, LlmError>;

/// The input in pieces whose lengths follow from the input itself, so that a finding repeats.
pub fn pieces(data: &[u8]) -> Vec<&[u8]> {
    let mut seed = data.iter().fold(data.len(), |sum, byte| sum.wrapping_mul(31).wrapping_add(usize::from(*byte)));
    let mut found = Vec::new();
    let mut rest = data;
    while !rest.is_empty() {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let length = (1 + (seed >> 33) % 9).min(rest.len());
        let (piece, after) = rest.split_at(length);
        found.push(piece);
        rest = after;
    }
    found
}

/// Runs what reads a body to its end; nothing in it waits.
pub fn run<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
    runtime.block_on(future)
}

/// A body through a dialect: the same deltas however it is cut, one end, and no part of a call
/// before its start.
pub fn check_dialect<D: Decoder>(framing: Framing, decoder: impl Fn() -> D, data: &[u8]) {
    let whole = deltas(framing, decoder(), &[data]);
    let cut = deltas(framing, decoder(), &pieces(data));
    assert_eq!(whole, cut);
    let is_end = |item: &Item| matches!(item, Err(_) | Ok(Delta::Stop(_)));
    assert_eq!(whole.iter().filter(|item| is_end(item)).count(), 1, "{whole:?}");
    assert!(whole.last().is_some_and(is_end), "{whole:?}");
    let (mut started, mut bytes) = (BTreeSet::new(), 0);
    for delta in whole.iter().flatten() {
        match delta {
            Delta::ToolCallStart { index, .. } => assert!(started.insert(*index), "{whole:?}"),
            Delta::ToolCallReplay { index, .. } => assert!(started.contains(index), "{whole:?}"),
            Delta::ToolCallArguments { index, text } => {
                assert!(started.contains(index), "{whole:?}");
                bytes += text.len();
            }
            Delta::Text(text) | Delta::Reasoning(text) => bytes += text.len(),
            _ => {}
        }
    }
    // A number may be written longer than it came, a text may not grow without bound.
    assert!(bytes <= 32 * data.len() + 4096, "{bytes} bytes out of {}", data.len());
    // The same bytes as an answer in one piece.
    let (mut decoder, mut out) = (decoder(), Vec::new());
    if decoder.whole(data, &mut out).is_ok() {
        let _ = decoder.end(&mut out);
    }
}

/// One frame of Amazon's event stream. Checksums are nothing that guessing finds.
pub fn event_stream_frame(kind: &str, name: &str, payload: &[u8]) -> Vec<u8> {
    let type_header = if kind == "exception" { ":exception-type" } else { ":event-type" };
    let mut headers = Vec::new();
    for (header, value) in [(":message-type", kind), (type_header, name)] {
        headers.push(header.len() as u8);
        headers.extend_from_slice(header.as_bytes());
        headers.push(7);
        headers.extend_from_slice(&(value.len() as u16).to_be_bytes());
        headers.extend_from_slice(value.as_bytes());
    }
    let mut frame = ((16 + headers.len() + payload.len()) as u32).to_be_bytes().to_vec();
    frame.extend_from_slice(&(headers.len() as u32).to_be_bytes());
    frame.extend_from_slice(&checksum(&frame).to_be_bytes());
    frame.extend_from_slice(&headers);
    frame.extend_from_slice(payload);
    frame.extend_from_slice(&checksum(&frame).to_be_bytes());
    frame
}

fn checksum(bytes: &[u8]) -> u32 {
    let step = |sum: u32, _| if sum & 1 == 1 { 0xEDB8_8320 ^ (sum >> 1) } else { sum >> 1 };
    !bytes.iter().fold(!0, |sum, byte| (0..8).fold(sum ^ u32::from(*byte), step))
}

fn deltas(framing: Framing, decoder: impl Decoder, pieces: &[&[u8]]) -> Vec<Item> {
    let pieces: Vec<_> = pieces.iter().map(|piece| Ok(Bytes::copy_from_slice(piece))).collect();
    let origin = Arc::new(Origin::new("fuzz", "model", "http://localhost", Vec::new()));
    run(decode(framing, stream::iter(pieces).boxed(), origin, decoder).collect())
}
