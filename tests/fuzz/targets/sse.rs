//! Bytes from a model as server-sent events: the same events however they are cut.

#![no_main]

use bytes::Bytes;
use eca::providers::sse::{Event, Events, SseError};
use eca_fuzz::{pieces, run};
use futures_util::{StreamExt, stream};

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let whole = events(&[data]);
    assert_eq!(whole, events(&pieces(data)));
    let bytes: usize = whole.iter().flatten().map(|event| event.data.len()).sum();
    assert!(bytes <= data.len());
    let cut = whole.iter().position(|item| !matches!(item, Ok(Event { terminated: true, .. })));
    assert!(cut.is_none_or(|at| at + 1 == whole.len()), "something came after the end");
});

fn events(pieces: &[&[u8]]) -> Vec<Result<Event, SseError>> {
    let pieces: Vec<_> = pieces.iter().map(|piece| Ok(Bytes::copy_from_slice(piece))).collect();
    run(Events::new(stream::iter(pieces)).collect())
}
