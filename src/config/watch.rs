//! Notices that a configuration file was changed, replaced, created or removed.
//!
//! On Linux the kernel tells us, and nothing happens in between. What is watched are directories:
//! editors replace files instead of writing to them, and a file that is not there yet has a
//! directory that is. Elsewhere, and where the kernel has no watch left, the files are looked at
//! every few seconds.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use crate::base::task;

const POLL_EVERY: Duration = Duration::from_secs(3);
/// An editor writes a file in several steps; they count as one change.
const QUIET: Duration = Duration::from_millis(200);
/// A file that never comes to rest is read all the same.
const MOST_PATIENCE: Duration = Duration::from_secs(2);

/// Files under observation.
#[derive(Debug)]
pub struct Watch {
    files: BTreeSet<PathBuf>,
    eyes: Eyes,
}

#[derive(Debug)]
enum Eyes {
    #[cfg(target_os = "linux")]
    Kernel(kernel::Watches),
    Poll(Poll),
}

impl Watch {
    /// Watches nothing yet. Must be called inside a runtime.
    pub fn new() -> Self {
        #[cfg(target_os = "linux")]
        match kernel::Watches::new() {
            Ok(watches) => return Self { files: BTreeSet::new(), eyes: Eyes::Kernel(watches) },
            Err(error) => tracing::info!(%error, "configuration files are looked at every few seconds"),
        }
        Self::polling(POLL_EVERY)
    }

    fn polling(every: Duration) -> Self {
        Self { files: BTreeSet::new(), eyes: Eyes::Poll(Poll { every, stamps: BTreeMap::new() }) }
    }

    /// Watches exactly these files from now on. Returns whether something may have changed
    /// unnoticed until now: a file is new, or its folder has come or gone.
    pub fn set(&mut self, files: impl IntoIterator<Item = PathBuf>) -> bool {
        let files: BTreeSet<PathBuf> = files.into_iter().collect();
        let mut is_news = !files.is_subset(&self.files);
        self.files = files;
        match &mut self.eyes {
            #[cfg(target_os = "linux")]
            Eyes::Kernel(watches) => match watches.set(&self.files) {
                Ok(moved) => is_news |= moved,
                Err(error) => {
                    tracing::info!(%error, "configuration files are looked at every few seconds");
                    let mut poll = Poll { every: POLL_EVERY, stamps: BTreeMap::new() };
                    poll.set(&self.files);
                    self.eyes = Eyes::Poll(poll);
                    is_news = true;
                }
            },
            Eyes::Poll(poll) => is_news |= poll.set(&self.files),
        }
        is_news
    }

    /// Waits until one of the files may have changed. Dropping the future loses nothing.
    pub async fn changed(&mut self) {
        match &mut self.eyes {
            #[cfg(target_os = "linux")]
            Eyes::Kernel(watches) => watches.changed().await,
            Eyes::Poll(poll) => poll.changed().await,
        }
    }

    /// Waits until nothing changes any more, for as long as that is worth it.
    pub async fn quiet(&mut self) {
        let quiet = async { while tokio::time::timeout(QUIET, self.changed()).await.is_ok() {} };
        let _ = tokio::time::timeout(MOST_PATIENCE, quiet).await;
    }
}

impl Default for Watch {
    fn default() -> Self {
        Self::new()
    }
}

/// When a file was written and how long it is; `None` when it is not there.
type Stamp = Option<(Option<SystemTime>, u64)>;

#[derive(Debug)]
struct Poll {
    every: Duration,
    stamps: BTreeMap<PathBuf, Stamp>,
}

impl Poll {
    /// Returns whether one of those that were watched before is another one now.
    fn set(&mut self, files: &BTreeSet<PathBuf>) -> bool {
        let now: BTreeMap<PathBuf, Stamp> = files.iter().map(|file| (file.clone(), stamp(file))).collect();
        let is_other = |(file, old): (&PathBuf, &Stamp)| now.get(file).is_some_and(|new| new != old);
        let changed = self.stamps.iter().any(is_other);
        self.stamps = now;
        changed
    }

    async fn changed(&mut self) {
        loop {
            tokio::time::sleep(self.every).await;
            let files: Vec<PathBuf> = self.stamps.keys().cloned().collect();
            let look =
                move || files.into_iter().map(|file| (stamp(&file), file)).map(|(stamp, file)| (file, stamp)).collect();
            let Ok(now) = task::blocking(look).await else { continue };
            if now != self.stamps {
                self.stamps = now;
                return;
            }
        }
    }
}

fn stamp(file: &Path) -> Stamp {
    std::fs::metadata(file).ok().map(|metadata| (metadata.modified().ok(), metadata.len()))
}

#[cfg(target_os = "linux")]
mod kernel {
    use std::collections::{BTreeMap, BTreeSet};
    use std::ffi::{OsStr, OsString};
    use std::io;
    use std::mem::MaybeUninit;
    use std::os::fd::OwnedFd;
    use std::os::unix::ffi::OsStrExt;
    use std::path::{Path, PathBuf};

    use rustix::fs::inotify::{self, CreateFlags, ReadFlags, Reader, WatchFlags};
    use tokio::io::unix::AsyncFd;

    /// Directories do not come and go more often than this while they are looked at.
    const MOST_ROUNDS: usize = 8;

    /// One watch per directory, with the names in it that matter.
    #[derive(Debug)]
    pub(super) struct Watches {
        queue: AsyncFd<OwnedFd>,
        names: BTreeMap<i32, BTreeSet<OsString>>,
    }

    impl Watches {
        pub(super) fn new() -> io::Result<Self> {
            let queue = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)?;
            // The successor is `unsafe`, for types that may change or close their descriptor. This
            // one owns it.
            #[allow(deprecated)]
            let queue = AsyncFd::new(queue)?;
            Ok(Self { queue, names: BTreeMap::new() })
        }

        /// Returns whether other directories than before are watched: the events of those that no
        /// longer are do not count any more, and what happened in the new ones was not seen.
        pub(super) fn set(&mut self, files: &BTreeSet<PathBuf>) -> io::Result<bool> {
            let mut names = self.watch(&all_places(files))?;
            for _ in 0..MOST_ROUNDS {
                // A directory may come into being between the look and the watch.
                let again = self.watch(&all_places(files))?;
                if std::mem::replace(&mut names, again) == names {
                    break;
                }
            }
            for old in self.names.keys().filter(|old| !names.contains_key(old)) {
                // Fails for a directory that is gone, whose watch went with it.
                let _ = inotify::remove_watch(self.queue.get_ref(), *old);
            }
            let moved = self.names != names;
            self.names = names;
            Ok(moved)
        }

        fn watch(&self, places: &BTreeSet<(PathBuf, OsString)>) -> io::Result<BTreeMap<i32, BTreeSet<OsString>>> {
            let mut names: BTreeMap<i32, BTreeSet<OsString>> = BTreeMap::new();
            let flags = WatchFlags::CLOSE_WRITE
                | WatchFlags::ATTRIB
                | WatchFlags::CREATE
                | WatchFlags::DELETE
                | WatchFlags::MOVED_FROM
                | WatchFlags::MOVED_TO
                | WatchFlags::DELETE_SELF
                | WatchFlags::MOVE_SELF
                | WatchFlags::ONLYDIR;
            for (directory, name) in places {
                match inotify::add_watch(self.queue.get_ref(), directory, flags) {
                    Ok(watch) => drop(names.entry(watch).or_default().insert(name.clone())),
                    // What may not be read cannot be a configuration either.
                    Err(rustix::io::Errno::ACCESS | rustix::io::Errno::NOENT | rustix::io::Errno::NOTDIR) => {}
                    Err(error) => return Err(error.into()),
                }
            }
            Ok(names)
        }

        pub(super) async fn changed(&mut self) {
            loop {
                let Ok(mut ready) = self.queue.readable().await else { return std::future::pending().await };
                let mut room = [MaybeUninit::uninit(); 4096];
                let mut events = Reader::new(ready.get_inner(), &mut room);
                let mut relevant = false;
                loop {
                    match events.next() {
                        Ok(event) => {
                            let name = event.file_name().map(|name| OsStr::from_bytes(name.to_bytes()));
                            relevant |= event.events().contains(ReadFlags::QUEUE_OVERFLOW)
                                || self.names.get(&event.wd()).is_some_and(|names| {
                                    // Without a name it is the directory itself that went away.
                                    name.is_none_or(|name| names.contains(name))
                                });
                        }
                        Err(rustix::io::Errno::INTR) => {}
                        Err(_) => break,
                    }
                }
                ready.clear_ready();
                if relevant {
                    return;
                }
            }
        }
    }

    fn all_places(files: &BTreeSet<PathBuf>) -> BTreeSet<(PathBuf, OsString)> {
        files.iter().flat_map(|file| places(file)).collect()
    }

    /// Where a change of `file` shows: in its directory, in that of the file which it leads to, and
    /// at the links on the way; or in the nearest directory that exists.
    fn places(file: &Path) -> Vec<(PathBuf, OsString)> {
        let mut places = Vec::new();
        let mut add = |file: &Path| {
            let mut below = file;
            while let (Some(directory), Some(name)) = (below.parent(), below.file_name()) {
                if directory.is_dir() {
                    places.push((directory.to_owned(), name.to_owned()));
                    // A directory that is a link may be made to lead elsewhere.
                    if !directory.is_symlink() {
                        break;
                    }
                }
                below = directory;
            }
        };
        add(file);
        if let Ok(real) = dunce::canonicalize(file)
            && real != file
        {
            add(&real);
        }
        places
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HANG: Duration = Duration::from_secs(20);

    async fn notices(watch: &mut Watch, what: &str, action: impl FnOnce()) {
        action();
        tokio::time::timeout(HANG, watch.changed()).await.unwrap_or_else(|_| panic!("nobody noticed: {what}"));
        // Several events may belong to one action.
        while tokio::time::timeout(Duration::from_millis(50), watch.changed()).await.is_ok() {}
    }

    #[cfg(target_os = "linux")]
    async fn every_change_is_noticed(mut watch: Watch) {
        let folder = tempfile::tempdir().unwrap();
        let directory = folder.path().join("deep/.eca");
        let file = directory.join("config.json");
        assert!(watch.set([file.clone()]));
        assert!(!watch.set([file.clone()]));
        let again = |watch: &mut Watch| {
            assert!(watch.set([file.clone()]), "another folder is watched now");
            assert!(!watch.set([file.clone()]));
        };
        notices(&mut watch, "its folders appear", || std::fs::create_dir_all(&directory).unwrap()).await;
        again(&mut watch);
        notices(&mut watch, "it appears", || std::fs::write(&file, "1").unwrap()).await;
        notices(&mut watch, "it is written", || std::fs::write(&file, "22").unwrap()).await;
        notices(&mut watch, "it is replaced", || {
            std::fs::write(directory.join("new"), "333").unwrap();
            std::fs::rename(directory.join("new"), &file).unwrap();
        })
        .await;
        notices(&mut watch, "it is removed", || std::fs::remove_file(&file).unwrap()).await;
        notices(&mut watch, "it is back", || std::fs::write(&file, "1").unwrap()).await;
        notices(&mut watch, "its folder is removed", || std::fs::remove_dir_all(&directory).unwrap()).await;
        again(&mut watch);
        notices(&mut watch, "its folder is back", || std::fs::create_dir_all(&directory).unwrap()).await;
        again(&mut watch);
        notices(&mut watch, "and the file too", || std::fs::write(&file, "1").unwrap()).await;
        // Both at once, before anybody looks: the folder's news are not those of the file any more.
        std::fs::remove_dir_all(&directory).unwrap();
        again(&mut watch);
        std::fs::create_dir_all(&directory).unwrap();
        std::fs::write(&file, "1").unwrap();
        again(&mut watch);
    }

    #[cfg(target_os = "linux")]
    #[tokio::test]
    async fn the_kernel_tells() {
        let watch = Watch::new();
        assert!(matches!(watch.eyes, Eyes::Kernel(_)));
        every_change_is_noticed(watch).await;
    }

    #[tokio::test]
    async fn polling_finds_changes_of_files() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("later/config.json");
        let mut watch = Watch::polling(Duration::from_millis(5));
        watch.set([file.clone()]);
        std::fs::create_dir(folder.path().join("later")).unwrap();
        notices(&mut watch, "it appears", || std::fs::write(&file, "1").unwrap()).await;
        notices(&mut watch, "it is written", || std::fs::write(&file, "22").unwrap()).await;
        notices(&mut watch, "it is removed", || std::fs::remove_file(&file).unwrap()).await;
    }

    #[cfg(target_os = "linux")]
    #[tokio::test]
    async fn other_files_are_none_of_our_business_and_links_are_followed() {
        let folder = tempfile::tempdir().unwrap();
        let (link, target) = (folder.path().join("config.json"), folder.path().join("dotfiles/eca.json"));
        std::fs::create_dir(folder.path().join("dotfiles")).unwrap();
        std::fs::write(&target, "1").unwrap();
        std::os::unix::fs::symlink(&target, &link).unwrap();
        let mut watch = Watch::new();
        watch.set([link.clone()]);
        std::fs::write(folder.path().join("noise"), "1").unwrap();
        std::fs::write(folder.path().join("dotfiles/noise"), "1").unwrap();
        assert!(tokio::time::timeout(Duration::from_millis(100), watch.changed()).await.is_err());
        notices(&mut watch, "what the link leads to", || std::fs::write(&target, "2").unwrap()).await;
        notices(&mut watch, "the link itself", || {
            std::fs::remove_file(&link).unwrap();
            std::fs::write(&link, "3").unwrap();
        })
        .await;
    }
}
