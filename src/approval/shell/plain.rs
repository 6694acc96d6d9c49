//! A strict reader for the command lines that can be judged without a question.
//!
//! It knows simple commands with fixed words, joined by operators and the common keywords, and gives
//! up on everything else. What it reads has to agree with what the grammar in
//! [`super::tree`] finds, so that a slip of one of the two is noticed instead of trusted.

use super::environment;
use super::words::{self, Word, word_at};

/// One simple command.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Simple {
    pub(super) words: Vec<Word>,
    /// The files that its input comes from.
    pub(super) reads: Vec<String>,
    /// Whether it is given a text that stands in the line.
    pub(super) has_text: bool,
    /// The files that its output goes to.
    pub(super) writes: Vec<String>,
}

const UNBALANCED: &str = "its parentheses do not match";
const UNFINISHED: &str = "something is missing at its end";
const TOO_RICH: &str = "it is more than a row of commands";
const VARIABLE: &str = "it sets a variable that other programs obey";
const NETWORK: &str = "it opens a network connection";
pub(super) const HERE_DOCUMENT: &str = "it contains a text whose end is not clear";

/// Keywords after which another command begins.
const OPENERS: [&str; 9] = ["if", "then", "elif", "else", "while", "until", "do", "!", "{"];
/// Keywords after which only an operator follows.
const CLOSERS: [&str; 3] = ["fi", "done", "}"];
/// Keywords of what this reader does not read.
const REFUSED: [&str; 7] = ["case", "esac", "select", "function", "coproc", "[[", "]]"];

/// Whether a shell would read this word as something else than a command's name, where one may stand.
pub(super) fn is_special(word: &Word) -> bool {
    let name = word.text.as_str();
    environment::assigned_name(name).is_some()
        || [&OPENERS[..], &CLOSERS, &REFUSED, &["for", "time"]].iter().any(|keywords| keywords.contains(&name))
}

/// All commands of `text` in their order, or why they cannot be told for certain.
pub(super) fn read(text: &str) -> Result<Vec<Simple>, &'static str> {
    let mut reader = Reader { text, at: 0, depth: 0, current: Current::default(), found: Vec::new(), here: Vec::new() };
    reader.script()?;
    Ok(reader.found)
}

/// The command that is being read.
#[derive(Default)]
struct Current {
    simple: Simple,
    /// Whether anything of it was seen, so that keywords are none any more.
    is_begun: bool,
    assigned: Vec<String>,
}

/// A here-document whose text begins after the line.
struct HereDocument {
    end: String,
    is_literal: bool,
    strips_tabs: bool,
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
    depth: usize,
    current: Current,
    found: Vec<Simple>,
    here: Vec<HereDocument>,
}

impl Reader<'_> {
    fn script(&mut self) -> Result<(), &'static str> {
        loop {
            self.blanks()?;
            let rest = self.rest();
            let Some(c) = rest.chars().next() else { break };
            match c {
                '#' => self.at += rest.find('\n').unwrap_or(rest.len()),
                '\n' => {
                    self.at += 1;
                    self.finish()?;
                    self.here_documents()?;
                }
                '(' if !self.current.is_begun && !rest.starts_with("((") => {
                    self.at += 1;
                    self.depth += 1;
                }
                '(' => return Err(TOO_RICH),
                ')' => {
                    self.at += 1;
                    self.finish()?;
                    self.depth = self.depth.checked_sub(1).ok_or(UNBALANCED)?;
                }
                '<' | '>' => self.redirection()?,
                '&' if rest.starts_with("&>") => self.redirection()?,
                ';' | '&' | '|' => self.operator()?,
                _ => self.word()?,
            }
        }
        self.finish()?;
        match (self.depth, self.here.is_empty()) {
            (0, true) => Ok(()),
            (0, false) => Err(HERE_DOCUMENT),
            _ => Err(UNBALANCED),
        }
    }

    fn rest(&self) -> &str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn blanks(&mut self) -> Result<(), &'static str> {
        loop {
            let rest = self.rest();
            if rest.starts_with([' ', '\t']) {
                self.at += 1;
            } else if rest.starts_with("\\\n") {
                self.at += 2;
            } else if rest.starts_with('\r') || rest.starts_with("\\\r") {
                // To a shell this is a letter, also at the end of a line.
                return Err(words::ODD_CHARACTERS);
            } else {
                return Ok(());
            }
        }
    }

    /// Ends the command in hand.
    fn finish(&mut self) -> Result<(), &'static str> {
        let current = std::mem::take(&mut self.current);
        let is_prefix = !current.simple.words.is_empty();
        if !current.assigned.iter().all(|name| environment::is_harmless(name, is_prefix)) {
            return Err(VARIABLE);
        }
        // The input of a group is the input of commands that are found already.
        if !is_prefix && (current.simple.has_text || !current.simple.reads.is_empty()) {
            return Err(TOO_RICH);
        }
        if is_prefix || !current.simple.writes.is_empty() {
            self.found.push(current.simple);
        }
        Ok(())
    }

    fn operator(&mut self) -> Result<(), &'static str> {
        let rest = self.rest();
        let known = ["&&", "||", "|&", ";", "&", "|"].into_iter().find(|operator| rest.starts_with(operator));
        if rest.starts_with(";;") || rest.starts_with(";&") {
            return Err(TOO_RICH);
        }
        self.at += known.map_or(1, str::len);
        self.finish()
    }

    fn word(&mut self) -> Result<(), &'static str> {
        let word = word_at(self.text, self.at);
        let raw = self.text.get(word.start..word.end).unwrap_or_default();
        self.at = word.end;
        let next = self.rest().chars().next();
        // `2>`, `{name}>`, `name()` and `$(` stand together without a blank.
        match next {
            Some('<' | '>') if !raw.is_empty() && raw.bytes().all(|byte| byte.is_ascii_digit()) => return Ok(()),
            Some('<' | '>') if raw.starts_with('{') => return Err(TOO_RICH),
            Some('(') => return Err(word.doubt.unwrap_or(TOO_RICH)),
            _ => {}
        }
        if word.end == word.start {
            // A continued line may end inside of a word that has nothing before it.
            return Err(TOO_RICH);
        }
        if !self.current.is_begun && !word.is_quoted {
            match raw {
                raw if OPENERS.contains(&raw) => return Ok(()),
                raw if CLOSERS.contains(&raw) => return self.finish(),
                raw if REFUSED.contains(&raw) => return Err(TOO_RICH),
                "for" => return self.for_loop(),
                _ => {}
            }
        }
        if let Some(doubt) = word.doubt {
            return Err(doubt);
        }
        self.current.is_begun = true;
        if self.current.simple.words.is_empty() {
            if let Some(name) = environment::assigned_name(raw) {
                // Calculations would run it later.
                if raw.contains("$(") || raw.contains('`') {
                    return Err(words::SUBSTITUTION);
                }
                self.current.assigned.push(name.to_owned());
                return Ok(());
            }
            if word.has_glob && word.text != "[" {
                return Err(words::VALUE);
            }
        }
        if environment::declares(&self.current.simple.words)
            && let Some(name) = environment::assigned_name(&word.text)
        {
            self.current.assigned.push(name.to_owned());
        }
        self.current.simple.words.push(word);
        Ok(())
    }

    /// `for NAME in words;`: the body is read as what follows.
    fn for_loop(&mut self) -> Result<(), &'static str> {
        self.blanks()?;
        let name = word_at(self.text, self.at);
        self.at = name.end;
        let raw = self.text.get(name.start..name.end).unwrap_or_default();
        if environment::assigned_name(&format!("{raw}=")) != Some(raw) {
            return Err(TOO_RICH);
        }
        if !environment::is_harmless(raw, false) {
            return Err(VARIABLE);
        }
        self.blanks()?;
        let keyword = word_at(self.text, self.at);
        if self.text.get(keyword.start..keyword.end) == Some("in") {
            self.at = keyword.end;
            loop {
                self.blanks()?;
                let value = word_at(self.text, self.at);
                if value.end == value.start {
                    break;
                }
                self.at = value.end;
                if let Some(doubt) = value.doubt {
                    return Err(doubt);
                }
            }
        }
        if self.rest().starts_with([';', '\n']) { Ok(()) } else { Err(TOO_RICH) }
    }

    fn redirection(&mut self) -> Result<(), &'static str> {
        self.current.is_begun = true;
        let rest = self.rest();
        let operators = ["<<<", "<<-", "&>>", "<<", "<>", "<&", ">>", ">&", ">|", "&>", "<", ">"];
        let operator = operators.into_iter().find(|operator| rest.starts_with(operator)).ok_or(TOO_RICH)?;
        self.at += operator.len();
        self.blanks()?;
        let target = word_at(self.text, self.at);
        self.at = target.end;
        if self.rest().starts_with('(') {
            return Err(words::SUBSTITUTION);
        }
        if target.end == target.start {
            return Err(UNFINISHED);
        }
        let raw = self.text.get(target.start..target.end).unwrap_or_default();
        if matches!(operator, "<<" | "<<-") {
            return self.expect_here_document(raw, operator == "<<-");
        }
        if let Some(doubt) = target.doubt {
            return Err(doubt);
        }
        if target.text.starts_with("/dev/tcp/") || target.text.starts_with("/dev/udp/") {
            return Err(NETWORK);
        }
        let is_descriptor = target.text == "-" || target.text.bytes().all(|byte| byte.is_ascii_digit());
        match operator {
            "<<<" => self.current.simple.has_text = true,
            "<&" | ">&" if is_descriptor => {}
            "<&" => return Err(TOO_RICH),
            _ if is_no_file(&target.text) => {}
            "<" => self.current.simple.reads.push(target.text),
            _ if target.has_glob => return Err(words::VALUE),
            _ => self.current.simple.writes.push(target.text),
        }
        Ok(())
    }

    fn expect_here_document(&mut self, raw: &str, strips_tabs: bool) -> Result<(), &'static str> {
        let quoted = ['\'', '"'].into_iter().find_map(|quote| raw.strip_prefix(quote)?.strip_suffix(quote));
        let end = quoted.unwrap_or(raw);
        if end.is_empty() || !end.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_') {
            return Err(HERE_DOCUMENT);
        }
        self.current.simple.has_text = true;
        self.here.push(HereDocument { end: end.to_owned(), is_literal: quoted.is_some(), strips_tabs });
        Ok(())
    }

    /// The texts that were announced in the line that ended here.
    fn here_documents(&mut self) -> Result<(), &'static str> {
        for document in std::mem::take(&mut self.here) {
            loop {
                let rest = self.rest();
                if rest.is_empty() {
                    return Err(HERE_DOCUMENT);
                }
                let line = rest.split_inclusive('\n').next().unwrap_or_default();
                let content = line.strip_suffix('\n').unwrap_or(line);
                let content = if document.strips_tabs { content.trim_start_matches('\t') } else { content };
                let is_end = content == document.end;
                // Nearly an end: shells and the grammar may disagree.
                if !is_end && content.trim() == document.end {
                    return Err(HERE_DOCUMENT);
                }
                if !is_end && !document.is_literal && content.contains(['$', '`', '\\']) {
                    return Err(words::SUBSTITUTION);
                }
                self.at += line.len();
                if is_end {
                    break;
                }
            }
        }
        Ok(())
    }
}

/// Whether nothing is kept of what goes there, or it goes where the command's output goes anyway.
pub(super) fn is_no_file(target: &str) -> bool {
    matches!(target, "/dev/null" | "/dev/stdout" | "/dev/stderr")
}
