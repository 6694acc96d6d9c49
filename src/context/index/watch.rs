//! Notices what comes and goes in the directories of an index.
//!
//! On Linux the kernel tells us, one watch for each directory, as long as there are not too many.
//! Elsewhere nobody tells, and the index is walked again when it has become old.

#[cfg(target_os = "linux")]
pub(super) use kernel::Watcher;
#[cfg(not(target_os = "linux"))]
pub(super) use nobody::Watcher;

/// What was noticed.
#[cfg_attr(not(target_os = "linux"), expect(dead_code, reason = "nobody notices anything"))]
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Change {
    /// Something at this path came, went, or is another one now.
    At { root: u16, path: String },
    /// What is ignored may be something else now.
    Rules,
    /// More than is known: something was missed.
    Lost,
}

#[cfg(target_os = "linux")]
mod kernel {
    use std::collections::HashMap;
    use std::io;
    use std::mem::MaybeUninit;
    use std::os::fd::OwnedFd;
    use std::path::Path;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::sync::{Mutex, MutexGuard, PoisonError};

    use rustix::fs::inotify::{self, CreateFlags, Event, ReadFlags, Reader, WatchFlags};
    use rustix::io::Errno;
    use tokio::io::unix::AsyncFd;

    use super::super::walk::{is_at_or_below, is_never};
    use super::Change;

    /// Changes of these change what is ignored.
    const RULES: [&str; 3] = [".git", ".gitignore", ".ignore"];
    /// What one user may have is shared by all programs. Tests reach the limit with fewer directories.
    const MAX_WATCHES: usize = if cfg!(test) { 256 } else { 8_192 };
    /// Beyond this, walking again is cheaper than following.
    const MAX_CHANGES: usize = 16_384;

    /// One watch for each directory that is not ignored.
    #[derive(Debug)]
    pub(in super::super) struct Watcher {
        queue: AsyncFd<OwnedFd>,
        /// A directory may be reached from two roots.
        places: Mutex<HashMap<i32, Vec<Place>>>,
        has_failed: AtomicBool,
    }

    #[derive(Debug, Clone, PartialEq, Eq)]
    struct Place {
        root: u16,
        path: String,
    }

    impl Watcher {
        /// Must be called inside a runtime.
        pub(in super::super) fn new() -> io::Result<Self> {
            let queue = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)?;
            // The successor is `unsafe`, for types that may change or close their descriptor. This
            // one owns it.
            #[allow(deprecated)]
            let queue = AsyncFd::new(queue)?;
            Ok(Self { queue, places: Mutex::default(), has_failed: AtomicBool::new(false) })
        }

        /// Watches the directory that is called `path` below a root.
        pub(in super::super) fn add(&self, root: u16, path: &str, directory: &Path) {
            if self.has_failed() {
                return;
            }
            let flags = WatchFlags::CREATE
                | WatchFlags::DELETE
                | WatchFlags::MOVED_FROM
                | WatchFlags::MOVED_TO
                | WatchFlags::CLOSE_WRITE
                | WatchFlags::DELETE_SELF
                | WatchFlags::MOVE_SELF
                | WatchFlags::ONLYDIR
                | WatchFlags::DONT_FOLLOW;
            let mut places = self.places();
            if places.len() >= MAX_WATCHES {
                self.has_failed.store(true, Ordering::Relaxed);
                return;
            }
            match inotify::add_watch(self.queue.get_ref(), directory, flags) {
                Ok(watch) => {
                    let place = Place { root, path: path.to_owned() };
                    let places = places.entry(watch).or_default();
                    // It may have been known under the name that it had before.
                    places.retain(|old| old.root != root);
                    places.push(place);
                }
                // What went away again or may not be read has nothing to offer.
                Err(Errno::ACCESS | Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => {}
                Err(error) => {
                    tracing::info!(%error, "files are looked for again from time to time");
                    self.has_failed.store(true, Ordering::Relaxed);
                }
            }
        }

        /// Whether there are directories that it could not watch.
        pub(in super::super) fn has_failed(&self) -> bool {
            self.has_failed.load(Ordering::Relaxed)
        }

        /// Stops watching a directory and those below it.
        pub(in super::super) fn forget(&self, root: u16, path: &str) {
            self.places().retain(|watch, places| {
                places.retain(|place| place.root != root || !is_at_or_below(&place.path, path));
                if places.is_empty() {
                    // Fails for a directory that is gone, whose watch went with it.
                    let _ = inotify::remove_watch(self.queue.get_ref(), *watch);
                }
                !places.is_empty()
            });
        }

        /// Waits until there is something to [`drain`](Self::drain).
        pub(in super::super) async fn noticed(&self) {
            match self.queue.readable().await {
                // What comes from here on makes it ready again, and everything before is drained.
                Ok(mut ready) => ready.clear_ready(),
                Err(_) => std::future::pending().await,
            }
        }

        /// Everything that was noticed and not drained yet.
        pub(in super::super) fn drain(&self) -> Vec<Change> {
            let mut room = [MaybeUninit::uninit(); 16 * 1024];
            let mut events = Reader::new(self.queue.get_ref(), &mut room);
            let mut changes = Vec::new();
            loop {
                match events.next() {
                    Ok(_) if changes.len() > MAX_CHANGES => changes = vec![Change::Lost],
                    Ok(event) => self.read(&event, &mut changes),
                    Err(Errno::INTR) => {}
                    Err(_) => break,
                }
            }
            changes
        }

        fn read(&self, event: &Event<'_>, changes: &mut Vec<Change>) {
            let kinds = event.events();
            if kinds.contains(ReadFlags::QUEUE_OVERFLOW) {
                return changes.push(Change::Lost);
            }
            let mut all = self.places();
            let Some(places) = all.get(&event.wd()) else { return };
            if kinds.intersects(ReadFlags::DELETE_SELF | ReadFlags::MOVE_SELF | ReadFlags::IGNORED | ReadFlags::UNMOUNT)
            {
                // The directory above tells the rest; above a root there is nobody.
                if places.iter().any(|place| place.path.is_empty()) {
                    changes.push(Change::Lost);
                }
                if kinds.contains(ReadFlags::IGNORED) {
                    all.remove(&event.wd());
                }
                return;
            }
            let Some(name) = event.file_name().and_then(|name| name.to_str().ok()) else { return };
            if RULES.contains(&name) {
                changes.push(Change::Rules);
            } else if !kinds.contains(ReadFlags::CLOSE_WRITE) && !is_never(name) {
                changes.extend(places.iter().map(|place| {
                    let path = if place.path.is_empty() { name.to_owned() } else { format!("{}/{name}", place.path) };
                    Change::At { root: place.root, path }
                }));
            }
        }

        fn places(&self) -> MutexGuard<'_, HashMap<i32, Vec<Place>>> {
            self.places.lock().unwrap_or_else(PoisonError::into_inner)
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod nobody {
    use std::convert::Infallible;
    use std::io;
    use std::path::Path;

    use super::Change;

    /// There is none here.
    #[derive(Debug)]
    pub(in super::super) struct Watcher(Infallible);

    impl Watcher {
        pub(in super::super) fn new() -> io::Result<Self> {
            Err(io::ErrorKind::Unsupported.into())
        }

        pub(in super::super) fn add(&self, _: u16, _: &str, _: &Path) {}

        pub(in super::super) fn has_failed(&self) -> bool {
            true
        }

        pub(in super::super) fn forget(&self, _: u16, _: &str) {}

        pub(in super::super) async fn noticed(&self) {
            std::future::pending().await
        }

        pub(in super::super) fn drain(&self) -> Vec<Change> {
            Vec::new()
        }
    }
}
