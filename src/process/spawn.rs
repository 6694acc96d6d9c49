//! Starting programs. Every one of them is on a leash: when the leash is dropped, or we die, the
//! program and everything it started is killed.

use std::ffi::OsStr;
use std::io;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::process::{Child, Command};

use super::sandbox::Confinement;

/// Keeps a program alive; see the module.
#[derive(Debug)]
#[cfg_attr(not(target_os = "linux"), derive(Default))]
pub struct Leash {
    // Held for its drop alone: the guard reads its end of file.
    #[cfg(target_os = "linux")]
    _control: std::os::fd::OwnedFd,
    #[cfg(all(unix, not(target_os = "linux")))]
    group: Option<rustix::process::Pid>,
    #[cfg(windows)]
    _job: Option<win32job::Job>,
}

/// A program to be started, and what the guard needs to inherit until it is.
#[derive(Debug)]
pub struct Guarded {
    pub command: Command,
    pub leash: Leash,
    #[cfg(target_os = "linux")]
    _inherited: std::os::fd::OwnedFd,
}

/// A command for `program`, behind a guard where there is one. Configure it, then [`Guarded::spawn`].
pub fn guarded(program: impl AsRef<OsStr>, args: impl IntoIterator<Item = impl AsRef<OsStr>>) -> io::Result<Guarded> {
    confined(program, args, None)
}

/// The same in a sandbox; fails where there is none.
#[cfg(target_os = "linux")]
pub fn confined(
    program: impl AsRef<OsStr>,
    args: impl IntoIterator<Item = impl AsRef<OsStr>>,
    confinement: Option<&Confinement>,
) -> io::Result<Guarded> {
    use rustix::io::{FdFlags, fcntl_setfd};
    use rustix::pipe::{PipeFlags, pipe_with};
    use std::os::fd::AsRawFd;

    let (read, write) = pipe_with(PipeFlags::CLOEXEC)?;
    // Another program that is started in this moment may inherit the read end too. That is
    // harmless: only the write end, which nobody inherits, keeps a program alive.
    fcntl_setfd(&read, FdFlags::empty())?;
    let limit = super::limits::original_nofile();
    let (soft, hard) = (limit.and_then(|limit| limit.soft), limit.and_then(|limit| limit.hard));
    let mut command = super::guard::command(process_guard::GUARD)?;
    command.args(process_guard::Order::options(read.as_raw_fd(), soft, hard, confinement)).arg(program).args(args);
    Ok(Guarded { command, leash: Leash { _control: write }, _inherited: read })
}

/// The same in a sandbox; fails, since there is none on this system. There is no guard either: the
/// leash holds a job on Windows, and elsewhere the process group, which a program can leave.
#[cfg(not(target_os = "linux"))]
pub fn confined(
    program: impl AsRef<OsStr>,
    args: impl IntoIterator<Item = impl AsRef<OsStr>>,
    confinement: Option<&Confinement>,
) -> io::Result<Guarded> {
    if confinement.is_some() {
        return Err(io::Error::new(io::ErrorKind::Unsupported, "there is no sandbox on this system"));
    }
    let mut command = Command::new(program);
    command.args(args).kill_on_drop(true);
    #[cfg(unix)]
    command.process_group(0);
    Ok(Guarded { command, leash: Leash::default() })
}

impl Guarded {
    pub fn spawn(mut self) -> io::Result<(Child, Leash)> {
        let child = self.command.spawn()?;
        #[cfg(all(unix, not(target_os = "linux")))]
        {
            let id = child.id().and_then(|id| i32::try_from(id).ok());
            self.leash.group = id.and_then(rustix::process::Pid::from_raw);
        }
        #[cfg(windows)]
        if let Some(handle) = child.raw_handle() {
            self.leash._job = Some(job_of(handle)?);
        }
        Ok((child, self.leash))
    }
}

/// A job with this program and all that it will start; whoever is in it ends when its last handle is
/// closed, also when that is because we died.
#[cfg(windows)]
fn job_of(program: std::os::windows::io::RawHandle) -> io::Result<win32job::Job> {
    let mut limits = win32job::ExtendedLimitInfo::new();
    limits.limit_kill_on_job_close();
    let job = win32job::Job::create_with_limit_info(&limits).map_err(io::Error::other)?;
    job.assign_process(program as isize).map_err(io::Error::other)?;
    Ok(job)
}

#[cfg(all(unix, not(target_os = "linux")))]
impl Drop for Leash {
    fn drop(&mut self) {
        if let Some(group) = self.group {
            let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
        }
    }
}

/// What a short program printed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Output {
    /// `None` when it was killed by a signal.
    pub code: Option<i32>,
    pub stdout: Vec<u8>,
    pub stderr: Vec<u8>,
}

/// Why a short program gave no output.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    #[error("it could not be started: {0}")]
    Start(#[from] io::Error),
    #[error("it did not end within {} s", .0.as_secs())]
    Timeout(Duration),
}

/// Runs a shell command to its end: no input, at most `max_bytes` of each output, killed with all
/// it started when the time is over or this future is dropped.
pub async fn shell(
    text: &str,
    directory: Option<&Path>,
    patience: Duration,
    max_bytes: u64,
) -> Result<Output, RunError> {
    let (program, flag) = if cfg!(windows) { ("powershell.exe", "-Command") } else { ("bash", "-c") };
    let mut guarded = guarded(program, [flag, text])?;
    if let Some(directory) = directory {
        guarded.command.current_dir(directory);
    }
    run_with_input(guarded, &[], patience, max_bytes).await
}

/// Runs a program to its end and gives it `input`, which it need not read; otherwise like [`shell`].
pub async fn run_with_input(
    mut guarded: Guarded,
    input: &[u8],
    patience: Duration,
    max_bytes: u64,
) -> Result<Output, RunError> {
    let stdin = if input.is_empty() { Stdio::null() } else { Stdio::piped() };
    guarded.command.stdin(stdin).stdout(Stdio::piped()).stderr(Stdio::piped());
    let (mut child, leash) = guarded.spawn()?;
    let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let run = async {
        // All at once: a program may print before it has read, and need not read at all.
        let (stdout, stderr, ()) =
            tokio::join!(read_bounded(stdout, max_bytes), read_bounded(stderr, max_bytes), write(stdin, input));
        let status = child.wait().await?;
        Ok(Output { code: status.code(), stdout, stderr })
    };
    let result = tokio::time::timeout(patience, run).await;
    drop(leash);
    result.map_err(|_| RunError::Timeout(patience))?
}

/// Writes all that is wanted; dropping the pipe then says that this was all.
async fn write(target: Option<impl AsyncWrite + Unpin>, input: &[u8]) {
    if let Some(mut target) = target {
        let _ = target.write_all(input).await;
    }
}

/// Reads to the end, keeps the beginning.
async fn read_bounded(source: Option<impl AsyncRead + Unpin>, max_bytes: u64) -> Vec<u8> {
    let mut kept = Vec::new();
    if let Some(mut source) = source {
        let _ = (&mut source).take(max_bytes).read_to_end(&mut kept).await;
        let _ = tokio::io::copy(&mut source, &mut tokio::io::sink()).await;
    }
    kept
}
