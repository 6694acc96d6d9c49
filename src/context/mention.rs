//! Files that a message mentions: `@src/main.rs`, `@./notes.md:L3-L9`, `@/etc/hosts`.
//!
//! Only what exists is a mention. An address of e-mail, a decorator or a handle is text.

use std::path::{Path, PathBuf};

use super::index::Kind;
use super::paths::Places;
use crate::base::text::prefix;

const MOST_MENTIONS: usize = 32;
/// So often the disk is asked for one message.
const MOST_LOOKS: usize = 512;
/// A path that is not in quotes may go on after so many spaces.
const MOST_WORDS: usize = 6;
const MAX_PATH: usize = 4_096;

/// Something that is mentioned and there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Mention {
    pub(super) path: PathBuf,
    pub(super) kind: Kind,
    pub(super) lines: Option<(u64, u64)>,
}

/// What `message` mentions, in its order and each once. Asks the disk.
pub(super) fn mentions(message: &str, places: &Places) -> Vec<Mention> {
    let look = |path: &Path| {
        let metadata = std::fs::metadata(path).ok()?;
        if metadata.is_dir() { Some(Kind::Directory) } else { metadata.is_file().then_some(Kind::File) }
    };
    Finder { places, look, looks: 0 }.find(message)
}

struct Finder<'a, L> {
    places: &'a Places,
    look: L,
    looks: usize,
}

impl<L: Fn(&Path) -> Option<Kind>> Finder<'_, L> {
    fn find(&mut self, message: &str) -> Vec<Mention> {
        let mut found: Vec<Mention> = Vec::new();
        let mut next = 0;
        for (at, _) in message.match_indices('@') {
            if at < next || !may_begin(&message[..at]) || found.len() >= MOST_MENTIONS {
                continue;
            }
            let rest = &message[at + 1..];
            if let Some((mention, length)) = self.quoted(rest).or_else(|| self.plain(rest)) {
                next = at + 1 + length;
                if !found.contains(&mention) {
                    found.push(mention);
                }
            }
        }
        found
    }

    /// `@"a path with spaces"`, with lines after it or not.
    fn quoted(&mut self, rest: &str) -> Option<(Mention, usize)> {
        let quote = rest.chars().next().filter(|c| matches!(c, '"' | '\'' | '`'))?;
        let (inside, after) = rest[1..].split_once(quote).filter(|(inside, _)| !inside.contains('\n'))?;
        let word = &after[..after.find(char::is_whitespace).unwrap_or(after.len())];
        let lines = word.strip_prefix(':').and_then(|lines| parse_lines(lines.trim_end_matches(is_punctuation)));
        let mention = self.resolve(inside, lines)?;
        Some((mention, 2 + inside.len()))
    }

    fn plain(&mut self, rest: &str) -> Option<(Mention, usize)> {
        let line = prefix(rest.lines().next().unwrap_or_default(), MAX_PATH);
        let mut ends = line.match_indices(char::is_whitespace).map(|(at, _)| at).chain([line.len()]);
        let first = ends.next()?;
        if let Some(found) = self.written(&line[..first]) {
            return Some(found);
        }
        // Clients insert absolute paths as they are, with the spaces in them.
        let is_path = ["/", "~/", "./", "../"].iter().any(|start| line.starts_with(start));
        ends.take(if is_path { MOST_WORDS } else { 0 }).find_map(|end| self.written(&line[..end]))
    }

    /// The text as it is, or without the signs that end a sentence.
    fn written(&mut self, text: &str) -> Option<(Mention, usize)> {
        let mut text = text;
        loop {
            let split = text.rsplit_once(':').and_then(|(path, lines)| Some((path, parse_lines(lines)?)));
            let with_lines = split.and_then(|(path, lines)| self.resolve(path, Some(lines)));
            if let Some(mention) = with_lines.or_else(|| self.resolve(text, None)) {
                return Some((mention, text.len()));
            }
            text = text.strip_suffix(is_punctuation)?;
        }
    }

    fn resolve(&mut self, written: &str, lines: Option<(u64, u64)>) -> Option<Mention> {
        for path in self.places.meant_by(written) {
            self.looks += 1;
            if self.looks > MOST_LOOKS {
                return None;
            }
            let Some(kind) = (self.look)(&path) else { continue };
            // A plain word is rather a word than a directory, and nobody means all they have.
            let is_everything = path.parent().is_none() || self.places.home.as_ref() == Some(&path);
            if kind == Kind::Directory && (!written.contains('/') || is_everything) {
                continue;
            }
            return Some(Mention { path, kind, lines: lines.filter(|_| kind == Kind::File) });
        }
        None
    }
}

/// Whether a mention may begin after this text: not within a word, an address or a path.
fn may_begin(before: &str) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || "_.-+@/\\%&=~#$".contains(c);
    !before.ends_with(is_part)
}

fn is_punctuation(c: char) -> bool {
    ".,;:!?)]}>'\"`*".contains(c)
}

/// `L3`, `L3-L9` or `L3-9`.
fn parse_lines(text: &str) -> Option<(u64, u64)> {
    let number = |text: &str| text.parse::<u64>().ok().filter(|_| text.bytes().all(|byte| byte.is_ascii_digit()));
    let text = text.strip_prefix('L')?;
    match text.split_once('-') {
        Some((first, last)) => Some((number(first)?, number(last.strip_prefix('L').unwrap_or(last))?)),
        None => number(text).map(|line| (line, line)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(message: &str) -> Vec<String> {
        let places = Places { roots: vec!["/w".into(), "/v".into()], home: Some("/home/me".into()) };
        let look = |path: &Path| match path.to_str()? {
            "/w/src" | "/w" | "/" | "/home/me" | "/w/test" => Some(Kind::Directory),
            "/w/src/main.rs" | "/w/Makefile" | "/v/only.rs" | "/etc/hosts" | "/home/me/n.md" | "/a b/c d.txt"
            | "/w/odd:L3" | "/w/é.txt" | "/x.y" => Some(Kind::File),
            _ => None,
        };
        let show = |mention: Mention| {
            let lines = mention.lines.map(|(first, last)| format!(" {first}-{last}")).unwrap_or_default();
            let slash = if mention.kind == Kind::Directory { "/" } else { "" };
            format!("{}{slash}{lines}", mention.path.display())
        };
        Finder { places: &places, look, looks: 0 }.find(message).into_iter().map(show).collect()
    }

    #[test]
    fn what_exists_is_mentioned() {
        for (message, expected) in [
            ("look at @src/main.rs please", &["/w/src/main.rs"][..]),
            ("@/etc/hosts", &["/etc/hosts"]),
            ("@~/n.md and @./Makefile", &["/home/me/n.md", "/w/Makefile"]),
            ("@../etc/hosts", &["/etc/hosts"]),
            ("@Makefile", &["/w/Makefile"]),
            ("@only.rs", &["/v/only.rs"]),
            ("@é.txt!", &["/w/é.txt"]),
            ("(@src/main.rs), see @Makefile.", &["/w/src/main.rs", "/w/Makefile"]),
            ("`@src/main.rs`", &["/w/src/main.rs"]),
            ("@src/main.rs:L1-L4", &["/w/src/main.rs 1-4"]),
            ("@src/main.rs:L7-9.", &["/w/src/main.rs 7-9"]),
            ("@src/main.rs:L7:", &["/w/src/main.rs 7-7"]),
            ("@src/main.rs:Lx", &[]),
            ("@src/main.rs: it is wrong", &["/w/src/main.rs"]),
            ("@odd:L3", &["/w/odd:L3"]),
            ("@src/ @./src", &["/w/src/"]),
            ("@/a b/c d.txt and more", &["/a b/c d.txt"]),
            ("@\"/a b/c d.txt\":L2-L3, x", &["/a b/c d.txt 2-3"]),
            ("@Makefile @Makefile", &["/w/Makefile"]),
            ("two\n@Makefile\nlines", &["/w/Makefile"]),
        ] {
            let found = find(message);
            assert_eq!(found, expected, "{message}");
        }
    }

    #[test]
    fn what_does_not_exist_is_text() {
        for message in [
            "me@x.y",
            "first.last+tag@x.y",
            "@decorator\ndef f(): pass",
            "@Override",
            "@test and @src",
            "@",
            "@ Makefile",
            "@@Makefile",
            "https://host/@Makefile",
            "@/",
            "@~",
            "@~/",
            "@\"",
            "a@Makefile",
        ] {
            assert_eq!(find(message), Vec::<String>::new(), "{message}");
        }
    }

    #[test]
    fn the_disk_is_not_asked_without_end() {
        let places = Places { roots: vec!["/w".into()], home: None };
        let asked = std::cell::Cell::new(0);
        let look = |_: &Path| {
            asked.set(asked.get() + 1);
            None
        };
        Finder { places: &places, look, looks: 0 }.find(&"@x.... ".repeat(10_000));
        assert_eq!(asked.get(), MOST_LOOKS);
    }

    proptest::proptest! {
        #[test]
        fn no_message_makes_it_panic(message in "[@\"'`:L0-9./ \né~-]{0,40}") {
            find(&message);
        }
    }
}
