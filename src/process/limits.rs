//! The limit on open files.
//!
//! Desktop sessions often start programs with 256 or 1024, too few for many MCP servers and chats
//! at once. Children get the original limit back: some programs walk over every possible
//! descriptor, or break when there are more than 1024.

use std::sync::OnceLock;

/// Enough for everything we do; far larger values make some libraries allocate tables of that size.
#[cfg(unix)]
const WANTED: u64 = 65_536;

/// What macOS accepts at least when it refuses more.
#[cfg(unix)]
const MODEST: u64 = 10_240;

/// A limit on open files; `None` is no limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileLimit {
    pub soft: Option<u64>,
    pub hard: Option<u64>,
}

static ORIGINAL: OnceLock<FileLimit> = OnceLock::new();

/// Raises the soft limit as far as it is useful, and remembers what it was; a refusal is no harm.
/// Does nothing where there is no such limit.
pub fn raise_nofile() {
    #[cfg(unix)]
    {
        use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
        let limit = getrlimit(Resource::Nofile);
        let original = *ORIGINAL.get_or_init(|| FileLimit { soft: limit.current, hard: limit.maximum });
        for wanted in [WANTED, MODEST] {
            let Some(target) = raised(original, wanted) else { return };
            let new = Rlimit { current: Some(target), maximum: limit.maximum };
            if setrlimit(Resource::Nofile, new).is_ok() {
                return;
            }
        }
    }
}

/// The limit this process was started with, for its children; `None` before [`raise_nofile`] and
/// where there is no such limit.
pub fn original_nofile() -> Option<FileLimit> {
    ORIGINAL.get().copied()
}

/// The soft limit to ask for, if it is more than there is.
#[cfg(unix)]
fn raised(limit: FileLimit, wanted: u64) -> Option<u64> {
    let target = limit.hard.map_or(wanted, |hard| hard.min(wanted));
    limit.soft.is_some_and(|soft| soft < target).then_some(target)
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use super::*;

    #[test]
    fn the_soft_limit_is_raised_but_never_lowered() {
        for (soft, hard, expected) in [
            (Some(1024), Some(4096), Some(4096)),
            (Some(1024), Some(1_048_576), Some(65_536)),
            (Some(256), None, Some(65_536)),
            (Some(4096), Some(4096), None),
            (Some(100_000), Some(1_048_576), None),
            (None, None, None),
        ] {
            assert_eq!(raised(FileLimit { soft, hard }, WANTED), expected, "{soft:?} {hard:?}");
        }
    }

    #[test]
    fn the_original_is_remembered_across_calls() {
        let before = rustix::process::getrlimit(rustix::process::Resource::Nofile);
        raise_nofile();
        raise_nofile();
        let after = rustix::process::getrlimit(rustix::process::Resource::Nofile);
        let original = FileLimit { soft: before.current, hard: before.maximum };
        assert_eq!(original_nofile(), Some(original));
        assert_eq!(after.current, raised(original, WANTED).or(before.current));
        assert_eq!(after.maximum, before.maximum);
    }
}
