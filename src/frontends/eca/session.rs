//! One connection: who the client is, what it was told, and the engine that serves it.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use custom_methods::config::ChatConfig;
use custom_methods::general::WorkspaceFoldersChange;
use custom_methods::lifecycle::{ClientCapabilities, InitializeParams};
use serde_json::{Value, json};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::documents::Documents;
use super::handlers::assist::Rewrites;
use crate::base::{ChatId, ModelId};
use crate::config::{Config, ConfigProblem};
use crate::engine::Engine;
use crate::mcp::Servers;
use crate::workspace::Workspace;

const WELCOME: &str = "# Welcome to ECA\n\nAsk anything about your code.\n\n";

#[derive(Debug, Default)]
pub(super) struct Session {
    /// The params of the `initialize` that is being handled, as the client sent them.
    offered: Mutex<Option<Value>>,
    started: OnceLock<Started>,
    state: Mutex<State>,
    /// v0's dialect; a client may reveal itself as late as its first prompt.
    v0: AtomicBool,
    prompted: AtomicBool,
    rewrites: Rewrites,
    folders_changed: Notify,
    config_changed: Notify,
    /// What an LSP client has open.
    documents: Documents,
    /// Cancelled when the client listens.
    listening: CancellationToken,
    exit: CancellationToken,
}

/// What is fixed once the client introduced itself.
#[derive(Debug)]
pub(super) struct Started {
    pub(super) client: ClientFacts,
    pub(super) engine: Engine,
    pub(super) servers: Servers,
    /// What is wrong with the configuration as far as it was complete then.
    pub(super) problems: Vec<ConfigProblem>,
}

/// What of the configuration the client itself is shown; it may change.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Presentation {
    pub(super) welcome_message: String,
    pub(super) default_agent: String,
    pub(super) query_limit: u32,
}

impl Presentation {
    pub(super) fn of(config: &Config) -> Self {
        Self {
            welcome_message: config.welcome_message.clone().unwrap_or_else(|| WELCOME.to_owned()),
            default_agent: config.default_agent.clone(),
            query_limit: config.index.query_limit,
        }
    }
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct ClientFacts {
    pub(super) name: String,
    /// A client with standard LSP capabilities owns `$/progress` and expects `window/showMessage`.
    pub(super) is_lsp: bool,
    pub(super) work_done_progress: bool,
    /// Declared something that did not exist in v0.
    pub(super) is_modern: bool,
    /// Shows questions to the user.
    pub(super) can_ask: bool,
    /// Changes its documents when it is asked to.
    pub(super) applies_edits: bool,
    /// Refuses a change that was made for another version of a document.
    pub(super) checks_versions: bool,
}

#[derive(Debug, Default)]
struct State {
    presentation: Presentation,
    workspace: Arc<Workspace>,
    folders: Vec<(String, Option<String>)>,
    last_prompted: Option<ChatId>,
    /// The chats prompted on this connection, and the model each was last answered by.
    chats: HashMap<ChatId, Option<ModelId>>,
    /// What the user selected for chats that have no selection of their own.
    selection: Selection,
    /// What `config/updated` has told the client so far.
    told: ChatConfig,
}

/// A choice of the user's; what is absent was not chosen.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Selection {
    pub(super) model: Option<ModelId>,
    pub(super) variant: Option<String>,
    pub(super) agent: Option<String>,
}

/// More chats than anybody prompts in one session; beyond it, old ones are forgotten.
const MAX_CHATS: usize = 1_000;

impl Session {
    pub(super) fn offer_initialize(&self, params: Value) {
        *self.offered.lock().unwrap_or_else(PoisonError::into_inner) = Some(params);
    }

    pub(super) fn take_initialize(&self) -> Value {
        self.offered.lock().unwrap_or_else(PoisonError::into_inner).take().unwrap_or_else(|| json!({}))
    }

    /// Fixes what the client said about itself. A second time changes nothing.
    pub(super) fn start(&self, started: Started) {
        let _ = self.started.set(started);
    }

    pub(super) fn started(&self) -> Option<&Started> {
        self.started.get()
    }

    pub(super) fn initialize_result(&self) -> Value {
        let welcome = self.presentation().welcome_message;
        let is_lsp = self.started().is_some_and(|started| started.client.is_lsp);
        // Only an LSP client reports its documents, and only to those who ask.
        let capabilities = if is_lsp {
            json!({
                "positionEncoding": "utf-16",
                "textDocumentSync": {"openClose": true, "change": 2, "save": {"includeText": false}},
            })
        } else {
            json!({})
        };
        // Neovim insists on `capabilities`, Emacs on `chatWelcomeMessage`.
        json!({
            "capabilities": capabilities,
            "serverInfo": {"name": "eca", "version": env!("CARGO_PKG_VERSION")},
            "chatWelcomeMessage": welcome,
        })
    }

    pub(super) fn documents(&self) -> &Documents {
        &self.documents
    }

    pub(super) fn set_folders(&self, folders: Vec<(String, Option<String>)>) {
        let mut state = self.state();
        state.workspace = Arc::new(read_folders(&folders));
        state.folders = folders;
        drop(state);
        self.folders_changed.notify_one();
    }

    pub(super) fn change_folders(&self, change: &WorkspaceFoldersChange) {
        let mut folders = self.state().folders.clone();
        folders.retain(|(uri, _)| !change.removed.iter().any(|removed| removed.uri == *uri));
        folders.extend(change.added.iter().map(|added| (added.uri.clone(), added.name.clone())));
        self.set_folders(folders);
    }

    pub(super) fn workspace(&self) -> Arc<Workspace> {
        Arc::clone(&self.state().workspace)
    }

    /// How many files a query may return.
    pub(super) fn query_limit(&self) -> usize {
        usize::try_from(self.presentation().query_limit).unwrap_or(usize::MAX)
    }

    pub(super) fn note_prompt(&self, chat: ChatId, model: &str) {
        self.prompted.store(true, Ordering::Release);
        let mut state = self.state();
        if state.chats.len() >= MAX_CHATS {
            state.chats.clear();
        }
        state.chats.insert(chat.clone(), ModelId::parse(model));
        state.last_prompted = Some(chat);
    }

    /// The model of a chat that was prompted on this connection; `None` when it was not.
    pub(super) fn chat_model(&self, chat: &ChatId) -> Option<Option<ModelId>> {
        self.state().chats.get(chat).cloned()
    }

    /// What the user chose to chat with.
    pub(super) fn selected_model(&self) -> Option<ModelId> {
        self.state().selection.model.clone()
    }

    pub(super) fn rewrites(&self) -> Rewrites {
        self.rewrites.clone()
    }

    pub(super) fn selection(&self) -> Selection {
        self.state().selection.clone()
    }

    /// The agent of chats that have none of their own.
    pub(super) fn selected_agent(&self) -> String {
        let state = self.state();
        state.selection.agent.clone().unwrap_or_else(|| state.presentation.default_agent.clone())
    }

    /// Keeps what the user selected for all chats.
    pub(super) fn select(&self, change: impl FnOnce(&mut Selection)) {
        change(&mut self.state().selection);
    }

    /// The model that the client shows as selected, as far as it was told.
    pub(super) fn told_model(&self) -> Option<ModelId> {
        self.state().told.select_model.as_deref().and_then(ModelId::parse)
    }

    /// Notes what the client is told outside the usual comparison.
    pub(super) fn note_told(&self, config: &ChatConfig) {
        let told = &mut self.state().told;
        let config = config.clone();
        told.select_model = config.select_model.or(told.select_model.take());
        told.variants = config.variants.or(told.variants.take());
        told.select_variant = config.select_variant.or(told.select_variant.take());
    }

    pub(super) fn was_prompted(&self) -> bool {
        self.prompted.load(Ordering::Acquire)
    }

    pub(super) fn last_prompted(&self) -> Option<ChatId> {
        self.state().last_prompted.clone()
    }

    pub(super) fn is_v0(&self) -> bool {
        self.v0.load(Ordering::Relaxed)
    }

    pub(super) fn speak_v0(&self) {
        self.v0.store(true, Ordering::Relaxed);
    }

    /// What is new in `config` for this client, and nothing when nothing is.
    pub(super) fn config_news(&self, config: ChatConfig) -> Option<ChatConfig> {
        let mut state = self.state();
        let told = &mut state.told;
        let news = ChatConfig {
            models: news(&mut told.models, config.models),
            behaviors: news(&mut told.behaviors, config.behaviors),
            agents: news(&mut told.agents, config.agents),
            select_model: news(&mut told.select_model, config.select_model),
            select_behavior: news(&mut told.select_behavior, config.select_behavior),
            select_agent: news(&mut told.select_agent, config.select_agent),
            variants: news(&mut told.variants, config.variants),
            select_variant: news(&mut told.select_variant, config.select_variant),
            select_trust: news(&mut told.select_trust, config.select_trust),
            welcome_message: news(&mut told.welcome_message, config.welcome_message),
            default_model: news(&mut told.default_model, config.default_model),
            default_agent: news(&mut told.default_agent, config.default_agent),
            default_behavior: news(&mut told.default_behavior, config.default_behavior),
        };
        (news != ChatConfig::default()).then_some(news)
    }

    pub(super) fn present(&self, presentation: Presentation) {
        self.state().presentation = presentation;
    }

    pub(super) fn presentation(&self) -> Presentation {
        self.state().presentation.clone()
    }

    /// Waits until the folders are others than when this was last asked.
    pub(super) async fn folders_changed(&self) {
        self.folders_changed.notified().await;
    }

    /// Says that a configuration file was just changed by us.
    pub(super) fn note_config_change(&self) {
        self.config_changed.notify_one();
    }

    /// Waits until we have changed a configuration file.
    pub(super) async fn config_changed(&self) {
        self.config_changed.notified().await;
    }

    pub(super) fn listen(&self) {
        self.listening.cancel();
    }

    pub(super) fn is_listening(&self) -> bool {
        self.listening.is_cancelled()
    }

    /// Waits until the client listens.
    pub(super) async fn listening(&self) {
        self.listening.cancelled().await;
    }

    pub(super) fn request_exit(&self) {
        self.exit.cancel();
    }

    pub(super) fn exit_requested(&self) -> CancellationToken {
        self.exit.clone()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ClientFacts {
    pub(super) fn read(params: &InitializeParams) -> Self {
        let capabilities: &ClientCapabilities = &params.capabilities;
        let window = capabilities.window.as_ref();
        let can = |path: &str| capabilities.workspace.as_ref().and_then(|group| group.pointer(path)?.as_bool());
        Self {
            name: params.client_info.as_ref().map(|info| info.name.clone()).unwrap_or_default(),
            is_lsp: [&capabilities.text_document, &capabilities.workspace, &capabilities.window, &capabilities.general]
                .iter()
                .any(|group| group.is_some()),
            work_done_progress: window
                .and_then(|window| window.get("workDoneProgress"))
                .and_then(Value::as_bool)
                .unwrap_or_default(),
            is_modern: capabilities
                .code_assistant
                .as_ref()
                .is_some_and(|eca| eca.editor.is_some() || eca.chat_capabilities.is_some()),
            can_ask: capabilities
                .code_assistant
                .as_ref()
                .and_then(|eca| eca.chat_capabilities.as_ref())
                .is_some_and(|chat| chat.ask_question == Some(true)),
            applies_edits: can("/applyEdit").unwrap_or_default(),
            checks_versions: can("/workspaceEdit/documentChanges").unwrap_or_default(),
        }
    }
}

fn news<T: PartialEq + Clone>(told: &mut Option<T>, now: Option<T>) -> Option<T> {
    if now.is_none() || *told == now {
        return None;
    }
    told.clone_from(&now);
    now
}

fn read_folders(folders: &[(String, Option<String>)]) -> Workspace {
    let (workspace, warnings) = Workspace::from_folders(folders);
    for warning in warnings {
        tracing::warn!(%warning, "a workspace folder is not used");
    }
    workspace
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_news_is_told() {
        let session = Session::default();
        let first =
            ChatConfig { models: Some(vec!["a/b".into()]), select_variant: Some(None), ..ChatConfig::default() };
        assert_eq!(session.config_news(first.clone()), Some(first.clone()));
        assert_eq!(session.config_news(first.clone()), None);
        let more = ChatConfig { models: Some(vec!["a/b".into(), "a/c".into()]), ..first };
        let news = session.config_news(more).unwrap();
        assert_eq!(news.models.map(|models| models.len()), Some(2));
        assert_eq!(news.select_variant, None);
    }
}
