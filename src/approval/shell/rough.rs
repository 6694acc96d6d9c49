//! Pieces of a text that could not be parsed: good enough to find what is forbidden in it, never to
//! allow anything.

const MOST_PIECES: usize = 256;

const KEYWORDS: [&str; 10] = ["if", "then", "elif", "else", "while", "until", "do", "!", "time", "{"];

/// What may be commands, and what may be files that output goes to, as `> file`.
pub(super) fn pieces(text: &str) -> Vec<String> {
    let is_end = |c: char| matches!(c, ';' | '|' | '&' | '\n' | '(' | ')' | '{' | '}' | '`');
    let commands = text.split(is_end).map(plain).filter(|piece| !piece.is_empty());
    let targets = text.match_indices('>').filter_map(|(at, _)| {
        let after = text[at + 1..].trim_start_matches(['>', '|', ' ', '\t']);
        let target = plain(after.split(|c: char| c.is_whitespace() || is_end(c)).next().unwrap_or_default());
        let keeps_nothing = target.is_empty() || super::plain::is_no_file(&target);
        (!keeps_nothing).then(|| format!("> {target}"))
    });
    // `{rm,-rf,x}` comes to three words.
    let lists = text.split(is_end).filter(|piece| piece.contains(',')).map(|piece| plain(&piece.replace(',', " ")));
    commands.chain(lists).chain(targets).take(MOST_PIECES).collect()
}

/// Without quotes, escapes and what may stand before a command.
fn plain(piece: &str) -> String {
    let bare: String = piece.chars().filter(|c| !matches!(c, '\'' | '"' | '\\')).collect();
    let mut words = bare.split_whitespace().peekable();
    while words.next_if(|word| KEYWORDS.contains(word) || super::environment::assigned_name(word).is_some()).is_some() {
    }
    words.collect::<Vec<_>>().join(" ")
}
