//! Tool calls as llama.cpp (b11549) really streamed them, for each dialect it speaks.
//!
//! They deviate from the originals: no places in the responses, no event at the end of arguments,
//! no `input` in the message's block, no usage unless it is asked for.

use super::Decoder;
use super::anthropic::AnthropicDecoder;
use super::exchange::Framing;
use super::openai_chat::ChatDecoder;
use super::openai_responses::ResponsesDecoder;
use super::testing::{CALLS, decode_pieces};
use crate::base::ModelId;
use crate::llm::Delta;

async fn check(decoder: impl Decoder, recorded: &'static str, tokens: Option<(u64, u64)>) {
    let (deltas, result) = decode_pieces(Framing::Sse, decoder, vec![recorded.into()]).await;
    assert_eq!(result, Ok(()));
    assert_eq!(deltas.last(), Some(&CALLS), "{deltas:?}");
    let mut calls = Vec::new();
    let mut arguments = String::new();
    let mut counted = None;
    for delta in &deltas {
        match delta {
            Delta::ToolCallStart { index, id, name } => calls.push((*index, !id.is_empty(), name.as_str())),
            Delta::ToolCallArguments { index: 0, text } => arguments.push_str(text),
            Delta::Usage(usage) => counted = Some((usage.input + usage.cache_read, usage.output)),
            Delta::Stop(_) => {}
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(calls, [(0, true, "get_weather")]);
    assert_eq!(arguments, r#"{"city": "Paris"}"#);
    assert_eq!(counted, tokens);
}

#[tokio::test]
async fn chat() {
    check(ChatDecoder::new(None, None), include_str!("recorded/llama_cpp_openai_chat.sse"), None).await;
}

#[tokio::test]
async fn responses() {
    let recorded = include_str!("recorded/llama_cpp_openai_responses.sse");
    check(ResponsesDecoder::new("acme/m"), recorded, Some((302, 31))).await;
}

#[tokio::test]
async fn messages() {
    let recorded = include_str!("recorded/llama_cpp_anthropic.sse");
    check(AnthropicDecoder::new(&ModelId::new("acme", "m")), recorded, Some((302, 31))).await;
}
