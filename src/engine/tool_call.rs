//! Tool calls of one answer: their ids, their arguments as they stream in, and how they are
//! closed. No tool is offered yet, so every call a model makes is answered with an error; the
//! model can then go on without it.

use std::collections::HashSet;

use serde_json::{Map, Value};

use super::event::{ChatEvent, RejectReason, ToolCallEvent, ToolCallOrigin, ToolCallStage};
use crate::base::ToolCallId;
use crate::llm::Replay;

const NATIVE_SERVER: &str = "eca";
/// The name under which clients know tools of the model's provider.
const PROVIDER_SERVER: &str = "llm";

/// A call that the model has begun to write.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct OpenCall {
    /// The provider's number for this call inside the answer.
    pub(super) index: usize,
    pub(super) id: ToolCallId,
    pub(super) name: String,
    pub(super) arguments: String,
    pub(super) replay: Option<Replay>,
}

impl OpenCall {
    pub(super) fn new(index: usize, provider_id: &str, name: &str, used: &mut HashSet<ToolCallId>) -> Self {
        let id = unused_id(provider_id, used);
        Self { index, id, name: name.to_owned(), arguments: String::new(), replay: None }
    }

    pub(super) fn prepare(&self, arguments_text: String) -> ChatEvent {
        self.event(ToolCallStage::Prepare { arguments_text })
    }

    /// The events and the answer for a call that cannot run.
    pub(super) fn fail(&self) -> (Vec<ChatEvent>, String) {
        let (arguments, problem) = match self.parsed_arguments() {
            Ok(arguments) => (arguments, format!("There is no tool named {:?}. No tools are available.", self.name)),
            Err(error) => (Map::new(), format!("The arguments are not a valid JSON object: {error}")),
        };
        let events = vec![
            self.event(ToolCallStage::Run { arguments: arguments.clone(), manual_approval: false }),
            self.event(ToolCallStage::Running { arguments: arguments.clone() }),
            self.event(ToolCallStage::Called { arguments, error: true, outputs: vec![problem.clone()], total_ms: 0 }),
        ];
        (events, problem)
    }

    pub(super) fn reject(&self, reason: RejectReason) -> ChatEvent {
        let arguments = self.parsed_arguments().unwrap_or_default();
        self.event(ToolCallStage::Rejected { arguments, reason })
    }

    fn parsed_arguments(&self) -> Result<Map<String, Value>, serde_json::Error> {
        if self.arguments.trim().is_empty() {
            return Ok(Map::new());
        }
        serde_json::from_str(&self.arguments)
    }

    fn event(&self, stage: ToolCallStage) -> ChatEvent {
        // Models are offered `eca__read_file`; people see `read_file`.
        let name = self.name.strip_prefix("eca__").unwrap_or(&self.name);
        ChatEvent::ToolCall(ToolCallEvent {
            id: self.id.clone(),
            name: name.to_owned(),
            server: NATIVE_SERVER.to_owned(),
            origin: ToolCallOrigin::Native,
            stage,
        })
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
        ChatEvent::ToolCall(ToolCallEvent {
            id: self.id.clone(),
            name: self.name.clone(),
            server: PROVIDER_SERVER.to_owned(),
            origin: ToolCallOrigin::Provider,
            stage,
        })
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
    fn invalid_arguments_are_told_to_the_model() {
        let mut call = OpenCall::new(0, "x", "eca__grep", &mut HashSet::new());
        call.arguments = "{\"path\":".into();
        let (events, answer) = call.fail();
        assert!(answer.contains("not a valid JSON object"), "{answer}");
        assert_eq!(events.len(), 3);
        let ChatEvent::ToolCall(event) = &events[2] else { panic!("a tool call event") };
        assert_eq!((event.name.as_str(), event.server.as_str()), ("grep", "eca"));
    }

    #[test]
    fn the_fourth_identical_call_is_noticed_once() {
        let mut guard = RepeatGuard::default();
        let noticed: Vec<bool> = (0..6).map(|_| guard.saw("a", "{}")).collect();
        assert_eq!(noticed, [false, false, false, true, false, false]);
        assert!(!guard.saw("b", "{}"));
    }
}
