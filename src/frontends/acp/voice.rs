//! Engine events of one session on their way to the client: translated on the task that emits them,
//! then queued. The end of a turn is the response to its prompt, so that goes out here too, behind
//! everything that was said in it.

mod turns;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};

use agent_client_protocol_schema::v1::{
    CompactionId, CompactionStatus, CompactionUpdate, ContentBlock, ContentChunk, Cost, ImageContent, MessageId, Meta,
    Notice, NoticeSeverity, ResourceLink, SessionId, SessionInfoUpdate, SessionNotification, SessionUpdate, TerminalId,
    TextContent, ToolCall, ToolCallContent, ToolCallStatus, ToolCallUpdate, ToolCallUpdateFields, ToolKind,
    UsageUpdate,
};
use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::client::Client;
use super::permission::Question;
use super::session::Session;
use super::tool_calls::{self, Told};
use crate::base::task;
use crate::base::{ChatId, ToolCallId, text, time};
use crate::engine::{ChatEvent, Compaction, Event, EventSink, NoticeLevel, ToolCallEvent, ToolCallStage, UsageReport};
use crate::frontends::queue::queue;
use crate::tool::Details;
use crate::transport::{Frame, TextFrame, escape_json_into};
use turns::Turns;

/// What is said outside of a turn and cannot be shown then; more are forgotten.
const MOST_NOTICES: usize = 20;
const MAX_NOTICE_TITLE: usize = 200;

/// An editor's sink: a slow editor makes the chat wait, nothing is dropped.
pub(super) struct Voice {
    pub(super) client: Client,
    pub(super) id: SessionId,
    chat: ChatId,
    state: Mutex<State>,
    /// Set when the engine is there; the session owns the engine, which owns this.
    session: OnceLock<Weak<Session>>,
}

#[derive(Default)]
struct State {
    turns: Turns,
    /// What is said comes from the store, the user's own words included.
    replaying: bool,
    /// The beginning of every frame of the message that is being written.
    message: Option<Arc<str>>,
    /// The same for a thought, with its id.
    thought: Option<(String, Arc<str>)>,
    calls: HashMap<String, Told>,
    /// The chats of subagents, and the calls that they work for.
    children: HashMap<ChatId, ToolCallId>,
    compaction: Option<CompactionId>,
    notices: Vec<String>,
}

/// What an event comes to.
#[derive(Default)]
struct Said {
    frames: Vec<Frame>,
    /// What the user is to be asked once the frames are queued.
    question: Option<Question>,
}

impl Voice {
    pub(super) fn new(client: Client, chat: ChatId) -> Arc<Self> {
        let id = SessionId::new(chat.as_str());
        Arc::new(Self { client, id, chat, state: Mutex::default(), session: OnceLock::new() })
    }

    pub(super) fn speak_for(&self, session: &Arc<Session>) {
        let _ = self.session.set(Arc::downgrade(session));
    }

    pub(super) fn frame(&self, update: SessionUpdate) -> Frame {
        self.client.update(&SessionNotification::new(self.id.clone(), update))
    }

    /// Queues updates that belong to no turn.
    pub(super) fn say(&self, updates: impl IntoIterator<Item = SessionUpdate>) {
        let frames = updates.into_iter().map(|update| self.frame(update)).collect();
        if let Some(rest) = queue(self.client.peer.outbox(), frames) {
            task::spawn(rest);
        }
    }

    /// Says something that belongs to no turn: at once where the client has a place for it, else when
    /// the next turn begins.
    pub(super) fn notice(&self, level: NoticeLevel, text: &str) {
        if self.client.facts().notices {
            self.say([notice(level, text)]);
            return;
        }
        let mut state = self.state();
        if state.notices.len() < MOST_NOTICES {
            state.notices.push(text.trim().to_owned());
        }
    }

    /// What could not be said before, as the beginning of a turn.
    pub(super) fn flush_notices(&self) {
        let notices = std::mem::take(&mut self.state().notices);
        self.say(notices.into_iter().map(|text| message(format!("{text}\n\n"))));
    }

    /// A program of this call runs in a terminal of the client.
    pub(super) fn attach_terminal(&self, call: &ToolCallId, terminal: TerminalId) {
        let fields = self.state().calls.entry(call.to_string()).or_default().attach(terminal);
        self.say([SessionUpdate::ToolCallUpdate(ToolCallUpdate::new(call.to_string(), fields))]);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn said(&self, event: Event) -> Said {
        match event {
            Event::Chat { chat, event } if chat == self.chat => self.own(event),
            Event::Subagent { chat, event: ChatEvent::ToolCall(call), .. } => self.of_another(&chat, &call),
            // A subagent's words are its caller's affair, and a fork is a session of its own.
            Event::Subagent { .. } | Event::Chat { .. } => Said::default(),
            Event::ModelsChanged | Event::ProviderChanged { .. } => {
                let session = self.session.get().and_then(Weak::upgrade);
                let updates = session.map(|session| session.option_news()).unwrap_or_default();
                self.updates(updates)
            }
            Event::Notice { level, text } => {
                self.notice(level, &text);
                Said::default()
            }
        }
    }

    fn own(&self, event: ChatEvent) -> Said {
        let mut state = self.state();
        let event = match event {
            ChatEvent::Text(text) => return Said { frames: vec![self.text(&mut state, &text)], question: None },
            ChatEvent::ReasonText { id, text } => {
                return Said { frames: vec![self.thought(&mut state, &id, &text)], question: None };
            }
            ChatEvent::ToolCall(call) => {
                state.message = None;
                return self.call(&mut state, &self.chat, call.id.to_string(), &call, None);
            }
            ChatEvent::Finished => {
                let mut updates = Vec::new();
                if let Some(open) = state.compaction.take() {
                    updates.push(SessionUpdate::CompactionUpdate(CompactionUpdate::new(
                        open,
                        CompactionStatus::Cancelled,
                    )));
                }
                state.message = None;
                state.calls.clear();
                let mut said = self.updates(updates);
                said.frames.extend(state.turns.finish(&self.client.peer));
                return said;
            }
            other => other,
        };
        match &event {
            ChatEvent::Failed(text) => state.turns.fail(text),
            ChatEvent::Ending(ending) => state.turns.end_by(*ending),
            ChatEvent::Cleared => {
                state.replaying = true;
                state.message = None;
            }
            _ => {}
        }
        let updates = self.plain_updates(&mut state, event);
        drop(state);
        self.updates(updates)
    }

    /// Everything that is translated on its own.
    fn plain_updates(&self, state: &mut State, event: ChatEvent) -> Vec<SessionUpdate> {
        match event {
            ChatEvent::UserText { text, .. } if state.replaying => {
                state.message = None;
                let block = ContentBlock::Text(TextContent::new(text.trim_end().to_owned()));
                vec![SessionUpdate::UserMessageChunk(chunk(block))]
            }
            // The user stopped; no more words about it.
            ChatEvent::SystemText(_) if state.turns.is_cancelled() => Vec::new(),
            ChatEvent::SystemText(text) => {
                state.message = None;
                vec![message(text)]
            }
            ChatEvent::Citation { title, url } => {
                let name = if title.is_empty() { url.clone() } else { title };
                vec![SessionUpdate::AgentMessageChunk(chunk(ContentBlock::ResourceLink(ResourceLink::new(name, url))))]
            }
            ChatEvent::Image { media_type, base64 } => {
                let image = ContentBlock::Image(ImageContent::new(base64, media_type));
                vec![SessionUpdate::AgentMessageChunk(chunk(image))]
            }
            ChatEvent::ToolOutput { id, text } => {
                let told = state.calls.entry(id.to_string()).or_default();
                let fields = told.output(&text, Instant::now());
                let update = |fields| SessionUpdate::ToolCallUpdate(ToolCallUpdate::new(id.to_string(), fields));
                fields.map(update).into_iter().collect()
            }
            ChatEvent::HookStarted { id, name } => {
                let call = ToolCall::new(id, format!("Hook: {name}"));
                vec![SessionUpdate::ToolCall(call.kind(ToolKind::Other).status(ToolCallStatus::InProgress))]
            }
            ChatEvent::HookFinished { id, status, output, error, .. } => vec![hook_end(id, status, output, error)],
            ChatEvent::Usage(report) => usage(&report).into_iter().collect(),
            ChatEvent::Title(title) if !title.is_empty() => {
                let update = SessionInfoUpdate::new().title(title);
                let now = time::iso8601(time::now_ms());
                vec![SessionUpdate::SessionInfoUpdate(if state.replaying { update } else { update.updated_at(now) })]
            }
            ChatEvent::Compaction(stage) if self.client.facts().compaction => vec![compaction(state, stage)],
            _ => Vec::new(),
        }
    }

    /// A call of a subagent, shown under the call that it works for. One of a chat that nobody told
    /// of is shown too when the user is asked about it: without an answer it would wait for ever.
    fn of_another(&self, chat: &ChatId, call: &ToolCallEvent) -> Said {
        let mut state = self.state();
        let parent = state.children.get(chat).cloned();
        let is_asked = matches!(call.stage, ToolCallStage::Run { manual_approval: true, .. });
        if parent.is_none() && !is_asked {
            return Said::default();
        }
        self.call(&mut state, chat, format!("{chat}:{}", call.id), call, parent)
    }

    fn call(
        &self,
        state: &mut State,
        chat: &ChatId,
        id: String,
        call: &ToolCallEvent,
        parent: Option<ToolCallId>,
    ) -> Said {
        let mut updates = Vec::new();
        if let Some(Details::Subagent(subagent)) = &call.details
            && let Some(child) = &subagent.chat
        {
            state.children.insert(child.clone(), call.id.clone());
        }
        if let Some(Details::Task(tasks)) = &call.details {
            updates.push(tool_calls::plan(tasks));
            // The list is empty again, which is no call of anybody.
            if !state.calls.contains_key(&id) && matches!(call.stage, ToolCallStage::Called { .. }) {
                return self.updates(updates);
            }
        }
        if !state.calls.contains_key(&id) {
            updates.push(Told::announcement(&id, call));
        }
        let told = state.calls.entry(id.clone()).or_default();
        if let Some(fields) = told.stage(call) {
            updates.push(SessionUpdate::ToolCallUpdate(ToolCallUpdate::new(id.clone(), fields)));
        }
        for update in &mut updates {
            set_parent(update, parent.as_ref());
        }
        let mut said = self.updates(updates);
        if matches!(call.stage, ToolCallStage::Run { manual_approval: true, .. }) {
            said.question = self.session.get().and_then(Weak::upgrade).map(|session| {
                let (chat, ended) = (chat.clone(), state.turns.ended());
                Question { session, chat, call: call.id.clone(), wire_id: id, event: call.clone(), ended }
            });
        }
        said
    }

    fn updates(&self, updates: impl IntoIterator<Item = SessionUpdate>) -> Said {
        Said { frames: updates.into_iter().map(|update| self.frame(update)).collect(), question: None }
    }

    fn text(&self, state: &mut State, text: &str) -> Frame {
        let head = state.message.get_or_insert_with(|| self.head("agent_message_chunk", &fresh_id()));
        self.mergeable(Arc::clone(head), text)
    }

    fn thought(&self, state: &mut State, id: &str, text: &str) -> Frame {
        let head = match &state.thought {
            Some((known, head)) if known == id => Arc::clone(head),
            _ => {
                let head = self.head("agent_thought_chunk", id);
                state.thought = Some((id.to_owned(), Arc::clone(&head)));
                head
            }
        };
        self.mergeable(head, text)
    }

    /// Everything of a chunk before its text. Text comes in thousands of small pieces, so their
    /// frames are put together by hand and left open for merging.
    fn head(&self, kind: &str, message: &str) -> Arc<str> {
        let mut head = String::with_capacity(240);
        head.push_str(r#"{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":""#);
        escape_json_into(&self.id.0, &mut head);
        head.push_str(r#"","update":{"sessionUpdate":""#);
        head.push_str(kind);
        head.push_str(r#"","messageId":""#);
        escape_json_into(message, &mut head);
        head.push_str(r#"","content":{"type":"text","text":""#);
        head.into()
    }

    fn mergeable(&self, head: Arc<str>, text: &str) -> Frame {
        let mut escaped = String::with_capacity(text.len() + 8);
        escape_json_into(text, &mut escaped);
        Frame::Text(TextFrame { key: Arc::clone(&self.id.0), head, text: escaped, tail: r#""}}}}"# })
    }
}

impl EventSink for Voice {
    fn emit(&self, event: Event) -> Option<BoxFuture<'static, ()>> {
        let Said { frames, question } = self.said(event);
        match queue(self.client.peer.outbox(), frames) {
            None => {
                if let Some(question) = question {
                    question.ask();
                }
                None
            }
            Some(rest) => Some(Box::pin(async move {
                rest.await;
                if let Some(question) = question {
                    question.ask();
                }
            })),
        }
    }
}

fn fresh_id() -> String {
    uuid::Uuid::new_v4().to_string()
}

/// A chunk that is a message of its own.
fn chunk(content: ContentBlock) -> ContentChunk {
    ContentChunk::new(content).message_id(MessageId::new(fresh_id()))
}

fn message(text: impl Into<String>) -> SessionUpdate {
    SessionUpdate::AgentMessageChunk(chunk(ContentBlock::Text(TextContent::new(text.into()))))
}

fn notice(level: NoticeLevel, said: &str) -> SessionUpdate {
    let severity = match level {
        NoticeLevel::Info => NoticeSeverity::Info,
        NoticeLevel::Warning => NoticeSeverity::Warning,
        NoticeLevel::Error => NoticeSeverity::Error,
    };
    let title = text::one_line(said, MAX_NOTICE_TITLE);
    let rest = (title.len() < said.trim().len()).then(|| said.trim().to_owned());
    SessionUpdate::Notice(Notice::new(severity, title).description(rest))
}

fn usage(report: &UsageReport) -> Option<SessionUpdate> {
    let update = UsageUpdate::new(report.last.occupancy(), report.context_limit?);
    let cost = report.total_cost.map(|dollars| Cost::new(dollars, "USD"));
    Some(SessionUpdate::UsageUpdate(update.cost(cost)))
}

fn hook_end(id: String, status: i32, output: Option<String>, error: Option<String>) -> SessionUpdate {
    let ended = if status == 0 { ToolCallStatus::Completed } else { ToolCallStatus::Failed };
    let texts = [error, output].into_iter().flatten().filter(|text| !text.trim().is_empty());
    let content: Vec<ToolCallContent> =
        texts.map(|text| ToolCallContent::from(ContentBlock::Text(TextContent::new(text)))).collect();
    let fields = ToolCallUpdateFields::new().status(ended).content(content).raw_output(json!({"exitCode": status}));
    SessionUpdate::ToolCallUpdate(ToolCallUpdate::new(id, fields))
}

fn compaction(state: &mut State, stage: Compaction) -> SessionUpdate {
    let id = state.compaction.take().unwrap_or_else(|| CompactionId::new(fresh_id()));
    let update = |status| CompactionUpdate::new(id.clone(), status);
    SessionUpdate::CompactionUpdate(match stage {
        Compaction::Started => {
            let update = update(CompactionStatus::InProgress);
            state.compaction = Some(id);
            update
        }
        Compaction::Done { summary } => {
            update(CompactionStatus::Completed).summary(vec![ContentBlock::Text(TextContent::new(summary))])
        }
        Compaction::Failed { reason } => update(CompactionStatus::Failed).error(reason),
    })
}

fn set_parent(update: &mut SessionUpdate, parent: Option<&ToolCallId>) {
    let Some(parent) = parent else { return };
    let meta = || Meta::from_iter([("parentToolCallId".to_owned(), Value::from(parent.as_str()))]);
    match update {
        SessionUpdate::ToolCall(call) => call.meta = Some(meta()),
        SessionUpdate::ToolCallUpdate(update) => update.meta = Some(meta()),
        _ => {}
    }
}

#[cfg(test)]
mod tests;
