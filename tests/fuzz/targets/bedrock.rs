//! Answers of Bedrock: lines of `name payload` become frames with the right checksums, and the same
//! bytes also go in as they are.

#![no_main]

use eca::base::ModelId;
use eca::providers::dialects::bedrock::BedrockDecoder;
use eca::providers::dialects::exchange::Framing;
use eca_fuzz::{check_dialect, event_stream_frame};

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let decoder = || BedrockDecoder::new(&ModelId::new("fuzz", "claude"));
    check_dialect(Framing::EventStream, decoder, data);
    let mut frames = Vec::new();
    for line in data.split(|byte| *byte == b'\n') {
        let space = line.iter().position(|byte| *byte == b' ').unwrap_or(line.len());
        let (name, payload) = line.split_at(space);
        let name = String::from_utf8_lossy(&name[..name.len().min(200)]);
        let (kind, name) = name.strip_prefix('!').map_or(("event", &*name), |name| ("exception", name));
        frames.extend(event_stream_frame(kind, name, payload));
    }
    check_dialect(Framing::EventStream, decoder, &frames);
});
