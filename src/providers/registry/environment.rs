//! What the caller read from the process environment and the disk; nothing here reads it itself.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use crate::config::Secret;
use crate::providers::oauth::Sessions;

/// Looks something up by its name.
pub type Lookup<T> = Arc<dyn Fn(&str) -> Option<T> + Send + Sync>;

#[derive(Clone, Default)]
pub struct Environment {
    /// The variables that matter here: `*_API_KEY` and `*_API_URL`.
    pub vars: BTreeMap<String, String>,
    /// For variables with other names: Amazon's, and those that a configuration names.
    pub variable: Option<Lookup<String>>,
    /// Keys entered by a login, by provider id.
    pub logins: BTreeMap<String, Secret>,
    /// Logins that consist of tokens.
    pub sessions: Sessions,
    /// Finds the key for a `keyRc`.
    pub netrc: Option<Lookup<Secret>>,
    /// The texts of Amazon's two files, `credentials` and `config`; asked for only by its dialect.
    pub aws_file: Option<Lookup<String>>,
    /// The user's configuration file, shown by the guide whether or not it exists.
    pub config_path: PathBuf,
    /// Where the catalogue of models is kept; nowhere when absent.
    pub cache_dir: Option<PathBuf>,
}

impl Environment {
    /// A variable that says something.
    pub fn get(&self, name: &str) -> Option<String> {
        // All variables of these names are in the map; one that is not there is not set.
        let is_mapped = name.ends_with("_API_KEY") || name.ends_with("_API_URL");
        let asked = || self.variable.as_ref().filter(|_| !is_mapped).and_then(|variable| variable(name));
        let value = self.vars.get(name).cloned().or_else(asked)?;
        let value = value.trim();
        (!value.is_empty()).then(|| value.to_owned())
    }
}

impl Environment {
    pub(super) fn aws(&self, file: &str) -> String {
        self.aws_file.as_ref().and_then(|read| read(file)).unwrap_or_default()
    }
}

impl std::fmt::Debug for Environment {
    // The values are keys; only the names may be seen.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names: Vec<&String> = self.vars.keys().collect();
        let logins: Vec<&String> = self.logins.keys().collect();
        f.debug_struct("Environment")
            .field("vars", &names)
            .field("logins", &logins)
            .field("config_path", &self.config_path)
            .finish_non_exhaustive()
    }
}
