//! One word of a command line: what it comes to once quotes and escapes are taken away, and whether
//! that is certain before it runs.

/// A word as it is written and as a program gets it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Word {
    /// As far as it is known; what is not keeps the form in which it is written.
    pub(super) text: String,
    /// Why it may come to something else; `None` for a fixed text.
    pub(super) doubt: Option<&'static str>,
    /// Whether any of it is quoted, so that it is no keyword and no assignment.
    pub(super) is_quoted: bool,
    /// Whether it begins with a pattern for file names, which could come to an option.
    pub(super) begins_with_glob: bool,
    /// Whether it contains such a pattern.
    pub(super) has_glob: bool,
    /// Where it stands in its text.
    pub(super) start: usize,
    pub(super) end: usize,
}

pub(super) const VALUE: &str = "a value in it is only known when it runs";
pub(super) const SUBSTITUTION: &str = "it contains the output of another command";
pub(super) const BRACES: &str = "it contains braces that stand for several words";
pub(super) const UNCLOSED: &str = "a quote in it is never closed";
pub(super) const ODD_CHARACTERS: &str = "it contains characters that cannot be seen";
pub(super) const ODD_QUOTES: &str = "it contains a kind of quotes that shells read differently";

/// Variables that a command line may use without making it uncertain: nobody sets them in passing,
/// and assignments to them are noticed.
const KNOWN_VARIABLES: [&str; 3] = ["HOME", "PWD", "USER"];

/// What ends a word outside of quotes.
pub(super) fn is_border(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\n' | '\r' | ';' | '&' | '|' | '<' | '>' | '(' | ')')
}

/// The word that starts at `start`; it ends where [`Word::end`] says, at the latest at the end of
/// the text. Empty if there is a border at `start`.
pub(super) fn word_at(text: &str, start: usize) -> Word {
    let mut reader = Reader { text, at: start, word: Word { start, ..Word::default() }, braces: Braces::None };
    reader.read();
    reader.word.end = reader.at;
    reader.word
}

/// The word that `raw` is, all of it, as far as it can be told.
pub(super) fn whole_word(raw: &str, start: usize) -> Word {
    let mut word = word_at(raw, 0);
    if word.end < raw.len() {
        // A substitution with blanks in it, or something that this reader does not know.
        let doubt = word.doubt.unwrap_or(SUBSTITUTION);
        let text = raw.chars().filter(|c| !matches!(c, '"' | '\'' | '\\')).collect();
        word = Word { text, doubt: Some(doubt), ..Word::default() };
    }
    Word { start, end: start + raw.len(), ..word }
}

/// How far an unquoted brace expression is.
#[derive(Clone, Copy, PartialEq)]
enum Braces {
    None,
    Open,
    /// With a comma or two dots in it.
    Several,
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
    word: Word,
    braces: Braces,
}

impl Reader<'_> {
    fn read(&mut self) {
        while let Some(c) = self.peek() {
            match c {
                '\r' => {
                    self.doubt(ODD_CHARACTERS);
                    return;
                }
                c if is_border(c) => return,
                '\\' => self.escape(),
                '\'' => self.single_quotes(),
                '"' => self.double_quotes(),
                '$' => self.dollar(),
                '`' => {
                    self.doubt(SUBSTITUTION);
                    self.push(c);
                }
                '*' | '?' | '[' => {
                    self.word.has_glob = true;
                    self.word.begins_with_glob |= self.word.text.is_empty();
                    self.push(c);
                }
                '=' if self.word.text.is_empty() => {
                    // Zsh puts the path of a program there.
                    self.doubt(VALUE);
                    self.push(c);
                }
                c => {
                    self.brace(c);
                    self.push(c);
                }
            }
        }
    }

    fn rest(&self) -> &str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn push(&mut self, c: char) {
        if is_invisible(c) {
            self.doubt(ODD_CHARACTERS);
        }
        self.word.text.push(c);
        self.at += c.len_utf8();
    }

    fn doubt(&mut self, why: &'static str) {
        self.word.doubt.get_or_insert(why);
    }

    fn brace(&mut self, c: char) {
        self.braces = match (self.braces, c) {
            (Braces::None, '{') => Braces::Open,
            (Braces::Open, ',') => Braces::Several,
            (Braces::Open, '.') if self.rest().starts_with("..") => Braces::Several,
            (Braces::Several, '}') => {
                self.doubt(BRACES);
                Braces::None
            }
            (braces, _) => braces,
        };
    }

    fn escape(&mut self) {
        self.at += 1;
        match self.peek() {
            // A line that goes on.
            Some('\n') => self.at += 1,
            // To the shell this is a character, not the end of a line.
            Some('\r') => {
                self.doubt(ODD_CHARACTERS);
                self.push('\r');
            }
            Some(c) => {
                self.word.is_quoted = true;
                self.push(c);
            }
            None => {
                self.doubt(UNCLOSED);
                self.word.text.push('\\');
            }
        }
    }

    fn single_quotes(&mut self) {
        self.word.is_quoted = true;
        self.at += 1;
        while let Some(c) = self.peek() {
            if c == '\'' {
                self.at += 1;
                return;
            }
            self.push(c);
        }
        self.doubt(UNCLOSED);
    }

    fn double_quotes(&mut self) {
        self.word.is_quoted = true;
        self.at += 1;
        while let Some(c) = self.peek() {
            match c {
                '"' => {
                    self.at += 1;
                    return;
                }
                '\\' => {
                    self.at += 1;
                    match self.peek() {
                        Some('\n') => self.at += 1,
                        Some(c @ ('$' | '`' | '"' | '\\')) => self.push(c),
                        _ => self.word.text.push('\\'),
                    }
                }
                '$' => self.dollar_in_quotes(),
                '`' => {
                    self.doubt(SUBSTITUTION);
                    self.push(c);
                }
                c => self.push(c),
            }
        }
        self.doubt(UNCLOSED);
    }

    fn dollar(&mut self) {
        match self.rest().chars().nth(1) {
            Some('\'') => self.ansi_quotes(),
            Some('"') => {
                // Translated by the user's locale.
                self.doubt(ODD_QUOTES);
                self.at += 1;
                self.double_quotes();
            }
            _ => self.dollar_in_quotes(),
        }
    }

    /// A dollar sign and what belongs to it, outside of quotes or inside of double ones.
    fn dollar_in_quotes(&mut self) {
        let rest = self.rest().get(1..).unwrap_or_default();
        let name: String = rest.chars().take_while(|c| c.is_ascii_alphanumeric() || *c == '_').collect();
        let next = rest.chars().next();
        let in_braces = next == Some('{')
            && KNOWN_VARIABLES
                .iter()
                .any(|known| rest[1..].strip_prefix(known).is_some_and(|end| end.starts_with('}')));
        match next {
            _ if in_braces => {
                let end = rest.find('}').unwrap_or_default();
                for c in self.rest().chars().take(end + 2).collect::<Vec<_>>() {
                    self.push(c);
                }
                return;
            }
            // Calculations run commands only through what is nested in them.
            Some('(') if !rest.starts_with("((") => self.doubt(SUBSTITUTION),
            Some('(' | '[' | '{') => self.doubt(VALUE),
            Some('?' | '$' | '#' | '!') => {
                self.push('$');
                if let Some(c) = next {
                    self.push(c);
                }
                return;
            }
            Some('@' | '*' | '-') => self.doubt(VALUE),
            Some(_) if !name.is_empty() => {
                let is_known = KNOWN_VARIABLES.contains(&name.as_str());
                if !is_known {
                    self.doubt(VALUE);
                }
            }
            // A dollar sign and nothing more.
            _ => {}
        }
        self.push('$');
    }

    /// `$'…'`, which not every shell knows; what it comes to is worked out for those who forbid it.
    fn ansi_quotes(&mut self) {
        self.word.is_quoted = true;
        self.doubt(ODD_QUOTES);
        self.at += 2;
        while let Some(c) = self.peek() {
            match c {
                '\'' => {
                    self.at += 1;
                    return;
                }
                '\\' => self.ansi_escape(),
                c => self.push(c),
            }
        }
    }

    fn ansi_escape(&mut self) {
        self.at += 1;
        let Some(c) = self.peek() else { return };
        self.at += c.len_utf8();
        let meant = match c {
            'n' => '\n',
            't' => '\t',
            'r' => '\r',
            'e' | 'E' => '\u{1b}',
            'x' => return self.coded(16, 2),
            'u' => return self.coded(16, 4),
            'U' => return self.coded(16, 8),
            '0'..='7' => {
                self.at -= 1;
                return self.coded(8, 3);
            }
            other => other,
        };
        self.word.text.push(meant);
    }

    fn coded(&mut self, radix: u32, most: usize) {
        let digits: String = self.rest().chars().take(most).take_while(|c| c.is_digit(radix)).collect();
        self.at += digits.len();
        if let Some(c) = u32::from_str_radix(&digits, radix).ok().and_then(char::from_u32) {
            self.word.text.push(c);
        }
    }
}

/// Characters that are not seen where the user reads the command, or turn around what is.
fn is_invisible(c: char) -> bool {
    let is_plain_blank = matches!(c, ' ' | '\t' | '\n');
    let formats = matches!(c, '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}');
    !is_plain_blank && (c.is_control() || c.is_whitespace() || formats)
}
