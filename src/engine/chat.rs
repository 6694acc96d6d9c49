//! One chat: the actor that owns its history, accepts prompts, starts turns and closes them.
//!
//! The order in which a prompt is answered is the heart of the protocol; it is in [`accept`].

mod accept;
mod child;
mod commands;
mod ending;
mod equip;
mod hooked;
mod instruct;
mod kept;
mod login;
mod operations;

use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::chat_tools::{ChatMemory, TurnMail};
use super::emitter::{Emitter, say};
use super::event::{ChatEvent, ChatStatus, Event, EventSink};
use super::login::Login;
use super::prompt::{Accepted, Prompt};
use super::subagent::{Lineage, Report, SubagentSink, Task};
use super::turn::{Cause, ConnectionReport, OpenState, Totals, Turn, TurnEnd, TurnEvent};
use super::{Pace, Shared, mcp_parts};
use crate::base::task;
use crate::base::{ChatId, ModelId};
use crate::llm::{Message, Provider};
use crate::store::StoreError;

/// Commands that may wait in a chat's inbox.
const INBOX: usize = 64;
/// A stopped turn may take so long to end by itself.
const STOP_GRACE: Duration = Duration::from_millis(500);
/// A chat nobody used for so long leaves memory; the store has it.
const UNLOAD_AFTER: Duration = Duration::from_secs(10 * 60);
/// A prompt waits so long for MCP servers that are about to be ready.
const SERVERS_WAIT: Duration = Duration::from_secs(3);
/// Under which name the store keeps the task list.
const TASKS: &str = "tasks";

pub use equip::SwitchedOff;
use instruct::Pinned;
pub(super) use instruct::listed_commands;
pub(super) use operations::Operation;
pub use operations::{Done, OpenedChat, OperationError, PageInfo};

pub(super) enum Command {
    Prompt {
        prompt: Box<Prompt>,
        reply: oneshot::Sender<Accepted>,
    },
    Stop,
    Delete {
        reply: oneshot::Sender<Result<(), StoreError>>,
    },
    Operate {
        operation: Operation,
        reply: operations::Reply,
    },
    /// What a chat that works for another one is to do.
    Task(Box<Task>),
    /// A title that was made beside a turn.
    Title(String),
    /// A login that was begun here, or could not be completed.
    LoginOver {
        provider: String,
        text: String,
    },
    Shutdown {
        reply: oneshot::Sender<()>,
    },
}

/// Whose idea the chat's id was; a client is told that a chat of its own naming was opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Origin {
    Client,
    Minted,
}

/// The engine's grip on a chat.
pub(super) struct ChatHandle {
    inbox: mpsc::Sender<Command>,
    live: Arc<Live>,
}

/// What must be reachable without waiting for the actor.
struct Live {
    turn: Mutex<CancellationToken>,
    status: AtomicU8,
    mail: Arc<TurnMail>,
}

impl ChatHandle {
    pub(super) fn send(&self, command: Command) -> Result<(), ()> {
        self.inbox.try_send(command).map_err(|_| ())
    }

    /// Ends the turn that runs now, whatever waits in the inbox.
    pub(super) fn interrupt(&self) {
        self.live.turn.lock().unwrap_or_else(PoisonError::into_inner).cancel();
    }

    /// What reaches the turn that runs now.
    pub(super) fn mail(&self) -> &TurnMail {
        &self.live.mail
    }

    pub(super) fn status(&self) -> ChatStatus {
        match self.live.status.load(Ordering::Relaxed) {
            1 => ChatStatus::Running,
            2 => ChatStatus::Stopping,
            3 => ChatStatus::Login,
            _ => ChatStatus::Idle,
        }
    }
}

/// `lineage` is for a chat that works for another one.
pub(super) fn spawn(id: ChatId, origin: Origin, shared: Arc<Shared>, lineage: Option<Arc<Lineage>>) -> ChatHandle {
    let (sender, inbox) = mpsc::channel(INBOX);
    let mut memory = ChatMemory::default();
    let mut sink = Arc::clone(&shared.sink);
    if let Some(lineage) = &lineage {
        memory.remembered = Arc::clone(&lineage.remembered);
        sink = Arc::new(SubagentSink::new(sink, lineage.parent.clone()));
    }
    let parent = lineage.as_ref().map(|lineage| Arc::clone(&lineage.mail));
    let live = Arc::new(Live {
        turn: Mutex::new(CancellationToken::new()),
        status: AtomicU8::new(0),
        mail: Arc::new(TurnMail::below(parent)),
    });
    let actor = ChatActor {
        id,
        origin,
        shared,
        inbox,
        own_inbox: sender.downgrade(),
        live: Arc::clone(&live),
        history: Vec::new(),
        model: None,
        totals: Totals::default(),
        occupancy: 0,
        prompts: 0,
        named_by_user: false,
        loaded: false,
        unanswered: false,
        running: None,
        login: None,
        memory: Arc::new(memory),
        pinned: None,
        start_contexts: Vec::new(),
        began: false,
        last: None,
        sink,
        lineage,
        report: None,
        ended: TurnEnd::Finished,
    };
    task::spawn(actor.run());
    ChatHandle { inbox: sender, live }
}

struct ChatActor {
    id: ChatId,
    origin: Origin,
    shared: Arc<Shared>,
    inbox: mpsc::Receiver<Command>,
    own_inbox: mpsc::WeakSender<Command>,
    live: Arc<Live>,
    history: Vec<Message>,
    model: Option<ModelId>,
    totals: Totals,
    /// How full the window was after the last call.
    occupancy: u64,
    prompts: u32,
    named_by_user: bool,
    loaded: bool,
    /// The last turn in the store has no end: the server that ran it was killed, or the model failed.
    unanswered: bool,
    running: Option<Running>,
    /// Whose next message belongs to a login.
    login: Option<Login>,
    /// What the tools know from one turn to the next.
    memory: Arc<ChatMemory>,
    /// The system prompt of this chat, which stays what it was.
    pinned: Option<Pinned>,
    /// What hooks added when the chat began.
    start_contexts: Vec<(String, String)>,
    /// Whether the hooks for the beginning of the chat have run.
    began: bool,
    last: Option<hooked::Last>,
    /// Where the events of this chat go.
    sink: Arc<dyn EventSink>,
    /// For whom this chat works.
    lineage: Option<Arc<Lineage>>,
    /// Who waits for the end of this chat's task.
    report: Option<oneshot::Sender<Report>>,
    /// How the last turn ended.
    ended: TurnEnd,
}

struct Running {
    task: JoinHandle<TurnEnd>,
    events: mpsc::Receiver<TurnEvent>,
    open: OpenState,
    stop: CancellationToken,
}

enum Next {
    Command(Option<Command>),
    Turn(Option<TurnEvent>),
    Idle,
}

impl ChatActor {
    async fn run(mut self) {
        loop {
            let next = match &mut self.running {
                Some(running) => tokio::select! {
                    biased;
                    command = self.inbox.recv() => Next::Command(command),
                    event = running.events.recv() => Next::Turn(event),
                },
                None => match tokio::time::timeout(UNLOAD_AFTER, self.inbox.recv()).await {
                    Ok(command) => Next::Command(command),
                    Err(_) => Next::Idle,
                },
            };
            match next {
                Next::Command(Some(command)) => {
                    if !self.on_command(command).await {
                        return;
                    }
                }
                Next::Command(None) => return,
                Next::Turn(Some(event)) => self.on_turn_event(event).await,
                // The turn dropped its end: it is over.
                Next::Turn(None) => self.on_turn_over().await,
                Next::Idle => {
                    let idle = &self.inbox;
                    if self.shared.chats.remove_if(&self.id, |_, _| idle.is_empty()).is_some() {
                        let _ = self.shared.store.release(&self.id).await;
                        return;
                    }
                }
            }
            if self.has_reported().await {
                return;
            }
        }
    }

    /// Returns whether the chat lives on.
    async fn on_command(&mut self, command: Command) -> bool {
        match command {
            Command::Prompt { prompt, reply } => self.on_prompt(*prompt, reply).await,
            Command::Stop => self.close_turn().await,
            Command::Operate { operation, reply } => self.on_operation(operation, reply).await,
            Command::Task(task) => self.on_task(*task).await,
            Command::Title(title) => self.on_title(title).await,
            Command::LoginOver { provider, text } => self.on_login_over(&provider, &text).await,
            Command::Delete { reply } => {
                self.close_turn().await;
                self.hooks_at_end().await;
                let result = self.shared.store.delete(&self.id).await.map(|_| ());
                self.emit(ChatEvent::Deleted).await;
                self.leave();
                let _ = reply.send(result);
                return false;
            }
            Command::Shutdown { reply } => {
                self.close_turn().await;
                let _ = self.shared.store.release(&self.id).await;
                let _ = reply.send(());
                return false;
            }
        }
        true
    }

    /// Makes room for another chat of this id, which gets what has come in for it meanwhile.
    fn leave(&mut self) {
        self.shared.chats.remove(&self.id);
        self.inbox.close();
        while let Ok(command) = self.inbox.try_recv() {
            // Whoever made up the id of the deleted chat, this one is of the client's naming.
            let sent = self.shared.with_handle(&self.id, Origin::Client, |handle| handle.send(command));
            if sent.is_err() {
                tracing::warn!(chat = %self.id, "a command for a deleted chat was dropped");
            }
        }
    }

    async fn start_turn(
        &mut self,
        prompt: &Prompt,
        model: ModelId,
        provider: Arc<dyn Provider>,
        mut notes: Vec<String>,
        connection: Option<ConnectionReport>,
        compact_now: Option<Cause>,
    ) {
        let stop = CancellationToken::new();
        *self.live.turn.lock().unwrap_or_else(PoisonError::into_inner) = stop.clone();
        self.emit_status(ChatStatus::Running).await;
        let title = self.title_job(&model, &provider, prompt);
        let title_first = match (title, self.shared.pace) {
            (Some(job), Pace::Deterministic) => Some(job),
            (Some(job), Pace::Normal) => {
                self.make_title_aside(job);
                None
            }
            (None, _) => None,
        };
        let settings = self.shared.settings();
        let wanted = prompt.agent.as_deref().unwrap_or(&settings.config().default_agent);
        let (agent, note) = settings.config().agent_name(wanted);
        notes.extend(note.map(|note| format!("{note}\n\n")));
        let agent = agent.as_str();
        let agent_config = settings.config().agent_of(agent);
        let customization = self.shared.instructions.of(&prompt.workspace, settings.config(), &*self.shared.sink).await;
        let variant_payload = self.variant_payload(prompt.variant.as_deref(), agent, &model, &mut notes);
        let (sender, events) = mpsc::channel(16);
        let open = OpenState::default();
        let info = settings.registry.info(&model);
        let late = self.shared.servers.ready_within(SERVERS_WAIT).await;
        if !late.is_empty() {
            notes.push(format!("Not ready yet, so not part of this answer: MCP server {}.\n\n", late.join(", ")));
        }
        let tools = self.turn_tools(prompt, agent, &model, info.as_ref(), &customization);
        let mut system = self.system_prompt(prompt, agent, &model, &tools, &customization, &mut notes);
        system.push_str(&mcp_parts::instructions(&self.shared.servers));
        let turn = Turn {
            emitter: Emitter { chat: self.id.clone(), sink: Arc::clone(&self.sink), stop: stop.clone() },
            provider,
            info: info.clone(),
            retry: settings.registry.retry(model.provider()),
            model,
            max_steps: agent_config.max_steps.unwrap_or(settings.config().chat.max_steps),
            variant_payload,
            system,
            history: self.history.clone(),
            tools,
            totals: self.totals,
            open: open.clone(),
            events: sender,
            notes,
            connection,
            title_first,
            compact_now,
            auto_compact_percentage: agent_config
                .auto_compact_percentage
                .unwrap_or(settings.config().auto_compact_percentage),
            occupancy: self.occupancy,
            told_progress: "",
            compacted: false,
            ended_by_hook: false,
            prompts: settings.config().prompts_of(agent),
            steps: self.lineage.clone(),
            end: TurnEnd::Finished,
        };
        self.running = Some(Running { task: task::spawn(turn.run()), events, open, stop });
    }

    async fn emit_status(&self, status: ChatStatus) {
        let number = match status {
            ChatStatus::Idle => 0,
            ChatStatus::Running => 1,
            ChatStatus::Stopping => 2,
            ChatStatus::Login => 3,
        };
        if self.live.status.swap(number, Ordering::Relaxed) != number {
            self.hooks_on_status(status);
        }
        self.emit(ChatEvent::Status(status)).await;
    }

    async fn emit(&self, event: ChatEvent) {
        say(&*self.sink, Event::Chat { chat: self.id.clone(), event }).await;
    }
}
