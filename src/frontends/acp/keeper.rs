//! Keeps a session in step with its configuration files, and does what its answer could not wait
//! for: commands in the configuration, servers, models, what can be typed.

use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::Notify;

use super::servers::Brought;
use super::session::Session;
use crate::base::task;
use crate::config::commands::Memory;
use crate::config::load::Loaded;
use crate::config::watch::Watch;
use crate::config::{Config, ConfigProblem};
use crate::engine::{NoticeLevel, PromptHold, Settings};
use crate::frontends::Surroundings;
use crate::frontends::assemble::{Wishes, trust_command, withheld_text};

/// How often what was read may be outdated at once before a change is waited for.
const MOST_ROUNDS: usize = 10;

/// Lives as long as its session.
pub(super) struct Keeper {
    pub(super) surroundings: Surroundings,
    pub(super) session: Arc<Session>,
    pub(super) wishes: Wishes,
    pub(super) brought: Brought,
    pub(super) loaded: Loaded,
    /// What the registry had to say about the configuration that is in use.
    pub(super) of_registry: Vec<ConfigProblem>,
    pub(super) memory: Memory,
    pub(super) shared_memory: Arc<Mutex<Memory>>,
    /// Makes prompts wait until the configuration is complete.
    pub(super) hold: Option<PromptHold>,
    pub(super) commands_changed: Arc<Notify>,
    /// What the user has been told.
    pub(super) reported: Vec<ConfigProblem>,
    pub(super) told_withheld: Vec<String>,
}

impl Keeper {
    /// Begins once the session's answer is queued. `ask_models`: whether the providers are asked for
    /// their models.
    pub(super) fn begin(mut self, ask_models: bool) {
        // Before the first prompt can come: a client without a place for notices hears them with it.
        for problem in std::mem::take(&mut self.brought.problems) {
            self.session.voice.notice(NoticeLevel::Warning, &problem);
        }
        if self.hold.is_none() {
            self.report();
        }
        let (session, changed) = (Arc::clone(&self.session), Arc::clone(&self.commands_changed));
        let closed = session.closed.clone();
        let (starting, other) = (Arc::clone(&session), Arc::clone(&session));
        let beside = async move {
            let begun = async {
                starting.engine.begin_session(&starting.workspace).await;
                starting.tell_commands().await;
            };
            let models = async {
                if ask_models {
                    other.engine.refresh_models().await;
                }
            };
            let commands = async {
                loop {
                    changed.notified().await;
                    session.tell_commands().await;
                }
            };
            tokio::join!(begun, models, commands, self.run());
        };
        task::spawn(async move {
            tokio::select! {
                () = closed.cancelled() => {}
                () = beside => {}
            }
        });
    }

    async fn run(mut self) {
        let mut used = self.loaded.config.clone();
        let hold = self.hold.take();
        self.session.tell_commands().await;
        let mut watch = Watch::new();
        watch.set(self.surroundings.files_to_watch(&self.loaded));
        if hold.is_some() {
            self.load().await;
            self.apply(&mut used).await;
        }
        drop(hold);
        let mut unsure = 0;
        loop {
            self.session.servers.configure(&used, &self.session.workspace);
            self.report();
            // A folder that came or went may have hidden a change, which is then one.
            let is_news = watch.set(self.surroundings.files_to_watch(&self.loaded));
            unsure = if is_news { unsure + 1 } else { 0 };
            if !is_news || unsure > MOST_ROUNDS {
                watch.changed().await;
                watch.quiet().await;
            }
            self.memory.forget_failures();
            self.load().await;
            if self.apply(&mut used).await {
                self.session.tell_commands().await;
                self.session.engine.refresh_models().await;
            }
        }
    }

    async fn load(&mut self) {
        self.loaded = self.surroundings.complete_configuration(&self.wishes, &mut self.memory).await;
        self.shared_memory.lock().unwrap_or_else(PoisonError::into_inner).clone_from(&self.memory);
        self.brought.lay_over(&mut self.loaded.config.mcp);
    }

    /// Puts the configuration to use if it is another one.
    async fn apply(&mut self, used: &mut Config) -> bool {
        if self.loaded.config == *used {
            return false;
        }
        let known = self.loaded.problems.len();
        let registry = self.surroundings.registry(&mut self.loaded);
        self.of_registry = self.loaded.problems.split_off(known);
        *used = self.loaded.config.clone();
        let default_agent = used.default_agent.clone();
        self.session.choose(|choice| choice.default_agent = default_agent);
        self.session.engine.reconfigure(Settings::new(registry, Arc::new(self.loaded.clone()))).await;
        tracing::info!("the configuration has changed");
        true
    }

    /// Says what is wrong and has not been said.
    fn report(&mut self) {
        let problems: Vec<_> = self.loaded.problems.iter().chain(&self.of_registry).cloned().collect();
        for problem in problems.iter().filter(|problem| !self.reported.contains(problem)) {
            tracing::warn!(%problem, "configuration");
            self.session.voice.notice(NoticeLevel::Warning, &format!("Configuration: {problem}"));
        }
        self.reported = problems;
        for withheld in &self.loaded.withheld {
            let text = format!("{} {}", withheld_text(withheld), trust_command(withheld));
            if !self.told_withheld.contains(&text) {
                tracing::warn!(file = %withheld.file.display(), "a workspace file is not trusted");
                self.session.voice.notice(NoticeLevel::Warning, &text);
                self.told_withheld.push(text);
            }
        }
    }
}
