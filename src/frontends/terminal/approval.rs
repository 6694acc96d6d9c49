//! Asking the person at the terminal whether a tool may run.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crossterm::event::{Event, KeyCode, KeyEventKind, KeyModifiers};

use crate::base::task;
use crate::engine::Decision;

/// How often a question looks whether it still stands.
const LOOK_AGAIN: Duration = Duration::from_millis(100);

/// What the person did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Key {
    Decided(Decision),
    /// Ctrl-C: the whole answer is not wanted any more.
    Interrupt,
}

/// Waits for a key that is an answer; `None` when the question was taken back.
pub(super) async fn ask(taken_back: Arc<AtomicBool>) -> io::Result<Option<Key>> {
    task::blocking(move || {
        let _raw = Raw::enter()?;
        while !taken_back.load(Ordering::Acquire) {
            if !crossterm::event::poll(LOOK_AGAIN)? {
                continue;
            }
            if let Event::Key(key) = crossterm::event::read()?
                && key.kind != KeyEventKind::Release
                && let Some(key) = meaning(key.code, key.modifiers)
            {
                return Ok(Some(key));
            }
        }
        Ok(None)
    })
    .await
    .map_err(io::Error::other)?
}

fn meaning(code: KeyCode, modifiers: KeyModifiers) -> Option<Key> {
    match code {
        KeyCode::Char('c' | 'd') if modifiers.contains(KeyModifiers::CONTROL) => Some(Key::Interrupt),
        KeyCode::Char('y' | 'Y') | KeyCode::Enter => Some(Key::Decided(Decision::Approve { remember: false })),
        KeyCode::Char('a' | 'A') => Some(Key::Decided(Decision::Approve { remember: true })),
        KeyCode::Char('n' | 'N') | KeyCode::Esc => Some(Key::Decided(Decision::Reject)),
        _ => None,
    }
}

/// The terminal hands over single keys while this lives.
struct Raw;

impl Raw {
    fn enter() -> io::Result<Self> {
        crossterm::terminal::enable_raw_mode().map(|()| Self)
    }
}

impl Drop for Raw {
    fn drop(&mut self) {
        let _ = crossterm::terminal::disable_raw_mode();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_mean_what_the_question_says() {
        let plain = |code| meaning(code, KeyModifiers::NONE);
        assert_eq!(plain(KeyCode::Char('y')), Some(Key::Decided(Decision::Approve { remember: false })));
        assert_eq!(plain(KeyCode::Char('a')), Some(Key::Decided(Decision::Approve { remember: true })));
        assert_eq!(plain(KeyCode::Char('n')), Some(Key::Decided(Decision::Reject)));
        assert_eq!(plain(KeyCode::Char('c')), None);
        assert_eq!(meaning(KeyCode::Char('c'), KeyModifiers::CONTROL), Some(Key::Interrupt));
    }
}
