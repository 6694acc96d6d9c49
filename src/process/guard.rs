//! The guard: a small process between us and each program we start, which takes the whole tree
//! of that program down when we let go of it or die.
//!
//! It is this executable, started as `eca __guard OPTIONS -- program args…`. The option `--control`
//! names the read end of a pipe whose other end only the server holds: its end of file is the order
//! to kill, and the kernel sends it even when the server is killed with -9. A process group would
//! miss programs that call `setsid` or fork twice, and a parent-death signal fires when a thread
//! ends. The guard is the subreaper of its descendants, so none of them can get out of its sight.
//!
//! A program that shall be confined gets a temporary folder of its own, which the guard removes
//! after it; see [`sandbox`](super::sandbox).
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
pub(super) const CANNOT_START: i32 = 127;

/// What a shell reports for a program that it may not run.
#[cfg(target_os = "linux")]
pub(super) const CANNOT_CONFINE: i32 = 126;

/// Runs as a guard, or as the step between a guard and a confined program, if that is what the
/// arguments say; returns the exit code to leave with.
pub fn run_if_asked(
    mut args: impl Iterator<Item = OsString>,
    temporary_directory: impl FnOnce() -> PathBuf,
) -> Option<i32> {
    let command = args.nth(1)?;
    #[cfg(target_os = "linux")]
    if command == COMMAND {
        return Some(linux::run(args, temporary_directory));
    } else if command == super::sandbox::COMMAND {
        return Some(super::sandbox::run(args));
    }
    #[cfg(not(target_os = "linux"))]
    {
        let _ = temporary_directory;
        if command == COMMAND || command == super::sandbox::COMMAND {
            return Some(1);
        }
    }
    None
}

#[cfg(target_os = "linux")]
pub(super) fn complain(program: &std::ffi::OsStr, error: &io::Error) {
    use std::io::Write;
    let _ = writeln!(io::stderr(), "cannot start {}: {error}", program.display());
}

#[cfg(target_os = "linux")]
pub(super) use linux::Order;

#[cfg(target_os = "linux")]
mod linux {
    use std::collections::HashMap;
    use std::ffi::OsString;
    use std::fs::File;
    use std::io::Write;
    use std::os::fd::AsFd;
    use std::os::unix::process::ExitStatusExt;
    use std::path::PathBuf;
    use std::process::{Child, Command, ExitStatus};
    use std::thread::sleep;
    use std::time::{Duration, Instant};

    use rustix::event::{PollFd, PollFlags, poll};
    use rustix::process::{
        Pid, PidfdFlags, Resource, Rlimit, Signal, WaitOptions, getpid, kill_process, pidfd_open, set_child_subreaper,
        setrlimit, setsid, wait,
    };

    use super::{CANNOT_CONFINE, CANNOT_START, complain};
    use crate::process::private_folder::PrivateFolder;
    use crate::process::sandbox::{self, Confinement};

    /// Programs may end by themselves for so long before they are killed.
    const GRACE: Duration = Duration::from_millis(200);
    /// A tree that forks faster than it can be killed is given up after this.
    const GIVE_UP: Duration = Duration::from_secs(5);
    const LOOK_AGAIN: Duration = Duration::from_millis(5);

    pub(super) fn run(mut args: impl Iterator<Item = OsString>, temporary_directory: impl FnOnce() -> PathBuf) -> i32 {
        let Some(order) = Order::read(&mut args) else { return 2 };
        // Opened anew through /proc, because taking over a number somebody gave us is not safe.
        let Ok(control) = File::open(format!("/proc/self/fd/{}", order.control)) else { return 2 };
        // Out of the terminal's reach: its interrupts are for the server to handle.
        let _ = setsid();
        let _ = set_child_subreaper(Some(getpid()));
        let _ = setrlimit(Resource::Nofile, Rlimit { current: order.soft, maximum: order.hard });
        let folder = match order.confinement.as_ref().map(|_| PrivateFolder::create(&temporary_directory())) {
            Some(Err(error)) => {
                let _ = writeln!(std::io::stderr(), "cannot make a temporary folder for the sandbox: {error}");
                return CANNOT_CONFINE;
            }
            folder => folder.and_then(Result::ok),
        };
        let mut child = match order.command(folder.as_ref()).args(args).spawn() {
            Ok(child) => child,
            Err(error) => {
                complain(&order.program, &error);
                return CANNOT_START;
            }
        };
        let status = watch(&control, &mut child);
        kill_descendants();
        drop(folder);
        status.map_or(1, exit_code)
    }

    #[derive(Debug)]
    pub(in crate::process) struct Order {
        control: u32,
        /// Limits on open files; `None` is no limit.
        soft: Option<u64>,
        hard: Option<u64>,
        confinement: Option<Confinement>,
        program: OsString,
    }

    impl Order {
        /// As options that [`Order::read`] understands, up to the program.
        pub(in crate::process) fn options(
            control: i32,
            soft: Option<u64>,
            hard: Option<u64>,
            confinement: Option<&Confinement>,
        ) -> Vec<OsString> {
            let mut options = vec!["--control".into(), control.to_string().into()];
            for (name, limit) in [("--soft", soft), ("--hard", hard)] {
                options.extend(limit.into_iter().flat_map(|limit| [name.into(), limit.to_string().into()]));
            }
            options.extend(confinement.into_iter().flat_map(Confinement::options));
            options.push("--".into());
            options
        }

        fn read(args: &mut impl Iterator<Item = OsString>) -> Option<Self> {
            let (mut control, mut soft, mut hard, mut confinement) = (None, None, None, None);
            loop {
                let option = args.next()?;
                if option == "--" {
                    let control = u32::try_from(control?).ok()?;
                    return Some(Self { control, soft, hard, confinement, program: args.next()? });
                }
                let value = args.next()?;
                let number = match option.to_str() {
                    Some("--control") => &mut control,
                    Some("--soft") => &mut soft,
                    Some("--hard") => &mut hard,
                    _ if Confinement::read(&mut confinement, &option, &value) => continue,
                    _ => return None,
                };
                *number = Some(value.to_str()?.parse::<u64>().ok()?);
            }
        }

        /// Starts the program, or the step that confines itself and becomes it.
        fn command(&self, folder: Option<&PrivateFolder>) -> Command {
            let (Some(confinement), Some(folder)) = (&self.confinement, folder) else {
                return Command::new(&self.program);
            };
            // Not by its name, which by now may be that of another version.
            let mut command = Command::new("/proc/self/exe");
            command.arg(sandbox::COMMAND).args(confinement.options()).arg("--temporary").arg(folder.path());
            for name in ["TMPDIR", "TMP", "TEMP"] {
                command.env(name, folder.path());
            }
            command.env("ECA_SANDBOX", confinement.word()).arg("--").arg(&self.program);
            command
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
        fn orders_survive_a_command_line() {
            let confinement = Confinement::WriteBelow(vec!["/a b".into()]);
            let options = Order::options(7, Some(1024), None, Some(&confinement));
            let mut args = options.into_iter().chain(["sh", "-c", "x"].map(OsString::from));
            let order = Order::read(&mut args).unwrap();
            assert_eq!((order.control, order.soft, order.hard), (7, Some(1024), None));
            assert_eq!((order.confinement, order.program), (Some(confinement), "sh".into()));
            assert_eq!(args.collect::<Vec<_>>(), ["-c", "x"]);
        }

        #[test]
        fn orders_are_read_whole_or_not_at_all() {
            let read = |text: &str| Order::read(&mut text.split(' ').map(OsString::from));
            assert!(read("--control 7 -- --control").is_some());
            for bad in [
                "-- sh",
                "--control x -- sh",
                "--control 99999999999 -- sh",
                "--control 7 --",
                "--control 7 sh",
                "--control 7 --soft -1 -- sh",
                "--control 7 --below /w -- sh",
                "--control 7 --confine most -- sh",
                "--control",
                "",
            ] {
                assert!(read(bad).is_none(), "{bad}");
            }
        }
    }
}
