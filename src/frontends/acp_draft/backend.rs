//! The engine behind one connection: started without a word from the client, which has none to say,
//! and kept in step with the configuration files.

use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use tokio::task::AbortHandle;

use crate::base::task;
use crate::config::commands::Memory;
use crate::config::load::Loaded;
use crate::config::watch::Watch;
use crate::config::{AcpDraftConfig, Config};
use crate::engine::{Engine, EventSink, Pace, PromptHold, Settings};
use crate::frontends::Surroundings;
use crate::frontends::assemble::{Wishes, trust_command, withheld_text};
use crate::host::Host;
use crate::mcp::Servers;
use crate::workspace::{Workspace, history_key};

/// A server on this machine answers within this time, or it is not there.
const LOCAL_MODELS_WAIT: Duration = Duration::from_secs(1);
/// Configured providers are elsewhere, and one of them is the one that is wanted.
const MODELS_WAIT: Duration = Duration::from_secs(5);
/// How often what was read may be outdated at once before it is taken as it is.
const MOST_ROUNDS: usize = 10;

pub(super) struct Backend {
    pub(super) engine: Engine,
    pub(super) workspace: Arc<Workspace>,
    /// With which chats those of this connection are listed.
    pub(super) history_key: String,
    servers: Servers,
    settings: Arc<RwLock<AcpDraftConfig>>,
    keeper: AbortHandle,
}

impl Backend {
    /// Reads the configuration and builds the engine; what takes longer than reading files goes on
    /// in the background, and prompts wait for it.
    pub(super) async fn start(
        surroundings: Surroundings,
        workspace: Arc<Workspace>,
        sink: Arc<dyn EventSink>,
        host: Arc<dyn Host>,
    ) -> Self {
        let wishes = wishes(&workspace);
        let (here, place) = (surroundings.clone(), Arc::clone(&workspace));
        let reading = task::blocking(move || (here.configuration(wishes, &Memory::default()), history_key(&place)));
        let (mut loaded, history_key) = reading.await.unwrap_or_else(|error| {
            tracing::error!(%error, "the configuration could not be read");
            (Loaded::default(), workspace.key())
        });
        let servers = surroundings.servers(false, Arc::new(|event| tracing::info!(?event, "MCP")));
        let engine = surroundings.engine(&mut loaded, sink, host, servers.clone(), Pace::Normal);
        let settings = Arc::new(RwLock::new(loaded.config.acp_draft.clone()));
        let keeper = Keeper {
            surroundings,
            engine: engine.clone(),
            servers: servers.clone(),
            workspace: Arc::clone(&workspace),
            settings: Arc::clone(&settings),
        };
        let hold = engine.hold_prompts();
        let keeper = task::spawn(keeper.run(loaded, hold)).abort_handle();
        Self { engine, workspace, history_key, servers, settings, keeper }
    }

    pub(super) fn settings(&self) -> AcpDraftConfig {
        self.settings.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Ends all work in order; bounded in time.
    pub(super) async fn shutdown(&self) {
        self.keeper.abort();
        let (saved, ()) = tokio::join!(self.engine.shutdown(), self.servers.shutdown());
        if let Err(error) = saved {
            tracing::error!(%error, "shutdown");
        }
    }
}

impl Drop for Backend {
    fn drop(&mut self) {
        self.keeper.abort();
    }
}

/// Lives as long as the connection.
struct Keeper {
    surroundings: Surroundings,
    engine: Engine,
    servers: Servers,
    workspace: Arc<Workspace>,
    settings: Arc<RwLock<AcpDraftConfig>>,
}

impl Keeper {
    async fn run(self, mut loaded: Loaded, hold: PromptHold) {
        let mut memory = Memory::default();
        memory.keep(&loaded);
        let mut used = loaded.config.clone();
        let mut watch = Watch::new();
        watch.set(self.surroundings.files_to_watch(&loaded));
        report(&loaded);
        if !loaded.commands.is_empty() {
            loaded = self.load(&mut memory, &mut watch).await;
            self.apply(&mut loaded, &mut used).await;
        }
        self.servers.configure(&used, &self.workspace);
        self.find_model(&used).await;
        drop(hold);
        let (engine, workspace) = (self.engine.clone(), Arc::clone(&self.workspace));
        task::spawn(async move {
            tokio::join!(engine.begin_session(&workspace), engine.refresh_models());
        });
        loop {
            watch.changed().await;
            watch.quiet().await;
            memory.forget_failures();
            loaded = self.load(&mut memory, &mut watch).await;
            if self.apply(&mut loaded, &mut used).await {
                self.servers.configure(&used, &self.workspace);
                self.engine.refresh_models().await;
            }
        }
    }

    /// Reads everything, and again when something may have changed unnoticed meanwhile.
    async fn load(&self, memory: &mut Memory, watch: &mut Watch) -> Loaded {
        let mut round = 0;
        loop {
            let loaded = self.surroundings.complete_configuration(&wishes(&self.workspace), memory).await;
            round += 1;
            if !watch.set(self.surroundings.files_to_watch(&loaded)) || round == MOST_ROUNDS {
                return loaded;
            }
        }
    }

    /// Where no model is known yet, the first prompt is worth a moment.
    async fn find_model(&self, config: &Config) {
        let catalog = self.engine.catalog();
        // The guide, which is listed last, stands in while nothing else is known.
        if catalog.models.last().is_some_and(|guide| guide.id == catalog.default_model) {
            let patience = if config.providers.is_empty() { LOCAL_MODELS_WAIT } else { MODELS_WAIT };
            let _ = tokio::time::timeout(patience, self.engine.refresh_models()).await;
        }
    }

    /// Puts the configuration to use if it is another one.
    async fn apply(&self, loaded: &mut Loaded, used: &mut Config) -> bool {
        if loaded.config == *used {
            return false;
        }
        let registry = self.surroundings.registry(loaded);
        report(loaded);
        *used = loaded.config.clone();
        *self.settings.write().unwrap_or_else(PoisonError::into_inner) = used.acp_draft.clone();
        self.engine.reconfigure(Settings::new(registry, Arc::new(loaded.clone()))).await;
        tracing::info!("the configuration has changed");
        true
    }
}

fn wishes(workspace: &Workspace) -> Wishes {
    Wishes { options: None, workspace_roots: workspace.roots().iter().map(|root| root.path.clone()).collect() }
}

/// The log is the only place for what the user should know of the configuration.
fn report(loaded: &Loaded) {
    for problem in &loaded.problems {
        tracing::warn!(%problem, "configuration");
    }
    for withheld in &loaded.withheld {
        tracing::warn!("{} {}", withheld_text(withheld), trust_command(withheld));
    }
}
