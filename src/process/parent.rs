//! Notices that the editor which started us has ended.
//!
//! End of input is the usual sign, but it never comes when a child of the editor has inherited the
//! other end of our stdin. On Windows this never resolves and end of input is the only sign; that
//! platform is not tested.

#[cfg(unix)]
use std::sync::OnceLock;
#[cfg(unix)]
use std::time::Duration;

#[cfg(unix)]
use rustix::process::{Pid, getpid, getppid, test_kill_process};

/// How often the process is looked for where it cannot be waited for.
#[cfg(unix)]
const POLL_INTERVAL: Duration = Duration::from_secs(2);

#[cfg(unix)]
static PARENT_AT_START: OnceLock<Option<Pid>> = OnceLock::new();

/// One process under watch.
#[derive(Debug)]
pub struct ParentWatch {
    kind: Kind,
}

#[derive(Debug)]
enum Kind {
    /// There is nothing to wait for.
    Never,
    #[cfg(unix)]
    AlreadyGone,
    /// A descriptor that becomes readable when the process ends.
    #[cfg(target_os = "linux")]
    Descriptor(std::os::fd::OwnedFd, Pid),
    #[cfg(unix)]
    Polled(Pid),
}

/// Remembers who our parent was. Called first thing in the program, it lets [`watch_parent`] tell
/// an orphan from a program that was started by process 1, as in a container with an init.
pub fn remember_parent() {
    #[cfg(unix)]
    PARENT_AT_START.get_or_init(getppid);
}

/// Starts to watch `pid`, which is what a client sends as its `processId`.
///
/// A process that is not visible may live outside our container, so it counts as gone only when we
/// have lost our parent. A number that is no process id, or our own, is never gone.
pub fn watch_parent(pid: i64) -> ParentWatch {
    #[cfg(unix)]
    {
        let parent_at_start = PARENT_AT_START.get().copied().flatten();
        ParentWatch { kind: kind_for(pid, is_orphan(parent_at_start, getppid())) }
    }
    #[cfg(not(unix))]
    {
        let _ = pid;
        ParentWatch { kind: Kind::Never }
    }
}

impl ParentWatch {
    /// Resolves when the process has ended.
    pub async fn gone(self) {
        match self.kind {
            Kind::Never => std::future::pending().await,
            #[cfg(unix)]
            Kind::AlreadyGone => {}
            #[cfg(target_os = "linux")]
            Kind::Descriptor(descriptor, pid) => match readable_when_ended(descriptor) {
                Ok(descriptor) if descriptor.readable().await.is_ok() => {}
                _ => poll_until_gone(pid, POLL_INTERVAL).await,
            },
            #[cfg(unix)]
            Kind::Polled(pid) => poll_until_gone(pid, POLL_INTERVAL).await,
        }
    }
}

#[cfg(unix)]
fn kind_for(pid: i64, orphan: bool) -> Kind {
    let Some(pid) = i32::try_from(pid).ok().filter(|pid| *pid > 0).and_then(Pid::from_raw) else {
        return Kind::Never;
    };
    if pid == getpid() {
        return Kind::Never;
    }
    if !is_visible(pid) {
        return if orphan { Kind::AlreadyGone } else { Kind::Never };
    }
    #[cfg(target_os = "linux")]
    if let Ok(descriptor) = rustix::process::pidfd_open(pid, rustix::process::PidfdFlags::empty()) {
        return Kind::Descriptor(descriptor, pid);
    }
    // Old kernels, sandboxes, or a process that ended just now, which the first look will find.
    Kind::Polled(pid)
}

/// Process 1 adopts those who lose their parent.
#[cfg(unix)]
fn is_orphan(parent_at_start: Option<Pid>, parent_now: Option<Pid>) -> bool {
    parent_now == Some(Pid::INIT) && parent_at_start != Some(Pid::INIT)
}

/// A process of another user refuses our signal, but it is there.
#[cfg(unix)]
fn is_visible(pid: Pid) -> bool {
    test_kill_process(pid) != Err(rustix::io::Errno::SRCH)
}

/// The call is deprecated because it trusts any type to keep its descriptor open, and its
/// replacement is `unsafe` for the same reason; an `OwnedFd` is the type that can be trusted.
#[cfg(target_os = "linux")]
#[allow(deprecated)]
fn readable_when_ended(
    descriptor: std::os::fd::OwnedFd,
) -> std::io::Result<tokio::io::unix::AsyncFd<std::os::fd::OwnedFd>> {
    tokio::io::unix::AsyncFd::with_interest(descriptor, tokio::io::Interest::READABLE)
}

#[cfg(unix)]
async fn poll_until_gone(pid: Pid, interval: Duration) {
    while is_visible(pid) {
        tokio::time::sleep(interval).await;
    }
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use super::*;
    use std::process::{Child, Command, Stdio};

    /// Lives until its stdin closes.
    fn child() -> Child {
        Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap()
    }

    async fn within_hang_guard(future: impl Future<Output = ()>) {
        tokio::time::timeout(Duration::from_secs(20), future).await.expect("must resolve");
    }

    #[tokio::test]
    async fn resolves_when_the_process_ends_and_not_before() {
        let mut child = child();
        let mut gone = std::pin::pin!(watch_parent(i64::from(child.id())).gone());
        for _ in 0..20 {
            assert!(futures_util::poll!(gone.as_mut()).is_pending());
            tokio::task::yield_now().await;
        }
        drop(child.stdin.take());
        within_hang_guard(gone).await;
        child.wait().unwrap();
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn linux_waits_for_a_descriptor() {
        let mut child = child();
        assert!(matches!(kind_for(i64::from(child.id()), false), Kind::Descriptor(..)));
        child.kill().unwrap();
        child.wait().unwrap();
    }

    #[tokio::test]
    async fn polling_resolves_too() {
        let mut child = child();
        let pid = Pid::from_child(&child);
        let mut gone = std::pin::pin!(poll_until_gone(pid, Duration::from_millis(1)));
        for _ in 0..20 {
            assert!(futures_util::poll!(gone.as_mut()).is_pending());
            tokio::task::yield_now().await;
        }
        child.kill().unwrap();
        child.wait().unwrap();
        within_hang_guard(gone).await;
    }

    #[tokio::test]
    async fn a_process_that_is_not_visible() {
        let mut ended = child();
        ended.kill().unwrap();
        ended.wait().unwrap();
        let pid = i64::from(ended.id());
        within_hang_guard(ParentWatch { kind: kind_for(pid, true) }.gone()).await;
        assert!(matches!(kind_for(pid, false), Kind::Never));
    }

    #[test]
    fn what_is_no_process_to_watch() {
        for pid in [0, -1, i64::MIN, i64::MAX, i64::from(std::process::id())] {
            assert!(matches!(kind_for(pid, true), Kind::Never), "{pid}");
        }
        let mut never = std::pin::pin!(watch_parent(0).gone());
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        assert!(never.as_mut().poll(&mut context).is_pending());
    }

    #[test]
    fn an_orphan_has_lost_its_parent_to_process_one() {
        let other = Pid::from_raw(77);
        for (at_start, now, expected) in [
            (other, Some(Pid::INIT), true),
            (None, Some(Pid::INIT), true),
            (Some(Pid::INIT), Some(Pid::INIT), false),
            (other, other, false),
            (None, None, false),
        ] {
            assert_eq!(is_orphan(at_start, now), expected, "{at_start:?} {now:?}");
        }
    }
}
