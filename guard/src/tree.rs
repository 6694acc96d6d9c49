//! The guard at work: it starts the program, waits, and ends the whole tree.
//!
//! A process group would miss programs that call `setsid` or fork twice, and a parent-death signal
//! fires when a thread ends. The guard is the subreaper of its descendants, so none of them can get
//! out of its sight.

use std::collections::HashMap;
use std::ffi::OsString;
use std::fs::File;
use std::io::Write;
use std::os::fd::AsFd;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Child, ExitStatus};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{
    Pid, PidfdFlags, Resource, Rlimit, Signal, WaitOptions, getpid, kill_process, pidfd_open, set_child_subreaper,
    setrlimit, setsid, wait,
};

use crate::order::Order;
use crate::private_folder::PrivateFolder;
use crate::{CANNOT_CONFINE, CANNOT_START, complain, wrong_order};

/// Programs may end by themselves for so long before they are killed.
const GRACE: Duration = Duration::from_millis(200);
/// A tree that forks faster than it can be killed is given up after this.
const GIVE_UP: Duration = Duration::from_secs(5);
const LOOK_AGAIN: Duration = Duration::from_millis(5);

/// Everything after the origin.
pub(crate) fn run(mut args: impl Iterator<Item = OsString>, temporary_directory: impl FnOnce() -> PathBuf) -> i32 {
    let Some(order) = Order::read(&mut args) else { return wrong_order() };
    // Opened anew through /proc, because taking over a number somebody gave us is not safe.
    let Ok(control) = File::open(format!("/proc/self/fd/{}", order.control)) else { return wrong_order() };
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
}
