//! The parts on the path of a chunk, each against the plainest code that could do a part of it.
//!
//! `cargo bench --bench micro` prints one table. Each line is the best of several rounds, because
//! everything else that runs on the machine can only make a round slower.

// What only the other benchmark uses is not dead.
#[allow(dead_code)]
#[path = "support/report.rs"]
mod report;
#[path = "support/streams.rs"]
mod streams;

use std::hint::black_box;
use std::io::Write;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use eca::base::ModelId;
use eca::llm::Delta;
use eca::providers::dialects::anthropic::AnthropicDecoder;
use eca::providers::dialects::bedrock::BedrockDecoder;
use eca::providers::dialects::exchange::decode as decode_body;
use eca::providers::dialects::gemini::GeminiDecoder;
use eca::providers::dialects::ollama::OllamaDecoder;
use eca::providers::dialects::openai_chat::ChatDecoder;
use eca::providers::dialects::openai_responses::ResponsesDecoder;
use eca::providers::errors::Origin;
use eca::providers::sse::Events;
use eca::transport::outbox::Limits;
use eca::transport::{Decoded, Decoder, Frame, Framing, Outbox, TextFrame, content_length, envelope};
use futures_util::{FutureExt, StreamExt, stream};
use report::Row;
use serde_json::Value;
use streams::StreamedBody;

type Outcome<T> = Result<T, Box<dyn std::error::Error + Send + Sync>>;

const ROUNDS: usize = 15;
const MESSAGES: usize = 20_000;
const MOST_MICROSECONDS_PER_EVENT: f64 = 3.0;

fn main() -> ExitCode {
    match measure().and_then(|rows| Ok(report::print(&rows)?)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            report::say(&format!("failed: {error}"));
            ExitCode::FAILURE
        }
    }
}

fn measure() -> Outcome<Vec<Row>> {
    let mut rows = vec![decode()?, outbox()?, events()?];
    rows.extend(dialects()?);
    Ok(rows)
}

/// Framing and envelope of incoming messages, against parsing the same bodies as JSON.
fn decode() -> Outcome<Row> {
    let body = r#"{"jsonrpc":"2.0","id":7,"method":"chat/prompt","params":{"chatId":"c-1","message":"explain this","model":"mock/bench-1","contexts":[{"type":"file","path":"/tmp/a.rs"}]}}"#;
    let input = format!("Content-Length: {}\r\n\r\n{body}", body.len()).repeat(MESSAGES).into_bytes();
    let ours = best(|| {
        let mut decoder = Decoder::new(content_length::Limits::default());
        let mut messages = 0;
        for piece in input.chunks(64 * 1024) {
            decoder.push(piece);
            for decoded in decoder.by_ref() {
                let Decoded::Frame(frame) = decoded else { return Err("a frame was lost".into()) };
                black_box(envelope::parse(&frame).map_err(|error| error.message)?);
                messages += 1;
            }
        }
        all(messages)
    })?;
    let parse = best(|| {
        for _ in 0..MESSAGES {
            black_box(serde_json::from_str::<Value>(black_box(body))?);
        }
        Ok(())
    })?;
    let copy = best(|| {
        black_box(black_box(&input).clone());
        Ok(())
    })?;
    let megabytes = input.len() as f64 / 1e6 / (ours * MESSAGES as f64 / 1e9);
    Ok(row("framing + envelope of a message in", ours, &[("serde_json alone", parse), ("copying", copy)], megabytes))
}

/// A text through the queue and the writer thread, against framing and writing it in place.
fn outbox() -> Outcome<Row> {
    let frame = |number: usize| TextFrame {
        key: "c-1".into(),
        head: r#"{"jsonrpc":"2.0","method":"chat/contentReceived","params":{"chatId":"c-1","content":{"text":""#.into(),
        text: format!("{number:08}"),
        tail: r#""}}}"#,
    };
    let ours = best(|| {
        // Merging is for slow clients; here every frame goes out by itself.
        let outbox = Outbox::new(Limits { merge_from: usize::MAX, ..Limits::default() });
        let writer = outbox.clone().spawn_writer(Framing::ContentLength, Sink::default())?;
        let runtime = tokio::runtime::Builder::new_current_thread().build()?;
        runtime.block_on(async {
            for number in 0..MESSAGES {
                outbox.push(Frame::Text(frame(number))).await?;
            }
            Ok::<_, eca::transport::Closed>(())
        })?;
        if !outbox.wait_flushed(Instant::now() + Duration::from_secs(20)) {
            return Err("the outbox was not flushed".into());
        }
        outbox.close();
        writer.join();
        Ok(())
    })?;
    let plain = best(|| {
        let mut sink = Sink::default();
        let mut buffer = Vec::new();
        for number in 0..MESSAGES {
            let frame = frame(number);
            let length = frame.head.len() + frame.text.len() + frame.tail.len();
            buffer.clear();
            write!(buffer, "Content-Length: {length}\r\n\r\n{}{}{}", frame.head, frame.text, frame.tail)?;
            sink.write_all(&buffer)?;
        }
        Ok(())
    })?;
    Ok(row("a text through the outbox and its thread", ours, &[("framing in place", plain)], f64::NAN))
}

/// Server-sent events out of socket reads, against finding the blank lines.
fn events() -> Outcome<Row> {
    let body = sse_body();
    let ours = best(|| {
        let pieces = body.chunks(16 * 1024).map(|piece| Ok(body.slice_ref(piece))).collect::<Vec<_>>();
        let mut events = Events::new(stream::iter(pieces));
        let mut count = 0;
        while let Some(event) = events.next().now_or_never().flatten() {
            black_box(event.map_err(|error| format!("{error:?}"))?);
            count += 1;
        }
        all(count)
    })?;
    let split = best(|| {
        let text = std::str::from_utf8(&body)?;
        let data = text.split_terminator("\n\n").map(|event| event.trim_start_matches("data: ").to_owned());
        all(data.map(black_box).count())
    })?;
    Ok(row("one server-sent event", ours, &[("splitting and copying", split)], f64::NAN))
}

/// Bodies of every dialect into deltas, framing included, against parsing the events as JSON.
fn dialects() -> Outcome<Vec<Row>> {
    let model = ModelId::new("bench", "claude");
    Ok(vec![
        dialect("OpenAI chat", &streams::openai_chat(), || ChatDecoder::new(None, None))?,
        dialect("OpenAI responses", &streams::openai_responses(), || ResponsesDecoder::new("bench"))?,
        dialect("Anthropic", &streams::anthropic(), || AnthropicDecoder::new(&model))?,
        dialect("Gemini", &streams::gemini(), || GeminiDecoder::new("bench"))?,
        dialect("Ollama", &streams::ollama(), OllamaDecoder::default)?,
        dialect("Bedrock", &streams::bedrock(), || BedrockDecoder::new(&model))?,
    ])
}

fn dialect<D: eca::providers::dialects::Decoder>(
    name: &str,
    body: &StreamedBody,
    decoder: impl Fn() -> D,
) -> Outcome<Row> {
    let origin = Arc::new(Origin::new("bench", "bench-1", "http://localhost", Vec::new()));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build()?;
    let whole = body.bytes(MESSAGES);
    let ours = best(|| {
        let pieces = whole.chunks(16 * 1024).map(|piece| Ok(whole.slice_ref(piece))).collect::<Vec<_>>();
        let mut deltas = decode_body(body.framing, stream::iter(pieces).boxed(), Arc::clone(&origin), decoder());
        runtime.block_on(async {
            let (mut texts, mut stops) = (0, 0);
            while let Some(delta) = deltas.next().await {
                match black_box(delta).map_err(|error| error.user_text)? {
                    Delta::Text(_) => texts += 1,
                    Delta::Stop(_) => stops += 1,
                    _ => {}
                }
            }
            if stops == 1 { all(texts) } else { Err(format!("{name}: {stops} stops").into()) }
        })
    })?;
    let parse = best(|| {
        for _ in 0..MESSAGES {
            black_box(serde_json::from_str::<Value>(black_box(&body.event))?);
        }
        Ok(())
    })?;
    let measured = format!("{ours:.0} ns; {:.2} × serde_json alone ({parse:.0} ns)", ours / parse);
    let figure = format!("one event of the {name} dialect, framing included");
    Ok(Row::at_most(&figure, ours / 1e3, MOST_MICROSECONDS_PER_EVENT, "µs", measured))
}

fn sse_body() -> Bytes {
    streams::openai_chat().bytes(MESSAGES - 2)
}

/// Nanoseconds per message in the best round.
fn best(mut round: impl FnMut() -> Outcome<()>) -> Outcome<f64> {
    let mut least = f64::INFINITY;
    for _ in 0..ROUNDS {
        let started = Instant::now();
        round()?;
        least = least.min(started.elapsed().as_nanos() as f64 / MESSAGES as f64);
    }
    Ok(least)
}

fn all(count: usize) -> Outcome<()> {
    if count == MESSAGES { Ok(()) } else { Err(format!("{count} of {MESSAGES} came through").into()) }
}

fn row(figure: &str, ours: f64, baselines: &[(&str, f64)], megabytes_per_second: f64) -> Row {
    let mut text = format!("{ours:.0} ns");
    if megabytes_per_second.is_finite() {
        text.push_str(&format!(", {megabytes_per_second:.0} MB/s"));
    }
    for (name, baseline) in baselines {
        text.push_str(&format!("; {:.2} × {name} ({baseline:.0} ns)", ours / baseline));
    }
    Row::note(figure, text)
}

/// Takes everything and looks at it, as the least that a pipe does.
#[derive(Default)]
struct Sink(u64);

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0 = black_box(self.0 + bytes.len() as u64);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}
