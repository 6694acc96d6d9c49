//! One session: a chat, the folders it works in, and an engine of its own. Sessions of one client
//! may have different folders, servers and configurations, so they share only the history.

use std::ops::Deref;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use agent_client_protocol_schema::v1::{
    AvailableCommand, AvailableCommandInput, AvailableCommandsUpdate, SessionConfigOption, SessionModeId,
    SessionUpdate, UnstructuredCommandInput,
};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::failure::Failure;
use super::from_wire::Said;
use super::voice::Voice;
use crate::base::task;
use crate::base::{ChatId, ModelId};
use crate::engine::{CommandInfo, Engine, Prompt, ReplyWhen};
use crate::mcp::Servers;
use crate::store::Store;
use crate::transport::Id;
use crate::workspace::Workspace;

/// Under which name the store keeps where a session works.
pub(super) const PLACE: &str = "place";
const CWD: &str = "cwd";
const ADDITIONAL: &str = "additionalDirectories";

/// Where a session works.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) cwd: PathBuf,
    pub(super) additional: Vec<PathBuf>,
}

impl Place {
    pub(super) fn workspace(&self) -> Workspace {
        let folder = |path: &PathBuf| (crate::workspace::uri_from_path(path), None);
        let folders: Vec<_> = std::iter::once(&self.cwd).chain(&self.additional).map(folder).collect();
        let (workspace, warnings) = Workspace::from_folders(&folders);
        for warning in warnings {
            tracing::warn!(%warning, "a folder of a session is not used");
        }
        workspace
    }

    fn to_json(&self) -> Value {
        let additional: Vec<_> = self.additional.iter().map(|path| path.to_string_lossy()).collect();
        json!({CWD: self.cwd.to_string_lossy(), ADDITIONAL: additional})
    }

    pub(super) fn from_json(value: &Value) -> Option<Self> {
        let path = |value: &Value| value.as_str().map(PathBuf::from).filter(|path| path.is_absolute());
        let additional = value.get(ADDITIONAL).and_then(Value::as_array);
        Some(Self {
            cwd: path(value.get(CWD)?)?,
            additional: additional.into_iter().flatten().filter_map(path).collect(),
        })
    }
}

/// What the user chose; what is absent was not chosen.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Choice {
    pub(super) agent: Option<String>,
    pub(super) model: Option<ModelId>,
    pub(super) variant: Option<String>,
    pub(super) trust: bool,
    /// The model that the chat was last answered by.
    pub(super) chats_model: Option<ModelId>,
    /// What the configuration says.
    pub(super) default_agent: String,
}

/// What the client knows, so that only news is told.
#[derive(Debug, Default)]
struct Told {
    mode: Option<SessionModeId>,
    options: Vec<SessionConfigOption>,
    commands: Option<Vec<AvailableCommand>>,
}

pub(super) struct Session {
    parts: Parts,
    /// Cancelled when the session ends.
    pub(super) closed: CancellationToken,
    choice: Mutex<Choice>,
    told: Mutex<Told>,
    /// Whether the store knows where this session works.
    placed: AtomicBool,
}

/// What a session is made of.
pub(super) struct Parts {
    pub(super) chat: ChatId,
    pub(super) place: Place,
    pub(super) workspace: Arc<Workspace>,
    pub(super) engine: Engine,
    pub(super) servers: Servers,
    pub(super) voice: Arc<Voice>,
    pub(super) store: Store,
}

impl Deref for Session {
    type Target = Parts;
    fn deref(&self) -> &Parts {
        &self.parts
    }
}

impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Session").field("chat", &self.chat).field("place", &self.place).finish_non_exhaustive()
    }
}

impl Session {
    pub(super) fn new(parts: Parts, choice: Choice) -> Arc<Self> {
        let session = Arc::new(Self {
            parts,
            closed: CancellationToken::new(),
            choice: Mutex::new(choice),
            told: Mutex::default(),
            placed: AtomicBool::new(false),
        });
        session.voice.speak_for(&session);
        session
    }

    pub(super) fn choice(&self) -> Choice {
        lock(&self.choice).clone()
    }

    pub(super) fn choose(&self, change: impl FnOnce(&mut Choice)) {
        change(&mut lock(&self.choice));
    }

    /// Begins a turn, which will answer the request. Awaits nothing: a cancellation that follows
    /// finds the prompt submitted.
    pub(super) fn prompt(self: &Arc<Self>, id: Id, said: Said) -> Result<(), Failure> {
        let choice = self.choice();
        let prompt = Prompt {
            chat: Some(self.chat.clone()),
            text: said.text,
            model: choice.model.as_ref().map(ToString::to_string),
            variant: choice.variant.clone(),
            agent: Some(self.agent()),
            trust: Some(choice.trust),
            contexts: said.contexts,
            workspace: Arc::clone(&self.workspace),
            reply: ReplyWhen::Recorded,
        };
        self.voice.flush_notices();
        self.voice.expect(id.clone());
        let accepted = match self.engine.submit(prompt) {
            Ok(accepted) => accepted,
            Err(error) => {
                self.voice.forget(&id);
                return Err(Failure::internal(error.to_string()));
            }
        };
        let session = Arc::clone(self);
        task::spawn(async move {
            match accepted.await {
                Ok(accepted) => {
                    // The turn's end is its response, so nothing has to be waited for.
                    drop(accepted.hold);
                    session.note_model(&accepted.model);
                    session.keep_place().await;
                }
                Err(_) => session.refuse(&id, "the server is shutting down").await,
            }
        });
        Ok(())
    }

    async fn refuse(&self, id: &Id, problem: &str) {
        if self.voice.forget(id) {
            let failure = Failure::internal(problem);
            let _ = self.voice.client.peer.respond(id, &Err(failure.into())).await;
        }
    }

    /// Who answers may be another model than the one that was shown.
    fn note_model(&self, model: &str) {
        if let Some(model) = ModelId::parse(model) {
            self.choose(|choice| choice.chats_model = Some(model));
            self.voice.say(self.option_news());
        }
    }

    /// A chat is in the store from its first prompt on.
    async fn keep_place(&self) {
        if self.placed.swap(true, Ordering::AcqRel) {
            return;
        }
        let kept = self.store.set_state(&self.chat, PLACE, Some(&self.place.to_json())).await;
        if !matches!(kept, Ok(true)) {
            self.placed.store(false, Ordering::Release);
        }
    }

    /// Ends what is being done; its prompts are answered as cancelled.
    pub(super) fn cancel(&self) {
        if self.voice.cancel() {
            self.engine.stop(&self.chat);
        }
    }

    /// Ends everything. The prompts are answered before this returns.
    pub(super) async fn close(&self) {
        self.closed.cancel();
        self.voice.cancel();
        let (ended, ()) = tokio::join!(self.engine.end(), self.servers.shutdown());
        if let Err(error) = ended {
            tracing::warn!(chat = %self.chat, %error, "a session did not end in order");
        }
    }

    /// Notes what the client is told; says whether the mode and the options are news.
    pub(super) fn note_told(&self, mode: &SessionModeId, options: &[SessionConfigOption]) -> (bool, bool) {
        let mut told = lock(&self.told);
        let news = (told.mode.as_ref() != Some(mode), told.options != options);
        told.mode = Some(mode.clone());
        told.options = options.to_vec();
        news
    }

    /// The mode that the client shows.
    pub(super) fn told_mode(&self) -> Option<SessionModeId> {
        lock(&self.told).mode.clone()
    }

    /// Tells what can be typed after a slash, when that is news.
    pub(super) async fn tell_commands(&self) {
        let commands = self.engine.commands(&self.workspace).await;
        let commands: Vec<AvailableCommand> = commands.into_iter().map(command).collect();
        {
            let mut told = lock(&self.told);
            if told.commands.as_ref() == Some(&commands) {
                return;
            }
            told.commands = Some(commands.clone());
        }
        self.voice.say([SessionUpdate::AvailableCommandsUpdate(AvailableCommandsUpdate::new(commands))]);
    }
}

fn command(info: CommandInfo) -> AvailableCommand {
    let hint = |argument: &crate::engine::CommandArgument| {
        let about = argument.description.as_deref().unwrap_or(&argument.name);
        if argument.required { format!("<{about}>") } else { format!("[{about}]") }
    };
    let hints: Vec<String> = info.arguments.iter().map(hint).collect();
    let input = UnstructuredCommandInput::new(hints.join(" "));
    let input = (!hints.is_empty()).then_some(AvailableCommandInput::Unstructured(input));
    AvailableCommand::new(info.name, info.description).input(input)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_come_back_as_they_were() {
        let place = Place { cwd: "/a b".into(), additional: vec!["/c".into()] };
        assert_eq!(Place::from_json(&place.to_json()), Some(place.clone()));
        assert_eq!(Place::from_json(&json!({"cwd": "relative"})), None);
        assert_eq!(Place::from_json(&json!(7)), None);
        assert_eq!(place.workspace().roots().len(), 2);
    }

    #[test]
    fn arguments_of_a_command_are_hints() {
        let argument =
            |name: &str, required| crate::engine::CommandArgument { name: name.into(), description: None, required };
        let info = CommandInfo {
            name: "search".into(),
            kind: crate::engine::CommandKind::Native,
            description: "Find".into(),
            arguments: vec![argument("words", true), argument("where", false)],
        };
        let sent = serde_json::to_value(command(info)).unwrap();
        assert_eq!(sent, json!({"name": "search", "description": "Find", "input": {"hint": "<words> [where]"}}));
    }
}
