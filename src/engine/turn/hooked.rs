//! Where hooks of the user have a say in a turn: before and after tool calls and compactions.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use super::super::chat_tools::TurnTools;
use super::super::emitter::Stopped as TurnStopped;
use super::super::event::ChatEvent;
use super::super::tool_call::Outcome;
use super::super::tool_call::machine::{Input, Why};
use super::super::toolbox;
use super::Turn;
use super::compact::Cause;
use crate::approval;
use crate::base::ToolCallId;
use crate::config::{HookType, Ruling};
use crate::customization::hooks::{CompactTrigger, HookEvent, HookedCall, Said, Stopped};
use crate::customization::prompt::additional_context;
use crate::tool::{Arguments, Preview, Tool, ToolSpec};

impl Turn {
    /// Lets hooks change, reject or question a call that is about to be ruled on. An input is what
    /// becomes of the call because of them.
    pub(super) async fn ask_hooks(
        &mut self,
        id: &ToolCallId,
        tool: &Arc<dyn Tool>,
        arguments: Arguments,
        preview: Preview,
        verdict: &mut approval::Verdict,
    ) -> Result<Result<(Arguments, Preview), Input>, TurnStopped> {
        if !self.tools.hooks.has(HookType::PreToolCall) {
            return Ok(Ok((arguments, preview)));
        }
        let call = hooked_call(tool.spec(), id, arguments.clone());
        let event = HookEvent::PreToolCall { call, approval: verdict.ruling };
        let said = self.tools.hooks.run(event, &self.tools.facts, &self.emitter.stop).await;
        self.tell_messages(&said.messages).await?;
        let contexts: Vec<&str> = said.additional_context.iter().map(|said| said.text.as_str()).collect();
        if let Some(stopped) = &said.stopped {
            self.end_by_hook(stopped).await?;
        }
        if !said.rejections.is_empty() || said.stopped.is_some() || said.approval == Some(Ruling::Deny) {
            let mut text = "A hook of the user rejected this call; it did not run.".to_owned();
            for reason in said.rejections.iter().map(String::as_str).chain(contexts) {
                text.push('\n');
                text.push_str(reason);
            }
            self.open.change(id, |call| call.outcome = Some(Outcome::error(text)));
            return Ok(Err(Input::Deny(Why::Hook)));
        }
        let (mut arguments, mut preview) = (arguments, preview);
        if !said.updated_input.is_empty() {
            arguments.extend(said.updated_input.clone());
            // What a hook wrote is checked like what a model wrote.
            let again = match toolbox::tidy_arguments(&**tool, arguments) {
                Ok(tidy) => tidy,
                Err(problem) => return Ok(Err(self.invalid(id, problem))),
            };
            let context = self.call_context(id);
            preview = match self.preview(&**tool, &again, &context).await? {
                Ok(preview) => preview,
                Err(problem) => return Ok(Err(self.invalid(id, problem))),
            };
            *verdict = self.tools.judge(&**tool, &again, &preview).await;
            self.open.change(id, |call| call.parsed.clone_from(&again));
            arguments = again;
        }
        verdict.ruling = said.approval_over(verdict.ruling);
        Ok(Ok((arguments, preview)))
    }

    fn invalid(&self, id: &ToolCallId, problem: String) -> Input {
        self.open.change(id, |call| call.outcome = Some(Outcome::error(problem)));
        Input::Invalid
    }

    /// A hook wants no more of this turn.
    pub(super) async fn end_by_hook(&mut self, stopped: &Stopped) -> Result<(), TurnStopped> {
        self.ended_by_hook = true;
        let why = stopped.reason.as_deref().map(|reason| format!(": {reason}")).unwrap_or_default();
        let text = format!("\n\nThe hook \"{}\" ended this turn{why}.", stopped.hook);
        self.emitter.emit(ChatEvent::SystemText(text)).await
    }

    pub(super) async fn tell_messages(&self, messages: &[Said]) -> Result<(), TurnStopped> {
        for said in messages {
            self.emitter.emit(ChatEvent::SystemText(format!("\n\n{}\n\n", said.text))).await?;
        }
        Ok(())
    }

    /// Whether a hook forbids to compact now.
    pub(super) async fn compaction_is_blocked(&mut self, cause: &Cause) -> Result<bool, TurnStopped> {
        let custom_instructions = match cause {
            Cause::User(about) => about.clone(),
            Cause::NearlyFull | Cause::Overflow => String::new(),
        };
        let event = HookEvent::PreCompact { trigger: trigger(cause), custom_instructions };
        let said = self.tools.hooks.run(event, &self.tools.facts, &self.emitter.stop).await;
        self.tell_messages(&said.messages).await?;
        match &said.blocked {
            Some(blocked) => {
                let text =
                    format!("\n\nThe hook \"{}\" does not want the chat compacted: {}\n\n", blocked.hook, blocked.text);
                self.emitter.emit(ChatEvent::SystemText(text)).await?;
                // The chat goes on as it is, until the provider refuses it.
                Ok(true)
            }
            None => Ok(false),
        }
    }

    /// What hooks want the model to know after a compaction stands in its summary.
    pub(super) async fn add_to_summary(&self, cause: &Cause, summary: String) -> String {
        let event = HookEvent::PostCompact { trigger: trigger(cause), summary: summary.clone() };
        let said = self.tools.hooks.run(event, &self.tools.facts, &self.emitter.stop).await;
        if said.additional_context.is_empty() {
            return summary;
        }
        let texts = said.additional_context.iter().map(|said| said.text.as_str());
        format!("{summary}\n\n{}", additional_context(texts))
    }
}

/// Lets hooks change what a call gave. Says if one wants the turn to end.
pub(super) async fn after(
    tools: &TurnTools,
    spec: &ToolSpec,
    id: &ToolCallId,
    input: Arguments,
    outcome: &mut Outcome,
    stop: &CancellationToken,
) -> Option<Stopped> {
    if !tools.hooks.has(HookType::PostToolCall) {
        return None;
    }
    let event = HookEvent::PostToolCall {
        call: hooked_call(spec, id, input),
        response: outcome.text.clone(),
        error: outcome.error,
    };
    let said = tools.hooks.run(event, &tools.facts, stop).await;
    if let Some(replaced) = said.replaced_output {
        outcome.text = replaced;
    }
    if !said.additional_context.is_empty() {
        let texts = said.additional_context.iter().map(|said| said.text.as_str());
        outcome.text = format!("{}\n\n{}", outcome.text, additional_context(texts));
    }
    said.stopped
}

fn hooked_call(spec: &ToolSpec, id: &ToolCallId, input: Arguments) -> HookedCall {
    HookedCall { call: id.clone(), server: spec.server.clone(), tool: spec.name.clone(), input }
}

fn trigger(cause: &Cause) -> CompactTrigger {
    if cause.is_automatic() { CompactTrigger::Auto } else { CompactTrigger::Manual }
}
