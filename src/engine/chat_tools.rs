//! What the tools of a chat share beyond one turn, and what a turn needs to run its calls.

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{Semaphore, oneshot};
use tokio_util::sync::CancellationToken;

use super::hooks::Hooks;
use super::tool_call::OpenCall;
use super::toolbox::Toolbox;
use super::tools::fetch_rule::{FetchedRules, ScopedRules};
use super::tools::task::TaskList;
use super::turn::Totals;
use crate::approval::{self, Remembered, Roots, Rules, Verdict};
use crate::base::task;
use crate::base::{ChatId, ModelId, ToolCallId};
use crate::config::{Ruling, ToolCallConfig};
use crate::customization::hooks::ChatFacts;
use crate::host::Host;
use crate::llm::{Message, Part};
use crate::tool::{Arguments, Journal, LiveOutput, Prepared, Preview, SeenFiles, Tool, ToolContext};
use crate::tools::jobs::Jobs;
use crate::workspace::Workspace;

/// The user's word on a call that waits for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// `remember`: also for the next calls like it.
    Approve {
        remember: bool,
    },
    Reject,
}

/// What reaches a running turn from outside without waiting for the chat's inbox.
#[derive(Debug, Default)]
pub(super) struct TurnMail {
    waiting: Mutex<HashMap<ToolCallId, oneshot::Sender<Decision>>>,
    steer: Mutex<String>,
    trust: AtomicBool,
    /// Of the chat that this one works for.
    parent: Option<Arc<TurnMail>>,
}

/// More text than anybody types while a tool runs.
const MAX_STEER_BYTES: usize = 256 * 1024;

impl TurnMail {
    pub(super) fn below(parent: Option<Arc<Self>>) -> Self {
        Self { parent, ..Self::default() }
    }

    /// Resolves when the user decides about this call.
    pub(super) fn await_decision(&self, call: &ToolCallId) -> oneshot::Receiver<Decision> {
        let (sender, receiver) = oneshot::channel();
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        // Those of turns that were stopped.
        waiting.retain(|_, sender| !sender.is_closed());
        waiting.insert(call.clone(), sender);
        receiver
    }

    /// Whether a call waited for it.
    pub(super) fn decide(&self, call: &ToolCallId, decision: Decision) -> bool {
        let waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner).remove(call);
        waiting.is_some_and(|sender| sender.send(decision).is_ok())
    }

    /// The calls that wait for the user.
    pub(super) fn waiting(&self) -> Vec<ToolCallId> {
        let waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.iter().filter(|(_, sender)| !sender.is_closed()).map(|(id, _)| id.clone()).collect()
    }

    /// Something for the model at the next chance; several become one message.
    pub(super) fn steer(&self, text: &str) {
        let mut steer = self.steer.lock().unwrap_or_else(PoisonError::into_inner);
        if steer.len() + text.len() > MAX_STEER_BYTES {
            return;
        }
        if !steer.is_empty() {
            steer.push('\n');
        }
        steer.push_str(text);
    }

    pub(super) fn take_steer(&self) -> Option<String> {
        let taken = std::mem::take(&mut *self.steer.lock().unwrap_or_else(PoisonError::into_inner));
        (!taken.trim().is_empty()).then_some(taken)
    }

    /// Whoever trusts a chat trusts those that work for it, from one moment to the next.
    pub(super) fn trusts(&self) -> bool {
        self.trust.load(Ordering::Relaxed) || self.parent.as_ref().is_some_and(|parent| parent.trusts())
    }

    pub(super) fn set_trust(&self, trust: bool) {
        self.trust.store(trust, Ordering::Relaxed);
    }
}

/// What the user allowed, for one chat or for all of them.
pub(super) type Consents = Arc<Mutex<Remembered>>;

/// What a chat's tools know from one turn to the next; gone when the chat leaves memory.
#[derive(Debug)]
pub(super) struct ChatMemory {
    pub(super) seen: Arc<SeenFiles>,
    pub(super) remembered: Consents,
    pub(super) tasks: Mutex<TaskList>,
    pub(super) fetched_rules: Mutex<FetchedRules>,
    /// Of all calls that the client was told of, also of those that never got into the history.
    call_ids: Mutex<HashSet<ToolCallId>>,
    /// What subagents used that this chat has not counted yet.
    pub(super) spent: Arc<Mutex<Totals>>,
    /// How many subagents may work at once.
    pub(super) subagents: Semaphore,
    /// Models that could not use an image of this chat.
    blind: Mutex<Vec<ModelId>>,
}

/// Subagents of one chat that work at the same time; more wait for their turn.
const MOST_SUBAGENTS: usize = 8;

impl Default for ChatMemory {
    fn default() -> Self {
        Self {
            seen: Arc::default(),
            remembered: Consents::default(),
            tasks: Mutex::default(),
            fetched_rules: Mutex::default(),
            call_ids: Mutex::default(),
            spent: Arc::default(),
            subagents: Semaphore::new(MOST_SUBAGENTS),
            blind: Mutex::default(),
        }
    }
}

impl ChatMemory {
    pub(super) fn call_ids(&self) -> MutexGuard<'_, HashSet<ToolCallId>> {
        self.call_ids.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The client knows the calls in these messages.
    pub(super) fn note_calls<'a>(&self, messages: impl Iterator<Item = &'a Message>) {
        let calls = messages.flat_map(|message| &message.parts).filter_map(|part| match part {
            Part::ToolCall { id, .. } => Some(ToolCallId::new(id.as_str())),
            _ => None,
        });
        self.call_ids().extend(calls);
    }

    /// What subagents used since this was last asked.
    pub(super) fn take_spent(&self) -> Option<Totals> {
        let spent = std::mem::take(&mut *self.spent.lock().unwrap_or_else(PoisonError::into_inner));
        (spent != Totals::default()).then_some(spent)
    }

    /// Whether a model is shown no images in this chat.
    pub(super) fn is_blind(&self, model: &ModelId) -> bool {
        self.blind.lock().unwrap_or_else(PoisonError::into_inner).contains(model)
    }

    pub(super) fn note_blind(&self, model: &ModelId) {
        let mut blind = self.blind.lock().unwrap_or_else(PoisonError::into_inner);
        if !blind.contains(model) {
            blind.push(model.clone());
        }
    }
}

/// What a turn needs to run its calls.
#[derive(Clone)]
pub(super) struct TurnTools {
    pub(super) toolbox: Arc<Toolbox>,
    pub(super) memory: Arc<ChatMemory>,
    pub(super) consents: Consents,
    pub(super) live: Arc<TurnMail>,
    pub(super) agent: String,
    pub(super) workspace: Arc<Workspace>,
    pub(super) roots: Arc<Roots>,
    pub(super) settings: Arc<ToolCallConfig>,
    pub(super) rules: Arc<Rules>,
    pub(super) host: Arc<dyn Host>,
    pub(super) journal: Arc<dyn Journal>,
    pub(super) jobs: Jobs,
    /// Rules that must be read before some files are touched.
    pub(super) scoped_rules: ScopedRules,
    pub(super) hooks: Hooks,
    pub(super) facts: Arc<ChatFacts>,
    /// Where long outputs go.
    pub(super) outputs: Option<PathBuf>,
    pub(super) sees_images: bool,
    /// Whether the provider may search the web for the model.
    pub(super) web_search: bool,
}

impl TurnTools {
    /// Whether a call may run. What has to be found out on the disk is found out elsewhere.
    pub(super) async fn judge(&self, tool: &dyn Tool, arguments: &Arguments, preview: &Preview) -> Verdict {
        let (asked, roots, rules) = (preview.clone(), Arc::clone(&self.roots), Arc::clone(&self.rules));
        let examining = task::blocking(move || approval::examine(&asked, &roots, &rules));
        let Ok(findings) = examining.await else {
            return Verdict { ruling: Ruling::Ask, why: "a check that broke".to_owned(), units: Vec::new() };
        };
        let remembered = self.consents.lock().unwrap_or_else(PoisonError::into_inner);
        let request = approval::Request {
            spec: tool.spec(),
            arguments,
            preview,
            rules: &self.rules,
            remembered: &remembered,
            roots: &self.roots,
            trust: self.live.trusts(),
        };
        approval::judge(&request, &findings)
    }

    /// The user does not want to be asked about such a call again.
    pub(super) fn remember(&self, call: &OpenCall) {
        if let Some(tool) = &call.tool {
            let mut remembered = self.consents.lock().unwrap_or_else(PoisonError::into_inner);
            remembered.remember(tool.spec(), call.details.as_ref());
        }
    }

    pub(super) fn context(
        &self,
        chat: &ChatId,
        call: &ToolCallId,
        stop: CancellationToken,
        live: Arc<dyn LiveOutput>,
    ) -> ToolContext {
        ToolContext {
            chat: chat.clone(),
            call: call.clone(),
            agent: self.agent.clone(),
            workspace: Arc::clone(&self.workspace),
            stop,
            host: Arc::clone(&self.host),
            seen: Arc::clone(&self.memory.seen),
            journal: Arc::clone(&self.journal),
            live,
            settings: Arc::clone(&self.settings),
            sees_images: self.sees_images,
            prepared: Prepared::default(),
        }
    }
}
