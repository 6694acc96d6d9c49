//! What the user allowed for the rest of the session.

use std::collections::BTreeSet;

use super::shell::Parsed;
use crate::tool::{Details, ShellUnit, ToolSpec};

/// More consents than anybody gives by hand; later ones are asked for again.
const MOST: usize = 2_000;

/// Consents that hold until the chat or the server ends, whichever the configuration says.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Remembered {
    /// By their full names.
    tools: BTreeSet<String>,
    /// The keys of commands, whichever tool runs them.
    commands: BTreeSet<String>,
}

impl Remembered {
    /// Remembers a call that the user allowed and does not want to be asked about again. Of a command
    /// line it is the commands that are remembered, as far as they have a key.
    pub fn remember(&mut self, spec: &ToolSpec, details: Option<&Details>) {
        if self.tools.len() + self.commands.len() >= MOST {
            return;
        }
        match details {
            Some(Details::ShellCommand(shell)) => {
                self.commands.extend(shell.commands.iter().filter_map(|unit| unit.approval_key.clone()));
            }
            _ => drop(self.tools.insert(spec.full_name())),
        }
    }

    pub(super) fn covers_tool(&self, spec: &ToolSpec) -> bool {
        self.tools.contains(&spec.full_name())
    }

    /// Whether every command is remembered, and nothing else happens.
    pub(super) fn covers_commands(&self, parsed: &Parsed) -> bool {
        let mut units = parsed.units.iter().filter(|unit| !unit.is_transparent).peekable();
        parsed.doubt.is_none()
            && parsed.writes.is_empty()
            && units.peek().is_some()
            && units.all(|unit| unit.key.as_ref().is_some_and(|key| self.commands.contains(key)))
    }

    /// The commands as they are shown to the user.
    pub(super) fn units(&self, parsed: &Parsed) -> Vec<ShellUnit> {
        let shown = |unit: &super::shell::Unit| ShellUnit {
            command: unit.command.clone(),
            args: unit.args.clone(),
            approval_key: unit.key.clone(),
            remembered: unit.key.as_ref().is_some_and(|key| self.commands.contains(key)),
        };
        parsed.units.iter().map(shown).collect()
    }
}
