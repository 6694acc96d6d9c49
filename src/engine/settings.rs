//! What the configuration comes to for an engine.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::config::load::Loaded;
use crate::config::{AgentConfig, Config};
use crate::customization::hooks::HookRunner;
use crate::http;
use crate::providers::Registry;

/// What the configuration says; replaced as a whole.
#[derive(Debug)]
pub struct Settings {
    pub registry: Registry,
    pub loaded: Arc<Loaded>,
    pub(super) hooks: Arc<HookRunner>,
    /// The agents of the configuration itself; those of files are laid under them.
    pub(super) defined_agents: BTreeMap<String, AgentConfig>,
    /// For pages that users and models point at.
    pub(super) http: http::Client,
}

impl Settings {
    pub fn new(registry: Registry, loaded: Arc<Loaded>) -> Self {
        let (hooks, problems) = HookRunner::new(&loaded.config.hooks);
        for problem in problems {
            tracing::warn!(%problem, "a hook cannot be used");
        }
        let http = http::Client::configured(&loaded.config);
        let defined_agents = loaded.config.agents.clone();
        Self { registry, loaded, hooks: Arc::new(hooks), defined_agents, http }
    }

    pub(super) fn config(&self) -> &Config {
        &self.loaded.config
    }
}
