//! Finds the code in an answer while it arrives: after a line of backticks, or where a line looks
//! like the beginning of a module. Fence lines are never part of it.

/// How a module may begin.
const BEGINNINGS: [&str; 14] = [
    "import ",
    "import{",
    "export ",
    "function ",
    "async function ",
    "const ",
    "class ",
    "//",
    "/*",
    "'use ",
    "\"use ",
    "@jsx",
    "interface ",
    "type ",
];

/// Languages of fences that are no module.
const OTHER_LANGUAGES: [&str; 14] =
    ["bash", "sh", "shell", "console", "zsh", "json", "yaml", "yml", "html", "css", "text", "txt", "markdown", "diff"];

#[derive(Debug, Default)]
pub(in crate::frontends::copilot) struct CodeReader {
    state: State,
    /// The part of the current line of which it is not yet known what it is.
    held: String,
    /// The current line is known to be code; the rest of it passes.
    passing: bool,
    /// The answer goes on after an interruption, and has not said anything yet.
    resumed: bool,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum State {
    #[default]
    Before,
    /// Inside of a fence of so many backticks.
    Fenced(usize),
    /// Code without a fence.
    Plain,
    /// Inside of a fence that is about something else.
    Other(usize),
    After,
}

impl CodeReader {
    /// Takes a piece of the answer; returns what of it is code.
    pub(in crate::frontends::copilot) fn push(&mut self, text: &str) -> String {
        let mut code = String::new();
        for piece in text.split_inclusive('\n') {
            if self.passing {
                self.passing = !piece.ends_with('\n');
                code.push_str(piece);
                continue;
            }
            self.held.push_str(piece);
            if piece.ends_with('\n') {
                self.whole_line(&mut code);
            } else if self.is_surely_code() {
                self.passing = true;
                self.resumed = false;
                code.push_str(&std::mem::take(&mut self.held));
            }
        }
        code
    }

    /// The answer broke off and goes on. Returns code of which it was not yet known what it is.
    pub(in crate::frontends::copilot) fn go_on(&mut self) -> String {
        self.resumed = matches!(self.state, State::Fenced(_) | State::Plain);
        // A fence may follow in the middle of a line that was broken off.
        self.passing = false;
        let is_code = self.resumed && !self.held.contains('`');
        if is_code { std::mem::take(&mut self.held) } else { String::new() }
    }

    /// The end of the answer; returns the rest of the code.
    pub(in crate::frontends::copilot) fn finish(&mut self) -> String {
        let mut code = String::new();
        if !self.held.is_empty() {
            self.whole_line(&mut code);
        }
        code
    }

    /// Of a line that is not complete: whether it cannot be a fence any more.
    fn is_surely_code(&self) -> bool {
        let start = self.held.trim_start();
        matches!(self.state, State::Fenced(_) | State::Plain) && !start.is_empty() && !start.starts_with('`')
    }

    fn whole_line(&mut self, code: &mut String) {
        let line = std::mem::take(&mut self.held);
        let text = line.trim();
        let ticks = text.bytes().take_while(|byte| *byte == b'`').count();
        let fence = (ticks >= 3).then_some(ticks);
        let language = text[ticks..].trim();
        let resumed = std::mem::take(&mut self.resumed);
        match (self.state, fence) {
            // A model that goes on often opens its fence again.
            (State::Fenced(_) | State::Plain, Some(ticks)) if resumed => self.state = State::Fenced(ticks),
            (State::Fenced(open), Some(ticks)) if ticks >= open && language.is_empty() => self.state = State::After,
            (State::Plain, Some(_)) => self.state = State::After,
            (State::Fenced(_) | State::Plain, _) => code.push_str(&line),
            (State::Before, Some(ticks)) => {
                let word = language.split(|c: char| !c.is_ascii_alphanumeric()).next().unwrap_or_default();
                let other = OTHER_LANGUAGES.contains(&word.to_ascii_lowercase().as_str());
                self.state = if other { State::Other(ticks) } else { State::Fenced(ticks) };
            }
            (State::Other(open), Some(ticks)) if ticks >= open && language.is_empty() => self.state = State::Before,
            (State::Before, None) if begins_module(text) => {
                self.state = State::Plain;
                code.push_str(&line);
            }
            // Words beside the code.
            (State::Before | State::Other(_) | State::After, _) => {}
        }
    }
}

fn begins_module(line: &str) -> bool {
    let begins = BEGINNINGS.iter().any(|beginning| line.starts_with(beginning));
    // These are words of English too.
    let is_statement = |word: &str| !line.starts_with(word) || line.contains(['=', '{', '(']);
    begins && ["interface ", "type ", "class ", "const "].into_iter().all(is_statement)
}
