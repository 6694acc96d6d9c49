//! The models behind the contract and the settings of the user: read at the start, and again when
//! the configuration changes. No chat is ever opened, so nothing else of the engine is needed.

use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::AbortHandle;

use crate::base::task;
use crate::config::commands::Memory;
use crate::config::load::Loaded;
use crate::config::watch::Watch;
use crate::config::{Config, CopilotConfig};
use crate::engine::{Answer, Models, Question};
use crate::frontends::Surroundings;
use crate::frontends::assemble::Wishes;
use crate::llm::ModelInfo;

/// A server on this machine answers within this time, or it is not there.
const LOCAL_MODELS_WAIT: Duration = Duration::from_millis(1_500);
/// Configured providers are elsewhere, and one of them is the one that is wanted.
const MODELS_WAIT: Duration = Duration::from_secs(5);
/// How often what was read may be outdated at once before a change is waited for.
const MOST_ROUNDS: usize = 10;
/// Nobody waits longer than this for the start to be complete.
const START_WAIT: Duration = Duration::from_secs(10);

pub(super) struct Backend {
    models: Models,
    settings: Arc<RwLock<CopilotConfig>>,
    ready: watch::Receiver<bool>,
    keeper: AbortHandle,
}

impl Backend {
    /// Reads the configuration; what takes longer than reading files goes on in the background.
    pub(super) async fn start(surroundings: Surroundings) -> Self {
        let here = surroundings.clone();
        let reading = task::blocking(move || {
            let mut loaded = here.configuration(Wishes::default(), &Memory::default());
            let models = Models::new(here.registry(&mut loaded));
            (loaded, models)
        });
        let (loaded, models) = match reading.await {
            Ok(read) => read,
            Err(error) => {
                tracing::error!(%error, "the configuration could not be read");
                let mut loaded = Loaded::default();
                let models = Models::new(surroundings.registry(&mut loaded));
                (loaded, models)
            }
        };
        let settings = Arc::new(RwLock::new(loaded.config.copilot.clone()));
        let (is_ready, ready) = watch::channel(false);
        let keeper = Keeper { surroundings, models: models.clone(), settings: Arc::clone(&settings) };
        let keeper = task::spawn(keeper.run(loaded, is_ready)).abort_handle();
        Self { models, settings, ready, keeper }
    }

    pub(super) fn settings(&self) -> CopilotConfig {
        self.settings.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The model that answers, once it is known; `None` when there is none.
    pub(super) async fn model(&self) -> Option<ModelInfo> {
        let mut ready = self.ready.clone();
        let _ = tokio::time::timeout(START_WAIT, ready.wait_for(|ready| *ready)).await;
        self.models.answering(self.settings().model.as_deref())
    }

    /// Some of the models that can answer, as far as they are known now.
    pub(super) fn model_names(&self, most: usize) -> Vec<String> {
        let mut names = self.models.names();
        names.truncate(most);
        names
    }

    pub(super) fn ask(&self, model: &ModelInfo, question: Question) -> Option<Answer> {
        self.models.ask(model, question)
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
    models: Models,
    settings: Arc<RwLock<CopilotConfig>>,
}

impl Keeper {
    async fn run(self, mut loaded: Loaded, is_ready: watch::Sender<bool>) {
        let mut memory = Memory::default();
        memory.keep(&loaded);
        let mut used = loaded.config.clone();
        report(&loaded);
        let mut watch = Watch::new();
        watch.set(self.surroundings.files_to_watch(&loaded));
        if !loaded.commands.is_empty() {
            loaded = self.surroundings.complete_configuration(&Wishes::default(), &mut memory).await;
            self.apply(&mut loaded, &mut used);
        }
        self.find_model(&used).await;
        let _ = is_ready.send(true);
        // Limits that only the providers know; nobody waits for them.
        self.models.refresh().await;
        let mut unsure = 0;
        loop {
            // A folder that came or went may have hidden a change, which is then one.
            let is_news = watch.set(self.surroundings.files_to_watch(&loaded));
            unsure = if is_news { unsure + 1 } else { 0 };
            if !is_news || unsure > MOST_ROUNDS {
                watch.changed().await;
                watch.quiet().await;
            }
            memory.forget_failures();
            loaded = self.surroundings.complete_configuration(&Wishes::default(), &mut memory).await;
            if self.apply(&mut loaded, &mut used) {
                self.models.refresh().await;
            }
        }
    }

    /// Looks for a model where none is configured.
    async fn find_model(&self, config: &Config) {
        let wished = config.copilot.model.as_deref();
        if let Some(Err(problem)) = wished.map(|name| self.models.check(name)) {
            tracing::warn!("copilot.model: {problem}");
        }
        if self.models.answering(wished).is_none() {
            let patience = if config.providers.is_empty() { LOCAL_MODELS_WAIT } else { MODELS_WAIT };
            let _ = tokio::time::timeout(patience, self.models.refresh()).await;
        }
    }

    /// Puts the configuration to use if it is another one.
    fn apply(&self, loaded: &mut Loaded, used: &mut Config) -> bool {
        if loaded.config == *used {
            return false;
        }
        self.models.replace(self.surroundings.registry(loaded));
        report(loaded);
        *used = loaded.config.clone();
        *self.settings.write().unwrap_or_else(PoisonError::into_inner) = used.copilot.clone();
        tracing::info!("the configuration has changed");
        true
    }
}

fn report(loaded: &Loaded) {
    for problem in &loaded.problems {
        tracing::warn!(%problem, "configuration");
    }
}
