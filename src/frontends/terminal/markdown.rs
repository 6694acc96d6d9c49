//! Markdown in colours, while it streams.
//!
//! Only what can be decided from the text that has already come is styled: headings, bold, code
//! and fences. The marks stay in the text, so nothing is lost when a guess is wrong, and the
//! output without its colours is the input. Each character is handled alone, so it does not matter
//! where the stream was cut.

/// A mark at the start of a line that is longer than this is ordinary text.
const MAX_LINE_START: usize = 64;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Style {
    #[default]
    Plain,
    Bold,
    Code,
    Fence,
}

impl Style {
    fn sequence(self) -> &'static str {
        match self {
            Self::Plain => "\u{1b}[0m",
            Self::Bold => "\u{1b}[0;1m",
            Self::Code => "\u{1b}[0;36m",
            Self::Fence => "\u{1b}[0;2m",
        }
    }
}

/// What the current line turned out to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Line {
    /// Undecided; its text so far is held back.
    Start,
    Text,
    Heading,
    /// The line that opens a fence.
    FenceMark,
    /// A line inside a fence.
    Code,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Fence {
    mark: char,
    length: usize,
}

/// Styles one text. In plain mode the text passes unchanged.
#[derive(Debug)]
pub(super) struct Markdown {
    colours: bool,
    line: Line,
    fence: Option<Fence>,
    /// The start of a line, held back until it is clear what it is.
    held: String,
    /// A run of `*` or backticks, held back until it is clear where it ends.
    run: Option<(char, usize)>,
    bold: bool,
    /// The length of the run of backticks that opened the code.
    code: Option<usize>,
    escaped: bool,
    previous: char,
    /// What the terminal was last told.
    shown: Style,
}

impl Markdown {
    pub(super) fn new(colours: bool) -> Self {
        Self {
            colours,
            line: Line::Start,
            fence: None,
            held: String::new(),
            run: None,
            bold: false,
            code: None,
            escaped: false,
            previous: '\n',
            shown: Style::Plain,
        }
    }

    /// The next piece of the text, as it is to be written.
    pub(super) fn feed(&mut self, text: &str, out: &mut String) {
        if !self.colours {
            return out.push_str(text);
        }
        for character in text.chars() {
            self.character(character, out);
        }
    }

    /// The text is over: writes what was held back and leaves no colour behind.
    pub(super) fn finish(&mut self, out: &mut String) {
        if self.line == Line::Start {
            self.decide_line('\n', out);
        }
        self.end_run('\n', out);
        self.set(Style::Plain, out);
        *self = Self::new(self.colours);
    }

    fn character(&mut self, character: char, out: &mut String) {
        if self.line == Line::Start {
            if self.may_be_mark(character) {
                return self.held.push(character);
            }
            self.decide_line(character, out);
        }
        match self.line {
            Line::FenceMark => {
                // An info string has no backtick: it was code in a line after all.
                if character == '`' && self.fence.is_some_and(|fence| fence.mark == '`') {
                    self.fence = None;
                    self.line = Line::Text;
                }
                self.put(character, Style::Fence, out);
            }
            Line::Code => self.put(character, Style::Code, out),
            _ => self.inline(character, out),
        }
        if character == '\n' {
            self.begin_line();
        }
    }

    /// Whether the line so far and this character may still become a mark.
    fn may_be_mark(&self, next: char) -> bool {
        if self.held.len() >= MAX_LINE_START {
            return false;
        }
        let mark = self.held.trim_start_matches([' ', '\t']).chars().next();
        let closing = self.fence.is_some() && self.held.ends_with([' ', '\t']);
        match (mark, next) {
            (None, ' ' | '\t') => true,
            (None, '`' | '~') => true,
            (None, '#') => self.fence.is_none(),
            (Some('#'), '#') => true,
            (Some(mark @ ('`' | '~')), next) if next == mark => !closing,
            // A closing fence may be followed by blanks.
            (Some('`' | '~'), ' ' | '\t') => self.fence.is_some(),
            _ => false,
        }
    }

    /// Says what the line is, now that the character after its start is known.
    fn decide_line(&mut self, next: char, out: &mut String) {
        let held = std::mem::take(&mut self.held);
        let marks = held.trim_matches([' ', '\t']);
        let (mark, length) = (marks.chars().next().unwrap_or(' '), marks.len());
        let is_fence = matches!(mark, '`' | '~') && length >= 3;
        self.line = match self.fence {
            Some(fence) if is_fence && fence.mark == mark && length >= fence.length && next == '\n' => {
                self.fence = None;
                Line::FenceMark
            }
            Some(_) => Line::Code,
            None if is_fence => {
                self.fence = Some(Fence { mark, length });
                Line::FenceMark
            }
            None if mark == '#' && length <= 6 && matches!(next, ' ' | '\t' | '\n') => Line::Heading,
            None => Line::Text,
        };
        for character in held.chars() {
            match self.line {
                Line::FenceMark => self.put(character, Style::Fence, out),
                Line::Code => self.put(character, Style::Code, out),
                _ => self.inline(character, out),
            }
        }
    }

    fn begin_line(&mut self) {
        self.line = Line::Start;
        self.bold = false;
        self.code = None;
        self.escaped = false;
    }

    fn inline(&mut self, character: char, out: &mut String) {
        if let Some((mark, length)) = self.run {
            if mark == character {
                self.run = Some((mark, length + 1));
                return;
            }
            self.end_run(character, out);
        }
        let escaped = std::mem::take(&mut self.escaped);
        let in_code = self.code.is_some();
        match character {
            '`' if !escaped => self.run = Some((character, 1)),
            '*' if !escaped && !in_code => self.run = Some((character, 1)),
            _ => {
                self.escaped = character == '\\' && !escaped && !in_code;
                self.put(character, self.style(), out);
            }
        }
    }

    /// A run of marks is complete; `next` is what follows it.
    fn end_run(&mut self, next: char, out: &mut String) {
        let Some((mark, length)) = self.run.take() else { return };
        let before = self.style();
        if mark == '`' {
            match self.code {
                None => self.code = Some(length),
                Some(opened) if opened == length => self.code = None,
                Some(_) => {}
            }
        } else if matches!(length, 2 | 3) {
            if self.bold {
                self.bold = self.previous.is_whitespace();
            } else {
                self.bold = !next.is_whitespace();
            }
        }
        // The marks look like what they enclose.
        let style = if before == Style::Plain || self.code.is_some() { self.style() } else { before };
        for _ in 0..length {
            self.put(mark, style, out);
        }
    }

    fn style(&self) -> Style {
        if self.code.is_some() {
            Style::Code
        } else if self.bold || self.line == Line::Heading {
            Style::Bold
        } else {
            Style::Plain
        }
    }

    fn put(&mut self, character: char, style: Style, out: &mut String) {
        // A line break in colour would colour the rest of the line in some terminals.
        self.set(if character == '\n' { Style::Plain } else { style }, out);
        out.push(character);
        self.previous = character;
    }

    fn set(&mut self, style: Style, out: &mut String) {
        if self.shown != style {
            out.push_str(style.sequence());
            self.shown = style;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAMPLE: &str = "# Heading with `code`\n\nSome **bold** text, `code`, 2 ** 3, a*b*c and \\*\\*not\\*\\*.\n\
        #no heading\n####### seven\n##\n\n```rust\nlet x = **y;\n  ``` not the end\n# no heading\n```\n\
        - **list**: ``a ` b`` ünïcödé 🦀\n   ~~~\n```\n~~~~  \nafter **open\nnext `open\nthen\n\
        ```inline``` code\n***both*** and **`x`** end `";

    fn whole(text: &str, colours: bool) -> String {
        pieces(&[text], colours)
    }

    fn pieces(pieces: &[&str], colours: bool) -> String {
        let mut markdown = Markdown::new(colours);
        let mut out = String::new();
        for piece in pieces {
            markdown.feed(piece, &mut out);
        }
        markdown.finish(&mut out);
        out
    }

    fn without_colours(text: &str) -> String {
        let mut parts = text.split('\u{1b}');
        let first = parts.next().unwrap().to_owned();
        parts.fold(first, |out, part| out + part.split_once('m').unwrap().1)
    }

    #[test]
    fn where_the_stream_is_cut_does_not_matter() {
        let expected = whole(SAMPLE, true);
        for at in (0..=SAMPLE.len()).filter(|at| SAMPLE.is_char_boundary(*at)) {
            assert_eq!(pieces(&[&SAMPLE[..at], &SAMPLE[at..]], true), expected, "cut at {at}");
        }
        let characters: Vec<String> = SAMPLE.chars().map(String::from).collect();
        let characters: Vec<&str> = characters.iter().map(String::as_str).collect();
        assert_eq!(pieces(&characters, true), expected);
    }

    #[test]
    fn plain_text_passes_unchanged() {
        assert_eq!(whole(SAMPLE, false), SAMPLE);
    }

    #[test]
    fn what_is_styled() {
        let (bold, code, fence, off) = ("\u{1b}[0;1m", "\u{1b}[0;36m", "\u{1b}[0;2m", "\u{1b}[0m");
        for (text, expected) in [
            ("plain", "plain".to_owned()),
            ("# H\nx", format!("{bold}# H{off}\nx")),
            ("#H", "#H".to_owned()),
            ("a **b** c", format!("a {bold}**b**{off} c")),
            ("2 ** 3 ** 4", "2 ** 3 ** 4".to_owned()),
            ("a **b\nc", format!("a {bold}**b{off}\nc")),
            ("`a` b", format!("{code}`a`{off} b")),
            ("``a`b`` c", format!("{code}``a`b``{off} c")),
            ("\\`a\\`", "\\`a\\`".to_owned()),
            ("```js\nx\n```\ny", format!("{fence}```js{off}\n{code}x{off}\n{fence}```{off}\ny")),
            ("```\nx\n```", format!("{fence}```{off}\n{code}x{off}\n{fence}```{off}")),
            ("**`x`**", format!("{bold}**{code}`x`{bold}**{off}")),
        ] {
            assert_eq!(whole(text, true), expected, "{text:?}");
        }
    }

    #[test]
    fn a_mark_without_an_end_is_not_held_forever() {
        let mut markdown = Markdown::new(true);
        let mut out = String::new();
        markdown.feed(&" ".repeat(10_000), &mut out);
        assert!(out.len() > 9_000, "{}", out.len());
    }

    proptest::proptest! {
        #[test]
        fn nothing_is_lost_and_no_colour_stays(text in "([`*#~ \\\\a\n]|```|\\*\\*|é){0,60}") {
            let styled = whole(&text, true);
            proptest::prop_assert_eq!(without_colours(&styled), text);
            if let Some(last) = styled.rfind('\u{1b}') {
                proptest::prop_assert!(styled[last..].starts_with("\u{1b}[0m"), "{:?}", styled);
            }
        }
    }
}
