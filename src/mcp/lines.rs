//! Lines out of a byte stream, never longer than allowed, and what a line means.

use std::future::poll_fn;
use std::mem::MaybeUninit;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use rmcp::model::{ClientJsonRpcMessage, ErrorCode, ErrorData, JsonRpcMessage, RequestId, ServerJsonRpcMessage};
use serde_json::Value;
use tokio::io::{AsyncRead, ReadBuf};

/// A message with 16 MiB of content and its envelope; a longer line is skipped.
pub(super) const MAX_LINE_BYTES: usize = 17 * 1024 * 1024;
/// How much is read at once; it lies on the stack for as long as reading takes.
const PIECE_BYTES: usize = 32 * 1024;
/// How much of a line that is too long is kept, at each end, to find out what it answers.
const KEPT_BYTES: usize = 512;
/// Lines below this are not worth counting.
const LARGE_BYTES: usize = 1024 * 1024;
/// Each value costs memory; a large line may have so many.
const MOST_VALUES: usize = 1_000_000;
/// More messages in one batch than anybody sends.
const MOST_IN_A_BATCH: usize = 1_000;

/// One line, without its end.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Line {
    Whole(Vec<u8>),
    /// Its beginning and its end.
    TooLong {
        head: Vec<u8>,
        tail: Vec<u8>,
    },
}

/// Reads lines. Dozens of these wait most of the time, so they hold no memory while they do.
#[derive(Debug)]
pub(super) struct Lines<R> {
    source: R,
    /// What was read last, and how much of it was given away.
    piece: Vec<u8>,
    given: usize,
    limit: usize,
}

impl<R: AsyncRead + Unpin> Lines<R> {
    pub(super) fn new(source: R, limit: usize) -> Self {
        Self { source, piece: Vec::new(), given: 0, limit }
    }

    /// What comes next; nothing at the end.
    async fn available(&mut self) -> std::io::Result<&[u8]> {
        if self.given == self.piece.len() {
            (self.piece, self.given) = (Vec::new(), 0);
            self.piece = poll_fn(|context| poll_piece(&mut self.source, context)).await?;
        }
        Ok(&self.piece[self.given..])
    }

    /// The next line; nothing at the end. A last line without an end is given too.
    pub(super) async fn next(&mut self) -> std::io::Result<Option<Line>> {
        let limit = self.limit;
        let mut line = Vec::new();
        let mut tail: Option<Vec<u8>> = None;
        let mut is_empty = true;
        loop {
            let available = self.available().await?;
            let at_end = available.is_empty();
            let end = available.iter().position(|byte| *byte == b'\n');
            let piece = &available[..end.unwrap_or(available.len())];
            is_empty &= at_end;
            match &mut tail {
                Some(tail) => keep_end(tail, piece),
                None if line.len() + piece.len() > limit => {
                    let mut end = line[line.len().saturating_sub(KEPT_BYTES)..].to_vec();
                    line.truncate(KEPT_BYTES);
                    line.extend_from_slice(&piece[..piece.len().min(KEPT_BYTES.saturating_sub(line.len()))]);
                    line.shrink_to_fit();
                    keep_end(&mut end, piece);
                    tail = Some(end);
                }
                None => line.extend_from_slice(piece),
            }
            let used = piece.len() + usize::from(end.is_some());
            self.given += used;
            if end.is_some() || at_end {
                break;
            }
        }
        Ok(match tail {
            _ if is_empty => None,
            Some(tail) => Some(Line::TooLong { head: line, tail }),
            None => Some(Line::Whole(line)),
        })
    }
}

fn poll_piece(source: &mut (impl AsyncRead + Unpin), context: &mut Context<'_>) -> Poll<std::io::Result<Vec<u8>>> {
    let mut space = [const { MaybeUninit::uninit() }; PIECE_BYTES];
    let mut buffer = ReadBuf::uninit(&mut space);
    ready!(Pin::new(source).poll_read(context, &mut buffer))?;
    Poll::Ready(Ok(buffer.filled().to_vec()))
}

fn keep_end(kept: &mut Vec<u8>, piece: &[u8]) {
    kept.extend_from_slice(&piece[piece.len().saturating_sub(KEPT_BYTES)..]);
    let surplus = kept.len().saturating_sub(KEPT_BYTES);
    kept.drain(..surplus);
}

/// What a line means.
#[derive(Debug, Default)]
pub(super) struct Meaning {
    pub(super) messages: Vec<ServerJsonRpcMessage>,
    /// What the server must be told about requests that nobody can read.
    pub(super) replies: Vec<ClientJsonRpcMessage>,
    /// Why (a part of) the line was skipped.
    pub(super) skipped: Option<String>,
}

/// Never panics and never fails: what cannot be used is skipped, and whoever waits for it is told.
pub(super) fn read_line(line: Line) -> Meaning {
    match line {
        Line::Whole(bytes) => read_bytes(&bytes),
        Line::TooLong { head, tail } => {
            let reason = format!("a line of more than {} MiB", MAX_LINE_BYTES / (1024 * 1024));
            let mut meaning = Meaning { skipped: Some(reason), ..Meaning::default() };
            if let Some(id) = answered_id(&head, &tail) {
                meaning.messages.push(failure(id, "its answer is too large"));
            }
            meaning
        }
    }
}

fn read_bytes(bytes: &[u8]) -> Meaning {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes).trim_ascii();
    let mut meaning = Meaning::default();
    if bytes.is_empty() {
        return meaning;
    }
    if bytes.len() > LARGE_BYTES && values_in(bytes) > MOST_VALUES {
        meaning.skipped = Some("a line with more than a million values".to_owned());
        let ends = (&bytes[..KEPT_BYTES], &bytes[bytes.len() - KEPT_BYTES..]);
        if let Some(id) = answered_id(ends.0, ends.1) {
            meaning.messages.push(failure(id, "its answer is too large"));
        }
        return meaning;
    }
    match serde_json::from_slice::<ServerJsonRpcMessage>(bytes) {
        Ok(message) => meaning.messages.push(message),
        Err(_) => match serde_json::from_slice::<Value>(bytes) {
            Ok(Value::Array(batch)) if batch.len() <= MOST_IN_A_BATCH => {
                batch.into_iter().for_each(|value| read_value(value, &mut meaning));
            }
            Ok(value) => unreadable(&value, &mut meaning),
            Err(_) => meaning.skipped = Some("not JSON".to_owned()),
        },
    }
    meaning
}

fn read_value(value: Value, meaning: &mut Meaning) {
    match serde_json::from_value::<ServerJsonRpcMessage>(value.clone()) {
        Ok(message) => meaning.messages.push(message),
        Err(_) => unreadable(&value, meaning),
    }
}

/// JSON that is no message we know: nobody may wait for ever because of it.
fn unreadable(value: &Value, meaning: &mut Meaning) {
    meaning.skipped = Some("JSON that is no message of this protocol".to_owned());
    let Some(id) = value.get("id").and_then(|id| serde_json::from_value::<RequestId>(id.clone()).ok()) else { return };
    if value.get("method").is_some() {
        let error = ErrorData::invalid_request("this request cannot be read", None);
        meaning.replies.push(JsonRpcMessage::error(error, Some(id)));
    } else {
        let said = value.pointer("/error/message").or(value.get("error")).and_then(Value::as_str);
        meaning.messages.push(failure(id, said.unwrap_or("its answer cannot be read")));
    }
}

fn failure(id: RequestId, text: &str) -> ServerJsonRpcMessage {
    JsonRpcMessage::error(ErrorData::new(ErrorCode::INTERNAL_ERROR, text.to_owned(), None), Some(id))
}

/// Roughly how many values a JSON text has: one per comma and bracket outside of strings.
fn values_in(bytes: &[u8]) -> usize {
    let (mut count, mut in_string, mut escaped) = (0, false, false);
    for byte in bytes {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            b',' | b'[' | b'{' if !in_string => count += 1,
            _ => {}
        }
    }
    count
}

/// The request that a message answers, when its first or its last key says so: deeper inside, an id
/// could be anything.
fn answered_id(head: &[u8], tail: &[u8]) -> Option<RequestId> {
    let squeezed = |bytes: &[u8]| -> String {
        String::from_utf8_lossy(bytes).chars().filter(|c| !c.is_ascii_whitespace()).collect()
    };
    let (head, tail) = (squeezed(head), squeezed(tail));
    let number = |text: &str| text.parse::<i64>().ok().map(RequestId::Number);
    const VERSION: &str = "\"jsonrpc\":\"2.0\"";
    let start = head.strip_prefix('{')?;
    let start = start.strip_prefix(VERSION).and_then(|rest| rest.strip_prefix(',')).unwrap_or(start);
    if let Some((id, rest)) = start.strip_prefix("\"id\":").and_then(|rest| rest.split_once(',')) {
        return number(id).filter(|_| !rest.starts_with("\"method\""));
    }
    let end = tail.strip_suffix('}')?;
    let end = end.strip_suffix(VERSION).and_then(|rest| rest.strip_suffix(',')).unwrap_or(end);
    let is_answer = !head.contains("\"method\"");
    end.rsplit_once(",\"id\":").and_then(|(_, id)| number(id)).filter(|_| is_answer)
}

#[cfg(test)]
mod tests;
