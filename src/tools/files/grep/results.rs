//! The first results in the order of paths, whatever order they are found in.
//!
//! Threads find files in no particular order. To give the same answer every time and still stop
//! early, the first results by path are kept, and once there are enough, everything that sorts
//! behind the last of them need not be searched any more.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

/// What was found in one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Hit {
    File,
    Count(u64),
    Lines(Vec<(u64, String)>),
}

impl Hit {
    /// How many results it is.
    fn weight(&self) -> usize {
        match self {
            Self::File | Self::Count(_) => 1,
            Self::Lines(lines) => lines.len(),
        }
    }
}

/// Shared by the threads of one search.
#[derive(Debug)]
pub(super) struct Collector {
    most: usize,
    inner: Mutex<Inner>,
    /// Most of the time there is room, and then nobody needs the lock to know.
    full: AtomicBool,
}

#[derive(Debug, Default)]
struct Inner {
    files: BTreeMap<PathBuf, Hit>,
    total: usize,
    more: bool,
}

impl Collector {
    pub(super) fn new(most: usize) -> Self {
        Self { most, inner: Mutex::default(), full: AtomicBool::new(false) }
    }

    /// Whether results in `path`, or below it, would come too late.
    pub(super) fn is_behind(&self, path: &Path) -> bool {
        if !self.full.load(Ordering::Relaxed) {
            return false;
        }
        let inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        inner.files.last_key_value().is_some_and(|(last, _)| path > last)
    }

    pub(super) fn add(&self, path: PathBuf, hit: Hit) {
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        inner.total += hit.weight();
        inner.files.insert(path, hit);
        while let Some(last) = inner.files.last_entry() {
            let weight = last.get().weight();
            if inner.total - weight < self.most {
                break;
            }
            inner.files.pop_last();
            inner.total -= weight;
            inner.more = true;
        }
        if inner.total >= self.most {
            self.full.store(true, Ordering::Relaxed);
        }
    }

    /// The results. `more` counts also what was not searched because there were enough.
    pub(super) fn finish(&self) -> Results {
        let mut inner = std::mem::take(&mut *self.inner.lock().unwrap_or_else(PoisonError::into_inner));
        let mut over = inner.total.saturating_sub(self.most);
        if over > 0
            && let Some(mut last) = inner.files.last_entry()
            && let Hit::Lines(lines) = last.get_mut()
        {
            lines.truncate(lines.len() - over);
            inner.more = true;
            over = 0;
        }
        debug_assert_eq!(over, 0, "a file that does not count is taken out when it is added");
        Results { files: inner.files, more: inner.more }
    }
}

#[derive(Debug)]
pub(super) struct Results {
    files: BTreeMap<PathBuf, Hit>,
    pub(super) more: bool,
}

impl Results {
    /// One result per line.
    pub(super) fn write(&self, out: &mut String, named: impl Fn(&PathBuf) -> String) {
        for (path, hit) in &self.files {
            let path = named(path);
            match hit {
                Hit::File => out.extend([&path, "\n"]),
                Hit::Count(count) => out.push_str(&format!("{path}:{count}\n")),
                Hit::Lines(lines) => {
                    for (number, text) in lines {
                        out.push_str(&format!("{path}:{number}:{text}\n"));
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(count: usize) -> Hit {
        Hit::Lines((1..=count as u64).map(|number| (number, String::new())).collect())
    }

    #[test]
    fn the_first_by_path_stay_in_whatever_order_they_come() {
        for order in [["a", "b", "c"], ["c", "b", "a"], ["b", "a", "c"], ["b", "c", "a"]] {
            let collector = Collector::new(5);
            for path in order {
                assert!(!collector.is_behind(Path::new("a/x")) || order[0] == "a");
                collector.add(path.into(), lines(3));
            }
            assert!(collector.is_behind(Path::new("b/below")) && !collector.is_behind(Path::new("a/z")));
            let results = collector.finish();
            let mut text = String::new();
            results.write(&mut text, |path| path.display().to_string());
            assert_eq!(text, "a:1:\na:2:\na:3:\nb:1:\nb:2:\n", "{order:?}");
            assert!(results.more);
        }
    }

    #[test]
    fn exactly_enough_is_not_too_much() {
        let collector = Collector::new(2);
        collector.add("b".into(), Hit::File);
        assert!(!collector.is_behind(Path::new("z")));
        collector.add("a".into(), Hit::Count(7));
        assert!(collector.is_behind(Path::new("c")));
        assert!(!collector.finish().more);
    }
}
