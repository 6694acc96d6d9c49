//! What happens beside chats when a client comes and goes.

use std::sync::{Arc, PoisonError};
use std::time::Duration;

use super::hooks::Hooks;
use super::{Engine, Event, NoticeLevel, Settings, Shared, emitter};
use crate::base::task;
use crate::config::load::Loaded;
use crate::customization::hooks::{HookEvent, Setting};
use crate::customization::{Customization, agents};
use crate::store::PublicChats;
use crate::workspace::Workspace;

impl Engine {
    /// What is done once a client listens: agents from files, chats of the public server, old chats
    /// that the user does not want to keep, and the hooks for the beginning of a session.
    pub async fn begin_session(&self, workspace: &Workspace) {
        let settings = self.shared.settings();
        let customization = self.shared.instructions.of(workspace, settings.config(), &*self.shared.sink).await;
        self.shared.adopt_agents(&customization).await;
        self.shared.tidy_history(workspace).await;
        self.shared.session_hooks(workspace).run_for_session(HookEvent::SessionStart).await;
    }
}

impl Shared {
    /// Puts agents from files to use, when they are others than before.
    async fn adopt_agents(&self, customization: &Customization) {
        let settings = self.settings();
        let agents = agents::merge(&settings.defined_agents, &customization.agents);
        if agents == settings.config().agents {
            return;
        }
        let mut loaded = Loaded::clone(&settings.loaded);
        loaded.config.agents = agents;
        let mut changed = Settings::new(settings.registry.clone(), Arc::new(loaded));
        changed.defined_agents.clone_from(&settings.defined_agents);
        self.reconfigure(changed).await;
    }

    /// Takes over chats that the public server kept for this workspace, and lets go of those that
    /// are older than the user wants.
    async fn tidy_history(&self, workspace: &Workspace) {
        let settings = self.settings();
        if settings.config().customization.isolated {
            return;
        }
        let asked = workspace.clone();
        let key = task::blocking(move || crate::workspace::history_key(&asked)).await;
        let Ok(key) = key else { return };
        let mut path_keys = vec![key.clone(), workspace.key()];
        path_keys.dedup();
        let source = PublicChats { places: self.public_places.clone(), path_keys, workspace_key: key };
        match self.store.import_public(source).await {
            Ok(report) if report.imported > 0 => {
                let text =
                    format!("{} chats of the public ECA server are here now; `/resume` lists them.", report.imported);
                emitter::say(&*self.sink, Event::Notice { level: NoticeLevel::Info, text }).await;
            }
            Ok(_) => {}
            Err(error) => tracing::warn!(%error, "the public server's chats were not read"),
        }
        if let Some(days) = settings.config().chat_retention_days {
            let retention = Duration::from_secs(u64::from(days) * 24 * 3600);
            match self.store.prune(retention).await {
                Ok(gone) if gone > 0 => tracing::info!(gone, "old chats were let go"),
                Ok(_) => {}
                Err(error) => tracing::warn!(%error, "old chats were not let go"),
            }
        }
        for text in self.store.take_notices() {
            emitter::say(&*self.sink, Event::Notice { level: NoticeLevel::Warning, text }).await;
        }
    }

    pub(super) fn session_hooks(&self, workspace: &Workspace) -> Hooks {
        *self.session_workspace.write().unwrap_or_else(PoisonError::into_inner) = workspace.clone();
        let workspaces = workspace.roots().iter().map(|root| root.path.clone()).collect();
        Hooks {
            runner: Arc::clone(&self.settings().hooks),
            setting: Arc::new(Setting { workspaces, ..self.hook_setting.clone() }),
            sink: Arc::clone(&self.sink),
        }
    }
}
