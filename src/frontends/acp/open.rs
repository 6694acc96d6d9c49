//! Sessions begin here: the configuration of their folders is read, an engine is built, and what
//! takes longer goes on behind the answer.

use std::sync::{Arc, Mutex, PoisonError};

use serde_json::Value;
use tokio::sync::Notify;

use super::client::Client;
use super::failure::Failure;
use super::from_wire::{folder, list_field, text_field};
use super::host::EditorHost;
use super::keeper::Keeper;
use super::servers::Brought;
use super::session::{Choice, Parts, Place, Session};
use super::voice::Voice;
use crate::base::ChatId;
use crate::base::task;
use crate::config::commands::Memory;
use crate::engine::{NoticeLevel, Pace};
use crate::frontends::Surroundings;
use crate::frontends::assemble::Wishes;
use crate::mcp::{self, ServerEvent};
use crate::store::{Store, StoredChat};

/// More folders than anybody works in at once.
const MOST_FOLDERS: usize = 64;

/// What a client says about a session that it wants.
#[derive(Debug, Clone, Default)]
pub(super) struct Wanted {
    pub(super) place: Place,
    pub(super) brought: Brought,
}

impl Wanted {
    pub(super) fn read(params: &Value, servers_required: bool) -> Result<Self, Failure> {
        let cwd = folder(&text_field(params, "cwd")?, "cwd")?;
        let additional = list_field(params, "additionalDirectories", false)?;
        if additional.len() > MOST_FOLDERS {
            return Err(Failure::params(format!("additionalDirectories: at most {MOST_FOLDERS} are possible")));
        }
        let path = |entry: &Value| match entry.as_str() {
            Some(text) => folder(text, "additionalDirectories"),
            None => Err(Failure::params("additionalDirectories: texts are expected")),
        };
        let additional = additional.iter().map(path).collect::<Result<Vec<_>, _>>()?;
        let brought = Brought::read(list_field(params, "mcpServers", servers_required)?);
        Ok(Self { place: Place { cwd, additional }, brought })
    }
}

/// What all sessions of a connection are built from.
#[derive(Clone)]
pub(super) struct Ground {
    pub(super) surroundings: Surroundings,
    pub(super) store: Store,
    pub(super) client: Client,
    /// What commands in the configuration said, so that they run once for all sessions.
    pub(super) memory: Arc<Mutex<Memory>>,
}

/// A session whose background work waits for its answer to be sent.
pub(super) struct Opened {
    pub(super) session: Arc<Session>,
    pub(super) keeper: Keeper,
}

/// Reads what the folders say and builds the session. `kept` is what the store has of its chat.
pub(super) async fn open(
    ground: &Ground,
    chat: ChatId,
    wanted: Wanted,
    kept: Option<StoredChat>,
) -> Result<Opened, Failure> {
    let ground = ground.clone();
    let building = task::blocking(move || build(&ground, chat, wanted, kept));
    building.await.map_err(|error| {
        tracing::error!(%error, "a session could not be built");
        Failure::bug()
    })?
}

fn build(ground: &Ground, chat: ChatId, wanted: Wanted, kept: Option<StoredChat>) -> Result<Opened, Failure> {
    let Wanted { place, brought } = wanted;
    if !place.cwd.is_dir() {
        return Err(Failure::params(format!("cwd: {} is no folder", place.cwd.display())));
    }
    let workspace = Arc::new(place.workspace());
    let workspace_roots = workspace.roots().iter().map(|root| root.path.clone()).collect();
    let wishes = Wishes { options: None, workspace_roots };
    let mut memory = ground.memory.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let mut loaded = ground.surroundings.configuration(wishes.clone(), &memory);
    brought.lay_over(&mut loaded.config.mcp);
    let voice = Voice::new(ground.client.clone(), chat.clone());
    let commands_changed = Arc::new(Notify::new());
    let news = server_news(Arc::clone(&voice), Arc::clone(&commands_changed));
    let servers = ground.surroundings.servers(ground.client.facts().forms, news);
    let host = Arc::new(EditorHost::new(Arc::clone(&voice)));
    let known = loaded.problems.len();
    let sink = Arc::clone(&voice) as Arc<dyn crate::engine::EventSink>;
    let engine =
        ground.surroundings.engine_with(&mut loaded, sink, host, servers.clone(), Pace::Normal, ground.store.clone());
    let choice = Choice {
        agent: kept.as_ref().and_then(|kept| kept.agent.clone()),
        chats_model: kept.as_ref().and_then(|kept| kept.model.clone()),
        variant: kept.as_ref().and_then(|kept| kept.variant.clone()),
        trust: kept.as_ref().and_then(|kept| kept.trust).unwrap_or(false),
        model: None,
        default_agent: loaded.config.default_agent.clone(),
    };
    // With a command in it, this configuration is only a beginning, and so are its problems.
    let hold = (!memory.missing(&loaded.commands).is_empty()).then(|| engine.hold_prompts());
    memory.keep(&loaded);
    let store = ground.store.clone();
    let session = Session::new(Parts { chat, place, workspace, engine, servers, voice, store }, choice);
    let of_registry = loaded.problems.split_off(known);
    let keeper = Keeper {
        surroundings: ground.surroundings.clone(),
        session: Arc::clone(&session),
        wishes,
        brought,
        loaded,
        of_registry,
        memory,
        shared_memory: Arc::clone(&ground.memory),
        hold,
        commands_changed,
        reported: Vec::new(),
        told_withheld: Vec::new(),
    };
    Ok(Opened { session, keeper })
}

/// Where the news of a session's servers goes: what they offer changes what can be typed, and what
/// they say is said.
fn server_news(voice: Arc<Voice>, commands_changed: Arc<Notify>) -> Arc<dyn Fn(ServerEvent) + Send + Sync> {
    Arc::new(move |event| match event {
        ServerEvent::Updated(_) | ServerEvent::Removed { .. } => commands_changed.notify_one(),
        ServerEvent::Notice { level, text, .. } => {
            let level = match level {
                mcp::NoticeLevel::Info => NoticeLevel::Info,
                mcp::NoticeLevel::Warning => NoticeLevel::Warning,
            };
            voice.notice(level, &text);
        }
        ServerEvent::Authorize { server, url } => {
            let text = format!("MCP server {server}: open this address to log in: {url}");
            voice.notice(NoticeLevel::Info, &text);
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_a_session_needs_is_checked_field_by_field() {
        let problem = |params: Value| Wanted::read(&params, true).unwrap_err().message;
        assert_eq!(problem(json!({})), "cwd is missing");
        assert_eq!(problem(json!({"cwd": 1, "mcpServers": []})), "cwd: a text is expected");
        assert_eq!(problem(json!({"cwd": "a/b", "mcpServers": []})), "cwd: \"a/b\" is no absolute path");
        assert_eq!(problem(json!({"cwd": "/a"})), "mcpServers is missing");
        assert_eq!(problem(json!({"cwd": "/a", "mcpServers": {}})), "mcpServers: a list is expected");
        let odd = json!({"cwd": "/a", "mcpServers": [], "additionalDirectories": ["b"]});
        assert_eq!(problem(odd), "additionalDirectories: \"b\" is no absolute path");
        let many = json!({"cwd": "/a", "mcpServers": [], "additionalDirectories": vec!["/b"; 65]});
        assert!(problem(many).contains("at most 64"));
        let wanted = Wanted::read(&json!({"cwd": "/a", "additionalDirectories": ["/b"]}), false).unwrap();
        assert_eq!(wanted.place, Place { cwd: "/a".into(), additional: vec!["/b".into()] });
    }
}
