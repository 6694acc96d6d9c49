//! Answers of the Anthropic dialect.

#![no_main]

use eca::base::ModelId;
use eca::providers::dialects::anthropic::AnthropicDecoder;
use eca::providers::dialects::exchange::Framing;
use eca_fuzz::check_dialect;

libfuzzer_sys::fuzz_target!(|data: &[u8]| check_dialect(
    Framing::Sse,
    || AnthropicDecoder::new(&ModelId::new("fuzz", "claude")),
    data
));
