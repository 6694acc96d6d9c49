//! What a one-shot `eca chat` asks: the words of the command line, and what is piped into it.

use std::io::{self, Read};

use crate::engine::Context;

/// More than this is no question for a model.
pub(super) const MAX_PIPED_BYTES: u64 = 64 * 1024 * 1024;

/// One message of the user.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Question {
    pub(super) text: String,
    pub(super) contexts: Vec<Context>,
}

/// Why there is nothing to ask.
#[derive(Debug, thiserror::Error)]
pub(super) enum InputError {
    #[error("there is no question: give one as an argument or pipe it in")]
    Empty,
    #[error("more than {} MiB were piped in", MAX_PIPED_BYTES / 1024 / 1024)]
    TooLarge,
    #[error("what was piped in is not text")]
    Binary,
    #[error("stdin cannot be read: {0}")]
    Unreadable(#[from] io::Error),
}

/// Reads a pipe to its end.
pub(super) fn read(input: impl Read) -> Result<Vec<u8>, InputError> {
    read_at_most(input, MAX_PIPED_BYTES)
}

/// What is piped in is the question, or, beside a question, what it is about.
pub(super) fn combine(words: &[String], piped: Option<Vec<u8>>) -> Result<Question, InputError> {
    let text = words.join(" ").trim().to_owned();
    let piped = piped.unwrap_or_default();
    if piped.contains(&0) {
        return Err(InputError::Binary);
    }
    // Logs and old sources are rarely clean; a wrong character is no reason to refuse them.
    let piped = String::from_utf8(piped).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned());
    match (text.is_empty(), piped.trim().is_empty()) {
        (true, true) => Err(InputError::Empty),
        (true, false) => Ok(Question { text: piped.trim().to_owned(), contexts: Vec::new() }),
        (false, true) => Ok(Question { text, contexts: Vec::new() }),
        (false, false) => {
            let context = Context::Text { label: "stdin".to_owned(), content: piped };
            Ok(Question { text, contexts: vec![context] })
        }
    }
}

fn read_at_most(input: impl Read, max: u64) -> Result<Vec<u8>, InputError> {
    let mut bytes = Vec::new();
    input.take(max + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > max { Err(InputError::TooLarge) } else { Ok(bytes) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_and_pipe_become_one_question() {
        let context = |content: &str| Context::Text { label: "stdin".into(), content: content.into() };
        for (words, piped, text, contexts) in [
            (&["why", "so?"][..], None, "why so?", vec![]),
            (&["why"], Some(&b""[..]), "why", vec![]),
            (&["why"], Some(b" \n"), "why", vec![]),
            (&["why"], Some(b"log\n"), "why", vec![context("log\n")]),
            (&[], Some(b"\nquestion\n"), "question", vec![]),
            (&[" "], Some(b"question"), "question", vec![]),
            (&["why"], Some(b"\xff!"), "why", vec![context("\u{fffd}!")]),
        ] {
            let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
            let question = combine(&words, piped.map(<[u8]>::to_vec)).unwrap();
            assert_eq!(question, Question { text: text.into(), contexts }, "{words:?} {piped:?}");
        }
    }

    #[test]
    fn what_cannot_be_asked() {
        assert!(matches!(combine(&[], None), Err(InputError::Empty)));
        assert!(matches!(combine(&["\t".into()], Some(b"\n".to_vec())), Err(InputError::Empty)));
        assert!(matches!(combine(&["what is this?".into()], Some(b"\x7fELF\0".to_vec())), Err(InputError::Binary)));
        assert!(matches!(read_at_most(&b"12345"[..], 4), Err(InputError::TooLarge)));
        assert_eq!(read_at_most(&b"1234"[..], 4).unwrap(), b"1234");
    }
}
