//! How well letters fit into a path, nearly: one way to place them is scored, not all.
//!
//! The numbers are those of the matcher that scores the best ones well, so that what it would put
//! far ahead is not lost here.

const MATCH: i32 = 16;
const GAP_START: i32 = 3;
const GAP_EXTENSION: i32 = 1;
const CONSECUTIVE: i32 = 4;
const AFTER_SLASH: i32 = 9;
const AFTER_SIGN: i32 = 8;
const AT_CAPITAL: i32 = 5;
/// The first letter of a word says most about where it was meant to begin.
const FIRST: i32 = 2;

/// `None` when the letters, which are lower case, do not come in `path` in this order. They are
/// looked for behind `name` first, where the name of the file begins.
pub(super) fn score(path: &[u8], name: usize, letters: &[u8]) -> Option<u32> {
    let end = match end_of(path, name, letters) {
        Some(end) => end,
        None => end_of(path, 0, letters)?,
    };
    Some(placed(path, end, letters))
}

/// Behind the last letter, with each at the first place where it can be.
fn end_of(path: &[u8], from: usize, letters: &[u8]) -> Option<usize> {
    let mut wanted = letters.iter();
    let mut letter = *wanted.next()?;
    for (at, byte) in path.iter().enumerate().skip(from) {
        if byte.to_ascii_lowercase() == letter {
            match wanted.next() {
                Some(next) => letter = *next,
                None => return Some(at + 1),
            }
        }
    }
    None
}

/// The score with each letter as near to `end` as it can be, which pulls them together. Letters in a
/// row share what the first of them is worth.
fn placed(path: &[u8], end: usize, letters: &[u8]) -> u32 {
    let mut score = 0;
    let mut at = end;
    let mut in_a_row = 0;
    for (number, letter) in letters.iter().enumerate().rev() {
        let behind = at;
        while at > 0 && path[at - 1].to_ascii_lowercase() != *letter {
            at -= 1;
        }
        let gap = i32::try_from((behind - at).min(100)).unwrap_or_default();
        if gap > 0 {
            score += row(bonus(path, behind), in_a_row) - GAP_START - GAP_EXTENSION * (gap - 1);
            in_a_row = 0;
        }
        at = at.saturating_sub(1);
        in_a_row += 1;
        score += MATCH;
        if number == 0 {
            let bonus = bonus(path, at);
            score += row(bonus, in_a_row) + bonus * (FIRST - 1);
        }
    }
    u32::try_from(score.max(0)).unwrap_or_default()
}

fn row(bonus: i32, letters: i32) -> i32 {
    bonus + bonus.max(CONSECUTIVE) * (letters - 1)
}

/// What a letter is worth for standing where something begins.
fn bonus(path: &[u8], place: usize) -> i32 {
    let Some(before) = place.checked_sub(1).and_then(|before| path.get(before)) else { return AFTER_SLASH };
    match (before, path.get(place)) {
        (b'/', _) => AFTER_SLASH,
        (before, _) if !before.is_ascii_alphanumeric() => AFTER_SIGN,
        (before, Some(letter)) if before.is_ascii_lowercase() && letter.is_ascii_uppercase() => AT_CAPITAL,
        (before, Some(letter)) if !before.is_ascii_digit() && letter.is_ascii_digit() => AT_CAPITAL,
        _ => 0,
    }
}

/// More for a file whose name is what was typed, or begins with it.
pub(super) fn name_bonus(name: &str, wanted: &str) -> u32 {
    let (name, wanted) = (name.as_bytes(), wanted.as_bytes());
    if !name.get(..wanted.len()).is_some_and(|start| start.eq_ignore_ascii_case(wanted)) {
        return 0;
    }
    let stem = name.iter().rposition(|byte| *byte == b'.').filter(|dot| *dot > 0).unwrap_or(name.len());
    match wanted.len() {
        len if len == name.len() => 48,
        len if len == stem => 40,
        _ => 24,
    }
}

#[cfg(test)]
mod tests {
    use nucleo_matcher::{Config, Matcher, Utf32Str};

    use super::*;

    fn of(path: &str, letters: &str) -> Option<u32> {
        score(path.as_bytes(), path.rfind('/').map_or(0, |slash| slash + 1), letters.as_bytes())
    }

    #[test]
    fn letters_that_stand_together_where_something_begins_are_worth_more() {
        for (better, worse, letters) in [
            ("src/chat.rs", "src/c_h_a_t.rs", "chat"),
            ("a/chat/x.rs", "a/clash/at.rs", "chat"),
            ("src/chat/prompt.rs", "src/cohort/amputate.rs", "chtprm"),
            ("src/fooBar.rs", "src/foobar.rs", "fb"),
            ("a/page7.rs", "a/page17.rs", "p7"),
        ] {
            assert!(
                of(better, letters) > of(worse, letters),
                "{better} {:?} {worse} {:?}",
                of(better, letters),
                of(worse, letters)
            );
        }
        assert_eq!(of("src/chat.rs", "chatx"), None);
        assert_eq!(of("", "a"), None);
    }

    #[test]
    fn names_that_are_typed_in_full_come_first() {
        let bonus = |name| name_bonus(name, "main");
        assert!(bonus("MAIN") > bonus("main.rs") && bonus("main.rs") > bonus("mainly.rs") && bonus("mainly.rs") > 0);
        assert_eq!((bonus("domain.rs"), bonus("mai"), name_bonus(".main", ".main")), (0, 0, 48));
    }

    proptest::proptest! {
        #[test]
        fn what_fits_is_what_the_matcher_says(path in "[a-cA-C0-1/._]{1,14}", letters in "[a-c0-1/._]{1,5}") {
            let mut matcher = Matcher::new(Config::DEFAULT.match_paths());
            let by_matcher =
                matcher.fuzzy_match(Utf32Str::Ascii(path.as_bytes()), Utf32Str::Ascii(letters.as_bytes()));
            proptest::prop_assert_eq!(of(&path, &letters).is_some(), by_matcher.is_some());
        }
    }
}
