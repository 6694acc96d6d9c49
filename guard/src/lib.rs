//! The guard: a small process between the server and each program it starts, which takes the whole
//! tree of that program down when the server lets go of it or dies, and the step that confines a
//! program before it runs.
//!
//! There is one such process per running program, so this has few dependencies and is a program of
//! its own, `eca-guard`, which costs a fraction of what a second `eca` would. That can do the same, as
//! `eca __guard …`, so a single copied file works too; see [`run_if_asked`].
//!
//! Linux only; elsewhere the crate has the words and none of the deeds.

#[cfg(target_os = "linux")]
mod confine;
mod confinement;
#[cfg(target_os = "linux")]
mod filter;
#[cfg(target_os = "linux")]
mod order;
mod origin;
#[cfg(target_os = "linux")]
mod private_folder;
mod support;
#[cfg(target_os = "linux")]
mod tree;

use std::ffi::OsString;
use std::path::PathBuf;

pub use confinement::Confinement;
#[cfg(target_os = "linux")]
pub use order::Order;
pub use origin::Origin;
pub use support::{NetworkBlock, SandboxSupport};

/// The hidden command that makes a process a guard.
pub const GUARD: &str = "__guard";

/// The hidden command that confines itself and becomes a program.
pub const CONFINE: &str = "__confine";

/// The option of [`CONFINE`] that confines itself and says how far that goes.
pub const PROBE: &str = "--probe";

/// What a shell reports for a program that cannot be started.
#[cfg(target_os = "linux")]
const CANNOT_START: i32 = 127;

/// What a shell reports for a program that it may not run.
#[cfg(target_os = "linux")]
const CANNOT_CONFINE: i32 = 126;

/// For orders that cannot be read.
#[cfg(target_os = "linux")]
const WRONG_ORDER: i32 = 2;

/// Runs as a guard, or as the step between a guard and a confined program, if that is what the
/// arguments say; returns the exit code to leave with.
///
/// After the command there may be an [`Origin`]. When that is another version, orders may read
/// differently there, so this process becomes the executable that gave the order.
#[cfg(target_os = "linux")]
pub fn run_if_asked(
    mut args: impl Iterator<Item = OsString>,
    temporary_directory: impl FnOnce() -> PathBuf,
) -> Option<i32> {
    let command = args.nth(1).filter(|command| command == GUARD || command == CONFINE)?;
    let mut args = args.peekable();
    let code = match Origin::read(&mut args) {
        Err(()) => wrong_order(),
        Ok(Some(origin)) if origin.is_another_version() => hand_over(&origin.executable, &command, args),
        Ok(_) if command == GUARD => tree::run(args, temporary_directory),
        Ok(_) => confine::run(args),
    };
    Some(code)
}

/// Neither is needed here, and nobody asks for it.
#[cfg(not(target_os = "linux"))]
pub fn run_if_asked(mut args: impl Iterator<Item = OsString>, _: impl FnOnce() -> PathBuf) -> Option<i32> {
    args.nth(1).filter(|command| command == GUARD || command == CONFINE).map(|_| 1)
}

/// Becomes the executable that wrote the order. It gets no origin: it understands what it wrote, and
/// two that disagree about versions must not hand over to each other for ever.
#[cfg(target_os = "linux")]
fn hand_over(executable: &std::path::Path, command: &OsString, order: impl Iterator<Item = OsString>) -> i32 {
    use std::os::unix::process::CommandExt;
    let error = std::process::Command::new(executable).arg(command).args(order).exec();
    complain(executable.as_os_str(), &error);
    CANNOT_START
}

#[cfg(target_os = "linux")]
fn complain(program: &std::ffi::OsStr, error: &std::io::Error) {
    use std::io::Write;
    let _ = writeln!(std::io::stderr(), "cannot start {}: {error}", program.display());
}

#[cfg(target_os = "linux")]
fn wrong_order() -> i32 {
    use std::io::Write;
    let _ = writeln!(std::io::stderr(), "the guard does not understand its order; eca and eca-guard differ");
    WRONG_ORDER
}
