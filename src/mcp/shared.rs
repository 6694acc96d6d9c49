//! What everybody may look at of one server, and what all servers have in common.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::handler::Roots;
use super::live::Live;
use super::status::{McpError, PromptInfo, ResourceInfo, ServerEvent, ServerStatus, Status};
use super::tool::McpTool;
use crate::config::{McpServerConfig, NetworkConfig, Secret};
use crate::http::Client;

/// A call waits so long for a server that is just starting.
const START_PATIENCE: Duration = Duration::from_secs(10);

/// Where news goes. Must not block; is called by one server at a time, in order.
pub(super) type Events = Arc<dyn Fn(ServerEvent) + Send + Sync>;

/// What all servers have in common.
pub(super) struct World {
    pub(super) events: Events,
    /// Counts changes of any server.
    pub(super) changed: watch::Sender<u64>,
    pub(super) data: PathBuf,
    /// Whether servers may ask the user.
    pub(super) can_ask: bool,
    pub(super) roots: Arc<Roots>,
}

/// How a server is to be run.
#[derive(Clone)]
pub(super) struct Definition {
    pub(super) config: McpServerConfig,
    pub(super) timeout: Duration,
    pub(super) keep_alive: Duration,
    pub(super) client: Client,
    /// What the client was made of.
    pub(super) network: (NetworkConfig, Duration),
    /// Where a process is started.
    pub(super) directory: Option<PathBuf>,
    /// Tells the folders of one client from those of another.
    pub(super) workspace: String,
}

impl Definition {
    /// What must not stand in a log or a message.
    pub(super) fn secrets(&self) -> Vec<String> {
        let is_secret = |name: &str| {
            let name = name.to_ascii_lowercase();
            ["key", "token", "secret", "pass", "auth", "credential"].iter().any(|part| name.contains(part))
        };
        let env = self.config.env.iter().filter(|(name, _)| is_secret(name)).map(|(_, value)| value);
        let all = env.chain(self.config.headers.values()).chain(&self.config.client_secret);
        all.map(Secret::expose).filter(|secret| secret.chars().count() >= 6).map(str::to_owned).collect()
    }
}

pub(super) struct Shared {
    name: String,
    world: Arc<World>,
    state: Mutex<State>,
    /// A server that is gone says nothing more.
    silent: AtomicBool,
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared").field("name", &self.name).finish_non_exhaustive()
    }
}

/// Changed by the server's actor alone.
#[derive(Clone)]
pub(super) struct State {
    pub(super) config: McpServerConfig,
    pub(super) status: Status,
    pub(super) problem: Option<String>,
    pub(super) has_auth: bool,
    pub(super) instructions: Option<String>,
    pub(super) tools: Vec<Arc<McpTool>>,
    pub(super) prompts: Vec<PromptInfo>,
    pub(super) resources: Vec<ResourceInfo>,
    pub(super) live: Option<Live>,
    /// Whether it is expected to run again soon, so that its tools are still offered.
    pub(super) returning: bool,
    /// Whether it is being made ready for the first time, or its tools are being listed anew.
    pub(super) about_to_be_ready: bool,
}

impl State {
    pub(super) fn new(config: McpServerConfig) -> Self {
        let status = if config.disabled { Status::Disabled } else { Status::Starting };
        Self {
            about_to_be_ready: !config.disabled,
            config,
            status,
            problem: None,
            has_auth: false,
            instructions: None,
            tools: Vec::new(),
            prompts: Vec::new(),
            resources: Vec::new(),
            live: None,
            returning: false,
        }
    }

    /// Forgets what the server offered.
    pub(super) fn clear(&mut self) {
        self.tools.clear();
        self.prompts.clear();
        self.resources.clear();
        self.instructions = None;
    }

    /// Whether its tools can be called, now or soon.
    fn is_offered(&self) -> bool {
        self.status == Status::Running || self.returning
    }
}

impl Shared {
    pub(super) fn new(name: &str, world: Arc<World>, config: McpServerConfig) -> Self {
        let state = Mutex::new(State::new(config));
        Self { name: name.to_owned(), world, state, silent: AtomicBool::new(false) }
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn world(&self) -> &World {
        &self.world
    }

    /// Changes the state, and tells everybody if that changed anything to see.
    pub(super) fn change(&self, change: impl FnOnce(&mut State)) {
        let mut state = self.state();
        let before = status_of(&self.name, &state);
        change(&mut state);
        let after = status_of(&self.name, &state);
        drop(state);
        self.world.changed.send_modify(|count| *count += 1);
        if before != after {
            self.tell(ServerEvent::Updated(Box::new(after)));
        }
    }

    /// Says how things stand, whether it is news or not.
    pub(super) fn announce(&self) {
        self.tell(ServerEvent::Updated(Box::new(self.status())));
    }

    pub(super) fn tell(&self, event: ServerEvent) {
        if !self.silent.load(Ordering::Acquire) {
            (self.world.events)(event);
        }
    }

    pub(super) fn silence(&self) {
        self.silent.store(true, Ordering::Release);
    }

    pub(super) fn status(&self) -> ServerStatus {
        status_of(&self.name, &self.state())
    }

    pub(super) fn is_about_to_be_ready(&self) -> bool {
        let state = self.state();
        state.about_to_be_ready || state.live.as_ref().is_some_and(Live::has_other_tools)
    }

    /// Whether it ran and is expected to do so again.
    pub(super) fn is_returning(&self) -> bool {
        self.state().returning
    }

    pub(super) fn tools(&self) -> Vec<Arc<McpTool>> {
        let state = self.state();
        if state.is_offered() { state.tools.clone() } else { Vec::new() }
    }

    pub(super) fn prompts(&self) -> Vec<PromptInfo> {
        let state = self.state();
        if state.is_offered() { state.prompts.clone() } else { Vec::new() }
    }

    pub(super) fn resources(&self) -> Vec<ResourceInfo> {
        let state = self.state();
        if state.is_offered() { state.resources.clone() } else { Vec::new() }
    }

    pub(super) fn instructions(&self) -> Option<String> {
        let state = self.state();
        if state.is_offered() { state.instructions.clone() } else { None }
    }

    /// The connection; waits a little for a server that is starting.
    pub(super) async fn live(&self, stop: &CancellationToken) -> Result<Live, McpError> {
        let mut changes = self.world.changed.subscribe();
        let waiting = async {
            loop {
                changes.borrow_and_update();
                {
                    let state = self.state();
                    let is_coming = state.returning || state.status == Status::Starting;
                    match &state.live {
                        Some(live) => return Ok(live.clone()),
                        None if is_coming => {}
                        None => return Err(self.not_running(&state)),
                    }
                }
                if changes.changed().await.is_err() {
                    return Err(McpError::Closed(self.name.clone()));
                }
            }
        };
        tokio::select! {
            live = tokio::time::timeout(START_PATIENCE, waiting) => {
                live.unwrap_or_else(|_| Err(self.not_running(&self.state())))
            }
            () = stop.cancelled() => Err(McpError::Failed("The call was stopped before it began.".to_owned())),
        }
    }

    fn not_running(&self, state: &State) -> McpError {
        let why = match (state.status, &state.problem) {
            (Status::RequiresAuth, _) => return McpError::NeedsLogin { server: self.name.clone() },
            (Status::Starting, _) => ": it is still starting".to_owned(),
            (_, Some(problem)) => format!(": {problem}"),
            (Status::Disabled, None) => ": it is disabled".to_owned(),
            (Status::Stopped | Status::Stopping, None) => ": it was stopped".to_owned(),
            (Status::Failed | Status::Running, None) => String::new(),
        };
        McpError::NotRunning(self.name.clone(), why)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn status_of(name: &str, state: &State) -> ServerStatus {
    let shown = &state.config.shown;
    let is_remote = state.config.url.is_some();
    ServerStatus {
        name: name.to_owned(),
        status: state.status,
        command: shown.command.clone().filter(|_| !is_remote),
        args: if is_remote { Vec::new() } else { shown.args.clone() },
        url: shown.url.clone().filter(|_| is_remote),
        disabled: state.config.disabled,
        has_auth: state.has_auth,
        instructions: state.instructions.clone(),
        tools: state.tools.iter().map(|tool| tool.info()).collect(),
        prompts: state.prompts.clone(),
        resources: state.resources.clone(),
        problem: state.problem.clone(),
    }
}
