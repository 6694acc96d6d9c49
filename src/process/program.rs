//! A program whose output is heard while it runs: no input, a leash, and perhaps a sandbox.

use std::io;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::{Child, ChildStderr, ChildStdout};
use tokio::time::Instant;

use super::guard;
use super::sandbox::Confinement;
use super::spawn::{Leash, confined};

const BUFFER_BYTES: usize = 32 * 1024;

/// After so much output a program that floods us is made to wait.
const BYTES_BETWEEN_PAUSES: usize = 1024 * 1024;

/// Whoever holds the outputs after the program's end is heard for so long. Where there is a guard,
/// nobody does.
const LAST_WORDS: Duration = Duration::from_millis(500);

/// What to start, and how.
#[derive(Debug, Clone)]
pub struct Program {
    pub path: String,
    pub args: Vec<String>,
    pub directory: PathBuf,
    /// Added to the environment of this process, as `ECA_EXECUTABLE` always is.
    pub variables: Vec<(String, String)>,
    pub confinement: Option<Confinement>,
}

/// Where a piece of output was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stream {
    Stdout,
    Stderr,
}

/// How a program ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ended {
    /// `None` when a signal ended it and nobody translated that into a code.
    pub code: Option<i32>,
}

/// A started program. When this is dropped, the program is killed with all it started.
#[derive(Debug)]
pub struct Running {
    child: Child,
    leash: Option<Leash>,
    stdout: Option<ChildStdout>,
    stderr: Option<ChildStderr>,
    ended: Option<Ended>,
}

impl Program {
    pub fn start(&self) -> io::Result<Running> {
        let mut guarded = confined(&self.path, &self.args, self.confinement.as_ref())?;
        let command = &mut guarded.command;
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).current_dir(&self.directory);
        if let Ok(executable) = guard::executable() {
            command.env("ECA_EXECUTABLE", executable);
        }
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
        let (mut child, leash) = guarded.spawn()?;
        let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
        Ok(Running { child, leash: Some(leash), stdout, stderr, ended: None })
    }
}

impl Running {
    /// Hands on what the program writes until it has ended and everything is heard. `pause` slows a
    /// flood down. May be dropped and called again; nothing gets lost.
    pub async fn follow(&mut self, pause: Duration, mut hear: impl FnMut(Stream, &[u8])) -> io::Result<Ended> {
        let (mut out, mut err) = (vec![0; BUFFER_BYTES], vec![0; BUFFER_BYTES]);
        let mut until = self.ended.map(|_| Instant::now() + LAST_WORDS);
        let mut heard = 0;
        loop {
            if let (Some(ended), None, None) = (self.ended, &self.stdout, &self.stderr) {
                return Ok(ended);
            }
            let silence = async {
                match until {
                    Some(until) => tokio::time::sleep_until(until).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                count = read(&mut self.stdout, &mut out) => {
                    hear(Stream::Stdout, &out[..count]);
                    heard += count;
                }
                count = read(&mut self.stderr, &mut err) => {
                    hear(Stream::Stderr, &err[..count]);
                    heard += count;
                }
                status = self.child.wait(), if self.ended.is_none() => {
                    self.ended = Some(Ended { code: status?.code() });
                    until = Some(Instant::now() + LAST_WORDS);
                }
                () = silence => (self.stdout, self.stderr) = (None, None),
            }
            if heard >= BYTES_BETWEEN_PAUSES {
                heard = 0;
                tokio::time::sleep(pause).await;
            }
        }
    }

    /// Has the program killed, with all it started. It ends soon after.
    pub fn let_go(&mut self) {
        self.leash = None;
        if !cfg!(target_os = "linux") {
            let _ = self.child.start_kill();
        }
    }
}

/// Reads some bytes; at the end of the source, none, and the source is gone. Waits forever without
/// a source.
async fn read(source: &mut Option<impl AsyncRead + Unpin>, buffer: &mut [u8]) -> usize {
    let Some(open) = source else { return std::future::pending().await };
    let count = open.read(buffer).await.unwrap_or(0);
    if count == 0 {
        *source = None;
    }
    count
}
