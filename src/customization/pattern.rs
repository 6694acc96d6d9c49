//! Regular expressions that users write, bounded in what they may cost.

use fancy_regex::{Regex, RegexBuilder};

/// Steps that a search may take before it is given up.
const MAX_STEPS: usize = 200_000;
const MAX_PROGRAM_BYTES: usize = 1024 * 1024;
const MAX_PATTERN_BYTES: usize = 8 * 1024;

/// A compiled expression.
#[derive(Debug, Clone)]
pub(super) struct Pattern(Regex);

/// What a search came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Found {
    Yes,
    No,
    /// It would have taken too long to tell.
    Unknown,
}

impl Pattern {
    /// Matches the whole of a text.
    pub(super) fn whole(pattern: &str) -> Result<Self, String> {
        Self::compile(&format!("^(?:{pattern})$"), pattern)
    }

    /// Matches anywhere in a text.
    pub(super) fn anywhere(pattern: &str) -> Result<Self, String> {
        Self::compile(pattern, pattern)
    }

    fn compile(expression: &str, written: &str) -> Result<Self, String> {
        if written.len() > MAX_PATTERN_BYTES {
            return Err("the pattern is too long".to_owned());
        }
        // What a user writes must stand by itself, or it could close the group around it.
        let valid = Regex::new(written).and_then(|_| {
            RegexBuilder::new(expression)
                .backtrack_limit(MAX_STEPS)
                .delegate_size_limit(MAX_PROGRAM_BYTES)
                .delegate_dfa_size_limit(MAX_PROGRAM_BYTES)
                .build()
        });
        valid.map(Self).map_err(|_| "the pattern is no regular expression".to_owned())
    }

    pub(super) fn search(&self, text: &str) -> Found {
        match self.0.is_match(text) {
            Ok(true) => Found::Yes,
            Ok(false) => Found::No,
            Err(_) => Found::Unknown,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_and_anywhere() {
        let whole = |pattern: &str, text: &str| Pattern::whole(pattern).unwrap().search(text);
        assert_eq!(whole("eca__(read|write)_file", "eca__read_file"), Found::Yes);
        assert_eq!(whole("a|b", "ab"), Found::No);
        assert_eq!(whole("(?!x).*", "y"), Found::Yes);
        assert_eq!(whole("(?!x).*", "xy"), Found::No);
        assert_eq!(Pattern::anywhere("gpt-5").unwrap().search("openai/gpt-5.2"), Found::Yes);
        for bad in ["(", "a)(?:b", "*", &"x".repeat(10_000)] {
            assert!(Pattern::whole(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_search_that_takes_too_long_is_given_up() {
        let slow = Pattern::whole(r"(?:(a+)\1?)+c").unwrap();
        assert_eq!(slow.search(&"a".repeat(5_000)), Found::Unknown);
    }
}
