//! Reads the sources of configuration, and the environment: the one place that does.
//!
//! [`load`] is a function of its sources and of the files they name; calling it again after a
//! change gives the new configuration. It runs no program and asks no network. Provider ids are
//! kept exactly as they are written: `myLLM`, `my-llm` and `my_llm` are three providers.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;

use serde_json::{Map, Value};

use super::commands::{CommandCall, Memory};
use super::gather::Gathering;
use super::trust::Withheld;
use super::{Config, ConfigProblem, Dirs, Secret, files, netrc};

const ENVIRONMENT_SOURCE: &str = "ECA_CONFIG";
const MAX_AWS_BYTES: u64 = 1024 * 1024;

/// Everything that may say something about the configuration, lowest precedence first.
pub struct Sources<'a> {
    pub initialization_options: Option<Value>,
    /// The text of `ECA_CONFIG`.
    pub eca_config: Option<String>,
    /// `--config-file`; replaces the global file and those of the workspace.
    pub config_file: Option<PathBuf>,
    /// Each may have a `.eca/config.json`, which is not trusted by itself.
    pub workspace_roots: Vec<PathBuf>,
    /// The hash that the user trusts for a file.
    pub trusted: BTreeMap<PathBuf, String>,
    pub dirs: Dirs,
    /// Looks up an environment variable; [`process_variable`] outside tests.
    pub env: &'a dyn Fn(&str) -> Option<String>,
    /// What earlier loads found out.
    pub memory: &'a Memory,
}

/// What [`load`] found.
#[derive(Clone, Default, PartialEq)]
pub struct Loaded {
    pub config: Config,
    pub problems: Vec<ConfigProblem>,
    /// The workspace files that are not trusted.
    pub withheld: Vec<Withheld>,
    /// Every command that the configuration names. A string with one that the memory does not know
    /// counts as not written.
    pub commands: Vec<CommandCall>,
    /// Every file whose change would change the result, whether it exists or not.
    pub files: Vec<PathBuf>,
    /// The text of each file that could be parsed.
    pub(super) texts: BTreeMap<PathBuf, String>,
    /// What each source says as it is written, in the order of precedence. May contain secrets.
    pub(super) written: Vec<(String, Map<String, Value>)>,
}

/// What this process was started with.
#[derive(Clone, PartialEq, Eq)]
pub struct ProcessEnvironment {
    pub dirs: Dirs,
    /// The variables that are not empty and named `*_API_KEY`, `*_API_URL` or `ECA_*`, without
    /// `ECA_CONFIG`.
    pub vars: BTreeMap<String, String>,
    /// The text of `ECA_CONFIG`.
    pub eca_config: Option<String>,
}

/// Merges the sources; what cannot be used is reported and left out.
pub fn load(sources: &Sources<'_>) -> Loaded {
    let home = home_from(&|name| (sources.env)(name).map(OsString::from));
    let mut gathering = Gathering::new(sources, home);
    if gathering.options() != Purity::Pure {
        if let Some(text) = &sources.eca_config {
            // Relative files have to be relative to something that is not the working directory,
            // which editors choose at will.
            gathering.text(ENVIRONMENT_SOURCE, text, &sources.dirs.config);
        }
        match &sources.config_file {
            Some(file) => gathering.named_file(file),
            None => {
                gathering.own_file(&sources.dirs.config.join("config.json"));
                gathering.workspace_files();
            }
        }
        gathering.extra_files();
    }
    gathering.finish()
}

/// Whether a client wants no other source than itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Purity {
    Pure,
    Mixed,
}

/// The key that the user's netrc file has for `[login@]machine[:port]`.
pub fn netrc_key(machine: &str) -> Option<Secret> {
    let wanted = netrc::Wanted::parse(machine)?;
    let home = home_from(&|name| std::env::var_os(name));
    let found = netrc::look_up(&wanted, None, home.as_deref());
    if let Some(warning) = found.warning {
        tracing::warn!(warning, "netrc");
    }
    found.password.ok().map(Secret::new)
}

/// The text of a file that Amazon's own tools keep: `credentials` or `config`.
pub fn aws_file(name: &str) -> Option<String> {
    let variable = if name == "credentials" { "AWS_SHARED_CREDENTIALS_FILE" } else { "AWS_CONFIG_FILE" };
    let named = std::env::var_os(variable).map(PathBuf::from).filter(|path| path.is_absolute());
    let own = || home_from(&|name| std::env::var_os(name)).map(|home| home.join(".aws").join(name));
    files::read_text(&named.or_else(own)?, MAX_AWS_BYTES).ok()
}

/// What `~` stands for in configuration files.
pub fn process_home() -> Option<PathBuf> {
    home_from(&|name| std::env::var_os(name))
}

/// Reads what the rest of the program needs to know of the environment.
pub fn process_environment() -> ProcessEnvironment {
    environment_from(std::env::vars_os(), std::env::home_dir())
}

/// The user's home folder, if there is one.
pub fn home() -> Option<PathBuf> {
    home_from(&|name| std::env::var_os(name)).or_else(std::env::home_dir)
}

/// Where this process was started, for contracts in which a client cannot say where it works.
pub fn current_directory() -> Option<PathBuf> {
    std::env::current_dir().ok()
}

/// The program that this process runs; empty when the system does not tell.
pub fn executable() -> String {
    std::env::current_exe().map(|path| path.display().to_string()).unwrap_or_default()
}

/// One environment variable of this process.
pub fn process_variable(name: &str) -> Option<String> {
    // The lookup panics on such names, and an interpolation can contain anything.
    if name.is_empty() || name.contains(['=', '\0']) {
        return None;
    }
    std::env::var_os(name)?.into_string().ok()
}

impl std::fmt::Debug for Sources<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The texts may contain keys.
        f.debug_struct("Sources")
            .field("config_file", &self.config_file)
            .field("dirs", &self.dirs)
            .finish_non_exhaustive()
    }
}

impl std::fmt::Debug for Loaded {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Loaded")
            .field("config", &self.config)
            .field("problems", &self.problems)
            .field("withheld", &self.withheld)
            .finish_non_exhaustive()
    }
}

impl std::fmt::Debug for ProcessEnvironment {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ProcessEnvironment")
            .field("dirs", &self.dirs)
            .field("vars", &self.vars.keys().collect::<Vec<_>>())
            .finish_non_exhaustive()
    }
}

fn environment_from(
    all: impl Iterator<Item = (OsString, OsString)>,
    home_of_account: Option<PathBuf>,
) -> ProcessEnvironment {
    let all: BTreeMap<OsString, OsString> = all.collect();
    let get = |name: &str| all.get(std::ffi::OsStr::new(name)).cloned();
    // Without any home there is nothing to read; a path that does not exist says so everywhere,
    // while a shared temporary directory would let others write our configuration.
    let home = home_from(&get).or(home_of_account).unwrap_or_else(|| PathBuf::from("/nonexistent"));
    // A relative path is invalid by the XDG specification and to be ignored.
    let base = |name: &str, below_home: &str| {
        let named = get(name).map(PathBuf::from).filter(|path| path.is_absolute());
        named.unwrap_or_else(|| home.join(below_home)).join("eca")
    };
    let dirs = Dirs {
        config: base("XDG_CONFIG_HOME", ".config"),
        data: base("XDG_DATA_HOME", ".local/share"),
        cache: base("XDG_CACHE_HOME", ".cache"),
    };
    let wanted = |name: &str| {
        (name.ends_with("_API_KEY") || name.ends_with("_API_URL") || name.starts_with("ECA_"))
            && name != ENVIRONMENT_SOURCE
    };
    let eca_config =
        get(ENVIRONMENT_SOURCE).and_then(|text| text.into_string().ok()).filter(|text| !text.trim().is_empty());
    let vars = all
        .into_iter()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .filter(|(name, value)| wanted(name) && !value.trim().is_empty())
        .collect();
    ProcessEnvironment { dirs, vars, eca_config }
}

fn home_from(get: &dyn Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    let names: &[&str] = if cfg!(windows) { &["HOME", "USERPROFILE"] } else { &["HOME"] };
    names.iter().find_map(|name| get(name).map(PathBuf::from).filter(|path| path.is_absolute()))
}

#[cfg(test)]
mod tests;
