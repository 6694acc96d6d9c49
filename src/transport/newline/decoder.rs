//! Cuts bytes into lines, incrementally. No line ends the connection: one that is too long is
//! skipped without being kept, and reported once.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::Dialect;
use crate::transport::envelope::{self, EnvelopeError, Message};
use crate::transport::reader::Cut;

const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";
const KEPT_CAPACITY: usize = 1024 * 1024;

/// Feed it with bytes, take lines out. Blank lines are nothing, `\r\n` ends a line as `\n` does,
/// and a byte order mark before a line is ignored.
#[derive(Debug)]
pub struct Decoder {
    dialect: Dialect,
    /// Whether the peer writes `jsonrpc`; shared with what is written to it.
    versioned: Arc<AtomicBool>,
    pub(super) buffer: Vec<u8>,
    /// Everything in `buffer` before this offset is consumed.
    start: usize,
    /// This many bytes after `start` were already searched in vain for the end of the line.
    searched: usize,
    /// The line in hand was too long; what is left of it is dropped.
    skipping: bool,
}

impl Decoder {
    pub fn new(dialect: Dialect, versioned: Arc<AtomicBool>) -> Self {
        Self { dialect, versioned, buffer: Vec::new(), start: 0, searched: 0, skipping: false }
    }

    /// The bytes up to the next line break, which is consumed.
    fn next_line(&mut self) -> Option<Line> {
        let unread = &self.buffer[self.start..];
        let limit = self.dialect.longest_line;
        let found = unread[self.searched..].iter().position(|byte| *byte == b'\n');
        let Some(length) = found.map(|position| self.searched + position) else {
            if self.skipping {
                self.start = self.buffer.len();
            } else if unread.len() > limit {
                self.start = self.buffer.len();
                self.searched = 0;
                self.skipping = true;
                return Some(Line::TooLong);
            }
            self.searched = self.buffer.len() - self.start;
            return None;
        };
        let line = if std::mem::take(&mut self.skipping) {
            Line::Skipped
        } else if length > limit {
            Line::TooLong
        } else {
            text_of(&unread[..length])
        };
        self.start += length + 1;
        self.searched = 0;
        Some(line)
    }

    fn too_long(&self) -> String {
        format!("the line is longer than {} bytes and was skipped", self.dialect.longest_line)
    }
}

enum Line {
    Text(Vec<u8>),
    Blank,
    TooLong,
    /// The rest of a line that was reported before.
    Skipped,
}

impl Cut for Decoder {
    fn push(&mut self, bytes: &[u8]) {
        if self.start > 0 {
            self.buffer.drain(..self.start);
            self.start = 0;
            if self.buffer.capacity() > KEPT_CAPACITY && self.buffer.len() + bytes.len() < KEPT_CAPACITY {
                self.buffer.shrink_to(bytes.len());
            }
        }
        self.buffer.extend_from_slice(bytes);
    }

    fn next_frame(&mut self) -> Option<Result<Vec<u8>, String>> {
        loop {
            match self.next_line()? {
                Line::Text(line) => return Some(Ok(line)),
                Line::TooLong => return Some(Err(self.too_long())),
                Line::Blank | Line::Skipped => {}
            }
        }
    }

    /// The last line may lack its line break.
    fn rest(&mut self) -> Option<Result<Vec<u8>, String>> {
        let unread = std::mem::take(&mut self.buffer).split_off(self.start);
        self.start = 0;
        match text_of(&unread) {
            Line::Text(line) if !self.skipping => Some(Ok(line)),
            _ => None,
        }
    }

    fn read(&self, frame: &[u8]) -> Result<Message, EnvelopeError> {
        let parsed = envelope::parse_by(frame, &self.dialect.rules)?;
        if parsed.versioned {
            self.versioned.store(true, Ordering::Relaxed);
        }
        Ok(parsed.message)
    }
}

fn text_of(line: &[u8]) -> Line {
    let line = line.strip_prefix(BYTE_ORDER_MARK).unwrap_or(line).trim_ascii();
    if line.is_empty() { Line::Blank } else { Line::Text(line.to_vec()) }
}
