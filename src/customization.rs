//! What users write to customise the assistant: `AGENTS.md`, rules, skills, commands, agents,
//! hooks, and the prompts that come of them.
//!
//! [`Customization::load`] reads all of it at once; the result does not change and is shared.
//! Whoever holds one asks [`Customization::is_stale`] between two prompts and loads anew. A file of
//! a workspace is text from a stranger: it may speak, but runs and reads nothing until the user
//! trusts its content.

pub mod agents;
pub mod hooks;
pub mod prompt;
pub mod template;

mod agents_md;
mod arguments;
mod commands;
mod fields;
mod front_matter;
mod pattern;
mod read;
mod rules;
mod skills;
mod stamp;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use crate::base::task;
use crate::config::commands::{CommandCall, Memory};
use crate::config::trust::Withheld;
use crate::config::{ConfigProblem, CustomizationConfig};

pub use agents::MarkdownAgent;
pub use agents_md::ContextFile;
pub use commands::{Argument, Commands, CustomCommand, ExpandError};
pub use read::Origin;
pub use rules::{Audience, Paths, Rule, RuleText, Rules, Scope};
pub use skills::{LoadedSkill, Skill, Skills};

/// Finds a value by its name.
pub type Lookup = dyn Fn(&str) -> Option<String> + Send + Sync;

/// Where everything is looked for.
#[derive(Clone)]
pub struct Sources {
    /// The user's own folder.
    pub config_dir: PathBuf,
    /// The workspace folders, absolute.
    pub roots: Vec<PathBuf>,
    pub settings: CustomizationConfig,
    /// The hash that the user trusts for a file.
    pub trusted: BTreeMap<PathBuf, String>,
    /// Looks up an environment variable.
    pub env: Arc<Lookup>,
    /// Whether nothing of the user's own counts, which test suites of clients ask for.
    pub isolated: bool,
}

impl Sources {
    fn home(&self) -> Option<PathBuf> {
        let names: &[&str] = if cfg!(windows) { &["HOME", "USERPROFILE"] } else { &["HOME"] };
        names.iter().find_map(|name| (self.env)(name).map(PathBuf::from).filter(|path| path.is_absolute()))
    }
}

impl std::fmt::Debug for Sources {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sources")
            .field("config_dir", &self.config_dir)
            .field("roots", &self.roots)
            .field("settings", &self.settings)
            .finish_non_exhaustive()
    }
}

/// Everything that was found.
#[derive(Debug, Clone, Default)]
pub struct Customization {
    /// `AGENTS.md` and its like, with what they include.
    pub contexts: Vec<ContextFile>,
    pub rules: Rules,
    pub skills: Skills,
    pub commands: Commands,
    /// For [`agents::merge`].
    pub agents: Vec<MarkdownAgent>,
    withheld: Vec<Withheld>,
    calls: Vec<CommandCall>,
    stamp: stamp::Stamp,
}

impl Customization {
    /// Reads everything, so call it where blocking is allowed. A file whose commands have not run
    /// yet is left out; [`Customization::load_complete`] runs them.
    pub fn load(sources: &Arc<Sources>, memory: &Memory) -> (Self, Vec<ConfigProblem>) {
        let mut reader = read::Reader::new(sources, memory);
        let contexts = agents_md::load(&mut reader);
        let rules = Rules::load(&mut reader);
        let skills = Skills::load(&mut reader, sources);
        let commands = Commands::load(&mut reader);
        let agents = agents::load(&mut reader);
        let calls = reader.calls();
        let read::Reader { problems, withheld, stamp, .. } = reader;
        (Self { contexts, rules, skills, commands, agents, withheld, calls, stamp }, problems)
    }

    /// Reads everything and runs the commands in it that `memory` does not know.
    pub async fn load_complete(sources: Arc<Sources>, memory: &mut Memory) -> (Arc<Self>, Vec<ConfigProblem>) {
        let (loaded, problems) = Self::load_beside(&sources, memory).await;
        let missing = memory.missing(&loaded.calls);
        memory.keep_only(&loaded.calls);
        if missing.is_empty() {
            return (Arc::new(loaded), problems);
        }
        memory.run(missing).await;
        let (loaded, problems) = Self::load_beside(&sources, memory).await;
        (Arc::new(loaded), problems)
    }

    async fn load_beside(sources: &Arc<Sources>, memory: &Memory) -> (Self, Vec<ConfigProblem>) {
        let (sources, memory) = (sources.clone(), memory.clone());
        task::blocking(move || Self::load(&sources, &memory)).await.unwrap_or_else(|error| {
            tracing::error!(%error, "customization could not be read");
            Default::default()
        })
    }

    /// The files of the workspace that are not trusted, and what of them does not count therefore.
    pub fn withheld(&self) -> &[Withheld] {
        &self.withheld
    }

    /// Every command in the files that may run them.
    pub fn calls(&self) -> &[CommandCall] {
        &self.calls
    }

    /// Whether a file or folder that was looked at has changed since. Asks the file system, so call
    /// it where blocking is allowed.
    pub fn is_stale(&self) -> bool {
        self.stamp.is_stale()
    }
}

#[cfg(test)]
mod tests;
