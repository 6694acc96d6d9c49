//! All paths of a workspace in one block of text: a hundred thousand of them take a few megabytes,
//! and a search reads them in the order in which they lie.
//!
//! Most entries are in order, so that one is found, or all below a directory are, without a second
//! structure. What came later follows unsorted until there is enough of it to sort again.

use std::cmp::Ordering;
use std::ops::Range;
use std::sync::atomic::{self, AtomicU64};

/// The number of an entry; valid as long as the table keeps its layout.
pub(super) type Id = u32;

/// Beyond this a workspace is known in parts only.
const MAX_ENTRIES: usize = 1_000_000;
const MAX_TEXT: usize = 96 * 1024 * 1024;
/// So many unsorted entries are searched through one by one.
const MAX_UNSORTED: usize = 4_096;

/// What a path leads to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    File,
    Directory,
}

#[derive(Debug)]
pub(super) struct Table {
    text: String,
    entries: Vec<Entry>,
    /// Which characters each path has; apart from the entries, because most of a search reads
    /// nothing else.
    masks: Vec<u64>,
    /// So many entries are in order.
    sorted: usize,
    dead: usize,
    layout: u64,
}

#[derive(Debug, Clone, Copy)]
struct Entry {
    at: u32,
    len: u16,
    /// Where the last part of the path begins.
    name: u16,
    root: u16,
    flags: u8,
}

const IS_DIRECTORY: u8 = 1;
const IS_ASCII: u8 = 2;
const IS_DEAD: u8 = 4;

/// One living entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct View<'a> {
    pub(super) root: u16,
    /// Relative to the root, with `/` between the parts.
    pub(super) path: &'a str,
    pub(super) name: &'a str,
    pub(super) kind: Kind,
    pub(super) is_ascii: bool,
}

impl Default for Table {
    fn default() -> Self {
        static LAYOUTS: AtomicU64 = AtomicU64::new(0);
        Self {
            text: String::new(),
            entries: Vec::new(),
            masks: Vec::new(),
            sorted: 0,
            dead: 0,
            layout: LAYOUTS.fetch_add(1, atomic::Ordering::Relaxed),
        }
    }
}

impl Table {
    /// Changes when entries get other numbers.
    pub(super) fn layout(&self) -> u64 {
        self.layout
    }

    /// One more than the largest number.
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Adds an entry at the end; `false` when there is no room for it.
    pub(super) fn push(&mut self, root: u16, path: &str, kind: Kind) -> bool {
        let (Ok(at), Ok(len)) = (u32::try_from(self.text.len()), u16::try_from(path.len())) else { return false };
        if self.entries.len() >= MAX_ENTRIES || self.text.len() + path.len() > MAX_TEXT {
            return false;
        }
        let name = path.rfind('/').map_or(0, |slash| slash + 1);
        let mut flags = if kind == Kind::Directory { IS_DIRECTORY } else { 0 };
        if path.is_ascii() {
            flags |= IS_ASCII;
        }
        self.text.push_str(path);
        self.entries.push(Entry { at, len, name: u16::try_from(name).unwrap_or_default(), root, flags });
        self.masks.push(mask(path));
        true
    }

    /// Adds all entries of `other`; `false` when there was no room for all.
    pub(super) fn append(&mut self, other: &Self) -> bool {
        let mut views = (0..other.entries.len()).filter_map(|id| other.view_at(id));
        views.all(|view| self.push(view.root, view.path, view.kind))
    }

    /// `None` for an entry that was removed.
    pub(super) fn view(&self, id: Id) -> Option<View<'_>> {
        self.view_at(id as usize)
    }

    fn view_at(&self, index: usize) -> Option<View<'_>> {
        let entry = self.entries.get(index).filter(|entry| entry.flags & IS_DEAD == 0)?;
        let path = self.path(entry);
        Some(View {
            root: entry.root,
            path,
            name: &path[usize::from(entry.name)..],
            kind: if entry.flags & IS_DIRECTORY != 0 { Kind::Directory } else { Kind::File },
            is_ascii: entry.flags & IS_ASCII != 0,
        })
    }

    /// Which characters the path has, as [`mask`] says.
    pub(super) fn mask(&self, id: Id) -> u64 {
        self.masks.get(id as usize).copied().unwrap_or_default()
    }

    /// What this path is known as.
    pub(super) fn kind(&self, root: u16, path: &str) -> Option<Kind> {
        let sorted = self.entries[..self.sorted].binary_search_by(|entry| self.compare(entry, root, path));
        let in_order = sorted.ok().into_iter();
        let later =
            (self.sorted..self.entries.len()).filter(|index| self.compare(&self.entries[*index], root, path).is_eq());
        in_order.chain(later).find_map(|index| self.view_at(index)).map(|view| view.kind)
    }

    /// Takes out `path` and everything below it. Returns how much that was.
    pub(super) fn remove(&mut self, root: u16, path: &str) -> usize {
        let below = if path.is_empty() { String::new() } else { format!("{path}/") };
        let first = self.entries[..self.sorted].partition_point(|entry| self.compare(entry, root, path).is_lt());
        let first_below =
            self.entries[..self.sorted].partition_point(|entry| self.compare(entry, root, &below).is_lt());
        let is_below = |entry: &Entry| entry.root == root && self.path(entry).starts_with(&below);
        let all_below = self.entries[first_below..self.sorted].partition_point(is_below);
        let itself = |index: &usize| self.compare(&self.entries[*index], root, path).is_eq();
        let found: Vec<usize> = (first..(first + 1).min(self.sorted))
            .filter(itself)
            .chain(first_below..first_below + all_below)
            .chain((self.sorted..self.len()).filter(|index| itself(index) || is_below(&self.entries[*index])))
            .collect();
        let mut removed = 0;
        for index in found {
            let flags = &mut self.entries[index].flags;
            removed += usize::from(*flags & IS_DEAD == 0);
            *flags |= IS_DEAD;
        }
        self.dead += removed;
        removed
    }

    /// Whether sorting again pays.
    pub(super) fn is_untidy(&self) -> bool {
        self.entries.len() - self.sorted > MAX_UNSORTED || self.dead > MAX_UNSORTED.max(self.entries.len() / 4)
    }

    /// The living entries in the order of their roots and paths.
    pub(super) fn in_order(&self) -> Vec<Id> {
        let living = |range: Range<usize>| {
            let alive = range.filter(|index| self.entries[*index].flags & IS_DEAD == 0);
            alive.filter_map(|index| Id::try_from(index).ok()).collect::<Vec<Id>>()
        };
        let mut later = living(self.sorted..self.entries.len());
        let key = |id: &Id| {
            let entry = &self.entries[*id as usize];
            (entry.root, self.path(entry))
        };
        later.sort_unstable_by(|a, b| key(a).cmp(&key(b)));
        let sorted = living(0..self.sorted);
        if later.is_empty() {
            return sorted;
        }
        let mut merged = Vec::with_capacity(sorted.len() + later.len());
        let mut later = later.into_iter().peekable();
        for id in sorted {
            while let Some(next) = later.next_if(|next| key(next) < key(&id)) {
                merged.push(next);
            }
            merged.push(id);
        }
        merged.extend(later);
        merged
    }

    /// The same entries in order, each once, in no more room than they need.
    pub(super) fn tidied(&self) -> Self {
        let ids = self.in_order();
        let text = ids.iter().map(|id| usize::from(self.entries[*id as usize].len)).sum();
        let mut tidy = Self {
            text: String::with_capacity(text),
            entries: Vec::with_capacity(ids.len()),
            masks: Vec::with_capacity(ids.len()),
            ..Self::default()
        };
        let mut last = None;
        for view in ids.into_iter().filter_map(|id| self.view(id)) {
            if last != Some((view.root, view.path)) {
                tidy.push(view.root, view.path, view.kind);
            }
            last = Some((view.root, view.path));
        }
        tidy.sorted = tidy.entries.len();
        tidy
    }

    fn compare(&self, entry: &Entry, root: u16, path: &str) -> Ordering {
        (entry.root, self.path(entry)).cmp(&(root, path))
    }

    fn path(&self, entry: &Entry) -> &str {
        let at = entry.at as usize;
        &self.text[at..at + usize::from(entry.len)]
    }

    #[cfg(test)]
    pub(super) fn bytes(&self) -> usize {
        self.text.capacity() + self.entries.capacity() * size_of::<Entry>() + self.masks.capacity() * size_of::<u64>()
    }
}

/// A bit for each character, whatever its case. A text can only be found in a path that has all its
/// bits; what is not ASCII may be found under plainer letters too, so it has all of them.
pub(super) fn mask(text: &str) -> u64 {
    let bit = |byte: u8| match byte.to_ascii_lowercase() {
        letter @ b'a'..=b'z' => letter - b'a',
        digit @ b'0'..=b'9' => 26 + digit - b'0',
        b'/' => 36,
        b'.' => 37,
        b'_' => 38,
        b'-' => 39,
        other => 40 + other % 24,
    };
    if text.is_ascii() { text.bytes().fold(0, |mask, byte| mask | 1 << bit(byte)) } else { u64::MAX }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(paths: &[&str]) -> Table {
        let mut table = Table::default();
        for path in paths {
            let (root, path) = path.split_once(':').unwrap_or(("0", path));
            let kind = if path.ends_with('/') { Kind::Directory } else { Kind::File };
            assert!(table.push(root.parse().unwrap(), path.trim_end_matches('/'), kind));
        }
        table
    }

    fn paths(table: &Table) -> Vec<String> {
        let views = table.in_order().into_iter().filter_map(|id| table.view(id));
        views.map(|view| format!("{}:{}", view.root, view.path)).collect()
    }

    #[test]
    fn entries_are_found_sorted_or_not_and_removed_with_what_is_below() {
        let mut table = table(&["b.rs", "a/", "a/x", "a-b", "1:a/x", "a/deep/", "a/deep/é"]).tidied();
        assert!(table.push(0, "a/late", Kind::File) && table.push(0, "a.txt", Kind::File));
        assert_eq!(table.kind(0, "a"), Some(Kind::Directory));
        assert_eq!(table.kind(0, "a/late"), Some(Kind::File));
        assert_eq!(table.kind(1, "a"), None);
        assert_eq!(
            paths(&table),
            ["0:a", "0:a-b", "0:a.txt", "0:a/deep", "0:a/deep/é", "0:a/late", "0:a/x", "0:b.rs", "1:a/x"]
        );
        assert_eq!(table.remove(0, "a"), 5);
        assert_eq!(table.remove(0, "a"), 0);
        assert_eq!(paths(&table), ["0:a-b", "0:a.txt", "0:b.rs", "1:a/x"]);
        assert_eq!(table.kind(0, "a/x"), None);
        assert!(table.push(0, "a/x", Kind::Directory));
        assert_eq!(table.kind(0, "a/x"), Some(Kind::Directory), "the removed one does not hide it");
        let tidied = table.tidied();
        assert_eq!(paths(&tidied), paths(&table));
        assert_ne!(tidied.layout(), table.layout());
        assert_eq!(table.remove(0, ""), 4, "a whole root");
        assert_eq!(paths(&table), ["1:a/x"]);
    }

    #[test]
    fn a_path_that_came_twice_is_kept_once() {
        let table = table(&["a", "b", "a", "1:a"]).tidied();
        assert_eq!(paths(&table), ["0:a", "0:b", "1:a"]);
    }

    #[test]
    fn a_hundred_thousand_paths_take_a_few_megabytes() {
        let mut table = Table::default();
        for number in 0..100_000 {
            let path = format!("src/components/module_{}/feature_{}/file_number_{number}.rs", number % 97, number % 31);
            assert!(table.push(0, &path, Kind::File));
        }
        let tidied = table.tidied();
        assert_eq!(tidied.len(), 100_000);
        assert!(tidied.bytes() < 10 * 1024 * 1024, "{} bytes", tidied.bytes());
        assert!(table.bytes() + tidied.bytes() < 25 * 1024 * 1024, "also while it is built anew");
    }

    #[test]
    fn masks_know_letters_in_any_case() {
        assert_eq!(mask("aB.rs") & mask("RS.ba"), mask("abrs."));
        assert_eq!(mask("chat/prompt.rs") & mask("chtprm"), mask("chtprm"));
        assert_ne!(mask("chat") & mask("z"), mask("z"));
        assert_eq!(mask("é"), u64::MAX);
    }

    proptest::proptest! {
        #[test]
        fn a_table_is_a_set_of_paths(
            steps in proptest::collection::vec(("[ab]{1,2}(/[ab]{1,2}){0,2}", 0u16..2, 0u8..4), 0..60)
        ) {
            let mut table = Table::default();
            let mut model = std::collections::BTreeSet::new();
            for (path, root, action) in steps {
                match action {
                    0 => {
                        let below = format!("{path}/");
                        model.retain(|(r, p): &(u16, String)| *r != root || *p != path && !p.starts_with(&below));
                        table.remove(root, &path);
                    }
                    1 => table = table.tidied(),
                    _ => {
                        if table.kind(root, &path).is_none() {
                            table.push(root, &path, Kind::File);
                        }
                        model.insert((root, path.clone()));
                    }
                }
                proptest::prop_assert_eq!(table.kind(root, &path).is_some(), model.contains(&(root, path)));
            }
            let expected: Vec<String> = model.into_iter().map(|(root, path)| format!("{root}:{path}")).collect();
            proptest::prop_assert_eq!(paths(&table), expected);
        }
    }
}
