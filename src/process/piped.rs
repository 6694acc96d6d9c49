//! A program that is talked to through its pipes for as long as it lives.

use std::ffi::OsStr;
use std::io;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout};

use super::spawn::{self, Leash};

/// The program; dropping it kills it with everything it started.
#[derive(Debug)]
pub struct Piped {
    child: Child,
    leash: Leash,
}

/// Its ends of the pipes, as we see them.
#[derive(Debug)]
pub struct Pipes {
    pub input: ChildStdin,
    pub output: ChildStdout,
    pub errors: ChildStderr,
}

/// Starts `program`, found as a shell would find it, with `variables` added to our environment.
pub fn piped<'a>(
    program: impl AsRef<OsStr>,
    args: impl IntoIterator<Item = impl AsRef<OsStr>>,
    variables: impl IntoIterator<Item = (&'a str, &'a str)>,
    directory: Option<&Path>,
) -> io::Result<(Piped, Pipes)> {
    let mut guarded = spawn::guarded(program, args)?;
    guarded.command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).envs(variables);
    if let Some(directory) = directory {
        guarded.command.current_dir(directory);
    }
    let (mut child, leash) = guarded.spawn()?;
    let missing = || io::Error::other("the program has no pipes");
    let pipes = Pipes {
        input: child.stdin.take().ok_or_else(missing)?,
        output: child.stdout.take().ok_or_else(missing)?,
        errors: child.stderr.take().ok_or_else(missing)?,
    };
    Ok((Piped { child, leash }, pipes))
}

impl Piped {
    /// Waits for the end: the exit code, or nothing when it is not known.
    pub async fn ended(&mut self) -> Option<i32> {
        self.child.wait().await.ok().and_then(|status| status.code())
    }

    /// Waits for the program to end by itself for as long as `patience`, then kills it, and returns
    /// when it is gone or `patience` has passed once more.
    pub async fn end(self, patience: Duration) -> Option<i32> {
        let Self { mut child, leash } = self;
        if let Ok(status) = tokio::time::timeout(patience, child.wait()).await {
            return status.ok().and_then(|status| status.code());
        }
        drop(leash);
        let status = tokio::time::timeout(patience, child.wait()).await.ok()?;
        status.ok().and_then(|status| status.code())
    }
}
