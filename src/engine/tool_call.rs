//! Tool calls of one answer: their ids, their arguments as they stream in, how they stand, and
//! the events that tell of it.

pub(super) mod machine;
mod partial;

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value};

use super::event::{ChatEvent, RejectReason, ToolCallEvent, ToolCallOrigin, ToolCallStage};
use crate::base::ToolCallId;
use crate::base::text::prefix;
use crate::llm::{Image, Part, Replay};
use crate::tool::{Arguments, Details, NATIVE_SERVER, Prepared, Tool, ToolOrigin};
use machine::{State, Why};

/// The name under which clients know tools of the model's provider.
const PROVIDER_SERVER: &str = "llm";

/// So much of the arguments that stream in is looked at for a summary: what a call is about comes
/// before long texts, and looking again at every piece of those would cost more than it shows.
const MOST_LOOKED_AT: usize = 4 * 1024;

/// A call that the model has begun to write.
#[derive(Clone)]
pub(super) struct OpenCall {
    /// The provider's number for this call inside the answer.
    pub(super) index: usize,
    pub(super) id: ToolCallId,
    /// As the model wrote it.
    pub(super) name: String,
    pub(super) arguments: String,
    pub(super) replay: Option<Replay>,
    /// What it calls, if there is such a tool.
    pub(super) tool: Option<Arc<dyn Tool>>,
    pub(super) state: State,
    /// The arguments once they are complete and valid.
    pub(super) parsed: Arguments,
    pub(super) summary: Option<String>,
    pub(super) details: Option<Details>,
    /// What its preview left for its run.
    pub(super) prepared: Prepared,
    /// Whether the history has the call and not its result yet.
    pub(super) wants_result: bool,
    /// Whether the client knows its end.
    pub(super) told: bool,
    /// What came of it, once something did.
    pub(super) outcome: Option<Outcome>,
}

impl std::fmt::Debug for OpenCall {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OpenCall").field("id", &self.id).field("name", &self.name).finish_non_exhaustive()
    }
}

/// What a call gave, as it is shown and as the model gets it.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Outcome {
    pub(super) error: bool,
    pub(super) text: String,
    pub(super) images: Vec<Image>,
    pub(super) took: Duration,
}

impl Outcome {
    pub(super) fn error(text: impl Into<String>) -> Self {
        Self { error: true, text: text.into(), ..Self::default() }
    }
}

impl OpenCall {
    pub(super) fn new(index: usize, provider_id: &str, name: &str, used: &mut HashSet<ToolCallId>) -> Self {
        Self {
            index,
            id: unused_id(provider_id, used),
            name: name.to_owned(),
            arguments: String::new(),
            replay: None,
            tool: None,
            state: State::New,
            parsed: Map::new(),
            summary: None,
            details: None,
            prepared: Prepared::default(),
            wants_result: false,
            told: false,
            outcome: None,
        }
    }

    pub(super) fn prepare(&self, arguments_text: String) -> ChatEvent {
        self.event(ToolCallStage::Prepare { arguments_text })
    }

    pub(super) fn run(&self, manual_approval: bool) -> ChatEvent {
        self.event(ToolCallStage::Run { arguments: self.parsed.clone(), manual_approval })
    }

    pub(super) fn running(&self) -> ChatEvent {
        self.event(ToolCallStage::Running { arguments: self.parsed.clone() })
    }

    pub(super) fn called(&self) -> ChatEvent {
        let outcome = self.outcome.clone().unwrap_or_default();
        self.event(ToolCallStage::Called {
            arguments: self.parsed.clone(),
            error: outcome.error,
            outputs: vec![outcome.text],
            total_ms: u64::try_from(outcome.took.as_millis()).unwrap_or(u64::MAX),
        })
    }

    pub(super) fn rejected(&self, why: Why) -> ChatEvent {
        let reason = match why {
            Why::User => RejectReason::User,
            Why::Config => RejectReason::Config,
            Why::Hook => RejectReason::Hook,
            Why::Stopped | Why::StreamLost => RejectReason::PromptStop,
        };
        // A call that was stopped half-way has no arguments that could be shown.
        let arguments =
            if self.parsed.is_empty() { self.read_arguments().unwrap_or_default() } else { self.parsed.clone() };
        self.event(ToolCallStage::Rejected { arguments, reason })
    }

    /// What the history gets as the result of this call.
    pub(super) fn result(&self, result: machine::Result) -> Part {
        let fixed = |text: &str| Outcome::error(text);
        let outcome = match result {
            machine::Result::Invalid | machine::Result::Output => self.outcome.clone().unwrap_or_default(),
            machine::Result::Interrupted => {
                fixed("The user stopped this call while it was running; whether it had an effect is unknown.")
            }
            machine::Result::Rejected(why) => match &self.outcome {
                Some(outcome) => outcome.clone(),
                None => fixed(match why {
                    Why::User => "The user rejected this call; it did not run.",
                    Why::Config => "The user's configuration forbids this call; it did not run.",
                    Why::Hook => "A hook of the user rejected this call; it did not run.",
                    Why::Stopped => "The user stopped before this call ran.",
                    Why::StreamLost => "The call was incomplete and did not run.",
                }),
            },
        };
        Part::ToolResult {
            call_id: self.id.to_string(),
            text: outcome.text,
            images: outcome.images,
            error: outcome.error,
        }
    }

    /// The arguments as the model wrote them; models write nothing where there are none.
    pub(super) fn read_arguments(&self) -> Result<Arguments, serde_json::Error> {
        if self.arguments.trim().is_empty() {
            return Ok(Map::new());
        }
        serde_json::from_str(&self.arguments)
    }

    /// More of the arguments. What is shown of the call follows them, as far as they are short.
    pub(super) fn add_arguments(&mut self, text: &str) {
        let looked_at = self.arguments.len() <= MOST_LOOKED_AT;
        self.arguments.push_str(text);
        if looked_at {
            let so_far = prefix(&self.arguments, MOST_LOOKED_AT);
            self.summarize(&partial::complete_fields(so_far));
        }
    }

    pub(super) fn summarize(&mut self, arguments: &Arguments) {
        if let Some(tool) = &self.tool {
            self.summary = tool.summary(arguments).or(self.summary.take());
        }
    }

    fn event(&self, stage: ToolCallStage) -> ChatEvent {
        let (name, server, origin) = match &self.tool {
            Some(tool) => {
                let spec = tool.spec();
                let origin = match spec.origin {
                    ToolOrigin::Native => ToolCallOrigin::Native,
                    ToolOrigin::Mcp => ToolCallOrigin::Mcp,
                };
                (spec.name.clone(), spec.server.clone(), origin)
            }
            // Models are offered `eca__read_file`; people see `read_file`.
            None => {
                let name = self.name.strip_prefix("eca__").unwrap_or(&self.name);
                (name.to_owned(), NATIVE_SERVER.to_owned(), ToolCallOrigin::Native)
            }
        };
        ChatEvent::ToolCall(Box::new(ToolCallEvent {
            id: self.id.clone(),
            name,
            server,
            origin,
            summary: self.summary.clone(),
            details: self.details.clone(),
            stage,
        }))
    }
}

/// A call of a tool that runs at the provider.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ServerCall {
    pub(super) id: ToolCallId,
    pub(super) provider_id: String,
    pub(super) name: String,
}

impl ServerCall {
    pub(super) fn started(&self) -> [ChatEvent; 3] {
        [
            self.event(ToolCallStage::Prepare { arguments_text: String::new() }),
            self.event(ToolCallStage::Run { arguments: Map::new(), manual_approval: false }),
            self.event(ToolCallStage::Running { arguments: Map::new() }),
        ]
    }

    pub(super) fn finished(&self, arguments: Map<String, Value>, output: String, error: bool) -> ChatEvent {
        self.event(ToolCallStage::Called { arguments, error, outputs: vec![output], total_ms: 0 })
    }

    pub(super) fn rejected(&self, reason: RejectReason) -> ChatEvent {
        self.event(ToolCallStage::Rejected { arguments: Map::new(), reason })
    }

    fn event(&self, stage: ToolCallStage) -> ChatEvent {
        ChatEvent::ToolCall(Box::new(ToolCallEvent {
            id: self.id.clone(),
            name: self.name.clone(),
            server: PROVIDER_SERVER.to_owned(),
            origin: ToolCallOrigin::Provider,
            summary: None,
            details: None,
            stage,
        }))
    }
}

/// The provider's id when it is unused in this chat, because replay wants it back; else our own.
pub(super) fn unused_id(provider_id: &str, used: &mut HashSet<ToolCallId>) -> ToolCallId {
    let mut id = ToolCallId::new(provider_id);
    if provider_id.trim().is_empty() || used.contains(&id) {
        id = ToolCallId::random();
    }
    used.insert(id.clone());
    id
}

/// Notices a model that makes the same call over and over.
#[derive(Debug, Default)]
pub(super) struct RepeatGuard {
    last: Option<(String, String)>,
    times: u32,
}

/// So many identical calls in a row are worth a word to the user.
const REPEATS_WORTH_A_NOTICE: u32 = 4;

impl RepeatGuard {
    /// Whether this call is the one that makes the repetition worth a notice.
    pub(super) fn saw(&mut self, name: &str, arguments: &str) -> bool {
        let same = self.last.as_ref().is_some_and(|(n, a)| n == name && a == arguments);
        if same {
            self.times += 1;
        } else {
            self.last = Some((name.to_owned(), arguments.to_owned()));
            self.times = 1;
        }
        self.times == REPEATS_WORTH_A_NOTICE
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_unique_whatever_the_provider_sends() {
        let mut used = HashSet::new();
        let first = OpenCall::new(0, "call_1", "a", &mut used);
        let again = OpenCall::new(1, "call_1", "a", &mut used);
        let blank = OpenCall::new(2, "", "a", &mut used);
        assert_eq!(first.id.as_str(), "call_1");
        assert_ne!(again.id, first.id);
        assert!(!blank.id.as_str().is_empty());
        assert_eq!(used.len(), 3);
    }

    #[test]
    fn an_unknown_tool_is_shown_as_one_of_ours_by_its_bare_name() {
        let call = OpenCall::new(0, "x", "eca__grep", &mut HashSet::new());
        let ChatEvent::ToolCall(event) = call.called() else { panic!("a tool call event") };
        assert_eq!((event.name.as_str(), event.server.as_str()), ("grep", "eca"));
    }

    #[test]
    fn a_call_that_broke_off_is_rejected_without_arguments() {
        let mut call = OpenCall::new(0, "x", "grep", &mut HashSet::new());
        call.arguments = "{\"path\":".into();
        assert!(call.read_arguments().is_err());
        let ChatEvent::ToolCall(event) = call.rejected(Why::Stopped) else { panic!("a tool call event") };
        assert_eq!(event.stage, ToolCallStage::Rejected { arguments: Map::new(), reason: RejectReason::PromptStop });
    }

    #[test]
    fn the_fourth_identical_call_is_noticed_once() {
        let mut guard = RepeatGuard::default();
        let noticed: Vec<bool> = (0..6).map(|_| guard.saw("a", "{}")).collect();
        assert_eq!(noticed, [false, false, false, true, false, false]);
        assert!(!guard.saw("b", "{}"));
    }
}
