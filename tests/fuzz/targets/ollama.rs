//! Answers of Ollama, one JSON text per line.

#![no_main]

use eca::providers::dialects::exchange::Framing;
use eca::providers::dialects::ollama::OllamaDecoder;
use eca_fuzz::check_dialect;

libfuzzer_sys::fuzz_target!(|data: &[u8]| check_dialect(Framing::Lines, || OllamaDecoder::default(), data));
