//! Reads the sources of configuration, and the environment: the one place that does.
//!
//! [`load`] is a function of its sources and of the files they name; calling it again after a
//! change gives the new configuration. Provider ids are kept exactly as they are written: `myLLM`,
//! `my-llm` and `my_llm` are three providers.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::Read;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::document::Document;
use super::interpolate::{self, Context};
use super::{Config, ConfigProblem, Dirs, decode};

/// A larger configuration is a mistake.
const MAX_CONFIG_BYTES: u64 = 1024 * 1024;

const OPTIONS_SOURCE: &str = "initializationOptions";
const ENVIRONMENT_SOURCE: &str = "ECA_CONFIG";

/// Everything that may say something about the configuration, lowest precedence first.
pub struct Sources<'a> {
    pub initialization_options: Option<Value>,
    /// The text of `ECA_CONFIG`.
    pub eca_config: Option<String>,
    /// `--config-file`; replaces the global file.
    pub config_file: Option<PathBuf>,
    pub dirs: Dirs,
    /// Looks up an environment variable; [`process_variable`] outside tests.
    pub env: &'a dyn Fn(&str) -> Option<String>,
}

/// What [`load`] found.
#[derive(Debug, Clone, PartialEq)]
pub struct Loaded {
    pub config: Config,
    pub problems: Vec<ConfigProblem>,
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
pub fn load(sources: Sources<'_>) -> Loaded {
    let mut config = Config::default();
    let mut problems = Vec::new();
    let mut pure = false;
    // Clients may send any JSON here; only an object can be configuration.
    if let Some(options) = sources.initialization_options.clone().filter(Value::is_object) {
        pure =
            ["pureConfig", "pure-config", "pure_config"].iter().any(|key| options.get(key) == Some(&Value::Bool(true)));
        match Document::from_value(OPTIONS_SOURCE, options) {
            Ok(document) => decode::apply(&mut config, &document, true, &mut problems),
            Err(problem) => problems.push(problem),
        }
    }
    if !pure {
        let home = home_from(&|name| (sources.env)(name).map(OsString::from));
        if let Some(text) = sources.eca_config.clone() {
            // Relative files have to be relative to something that is not the working directory,
            // which editors choose at will.
            let directory = &sources.dirs.config;
            apply_text(&mut config, ENVIRONMENT_SOURCE, text, directory, home.as_deref(), &sources, &mut problems);
        }
        let (file, required) = match &sources.config_file {
            Some(file) => (file.clone(), true),
            None => (sources.dirs.config.join("config.json"), false),
        };
        let source = file.display().to_string();
        match read_config_file(&file, required) {
            Ok(Some(text)) => {
                let directory = file.parent().unwrap_or(Path::new(""));
                apply_text(&mut config, &source, text, directory, home.as_deref(), &sources, &mut problems);
            }
            Ok(None) => {}
            Err(message) => problems.push(ConfigProblem { source, line: None, message }),
        }
    }
    Loaded { config, problems }
}

/// Reads what the rest of the program needs to know of the environment.
pub fn process_environment() -> ProcessEnvironment {
    environment_from(std::env::vars_os(), std::env::home_dir())
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

impl std::fmt::Debug for ProcessEnvironment {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ProcessEnvironment")
            .field("dirs", &self.dirs)
            .field("vars", &self.vars.keys().collect::<Vec<_>>())
            .finish_non_exhaustive()
    }
}

fn apply_text(
    config: &mut Config,
    source: &str,
    text: String,
    directory: &Path,
    home: Option<&Path>,
    sources: &Sources<'_>,
    problems: &mut Vec<ConfigProblem>,
) {
    let mut document = match Document::parse(source, text) {
        Ok(document) => document,
        Err(problem) => return problems.push(problem),
    };
    let mut values = Value::Object(std::mem::take(&mut document.values));
    let context = Context { env: sources.env, directory, home };
    for (path, message) in interpolate::expand_value(&mut values, &context) {
        problems.push(document.problem(&path, &message));
    }
    if let Value::Object(values) = values {
        document.values = values;
    }
    decode::apply(config, &document, false, problems);
}

/// `None` when the file is not there and does not have to be.
fn read_config_file(file: &Path, required: bool) -> Result<Option<String>, String> {
    let unreadable = |error: std::io::Error| format!("cannot be read ({}); the file is ignored", error.kind());
    let opened = match std::fs::File::open(file) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound && !required => return Ok(None),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return Err("the configuration file does not exist".to_owned());
        }
        other => other.map_err(unreadable)?,
    };
    let mut bytes = Vec::new();
    opened.take(MAX_CONFIG_BYTES + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    if bytes.len() as u64 > MAX_CONFIG_BYTES {
        return Err("larger than 1 MiB; the file is ignored".to_owned());
    }
    String::from_utf8(bytes).map(Some).map_err(|_| "not UTF-8 text; the file is ignored".to_owned())
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
