//! A long answer in the words of each dialect: how it begins, the event that repeats, how it ends.

use bytes::Bytes;
use eca::providers::dialects::exchange::Framing;

/// An answer of any number of equal texts.
#[derive(Debug)]
pub(crate) struct StreamedBody {
    pub(crate) framing: Framing,
    /// The JSON of the event that repeats.
    pub(crate) event: String,
    head: Vec<u8>,
    repeated: Vec<u8>,
    tail: Vec<u8>,
}

impl StreamedBody {
    pub(crate) fn bytes(&self, events: usize) -> Bytes {
        Bytes::from([self.head.clone(), self.repeated.repeat(events), self.tail.clone()].concat())
    }

    fn new(framing: Framing, head: &[(&str, &str)], event: (&str, &str), tail: &[(&str, &str)]) -> Self {
        let write = |events: &[(&str, &str)]| -> Vec<u8> {
            events.iter().flat_map(|(name, json)| written(framing, name, json)).collect()
        };
        Self { framing, event: event.1.to_owned(), head: write(head), repeated: write(&[event]), tail: write(tail) }
    }
}

pub(crate) fn openai_chat() -> StreamedBody {
    const EVENT: &str = r#"{"id":"chatcmpl-BhTgE1kPq0xN7","object":"chat.completion.chunk","created":1750000000,"model":"bench-1","system_fingerprint":"fp_0f1e2d","choices":[{"index":0,"delta":{"content":" token"},"logprobs":null,"finish_reason":null}]}"#;
    const LAST: &str = r#"{"id":"chatcmpl-BhTgE1kPq0xN7","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}"#;
    StreamedBody::new(Framing::Sse, &[], ("", EVENT), &[("", LAST), ("", "[DONE]")])
}

pub(crate) fn openai_responses() -> StreamedBody {
    const ADDED: &str = r#"{"type":"response.output_item.added","output_index":0,"item":{"id":"msg_1","type":"message","role":"assistant","status":"in_progress","content":[]}}"#;
    const EVENT: &str = r#"{"type":"response.output_text.delta","sequence_number":7,"item_id":"msg_1","output_index":0,"content_index":0,"delta":" token","logprobs":[],"obfuscation":"a8Kd02"}"#;
    const LAST: &str = r#"{"type":"response.completed","response":{"id":"resp_1","status":"completed","output":[],"usage":{"input_tokens":9,"output_tokens":9}}}"#;
    StreamedBody::new(
        Framing::Sse,
        &[("response.output_item.added", ADDED)],
        ("response.output_text.delta", EVENT),
        &[("response.completed", LAST)],
    )
}

pub(crate) fn anthropic() -> StreamedBody {
    const START: &str = r#"{"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","content":[],"usage":{"input_tokens":9,"output_tokens":1}}}"#;
    const OPEN: &str = r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}"#;
    const EVENT: &str = r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":" token"}}"#;
    const LAST: &str = r#"{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":9}}"#;
    StreamedBody::new(
        Framing::Sse,
        &[("message_start", START), ("content_block_start", OPEN)],
        ("content_block_delta", EVENT),
        &[
            ("content_block_stop", r#"{"type":"content_block_stop","index":0}"#),
            ("message_delta", LAST),
            ("message_stop", r#"{"type":"message_stop"}"#),
        ],
    )
}

pub(crate) fn gemini() -> StreamedBody {
    const EVENT: &str = r#"{"candidates":[{"content":{"parts":[{"text":" token"}],"role":"model"},"index":0}],"usageMetadata":{"promptTokenCount":9,"candidatesTokenCount":9,"totalTokenCount":18},"modelVersion":"bench-1","responseId":"aBcDeFgH"}"#;
    const LAST: &str = r#"{"candidates":[{"content":{"role":"model"},"finishReason":"STOP","index":0}]}"#;
    StreamedBody::new(Framing::Sse, &[], ("", EVENT), &[("", LAST)])
}

pub(crate) fn ollama() -> StreamedBody {
    const EVENT: &str = r#"{"model":"bench-1","created_at":"2025-06-15T12:00:00.123456789Z","message":{"role":"assistant","content":" token"},"done":false}"#;
    const LAST: &str = r#"{"model":"bench-1","message":{"content":""},"done_reason":"stop","done":true}"#;
    StreamedBody::new(Framing::Lines, &[], ("", EVENT), &[("", LAST)])
}

pub(crate) fn bedrock() -> StreamedBody {
    const EVENT: &str = r#"{"contentBlockIndex":0,"delta":{"text":" token"},"p":"abcdefghijklmnop"}"#;
    StreamedBody::new(
        Framing::EventStream,
        &[("messageStart", r#"{"role":"assistant"}"#)],
        ("contentBlockDelta", EVENT),
        &[("contentBlockStop", r#"{"contentBlockIndex":0}"#), ("messageStop", r#"{"stopReason":"end_turn"}"#)],
    )
}

fn written(framing: Framing, name: &str, json: &str) -> Vec<u8> {
    match framing {
        Framing::Sse if name.is_empty() => format!("data: {json}\n\n").into_bytes(),
        Framing::Sse => format!("event: {name}\ndata: {json}\n\n").into_bytes(),
        Framing::Lines => format!("{json}\n").into_bytes(),
        Framing::EventStream => frame(name, json),
    }
}

/// One of Amazon's frames: lengths, headers, payload, and checksums of the first and of all.
fn frame(name: &str, json: &str) -> Vec<u8> {
    let mut headers = Vec::new();
    let fields = [(":event-type", name), (":content-type", "application/json"), (":message-type", "event")];
    for (header, value) in fields {
        headers.push(header.len() as u8);
        headers.extend_from_slice(header.as_bytes());
        headers.push(7);
        headers.extend_from_slice(&(value.len() as u16).to_be_bytes());
        headers.extend_from_slice(value.as_bytes());
    }
    let mut frame = ((16 + headers.len() + json.len()) as u32).to_be_bytes().to_vec();
    frame.extend_from_slice(&(headers.len() as u32).to_be_bytes());
    frame.extend_from_slice(&checksum(&frame).to_be_bytes());
    frame.extend_from_slice(&headers);
    frame.extend_from_slice(json.as_bytes());
    frame.extend_from_slice(&checksum(&frame).to_be_bytes());
    frame
}

fn checksum(bytes: &[u8]) -> u32 {
    let step = |sum: u32, _| if sum & 1 == 1 { 0xEDB8_8320 ^ (sum >> 1) } else { sum >> 1 };
    !bytes.iter().fold(!0, |sum, byte| (0..8).fold(sum ^ u32::from(*byte), step))
}
