//! Single values of a front matter: what a plain text means, and texts over several lines.

use serde_json::Value;

/// What a text without quotes is.
pub(super) fn plain(text: &str) -> Value {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Value::Null,
        "true" | "True" | "TRUE" => return Value::Bool(true),
        "false" | "False" | "FALSE" => return Value::Bool(false),
        _ => {}
    }
    // Only what looks like a number in JSON: `1e5` may be a commit and `0123` a code.
    let looks_like_one = text.bytes().all(|byte| byte.is_ascii_digit() || matches!(byte, b'-' | b'.'));
    let number = looks_like_one.then(|| serde_json::from_str::<serde_json::Number>(text).ok()).flatten();
    number.map_or_else(|| Value::String(text.to_owned()), Value::Number)
}

/// A comment begins at a `#` behind white space.
pub(super) fn without_comment(text: &str) -> &str {
    if text.starts_with('#') {
        return "";
    }
    let comment = text.match_indices('#').map(|(at, _)| at).find(|at| text[..*at].ends_with([' ', '\t']));
    comment.map_or(text, |at| &text[..at]).trim()
}

/// How the lines behind `|` or `>` become one text.
#[derive(Debug, Clone, Copy)]
pub(super) struct Style {
    folded: bool,
    end: End,
}

#[derive(Debug, Clone, Copy)]
enum End {
    OneBreak,
    NoBreak,
    AllBreaks,
}

impl Style {
    /// `None` when `header` is a text that happens to begin like one.
    pub(super) fn read(header: &str) -> Option<Self> {
        let mut chars = without_comment(header).chars();
        let folded = match chars.next()? {
            '>' => true,
            '|' => false,
            _ => return None,
        };
        let mut end = End::OneBreak;
        for c in chars {
            match c {
                '-' => end = End::NoBreak,
                '+' => end = End::AllBreaks,
                '1'..='9' => {}
                _ => return None,
            }
        }
        Some(Self { folded, end })
    }

    pub(super) fn join(self, lines: &[&str]) -> String {
        let spaces = |line: &str| line.len() - line.trim_start_matches(' ').len();
        let indent = lines.iter().filter(|line| !line.trim().is_empty()).map(|line| spaces(line)).min().unwrap_or(0);
        let kept: Vec<&str> = lines.iter().map(|line| line.get(indent..).unwrap_or_default().trim_end()).collect();
        let filled = kept.iter().rposition(|line| !line.is_empty()).map_or(0, |last| last + 1);
        let mut text = String::new();
        for (index, line) in kept[..filled].iter().enumerate() {
            if index > 0 {
                let joins = self.folded && !line.is_empty() && !kept[index - 1].is_empty();
                // Of the breaks around an empty line, folding takes one away.
                let swallowed = self.folded && !line.is_empty() && kept[index - 1].is_empty();
                match (joins, swallowed) {
                    (true, _) => text.push(' '),
                    (_, true) => {}
                    _ => text.push('\n'),
                }
            }
            text.push_str(line);
        }
        match self.end {
            End::NoBreak => {}
            End::OneBreak if text.is_empty() => {}
            End::OneBreak => text.push('\n'),
            End::AllBreaks => text.extend(std::iter::repeat_n('\n', kept.len() - filled + 1)),
        }
        text
    }
}
