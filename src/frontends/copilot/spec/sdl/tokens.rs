//! The words of GraphQL's schema language.

use std::fmt;

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Token<'a> {
    Name(&'a str),
    Mark(char),
    Text(String),
    Number,
    End,
}

pub(super) struct Tokens<'a> {
    text: &'a str,
    at: usize,
    /// Read ahead.
    peeked: Option<Token<'a>>,
}

impl<'a> Tokens<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self { text, at: 0, peeked: None }
    }

    /// The line that is being read, from 1.
    pub(super) fn line(&self) -> usize {
        self.text[..self.at].matches('\n').count() + 1
    }

    pub(super) fn next(&mut self) -> Result<Token<'a>, String> {
        match self.peeked.take() {
            Some(token) => Ok(token),
            None => self.read(),
        }
    }

    /// Takes the mark if it is the next token.
    pub(super) fn eat(&mut self, mark: char) -> Result<bool, String> {
        let found = *self.peek()? == Token::Mark(mark);
        if found {
            self.peeked = None;
        }
        Ok(found)
    }

    pub(super) fn eat_name(&mut self, name: &str) -> Result<bool, String> {
        let found = matches!(self.peek()?, Token::Name(found) if *found == name);
        if found {
            self.peeked = None;
        }
        Ok(found)
    }

    pub(super) fn peek_is_name(&mut self) -> Result<bool, String> {
        Ok(matches!(self.peek()?, Token::Name(_)))
    }

    pub(super) fn eat_text(&mut self) -> Result<Option<String>, String> {
        self.peek()?;
        match self.peeked.take() {
            Some(Token::Text(text)) => Ok(Some(text)),
            other => {
                self.peeked = other;
                Ok(None)
            }
        }
    }

    fn peek(&mut self) -> Result<&Token<'a>, String> {
        let token = self.next()?;
        Ok(self.peeked.insert(token))
    }

    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn read(&mut self) -> Result<Token<'a>, String> {
        loop {
            let rest = self.rest();
            let skipped = rest.trim_start_matches([' ', '\t', '\n', '\r', ',', '\u{feff}']);
            self.at += rest.len() - skipped.len();
            if !skipped.starts_with('#') {
                break;
            }
            self.at += skipped.find('\n').unwrap_or(skipped.len());
        }
        let rest = self.rest();
        let Some(first) = rest.chars().next() else { return Ok(Token::End) };
        match first {
            '"' => self.text_token(),
            first if first == '_' || first.is_ascii_alphabetic() => {
                let length = rest.find(|c: char| c != '_' && !c.is_ascii_alphanumeric()).unwrap_or(rest.len());
                self.at += length;
                Ok(Token::Name(&rest[..length]))
            }
            first if first == '-' || first.is_ascii_digit() => {
                let digits = |c: char| !c.is_ascii_alphanumeric() && !matches!(c, '.' | '+' | '-');
                self.at += rest.find(digits).unwrap_or(rest.len());
                Ok(Token::Number)
            }
            '{' | '}' | '(' | ')' | '[' | ']' | ':' | '=' | '!' | '|' | '&' | '@' | '$' => {
                self.at += 1;
                Ok(Token::Mark(first))
            }
            other => Err(format!("the character {other:?} has no meaning here")),
        }
    }

    fn text_token(&mut self) -> Result<Token<'a>, String> {
        let rest = self.rest();
        if let Some(inside) = rest.strip_prefix("\"\"\"") {
            let mut from = 0;
            loop {
                let end = inside[from..].find("\"\"\"").ok_or("a text has no end")? + from;
                // `\"""` stands for three quotes inside of the text.
                if inside[..end].ends_with('\\') {
                    from = end + 3;
                    continue;
                }
                self.at += 3 + end + 3;
                return Ok(Token::Text(inside[..end].replace("\\\"\"\"", "\"\"\"")));
            }
        }
        let mut escaped = false;
        for (at, character) in rest.char_indices().skip(1) {
            match character {
                '\n' => break,
                '"' if !escaped => {
                    self.at += at + 1;
                    let inside = &rest[1..at];
                    // Its escapes are those of JSON.
                    let text = serde_json::from_str(&rest[..=at]).unwrap_or_else(|_| inside.to_owned());
                    return Ok(Token::Text(text));
                }
                _ => escaped = character == '\\' && !escaped,
            }
        }
        Err("a text has no end".to_owned())
    }
}

impl fmt::Display for Token<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => write!(f, "\"{name}\""),
            Self::Mark(mark) => write!(f, "\"{mark}\""),
            Self::Text(_) => f.write_str("a text"),
            Self::Number => f.write_str("a number"),
            Self::End => f.write_str("the end"),
        }
    }
}
