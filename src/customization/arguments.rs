//! What follows a command's name, and where it goes in the command's text.

use super::template::{self, Variables};

/// Where a text wants its arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Placeholders {
    None,
    /// `$ARGS`, `$ARGUMENTS`, `$1`, `$ARG1`.
    Positional {
        /// The largest number.
        count: usize,
        /// Whether all of them are wanted somewhere.
        all: bool,
    },
    /// `{{ name }}`, in the order of their first appearance.
    Named(Vec<String>),
    /// Both, of which nobody could say what is meant.
    Mixed,
}

/// Larger numbers are prices and years.
const MAX_POSITION: usize = 99;

impl Placeholders {
    pub(super) fn of(text: &str) -> Self {
        let names = template::placeholders(text);
        let (mut count, mut all, mut any) = (0, false, false);
        for piece in Pieces(text) {
            any |= !matches!(piece, Piece::Text(_));
            match piece {
                Piece::Text(_) => {}
                Piece::All => all = true,
                Piece::Position(position) => count = count.max(position),
            }
        }
        match (names.is_empty(), any) {
            (true, false) => Self::None,
            (true, true) => Self::Positional { count, all },
            (false, false) => Self::Named(names),
            (false, true) => Self::Mixed,
        }
    }

    /// `text` with its arguments in place. What is inserted is not looked at again. Arguments for
    /// which there is no place follow the text, so that nothing a user wrote is lost.
    pub(super) fn fill(&self, text: &str, written: &str) -> String {
        let written = written.trim();
        match self {
            Self::None | Self::Mixed if written.is_empty() => text.to_owned(),
            Self::None | Self::Mixed => format!("{text}\n\n{written}"),
            Self::Positional { .. } => {
                let arguments = split(written);
                let piece = |piece: Piece<'_>| match piece {
                    Piece::Text(plain) => plain.to_owned(),
                    Piece::All => written.to_owned(),
                    Piece::Position(position) => arguments.get(position - 1).cloned().unwrap_or_default(),
                };
                Pieces(text).map(piece).collect()
            }
            Self::Named(names) => {
                let values = spread(split(written), names.len());
                let mut variables = Variables::default();
                for (index, name) in names.iter().enumerate() {
                    variables = variables.with_text(name, values.get(index).map_or("", String::as_str));
                }
                template::render_or_keep(text, &variables)
            }
        }
    }
}

/// As many arguments as there are names: the last one takes what is left.
fn spread(mut arguments: Vec<String>, names: usize) -> Vec<String> {
    if names > 0 && arguments.len() > names {
        let rest = arguments.split_off(names - 1).join(" ");
        arguments.push(rest);
    }
    arguments
}

/// How many arguments there are.
pub(super) fn count(written: &str) -> usize {
    split(written).len()
}

/// Words, as a shell sees them: quotes group, a backslash takes a quote, a space or a backslash
/// as it is. An apostrophe inside of a word, or a quote that nothing closes, is itself.
pub(super) fn split(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let after = &rest[c.len_utf8()..];
        if c.is_whitespace() {
            words.extend(word.take());
            rest = after;
            continue;
        }
        let opens = c == '"' || c == '\'' && word.is_none();
        let group = if opens { quoted(after, c) } else { None };
        let current = word.get_or_insert_default();
        rest = match (group, c, after.chars().next()) {
            (Some((inside, after)), ..) => {
                current.push_str(&inside);
                after
            }
            (None, '\\', Some(escaped)) if is_escaped(escaped) => {
                current.push(escaped);
                &after[escaped.len_utf8()..]
            }
            _ => {
                current.push(c);
                after
            }
        };
    }
    words.extend(word);
    words
}

fn is_escaped(c: char) -> bool {
    matches!(c, '"' | '\'' | '\\') || c.is_whitespace()
}

/// What stands before the closing quote, and what follows it.
fn quoted(text: &str, quote: char) -> Option<(String, &str)> {
    let mut inside = String::new();
    let mut chars = text.char_indices();
    while let Some((at, c)) = chars.next() {
        if c == quote {
            return Some((inside, &text[at + c.len_utf8()..]));
        }
        let escaped = text[at + c.len_utf8()..].chars().next().filter(|next| matches!(next, '"' | '\\'));
        match escaped.filter(|_| c == '\\' && quote == '"') {
            Some(next) => {
                inside.push(next);
                chars.next();
            }
            None => inside.push(c),
        }
    }
    None
}

#[derive(Debug, PartialEq, Eq)]
enum Piece<'a> {
    Text(&'a str),
    All,
    /// From 1 on.
    Position(usize),
}

struct Pieces<'a>(&'a str);

impl<'a> Iterator for Pieces<'a> {
    type Item = Piece<'a>;

    fn next(&mut self) -> Option<Piece<'a>> {
        if self.0.is_empty() {
            return None;
        }
        if let Some((piece, rest)) = placeholder(self.0) {
            self.0 = rest;
            return Some(piece);
        }
        let from = usize::from(self.0.starts_with('$'));
        let length = self.0[from..].find('$').map_or(self.0.len(), |at| at + from);
        let (text, rest) = self.0.split_at(length);
        self.0 = rest;
        Some(Piece::Text(text))
    }
}

/// The placeholder that `text` begins with, and what follows it.
fn placeholder(text: &str) -> Option<(Piece<'_>, &str)> {
    let name = text.strip_prefix('$')?;
    let end = name.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(name.len());
    let (word, rest) = name.split_at(end);
    if matches!(word, "ARGS" | "ARGUMENTS") {
        return Some((Piece::All, rest));
    }
    let digits = word.strip_prefix("ARG").unwrap_or(word);
    let position: usize = digits.parse().ok().filter(|_| digits.bytes().all(|byte| byte.is_ascii_digit()))?;
    (1..=MAX_POSITION).contains(&position).then_some((Piece::Position(position), rest))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn words_like_a_shell_s() {
        for (text, expected) in [
            ("", vec![]),
            ("  a  b\tc\n", vec!["a", "b", "c"]),
            (r#""a b" c"#, vec!["a b", "c"]),
            (r#"'a b' c"#, vec!["a b", "c"]),
            (r#"x="a b"y"#, vec!["x=a by"]),
            (r#""say \"hi\" \\ \n""#, vec![r#"say "hi" \ \n"#]),
            (r"a\ b \'c C:\dir\f", vec!["a b", "'c", r"C:\dir\f"]),
            ("don't do that", vec!["don't", "do", "that"]),
            ("'tis open", vec!["'tis", "open"]),
            (r#"a "open end"#, vec!["a", "\"open", "end"]),
            (r#""" x"#, vec!["", "x"]),
            ("größe 日本", vec!["größe", "日本"]),
            ("end\\", vec!["end\\"]),
        ] {
            assert_eq!(split(text), expected, "{text}");
        }
    }

    #[test]
    fn arguments_go_where_they_are_wanted() {
        for (text, written, expected) in [
            ("Look at $1 and $2.", "a \"b c\"", "Look at a and b c."),
            ("$ARG1/$ARG2", "a", "a/"),
            ("All: $ARGS", " a \"b\" ", "All: a \"b\""),
            ("$ARGUMENTS", "$1 $ARGS", "$1 $ARGS"),
            ("$10 $1x $0 $ $100 $ARGSX $ARG", "a", " $1x $0 $ $100 $ARGSX $ARG"),
            ("plain", "", "plain"),
            ("plain", "more words", "plain\n\nmore words"),
            ("{{ city }} in {{units}}", "Paris metric", "Paris in metric"),
            ("{{ city }}{% if units %} in {{ units }}{% endif %}", "Paris", "Paris"),
            ("Fix {{ issue }}", "the login bug", "Fix the login bug"),
            ("{{ a }}-{{ b }}", "\"{{ b }}\" x y", "{{ b }}-x y"),
        ] {
            assert_eq!(Placeholders::of(text).fill(text, written), expected, "{text}");
        }
    }

    #[test]
    fn kinds_of_placeholders() {
        assert_eq!(Placeholders::of("costs $100, see {x}"), Placeholders::None);
        assert_eq!(Placeholders::of("$2 $ARG3"), Placeholders::Positional { count: 3, all: false });
        assert_eq!(Placeholders::of("$ARGS"), Placeholders::Positional { count: 0, all: true });
        assert_eq!(Placeholders::of("{{a}}{{b}}{{a}}"), Placeholders::Named(vec!["a".into(), "b".into()]));
        assert_eq!(Placeholders::of("{{a}} $1"), Placeholders::Mixed);
    }

    proptest! {
        #[test]
        fn quoted_words_come_back(words in prop::collection::vec("[^\"\\\\]{0,8}", 0..5)) {
            let written: Vec<String> = words.iter().map(|word| format!("\"{word}\"")).collect();
            prop_assert_eq!(split(&written.join(" ")), words);
        }

        #[test]
        fn nothing_breaks_it(text in "(\\$|ARG|ARGS|[0-9]|'|\"|\\\\| |\\{\\{|\\}\\}|\\PC){0,40}", written in "\\PC{0,20}") {
            let _ = Placeholders::of(&text).fill(&text, &written);
            let _ = split(&text);
        }
    }
}
