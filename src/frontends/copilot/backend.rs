//! The engine behind the contract: its configuration, read at the start and again when it changes,
//! and the model that answers.

use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio::sync::watch;
use tokio::task::AbortHandle;

use crate::config::commands::Memory;
use crate::config::load::Loaded;
use crate::config::watch::Watch;
use crate::config::{Config, CopilotConfig};
use crate::engine::{Answer, Engine, Event, EventSink, Pace, Question, Settings};
use crate::frontends::Surroundings;
use crate::frontends::assemble::Wishes;
use crate::llm::ModelInfo;

/// A server on this machine answers within this time, or it is not there.
const LOCAL_MODELS_WAIT: Duration = Duration::from_millis(1_500);
/// Configured providers are elsewhere, and one of them is the one that is wanted.
const MODELS_WAIT: Duration = Duration::from_secs(5);
/// An editor writes a file in several steps; they count as one change.
const QUIET: Duration = Duration::from_millis(200);
/// Nobody waits longer than this for the start to be complete.
const START_WAIT: Duration = Duration::from_secs(10);

pub(super) struct Backend {
    engine: Engine,
    settings: Arc<RwLock<CopilotConfig>>,
    ready: watch::Receiver<bool>,
    keeper: AbortHandle,
}

impl Backend {
    /// Reads the configuration; what takes longer than reading files goes on in the background.
    pub(super) async fn start(surroundings: Surroundings) -> Self {
        let here = surroundings.clone();
        let reading = tokio::task::spawn_blocking(move || here.configuration(Wishes::default(), &Memory::default()));
        let mut loaded = reading.await.unwrap_or_default();
        let engine = surroundings.engine(&mut loaded, Arc::new(Listener), Pace::Normal);
        let settings = Arc::new(RwLock::new(loaded.config.copilot.clone()));
        let (is_ready, ready) = watch::channel(false);
        let keeper = Keeper { surroundings, engine: engine.clone(), settings: Arc::clone(&settings) };
        let keeper = tokio::spawn(keeper.run(loaded, is_ready)).abort_handle();
        Self { engine, settings, ready, keeper }
    }

    pub(super) fn settings(&self) -> CopilotConfig {
        self.settings.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The model that answers, once it is known; `None` when there is none.
    pub(super) async fn model(&self) -> Option<ModelInfo> {
        let mut ready = self.ready.clone();
        let _ = tokio::time::timeout(START_WAIT, ready.wait_for(|ready| *ready)).await;
        self.known_model()
    }

    /// The same as far as it is known now.
    fn known_model(&self) -> Option<ModelInfo> {
        self.engine.answering_model(self.settings().model.as_deref())
    }

    /// What can answer, as far as it is known now; nothing while there is only the guide.
    pub(super) fn model_names(&self, most: usize) -> Vec<String> {
        if self.known_model().is_none() {
            return Vec::new();
        }
        self.engine.catalog().models.iter().take(most).map(|model| model.id.to_string()).collect()
    }

    pub(super) fn ask(&self, model: &ModelInfo, question: Question) -> Option<Answer> {
        self.engine.ask(model, question)
    }

    pub(super) async fn shutdown(&self) {
        self.keeper.abort();
        if let Err(error) = self.engine.shutdown().await {
            tracing::error!(%error, "shutdown");
        }
    }
}

/// Nobody is told of events: the contract has no place for them.
struct Listener;

impl EventSink for Listener {
    fn emit(&self, event: Event) -> Option<BoxFuture<'static, ()>> {
        if let Event::Notice { text, .. } = event {
            tracing::warn!("{text}");
        }
        None
    }
}

/// Lives as long as the connection.
struct Keeper {
    surroundings: Surroundings,
    engine: Engine,
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
            self.apply(&mut loaded, &mut used).await;
        }
        self.find_model(&used).await;
        let _ = is_ready.send(true);
        // Limits that only the providers know; nobody waits for them.
        self.engine.refresh_models().await;
        loop {
            watch.set(self.surroundings.files_to_watch(&loaded));
            watch.changed().await;
            while tokio::time::timeout(QUIET, watch.changed()).await.is_ok() {}
            memory.forget_failures();
            loaded = self.surroundings.complete_configuration(&Wishes::default(), &mut memory).await;
            if self.apply(&mut loaded, &mut used).await {
                self.engine.refresh_models().await;
            }
        }
    }

    /// Looks for a model where none is configured.
    async fn find_model(&self, config: &Config) {
        if let Some(Err(unknown)) = config.copilot.model.as_ref().map(|name| self.engine.registry().resolve(name, None))
        {
            tracing::warn!("copilot.model: {unknown}");
        }
        if self.engine.answering_model(config.copilot.model.as_deref()).is_none() {
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
        *self.settings.write().unwrap_or_else(PoisonError::into_inner) = used.copilot.clone();
        let (chat, agents) = (used.chat.clone(), used.agents.clone());
        self.engine.reconfigure(Settings { registry, chat, agents }).await;
        tracing::info!("the configuration has changed");
        true
    }
}

fn report(loaded: &Loaded) {
    for problem in &loaded.problems {
        tracing::warn!(%problem, "configuration");
    }
}
