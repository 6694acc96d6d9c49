//! An overview of a workspace: its directories and files as an indented list, short enough to be
//! sent with a message.

use std::collections::{BTreeMap, VecDeque};
use std::path::Path;
use std::time::Duration;

use super::index::{Index, Kind};
use crate::config::RepoMapConfig;

/// So long it waits for the first walk of a workspace; after that it shows what is known.
const PATIENCE: Duration = Duration::from_secs(3);

/// The list, or nothing when there are no folders.
pub async fn repo_map(index: &Index, config: RepoMapConfig) -> Option<String> {
    let roots = index.roots().to_vec();
    index
        .read_all(PATIENCE, move |entries| {
            let mut trees: Vec<Directory> = roots.iter().map(|_| Directory::default()).collect();
            for (root, path, kind) in entries {
                if let Some(tree) = trees.get_mut(root) {
                    tree.add(path, kind);
                }
            }
            show(roots.iter().map(|root| root.as_path()).zip(&trees), config)
        })
        .await
        .filter(|map| !map.is_empty())
}

/// Names in order; a file is `None`.
#[derive(Default)]
struct Directory(BTreeMap<Box<str>, Option<Directory>>);

impl Directory {
    fn add(&mut self, path: &str, kind: Kind) {
        let mut directory = self;
        let (above, name) = path.rsplit_once('/').unwrap_or(("", path));
        for part in above.split('/').filter(|part| !part.is_empty()) {
            let entry = directory.0.entry(part.into()).or_default();
            directory = entry.get_or_insert_with(Directory::default);
        }
        let entry = directory.0.entry(name.into()).or_default();
        if kind == Kind::Directory {
            entry.get_or_insert_with(Directory::default);
        }
    }
}

/// One directory that is shown, with as many of its entries as there is room for.
struct Shown<'a> {
    directory: &'a Directory,
    count: usize,
    /// Where its directories are in the list of all that are shown.
    inner: BTreeMap<&'a str, usize>,
}

/// Room is given level by level: what lies near the roots says most.
fn show<'a>(roots: impl Iterator<Item = (&'a Path, &'a Directory)>, config: RepoMapConfig) -> String {
    let most = |number: u32| usize::try_from(number).unwrap_or(usize::MAX);
    let (mut room, per_directory) = (most(config.max_total_entries), most(config.max_entries_per_dir));
    let mut shown: Vec<Shown<'a>> = Vec::new();
    let mut waiting: VecDeque<usize> = VecDeque::new();
    let mut names = Vec::new();
    for (root, directory) in roots {
        names.push(root.display().to_string());
        waiting.push_back(shown.len());
        shown.push(Shown { directory, count: 0, inner: BTreeMap::new() });
    }
    while let Some(index) = waiting.pop_front() {
        let count = shown[index].directory.0.len().min(per_directory).min(room);
        room -= count;
        shown[index].count = count;
        let directory = shown[index].directory;
        for (name, inner) in directory.0.iter().take(count) {
            if let Some(inner) = inner {
                let place = shown.len();
                shown[index].inner.insert(name, place);
                waiting.push_back(place);
                shown.push(Shown { directory: inner, count: 0, inner: BTreeMap::new() });
            }
        }
    }
    let mut out = String::new();
    for (index, name) in names.iter().enumerate() {
        out.push_str(&format!("{name}\n"));
        write(&shown, index, &mut out);
    }
    out.truncate(out.trim_end().len());
    out
}

fn write(shown: &[Shown<'_>], root: usize, out: &mut String) {
    // A stack instead of calls: a workspace may be nested as deep as paths allow.
    let mut open = vec![(root, 1, shown[root].directory.0.iter().take(shown[root].count))];
    while let Some((index, depth, entries)) = open.last_mut() {
        let (index, depth) = (*index, *depth);
        let indent = " ".repeat(depth);
        match entries.next() {
            Some((name, inner)) => {
                out.push_str(&format!("{indent}{name}{}\n", if inner.is_some() { "/" } else { "" }));
                if let Some(inner) = shown[index].inner.get(name.as_ref()) {
                    open.push((*inner, depth + 1, shown[*inner].directory.0.iter().take(shown[*inner].count)));
                }
            }
            None => {
                let hidden = shown[index].directory.0.len() - shown[index].count;
                if hidden > 0 {
                    out.push_str(&format!("{indent}… {hidden} more\n"));
                }
                open.pop();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::IndexConfig;

    fn map(paths: &[&str], total: u32, per_dir: u32) -> String {
        let mut tree = Directory::default();
        for path in paths {
            let kind = if path.ends_with('/') { Kind::Directory } else { Kind::File };
            tree.add(path.trim_end_matches('/'), kind);
        }
        let config = RepoMapConfig { max_total_entries: total, max_entries_per_dir: per_dir };
        show([(Path::new("/w"), &tree)].into_iter(), config)
    }

    #[test]
    fn it_is_a_tree() {
        let paths = ["src/", "src/chat/", "src/chat/prompt.rs", "src/main.rs", "README.md", "empty/", "a/b/c"];
        let expected = "/w\n README.md\n a/\n  b/\n   c\n empty/\n src/\n  chat/\n   prompt.rs\n  main.rs";
        assert_eq!(map(&paths, 100, 100), expected);
        assert_eq!(map(&[], 10, 10), "/w");
    }

    #[test]
    fn what_there_is_no_room_for_is_counted() {
        let paths = ["a/1", "a/2", "a/3", "b/1", "c"];
        assert_eq!(map(&paths, 100, 2), "/w\n a/\n  1\n  2\n  … 1 more\n b/\n  1\n … 1 more");
        assert_eq!(map(&paths, 4, 50), "/w\n a/\n  1\n  … 2 more\n b/\n  … 1 more\n c", "level by level");
    }

    #[test]
    fn depth_is_no_danger() {
        let deep = vec!["d"; 2_000].join("/");
        assert_eq!(map(&[&deep], 10_000, 10).lines().count(), 2_001);
    }

    #[tokio::test]
    async fn it_comes_from_the_index() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("src")).unwrap();
        std::fs::write(folder.path().join("src/a.rs"), "").unwrap();
        std::fs::write(folder.path().join(".gitignore"), "*.log\n").unwrap();
        std::fs::write(folder.path().join("x.log"), "").unwrap();
        let index = Index::new([folder.path().to_owned()], &IndexConfig::default());
        let expected = format!("{}\n .gitignore\n src/\n  a.rs", folder.path().display());
        assert_eq!(repo_map(&index, RepoMapConfig::default()).await, Some(expected));
        let nothing = Index::new([], &IndexConfig::default());
        assert_eq!(repo_map(&nothing, RepoMapConfig::default()).await, None);
    }
}
