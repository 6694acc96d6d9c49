//! What the answer of a hook means, and what the answers of several come to. Pure.

use std::time::Duration;

use serde_json::{Map, Value};

use super::event::{stricter, word};
use crate::base::text::one_line;
use crate::config::{HookType, Ruling};

/// Said in place of an output that a hook hid without a word.
const HIDDEN_OUTPUT: &str = "[A hook withheld the output of this call.]";
const MAX_EFFECT: usize = 300;

/// How a program ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Exit {
    Code(i32),
    Signal,
    TimedOut(Duration),
    NotStarted(String),
    /// The user stopped the turn.
    Interrupted,
}

impl Exit {
    /// A number for those who want one; shells use the same.
    pub fn status(&self) -> i32 {
        match self {
            Self::Code(code) => *code,
            Self::TimedOut(_) => 124,
            Self::NotStarted(_) => 127,
            Self::Signal => 137,
            Self::Interrupted => 130,
        }
    }
}

/// What one run of a hook says. Only what its type honours is there.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct HookOutcome {
    /// For the user.
    pub system_message: Option<String>,
    pub suppress_output: bool,
    /// `continue: false`: no further hook, and no further turn where there is one.
    pub stop: Option<StopRequest>,
    /// The prompt or the compaction must not happen.
    pub block: Option<String>,
    pub approval: Option<Ruling>,
    /// Why the call is rejected, for the model.
    pub rejection: Option<String>,
    pub updated_input: Map<String, Value>,
    pub additional_context: Option<String>,
    pub replaced_prompt: Option<String>,
    pub replaced_output: Option<String>,
    pub follow_up: Option<String>,
    /// What the client may show of what it printed.
    pub display: Option<String>,
    /// What went wrong.
    pub error: Option<String>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StopRequest {
    /// For the user alone.
    pub reason: Option<String>,
}

/// Something that a hook says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Said {
    pub hook: String,
    pub text: String,
}

/// The turn ends here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stopped {
    pub hook: String,
    pub reason: Option<String>,
}

/// What all hooks of an event come to.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Verdict {
    /// For the user, one by one.
    pub messages: Vec<Said>,
    pub stopped: Option<Stopped>,
    /// The prompt or the compaction must not happen.
    pub blocked: Option<Said>,
    /// The strictest that was said; see [`Verdict::approval_over`].
    pub approval: Option<Ruling>,
    /// Why the call is rejected, for the model.
    pub rejections: Vec<String>,
    /// Laid over the arguments of the call.
    pub updated_input: Map<String, Value>,
    pub additional_context: Vec<Said>,
    pub replaced_prompt: Option<String>,
    pub replaced_output: Option<String>,
    /// The prompt of a further turn.
    pub follow_up: Option<String>,
    pub errors: Vec<Said>,
}

impl Verdict {
    /// Hooks cannot loosen what was ruled.
    pub fn approval_over(&self, ruling: Ruling) -> Ruling {
        stricter(ruling, self.approval.unwrap_or(Ruling::Allow))
    }
}

/// What a run of a hook says by its exit code and outputs.
pub fn interpret(kind: HookType, exit: &Exit, stdout: &str, stderr: &str) -> HookOutcome {
    let failure = |error: String| HookOutcome { error: Some(error), ..HookOutcome::default() };
    match exit {
        Exit::Code(0) => answer(kind, stdout),
        Exit::Code(2) => intervention(kind, stderr.trim()),
        Exit::Code(code) => {
            let complaint = stderr.trim();
            let colon = if complaint.is_empty() { "" } else { ": " };
            let mut outcome = failure(format!("it ended with exit code {code}{colon}{complaint}"));
            outcome.display = shown(stdout);
            outcome
        }
        Exit::Signal => failure("it was killed by a signal".to_owned()),
        Exit::Interrupted => failure("it was stopped".to_owned()),
        Exit::NotStarted(why) => unanswered(kind, format!("it could not be started: {why}")),
        Exit::TimedOut(patience) => unanswered(kind, format!("it did not end within {} s", patience.as_secs_f32())),
    }
}

/// A hook that was to judge a call and could not: a person judges.
fn unanswered(kind: HookType, error: String) -> HookOutcome {
    let approval = (kind == HookType::PreToolCall).then_some(Ruling::Ask);
    HookOutcome { approval, error: Some(error), ..HookOutcome::default() }
}

/// Exit code 2: the hook steps in, with stderr as its word.
fn intervention(kind: HookType, word: &str) -> HookOutcome {
    let mut outcome = HookOutcome::default();
    let said = (!word.is_empty()).then(|| word.to_owned());
    match kind {
        HookType::PreRequest | HookType::PreCompact => outcome.block = Some(word.to_owned()),
        HookType::PostRequest | HookType::SubagentPostRequest => outcome.follow_up = said.clone(),
        HookType::PreToolCall => {
            outcome.approval = Some(Ruling::Deny);
            outcome.rejection = said.clone();
        }
        HookType::PostToolCall => outcome.replaced_output = Some(said.unwrap_or_else(|| HIDDEN_OUTPUT.to_owned())),
        HookType::SessionStart
        | HookType::SessionEnd
        | HookType::ChatStart
        | HookType::ChatEnd
        | HookType::ChatStatusChanged
        | HookType::SubagentStart
        | HookType::PostCompact => {
            let colon = if word.is_empty() { "" } else { ": " };
            outcome.error = Some(format!("it ended with exit code 2, which means nothing here{colon}{word}"));
        }
    }
    outcome
}

/// Exit code 0: the answer is a JSON object, or words that are only shown.
fn answer(kind: HookType, stdout: &str) -> HookOutcome {
    let Ok(Value::Object(fields)) = serde_json::from_str::<Value>(stdout.trim()) else {
        return HookOutcome { display: shown(stdout), ..HookOutcome::default() };
    };
    let mut answer = Answer { fields, effects: Vec::new(), errors: Vec::new() };
    let mut outcome = HookOutcome::default();
    if answer.flag("continue") == Some(false) {
        outcome.stop = Some(StopRequest { reason: answer.text("stopReason") });
    }
    if !has_no_face(kind) {
        outcome.system_message = answer.text("systemMessage");
        outcome.suppress_output = answer.flag("suppressOutput").unwrap_or(false);
    }
    match kind {
        HookType::ChatStart | HookType::SubagentStart | HookType::PostCompact => {
            outcome.additional_context = answer.effect("additionalContext");
        }
        HookType::PreRequest => {
            outcome.replaced_prompt = answer.effect("replacedPrompt");
            outcome.additional_context = answer.effect("additionalContext");
        }
        HookType::PostRequest | HookType::SubagentPostRequest => outcome.follow_up = answer.effect("followUp"),
        HookType::PreToolCall => {
            outcome.updated_input = answer.object("updatedInput");
            outcome.approval = answer.approval();
            let context = answer.effect("additionalContext");
            outcome.rejection = context.filter(|_| outcome.approval == Some(Ruling::Deny));
        }
        HookType::PostToolCall => {
            // An empty text is an answer too: it hides the output.
            outcome.replaced_output = answer.any_text("replacedOutput");
            outcome.additional_context = answer.effect("additionalContext");
        }
        HookType::SessionStart
        | HookType::SessionEnd
        | HookType::ChatEnd
        | HookType::ChatStatusChanged
        | HookType::PreCompact => {}
    }
    outcome.display = shown(&answer.effects.join("\n"));
    outcome.error = shown(&answer.errors.join("; "));
    outcome
}

/// What all runs come to, in their order.
pub fn combine(kind: HookType, outcomes: impl IntoIterator<Item = (String, HookOutcome)>) -> Verdict {
    let mut verdict = Verdict::default();
    let mut follow_ups = Vec::new();
    for (hook, outcome) in outcomes {
        let said = |text: String| Said { hook: hook.clone(), text };
        verdict.messages.extend(outcome.system_message.map(said));
        verdict.errors.extend(outcome.error.map(said));
        verdict.additional_context.extend(outcome.additional_context.map(said));
        verdict.rejections.extend(outcome.rejection);
        verdict.updated_input.extend(outcome.updated_input);
        verdict.blocked = verdict.blocked.or_else(|| outcome.block.map(said));
        verdict.replaced_prompt = outcome.replaced_prompt.or(verdict.replaced_prompt);
        verdict.replaced_output = outcome.replaced_output.or(verdict.replaced_output);
        if let Some(ruling) = outcome.approval {
            verdict.approval = Some(verdict.approval_over(ruling));
        }
        follow_ups.extend(outcome.follow_up);
        if let Some(stop) = outcome.stop.filter(|_| stops_turns(kind)) {
            verdict.stopped = verdict.stopped.or_else(|| Some(Stopped { hook: hook.clone(), reason: stop.reason }));
        }
    }
    // Who ends the turn does not want another one.
    if !follow_ups.is_empty() && verdict.stopped.is_none() {
        verdict.follow_up = Some(follow_ups.join("\n\n"));
    }
    verdict
}

/// Whether nobody could see what such a hook says.
fn has_no_face(kind: HookType) -> bool {
    matches!(kind, HookType::SessionStart | HookType::SessionEnd | HookType::ChatEnd | HookType::ChatStatusChanged)
}

fn stops_turns(kind: HookType) -> bool {
    !has_no_face(kind)
}

/// The fields of a JSON answer.
struct Answer {
    fields: Map<String, Value>,
    /// What it changes, for the client to show.
    effects: Vec<String>,
    errors: Vec<String>,
}

impl Answer {
    fn flag(&mut self, key: &str) -> Option<bool> {
        match self.fields.get(key)? {
            Value::Null => None,
            Value::Bool(flag) => Some(*flag),
            _ => {
                self.errors.push(format!("`{key}` must be true or false"));
                None
            }
        }
    }

    /// A text that says something.
    fn text(&mut self, key: &str) -> Option<String> {
        match self.fields.get(key)? {
            Value::Null => None,
            Value::String(text) => Some(text.clone()).filter(|text| !text.trim().is_empty()),
            _ => {
                self.errors.push(format!("`{key}` must be a text"));
                None
            }
        }
    }

    fn effect(&mut self, key: &str) -> Option<String> {
        let text = self.text(key)?;
        self.effects.push(format!("{key}: {}", one_line(&text, MAX_EFFECT)));
        Some(text)
    }

    fn any_text(&mut self, key: &str) -> Option<String> {
        let is_empty = self.fields.get(key).and_then(Value::as_str).is_some_and(|text| text.trim().is_empty());
        if is_empty {
            self.effects.push(format!("{key}: nothing"));
            return Some(String::new());
        }
        self.effect(key)
    }

    fn object(&mut self, key: &str) -> Map<String, Value> {
        match self.fields.remove(key) {
            None | Some(Value::Null) => Map::new(),
            Some(Value::Object(fields)) => {
                let shown = Value::Object(fields.clone()).to_string();
                self.effects.push(format!("{key}: {}", one_line(&shown, MAX_EFFECT)));
                fields
            }
            Some(_) => {
                self.errors.push(format!("`{key}` must be an object"));
                Map::new()
            }
        }
    }

    fn approval(&mut self) -> Option<Ruling> {
        let ruling = match self.fields.get("approval")? {
            Value::Null => return None,
            Value::String(word) if word == "allow" => Ruling::Allow,
            Value::String(word) if word == "ask" => Ruling::Ask,
            Value::String(word) if word == "deny" => Ruling::Deny,
            // Whoever writes something here does not mean that all is well.
            _ => {
                self.errors.push("`approval` must be allow, ask or deny".to_owned());
                Ruling::Ask
            }
        };
        self.effects.push(format!("approval: {}", word(ruling)));
        Some(ruling)
    }
}

fn shown(text: &str) -> Option<String> {
    let text = text.trim();
    (!text.is_empty()).then(|| text.to_owned())
}

#[cfg(test)]
mod tests;
