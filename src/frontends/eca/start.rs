//! From `initialize` to the first thing a client can show: config, engine, and what goes out
//! after `initialized`.

use std::sync::Arc;
use std::time::Duration;

use custom_methods::config::{ChatConfig, ConfigUpdatedParams};
use custom_methods::general::{MessageType, ProgressParams, ProgressType};
use custom_methods::lifecycle::InitializeParams;
use custom_methods::methods::{ConfigUpdated, Progress, ToolServerUpdated};
use custom_methods::tools::{EcaServerUpdatedParams, ServerTool, ToolServerStatus, ToolServerUpdatedParams};
use lsp_types::request::WorkDoneProgressCreate;
use lsp_types::{
    NumberOrString, ProgressParamsValue, WorkDoneProgress, WorkDoneProgressBegin, WorkDoneProgressCreateParams,
    WorkDoneProgressEnd,
};
use serde_json::Value;

use super::client::Client;
use super::handlers::{jobs, selection};
use super::host::EditorHost;
use super::reload::Keeper;
use super::servers;
use super::session::{ClientFacts, Presentation, Session, Started};
use super::sink::{OutboxSink, show_message};
use super::to_wire;
use crate::base::task;
use crate::config::ConfigProblem;
use crate::config::commands::Memory;
use crate::engine::{Engine, Pace};
use crate::frontends::Surroundings;
use crate::frontends::assemble::Wishes;
use crate::llm::ModelInfo;
use crate::process::parent;
use crate::tool::ToolSpec;

/// How long a client may take to agree to a progress report.
const PROGRESS_WAIT: Duration = Duration::from_secs(5);
const MODELS_TASK: &str = "models";
const MODELS_TITLE: &str = "Looking for models";

pub(super) struct Starter {
    pub(super) surroundings: Surroundings,
    pub(super) client: Client,
}

impl std::fmt::Debug for Starter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Starter").finish_non_exhaustive()
    }
}

impl Starter {
    /// Reads the configuration and builds the engine; no network, no database, no command. What
    /// takes longer is begun here and goes on beside the answer.
    pub(super) fn initialize(&self, session: &Arc<Session>, params: InitializeParams) {
        let client = ClientFacts::read(&params);
        tracing::info!(client = client.name, lsp = client.is_lsp, "initialize");
        let mut folders: Vec<_> =
            params.workspace_folders.iter().map(|folder| (folder.uri.clone(), folder.name.clone())).collect();
        if folders.is_empty() {
            folders.extend(params.root_uri.clone().or(params.root_path.clone()).map(|uri| (uri, None)));
        }
        session.set_folders(folders);
        let options = params.initialization_options.clone().unwrap_or_default();
        let word = |key: &str| options.get(key).and_then(Value::as_str);
        let v0_client = params
            .capabilities
            .code_assistant
            .as_ref()
            .is_some_and(|eca| eca.doc.is_some() || eca.edit.is_some() || eca.fix.is_some());
        if word("ecaCompat") == Some("v0") || v0_client {
            session.speak_v0();
        }
        let pace = if word("env") == Some("test") { Pace::Deterministic } else { Pace::Normal };
        let host = Arc::new(EditorHost::new(self.client.clone(), Arc::clone(session), &params));
        self.start(session, client, options, host, pace);
        if let Some(pid) = params.process_id {
            watch_parent(pid, session);
        }
    }

    fn start(&self, session: &Arc<Session>, client: ClientFacts, options: Value, host: Arc<EditorHost>, pace: Pace) {
        let workspace = session.workspace();
        let workspace_roots = workspace.roots().iter().map(|root| root.path.clone()).collect();
        let wishes = Wishes { options: Some(options), workspace_roots };
        let mut loaded = self.surroundings.configuration(wishes.clone(), &Memory::default());
        let sink = Arc::new(OutboxSink::new(self.client.clone(), Arc::clone(session)));
        let known = loaded.problems.len();
        let can_ask = client.can_ask;
        let servers = self.surroundings.servers(can_ask, servers::announcer(self.client.clone(), session));
        let engine = self.surroundings.engine(&mut loaded, sink, host, servers.clone(), pace);
        session.present(Presentation::of(&loaded.config));
        // With a command in it, this configuration is only a beginning, and so are its problems.
        let hold = (!loaded.commands.is_empty()).then(|| engine.hold_prompts());
        let problems = if hold.is_some() { Vec::new() } else { loaded.problems.clone() };
        session.start(Started { client, engine, servers, problems: problems.clone() });
        let mut memory = Memory::default();
        memory.keep(&loaded);
        let keeper = Keeper {
            memory,
            surroundings: self.surroundings.clone(),
            client: self.client.clone(),
            session: Arc::clone(session),
            wishes,
            files: self.surroundings.files_to_watch(&loaded),
            of_registry: loaded.problems.split_off(known),
            reported: problems,
            config: loaded.config,
        };
        task::spawn(keeper.run(hold));
    }

    /// The client listens from now on: tell it what it needs, then look for more models.
    pub(super) fn initialized(&self, session: &Arc<Session>) {
        self.client.outbox.release();
        let client = self.client.clone();
        let session = Arc::clone(session);
        task::spawn(async move {
            let Some(started) = session.started() else { return };
            update_config(&client, &session).await;
            let agent = session.presentation().default_agent;
            client.notify::<ToolServerUpdated>(&native_tools(&started.engine, &agent)).await;
            for problem in &started.problems {
                tell_problem(&client, &session, problem).await;
            }
            task::spawn(jobs::tell_changes(client.clone(), started.engine.clone()));
            session.listen();
            let (engine, workspace) = (started.engine.clone(), session.workspace());
            task::spawn(async move { engine.begin_session(&workspace).await });
            find_models(&client, &session, started).await;
        });
    }
}

/// The server's own tools, as clients list them.
pub(super) fn native_tools(engine: &Engine, agent: &str) -> ToolServerUpdatedParams {
    let listed = |(spec, disabled): (ToolSpec, bool)| ServerTool {
        name: spec.name,
        description: spec.description,
        parameters: Value::clone(&spec.parameters),
        disabled: Some(disabled),
        server: None,
    };
    ToolServerUpdatedParams::from(EcaServerUpdatedParams {
        name: "ECA".into(),
        status: ToolServerStatus::Running,
        tools: engine.tools(agent).into_iter().map(listed).collect(),
    })
}

/// Says what is wrong in the configuration, where the user sees it.
pub(super) async fn tell_problem(client: &Client, session: &Session, problem: &ConfigProblem) {
    tracing::warn!(%problem, "configuration");
    for frame in show_message(session, MessageType::Warning, format!("Configuration: {problem}")) {
        let _ = client.outbox.push(frame).await;
    }
}

/// Tells the client what it can choose from, as far as that is news.
pub(super) async fn update_config(client: &Client, session: &Session) {
    if let Some(params) = config_update(session) {
        client.notify::<ConfigUpdated>(&params).await;
    }
}

pub(super) fn config_update(session: &Session) -> Option<ConfigUpdatedParams> {
    let started = session.started()?;
    let catalog = started.engine.catalog();
    let presentation = session.presentation();
    let agents = catalog.agents;
    // The default agent is the selected one; an unknown one is not offered.
    let known = agents.iter().find(|agent| **agent == presentation.default_agent);
    let agent = known.or(agents.first())?.clone();
    let model = catalog.default_model.to_string();
    // Once the user has prompted or selected, the choice of the model is theirs.
    let is_ours = !session.was_prompted() && session.selection().model.is_none();
    let select_model = is_ours.then(|| model.clone());
    let behavior = to_wire::behavior(&agent).to_owned();
    let (variants, select_variant) =
        selection::shown_variants(session, &started.engine, &agent, &catalog.default_model);
    let config = ChatConfig {
        models: Some(offered(&catalog.models, select_model.as_deref())),
        behaviors: Some(agents.iter().map(|agent| to_wire::behavior(agent).to_owned()).collect()),
        agents: Some(agents),
        select_model,
        select_behavior: Some(behavior.clone()),
        select_agent: Some(agent.clone()),
        variants: Some(variants),
        select_variant: Some(select_variant),
        select_trust: None,
        welcome_message: Some(presentation.welcome_message),
        default_model: is_ours.then_some(model),
        default_agent: Some(agent),
        default_behavior: Some(behavior),
    };
    session.config_news(config).map(|chat| ConfigUpdatedParams { chat_id: None, chat: Some(chat) })
}

/// The ids to choose from, the selected one among them: a client may not be able to show one that
/// is not. A model that only the configuration names is not listed before its provider was asked,
/// or ever.
fn offered(models: &[ModelInfo], selected: Option<&str>) -> Vec<String> {
    let mut ids: Vec<String> = models.iter().map(|info| info.id.to_string()).collect();
    if let Some(selected) = selected.filter(|selected| !ids.iter().any(|id| id == selected)) {
        // The last one is the guide, which is out of the order.
        let sorted = ids.len().saturating_sub(1);
        let place = ids[..sorted].partition_point(|id| id.as_str() < selected);
        ids.insert(place, selected.to_owned());
    }
    ids
}

async fn find_models(client: &Client, session: &Session, started: &Started) {
    let facts = &started.client;
    if facts.is_lsp {
        let announced = facts.work_done_progress && lsp_progress_agreed(client).await;
        if announced {
            lsp_progress(
                client,
                WorkDoneProgress::Begin(WorkDoneProgressBegin {
                    title: MODELS_TITLE.into(),
                    ..WorkDoneProgressBegin::default()
                }),
            )
            .await;
        }
        started.engine.refresh_models().await;
        if announced {
            lsp_progress(client, WorkDoneProgress::End(WorkDoneProgressEnd { message: None })).await;
        }
        return;
    }
    if session.is_v0() {
        return started.engine.refresh_models().await;
    }
    let task = |kind| ProgressParams { kind, task_id: MODELS_TASK.into(), title: MODELS_TITLE.into() };
    client.notify::<Progress>(&task(ProgressType::Start)).await;
    started.engine.refresh_models().await;
    client.notify::<Progress>(&task(ProgressType::Finish)).await;
}

async fn lsp_progress_agreed(client: &Client) -> bool {
    let params = WorkDoneProgressCreateParams { token: NumberOrString::String(MODELS_TASK.into()) };
    match client.request::<WorkDoneProgressCreate>(&params, PROGRESS_WAIT).await {
        Ok(()) => true,
        Err(error) => {
            tracing::debug!(%error, "no progress is shown");
            false
        }
    }
}

async fn lsp_progress(client: &Client, progress: WorkDoneProgress) {
    let params = lsp_types::ProgressParams {
        token: NumberOrString::String(MODELS_TASK.into()),
        value: ProgressParamsValue::WorkDone(progress),
    };
    client.notify::<lsp_types::notification::Progress>(&params).await;
}

fn watch_parent(pid: i64, session: &Arc<Session>) {
    let session = Arc::clone(session);
    let watch = parent::watch_parent(pid);
    task::spawn(async move {
        watch.gone().await;
        tracing::info!(pid, "the editor is gone");
        session.request_exit();
    });
}
