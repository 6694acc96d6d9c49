//! Answers of the Gemini dialect.

#![no_main]

use eca::providers::dialects::exchange::Framing;
use eca::providers::dialects::gemini::GeminiDecoder;
use eca_fuzz::check_dialect;

libfuzzer_sys::fuzz_target!(|data: &[u8]| check_dialect(Framing::Sse, || GeminiDecoder::new("fuzz"), data));
