//! Makes text of what programs print: no colours, no cursor movements, no overwritten lines.

/// A sequence that has not ended after so many characters is none, and its rest is text again.
const MAX_SEQUENCE: usize = 4_096;

/// Turns bytes into text: broken UTF-8 becomes U+FFFD, escape sequences and control characters go.
/// `\n`, `\t` and `\r` stay. Works on pieces, wherever they are cut.
#[derive(Debug, Default)]
pub(crate) struct Cleaner {
    /// The beginning of a character whose rest has not come yet.
    unfinished: Vec<u8>,
    state: State,
    /// How long the current sequence is.
    length: usize,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum State {
    #[default]
    Text,
    /// After ESC.
    Escape,
    /// After `ESC [`, up to a letter.
    Control,
    /// After `ESC ]` and its like: a string, up to BEL or `ESC \`.
    String,
    /// An ESC inside of such a string.
    StringEscape,
}

impl Cleaner {
    pub(crate) fn push(&mut self, bytes: &[u8]) -> String {
        let joined;
        let mut rest = if self.unfinished.is_empty() {
            bytes
        } else {
            self.unfinished.extend_from_slice(bytes);
            joined = std::mem::take(&mut self.unfinished);
            &joined
        };
        let mut text = String::with_capacity(rest.len());
        loop {
            match std::str::from_utf8(rest) {
                Ok(valid) => {
                    self.take(valid, &mut text);
                    return text;
                }
                Err(error) => {
                    let (valid, broken) = rest.split_at(error.valid_up_to());
                    self.take(std::str::from_utf8(valid).unwrap_or_default(), &mut text);
                    let Some(length) = error.error_len() else {
                        self.unfinished = broken.to_vec();
                        return text;
                    };
                    self.take("\u{fffd}", &mut text);
                    rest = &broken[length..];
                }
            }
        }
    }

    /// What is left at the end.
    pub(crate) fn finish(&mut self) -> &'static str {
        if std::mem::take(&mut self.unfinished).is_empty() { "" } else { "\u{fffd}" }
    }

    fn take(&mut self, mut valid: &str, text: &mut String) {
        while !valid.is_empty() {
            if self.state == State::Text {
                let plain = valid.find(is_odd).unwrap_or(valid.len());
                text.push_str(&valid[..plain]);
                valid = &valid[plain..];
            }
            let Some(next) = valid.chars().next() else { return };
            valid = &valid[next.len_utf8()..];
            self.step(next, text);
        }
    }

    fn step(&mut self, c: char, text: &mut String) {
        self.length += 1;
        self.state = match (self.state, c) {
            (State::Text, '\u{1b}') => {
                self.length = 0;
                State::Escape
            }
            (State::Text, _) => State::Text,
            (State::Escape, '[') => State::Control,
            (State::Escape, ']' | 'P' | 'X' | '^' | '_') => State::String,
            // More of the introduction follows.
            (State::Escape, ' '..='/') if self.length < MAX_SEQUENCE => State::Escape,
            (State::Control, ' '..='?') if self.length < MAX_SEQUENCE => State::Control,
            (State::String | State::StringEscape, '\u{7}') | (State::StringEscape, '\\') => State::Text,
            (State::String | State::StringEscape, '\u{1b}') => State::StringEscape,
            (State::String | State::StringEscape, _) if c != '\n' && self.length < MAX_SEQUENCE => State::String,
            (State::Escape | State::Control, '\u{1b}') => State::Escape,
            // The last character of a sequence, or something that cannot be inside of one.
            (_, c) => {
                if matches!(c, '\n' | '\r' | '\t') {
                    text.push(c);
                }
                State::Text
            }
        };
    }
}

fn is_odd(c: char) -> bool {
    c.is_control() && !matches!(c, '\n' | '\t' | '\r')
}

/// Cuts text into lines, and forgets what a lone `\r` lets a program write over.
#[derive(Debug, Default)]
pub(crate) struct Lines {
    line: String,
    /// The next character begins the line anew, unless it ends it.
    returned: bool,
}

impl Lines {
    /// A longer line is handed on in parts.
    pub(crate) const MAX_LINE: usize = 4_096;

    /// `emit` gets each line without its end, or a part of one that is too long; `true` says that
    /// the line ends there.
    pub(crate) fn push(&mut self, text: &str, emit: &mut impl FnMut(&str, bool)) {
        for piece in text.split_inclusive(['\n', '\r']) {
            let (content, end) = match piece.as_bytes().last() {
                Some(end @ (b'\n' | b'\r')) => (&piece[..piece.len() - 1], Some(*end)),
                _ => (piece, None),
            };
            if !content.is_empty() {
                if std::mem::take(&mut self.returned) {
                    self.line.clear();
                }
                self.extend(content, emit);
            }
            match end {
                Some(b'\n') => {
                    self.returned = false;
                    emit(&self.line, true);
                    self.line.clear();
                }
                Some(_) => self.returned = true,
                None => {}
            }
        }
    }

    /// Whether what comes next begins a line.
    pub(crate) fn is_at_start(&self) -> bool {
        self.line.is_empty() && !self.returned
    }

    /// The beginning of a line that has not ended.
    pub(crate) fn unfinished(&self) -> &str {
        &self.line
    }

    pub(crate) fn take_unfinished(&mut self) -> String {
        self.returned = false;
        std::mem::take(&mut self.line)
    }

    fn extend(&mut self, mut content: &str, emit: &mut impl FnMut(&str, bool)) {
        while self.line.len() + content.len() > Self::MAX_LINE {
            let room = crate::base::text::prefix(content, Self::MAX_LINE - self.line.len()).len();
            self.line.push_str(&content[..room]);
            content = &content[room..];
            emit(&self.line, false);
            self.line.clear();
        }
        self.line.push_str(content);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clean(bytes: &[u8], cut: usize) -> String {
        let mut cleaner = Cleaner::default();
        let mut text: String = bytes.chunks(cut.max(1)).map(|piece| cleaner.push(piece)).collect();
        text.push_str(cleaner.finish());
        text
    }

    #[test]
    fn only_text_is_left_wherever_it_is_cut() {
        for (bytes, expected) in [
            (&b"plain\ttext\r\n"[..], "plain\ttext\r\n"),
            (b"\x1b[1;31mred\x1b[0m and \x1b[38;2;1;2;3mblue\x1b[m", "red and blue"),
            (b"\x1b]0;title\x07after\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "afterlink"),
            (b"\x1bPdevice\x1b\\x\x1b(By\x1b=z\x1b7", "xyz"),
            (b"a\x00b\x08c\x7fd\x07", "abcd"),
            (b"broken \xff\xc3( \xe2\x82\xac \xf0\x9f\x98\x80", "broken \u{fffd}\u{fffd}( \u{20ac} \u{1f600}"),
            (b"ends inside \xe2\x82", "ends inside \u{fffd}"),
            (b"\x1b]never ends\nnext", "\nnext"),
            (b"\x1b[12\nnext", "\nnext"),
            (b"\x1b\x1b[31mx", "x"),
            ("c1: \u{9b}31m".as_bytes(), "c1: 31m"),
        ] {
            for cut in 1..=bytes.len() {
                assert_eq!(clean(bytes, cut), expected, "cut at {cut}");
            }
        }
        let endless = [b"\x1b]".as_slice(), &vec![b'x'; MAX_SEQUENCE + 10], b"seen"].concat();
        assert!(clean(&endless, 7).ends_with("seen"));
    }

    fn lines(text: &str, cut: usize) -> (Vec<(String, bool)>, String) {
        let mut all = Vec::new();
        let mut lines = Lines::default();
        let chars: Vec<char> = text.chars().collect();
        for piece in chars.chunks(cut) {
            lines.push(&piece.iter().collect::<String>(), &mut |line, ended| all.push((line.to_owned(), ended)));
        }
        (all, lines.take_unfinished())
    }

    #[test]
    fn lines_end_and_are_written_over() {
        for (text, ended, rest) in [
            ("a\nb\n", &["a", "b"][..], ""),
            ("a\r\nb\r\r\n\nc", &["a", "b", ""], "c"),
            ("10%\r20%\r100%\ndone", &["100%"], "done"),
            ("10%\r20%\r", &[], "20%"),
            ("\n\n", &["", ""], ""),
        ] {
            for cut in 1..=text.len() {
                let (all, unfinished) = lines(text, cut);
                let all: Vec<&str> = all.iter().map(|(line, _)| line.as_str()).collect();
                assert_eq!((all.as_slice(), unfinished.as_str()), (ended, rest), "{text:?} cut at {cut}");
            }
        }
    }

    #[test]
    fn long_lines_come_in_parts() {
        let text = "é".repeat(Lines::MAX_LINE) + "\n";
        let (all, rest) = lines(&text, 1_000);
        assert_eq!(all.iter().map(|(part, _)| part.as_str()).collect::<String>(), text.trim_end());
        assert!(all.iter().all(|(part, _)| part.len() <= Lines::MAX_LINE));
        assert_eq!(all.iter().filter(|(_, ended)| *ended).count(), 1);
        assert_eq!(rest, "");
    }

    proptest::proptest! {
        #[test]
        fn pieces_do_not_matter(bytes in proptest::collection::vec(0u8..=255, 0..200), cut in 1usize..50) {
            proptest::prop_assert_eq!(clean(&bytes, cut), clean(&bytes, 1_000));
        }

        #[test]
        fn nothing_odd_gets_through(bytes in proptest::collection::vec(
            proptest::sample::select(&b"\x1b[]\\m;0\x07\n\rPx\xc3\xa9"[..]), 0..60)) {
            proptest::prop_assert!(!clean(&bytes, 7).contains(is_odd));
        }
    }
}
