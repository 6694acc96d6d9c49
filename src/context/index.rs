//! The files of a workspace, so that a few letters find one of a hundred thousand while they are
//! typed.
//!
//! An index costs nothing until it is asked. The first question starts a walk beside it and waits
//! for it only so long; later ones find everything in memory, and the kernel tells what comes and
//! goes.

mod keeper;
mod search;
mod table;
mod walk;
mod watch;

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::Duration;

use futures_util::future::join_all;
use tokio::sync::{Notify, Semaphore, watch as channel};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use search::{Candidates, Found, Needle, Rank};
pub use table::Kind;
use table::{Id, Table};
pub(in crate::context) use walk::walk_builder;

use crate::base::task;
use crate::config::IndexConfig;

/// So long the first question waits for the walk.
const FIRST_PATIENCE: Duration = patience(250);
/// A search that takes longer answers with what it has.
const PATIENCE: Duration = patience(200);
/// What is not watched is walked again when it is older than this and somebody asks.
const STALE: Duration = Duration::from_secs(5);
/// How often a search begins again because the table was sorted meanwhile.
const MOST_ATTEMPTS: usize = 3;
/// How many searches go on at once; others wait for their turn.
const SEARCHES: usize = 2;
/// Earlier questions of which the answers are kept, and how large such an answer may be.
const KEPT: usize = 4;
const MOST_KEPT: usize = 250_000;
/// A part that is smaller is not worth a thread.
const LEAST_PART: usize = 8_192;

/// On a busy machine, tests would see half an answer.
pub(in crate::context) const fn patience(milliseconds: u64) -> Duration {
    if cfg!(test) { Duration::from_secs(20) } else { Duration::from_millis(milliseconds) }
}

/// The files of some folders. Dropping it ends everything it does.
#[derive(Debug)]
pub struct Index {
    shared: Arc<Shared>,
}

/// What a question found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Hits {
    /// Best first.
    pub hits: Vec<Hit>,
    /// Whether everything was searched: `false` while the first walk goes on.
    pub is_complete: bool,
}

/// A file or directory that was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hit {
    pub path: PathBuf,
    pub kind: Kind,
}

/// How far the index is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Progress {
    /// Counts the changes that a question can see.
    pub generation: u64,
    /// Whether everything has been walked once.
    pub is_complete: bool,
}

#[derive(Debug)]
struct Shared {
    roots: Vec<PathBuf>,
    ignores: bool,
    may_watch: bool,
    table: RwLock<Table>,
    progress: channel::Sender<Progress>,
    /// When the last walk ended, unless it is kept in step since.
    unwatched_since: Mutex<Option<Instant>>,
    again: Notify,
    stop: CancellationToken,
    /// The same for threads, which look at it often.
    is_stopped: AtomicBool,
    is_started: AtomicBool,
    searches: Semaphore,
    answers: Mutex<Vec<Answer>>,
}

/// What an earlier question found, so that a longer one need not look further.
#[derive(Debug)]
struct Answer {
    query: String,
    layout: u64,
    /// Entries from this number on were not there yet.
    searched: usize,
    fitting: Arc<Vec<Id>>,
}

impl Index {
    /// An index of these folders, with links in them resolved but not followed below. Nothing is
    /// read before the first question.
    pub fn new(roots: impl IntoIterator<Item = PathBuf>, config: &IndexConfig) -> Self {
        Self::with(roots.into_iter().collect(), config.ignores, true)
    }

    fn with(mut roots: Vec<PathBuf>, ignores: bool, may_watch: bool) -> Self {
        roots.truncate(usize::from(u16::MAX));
        let shared = Shared {
            roots,
            ignores,
            may_watch,
            table: RwLock::default(),
            progress: channel::Sender::default(),
            unwatched_since: Mutex::new(None),
            again: Notify::new(),
            stop: CancellationToken::new(),
            is_stopped: AtomicBool::new(false),
            is_started: AtomicBool::new(false),
            searches: Semaphore::new(SEARCHES),
            answers: Mutex::default(),
        };
        Self { shared: Arc::new(shared) }
    }

    /// The folders, as they were named.
    pub fn roots(&self) -> &[PathBuf] {
        &self.shared.roots
    }

    /// The files and directories that fit `text` best, at most `limit`. Blank: those nearest to a
    /// root. Always answers soon, if need be with less.
    pub async fn query(&self, text: &str, limit: usize) -> Hits {
        self.walked_within(FIRST_PATIENCE).await;
        self.refresh();
        let Ok(_turn) = self.shared.searches.acquire().await else { return Hits::default() };
        let progress = *self.shared.progress.borrow();
        let needle = Arc::new(Needle::new(text));
        for _ in 0..MOST_ATTEMPTS {
            if let Some((hits, is_whole)) = Arc::clone(&self.shared).search(&needle, limit).await {
                return Hits { hits, is_complete: is_whole && progress.is_complete };
            }
        }
        Hits::default()
    }

    /// Calls `read` with everything that is known, in the order of roots and paths, after waiting
    /// for a walk that goes on, but no longer than `patience`.
    pub async fn read_all<T: Send + 'static>(
        &self,
        patience: Duration,
        read: impl FnOnce(&mut dyn Iterator<Item = (usize, &str, Kind)>) -> T + Send + 'static,
    ) -> Option<T> {
        self.walked_within(patience).await;
        self.refresh();
        let shared = Arc::clone(&self.shared);
        let reading = task::blocking(move || {
            let table = shared.table();
            let ids = table.in_order();
            let views = ids.into_iter().filter_map(|id| table.view(id));
            read(&mut views.map(|view| (usize::from(view.root), view.path, view.kind)))
        });
        reading.await.ok()
    }

    /// How far the index is now.
    pub fn progress(&self) -> Progress {
        *self.shared.progress.borrow()
    }

    /// Waits until the index is not what it was at `before`.
    pub async fn changed_since(&self, before: Progress) -> Progress {
        self.start();
        let mut progress = self.shared.progress.subscribe();
        // The sender lives as long as the index.
        progress.wait_for(|progress| *progress != before).await.map_or(before, |progress| *progress)
    }

    async fn walked_within(&self, patience: Duration) {
        self.start();
        let mut progress = self.shared.progress.subscribe();
        let _ = tokio::time::timeout(patience, progress.wait_for(|progress| progress.is_complete)).await;
    }

    fn start(&self) {
        if !self.shared.is_started.swap(true, Ordering::Relaxed) {
            task::spawn(keeper::keep(Arc::clone(&self.shared)));
        }
    }

    /// Has what became old walked again, beside the answer.
    fn refresh(&self) {
        let mut since = self.shared.unwatched_since.lock().unwrap_or_else(PoisonError::into_inner);
        if since.is_some_and(|since| since.elapsed() >= STALE) {
            *since = None;
            self.shared.again.notify_one();
        }
    }
}

impl Drop for Index {
    fn drop(&mut self) {
        self.shared.is_stopped.store(true, Ordering::Relaxed);
        self.shared.stop.cancel();
    }
}

impl Shared {
    fn table(&self) -> RwLockReadGuard<'_, Table> {
        self.table.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn table_mut(&self) -> RwLockWriteGuard<'_, Table> {
        self.table.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Everything has been walked.
    fn walked(&self, is_watched: bool) {
        let since = (!is_watched).then(Instant::now);
        *self.unwatched_since.lock().unwrap_or_else(PoisonError::into_inner) = since;
        self.progress.send_modify(|progress| {
            progress.generation += 1;
            progress.is_complete = true;
        });
    }

    fn changed(&self) {
        self.progress.send_modify(|progress| progress.generation += 1);
    }

    /// The hits, and whether everything that is known was searched. Nothing when the table was
    /// sorted anew meanwhile, or somebody panicked.
    async fn search(self: Arc<Self>, needle: &Arc<Needle>, limit: usize) -> Option<(Vec<Hit>, bool)> {
        // Nearly always nobody writes, and there is nothing to wait for.
        let plan = self.table.try_read().ok().map(|table| self.candidates(&table, needle));
        let (layout, candidates) = match plan {
            Some(plan) => plan,
            None => {
                let (shared, needle) = (Arc::clone(&self), Arc::clone(needle));
                task::blocking(move || shared.candidates(&shared.table(), &needle)).await.ok()?
            }
        };
        let searched = candidates.to;
        let parts = (candidates.len() / LEAST_PART).clamp(1, walk::threads());
        let stop = StopOnDrop::default();
        let part = |number: usize| {
            let (shared, candidates, needle) = (Arc::clone(&self), candidates.clone(), Arc::clone(needle));
            let stop = Arc::clone(&stop.0);
            task::blocking(move || shared.search_part(layout, &candidates, (number, parts), &needle, limit, &stop))
        };
        let mut work = join_all((0..parts).map(part));
        let results = tokio::select! {
            results = &mut work => results,
            () = tokio::time::sleep(PATIENCE) => {
                stop.0.store(true, Ordering::Relaxed);
                match tokio::time::timeout(PATIENCE, work).await {
                    Ok(results) => results,
                    Err(_) => return Some((Vec::new(), false)),
                }
            }
        };
        let mut hits = Vec::new();
        let mut fitting = Vec::new();
        let mut is_whole = true;
        for result in results {
            let (found, best) = result.ok().flatten()?;
            is_whole &= found.is_whole;
            fitting.extend(found.fitting);
            hits.extend(found.best.into_iter().zip(best));
        }
        if is_whole && !needle.is_blank() && fitting.len() <= MOST_KEPT {
            let answer = Answer { query: needle.text().to_owned(), layout, searched, fitting: Arc::new(fitting) };
            self.keep(answer);
        }
        hits.sort_unstable_by_key(|(rank, _)| *rank);
        let mut known = HashSet::new();
        let once = hits.into_iter().map(|(_, hit)| hit).filter(|hit| known.insert(hit.path.clone()));
        Some((once.take(limit).collect(), is_whole))
    }

    fn search_part(
        &self,
        layout: u64,
        candidates: &Candidates,
        part: (usize, usize),
        needle: &Needle,
        limit: usize,
        stop: &AtomicBool,
    ) -> Option<(Found, Vec<Hit>)> {
        let table = self.table();
        if table.layout() != layout {
            return None;
        }
        // Two roots may hold the same file.
        let limit = limit.saturating_mul(self.roots.len().clamp(1, 2));
        let mut found = search::search(&table, candidates, part, needle, limit, stop);
        let hit = |rank: &Rank| {
            let view = table.view(rank.id)?;
            let mut path = self.roots.get(usize::from(view.root))?.clone();
            // One by one, since the index has slashes on every system.
            path.extend(view.path.split('/'));
            Some(Hit { path, kind: view.kind })
        };
        let hits: Vec<Hit> = found.best.iter().filter_map(hit).collect();
        found.best.truncate(hits.len());
        Some((found, hits))
    }

    /// What has to be searched: everything, or what a shorter query found and what came since.
    fn candidates(&self, table: &Table, needle: &Needle) -> (u64, Candidates) {
        let (layout, to) = (table.layout(), table.len());
        let mut answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        answers.retain(|answer| answer.layout == layout);
        let narrower = answers.iter().filter(|answer| needle.text().starts_with(&answer.query));
        let candidates = match narrower.max_by_key(|answer| answer.query.len()) {
            Some(answer) => Candidates { listed: Arc::clone(&answer.fitting), from: answer.searched, to },
            None => Candidates { to, ..Candidates::default() },
        };
        (layout, candidates)
    }

    fn keep(&self, answer: Answer) {
        let mut answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        answers.retain(|old| old.query != answer.query);
        if answers.len() >= KEPT {
            answers.remove(0);
        }
        answers.push(answer);
    }
}

/// Ends the threads of a search that nobody waits for any more.
#[derive(Debug, Default)]
struct StopOnDrop(Arc<AtomicBool>);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests;
