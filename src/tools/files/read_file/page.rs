//! Reads some lines of a file without holding more than those.

use std::io::{self, Read};

use tokio_util::sync::CancellationToken;

/// So much is read to find the lines and to count them; more would take too long.
const MOST_SCANNED: usize = 2 * 1024 * 1024 * 1024;
const CHUNK: usize = 128 * 1024;
/// A larger file is not kept to compare it with what it becomes.
const MOST_KEPT: usize = 8 * 1024 * 1024;

#[derive(Debug, Clone, Copy)]
pub(super) struct Wanted {
    /// Lines to skip.
    pub(super) offset: usize,
    /// Most lines to take.
    pub(super) lines: usize,
    /// Most bytes to take.
    pub(super) bytes: usize,
    /// Most lines to take when a note must follow, and one more.
    pub(super) lines_with_note: usize,
}

#[derive(Debug)]
pub(super) struct Page {
    /// The lines with their ends.
    pub(super) raw: Vec<u8>,
    pub(super) offset: usize,
    pub(super) shown: usize,
    pub(super) total: Total,
    /// The only line is not whole.
    pub(super) cut: bool,
    /// The whole file, if it is not too large.
    pub(super) all: Option<Vec<u8>>,
}

/// How many lines a file has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Total {
    Exactly(usize),
    MoreThan(usize),
}

impl Total {
    pub(super) fn in_words(self) -> String {
        match self {
            Self::Exactly(lines) => lines.to_string(),
            Self::MoreThan(lines) => format!("more than {lines}"),
        }
    }
}

impl Page {
    /// There is more after it, or more of its line.
    pub(super) fn has_more(&self) -> bool {
        self.cut || self.total > Total::Exactly(self.offset + self.shown)
    }
}

#[derive(Debug)]
pub(super) enum PageError {
    Io(io::Error),
    /// With its first bytes.
    Binary(Vec<u8>),
    Stopped,
    TooFar,
}

pub(super) fn read(mut source: impl Read, wanted: Wanted, stop: &CancellationToken) -> Result<Page, PageError> {
    let mut state = State::new(wanted);
    let mut chunk = vec![0; CHUNK];
    let (mut scanned, mut last_byte) = (0, b'\n');
    loop {
        if stop.is_cancelled() {
            return Err(PageError::Stopped);
        }
        let read = match source.read(&mut chunk) {
            Ok(0) => break,
            Ok(read) => read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(PageError::Io(error)),
        };
        let bytes = &chunk[..read];
        if !state.full && memchr::memchr(0, bytes).is_some() {
            let start = if scanned == 0 { bytes[..read.min(4096)].to_vec() } else { vec![0] };
            return Err(PageError::Binary(start));
        }
        state.keep(bytes);
        state.take(bytes);
        last_byte = bytes[read - 1];
        scanned += read;
        if scanned > MOST_SCANNED {
            if !state.full {
                return Err(PageError::TooFar);
            }
            state.all = None;
            return Ok(state.page(Total::MoreThan));
        }
    }
    if last_byte != b'\n' {
        state.lines += 1;
        state.shown += usize::from(!state.full && state.raw.len() > state.line_start);
    }
    Ok(state.page(Total::Exactly))
}

struct State {
    wanted: Wanted,
    raw: Vec<u8>,
    /// Line ends so far.
    lines: usize,
    shown: usize,
    /// Where the line that is not complete yet starts in `raw`.
    line_start: usize,
    full: bool,
    cut: bool,
    all: Option<Vec<u8>>,
}

impl State {
    fn new(wanted: Wanted) -> Self {
        let all = Some(Vec::new());
        Self { wanted, raw: Vec::new(), lines: 0, shown: 0, line_start: 0, full: false, cut: false, all }
    }

    fn keep(&mut self, bytes: &[u8]) {
        self.all = self.all.take().filter(|all| all.len() + bytes.len() <= MOST_KEPT);
        if let Some(all) = &mut self.all {
            all.extend_from_slice(bytes);
        }
    }

    fn take(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() && !self.full {
            let end = memchr::memchr(b'\n', bytes).map(|at| at + 1);
            let (piece, rest) = bytes.split_at(end.unwrap_or(bytes.len()));
            bytes = rest;
            let wanted = self.lines >= self.wanted.offset;
            self.lines += usize::from(end.is_some());
            if wanted {
                self.raw.extend_from_slice(piece);
                self.after_piece(end.is_some());
            }
        }
        self.lines += memchr::memchr_iter(b'\n', bytes).count();
    }

    fn after_piece(&mut self, ends_line: bool) {
        if self.raw.len() > self.wanted.bytes {
            self.full = true;
            if self.shown == 0 {
                self.cut = true;
                self.shown = 1;
                self.raw.truncate(self.wanted.bytes);
            } else {
                self.raw.truncate(self.line_start);
            }
        } else if ends_line {
            self.shown += 1;
            if self.shown == self.wanted.lines {
                self.full = true;
            }
            self.line_start = self.raw.len();
        }
    }

    fn page(mut self, total: impl Fn(usize) -> Total) -> Page {
        let total = total(self.lines);
        let most = self.wanted.lines_with_note - 1;
        if self.shown > most && total > Total::Exactly(self.wanted.offset + self.shown) {
            let end = memchr::memchr_iter(b'\n', &self.raw).nth(most - 1);
            self.raw.truncate(end.map_or(0, |at| at + 1));
            self.shown = most;
        }
        Page { raw: self.raw, offset: self.wanted.offset, shown: self.shown, total, cut: self.cut, all: self.all }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(text: &str, offset: usize, lines: usize, bytes: usize) -> Page {
        let wanted = Wanted { offset, lines, bytes, lines_with_note: 100 };
        read(text.as_bytes(), wanted, &CancellationToken::new()).unwrap()
    }

    #[test]
    fn pages_of_small_texts() {
        for (text, offset, lines, bytes, raw, shown, total, cut) in [
            ("", 0, 9, 99, "", 0, 0, false),
            ("a", 0, 9, 99, "a", 1, 1, false),
            ("a\n", 0, 9, 99, "a\n", 1, 1, false),
            ("a\nb\nc", 1, 1, 99, "b\n", 1, 3, false),
            ("a\nb\nc", 2, 9, 99, "c", 1, 3, false),
            ("a\nb\nc", 3, 9, 99, "", 0, 3, false),
            ("a\nb\n", 0, 2, 99, "a\nb\n", 2, 2, false),
            ("a\nbb\nc\n", 0, 9, 4, "a\n", 1, 3, false),
            ("abcdef\nb\n", 0, 9, 4, "abcd", 1, 2, true),
            ("a\nabcdef", 1, 9, 4, "abcd", 1, 2, true),
            ("\n\n\n", 0, 2, 99, "\n\n", 2, 3, false),
        ] {
            let page = page(text, offset, lines, bytes);
            let found = (str::from_utf8(&page.raw).unwrap(), page.shown, page.total, page.cut);
            assert_eq!(found, (raw, shown, Total::Exactly(total), cut), "{text:?} {offset} {lines} {bytes}");
        }
    }

    #[test]
    fn a_note_takes_a_line() {
        let wanted = |lines_with_note| Wanted { offset: 0, lines: 3, bytes: 99, lines_with_note };
        let stop = CancellationToken::new();
        let page = read("1\n2\n3\n4\n".as_bytes(), wanted(3), &stop).unwrap();
        assert_eq!((page.raw.as_slice(), page.shown), (&b"1\n2\n"[..], 2));
        let page = read("1\n2\n3\n".as_bytes(), wanted(3), &stop).unwrap();
        assert_eq!(page.shown, 3, "no note, so no line for it");
    }

    #[test]
    fn bytes_come_in_any_pieces() {
        struct Drip<'a>(&'a [u8]);
        impl Read for Drip<'_> {
            fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
                let length = self.0.len().min(1);
                buffer[..length].copy_from_slice(&self.0[..length]);
                self.0 = &self.0[length..];
                Ok(length)
            }
        }
        let text = "one\r\ntwo\né\n\nfive";
        for offset in 0..6 {
            for lines in 1..6 {
                for bytes in [3, 5, 99] {
                    let wanted = Wanted { offset, lines, bytes, lines_with_note: 100 };
                    let drip = read(Drip(text.as_bytes()), wanted, &CancellationToken::new()).unwrap();
                    let once = page(text, offset, lines, bytes);
                    assert_eq!((drip.raw, drip.shown, drip.total), (once.raw, once.shown, once.total));
                }
            }
        }
    }

    #[test]
    fn the_whole_is_kept_if_it_is_not_too_large() {
        assert_eq!(page("a\nb\nc\n", 1, 1, 99).all.as_deref(), Some(&b"a\nb\nc\n"[..]));
        let large = "x\n".repeat(MOST_KEPT / 2);
        assert!(page(&large, 0, 1, 99).all.is_some() && page(&format!("{large}x"), 0, 1, 99).all.is_none());
    }

    #[test]
    fn a_stop_ends_it() {
        let stop = CancellationToken::new();
        stop.cancel();
        let wanted = Wanted { offset: 0, lines: 1, bytes: 9, lines_with_note: 9 };
        assert!(matches!(read(io::repeat(b'x'), wanted, &stop), Err(PageError::Stopped)));
    }
}
