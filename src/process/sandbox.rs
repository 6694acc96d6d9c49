//! What a program may touch, enforced by the kernel: it reads everything, writes only where it may,
//! and has no network.
//!
//! Linux only. The enforcing is done by a step between the guard and the program, in the crate
//! `process_guard`; here is what the server knows about it. `docs/config.md` says what the sandbox
//! does not cover.

use std::io;
use std::process::Stdio;
use std::time::Duration;

use tokio::sync::OnceCell;

use super::guard;

pub use process_guard::{Confinement, NetworkBlock, SandboxSupport};

/// A probe does almost nothing; this is for a machine that is stuck.
const PROBE_PATIENCE: Duration = Duration::from_secs(10);

/// What this system can do. Found out once, by another process: a probe confines itself for good.
pub async fn support() -> SandboxSupport {
    static FOUND: OnceCell<SandboxSupport> = OnceCell::const_new();
    match FOUND.get_or_try_init(probe).await {
        Ok(found) => *found,
        Err(error) => {
            tracing::warn!(%error, "it could not be found out whether programs can be sandboxed");
            SandboxSupport::NONE
        }
    }
}

async fn probe() -> io::Result<SandboxSupport> {
    if !cfg!(target_os = "linux") {
        return Ok(SandboxSupport::NONE);
    }
    let mut command = guard::command(process_guard::CONFINE)?;
    command.arg(process_guard::PROBE).stdin(Stdio::null()).stderr(Stdio::null()).kill_on_drop(true);
    let output = tokio::time::timeout(PROBE_PATIENCE, command.output())
        .await
        .map_err(|_| io::Error::from(io::ErrorKind::TimedOut))??;
    let text = String::from_utf8_lossy(&output.stdout);
    SandboxSupport::parse(text.trim()).ok_or_else(|| io::Error::other("the probe said nothing"))
}
