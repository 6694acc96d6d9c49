//! System calls that Landlock has no say in: sockets, and in a read-only sandbox also the changing
//! of modes, owners and attributes.

use crate::Confinement;

/// Confines this process; an error says that this system cannot.
pub(crate) fn apply(confinement: &Confinement) -> Result<(), String> {
    imp::apply(confinement)
}

/// The architectures for which the filter can be written.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64", target_arch = "riscv64"))]
mod imp {
    use std::collections::BTreeMap;

    use seccompiler::{
        BackendError, BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
        SeccompRule, TargetArch, apply_filter,
    };

    use crate::Confinement;

    #[cfg(target_arch = "x86_64")]
    const ARCHITECTURE: TargetArch = TargetArch::x86_64;
    #[cfg(target_arch = "aarch64")]
    const ARCHITECTURE: TargetArch = TargetArch::aarch64;
    #[cfg(target_arch = "riscv64")]
    const ARCHITECTURE: TargetArch = TargetArch::riscv64;

    /// Calls that were added after the numbers became the same everywhere.
    const FCHMODAT2: i64 = 452;
    const SETXATTRAT: i64 = 463;
    const REMOVEXATTRAT: i64 = 466;
    const FILE_SETATTR: i64 = 469;

    /// Through a ring, sockets could be made without the call that is refused.
    const RINGS: [i64; 3] = [libc::SYS_io_uring_setup, libc::SYS_io_uring_enter, libc::SYS_io_uring_register];

    /// Connecting to a local server, say that of a container, would be a way around the sandbox.
    const CHANGES: [i64; 15] = [
        libc::SYS_connect,
        libc::SYS_fchmod,
        libc::SYS_fchmodat,
        FCHMODAT2,
        libc::SYS_fchown,
        libc::SYS_fchownat,
        libc::SYS_setxattr,
        libc::SYS_lsetxattr,
        libc::SYS_fsetxattr,
        SETXATTRAT,
        libc::SYS_removexattr,
        libc::SYS_lremovexattr,
        libc::SYS_fremovexattr,
        REMOVEXATTRAT,
        FILE_SETATTR,
    ];

    /// Newer architectures have only the general forms.
    #[cfg(target_arch = "x86_64")]
    const OLD_CHANGES: [i64; 3] = [libc::SYS_chmod, libc::SYS_chown, libc::SYS_lchown];
    #[cfg(not(target_arch = "x86_64"))]
    const OLD_CHANGES: [i64; 0] = [];

    pub(super) fn apply(confinement: &Confinement) -> Result<(), String> {
        let program = program(confinement).map_err(|error| error.to_string())?;
        apply_filter(&program).map_err(|error| error.to_string())
    }

    /// Refuses with the error that programs know from missing rights. A program for another
    /// architecture, whose calls have other numbers, is killed.
    fn program(confinement: &Confinement) -> Result<BpfProgram, BackendError> {
        let not_local = SeccompCondition::new(
            0,
            SeccompCmpArgLen::Dword,
            SeccompCmpOp::Ne,
            u64::from(libc::AF_UNIX.unsigned_abs()),
        )?;
        let mut rules = BTreeMap::from([(libc::SYS_socket, vec![SeccompRule::new(vec![not_local])?])]);
        rules.extend(RINGS.map(|call| (call, Vec::new())));
        if *confinement == Confinement::ReadOnly {
            rules.extend(CHANGES.map(|call| (call, Vec::new())));
            rules.extend(OLD_CHANGES.map(|call| (call, Vec::new())));
        }
        #[cfg(target_arch = "x86_64")]
        {
            /// The same calls once more for programs with short pointers.
            const X32: i64 = 0x4000_0000;
            let again: Vec<_> = rules.iter().map(|(call, rules)| (call | X32, rules.clone())).collect();
            rules.extend(again);
        }
        let refused = SeccompAction::Errno(libc::EPERM.unsigned_abs());
        SeccompFilter::new(rules, SeccompAction::Allow, refused, ARCHITECTURE)?.try_into()
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn filters_can_be_built() {
            let strict = program(&Confinement::ReadOnly).unwrap();
            let loose = program(&Confinement::WriteBelow(Vec::new())).unwrap();
            assert!(strict.len() > loose.len());
        }
    }
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64", target_arch = "riscv64")))]
mod imp {
    use crate::Confinement;

    pub(super) fn apply(_: &Confinement) -> Result<(), String> {
        Err("system calls cannot be filtered on this architecture".to_owned())
    }
}
