//! The engine: chats, turns and models behind one handle. This is the boundary that every front
//! end talks to; it knows no wire format.
//!
//! A chat is an actor: one task that owns its history and reads commands from
//! an inbox. The table here holds only handles. What must not wait behind the inbox, the
//! interruption of a running turn, goes through a token in the handle.

pub mod ask;
pub mod assist;
pub mod commands;
pub mod event;
pub mod login;
pub mod prompt;

mod chat;
mod chat_tools;
mod chats;
mod doctor;
mod emitter;
mod hooks;
mod instructions;
mod journal;
mod live_output;
mod logins;
mod mcp_parts;
mod output;
mod replay;
mod request;
mod session;
mod settings;
mod subagent;
mod title;
mod tool_call;
mod toolbox;
mod tools;
mod turn;

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use dashmap::DashMap;
use dashmap::mapref::entry::Entry;
use futures_util::future::{join, join_all};
use tokio::sync::{oneshot, watch};

use crate::base::{ChatId, ModelId, ToolCallId, shared_map};
use crate::config::AgentConfig;
use crate::config::load::Loaded;
use crate::context::Indexes;
use crate::context::index::Index;
use crate::context::query::McpResource;
use crate::customization::hooks::{HookEvent, Setting};
use crate::customization::prompt::Environment;
use crate::host::Host;
use crate::llm::ModelInfo;
use crate::mcp::Servers;
use crate::providers::Registry;
use crate::state::Secrets;
use crate::store::{ChatSummary, ListQuery, Store, StoreError};
use crate::tool::{Tool, ToolSpec};
use crate::tools::jobs::Jobs;
use crate::workspace::Workspace;

pub use ask::{Answer, Models, Question};
use chat::{ChatHandle, Command};
pub use chat::{Done, OpenedChat, OperationError, PageInfo, SwitchedOff};
pub use chat_tools::Decision;
pub use chats::{DeleteError, Titles};
pub use commands::{CommandArgument, CommandInfo, CommandKind};
pub use event::{
    ChatEvent, ChatStatus, Compaction, Ending, Event, EventSink, NoticeLevel, RejectReason, Share, ShareKind,
    ToolCallEvent, ToolCallOrigin, ToolCallStage, UsageReport,
};
pub use instructions::FindSources;
use instructions::Instructions;
pub use login::{LoginError, LoginMethod, LoginOption, LoginStep, methods as login_methods};
pub use prompt::{Accepted, AcceptedStatus, Context, Hold, Prompt, ReplyWhen, SubmitError};
pub use settings::Settings;

/// How long an orderly shutdown may take before the rest is cut off.
const SHUTDOWN_DEADLINE: Duration = Duration::from_millis(1_600);
const STORE_DEADLINE: Duration = Duration::from_millis(500);

/// What an engine is made of.
pub struct Options {
    pub registry: Registry,
    pub store: Store,
    /// The configuration, with what there is to say about it.
    pub loaded: Arc<Loaded>,
    /// Where keys that a user enters are kept.
    pub secrets: Secrets,
    pub sink: Arc<dyn EventSink>,
    /// The client, as far as tools may ask it something.
    pub host: Arc<dyn Host>,
    /// The MCP servers of the client.
    pub servers: Servers,
    /// Where outputs go that are too long for a model.
    pub outputs: Option<PathBuf>,
    /// Where rules, skills, commands and agents are looked for.
    pub find_sources: FindSources,
    pub environment: Environment,
    /// Where the public server may have kept chats.
    pub public_places: Vec<PathBuf>,
    /// What hooks are told of this session; the workspace comes with each prompt.
    pub hook_setting: Setting,
    pub pace: Pace,
}

impl std::fmt::Debug for Options {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Options").field("pace", &self.pace).finish_non_exhaustive()
    }
}

/// Whether side work may interleave with a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pace {
    Normal,
    /// For clients' test suites: the title comes before the answer, and no progress is sent that
    /// only tells the user that we started.
    Deterministic,
}

/// Cheap to clone; all clones are the same engine.
#[derive(Clone)]
pub struct Engine {
    shared: Arc<Shared>,
}

impl std::fmt::Debug for Engine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Engine").field("chats", &self.shared.chats.len()).finish_non_exhaustive()
    }
}

/// What all chats of one engine share.
struct Shared {
    settings: RwLock<Arc<Settings>>,
    /// How many reasons there are for prompts to wait for other settings.
    holds: watch::Sender<usize>,
    store: Store,
    secrets: Secrets,
    waiting_logins: logins::Waiting,
    sink: Arc<dyn EventSink>,
    host: Arc<dyn Host>,
    /// The built-in tools, which all chats share.
    tools: Vec<Arc<dyn Tool>>,
    jobs: Jobs,
    servers: Servers,
    outputs: Option<PathBuf>,
    instructions: Instructions,
    indexes: Indexes,
    home: Option<PathBuf>,
    public_places: Vec<PathBuf>,
    hook_setting: Setting,
    /// What the user allowed for all chats.
    consents: chat_tools::Consents,
    /// Where hooks of the session run.
    session_workspace: RwLock<Workspace>,
    pace: Pace,
    chats: DashMap<ChatId, ChatHandle>,
    closing: AtomicBool,
    store_warned: AtomicBool,
}

/// While it exists, prompts wait, bounded in time, before they choose their model.
pub struct PromptHold {
    shared: Arc<Shared>,
}

impl Drop for PromptHold {
    fn drop(&mut self) {
        self.shared.holds.send_modify(|holds| *holds = holds.saturating_sub(1));
    }
}

impl std::fmt::Debug for PromptHold {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PromptHold").finish_non_exhaustive()
    }
}

/// What a client can choose from.
#[derive(Debug, Clone, PartialEq)]
pub struct Catalog {
    pub models: Arc<[ModelInfo]>,
    pub default_model: ModelId,
    /// Agents a user can select, the default first.
    pub agents: Vec<String>,
}

impl Engine {
    /// Does no I/O; the store and the HTTP client open when they are first needed.
    pub fn new(options: Options) -> Self {
        let Options {
            registry,
            store,
            loaded,
            secrets,
            sink,
            host,
            servers,
            outputs,
            find_sources,
            environment,
            public_places,
            hook_setting,
            pace,
        } = options;
        let jobs = Jobs::default();
        let tools = toolbox::built_in(&jobs);
        Self {
            shared: Arc::new(Shared {
                settings: RwLock::new(Arc::new(Settings::new(registry, loaded))),
                holds: watch::Sender::new(0),
                store,
                secrets,
                waiting_logins: logins::Waiting::default(),
                sink,
                host,
                tools,
                jobs,
                servers,
                outputs,
                instructions: Instructions::new(find_sources, environment),
                indexes: Indexes::default(),
                home: hook_setting.home.clone(),
                public_places,
                hook_setting,
                consents: Arc::default(),
                session_workspace: RwLock::default(),
                pace,
                chats: shared_map(),
                closing: AtomicBool::new(false),
                store_warned: AtomicBool::new(false),
            }),
        }
    }

    /// Puts the prompt into its chat's inbox, without waiting for anything: two prompts, or a
    /// prompt and its stop, arrive in the order of the calls. The receiver resolves when the chat
    /// accepted it, and fails only if the engine shuts down first.
    pub fn submit(&self, mut prompt: Prompt) -> Result<oneshot::Receiver<Accepted>, SubmitError> {
        if self.shared.closing.load(Ordering::Acquire) {
            return Err(SubmitError::ShuttingDown);
        }
        let origin = if prompt.chat.is_some() { chat::Origin::Client } else { chat::Origin::Minted };
        let id = prompt.chat.get_or_insert_with(ChatId::random).clone();
        let (reply, accepted) = oneshot::channel();
        let sent = self.shared.with_handle(&id, origin, |handle| {
            handle.interrupt();
            handle.send(Command::Prompt { prompt: Box::new(prompt), reply })
        });
        sent.map_err(|()| SubmitError::Busy(id))?;
        Ok(accepted)
    }

    /// Ends the running turn of a chat, if there is one.
    pub fn stop(&self, chat: &ChatId) {
        self.shared.stop(chat);
    }

    /// The user's word on a call that waits for it. Nothing happens when none does.
    pub fn decide(&self, chat: &ChatId, call: &ToolCallId, decision: Decision) {
        let waited = self.shared.chats.get(chat).is_some_and(|handle| handle.mail().decide(call, decision));
        if !waited {
            tracing::info!(%chat, %call, ?decision, "nobody waits for this decision");
        }
    }

    /// Something for the model of a running turn, at the next chance.
    pub fn steer(&self, chat: &ChatId, text: &str) {
        if let Some(handle) = self.shared.chats.get(chat)
            && handle.status() == ChatStatus::Running
            && !text.trim().is_empty()
        {
            handle.mail().steer(text.trim());
        }
    }

    /// Takes back what was said and has not reached the model.
    pub fn steer_remove(&self, chat: &ChatId) {
        if let Some(handle) = self.shared.chats.get(chat) {
            let _ = handle.mail().take_steer();
        }
    }

    /// The chats of the store, newest first, with the live status of those in memory.
    pub async fn list(&self, query: ListQuery) -> Result<Vec<(ChatSummary, ChatStatus)>, StoreError> {
        let summaries = self.shared.store.list(query).await?;
        Ok(summaries
            .into_iter()
            .map(|summary| {
                let status = self.status(&summary.id);
                (summary, status)
            })
            .collect())
    }

    /// What a chat is doing right now.
    pub fn status(&self, chat: &ChatId) -> ChatStatus {
        self.shared.chats.get(chat).map_or(ChatStatus::Idle, |handle| handle.status())
    }

    pub fn catalog(&self) -> Catalog {
        let registry = self.registry();
        Catalog {
            models: registry.models(),
            default_model: registry.default_model(),
            agents: self.shared.settings().config().primary_agents(),
        }
    }

    /// The tools of this server as an agent has them, and whether each is switched off.
    pub fn tools(&self, agent: &str) -> Vec<(ToolSpec, bool)> {
        self.shared.listed_tools(agent)
    }

    /// What can be typed after a slash: prompts of MCP servers, our own commands, skills, the user's
    /// commands. Clients show them in this order.
    pub async fn commands(&self, workspace: &Workspace) -> Vec<CommandInfo> {
        let settings = self.shared.settings();
        let customization = self.shared.instructions.of(workspace, settings.config(), &*self.shared.sink).await;
        let of_servers = mcp_parts::commands(&self.shared.servers);
        of_servers.into_iter().chain(commands::listed()).chain(chat::listed_commands(&customization)).collect()
    }

    /// The files of a workspace, to choose from.
    pub fn index(&self, workspace: &Workspace) -> Arc<Index> {
        self.shared.indexes.of(workspace, &self.shared.settings().config().index)
    }

    /// What MCP servers offer as contexts.
    pub fn resources(&self) -> Vec<McpResource> {
        mcp_parts::resources(&self.shared.servers)
    }

    /// What runs in the background.
    pub fn jobs(&self) -> Jobs {
        self.shared.jobs.clone()
    }

    pub fn registry(&self) -> Registry {
        self.shared.settings().registry.clone()
    }

    /// Replaces what the configuration says. Turns that run go on with what they began with; the
    /// client is told what there is to choose from now.
    pub async fn reconfigure(&self, settings: Settings) {
        self.shared.reconfigure(settings).await;
    }

    /// Makes prompts wait for settings that are on their way.
    pub fn hold_prompts(&self) -> PromptHold {
        self.shared.holds.send_modify(|holds| *holds += 1);
        PromptHold { shared: Arc::clone(&self.shared) }
    }

    /// Asks the providers for their models and the public catalogue for what is known of them, and
    /// says so whenever something changed: a slow one of the two does not hold the other back.
    pub async fn refresh_models(&self) {
        let registry = &self.registry();
        let tell = |changed: bool| async move {
            if changed {
                emitter::say(&*self.shared.sink, Event::ModelsChanged).await;
            }
        };
        let lists = async { tell(registry.refresh().await).await };
        let catalogue = async { tell(registry.refresh_catalogue().await).await };
        join(lists, catalogue).await;
    }

    /// What an agent prefers; nothing when the configuration does not say.
    pub fn agent(&self, name: &str) -> AgentConfig {
        self.shared.settings().config().agent_of(name)
    }

    /// The model an agent begins with, when the agent itself or the configuration names one.
    /// `current` is whose provider a bare name is looked up in first.
    pub fn agent_model(&self, agent: &str, current: Option<&ModelId>) -> Option<ModelId> {
        let registry = &self.registry();
        let named = self.agent(agent).default_model.and_then(|name| registry.resolve(&name, current).ok());
        named.or_else(|| registry.has_configured_default().then(|| registry.default_model()))
    }

    /// Refuses new work, closes every turn, and closes the store; bounded in time. An error says
    /// what could not be saved.
    pub async fn shutdown(&self) -> Result<(), ShutdownError> {
        let ended = self.end().await;
        let closed = tokio::time::timeout(STORE_DEADLINE, self.shared.store.close()).await;
        ended.and(closed.map_err(|_| ShutdownError::Store))
    }

    /// The same for an engine that shares its store with others: the store stays open.
    pub async fn end(&self) -> Result<(), ShutdownError> {
        self.shared.closing.store(true, Ordering::Release);
        self.shared.waiting_logins.cancel_all();
        let deadline = tokio::time::Instant::now() + SHUTDOWN_DEADLINE;
        let mut waiting = Vec::new();
        for handle in &self.shared.chats {
            handle.interrupt();
            let (reply, done) = oneshot::channel();
            if handle.send(Command::Shutdown { reply }).is_ok() {
                waiting.push(done);
            }
        }
        // An actor that is already gone has nothing left to save.
        let in_time = tokio::time::timeout_at(deadline, join_all(waiting)).await.is_ok();
        let workspace = self.shared.session_workspace.read().unwrap_or_else(PoisonError::into_inner).clone();
        let ending = self.shared.session_hooks(&workspace);
        let _ = tokio::time::timeout(STORE_DEADLINE, ending.run_for_session(HookEvent::SessionEnd)).await;
        self.shared.jobs.shutdown().await;
        if in_time { Ok(()) } else { Err(ShutdownError::Chats) }
    }
}

impl Shared {
    fn settings(&self) -> Arc<Settings> {
        self.settings.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Runs `action` on the handle of `chat`, starting its actor if there is none. The table's
    /// lock is held meanwhile, so an actor that unloads cannot miss the command.
    fn with_handle<T>(
        self: &Arc<Self>,
        chat: &ChatId,
        origin: chat::Origin,
        action: impl FnOnce(&ChatHandle) -> T,
    ) -> T {
        match self.chats.entry(chat.clone()) {
            Entry::Occupied(entry) => action(entry.get()),
            Entry::Vacant(entry) => action(&entry.insert(chat::spawn(chat.clone(), origin, Arc::clone(self), None))),
        }
    }

    async fn reconfigure(&self, settings: Settings) {
        settings.registry.adopt(&self.settings().registry);
        *self.settings.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(settings);
        emitter::say(&*self.sink, Event::ModelsChanged).await;
    }

    /// The store's failures are told to the user once, not once per message.
    async fn warn_about_store(&self, error: &StoreError) {
        tracing::error!(%error, "the chat store failed");
        if !self.store_warned.swap(true, Ordering::AcqRel) {
            let text = format!("Chats are not being saved: {error}");
            emitter::say(&*self.sink, Event::Notice { level: NoticeLevel::Warning, text }).await;
        }
    }
}

/// What an orderly shutdown could not finish.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ShutdownError {
    #[error("some chats did not end in time")]
    Chats,
    #[error("the chat history did not close in time")]
    Store,
}
