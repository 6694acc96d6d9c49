//! What a Claude model's name says of it, wherever the model is hosted.
//!
//! The vendor's list of models does not tell how a model wants to be asked to think, and a wrong
//! guess is refused, so the version in the name has to decide.

/// How a model takes thinking.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Thinking {
    /// It knows none.
    Never,
    /// With a budget of tokens. Also taken for names that say nothing.
    Budget,
    /// It decides for itself how much, and refuses a budget.
    Adaptive,
}

/// `(major, minor)` of `claude-opus-4-7`, `claude-3-5-haiku-20241022`,
/// `us.anthropic.claude-sonnet-4-5-20250929-v1:0` or `claude-opus-4.8`.
pub(super) fn version(model: &str) -> Option<(u32, u32)> {
    let name = model.to_ascii_lowercase();
    let (_, rest) = name.rsplit_once("claude-")?;
    // A date or a build number is no version; those have more digits.
    let number = |word: &str| word.parse::<u32>().ok().filter(|_| word.len() <= 2);
    let words: Vec<&str> = rest.split(['-', '.', '_', '@', ':']).collect();
    let at = words.iter().position(|word| number(word).is_some())?;
    let major = number(words[at])?;
    Some((major, words.get(at + 1).and_then(|word| number(word)).unwrap_or(0)))
}

pub(super) fn thinking(model: &str) -> Thinking {
    match version(model) {
        Some(version) if version < (3, 7) => Thinking::Never,
        Some(version) if version >= (4, 7) => Thinking::Adaptive,
        _ => Thinking::Budget,
    }
}

/// The most a model can write, where it is less than what is asked for when nothing is known.
pub(super) fn small_output_limit(model: &str) -> Option<u64> {
    match version(model) {
        Some(version) if version < (3, 5) => Some(4096),
        Some(version) if version < (3, 7) => Some(8192),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_found_in_every_spelling() {
        for (name, expected) in [
            ("claude-opus-4-7", Some((4, 7))),
            ("claude-opus-4.8", Some((4, 8))),
            ("claude-opus-4-20250514", Some((4, 0))),
            ("claude-sonnet-4-5-20250929", Some((4, 5))),
            ("us.anthropic.claude-sonnet-4-5-20250929-v1:0", Some((4, 5))),
            ("anthropic.claude-3-5-haiku-20241022-v1:0", Some((3, 5))),
            ("claude-3-haiku-20240307", Some((3, 0))),
            ("anthropic.claude-v2:1", Some((1, 0))),
            ("claude-fable-5", Some((5, 0))),
            ("claude-sonnet-4@20250514", Some((4, 0))),
            ("glm-4.6", None),
            ("claude-next", None),
            ("", None),
        ] {
            assert_eq!(version(name), expected, "{name}");
        }
    }

    #[test]
    fn thinking_follows_the_version() {
        for (name, expected) in [
            ("claude-3-5-sonnet-20241022", Thinking::Never),
            ("claude-3-7-sonnet-20250219", Thinking::Budget),
            ("claude-sonnet-4-6", Thinking::Budget),
            ("glm-4.6", Thinking::Budget),
            ("claude-opus-4-7", Thinking::Adaptive),
            ("claude-mythos-5", Thinking::Adaptive),
        ] {
            assert_eq!(thinking(name), expected, "{name}");
        }
        assert_eq!(small_output_limit("claude-3-opus-20240229"), Some(4096));
        assert_eq!(small_output_limit("claude-3-5-sonnet-20241022"), Some(8192));
        assert_eq!(small_output_limit("claude-sonnet-4-6"), None);
    }
}
