//! The guard: a small process between us and each program we start, which takes the whole tree
//! of that program down when we let go of it or die.
//!
//! It is this executable, started as `eca __guard FD SOFT HARD -- program args…`. `FD` is the read
//! end of a pipe whose other end only the server holds: its end of file is the order to kill, and
//! the kernel sends it even when the server is killed with -9. A process group would miss programs
//! that call `setsid` or fork twice, and a parent-death signal fires when a thread ends. The guard
//! is the subreaper of its descendants, so none of them can get out of its sight.
//!
//! Linux only; elsewhere programs are started directly in a process group of their own.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

static EXECUTABLE: OnceLock<PathBuf> = OnceLock::new();

/// Says which executable can be a guard: this one, or in tests the one under test. The first word
/// counts.
pub fn use_executable(path: PathBuf) {
    let _ = EXECUTABLE.set(path);
}

pub(super) fn executable() -> io::Result<&'static Path> {
    EXECUTABLE.get().map(PathBuf::as_path).ok_or_else(|| io::Error::other("no guard executable is known"))
}

/// The hidden command that turns this executable into a guard.
pub const COMMAND: &str = "__guard";

/// What a shell reports for a program that cannot be started.
#[cfg(target_os = "linux")]
const CANNOT_START: i32 = 127;

/// Runs as a guard if that is what the arguments say; returns the exit code to leave with.
pub fn run_if_asked(mut args: impl Iterator<Item = OsString>) -> Option<i32> {
    if args.nth(1)? != COMMAND {
        return None;
    }
    #[cfg(target_os = "linux")]
    let code = linux::run(args);
    #[cfg(not(target_os = "linux"))]
    let code = 1;
    Some(code)
}

#[cfg(target_os = "linux")]
mod linux {
    use std::collections::HashMap;
    use std::ffi::OsString;
    use std::fs::File;
    use std::os::fd::AsFd;
    use std::os::unix::process::ExitStatusExt;
    use std::process::{Child, Command, ExitStatus};
    use std::thread::sleep;
    use std::time::{Duration, Instant};

    use rustix::event::{PollFd, PollFlags, poll};
    use rustix::process::{
        Pid, PidfdFlags, Resource, Rlimit, Signal, WaitOptions, getpid, kill_process, pidfd_open, set_child_subreaper,
        setrlimit, setsid, wait,
    };

    use super::CANNOT_START;

    /// Programs may end by themselves for so long before they are killed.
    const GRACE: Duration = Duration::from_millis(200);
    /// A tree that forks faster than it can be killed is given up after this.
    const GIVE_UP: Duration = Duration::from_secs(5);
    const LOOK_AGAIN: Duration = Duration::from_millis(5);

    pub(super) fn run(mut args: impl Iterator<Item = OsString>) -> i32 {
        let Some(order) = Order::read(&mut args) else { return 2 };
        // Opened anew through /proc, because taking over a number somebody gave us is not safe.
        let Ok(control) = File::open(format!("/proc/self/fd/{}", order.control)) else { return 2 };
        // Out of the terminal's reach: its interrupts are for the server to handle.
        let _ = setsid();
        let _ = set_child_subreaper(Some(getpid()));
        let _ = setrlimit(Resource::Nofile, Rlimit { current: order.soft, maximum: order.hard });
        let mut child = match Command::new(&order.program).args(args).spawn() {
            Ok(child) => child,
            Err(error) => {
                complain(&order.program, &error);
                return CANNOT_START;
            }
        };
        let status = watch(&control, &mut child);
        kill_descendants();
        status.map_or(1, exit_code)
    }

    struct Order {
        control: u32,
        soft: Option<u64>,
        hard: Option<u64>,
        program: OsString,
    }

    impl Order {
        fn read(args: &mut impl Iterator<Item = OsString>) -> Option<Self> {
            let mut number = || args.next()?.to_str()?.parse::<u64>().ok();
            let control = u32::try_from(number()?).ok()?;
            // No limit is written as the largest number.
            let (soft, hard) = (number()?, number()?);
            let limit = |value: u64| (value != u64::MAX).then_some(value);
            let separator = args.next()?;
            (separator == "--").then_some(())?;
            Some(Self { control, soft: limit(soft), hard: limit(hard), program: args.next()? })
        }
    }

    /// Waits until the program ends (its status) or the server lets go (none).
    fn watch(control: &File, child: &mut Child) -> Option<ExitStatus> {
        let pid = Pid::from_raw(i32::try_from(child.id()).ok()?)?;
        let Ok(ended) = pidfd_open(pid, PidfdFlags::empty()) else { return child.wait().ok() };
        loop {
            let mut fds =
                [PollFd::new(&ended, PollFlags::IN), PollFd::from_borrowed_fd(control.as_fd(), PollFlags::empty())];
            if poll(&mut fds, None).is_err() {
                continue;
            }
            if !fds[0].revents().is_empty() {
                return child.wait().ok();
            }
            if !fds[1].revents().is_empty() {
                return None;
            }
        }
    }

    /// First politely, then not; until nobody is left.
    fn kill_descendants() {
        let started = Instant::now();
        let mut asked = false;
        loop {
            while let Ok(Some(_)) = wait(WaitOptions::NOHANG) {}
            let left = descendants();
            if left.is_empty() || started.elapsed() > GIVE_UP {
                return;
            }
            let signal = if started.elapsed() < GRACE { Signal::TERM } else { Signal::KILL };
            if signal == Signal::KILL || !asked {
                for pid in left {
                    let _ = kill_process(pid, signal);
                }
                asked = true;
            }
            sleep(LOOK_AGAIN);
        }
    }

    fn descendants() -> Vec<Pid> {
        let parents: HashMap<i32, i32> = std::fs::read_dir("/proc")
            .into_iter()
            .flatten()
            .filter_map(|entry| {
                let pid: i32 = entry.ok()?.file_name().to_str()?.parse().ok()?;
                Some((pid, parent_of(&std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)?))
            })
            .collect();
        let own = getpid().as_raw_nonzero().get();
        let is_ours = |mut pid: i32| {
            // A chain longer than all processes would be a circle, made by numbers reused meanwhile.
            for _ in 0..parents.len() {
                match parents.get(&pid) {
                    Some(&parent) if parent == own => return true,
                    Some(&parent) => pid = parent,
                    None => return false,
                }
            }
            false
        };
        parents.keys().filter(|pid| is_ours(**pid)).filter_map(|pid| Pid::from_raw(*pid)).collect()
    }

    /// The fourth field; the second may hold anything, also spaces and parentheses.
    fn parent_of(stat: &str) -> Option<i32> {
        stat.rsplit_once(") ")?.1.split(' ').nth(1)?.parse().ok()
    }

    fn exit_code(status: ExitStatus) -> i32 {
        status.code().or_else(|| status.signal().map(|signal| 128 + signal)).unwrap_or(1)
    }

    fn complain(program: &OsString, error: &std::io::Error) {
        use std::io::Write;
        let _ = writeln!(std::io::stderr(), "cannot start {}: {error}", program.display());
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn the_parent_is_read_past_odd_names() {
            assert_eq!(parent_of("12 (a) b (c)) S 7 12 12 0"), Some(7));
            assert_eq!(parent_of("12 (sh) R 1 1"), Some(1));
            assert_eq!(parent_of("nonsense"), None);
        }

        #[test]
        fn orders_are_read_whole_or_not_at_all() {
            let read = |text: &str| Order::read(&mut text.split(' ').map(OsString::from));
            let order = read("7 1024 18446744073709551615 -- sh -c x").unwrap();
            assert_eq!((order.control, order.soft, order.hard, order.program), (7, Some(1024), None, "sh".into()));
            for bad in ["7 1024 5 sh", "x 1 1 -- sh", "7 1 1 --", "7"] {
                assert!(read(bad).is_none(), "{bad}");
            }
        }
    }
}
