//! Builds the index and keeps it in step with the disk, beside everything else.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use ignore::IncrementalIgnore;
use tokio::time::Instant;

use super::Shared;
use super::table::{Kind, Table};
use super::walk::{Root, is_at_or_below, kind_of};
use super::watch::{Change, Watcher};

use crate::base::task;

/// What happens in so short a time is taken up at once.
const GATHER: Duration = Duration::from_millis(25);
/// So long is waited between two walks that nobody asked for.
const PAUSE: Duration = Duration::from_millis(500);
/// With more changes than these, walking again is cheaper.
const MOST_PATHS: usize = 4_096;
const MOST_DIRECTORIES: usize = 256;

enum Next {
    Stop,
    Walk,
}

/// Runs until the index is dropped.
pub(super) async fn keep(shared: Arc<Shared>) {
    loop {
        let (roots, watcher) = walk(&shared).await;
        let walked = Instant::now();
        match follow(&shared, roots, watcher).await {
            Next::Stop => return,
            Next::Walk => {}
        }
        tokio::select! {
            () = shared.stop.cancelled() => return,
            () = tokio::time::sleep_until(walked + PAUSE) => {}
        }
    }
}

/// Walks all roots and puts the result in place.
async fn walk(shared: &Arc<Shared>) -> (Arc<Vec<Root>>, Option<Arc<Watcher>>) {
    let watcher = match Watcher::new() {
        Ok(watcher) if shared.may_watch => Some(Arc::new(watcher)),
        Ok(_) => None,
        Err(error) => {
            tracing::debug!(%error, "directories cannot be watched");
            None
        }
    };
    let (working, watching) = (Arc::clone(shared), watcher.clone());
    let walked = task::blocking(move || walk_all(&working, watching.as_ref())).await;
    let roots = Arc::new(walked.unwrap_or_default());
    let watcher = watcher.filter(|watcher| !watcher.has_failed());
    // A folder that is not there cannot be watched either.
    let is_watched = watcher.is_some() && roots.len() == shared.roots.len();
    shared.walked(is_watched);
    (roots, watcher)
}

fn walk_all(shared: &Shared, watcher: Option<&Arc<Watcher>>) -> Vec<Root> {
    let numbered = shared.roots.iter().zip(0_u16..);
    let roots: Vec<Root> = numbered
        .filter_map(|(shown, number)| {
            let real = dunce::canonicalize(shown).ok().filter(|real| real.is_dir())?;
            Some(Root { number, real, ignores: shared.ignores })
        })
        .collect();
    // The first walk is searched while it goes on; a later one must not hide what is known.
    let is_first = !shared.progress.borrow().is_complete;
    let aside = Mutex::new(Table::default());
    for root in &roots {
        root.walk(&[], watcher, &shared.is_stopped, &|portion| {
            let has_room = if is_first {
                shared.table_mut().append(portion)
            } else {
                aside.lock().unwrap_or_else(PoisonError::into_inner).append(portion)
            };
            if !has_room {
                tracing::warn!("the workspace has more files than can be searched");
            }
            has_room
        });
    }
    let tidy = if is_first {
        shared.table().tidied()
    } else {
        aside.into_inner().unwrap_or_else(PoisonError::into_inner).tidied()
    };
    *shared.table_mut() = tidy;
    roots
}

/// Takes up changes until walking again is the better way.
async fn follow(shared: &Arc<Shared>, roots: Arc<Vec<Root>>, mut watcher: Option<Arc<Watcher>>) -> Next {
    loop {
        let noticed = async {
            match &watcher {
                Some(watcher) => watcher.noticed().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = shared.stop.cancelled() => return Next::Stop,
            () = shared.again.notified() => return Next::Walk,
            () = noticed => {}
        }
        tokio::select! {
            () = shared.stop.cancelled() => return Next::Stop,
            () = tokio::time::sleep(GATHER) => {}
        }
        let Some(watching) = watcher.clone() else { continue };
        let (working, roots) = (Arc::clone(shared), Arc::clone(&roots));
        let updated = task::blocking(move || update(&working, &roots, &watching)).await;
        match updated {
            Ok(Updated::InStep) => {}
            Ok(Updated::Behind) => return Next::Walk,
            // Somebody who panicked left the table as it was.
            Err(_) => return Next::Walk,
        }
        if watcher.as_ref().is_some_and(|watcher| watcher.has_failed()) {
            watcher = None;
            shared.walked(false);
        }
    }
}

enum Updated {
    InStep,
    Behind,
}

/// What the disk says about the paths that something happened to.
#[derive(Default)]
struct News {
    gone: Vec<(u16, String)>,
    /// Files, and links whatever they lead to.
    there: Vec<(u16, String, Kind)>,
    directories: Vec<(u16, String)>,
}

/// What really is on the disk counts, not what was said to have happened: events may be old.
fn update(shared: &Shared, roots: &[Root], watcher: &Arc<Watcher>) -> Updated {
    let changes: BTreeSet<Change> = watcher.drain().into_iter().collect();
    let mut paths = Vec::new();
    for change in changes {
        match change {
            Change::At { root, path } => paths.push((root, path)),
            Change::Rules | Change::Lost => return Updated::Behind,
        }
    }
    if paths.len() > MOST_PATHS {
        return Updated::Behind;
    }
    let news = look(roots, paths);
    if news.directories.len() > MOST_DIRECTORIES {
        return Updated::Behind;
    }
    let is_directory = |root: u16, path: &str| shared.table().kind(root, path) == Some(Kind::Directory);
    for (root, path) in news.gone.iter().chain(&news.directories).filter(|(root, path)| is_directory(*root, path)) {
        watcher.forget(*root, path);
    }
    let walked = Mutex::new(Table::default());
    for root in roots {
        let only: Vec<String> = news
            .directories
            .iter()
            .filter(|(number, _)| *number == root.number)
            .map(|(_, path)| path.clone())
            .collect();
        if !only.is_empty() {
            root.walk(&only, Some(watcher), &shared.is_stopped, &|portion| {
                walked.lock().unwrap_or_else(PoisonError::into_inner).append(portion)
            });
        }
    }
    let walked = walked.into_inner().unwrap_or_else(PoisonError::into_inner);
    if apply(&mut shared.table_mut(), &news, &walked) {
        let tidy = {
            let table = shared.table();
            table.is_untidy().then(|| table.tidied())
        };
        if let Some(tidy) = tidy {
            *shared.table_mut() = tidy;
        }
        shared.changed();
    }
    Updated::InStep
}

fn look(roots: &[Root], paths: Vec<(u16, String)>) -> News {
    let mut news = News::default();
    let mut rules: HashMap<u16, Option<IncrementalIgnore>> = HashMap::new();
    for (number, path) in paths {
        let Some(root) = roots.iter().find(|root| root.number == number) else { continue };
        // Sorted, so that a directory comes before what is below it, which is walked with it.
        if news.directories.iter().any(|(root, directory)| *root == number && is_at_or_below(&path, directory)) {
            continue;
        }
        let absolute = root.absolute(&path);
        let file_type = std::fs::symlink_metadata(&absolute).map(|metadata| metadata.file_type());
        let Ok(file_type) = file_type else {
            news.gone.push((number, path));
            continue;
        };
        let rules = rules.entry(number).or_insert_with(|| root.rules());
        let is_ignored = rules.as_mut().is_some_and(|rules| rules.matched(&path, file_type.is_dir()).is_ignore());
        match kind_of(&absolute, file_type) {
            Some(_) if is_ignored => news.gone.push((number, path)),
            Some(_) if file_type.is_dir() => news.directories.push((number, path)),
            Some(kind) => news.there.push((number, path, kind)),
            None => news.gone.push((number, path)),
        }
    }
    news
}

/// Returns whether the table is another one now.
fn apply(table: &mut Table, news: &News, walked: &Table) -> bool {
    let mut changed = 0;
    for (root, path) in &news.gone {
        changed += table.remove(*root, path);
    }
    for (root, path, kind) in &news.there {
        if table.kind(*root, path) != Some(*kind) {
            table.remove(*root, path);
            table.push(*root, path, *kind);
            changed += 1;
        }
    }
    for (root, path) in &news.directories {
        changed += table.remove(*root, path);
    }
    table.append(walked);
    changed + walked.len() > 0
}
