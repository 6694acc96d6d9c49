//! Answers of the OpenAI responses dialect.

#![no_main]

use eca::providers::dialects::exchange::Framing;
use eca::providers::dialects::openai_responses::ResponsesDecoder;
use eca_fuzz::check_dialect;

libfuzzer_sys::fuzz_target!(|data: &[u8]| check_dialect(Framing::Sse, || ResponsesDecoder::new("fuzz"), data));
