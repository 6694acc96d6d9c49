//! From a process's surroundings to an engine: the part of a start that every front end shares.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::Value;

use crate::base::task;
use crate::config::commands::Memory;
use crate::config::imported_keys::imported_api_keys;
use crate::config::load::{self, Loaded, ProcessEnvironment, Sources};
use crate::config::trust::Withheld;
use crate::config::{ConfigProblem, Dirs, Secret};
use crate::customization::hooks::Setting;
use crate::customization::{self, Customization};
use crate::engine::{Engine, EventSink, FindSources, Options, Pace};
use crate::host::Host;
use crate::mcp::{self, ServerEvent, Servers};
use crate::providers::oauth::Sessions;
use crate::providers::{Environment, Registry, Wiring};
use crate::state::{Logins, Secrets, Trust};
use crate::store::Store;
use crate::workspace::Workspace;

/// What a command prints may name files that name commands; more rounds than this are a loop.
const MOST_ROUNDS: usize = 4;

/// What a front end needs to know of the process it runs in.
#[derive(Debug, Clone)]
pub struct Surroundings {
    pub environment: ProcessEnvironment,
    pub config_file: Option<PathBuf>,
}

/// What a load of the configuration depends on besides the surroundings.
#[derive(Debug, Clone, Default)]
pub(super) struct Wishes {
    /// What a client sent along when it introduced itself.
    pub(super) options: Option<Value>,
    pub(super) workspace_roots: Vec<PathBuf>,
}

impl Surroundings {
    /// Reads the configuration as far as it is known without running a command.
    pub(super) fn configuration(&self, wishes: Wishes, memory: &Memory) -> Loaded {
        load::load(&Sources {
            initialization_options: wishes.options,
            eca_config: self.environment.eca_config.clone(),
            config_file: self.config_file.clone(),
            workspace_roots: wishes.workspace_roots,
            trusted: self.trust().trusted(),
            dirs: self.environment.dirs.clone(),
            env: &load::process_variable,
            memory,
        })
    }

    /// Reads the configuration and runs the commands in it that have not run yet.
    pub(super) async fn complete_configuration(&self, wishes: &Wishes, memory: &mut Memory) -> Loaded {
        let mut round = 0;
        loop {
            let (here, wanted, known) = (self.clone(), wishes.clone(), memory.clone());
            let reading = task::blocking(move || here.configuration(wanted, &known));
            let loaded = reading.await.unwrap_or_default();
            round += 1;
            let missing = memory.missing(&loaded.commands);
            if missing.is_empty() || round == MOST_ROUNDS {
                memory.keep(&loaded);
                return loaded;
            }
            memory.run(missing).await;
        }
    }

    /// Builds what knows the providers; no network. What cannot be used is added to the problems.
    pub(super) fn registry(&self, loaded: &mut Loaded) -> Registry {
        let dirs = &self.environment.dirs;
        let seen = Environment {
            vars: self.environment.vars.clone(),
            variable: Some(Arc::new(load::process_variable)),
            netrc: Some(Arc::new(load::netrc_key)),
            aws_file: Some(Arc::new(load::aws_file)),
            config_path: self.own_file(),
            cache_dir: Some(dirs.cache.clone()),
            logins: self.logins(loaded),
            sessions: self.sessions(loaded),
        };
        let wiring = Wiring::standard(&loaded.config, &seen);
        let (registry, problems) = Registry::new(&loaded.config, seen, wiring);
        loaded.problems.extend(problems);
        registry
    }

    /// Builds the engine; no network, no database. What cannot be used is added to the problems.
    pub(super) fn engine(
        &self,
        loaded: &mut Loaded,
        sink: Arc<dyn EventSink>,
        host: Arc<dyn Host>,
        servers: Servers,
        pace: Pace,
    ) -> Engine {
        self.engine_with(loaded, sink, host, servers, pace, self.store())
    }

    /// The same with a history that is open already.
    pub(super) fn engine_with(
        &self,
        loaded: &mut Loaded,
        sink: Arc<dyn EventSink>,
        host: Arc<dyn Host>,
        servers: Servers,
        pace: Pace,
        store: Store,
    ) -> Engine {
        let registry = self.registry(loaded);
        let loaded = Arc::new(loaded.clone());
        let outputs = Some(self.environment.dirs.cache.join("toolCallOutputs"));
        let secrets = self.secrets();
        Engine::new(Options {
            registry,
            store,
            loaded,
            secrets,
            sink,
            host,
            servers,
            outputs,
            find_sources: self.find_sources(),
            environment: customization::prompt::Environment::from_variables(&load::process_variable),
            public_places: vec![self.environment.dirs.cache.clone(), self.environment.dirs.data.clone()],
            hook_setting: self.hook_setting(),
            pace,
        })
    }

    /// The history of this user; opened when it is first needed.
    pub(super) fn store(&self) -> Store {
        Store::at(history_file(&self.environment.dirs))
    }

    /// Where rules, skills, commands and agents are, and what of them the user trusts.
    fn find_sources(&self) -> FindSources {
        let here = self.clone();
        Arc::new(move |workspace, config| customization::Sources {
            config_dir: here.environment.dirs.config.clone(),
            roots: workspace.roots().iter().map(|root| root.path.clone()).collect(),
            settings: config.customization.clone(),
            trusted: here.trust().trusted(),
            env: Arc::new(load::process_variable),
            isolated: config.customization.isolated,
        })
    }

    /// The rules, skills, commands and agents of a workspace that are not trusted, and why it matters.
    pub(super) fn withheld_texts(&self, root: &Path, loaded: &Loaded) -> Vec<Withheld> {
        let folder = root.to_str().map(|path| (path.to_owned(), None));
        let (workspace, _) = Workspace::from_folders(&folder.into_iter().collect::<Vec<_>>());
        let sources = Arc::new((self.find_sources())(&workspace, &loaded.config));
        let (found, _) = Customization::load(&sources, &Memory::default());
        found.withheld().to_vec()
    }

    fn hook_setting(&self) -> Setting {
        Setting {
            workspaces: Vec::new(),
            db_cache_path: history_file(&self.environment.dirs),
            session_id: uuid::Uuid::new_v4().to_string(),
            eca_executable: load::executable(),
            config_dir: self.environment.dirs.config.clone(),
            home: load::home(),
        }
    }

    /// Builds what runs MCP servers; none starts before it is configured.
    pub(super) fn servers(&self, can_ask: bool, events: Arc<dyn Fn(ServerEvent) + Send + Sync>) -> Servers {
        Servers::new(mcp::Options { data: self.environment.dirs.data.clone(), can_ask, events })
    }

    /// The file that the user writes: named on the command line, or the usual one.
    pub(super) fn own_file(&self) -> PathBuf {
        self.config_file.clone().unwrap_or_else(|| self.environment.dirs.config.join("config.json"))
    }

    /// The keys that were entered by a login, here or in the public server; ours come first.
    fn logins(&self, loaded: &mut Loaded) -> BTreeMap<String, Secret> {
        if loaded.config.customization.isolated {
            return BTreeMap::new();
        }
        let mut keys = imported_api_keys(&self.environment.dirs.cache);
        match self.secrets().api_keys() {
            Ok(own) => keys.extend(own),
            Err(error) => {
                let source = self.secrets().file().display().to_string();
                loaded.problems.push(ConfigProblem { source, line: None, message: error.to_string() });
            }
        }
        keys
    }

    /// The logins with tokens; what a client isolated itself from is left alone, and nothing kept.
    fn sessions(&self, loaded: &mut Loaded) -> Sessions {
        if loaded.config.customization.isolated {
            return Sessions::default();
        }
        let logins = Logins::of_providers(&self.environment.dirs.data);
        let source = logins.file().display().to_string();
        Sessions::kept_in(logins).unwrap_or_else(|error| {
            loaded.problems.push(ConfigProblem { source, line: None, message: error.to_string() });
            Sessions::default()
        })
    }

    fn secrets(&self) -> Secrets {
        Secrets::in_directory(&self.environment.dirs.data)
    }

    /// Which workspace files the user trusts.
    pub(super) fn trust(&self) -> Trust {
        Trust::in_directory(&self.environment.dirs.data)
    }

    /// Every file whose change would change the configuration.
    pub(super) fn files_to_watch(&self, loaded: &Loaded) -> Vec<PathBuf> {
        let mut files = loaded.files.clone();
        files.push(self.trust().file().to_owned());
        files
    }
}

/// The folder that a program was started in, for contracts in which nobody names another one.
pub(super) fn workspace_in(folder: Option<&Path>) -> Arc<Workspace> {
    let folders: Vec<_> = folder.and_then(Path::to_str).map(|path| (path.to_owned(), None)).into_iter().collect();
    let (workspace, warnings) = Workspace::from_folders(&folders);
    for warning in warnings {
        tracing::warn!(%warning, "the current folder is not used");
    }
    Arc::new(workspace)
}

/// Where the chats are kept.
pub(super) fn history_file(dirs: &Dirs) -> PathBuf {
    dirs.data.join("chats.db")
}

/// What the user should know about a workspace file that is not trusted.
pub(super) fn withheld_text(withheld: &Withheld) -> String {
    let keys: Vec<String> = withheld.keys.iter().map(|key| format!("{} (could {})", key.key, key.could)).collect();
    let file = withheld.file.display();
    format!("{file} comes with this workspace and is not trusted yet. Not used: {}.", keys.join(", "))
}

/// How to trust it, in the words of a shell.
pub(super) fn trust_command(withheld: &Withheld) -> String {
    match &withheld.hash {
        Some(_) => format!("To trust it as it is now, run: eca trust \"{}\"", withheld.file.display()),
        None => "It includes too many files to be trusted.".to_owned(),
    }
}
