//! The line editor of the interactive chat: history, several lines, and the look of the prompt.

use std::borrow::Cow;
use std::io;
use std::path::Path;

use reedline::{
    FileBackedHistory, Prompt, PromptEditMode, PromptHistorySearch, PromptHistorySearchStatus, Reedline, Signal,
    ValidationResult, Validator,
};

use crate::base::private;

/// Questions that are remembered.
const HISTORY_ENTRIES: usize = 1_000;
const HISTORY_FILE: &str = "terminal-history.txt";

/// What the user did at the prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Typed {
    Text(String),
    /// Ctrl-C: the line is thrown away.
    Nothing,
    /// Ctrl-D.
    Leave,
}

pub(super) struct LineEditor(Reedline);

impl LineEditor {
    /// `folder` keeps the history; without it, the history ends with the program.
    pub(super) fn new(folder: &Path, colours: bool) -> Self {
        let editor = Reedline::create()
            .with_ansi_colors(colours)
            .with_validator(Box::new(BackslashGoesOn))
            .use_bracketed_paste(true);
        match history(folder) {
            Ok(history) => Self(editor.with_history(Box::new(history))),
            Err(error) => {
                tracing::warn!(%error, "the history of questions cannot be kept");
                Self(editor)
            }
        }
    }

    /// Blocks until the user is done.
    pub(super) fn read(&mut self) -> io::Result<Typed> {
        Self::read_from(&mut self.0)
    }

    /// The same, without a trace in the history: for keys.
    pub(super) fn read_untraced() -> io::Result<Typed> {
        Self::read_from(&mut Reedline::create().use_bracketed_paste(true))
    }

    fn read_from(editor: &mut Reedline) -> io::Result<Typed> {
        match editor.read_line(&Arrow).map_err(io::Error::other)? {
            Signal::Success(text) => Ok(Typed::Text(joined(&text))),
            Signal::CtrlD => Ok(Typed::Leave),
            _ => Ok(Typed::Nothing),
        }
    }
}

/// Gives the terminal back while a prompt may still be waiting in another thread.
pub(super) fn restore_terminal() {
    let _ = crossterm::terminal::disable_raw_mode();
    let _ = crossterm::execute!(io::stderr(), crossterm::event::DisableBracketedPaste);
    let _ = io::Write::write_all(&mut io::stderr(), b"\n");
}

/// Questions are as private as chats.
fn history(folder: &Path) -> io::Result<FileBackedHistory> {
    private::create_folder(folder)?;
    let file = folder.join(HISTORY_FILE);
    private::open_file(&file, std::fs::OpenOptions::new().create(true).append(true))?;
    FileBackedHistory::with_file(HISTORY_ENTRIES, file).map_err(io::Error::other)
}

/// A backslash at the end of a line only says that there is another one.
fn joined(text: &str) -> String {
    text.replace("\\\n", "\n")
}

struct BackslashGoesOn;

impl Validator for BackslashGoesOn {
    fn validate(&self, line: &str) -> ValidationResult {
        if line.ends_with('\\') { ValidationResult::Incomplete } else { ValidationResult::Complete }
    }
}

struct Arrow;

impl Prompt for Arrow {
    fn render_prompt_left(&self) -> Cow<'_, str> {
        "".into()
    }

    fn render_prompt_right(&self) -> Cow<'_, str> {
        "".into()
    }

    fn render_prompt_indicator(&self, _: PromptEditMode) -> Cow<'_, str> {
        "> ".into()
    }

    fn render_prompt_multiline_indicator(&self) -> Cow<'_, str> {
        "  ".into()
    }

    fn render_prompt_history_search_indicator(&self, search: PromptHistorySearch) -> Cow<'_, str> {
        let found = match search.status {
            PromptHistorySearchStatus::Passing => "",
            PromptHistorySearchStatus::Failing => "not found: ",
        };
        format!("({found}search: {}) ", search.term).into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_backslash_joins_lines() {
        assert!(matches!(BackslashGoesOn.validate("a\\"), ValidationResult::Incomplete));
        assert!(matches!(BackslashGoesOn.validate("a\\\nb"), ValidationResult::Complete));
        assert_eq!(joined("a\\\nb\\c"), "a\nb\\c");
    }

    #[cfg(unix)]
    #[test]
    fn only_the_user_can_read_the_history() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let data = folder.path().join("data");
        let mut kept = history(&data).unwrap();
        reedline::History::save(&mut kept, reedline::HistoryItem::from_command_line("secret")).unwrap();
        reedline::History::sync(&mut kept).unwrap();
        let file = data.join(HISTORY_FILE);
        assert!(std::fs::read_to_string(&file).unwrap().contains("secret"));
        assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    }
}
