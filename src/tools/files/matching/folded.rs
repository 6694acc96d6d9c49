//! A text with the bytes left out that do not count, and the way back to the whole one.

use std::borrow::Cow;

/// How lines end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LineEnd {
    Lf,
    CrLf,
}

impl LineEnd {
    pub(super) fn text(self) -> &'static str {
        match self {
            Self::Lf => "\n",
            Self::CrLf => "\r\n",
        }
    }

    /// `text`, which has only LF, with these line ends.
    pub(super) fn applied_to(self, text: &str) -> Cow<'_, str> {
        match self {
            Self::CrLf if text.contains('\n') => Cow::Owned(text.replace('\n', "\r\n")),
            _ => Cow::Borrowed(text),
        }
    }

    /// The line end of a text in which all lines end alike.
    pub(super) fn only_one_in(text: &str) -> Option<Self> {
        let mut kind = None;
        for at in memchr::memchr_iter(b'\n', text.as_bytes()) {
            let this = if text[..at].ends_with('\r') { Self::CrLf } else { Self::Lf };
            if *kind.get_or_insert(this) != this {
                return None;
            }
        }
        kind
    }
}

/// CRLF as LF.
pub(super) fn unix(text: &str) -> Cow<'_, str> {
    if text.contains("\r\n") { Cow::Owned(text.replace("\r\n", "\n")) } else { Cow::Borrowed(text) }
}

#[derive(Debug)]
pub(super) struct Folded<'a> {
    pub(super) original: &'a str,
    pub(super) text: Cow<'a, str>,
    /// Where bytes are left out: before which byte of `text`, and how many up to there in all.
    gaps: Vec<(usize, usize)>,
    /// How many lines of the original end with CRLF, when that was counted on the way.
    crlf: Option<usize>,
}

impl<'a> Folded<'a> {
    /// With LF for CRLF.
    pub(super) fn line_ends(original: &'a str) -> Self {
        let mut folded = Self { original, text: Cow::Borrowed(original), gaps: Vec::new(), crlf: Some(0) };
        // Faster than a search for both, and most texts have none.
        if memchr::memchr(b'\r', original.as_bytes()).is_none() {
            return folded;
        }
        let mut text = String::new();
        let mut done = 0;
        for at in memchr::memmem::find_iter(original.as_bytes(), "\r\n") {
            if done == 0 {
                text.reserve(original.len());
            }
            text.push_str(&original[done..at]);
            done = at + 1;
            folded.gaps.push((text.len(), folded.gaps.len() + 1));
        }
        folded.crlf = Some(folded.gaps.len());
        if done > 0 {
            text.push_str(&original[done..]);
            folded.text = Cow::Owned(text);
        }
        folded
    }

    /// With LF for CRLF and CR, and without the blanks before them.
    pub(super) fn trailing_blanks(original: &'a str) -> Self {
        let mut text = String::with_capacity(original.len());
        let mut gaps: Vec<(usize, usize)> = Vec::new();
        let mut left_out = 0;
        let mut rest = original;
        loop {
            let end = rest.find(['\n', '\r']).unwrap_or(rest.len());
            let line = rest[..end].trim_end_matches([' ', '\t']);
            text.push_str(line);
            let end_bytes = if rest[end..].starts_with("\r\n") { 2 } else { rest.len().min(end + 1) - end };
            // Of a line end, one byte is kept.
            let skipped = end - line.len() + end_bytes.saturating_sub(1);
            if skipped > 0 {
                left_out += skipped;
                gaps.push((text.len(), left_out));
            }
            if end_bytes == 0 {
                break;
            }
            text.push('\n');
            rest = &rest[end + end_bytes..];
        }
        Self { original, text: Cow::Owned(text), gaps, crlf: None }
    }

    /// Where `at` is in the original text. What is left out there belongs to what follows: a CR to
    /// its LF, blanks to the line end behind them.
    pub(super) fn real(&self, at: usize) -> usize {
        let before = self.gaps.partition_point(|(place, _)| *place < at);
        at + before.checked_sub(1).map_or(0, |last| self.gaps[last].1)
    }

    /// How most lines of the original end.
    pub(super) fn common_line_end(&self) -> LineEnd {
        let count = || memchr::memmem::find_iter(self.original.as_bytes(), "\r\n").count();
        let with_cr = self.crlf.unwrap_or_else(count);
        if with_cr == 0 {
            return LineEnd::Lf;
        }
        let ends = memchr::memchr_iter(b'\n', self.original.as_bytes()).count();
        if with_cr > ends - with_cr { LineEnd::CrLf } else { LineEnd::Lf }
    }
}
