//! What the kernel knows about a process: CPU time in nanoseconds, memory, voluntary switches.

use std::fs;

use super::Outcome;

/// CPU time of all living threads, user and system, in nanoseconds. The tick counters of `stat`
/// are too coarse: 20,000 chunks at 5 µs are ten of their ticks.
pub(crate) fn cpu_nanoseconds(pid: u32) -> Outcome<u64> {
    let mut total = 0;
    for task in fs::read_dir(format!("/proc/{pid}/task"))? {
        // A thread may end while we look.
        let Ok(text) = fs::read_to_string(task?.path().join("schedstat")) else { continue };
        total += text.split(' ').next().unwrap_or_default().parse::<u64>().unwrap_or(0);
    }
    Ok(total)
}

/// How often any thread of the process went to sleep by itself.
pub(crate) fn voluntary_switches(pid: u32) -> Outcome<u64> {
    let mut total = 0;
    for task in fs::read_dir(format!("/proc/{pid}/task"))? {
        let Ok(text) = fs::read_to_string(task?.path().join("status")) else { continue };
        total += field(&text, "voluntary_ctxt_switches:").unwrap_or(0);
    }
    Ok(total)
}

pub(crate) fn threads(pid: u32) -> Outcome<usize> {
    Ok(fs::read_dir(format!("/proc/{pid}/task"))?.count())
}

/// Open sockets.
pub(crate) fn sockets(pid: u32) -> Outcome<usize> {
    let open = fs::read_dir(format!("/proc/{pid}/fd"))?.flatten();
    let targets = open.filter_map(|entry| fs::read_link(entry.path()).ok());
    Ok(targets.filter(|target| target.to_string_lossy().starts_with("socket:")).count())
}

/// Proportional share of memory, in MiB.
pub(crate) fn pss_mib(pid: u32) -> Outcome<f64> {
    let text = fs::read_to_string(format!("/proc/{pid}/smaps_rollup"))?;
    kib_as_mib(&text, "Pss:")
}

/// The highest resident memory so far, in MiB.
pub(crate) fn peak_rss_mib(pid: u32) -> Outcome<f64> {
    kib_as_mib(&fs::read_to_string(format!("/proc/{pid}/status"))?, "VmHWM:")
}

fn kib_as_mib(text: &str, name: &str) -> Outcome<f64> {
    let kib = field(text, name).ok_or_else(|| format!("no {name} in /proc"))?;
    Ok(kib as f64 / 1024.0)
}

fn field(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_whitespace().next()?.parse().ok()
}
