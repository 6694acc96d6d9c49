//! `Content-Length` framing as a pure, incremental decoder: bytes in, frames and problems out, no
//! I/O, so every way a peer can break the framing is testable byte by byte.
//!
//! Broken framing never ends the connection. The decoder reports one problem per lost stretch and
//! scans forward to the next `Content-Length:`, at any offset, because a JSON body does not end in
//! a line break and the next header therefore usually follows it on the same line. On one line the
//! last `Content-Length:` counts: a real header ends its line, text inside a body does not.
//!
//! Memory is bounded by what arrived: at most one body below the limit, one header block and what
//! one `push` brought.

const NEEDLE: &[u8] = b"content-length:";
const HEADER_CAP: usize = 16 * 1024;
const KEPT_CAPACITY: usize = 1024 * 1024;
const SHOWN_CHARACTERS: usize = 60;

/// How large a message may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// A longer body is skipped exactly, without being buffered.
    pub max_frame: usize,
    /// A longer length is not believed: nothing is skipped, the decoder scans for the next header.
    pub absurd_length: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self { max_frame: 64 * 1024 * 1024, absurd_length: 1024 * 1024 * 1024 }
    }
}

/// One result of decoding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decoded {
    Frame(Vec<u8>),
    Problem(FrameProblem),
}

/// What was wrong with the framing, as a sentence for the peer and for the log.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FrameProblem {
    #[error("the message header has no Content-Length; skipping to the next one")]
    MissingLength,
    #[error("the Content-Length \"{value}\" is not a number of bytes; skipping to the next header")]
    BadLength { value: String },
    #[error("the charset \"{charset}\" is not supported, only utf-8 is; the message was skipped")]
    UnsupportedCharset { charset: String },
    #[error("the message of {length} bytes is larger than the limit of {limit} bytes and was skipped")]
    TooLarge { length: u64, limit: usize },
    #[error("the Content-Length {length} is absurd; skipping to the next header")]
    AbsurdLength { length: u64 },
    #[error("the message header is longer than {limit} bytes; skipping to the next one")]
    HeaderTooLong { limit: usize },
    #[error("skipped {bytes} bytes of text that is no message header")]
    Garbage { bytes: usize },
    #[error("the message body is empty")]
    EmptyBody,
    #[error("the input ended inside a message header")]
    EndedInHeader,
    #[error("the input ended {missing} bytes before the end of a message")]
    EndedInBody { missing: u64 },
}

/// Cuts a byte stream into frames. Feed it with [`push`](Decoder::push), then take results with
/// `next` until it says `None`.
#[derive(Debug)]
pub struct Decoder {
    limits: Limits,
    buffer: Vec<u8>,
    /// Everything in `buffer` before this offset is consumed.
    start: usize,
    /// This many bytes after `start` were already searched in vain for the end of the line.
    searched: usize,
    state: State,
    /// The framing was lost and reported; stay silent until a header is whole again.
    lost: bool,
}

#[derive(Debug)]
enum State {
    Header(Block),
    Body { body: Vec<u8>, length: usize },
    Skip { remaining: u64 },
    Resync,
}

/// What is known of the header block that is being read.
#[derive(Debug, Default)]
struct Block {
    /// Bytes of the block's lines that are consumed.
    consumed: usize,
    length: Option<u64>,
    bad_charset: Option<String>,
    garbage: usize,
}

enum Step {
    NeedInput,
    Again,
    Emit(Decoded),
}

impl Decoder {
    pub fn new(limits: Limits) -> Self {
        let state = State::Header(Block::default());
        Self { limits, buffer: Vec::new(), start: 0, searched: 0, state, lost: false }
    }

    /// Takes input. Bytes of a body that is under way go straight into the frame.
    pub fn push(&mut self, bytes: &[u8]) {
        let mut rest = bytes;
        if self.start == self.buffer.len() {
            match &mut self.state {
                State::Body { body, length } => {
                    let taken = rest.len().min(length.saturating_sub(body.len()));
                    append_up_to(body, &rest[..taken], *length);
                    rest = &rest[taken..];
                }
                State::Skip { remaining } => {
                    let skipped = usize::try_from(*remaining).unwrap_or(usize::MAX).min(rest.len());
                    *remaining -= skipped as u64;
                    rest = &rest[skipped..];
                }
                State::Header(_) | State::Resync => {}
            }
        }
        if self.start > 0 {
            self.buffer.drain(..self.start);
            self.start = 0;
            if self.buffer.capacity() > KEPT_CAPACITY && self.buffer.len() + rest.len() < KEPT_CAPACITY {
                self.buffer.shrink_to(rest.len());
            }
        }
        self.buffer.extend_from_slice(rest);
    }

    /// The end of the input: says what was cut off, if anything was.
    pub fn finish(mut self) -> Option<FrameProblem> {
        while self.next().is_some() {}
        match &self.state {
            State::Header(block) if self.lost || (block.is_untouched() && is_blank(self.unread())) => None,
            State::Header(_) => Some(FrameProblem::EndedInHeader),
            State::Body { body, length } => Some(FrameProblem::EndedInBody { missing: (length - body.len()) as u64 }),
            State::Skip { remaining: 0 } | State::Resync => None,
            State::Skip { remaining } => Some(FrameProblem::EndedInBody { missing: *remaining }),
        }
    }

    fn step(&mut self) -> Step {
        match &mut self.state {
            State::Header(_) => self.read_header_line(),
            State::Body { body, length } => {
                let unread = &self.buffer[self.start..];
                let taken = unread.len().min(length.saturating_sub(body.len()));
                append_up_to(body, &unread[..taken], *length);
                self.start += taken;
                if body.len() < *length {
                    return Step::NeedInput;
                }
                let frame = std::mem::take(body);
                self.state = State::Header(Block::default());
                Step::Emit(Decoded::Frame(frame))
            }
            State::Skip { remaining } => {
                let unread = self.buffer.len() - self.start;
                let skipped = usize::try_from(*remaining).unwrap_or(usize::MAX).min(unread);
                *remaining -= skipped as u64;
                self.start += skipped;
                if *remaining > 0 {
                    return Step::NeedInput;
                }
                self.state = State::Header(Block::default());
                Step::Again
            }
            State::Resync => self.scan_for_header(),
        }
    }

    fn read_header_line(&mut self) -> Step {
        let State::Header(block) = &mut self.state else { return Step::Again };
        let unread = &self.buffer[self.start..];
        let window = HEADER_CAP.saturating_sub(block.consumed);
        let from = self.searched.min(unread.len());
        let newline = unread[from..].iter().position(|byte| *byte == b'\n').map(|position| from + position);
        // A line of `window` bytes including its line break still fits.
        let line_length = match newline {
            Some(position) if position < window => position + 1,
            None if unread.len() < window => {
                self.searched = unread.len();
                return Step::NeedInput;
            }
            _ => return self.give_up_on_long_header(window),
        };
        let line = unread[..line_length - 1].strip_suffix(b"\r").unwrap_or(&unread[..line_length - 1]);
        self.searched = 0;
        if line.is_empty() {
            self.start += line_length;
            return self.end_of_block();
        }
        let read = block.read_line(line, line_length);
        self.start += line_length;
        match read {
            Ok(()) => Step::Again,
            Err(problem) => self.lose_framing(problem),
        }
    }

    /// An empty line: either it ends a header block, or it lies between two messages.
    fn end_of_block(&mut self) -> Step {
        let State::Header(block) = &mut self.state else { return Step::Again };
        let block = std::mem::take(block);
        if block.is_untouched() {
            return Step::Again;
        }
        let Some(length) = block.length else {
            return self.lose_framing(FrameProblem::MissingLength);
        };
        if length > self.limits.absurd_length {
            return self.lose_framing(FrameProblem::AbsurdLength { length });
        }
        let was_lost = std::mem::replace(&mut self.lost, false);
        if length == 0 {
            return Step::Emit(Decoded::Problem(FrameProblem::EmptyBody));
        }
        let fitting = usize::try_from(length).ok().filter(|length| *length <= self.limits.max_frame);
        let Some(fitting) = fitting else {
            self.state = State::Skip { remaining: length };
            return Step::Emit(Decoded::Problem(FrameProblem::TooLarge { length, limit: self.limits.max_frame }));
        };
        if let Some(charset) = block.bad_charset {
            self.state = State::Skip { remaining: length };
            return Step::Emit(Decoded::Problem(FrameProblem::UnsupportedCharset { charset }));
        }
        self.state = State::Body { body: Vec::new(), length: fitting };
        if block.garbage > 0 && !was_lost {
            return Step::Emit(Decoded::Problem(FrameProblem::Garbage { bytes: block.garbage }));
        }
        Step::Again
    }

    /// The block outgrew its cap. Only the bytes inside the window may decide what happens next,
    /// or the result would depend on how the input was cut into chunks.
    fn give_up_on_long_header(&mut self, window: usize) -> Step {
        let State::Header(block) = &self.state else { return Step::Again };
        let unread = &self.buffer[self.start..];
        let in_window = &unread[..window.min(unread.len())];
        let began_earlier = block.consumed > 0;
        match rfind_needle(in_window) {
            // The rest of the line may still be a header, so it gets a fresh cap.
            Some(position) if position > 0 || began_earlier => self.start += position,
            Some(_) => self.start += NEEDLE.len(),
            None => {}
        }
        self.lose_framing(FrameProblem::HeaderTooLong { limit: HEADER_CAP })
    }

    fn lose_framing(&mut self, problem: FrameProblem) -> Step {
        self.state = State::Resync;
        self.searched = 0;
        if std::mem::replace(&mut self.lost, true) { Step::Again } else { Step::Emit(Decoded::Problem(problem)) }
    }

    fn scan_for_header(&mut self) -> Step {
        let unread = &self.buffer[self.start..];
        match find_needle(unread) {
            Some(position) => {
                self.start += position;
                self.state = State::Header(Block::default());
                Step::Again
            }
            None => {
                // The end may be the beginning of the name we look for.
                self.start += unread.len().saturating_sub(NEEDLE.len() - 1);
                Step::NeedInput
            }
        }
    }

    fn unread(&self) -> &[u8] {
        &self.buffer[self.start..]
    }
}

impl Iterator for Decoder {
    type Item = Decoded;

    /// The next frame or problem; `None` means more input is needed.
    fn next(&mut self) -> Option<Decoded> {
        loop {
            match self.step() {
                Step::NeedInput => return None,
                Step::Again => {}
                Step::Emit(decoded) => return Some(decoded),
            }
        }
    }
}

impl Block {
    fn is_untouched(&self) -> bool {
        self.consumed == 0
    }

    /// Takes one line that is not empty; `line_length` counts its line break.
    fn read_line(&mut self, line: &[u8], line_length: usize) -> Result<(), FrameProblem> {
        let header = split_header(line);
        let is_length = header.is_some_and(|(name, _)| name.eq_ignore_ascii_case(b"content-length"));
        let position = match rfind_needle(line) {
            // `X-Content-Length: 7` behind a real length is only another header.
            Some(_) if self.length.is_some() && !is_length && header.is_some() => None,
            found => found,
        };
        if let Some(position) = position {
            self.read_length_line(line, position)?;
            // The cap counts anew from here, so that garbage before a header cannot use it up.
            self.consumed = line_length - position;
            return Ok(());
        }
        if let Some((name, value)) = header {
            if name.eq_ignore_ascii_case(b"content-type") {
                self.bad_charset = unsupported_charset(value);
            }
        } else if !is_blank(line) {
            self.garbage += line_length;
        } else if self.is_untouched() {
            // White space between two messages is nobody's fault.
            return Ok(());
        }
        self.consumed += line_length;
        Ok(())
    }

    fn read_length_line(&mut self, line: &[u8], position: usize) -> Result<(), FrameProblem> {
        if self.length.is_some() {
            // Two lengths in one block: a message was broken off and the next one began.
            let garbage = self.garbage + self.consumed;
            *self = Self { garbage, ..Self::default() };
        }
        if !is_blank(&line[..position]) {
            self.garbage += position;
        }
        let value = line[position + NEEDLE.len()..].trim_ascii();
        match parse_length(value) {
            Some(length) => self.length = Some(length),
            None => return Err(FrameProblem::BadLength { value: shown(value) }),
        }
        Ok(())
    }
}

/// Appends without letting the vector grow beyond the announced length, and without believing that
/// length before the bytes are there.
fn append_up_to(body: &mut Vec<u8>, bytes: &[u8], length: usize) {
    if body.capacity() - body.len() < bytes.len() {
        let growth = bytes.len().max(body.len()).min(length - body.len());
        body.reserve_exact(growth);
    }
    body.extend_from_slice(bytes);
}

fn parse_length(value: &[u8]) -> Option<u64> {
    // `str::parse` would also take a plus sign.
    if value.is_empty() || !value.iter().all(u8::is_ascii_digit) {
        return None;
    }
    std::str::from_utf8(value).ok()?.parse().ok()
}

/// Splits `Name: value`; `None` when the line does not have the shape of a header.
fn split_header(line: &[u8]) -> Option<(&[u8], &[u8])> {
    let colon = line.iter().position(|byte| *byte == b':')?;
    let name = &line[..colon];
    let is_name = !name.is_empty() && name.iter().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(byte));
    is_name.then(|| (name, &line[colon + 1..]))
}

/// The charset of a `Content-Type` value when it is not utf-8.
fn unsupported_charset(content_type: &[u8]) -> Option<String> {
    content_type.split(|byte| *byte == b';').skip(1).find_map(|parameter| {
        let equals = parameter.iter().position(|byte| *byte == b'=')?;
        let (name, value) = (parameter[..equals].trim_ascii(), parameter[equals + 1..].trim_ascii());
        let value: Vec<u8> = value.iter().copied().filter(|byte| !b"\"'".contains(byte)).collect();
        let is_utf8 = value.eq_ignore_ascii_case(b"utf-8") || value.eq_ignore_ascii_case(b"utf8");
        (name.eq_ignore_ascii_case(b"charset") && !is_utf8).then(|| shown(&value))
    })
}

fn find_needle(bytes: &[u8]) -> Option<usize> {
    colons(bytes).find_map(|colon| needle_before(bytes, colon))
}

fn rfind_needle(bytes: &[u8]) -> Option<usize> {
    colons(bytes).rev().find_map(|colon| needle_before(bytes, colon))
}

fn colons(bytes: &[u8]) -> impl DoubleEndedIterator<Item = usize> + '_ {
    bytes.iter().enumerate().filter(|(_, byte)| **byte == b':').map(|(index, _)| index)
}

fn needle_before(bytes: &[u8], colon: usize) -> Option<usize> {
    let begin = (colon + 1).checked_sub(NEEDLE.len())?;
    bytes[begin..=colon].eq_ignore_ascii_case(NEEDLE).then_some(begin)
}

fn is_blank(bytes: &[u8]) -> bool {
    bytes.iter().all(u8::is_ascii_whitespace)
}

/// A peer's words, short and without control characters.
fn shown(value: &[u8]) -> String {
    let cut = &value[..value.len().min(4 * SHOWN_CHARACTERS)];
    String::from_utf8_lossy(cut).chars().take(SHOWN_CHARACTERS).flat_map(char::escape_debug).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SMALL: Limits = Limits { max_frame: 100, absurd_length: 1000 };

    fn decode(limits: Limits, chunks: &[&[u8]]) -> (Vec<Decoded>, Option<FrameProblem>) {
        let mut decoder = Decoder::new(limits);
        let mut decoded = Vec::new();
        for chunk in chunks {
            decoder.push(chunk);
            decoded.extend(decoder.by_ref());
        }
        (decoded, decoder.finish())
    }

    /// Decodes whole, cut in two at every byte, and byte by byte; all must agree.
    fn decode_every_way(input: &[u8]) -> (Vec<Decoded>, Option<FrameProblem>) {
        let whole = decode(SMALL, &[input]);
        for cut in 0..=input.len() {
            assert_eq!(decode(SMALL, &[&input[..cut], &input[cut..]]), whole, "cut at {cut}");
        }
        assert_eq!(decode(SMALL, &input.chunks(1).collect::<Vec<_>>()), whole, "byte by byte");
        whole
    }

    fn message(body: &str) -> String {
        format!("Content-Length: {}\r\n\r\n{body}", body.len())
    }

    fn frame(body: &str) -> Decoded {
        Decoded::Frame(body.as_bytes().to_vec())
    }

    /// The input followed by a good message must give `expected` and then that message.
    fn check(input: impl AsRef<[u8]>, expected: &[Decoded]) {
        let mut bytes = input.as_ref().to_vec();
        bytes.extend_from_slice(message("after").as_bytes());
        bytes.extend_from_slice(message("last").as_bytes());
        let mut expected = expected.to_vec();
        expected.push(frame("after"));
        expected.push(frame("last"));
        assert_eq!(decode_every_way(&bytes), (expected, None), "{}", String::from_utf8_lossy(input.as_ref()));
    }

    fn problem(problem: FrameProblem) -> Vec<Decoded> {
        vec![Decoded::Problem(problem)]
    }

    #[test]
    fn headers_that_real_clients_send_are_accepted() {
        for header in [
            "Content-Length: 5\r\n",
            "content-length: 5\r\n",
            "CONTENT-LENGTH:5\r\n",
            "Content-Length:   5  \r\n",
            "Content-Length: 005\r\n",
            "X-One: 1\r\nContent-Length: 5\r\nX-Three: 3\r\nX-Four:\r\n",
            "Content-Length: 5\r\nContent-Type: application/vscode-jsonrpc; charset=utf-8\r\n",
            "Content-Type: application/vscode-jsonrpc; charset=UTF-8\r\nContent-Length: 5\r\n",
            "Content-Type: application/vscode-jsonrpc; Charset=\"utf8\"\r\nContent-Length: 5\r\n",
            "Content-Type: application/json\r\nContent-Length: 5\r\n",
            "Content-Length: 5\r\nX-Content-Length: 77\r\n",
        ] {
            check(format!("{header}\r\nhello"), &[frame("hello")]);
            let line_feeds_only = format!("{header}\r\nhello").replace('\r', "");
            check(line_feeds_only, &[frame("hello")]);
        }
    }

    #[test]
    fn blank_lines_between_messages_are_silent() {
        check(format!("\r\n\n  \r\n{}\n \n{}\r\n", message("one"), message("two")), &[frame("one"), frame("two")]);
        check("Content-Length: 6\n\nhello\n", &[frame("hello\n")]);
        check(format!("{}  ", message("one")), &[frame("one")]);
    }

    #[test]
    fn garbage_before_a_header_costs_one_problem_and_no_message() {
        let garbage = |bytes| problem(FrameProblem::Garbage { bytes });
        check("foobar", &garbage(6));
        check(b"\x00\xff\xfe", &garbage(3));
        check("this is a log line\r\n", &garbage(20));
        check("first line !\nsecond line !\n", &garbage(27));
        check("{\"left\":\"over\"}", &garbage(15));
        check("Content-Len", &garbage(11));
        check("garbage\r\n\r\nmore\r\n\r\n{garbage}", &problem(FrameProblem::MissingLength));
        check("Content-Length: 5\r\n", &garbage(19));
        let glued = format!("{}foobar{}", message("one"), message("two"));
        let expected = [frame("one"), Decoded::Problem(FrameProblem::Garbage { bytes: 6 }), frame("two")];
        check(glued, &expected);
    }

    #[test]
    fn a_body_that_talks_about_headers_stays_one_frame() {
        let body = "{\"text\":\"Content-Length: 5\r\n\r\nhello\"}\nContent-Length: 3\r\n\r\nabc";
        check(message(body), &[frame(body)]);
    }

    #[test]
    fn a_header_without_a_length_is_reported_once_and_its_body_skipped() {
        let broken = "Content-Type: application/json\r\n\r\n{\"id\":1,\r\n\"a\": 2,\n\n\"text\":\"Content-Length: x\"}";
        check(broken, &problem(FrameProblem::MissingLength));
    }

    #[test]
    fn a_length_that_is_no_number_is_reported_once_and_its_body_skipped() {
        for value in ["-5", "abc", "99999999999999999999999", "1e3", "+5", "5 5", "", "0x10"] {
            let broken = format!("Content-Length: {value}\r\nX-Other: 1\r\n\r\n{{\"id\":1}}");
            check(broken, &problem(FrameProblem::BadLength { value: value.into() }));
        }
        let two = "Content-Length: -1\r\n\r\n{}\nContent-Length: -2\r\n\r\n{}";
        check(two, &problem(FrameProblem::BadLength { value: "-1".into() }));
    }

    #[test]
    fn the_problem_shows_what_the_peer_sent_short_and_harmless() {
        let input = format!("Content-Length: \u{1b}[31m{}\r\n\r\n", "é".repeat(500));
        let (decoded, _) = decode(SMALL, &[input.as_bytes()]);
        let [Decoded::Problem(problem)] = &decoded[..] else { panic!("{decoded:?}") };
        let text = problem.to_string();
        assert!(text.contains("\\u{1b}[31m") && !text.contains('\u{1b}') && text.len() < 300, "{text}");
    }

    #[test]
    fn another_charset_is_named_and_its_body_skipped_exactly() {
        let body = "\r\nContent-Length: 3\r\n\r\nabc";
        for charset in ["latin1", "utf-16"] {
            let input = format!("Content-Type: x/y; charset={charset}\r\nContent-Length: {}\r\n\r\n{body}", body.len());
            check(input, &problem(FrameProblem::UnsupportedCharset { charset: charset.into() }));
        }
    }

    #[test]
    fn a_message_above_the_limit_is_skipped_exactly_and_in_flat_memory() {
        let body = format!("\r\n{}", message("abc")).repeat(5);
        let expected = problem(FrameProblem::TooLarge { length: body.len() as u64, limit: 100 });
        check(message(&body), &expected);

        let mut decoder = Decoder::new(Limits { max_frame: 1000, absurd_length: u64::MAX });
        decoder.push(b"Content-Length: 100000000\r\n\r\n");
        assert!(matches!(decoder.next(), Some(Decoded::Problem(FrameProblem::TooLarge { .. }))));
        let chunk = vec![b'x'; 100_000];
        for _ in 0..1000 {
            decoder.push(&chunk);
            assert_eq!(decoder.next(), None);
            assert!(decoder.buffer.capacity() < 1000, "skipped bytes must not be kept");
        }
        decoder.push(message("after").as_bytes());
        assert_eq!(decoder.next(), Some(frame("after")));
    }

    #[test]
    fn an_absurd_length_is_not_waited_for() {
        let expected = problem(FrameProblem::AbsurdLength { length: 10_000_000_000 });
        check("Content-Length: 10000000000\r\n\r\n{\"id\":1}", &expected);
        check("Content-Length: 10000000000\r\n\r\n{\"id\":1}\n", &expected);
    }

    #[test]
    fn an_empty_body_is_a_problem_and_framing_goes_on() {
        check("Content-Length: 0\r\n\r\n", &problem(FrameProblem::EmptyBody));
    }

    #[test]
    fn a_header_that_never_ends_is_given_up_wherever_the_cap_falls() {
        let too_long = FrameProblem::HeaderTooLong { limit: HEADER_CAP };
        for length in HEADER_CAP - 45..HEADER_CAP + 5 {
            for line_break in ["", "\n"] {
                let input = format!("{}{line_break}{}", "g".repeat(length), message("after"));
                let whole = decode(SMALL, &[input.as_bytes()]);
                assert_eq!(whole.0.len(), 2, "{length}: {whole:?}");
                assert_eq!(whole.0[1], frame("after"));
                for cut in HEADER_CAP - 50..(HEADER_CAP + 20).min(input.len()) {
                    assert_eq!(decode(SMALL, &[&input.as_bytes()[..cut], &input.as_bytes()[cut..]]), whole);
                }
            }
        }
        let headers = format!("Content-Length: 5\r\n{}\r\nhello", "X-Many: 1\r\n".repeat(3000));
        let input = format!("{headers}{}", message("after"));
        let (decoded, rest) = decode(SMALL, &[input.as_bytes()]);
        assert_eq!((decoded, rest), (vec![Decoded::Problem(too_long), frame("after")], None));
    }

    #[test]
    fn the_end_of_input_inside_a_message_is_told() {
        let end_of = |input: &str| decode_every_way(input.as_bytes()).1;
        assert_eq!(end_of(""), None);
        assert_eq!(end_of("\r\n \n"), None);
        assert_eq!(end_of("Content-Length: 5\r\n\r\nhello"), None);
        assert_eq!(end_of("Content-Length: 5\r\n\r\nhel"), Some(FrameProblem::EndedInBody { missing: 2 }));
        assert_eq!(end_of("Content-Length: 500\r\n\r\nhel"), Some(FrameProblem::EndedInBody { missing: 497 }));
        assert_eq!(end_of("Content-Length: 5\r\n"), Some(FrameProblem::EndedInHeader));
        assert_eq!(end_of("Content-Le"), Some(FrameProblem::EndedInHeader));
    }

    #[test]
    fn a_body_is_never_allocated_before_it_arrives() {
        let mut decoder = Decoder::new(Limits::default());
        decoder.push(b"Content-Length: 60000000\r\n\r\n0123456789");
        assert_eq!(decoder.next(), None);
        let State::Body { body, .. } = &decoder.state else { panic!("a body is expected") };
        assert!(body.capacity() < 1000);
        assert!(decoder.buffer.capacity() < 1000);
    }

    #[test]
    fn a_large_body_is_put_together_without_spare_memory() {
        let body: Vec<u8> = (0..3_000_000u32).map(|number| (number % 251) as u8).collect();
        let mut input = format!("Content-Length: {}\r\n\r\n", body.len()).into_bytes();
        input.extend_from_slice(&body);
        input.extend_from_slice(message("after").as_bytes());
        let mut decoder = Decoder::new(Limits::default());
        let mut decoded = Vec::new();
        for chunk in input.chunks(64 * 1024) {
            decoder.push(chunk);
            decoded.extend(decoder.by_ref());
            assert!(decoder.buffer.capacity() <= 128 * 1024, "the body goes straight into its frame");
        }
        let [Decoded::Frame(large), after] = &decoded[..] else { panic!("two frames are expected") };
        assert!(*large == body && large.capacity() == body.len());
        assert_eq!(*after, frame("after"));
    }

    proptest! {
        #[test]
        fn garbage_between_frames_never_loses_one(
            parts in prop::collection::vec((garbage(), "[ -~\\n]{1,60}"), 1..8),
            chunk in 1usize..40,
        ) {
            let mut input = Vec::new();
            for (garbage, body) in &parts {
                input.extend_from_slice(garbage);
                input.extend_from_slice(message(body).as_bytes());
            }
            let (decoded, rest) = decode(SMALL, &input.chunks(chunk).collect::<Vec<_>>());
            let problems = decoded.iter().filter(|decoded| matches!(decoded, Decoded::Problem(_))).count();
            prop_assert!(problems <= parts.len(), "one problem for each stretch at most: {decoded:?}");
            let frames: Vec<_> = decoded.into_iter().filter(|decoded| matches!(decoded, Decoded::Frame(_))).collect();
            let expected: Vec<_> = parts.iter().map(|(_, body)| frame(body)).collect();
            prop_assert_eq!(frames, expected);
            prop_assert_eq!(rest, None);
        }

        #[test]
        fn any_bytes_are_survived_in_bounded_memory_and_however_they_are_cut(
            input in prop::collection::vec(any_piece(), 0..60),
            chunk in 1usize..50,
        ) {
            let input = input.concat();
            let mut decoder = Decoder::new(SMALL);
            let mut decoded = Vec::new();
            for chunk in input.chunks(chunk) {
                decoder.push(chunk);
                decoded.extend(decoder.by_ref());
                prop_assert!(decoder.buffer.capacity() <= 2 * HEADER_CAP + 200);
            }
            prop_assert_eq!((decoded, decoder.finish()), decode(SMALL, &[&input]));
        }
    }

    fn garbage() -> impl Strategy<Value = Vec<u8>> {
        let piece = prop_oneof![
            Just(Vec::new()),
            prop::collection::vec(any::<u8>(), 0..50),
            "[a-z: \\r\\n{}-]{0,50}".prop_map(String::into_bytes),
            Just(b"Content-Length".to_vec()),
            Just(b"warning: this\r\n\r\n".to_vec()),
        ];
        piece.prop_filter("a header is no garbage", |bytes| find_needle(bytes).is_none())
    }

    fn any_piece() -> impl Strategy<Value = Vec<u8>> {
        prop_oneof![
            prop::collection::vec(any::<u8>(), 0..30),
            Just(b"Content-Length:".to_vec()),
            Just(b"Content-Type: a/b; charset=latin1\r\n".to_vec()),
            Just(b"\r\n".to_vec()),
            Just(b"\r\n\r\n".to_vec()),
            Just(vec![b'x'; 3000]),
            "[0-9]{1,4}".prop_map(String::into_bytes),
            "[a-z]{0,90}".prop_map(|body| message(&body).into_bytes()),
        ]
    }
}
