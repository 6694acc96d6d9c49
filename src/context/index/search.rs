//! Which paths a few typed letters mean, best first.
//!
//! Scoring a path well costs more than there is time for when nearly all of them fit, so a cheap
//! score of our own chooses those that are worth it. It speaks the matcher's numbers, so that both
//! can stand in one list.

mod quick;

use std::cmp::Reverse;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use nucleo_matcher::chars::{graphemes, normalize, to_lower_case};
use nucleo_matcher::{Config, Matcher, Utf32Str, Utf32String};

use super::table::{Id, Table, View, mask};
use crate::base::text::prefix;

/// A longer query is cut: no path is found by so many letters that is not found by fewer.
const MAX_QUERY: usize = 256;
/// So many are scored well, all parts together.
const MOST_SCORED_WELL: usize = 2_048;
/// How often a search looks whether it is still wanted.
const LOOK_UP_EVERY: usize = 512;

/// What is looked for: words that must all be found, each as letters in this order.
#[derive(Debug)]
pub(super) struct Needle {
    words: Vec<Word>,
    mask: u64,
    /// The only word, if it may be the name of a file.
    name: Option<String>,
    text: String,
}

#[derive(Debug)]
struct Word {
    letters: Utf32String,
    /// Whether `e` also stands for `é`; not the other way round.
    is_plain: bool,
    /// The same letters, if they are such as most paths have.
    ascii: Option<Box<[u8]>>,
}

impl Needle {
    pub(super) fn new(query: &str) -> Self {
        let words: Vec<&str> = prefix(query, MAX_QUERY).split_whitespace().collect();
        let text = words.join(" ");
        let name = match words[..] {
            [word] if word.is_ascii() && !word.contains('/') => Some(word.to_ascii_lowercase()),
            _ => None,
        };
        let ascii: String = text.chars().filter(|c| c.is_ascii() && *c != ' ').collect();
        Self { mask: mask(&ascii), name, words: words.into_iter().map(Word::new).collect(), text }
    }

    /// The words, so that a query can be known again.
    pub(super) fn text(&self) -> &str {
        &self.text
    }

    pub(super) fn is_blank(&self) -> bool {
        self.words.is_empty()
    }
}

impl Word {
    fn new(word: &str) -> Self {
        let letters: Vec<char> = graphemes(word).map(to_lower_case).collect();
        let is_plain = letters.iter().all(|letter| normalize(*letter) == *letter);
        if letters.iter().all(char::is_ascii) {
            let letters: String = letters.into_iter().collect();
            let ascii = Some(letters.as_bytes().into());
            Self { letters: Utf32String::Ascii(letters.into()), is_plain, ascii }
        } else {
            Self { letters: Utf32String::Unicode(letters.into()), is_plain, ascii: None }
        }
    }
}

/// The entries that may fit: those of an earlier, shorter query, and all from a number on.
#[derive(Debug, Clone, Default)]
pub(super) struct Candidates {
    pub(super) listed: Arc<Vec<Id>>,
    pub(super) from: usize,
    pub(super) to: usize,
}

impl Candidates {
    pub(super) fn len(&self) -> usize {
        self.listed.len() + self.to.saturating_sub(self.from)
    }

    fn get(&self, index: usize) -> Option<Id> {
        match self.listed.get(index) {
            Some(id) => Some(*id),
            None => Id::try_from(self.from + index - self.listed.len()).ok(),
        }
    }
}

/// A hit, ordered from better to worse.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Rank {
    score: Reverse<u32>,
    length: u32,
    pub(super) id: Id,
}

/// What one part of a search found.
#[derive(Debug, Default)]
pub(super) struct Found {
    /// The best of this part, best first.
    pub(super) best: Vec<Rank>,
    /// All that fit, for the query that comes when another letter is typed.
    pub(super) fitting: Vec<Id>,
    /// Whether it was not stopped.
    pub(super) is_whole: bool,
}

/// Searches through part number `part` of `parts`.
pub(super) fn search(
    table: &Table,
    candidates: &Candidates,
    (part, parts): (usize, usize),
    needle: &Needle,
    limit: usize,
    stop: &AtomicBool,
) -> Found {
    let (from, to) = (candidates.len() * part / parts, candidates.len() * (part + 1) / parts);
    let mut scorer = Scorer::new(needle);
    let mut ranks = Vec::new();
    let mut found = Found { is_whole: true, ..Found::default() };
    for index in from..to {
        if index % LOOK_UP_EVERY == 0 && stop.load(Ordering::Relaxed) {
            found.is_whole = false;
            break;
        }
        let Some(id) = candidates.get(index) else { break };
        if table.mask(id) & needle.mask != needle.mask {
            continue;
        }
        let Some(view) = table.view(id) else { continue };
        if let Some(score) = scorer.quick(&view) {
            let length = if needle.is_blank() { 0 } else { view.path.len() };
            let length = u32::try_from(length).unwrap_or(u32::MAX);
            ranks.push(Rank { score: Reverse(score), length, id });
        }
    }
    if !needle.is_blank() {
        found.fitting = ranks.iter().map(|rank| rank.id).collect();
        keep_best(&mut ranks, (MOST_SCORED_WELL / parts).max(limit));
        for rank in &mut ranks {
            let score = table.view(rank.id).and_then(|view| scorer.good(&view));
            rank.score = Reverse(score.unwrap_or(rank.score.0));
        }
    }
    keep_best(&mut ranks, limit);
    ranks.sort_unstable();
    found.best = ranks;
    found
}

fn keep_best(ranks: &mut Vec<Rank>, limit: usize) {
    if limit < ranks.len() {
        ranks.select_nth_unstable(limit);
        ranks.truncate(limit);
    }
}

struct Scorer<'a> {
    needle: &'a Needle,
    matcher: Matcher,
    letters: Vec<char>,
}

impl<'a> Scorer<'a> {
    fn new(needle: &'a Needle) -> Self {
        Self { needle, matcher: Matcher::new(Config::DEFAULT.match_paths()), letters: Vec::new() }
    }

    fn quick(&mut self, view: &View<'_>) -> Option<u32> {
        if self.needle.is_blank() {
            // What lies near the root is what people look for first.
            let depth = view.path.bytes().filter(|byte| *byte == b'/').count();
            return Some(u32::MAX - u32::try_from(depth).unwrap_or(u32::MAX));
        }
        if !view.is_ascii {
            return self.score(view, Matcher::fuzzy_match_greedy);
        }
        let name = view.path.len() - view.name.len();
        let mut total = 0;
        for word in &self.needle.words {
            // No path of plain letters has any other.
            total += quick::score(view.path.as_bytes(), name, word.ascii.as_deref()?)?;
        }
        Some(total + self.needle.name.as_ref().map_or(0, |name| quick::name_bonus(view.name, name)))
    }

    fn good(&mut self, view: &View<'_>) -> Option<u32> {
        self.score(view, Matcher::fuzzy_match)
    }

    fn score(
        &mut self,
        view: &View<'_>,
        by: impl Fn(&mut Matcher, Utf32Str<'_>, Utf32Str<'_>) -> Option<u16>,
    ) -> Option<u32> {
        let path = if view.is_ascii {
            Utf32Str::Ascii(view.path.as_bytes())
        } else {
            Utf32Str::new(view.path, &mut self.letters)
        };
        let mut total = 0;
        for word in &self.needle.words {
            self.matcher.config.normalize = word.is_plain;
            total += u32::from(by(&mut self.matcher, path, word.letters.slice(..))?);
        }
        Some(total + self.needle.name.as_ref().map_or(0, |name| name_bonus(view.name, name)))
    }
}

/// Who types a name means a file of this name more than a directory on the way to others.
fn name_bonus(name: &str, wanted: &str) -> u32 {
    const CONTAINS: u32 = 12;
    let whole = quick::name_bonus(name, wanted);
    let contains = || {
        let mut parts = name.as_bytes().windows(wanted.len().max(1));
        parts.any(|part| part.eq_ignore_ascii_case(wanted.as_bytes()))
    };
    if whole == 0 && contains() { CONTAINS } else { whole }
}

#[cfg(test)]
mod tests {
    use super::super::table::Kind;
    use super::*;

    fn found(paths: &[&str], query: &str) -> Vec<String> {
        let mut table = Table::default();
        for path in paths {
            table.push(0, path, Kind::File);
        }
        let needle = Needle::new(query);
        let candidates = Candidates { to: table.len(), ..Candidates::default() };
        let mut best = Vec::new();
        for part in 0..3 {
            let found = search(&table, &candidates, (part, 3), &needle, 10, &AtomicBool::new(false));
            assert!(found.is_whole);
            best.extend(found.best);
        }
        best.sort_unstable();
        best.iter().map(|rank| table.view(rank.id).unwrap().path.to_owned()).collect()
    }

    #[test]
    fn letters_in_order_find_a_path_and_the_best_comes_first() {
        let paths = [
            "docs/chapter/prime.txt",
            "src/chat/prompt.rs",
            "src/engine/chat.rs",
            "src/engine/prompt.rs",
            "src/prompts/readme.md",
            "tests/Données/été.txt",
        ];
        for (query, first, count) in [
            ("chtprm", "src/chat/prompt.rs", 2),
            ("prompt", "src/chat/prompt.rs", 3),
            ("PROMPT", "src/chat/prompt.rs", 3),
            ("chat prompt", "src/chat/prompt.rs", 1),
            ("chat/prompt", "src/chat/prompt.rs", 1),
            ("chat", "src/engine/chat.rs", 3),
            ("ete", "tests/Données/été.txt", 1),
            ("ÉTÉ", "tests/Données/été.txt", 1),
        ] {
            let found = found(&paths, query);
            assert_eq!(found.first().map(String::as_str), Some(first), "{query}: {found:?}");
            assert_eq!(found.len(), count, "{query}: {found:?}");
        }
        assert_eq!(found(&paths, "zzz"), Vec::<String>::new());
        assert_eq!(found(&paths, "été données q"), Vec::<String>::new());
    }

    #[test]
    fn a_name_beats_a_directory_of_that_name_on_the_way() {
        let paths = ["index/a/b/other.rs", "src/deep/down/index.rs", "src/index_of_things.rs"];
        assert_eq!(found(&paths, "index"), ["src/deep/down/index.rs", "src/index_of_things.rs", "index/a/b/other.rs"]);
    }

    #[test]
    fn nothing_typed_lists_what_is_near_the_root() {
        let paths = ["b/c/d", "z", "b", "b/c", "a"];
        assert_eq!(found(&paths, "  "), ["z", "b", "a", "b/c", "b/c/d"]);
    }

    #[test]
    fn more_fitting_paths_than_are_scored_well_still_give_the_best() {
        let mut table = Table::default();
        for number in 0..3 * MOST_SCORED_WELL {
            table.push(0, &format!("prefix/some/other_{number}.txt"), Kind::File);
        }
        table.push(0, "some.txt", Kind::File);
        let candidates = Candidates { to: table.len(), ..Candidates::default() };
        let found = search(&table, &candidates, (0, 1), &Needle::new("some"), 3, &AtomicBool::new(false));
        assert_eq!(table.view(found.best[0].id).unwrap().path, "some.txt");
        assert_eq!((found.best.len(), found.fitting.len()), (3, table.len()));
    }

    #[test]
    fn a_stopped_search_says_so() {
        let mut table = Table::default();
        table.push(0, "a", Kind::File);
        let candidates = Candidates { to: 1, ..Candidates::default() };
        assert!(!search(&table, &candidates, (0, 1), &Needle::new("a"), 3, &AtomicBool::new(true)).is_whole);
    }

    proptest::proptest! {
        #[test]
        fn a_longer_query_finds_a_part_of_what_a_shorter_one_finds(
            paths in proptest::collection::vec("[a-cA-Céß/. ]{1,12}", 1..20),
            query in "[a-cé /]{1,6}",
            more in "[a-cé /]{0,3}",
        ) {
            let paths: Vec<&str> = paths.iter().map(String::as_str).collect();
            let (long, short) = (found(&paths, &format!("{query}{more}")), found(&paths, &query));
            if short.len() < 10 && !Needle::new(&query).is_blank() {
                proptest::prop_assert!(long.iter().all(|path| short.contains(path)), "{:?} {:?}", long, short);
            }
        }
    }
}
