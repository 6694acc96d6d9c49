//! Searches files on several threads, each with its own matcher and buffer.

use std::fs::File;
use std::io::{self, Read};
use std::num::NonZero;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use grep_matcher::Matcher;
use grep_regex::RegexMatcher;
use grep_searcher::{BinaryDetection, MmapChoice, Searcher, SearcherBuilder, Sink, SinkFinish, SinkMatch};
use ignore::overrides::Override;
use ignore::{DirEntry, WalkState};
use tokio_util::sync::CancellationToken;

use super::Mode;
use super::results::{Collector, Hit, Results};
use crate::tools::files::walk::walker;
use crate::tools::files::{STOPPED, disk};

const PATIENCE: Duration = Duration::from_secs(120);
/// A line that is longer than this is not text.
const MAX_LINE_BYTES: usize = 32 * 1024 * 1024;
/// What is shown of a line.
const SHOWN_BYTES: usize = 400;
/// As much of that comes before the match.
const SHOWN_BEFORE: usize = 100;

#[derive(Debug)]
pub(super) struct Search {
    pub(super) matcher: RegexMatcher,
    pub(super) mode: Mode,
    pub(super) most: usize,
    /// Which files are searched; all without it.
    pub(super) include: Option<Override>,
    pub(super) stop: CancellationToken,
}

#[derive(Debug)]
pub(super) struct Found {
    pub(super) results: Results,
    pub(super) out_of_time: bool,
    pub(super) unreadable: usize,
    /// A binary file was passed over.
    pub(super) binary: bool,
}

/// What the threads of a search share.
struct Shared<'a> {
    search: &'a Search,
    collector: Collector,
    deadline: Instant,
    out_of_time: AtomicBool,
    unreadable: AtomicUsize,
    binary: AtomicBool,
    skipped: AtomicBool,
}

impl Search {
    pub(super) fn folder(&self, root: &Path) -> Result<Found, String> {
        let shared = Shared::of(self);
        let threads = std::thread::available_parallelism().map_or(2, NonZero::get).clamp(2, 12);
        walker(root).threads(threads).build_parallel().run(|| {
            let mut worker = Worker::of(&shared);
            Box::new(move |entry| worker.visit(entry))
        });
        shared.found()
    }

    pub(super) fn file(&self, path: &Path) -> Result<Found, String> {
        // Says what it is when it is no regular file.
        disk::open(path)?;
        let shared = Shared::of(self);
        Worker::of(&shared).search(path);
        shared.found()
    }
}

impl<'a> Shared<'a> {
    fn of(search: &'a Search) -> Self {
        Self {
            search,
            collector: Collector::new(search.most),
            deadline: Instant::now() + PATIENCE,
            out_of_time: AtomicBool::new(false),
            unreadable: AtomicUsize::new(0),
            binary: AtomicBool::new(false),
            skipped: AtomicBool::new(false),
        }
    }

    fn found(self) -> Result<Found, String> {
        if self.search.stop.is_cancelled() {
            return Err(STOPPED.to_owned());
        }
        let mut results = self.collector.finish();
        results.more |= self.skipped.into_inner();
        Ok(Found {
            results,
            out_of_time: self.out_of_time.into_inner(),
            unreadable: self.unreadable.into_inner(),
            binary: self.binary.into_inner(),
        })
    }

    fn must_end(&self) -> bool {
        if Instant::now() > self.deadline {
            self.out_of_time.store(true, Ordering::Relaxed);
        }
        self.search.stop.is_cancelled() || self.out_of_time.load(Ordering::Relaxed)
    }
}

/// One thread of a search.
struct Worker<'a> {
    shared: &'a Shared<'a>,
    // A matcher of its own: those that are shared wait for each other.
    matcher: RegexMatcher,
    searcher: Searcher,
}

impl<'a> Worker<'a> {
    fn of(shared: &'a Shared<'a>) -> Self {
        let searcher = SearcherBuilder::new()
            .line_number(shared.search.mode == Mode::Content)
            .binary_detection(BinaryDetection::quit(0))
            .memory_map(MmapChoice::never())
            .heap_limit(Some(MAX_LINE_BYTES))
            .build();
        Self { shared, matcher: shared.search.matcher.clone(), searcher }
    }

    fn visit(&mut self, entry: Result<DirEntry, ignore::Error>) -> WalkState {
        if self.shared.must_end() {
            return WalkState::Quit;
        }
        // Folders come and go while they are walked, and not all may be read.
        let Ok(entry) = entry else {
            self.shared.unreadable.fetch_add(1, Ordering::Relaxed);
            return WalkState::Continue;
        };
        let path = entry.path();
        let is_folder = entry.file_type().is_some_and(|kind| kind.is_dir());
        if entry.depth() > 0 && self.shared.collector.is_behind(path) {
            self.shared.skipped.store(true, Ordering::Relaxed);
            return if is_folder { WalkState::Skip } else { WalkState::Continue };
        }
        let is_file = entry.file_type().is_some_and(|kind| kind.is_file());
        let include = self.shared.search.include.as_ref();
        if is_file && include.is_none_or(|include| !include.matched(path, false).is_ignore()) {
            self.search(path);
        }
        WalkState::Continue
    }

    fn search(&mut self, path: &Path) {
        let Ok(file) = disk::open_without_waiting(path) else {
            self.shared.unreadable.fetch_add(1, Ordering::Relaxed);
            return;
        };
        let source = Source { file, shared: self.shared };
        let mut sink = Hits { worker: &self.matcher, shared: self.shared, count: 0, lines: Vec::new(), binary: false };
        let searched = self.searcher.search_reader(&self.matcher, source, &mut sink);
        if let Err(error) = searched {
            // It was deleted or became something else, or has no lines.
            tracing::debug!(%error, "a file was not searched");
            self.shared.unreadable.fetch_add(1, Ordering::Relaxed);
            return;
        }
        if sink.binary {
            self.shared.binary.store(true, Ordering::Relaxed);
        } else if sink.count > 0 {
            let hit = match self.shared.search.mode {
                Mode::Files => Hit::File,
                Mode::Count => Hit::Count(sink.count),
                Mode::Content => Hit::Lines(sink.lines),
            };
            self.shared.collector.add(path.to_owned(), hit);
        }
    }
}

/// A file that ends early when the search does.
struct Source<'a> {
    file: File,
    shared: &'a Shared<'a>,
}

impl Read for Source<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.shared.must_end() {
            return Ok(0);
        }
        self.file.read(buffer)
    }
}

/// What is found in one file.
struct Hits<'a> {
    worker: &'a RegexMatcher,
    shared: &'a Shared<'a>,
    count: u64,
    lines: Vec<(u64, String)>,
    binary: bool,
}

impl Sink for Hits<'_> {
    type Error = io::Error;

    fn matched(&mut self, _: &Searcher, found: &SinkMatch<'_>) -> io::Result<bool> {
        self.count += 1;
        match self.shared.search.mode {
            Mode::Files => Ok(false),
            Mode::Count => Ok(true),
            Mode::Content => {
                let text = shown(found.bytes(), self.worker);
                self.lines.push((found.line_number().unwrap_or_default(), text));
                // One more than can be shown tells that there are more.
                Ok(self.lines.len() <= self.shared.search.most)
            }
        }
    }

    fn binary_data(&mut self, _: &Searcher, _: u64) -> io::Result<bool> {
        self.binary = true;
        Ok(false)
    }

    fn finish(&mut self, _: &Searcher, end: &SinkFinish) -> io::Result<()> {
        self.binary |= end.binary_byte_offset().is_some();
        Ok(())
    }
}

/// A line as it is shown; of a long one, the part around the match.
fn shown(line: &[u8], matcher: &RegexMatcher) -> String {
    let line = line.trim_ascii_end();
    if line.len() <= SHOWN_BYTES {
        return String::from_utf8_lossy(line).into_owned();
    }
    let at = matcher.find(line).ok().flatten().map_or(0, |found| found.start());
    let is_border = |at: usize| line.get(at).is_none_or(|byte| byte & 0xC0 != 0x80);
    let mut start = at.saturating_sub(SHOWN_BEFORE);
    while !is_border(start) {
        start += 1;
    }
    let mut end = line.len().min(start + SHOWN_BYTES);
    while !is_border(end) {
        end += 1;
    }
    let (before, after) = (if start > 0 { "…" } else { "" }, if end < line.len() { "…" } else { "" });
    format!("{before}{}{after}", String::from_utf8_lossy(&line[start..end]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_long_line_the_match_is_shown() {
        let matcher = RegexMatcher::new("needle").unwrap();
        let line = format!("{}needle{}\r\n", "é".repeat(1000), "x".repeat(1000));
        let text = shown(line.as_bytes(), &matcher);
        assert!(text.starts_with("…é") && text.ends_with("x…") && text.contains("éneedlex"), "{text}");
        assert!(text.len() < SHOWN_BYTES + 10 && !text.contains('\u{FFFD}'));
        assert_eq!(shown(b"  short \r\n", &matcher), "  short");
        let invalid = shown(&[&[0xA9; 500][..], b"needle"].concat(), &matcher);
        assert!(invalid.contains("needle"), "{invalid}");
    }
}
