//! The process that confines itself and then becomes the program.
//!
//! With Landlock for files and seccomp for sockets. It is a step of its own, so that the guard stays
//! free to kill, to look around and to clean up.

use std::ffi::OsString;
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;

use landlock::{
    ABI, Access, AccessFs, AccessNet, LandlockStatus, Ruleset, RulesetAttr, RulesetCreatedAttr, RulesetError, Scope,
    path_beneath_rules,
};

use crate::{
    CANNOT_CONFINE, CANNOT_START, Confinement, NetworkBlock, PROBE, SandboxSupport, complain, filter, wrong_order,
};

/// The newest version whose rights are asked for; the library leaves out what the kernel lacks.
const NEWEST: ABI = ABI::V9;

/// The first version that can refuse TCP.
const LANDLOCK_TCP: u32 = 4;

/// What programs write to without changing anything. Terminals are those that a program makes.
const DEVICES: [&str; 9] = [
    "/dev/null",
    "/dev/zero",
    "/dev/full",
    "/dev/random",
    "/dev/urandom",
    "/dev/tty",
    "/dev/ptmx",
    "/dev/pts",
    "/dev/shm",
];

/// Everything after the origin. Returns only if there is no program to become.
pub(crate) fn run(args: impl Iterator<Item = OsString>) -> i32 {
    let mut args = args.peekable();
    if args.next_if(|first| first == PROBE).is_some() {
        return probe();
    }
    let Some(order) = Order::read(&mut args) else { return wrong_order() };
    match confine(&order.confinement, &order.temporary) {
        Ok(support) if support.landlock > 0 => {}
        Ok(_) => return refuse("the kernel has no Landlock"),
        Err(error) => return refuse(&error.to_string()),
    }
    let error = Command::new(&order.program).args(args).exec();
    complain(&order.program, &error);
    CANNOT_START
}

fn probe() -> i32 {
    let Ok(support) = confine(&Confinement::ReadOnly, &[]) else { return CANNOT_CONFINE };
    i32::from(writeln!(std::io::stdout(), "{}", support.render()).is_err())
}

fn refuse(reason: &str) -> i32 {
    let _ = writeln!(std::io::stderr(), "the sandbox could not be set up: {reason}");
    CANNOT_CONFINE
}

#[derive(Debug, PartialEq, Eq)]
struct Order {
    confinement: Confinement,
    temporary: Vec<PathBuf>,
    program: OsString,
}

impl Order {
    fn read(args: &mut impl Iterator<Item = OsString>) -> Option<Self> {
        let (mut confinement, mut temporary) = (None, Vec::new());
        loop {
            let option = args.next()?;
            if option == "--" {
                return Some(Self { confinement: confinement?, temporary, program: args.next()? });
            }
            let value = args.next()?;
            if option == "--temporary" {
                temporary.push(value.into());
            } else if !Confinement::read(&mut confinement, &option, &value) {
                return None;
            }
        }
    }
}

/// Confines this process, and with it everything it starts, as far as the kernel can.
fn confine(confinement: &Confinement, temporary: &[PathBuf]) -> Result<SandboxSupport, RulesetError> {
    let landlock = limit_writing(confinement, temporary)?;
    let network = match filter::apply(confinement) {
        Ok(()) => NetworkBlock::All,
        Err(_) if landlock >= LANDLOCK_TCP => NetworkBlock::TcpOnly,
        Err(_) => NetworkBlock::Nothing,
    };
    Ok(SandboxSupport { landlock, network })
}

/// The version of Landlock that does it. Only what changes something is handled, so reading and
/// running need no rules. The scopes keep signals and abstract sockets inside; the guard, which is
/// outside, may still kill what is inside.
fn limit_writing(confinement: &Confinement, temporary: &[PathBuf]) -> Result<u32, RulesetError> {
    let writing = AccessFs::from_write(NEWEST);
    let folders = match confinement {
        Confinement::ReadOnly => &[][..],
        Confinement::WriteBelow(folders) => folders,
    };
    let status = Ruleset::default()
        .handle_access(writing)?
        .handle_access(AccessNet::from_all(NEWEST))?
        .scope(Scope::from_all(NEWEST))?
        .create()?
        .add_rules(path_beneath_rules(DEVICES, writing))?
        .add_rules(path_beneath_rules(temporary, writing))?
        .add_rules(path_beneath_rules(folders, writing))?
        .restrict_self()?;
    Ok(match status.landlock {
        LandlockStatus::Available { effective_abi, .. } => effective_abi as u32,
        LandlockStatus::NotEnabled | LandlockStatus::NotImplemented => 0,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_are_read_whole_or_not_at_all() {
        let read = |text: &str| Order::read(&mut text.split(' ').map(OsString::from));
        let order = read("--confine workspace-write --below /w --temporary /t -- sh -c x").unwrap();
        assert_eq!(order.confinement, Confinement::WriteBelow(vec!["/w".into()]));
        assert_eq!((order.temporary, order.program), (vec![PathBuf::from("/t")], "sh".into()));
        for bad in ["", "-- sh", "--confine read-only", "--confine read-only --", "--confine", "--confine x -- sh"] {
            assert!(read(bad).is_none(), "{bad}");
        }
    }
}
