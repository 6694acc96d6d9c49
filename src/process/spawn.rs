//! Starting programs. Every one of them is on a leash: when the leash is dropped, or we die, the
//! program and everything it started is killed.

use std::ffi::OsStr;
use std::io;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::process::{Child, Command};

/// Keeps a program alive; see the module.
#[derive(Debug)]
pub struct Leash {
    // Held for its drop alone: the guard reads its end of file.
    #[cfg(target_os = "linux")]
    _control: std::os::fd::OwnedFd,
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
#[cfg(target_os = "linux")]
pub fn guarded(program: impl AsRef<OsStr>, args: impl IntoIterator<Item = impl AsRef<OsStr>>) -> io::Result<Guarded> {
    use rustix::io::{FdFlags, fcntl_setfd};
    use rustix::pipe::{PipeFlags, pipe_with};
    use std::os::fd::AsRawFd;

    let (read, write) = pipe_with(PipeFlags::CLOEXEC)?;
    // Another program that is started in this moment may inherit the read end too. That is
    // harmless: only the write end, which nobody inherits, keeps a program alive.
    fcntl_setfd(&read, FdFlags::empty())?;
    let limit = super::limits::original_nofile();
    let number = |value: Option<Option<u64>>| value.flatten().unwrap_or(u64::MAX).to_string();
    let mut command = Command::new(super::guard::executable()?);
    command
        .arg(super::guard::COMMAND)
        .arg(read.as_raw_fd().to_string())
        .arg(number(limit.map(|limit| limit.soft)))
        .arg(number(limit.map(|limit| limit.hard)))
        .arg("--")
        .arg(program)
        .args(args);
    Ok(Guarded { command, leash: Leash { _control: write }, _inherited: read })
}

/// A command for `program`. There is no guard on this system: the leash holds nothing.
#[cfg(not(target_os = "linux"))]
pub fn guarded(program: impl AsRef<OsStr>, args: impl IntoIterator<Item = impl AsRef<OsStr>>) -> io::Result<Guarded> {
    let mut command = Command::new(program);
    command.args(args).kill_on_drop(true);
    Ok(Guarded { command, leash: Leash {} })
}

impl Guarded {
    pub fn spawn(mut self) -> io::Result<(Child, Leash)> {
        let child = self.command.spawn()?;
        Ok((child, self.leash))
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
