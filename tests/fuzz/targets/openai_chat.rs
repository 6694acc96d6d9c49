//! Answers of the OpenAI chat dialect.

#![no_main]

use eca::providers::dialects::exchange::Framing;
use eca::providers::dialects::openai_chat::ChatDecoder;
use eca_fuzz::check_dialect;

libfuzzer_sys::fuzz_target!(|data: &[u8]| check_dialect(Framing::Sse, || ChatDecoder::new(None, None), data));
