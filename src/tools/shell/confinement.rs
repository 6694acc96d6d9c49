//! In which sandbox a program of a call runs, and what its output says about that.

use crate::config::Sandbox;
use crate::process::sandbox::{self, Confinement, SandboxSupport};
use crate::tool::ToolContext;
use crate::workspace::Workspace;

/// The agent that plans: it has no business changing anything.
const PLANNING_AGENT: &str = "plan";

/// Which sandbox a call gets, and whether it may run without.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wanted {
    pub sandbox: Sandbox,
    /// Somebody asked for a sandbox, so without one the program must not run.
    pub required: bool,
}

/// The rule: what the configuration says, but at most reading for the agent that plans. The latter
/// is our own idea and not a promise, so it gives way where there is no sandbox; such calls are
/// still subject to approval.
pub fn wanted(agent: &str, configured: Sandbox) -> Wanted {
    let sandbox = if agent == PLANNING_AGENT { Sandbox::ReadOnly } else { configured };
    Wanted { sandbox, required: configured != Sandbox::Off }
}

/// What to start the program with; an error if it must not be started.
pub(crate) async fn of_call(context: &ToolContext) -> Result<Option<Confinement>, String> {
    let wanted = wanted(&context.agent, context.settings.shell.sandbox);
    if wanted.sandbox == Sandbox::Off {
        return Ok(None);
    }
    decide(wanted, sandbox::support().await, &context.workspace)
}

fn decide(wanted: Wanted, support: SandboxSupport, workspace: &Workspace) -> Result<Option<Confinement>, String> {
    if !support.is_usable() {
        return if wanted.required {
            Err(format!(
                "Nothing was run: toolCall.shellCommand.sandbox asks for a sandbox, which is {}.",
                support.describe()
            ))
        } else {
            Ok(None)
        };
    }
    Ok(match wanted.sandbox {
        Sandbox::Off => None,
        Sandbox::ReadOnly => Some(Confinement::ReadOnly),
        Sandbox::WorkspaceWrite => {
            let roots = workspace.roots().iter().map(|root| root.path.clone()).collect();
            Some(Confinement::WriteBelow(roots))
        }
    })
}

/// How programs say that they may not do something, or do not reach anybody.
const COMPLAINTS: [&str; 11] = [
    "permission denied",
    "operation not permitted",
    "read-only file system",
    // A link from or to a place outside.
    "cross-device link",
    "eacces",
    "eperm",
    "permissionerror",
    "could not resolve host",
    "temporary failure in name resolution",
    "name or service not known",
    "network is unreachable",
];

/// A line about the sandbox, if the output looks as if it was in the way.
pub(crate) fn hint(confinement: &Confinement, failed: bool, stdout: &str, stderr: &str) -> Option<String> {
    // What a successful program prints may be about anything.
    let complains = complains(stderr) || failed && complains(stdout);
    let place = match confinement {
        Confinement::ReadOnly => "in $TMPDIR",
        Confinement::WriteBelow(_) => "in the workspace and in $TMPDIR",
    };
    complains.then(|| {
        format!(
            "Note: this ran in a sandbox ({}): it can write only {place}, and has no network. \
             If it needs more, ask the user.",
            confinement.word()
        )
    })
}

fn complains(text: &str) -> bool {
    text.lines().any(|line| {
        let line = line.to_ascii_lowercase();
        COMPLAINTS.iter().any(|complaint| line.contains(complaint))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_agent_that_plans_only_reads() {
        for (agent, configured, sandbox, required) in [
            ("code", Sandbox::Off, Sandbox::Off, false),
            ("code", Sandbox::WorkspaceWrite, Sandbox::WorkspaceWrite, true),
            ("code", Sandbox::ReadOnly, Sandbox::ReadOnly, true),
            ("plan", Sandbox::Off, Sandbox::ReadOnly, false),
            ("plan", Sandbox::WorkspaceWrite, Sandbox::ReadOnly, true),
            ("plan", Sandbox::ReadOnly, Sandbox::ReadOnly, true),
            ("planner", Sandbox::Off, Sandbox::Off, false),
        ] {
            assert_eq!(wanted(agent, configured), Wanted { sandbox, required }, "{agent} {configured:?}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn what_was_asked_for_is_given_or_refused() {
        use crate::process::sandbox::NetworkBlock;
        let full = SandboxSupport { landlock: 7, network: NetworkBlock::All };
        let workspace = Workspace::from_folders(&[("file:///w".to_owned(), None)]).0;
        let decide = |sandbox, required, support| super::decide(Wanted { sandbox, required }, support, &workspace);
        assert_eq!(decide(Sandbox::ReadOnly, true, full), Ok(Some(Confinement::ReadOnly)));
        let below = Confinement::WriteBelow(vec!["/w".into()]);
        assert_eq!(decide(Sandbox::WorkspaceWrite, true, full), Ok(Some(below)));
        assert_eq!(decide(Sandbox::Off, false, full), Ok(None));
        assert_eq!(decide(Sandbox::ReadOnly, false, SandboxSupport::NONE), Ok(None));
        let refusal = decide(Sandbox::ReadOnly, true, SandboxSupport::NONE).unwrap_err();
        assert!(refusal.contains("Nothing was run") && refusal.contains("Landlock"), "{refusal}");
    }

    #[test]
    fn hints_come_only_when_they_may_help() {
        let hint = |failed, stdout, stderr| hint(&Confinement::ReadOnly, failed, stdout, stderr).is_some();
        assert!(hint(true, "", "touch: cannot touch 'x': Permission denied"));
        assert!(hint(false, "", "bash: x: Read-only file system"));
        assert!(hint(true, "PermissionError: [Errno 1] Operation not permitted", ""));
        assert!(hint(true, "", "curl: (6) Could not resolve host: example.org"));
        assert!(hint(true, "npm ERR! code EACCES", ""));
        assert!(!hint(false, "src/lib.rs: \"Permission denied\"", ""));
        assert!(!hint(true, "assertion failed", "exit"));
    }
}
