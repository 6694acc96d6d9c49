//! The parts on the path of a chunk, each against the plainest code that could do a part of it.
//!
//! `cargo bench --bench micro` prints one table. Each line is the best of several rounds, because
//! everything else that runs on the machine can only make a round slower.

// What only the other benchmark uses is not dead.
#[allow(dead_code)]
#[path = "support/report.rs"]
mod report;

use std::hint::black_box;
use std::io::Write;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use bytes::Bytes;
use eca::llm::Delta;
use eca::providers::dialects::Decoder as _;
use eca::providers::dialects::openai_chat::ChatDecoder;
use eca::providers::sse::{Event, Events};
use eca::transport::outbox::Limits;
use eca::transport::{Decoded, Decoder, Frame, Framing, Outbox, TextFrame, content_length, envelope};
use futures_util::{FutureExt, StreamExt, stream};
use report::Row;
use serde_json::Value;

type Outcome<T> = Result<T, Box<dyn std::error::Error + Send + Sync>>;

const ROUNDS: usize = 15;
const MESSAGES: usize = 20_000;

fn main() -> ExitCode {
    let rows = [decode(), outbox(), events(), dialect()].into_iter().collect::<Outcome<Vec<Row>>>();
    match rows.and_then(|rows| Ok(report::print(&rows)?)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            report::say(&format!("failed: {error}"));
            ExitCode::FAILURE
        }
    }
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

/// A chunk of the dialect into deltas, against parsing it as JSON.
fn dialect() -> Outcome<Row> {
    let event = Event { name: None, data: chunk().to_owned(), terminated: true };
    let ours = best(|| {
        let mut decoder = ChatDecoder::new(None, None);
        let mut deltas = Vec::new();
        for _ in 0..MESSAGES {
            decoder.event(black_box(&event), &mut deltas).map_err(|fault| format!("{fault:?}"))?;
            if !matches!(black_box(&deltas)[..], [Delta::Text(_)]) {
                return Err("not one text".into());
            }
            deltas.clear();
        }
        Ok(())
    })?;
    let parse = best(|| {
        for _ in 0..MESSAGES {
            black_box(serde_json::from_str::<Value>(black_box(chunk()))?);
        }
        Ok(())
    })?;
    Ok(row("a chunk of the OpenAI dialect into deltas", ours, &[("serde_json alone", parse)], f64::NAN))
}

fn chunk() -> &'static str {
    r#"{"id":"chatcmpl-BhTgE1kPq0xN7","object":"chat.completion.chunk","created":1750000000,"model":"bench-1","system_fingerprint":"fp_0f1e2d","choices":[{"index":0,"delta":{"content":" token"},"logprobs":null,"finish_reason":null}]}"#
}

fn sse_body() -> Bytes {
    Bytes::from(format!("data: {}\n\n", chunk()).repeat(MESSAGES))
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
