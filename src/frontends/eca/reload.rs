//! Keeps a running server in step with its configuration files: completes what a start could not
//! wait for, takes up changes, and asks about workspace files that are not trusted.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use custom_methods::general::MessageType;
use custom_methods::methods::ToolServerUpdated;
use custom_methods::tools::ToolServerUpdatedParams;
use futures_util::FutureExt;
use lsp_types::request::ShowMessageRequest;
use lsp_types::{MessageActionItem, ShowMessageRequestParams};

use super::client::Client;
use super::servers;
use super::session::{Presentation, Session, Started};
use super::sink::show_message;
use super::start::tell_problem;
use crate::base::task;
use crate::config::commands::Memory;
use crate::config::load::Loaded;
use crate::config::trust::Withheld;
use crate::config::watch::Watch;
use crate::config::{Config, ConfigProblem};
use crate::engine::{PromptHold, Settings};
use crate::frontends::Surroundings;
use crate::frontends::assemble::{Wishes, trust_command, withheld_text};

/// How long a question about trust may stay on the user's screen.
const ANSWER_WAIT: Duration = Duration::from_secs(600);
/// How often what was read may be outdated at once before it is taken as it is.
const MOST_ROUNDS: usize = 10;

const TRUST: &str = "Trust this content";
const NOT_NOW: &str = "Not now";

/// Lives as long as its connection.
pub(super) struct Keeper {
    pub(super) surroundings: Surroundings,
    pub(super) client: Client,
    pub(super) session: Arc<Session>,
    pub(super) wishes: Wishes,
    pub(super) config: Config,
    /// What has been said about the configuration that is in use.
    pub(super) reported: Vec<ConfigProblem>,
    pub(super) files: Vec<PathBuf>,
    /// What the load at the start found out.
    pub(super) memory: Memory,
    /// What the registry had to say about `config`.
    pub(super) of_registry: Vec<ConfigProblem>,
}

impl Keeper {
    /// `hold` makes prompts wait until the configuration is complete.
    pub(super) async fn run(self, hold: Option<PromptHold>) {
        let exit = self.session.exit_requested();
        tokio::select! {
            () = exit.cancelled() => {}
            () = self.keep(hold) => {}
        }
    }

    async fn keep(mut self, hold: Option<PromptHold>) {
        // Nothing waits for us then: the handshake comes first.
        if hold.is_none() {
            self.session.listening().await;
            self.run_servers();
        }
        let mut memory = std::mem::take(&mut self.memory);
        let mut asked = BTreeSet::new();
        let mut watch = Watch::new();
        watch.set(self.files.clone());
        let mut loaded = self.load(&mut memory, &mut watch).await;
        let mut problems = self.apply(&mut loaded).await;
        drop(hold);
        self.session.listening().await;
        loop {
            self.run_servers();
            self.tell(problems, &loaded.withheld, &mut asked).await;
            tokio::select! {
                () = watch.changed() => {}
                () = self.session.folders_changed() => {}
                () = self.session.config_changed() => {
                    // Our own change is complete, and somebody waits for it.
                    loaded = self.load(&mut memory, &mut watch).await;
                    problems = self.apply(&mut loaded).await;
                    continue;
                }
            }
            watch.quiet().await;
            memory.forget_failures();
            loaded = self.load(&mut memory, &mut watch).await;
            problems = self.apply(&mut loaded).await;
        }
    }

    /// Reads everything, and again when something may have changed unnoticed meanwhile.
    async fn load(&mut self, memory: &mut Memory, watch: &mut Watch) -> Loaded {
        // What is read next are the newest folders; a change of them before now is no news.
        let _ = self.session.folders_changed().now_or_never();
        let workspace = self.session.workspace();
        self.wishes.workspace_roots = workspace.roots().iter().map(|root| root.path.clone()).collect();
        // Directories may have come or gone since; what changes from here on is noticed.
        watch.set(std::mem::take(&mut self.files));
        let mut round = 0;
        loop {
            let loaded = self.surroundings.complete_configuration(&self.wishes, memory).await;
            self.files = self.surroundings.files_to_watch(&loaded);
            round += 1;
            if !watch.set(self.files.clone()) || round == MOST_ROUNDS {
                return loaded;
            }
        }
    }

    /// Puts the configuration to use if it is another one. Returns what is wrong with it and has
    /// not been said yet.
    async fn apply(&mut self, loaded: &mut Loaded) -> Vec<ConfigProblem> {
        let Some(started) = self.session.started() else { return Vec::new() };
        if loaded.config != self.config {
            let known = loaded.problems.len();
            let registry = self.surroundings.registry(loaded);
            self.of_registry = loaded.problems[known..].to_vec();
            self.config = loaded.config.clone();
            self.session.present(Presentation::of(&self.config));
            let loaded = Arc::new(loaded.clone());
            let before = servers::tool_lists(started, &self.session.selected_agent());
            started.engine.reconfigure(Settings::new(registry, loaded)).await;
            tracing::info!("the configuration has changed");
            self.tell_tools(started, &before).await;
            // Before that, the start asks the providers by itself.
            if self.session.is_listening() {
                let engine = started.engine.clone();
                task::spawn(async move { engine.refresh_models().await });
            }
        } else {
            loaded.problems.extend(self.of_registry.iter().cloned());
        }
        let new = loaded.problems.iter().filter(|problem| !self.reported.contains(problem)).cloned().collect();
        self.reported.clone_from(&loaded.problems);
        new
    }

    /// Tells which tools are offered now, as far as that is news. Before the client listens, the start
    /// tells it.
    async fn tell_tools(&self, started: &Started, before: &[ToolServerUpdatedParams]) {
        if !self.session.is_listening() {
            return;
        }
        for list in servers::tool_lists(started, &self.session.selected_agent()) {
            if !before.contains(&list) {
                self.client.notify::<ToolServerUpdated>(&list).await;
            }
        }
    }

    /// Starts and ends MCP servers as the configuration wants it; those that are as they should be do
    /// not notice.
    fn run_servers(&self) {
        if let Some(started) = self.session.started() {
            started.servers.configure(&self.config, &self.session.workspace());
        }
    }

    async fn tell(
        &self,
        problems: Vec<ConfigProblem>,
        withheld: &[Withheld],
        asked: &mut BTreeSet<(PathBuf, Option<String>)>,
    ) {
        for problem in &problems {
            tell_problem(&self.client, &self.session, problem).await;
        }
        for withheld in withheld {
            if asked.insert((withheld.file.clone(), withheld.hash.clone())) {
                tracing::warn!(file = %withheld.file.display(), "a workspace file is not trusted");
                self.ask(withheld).await;
            }
        }
    }

    /// Asks where the client can; tells how to trust where it cannot.
    async fn ask(&self, withheld: &Withheld) {
        let text = withheld_text(withheld);
        let is_lsp = self.session.started().is_some_and(|started| started.client.is_lsp);
        let (true, Some(hash)) = (is_lsp, withheld.hash.clone()) else {
            return self.show(format!("{text} {}", trust_command(withheld))).await;
        };
        let action = |title: &str| MessageActionItem { title: title.to_owned(), properties: Default::default() };
        let question = ShowMessageRequestParams {
            typ: lsp_types::MessageType::WARNING,
            message: text,
            actions: Some(vec![action(TRUST), action(NOT_NOW)]),
        };
        let (client, trust, file) = (self.client.clone(), self.surroundings.trust(), withheld.file.clone());
        // The user may take their time; meanwhile changes of the files are noticed. The list of
        // trusted files is one of them, so nothing more is to be done here.
        task::spawn(async move {
            match client.request::<ShowMessageRequest>(&question, ANSWER_WAIT).await {
                Ok(Some(answer)) if answer.title == TRUST => {
                    let kept = task::blocking(move || trust.set(&file, &hash)).await;
                    if let Ok(Err(error)) = kept {
                        tracing::error!(%error, "the trusted file could not be recorded");
                    }
                }
                Ok(_) => {}
                Err(error) => tracing::debug!(%error, "nobody answered about trust"),
            }
        });
    }

    async fn show(&self, text: String) {
        for frame in show_message(&self.session, MessageType::Warning, text) {
            let _ = self.client.outbox.push(frame).await;
        }
    }
}
