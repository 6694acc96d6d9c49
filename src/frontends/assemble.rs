//! From a process's surroundings to an engine: the part of a start that every front end shares.

use std::path::PathBuf;
use std::sync::Arc;

use serde_json::Value;

use crate::config::load::{self, Loaded, ProcessEnvironment, Sources};
use crate::engine::{Engine, EventSink, Options, Pace};
use crate::providers::{Environment, Registry, Wiring};
use crate::store::Store;

/// What a front end needs to know of the process it runs in.
#[derive(Debug, Clone)]
pub struct Surroundings {
    pub environment: ProcessEnvironment,
    pub config_file: Option<PathBuf>,
}

impl Surroundings {
    /// Reads the configuration. `options` is what a client sent along when it introduced itself.
    pub(super) fn configuration(&self, options: Option<Value>) -> Loaded {
        load::load(Sources {
            initialization_options: options,
            eca_config: self.environment.eca_config.clone(),
            config_file: self.config_file.clone(),
            dirs: self.environment.dirs.clone(),
            env: &|name| load::process_variable(name),
        })
    }

    /// Builds the engine; no network, no database. What cannot be used is added to the problems.
    pub(super) fn engine(&self, loaded: &mut Loaded, sink: Arc<dyn EventSink>, pace: Pace) -> Engine {
        let dirs = &self.environment.dirs;
        let config_path = self.config_file.clone().unwrap_or_else(|| dirs.config.join("config.json"));
        let seen = Environment { vars: self.environment.vars.clone(), config_path };
        let (registry, problems) = Registry::new(&loaded.config, seen, Wiring::standard(&loaded.config));
        loaded.problems.extend(problems);
        let store = Store::at(dirs.data.join("chats.db"));
        Engine::new(Options { registry, store, chat: loaded.config.chat.clone(), sink, pace })
    }
}
