//! Bytes from a client: the same frames however they are cut, and an envelope for each.

#![no_main]

use eca::transport::content_length::{Decoded, Decoder, FrameProblem, Limits};
use eca::transport::envelope;
use eca_fuzz::pieces;

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let (whole, whole_end) = decode(&[data]);
    let (cut, cut_end) = decode(&pieces(data));
    assert_eq!(whole, cut);
    assert_eq!(whole_end, cut_end);
    let mut bytes = 0;
    for decoded in &whole {
        if let Decoded::Frame(frame) = decoded {
            bytes += frame.len();
            if let Ok(envelope::Message::Request { method, .. }) = envelope::parse(frame) {
                assert!(method.len() <= frame.len());
            }
        }
    }
    assert!(bytes <= data.len());
    // The envelope alone, because few inputs get that far.
    let _ = envelope::parse(data);
});

fn decode(pieces: &[&[u8]]) -> (Vec<Decoded>, Option<FrameProblem>) {
    // Small, so that every limit is within reach.
    let mut decoder = Decoder::new(Limits { max_frame: 100, absurd_length: 1000 });
    let mut found = Vec::new();
    for piece in pieces {
        decoder.push(piece);
        found.extend(decoder.by_ref());
    }
    (found, decoder.finish())
}
