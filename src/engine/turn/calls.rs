//! Running the tool calls of one answer: one question at a time and in order, everything that may
//! run side by side, and nothing lost when the user stops in between.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use tokio::sync::oneshot;
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::super::chat_tools::{Decision, TurnTools};
use super::super::emitter::{Emitter, Stopped as TurnStopped};
use super::super::event::ChatEvent;
use super::super::live_output::CallOutput;
use super::super::tool_call::machine::{self, Effect, Input, State, Why};
use super::super::tool_call::{OpenCall, Outcome};
use super::super::{output, toolbox};
use super::{GENERATING, Turn, hooked};
use crate::base::ToolCallId;
use crate::config::{AfterRejection, Ruling};
use crate::customization::hooks::Stopped;
use crate::llm::{Message, Role};
use crate::tool::{Arguments, Details, Preview, ShellDetails, Tool, ToolContext};

/// Calls that were told to end may take so long; less than the chat gives the whole turn.
const CALL_GRACE: Duration = Duration::from_millis(400);

const BROKEN: &str = "The tool broke; the server's log has the details.";

/// What the calls of one answer came to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Batch {
    /// The user, or the configuration, said no to at least one.
    pub(super) rejected: bool,
    /// A hook wants the turn to end.
    pub(super) ended_by_hook: bool,
}

/// A call that ran to its end.
struct Finished {
    id: ToolCallId,
    outcome: Outcome,
    details: Option<Details>,
    summary: Option<String>,
    /// A hook wants the turn to end, and says why.
    ended: Option<Stopped>,
}

type Running = JoinSet<Finished>;

impl Turn {
    /// Runs the calls and keeps their results. When it is stopped, what the calls did by then
    /// stands in the open state, for the chat to keep.
    pub(super) async fn run_calls(&mut self, ids: &[ToolCallId]) -> Result<Batch, TurnStopped> {
        let mut running = Running::new();
        let result = self.run_batch(ids, &mut running).await;
        if result.is_err() {
            let _ = tokio::time::timeout(CALL_GRACE, async {
                while let Some(ended) = running.join_next().await {
                    if let Ok(finished) = ended {
                        self.open.change(&finished.id.clone(), |call| finished.put_into(call));
                    }
                }
            })
            .await;
        }
        result
    }

    async fn run_batch(&mut self, ids: &[ToolCallId], running: &mut Running) -> Result<Batch, TurnStopped> {
        let mut batch = Batch::default();
        for id in ids {
            self.feed(id, Input::ArgsReady, running).await?;
            let input = self.rule(id).await?;
            // Registered before the client can know of the question.
            let decision = (input == Input::Ask).then(|| self.tools.live.await_decision(id));
            batch.rejected |= matches!(input, Input::Deny(Why::Config));
            self.feed(id, input, running).await?;
            if let Some(decision) = decision {
                let input = self.decided(decision, running).await?;
                batch.rejected |= input == Input::UserRejected;
                self.feed(id, input, running).await?;
            }
            if self.open.call(id).is_some_and(|call| call.state == State::Approved) {
                self.feed(id, Input::Start, running).await?;
                let text = self.open.call(id).map_or("Calling tool", |call| calling_text(&call));
                self.progress(text).await?;
            }
        }
        while !running.is_empty() {
            self.one_finished(running).await?;
        }
        batch.ended_by_hook = self.ended_by_hook;
        Ok(batch)
    }

    /// Waits for the user's word, while calls that run may end.
    async fn decided(
        &mut self,
        mut decision: oneshot::Receiver<Decision>,
        running: &mut Running,
    ) -> Result<Input, TurnStopped> {
        loop {
            tokio::select! {
                biased;
                () = self.emitter.stop.cancelled() => return Err(TurnStopped),
                decided = &mut decision => return Ok(match decided {
                    Ok(Decision::Approve { remember }) => Input::UserApproved { remember },
                    // Nobody is left who could answer.
                    Ok(Decision::Reject) | Err(_) => Input::UserRejected,
                }),
                Some(ended) = running.join_next() => {
                    if let Ok(finished) = ended {
                        self.on_finished(finished, running).await?;
                    }
                }
            }
        }
    }

    async fn one_finished(&mut self, running: &mut Running) -> Result<(), TurnStopped> {
        let ended = tokio::select! {
            biased;
            () = self.emitter.stop.cancelled() => return Err(TurnStopped),
            ended = running.join_next() => ended,
        };
        match ended {
            Some(Ok(finished)) => self.on_finished(finished, running).await,
            Some(Err(error)) => {
                tracing::error!(%error, "a tool's task broke");
                Ok(())
            }
            None => Ok(()),
        }
    }

    async fn on_finished(&mut self, finished: Finished, running: &mut Running) -> Result<(), TurnStopped> {
        let id = finished.id.clone();
        let (images, ended) = (finished.outcome.images.clone(), finished.ended.clone());
        self.open.change(&id, |call| finished.put_into(call));
        self.feed(&id, Input::Finished, running).await?;
        if let Some(ended) = ended {
            self.end_by_hook(&ended).await?;
        }
        for image in images {
            self.emitter.emit(ChatEvent::Image { media_type: image.media_type, base64: image.base64 }).await?;
        }
        self.progress(GENERATING).await
    }

    /// Moves a call on and does what that asks for. The new state counts once all is done, so that a
    /// stop in between leaves the rest to the chat.
    async fn feed(&mut self, id: &ToolCallId, input: Input, running: &mut Running) -> Result<(), TurnStopped> {
        let Some(call) = self.open.call(id) else { return Ok(()) };
        let (next, effects) = machine::step(call.state, input);
        for effect in effects {
            match effect {
                // Told while the answer came in; the ruling is the caller's next step.
                Effect::EmitPrepare | Effect::Rule | Effect::Cancel => {}
                Effect::EmitRun { manual } => self.emitter.emit(call.run(manual)).await?,
                Effect::EmitWaiting => {
                    self.told_progress = "";
                    self.progress("Waiting for tool call approval").await?;
                }
                Effect::Remember => self.tools.remember(&call),
                Effect::Spawn => {
                    if let Some(tool) = &call.tool {
                        let context = ToolContext { prepared: call.prepared.clone(), ..self.call_context(id) };
                        running.spawn(run_call(Arc::clone(tool), call.parsed.clone(), context, self.tools.clone()));
                    }
                }
                Effect::EmitRunning => self.emitter.emit(call.running()).await?,
                Effect::EmitCalled => self.tell_end(id, call.called()).await?,
                Effect::EmitRejected(why) => self.tell_end(id, call.rejected(why)).await?,
                Effect::Record(result) => self.record_result(&call, result).await?,
            }
        }
        self.open.change(id, |call| call.state = next);
        if matches!(next, State::Done(_)) {
            self.open.forget(id);
        }
        Ok(())
    }

    async fn tell_end(&self, id: &ToolCallId, event: ChatEvent) -> Result<(), TurnStopped> {
        self.emitter.emit(event).await?;
        self.open.change(id, |call| call.told = true);
        Ok(())
    }

    async fn record_result(&mut self, call: &OpenCall, result: machine::Result) -> Result<(), TurnStopped> {
        let message = Message { role: Role::User, parts: vec![call.result(result)] };
        self.record_with(message, call.to_replay(result)).await?;
        self.open.change(&call.id, |call| call.wants_result = false);
        Ok(())
    }

    /// Works out whether a call may run, and what is shown of it.
    async fn rule(&mut self, id: &ToolCallId) -> Result<Input, TurnStopped> {
        // What the model wants is shown even if it cannot be.
        self.open.change(id, |call| {
            call.parsed = call.read_arguments().unwrap_or_default();
            call.summarize(&call.parsed.clone());
        });
        let Some(call) = self.open.call(id) else { return Ok(Input::Invalid) };
        let (tool, arguments) = match self.check(&call) {
            Ok(found) => found,
            Err(problem) => {
                self.open.change(id, |call| call.outcome = Some(Outcome::error(problem)));
                return Ok(Input::Invalid);
            }
        };
        self.open.change(id, |call| call.parsed.clone_from(&arguments));
        let context = self.call_context(id);
        let preview = match self.preview(&*tool, &arguments, &context).await? {
            Ok(preview) => preview,
            Err(problem) => {
                self.open.change(id, |call| call.outcome = Some(Outcome::error(problem)));
                return Ok(Input::Invalid);
            }
        };
        if let Some(unread) = self.tools.scoped_rules.unread(&preview.paths) {
            self.open.change(id, |call| call.outcome = Some(Outcome::error(unread)));
            return Ok(Input::Invalid);
        }
        let mut verdict = self.tools.judge(&*tool, &arguments, &preview).await;
        let (arguments, preview) = match self.ask_hooks(id, &tool, arguments, preview, &mut verdict).await? {
            Ok(changed) => changed,
            Err(input) => return Ok(input),
        };
        tracing::debug!(call = %id, ruling = ?verdict.ruling, why = verdict.why, "a tool call was judged");
        let Preview { summary, details, shell, prepared, .. } = preview;
        let details = details.or_else(|| {
            let background = arguments.contains_key("background");
            shell.is_some().then_some(Details::ShellCommand(ShellDetails { commands: verdict.units, background }))
        });
        self.open.change(id, |call| {
            call.summary = summary.or(call.summary.take());
            call.details = details;
            call.prepared = prepared;
        });
        let client = self.tools.host.capabilities();
        let changes_file =
            || self.open.call(id).is_some_and(|call| matches!(call.details, Some(Details::FileChange(_))));
        let shown = !client.approves_nothing && (!client.approves_file_changes_only || changes_file());
        Ok(match verdict.ruling {
            Ruling::Ask if !shown => {
                let text = "This call needs the user's consent, and this editor cannot ask for it. It did not run.";
                self.open.change(id, |call| call.outcome = Some(Outcome::error(text)));
                Input::Deny(Why::Config)
            }
            Ruling::Allow => Input::Allow,
            Ruling::Ask => Input::Ask,
            Ruling::Deny => {
                let text = format!("This call is forbidden: {}. It did not run.", verdict.why);
                self.open.change(id, |call| call.outcome = Some(Outcome::error(text)));
                Input::Deny(Why::Config)
            }
        })
    }

    /// What the call would do; a tool that breaks over it is an error for the model.
    pub(super) async fn preview(
        &self,
        tool: &dyn Tool,
        arguments: &Arguments,
        context: &ToolContext,
    ) -> Result<std::result::Result<Preview, String>, TurnStopped> {
        let previewing = AssertUnwindSafe(tool.preview(arguments, context)).catch_unwind();
        tokio::select! {
            biased;
            () = self.emitter.stop.cancelled() => Err(TurnStopped),
            preview = previewing => Ok(preview.unwrap_or_else(|_| Err(BROKEN.to_owned()))),
        }
    }

    /// The tool and its arguments, or what the model should know.
    fn check(&self, call: &OpenCall) -> Result<(Arc<dyn Tool>, Arguments), String> {
        let Some(tool) = &call.tool else {
            return Err(format!("There is no tool named {:?}. {}", call.name, self.tools.toolbox.names()));
        };
        let arguments = call
            .read_arguments()
            .map_err(|error| format!("The arguments are not a valid JSON object: {error}. Call the tool again."))?;
        Ok((Arc::clone(tool), toolbox::tidy_arguments(&**tool, arguments)?))
    }

    pub(super) fn call_context(&self, id: &ToolCallId) -> ToolContext {
        let stop = self.emitter.stop.child_token();
        let live = CallOutput::new(self.emitter.clone(), self.open.clone(), id.clone());
        self.tools.context(&self.emitter.chat, id, stop, Arc::new(live))
    }
}

impl Finished {
    fn put_into(self, call: &mut OpenCall) {
        call.outcome = Some(self.outcome);
        call.details = self.details.or(call.details.take());
        call.summary = self.summary.or(call.summary.take());
    }
}

/// One call in a task of its own. A tool that breaks is an error for the model, not for the turn.
async fn run_call(tool: Arc<dyn Tool>, arguments: Arguments, context: ToolContext, tools: TurnTools) -> Finished {
    let (id, started) = (context.call.clone(), Instant::now());
    let (input, stop) = (arguments.clone(), context.stop.clone());
    let ran = AssertUnwindSafe(tool.run(arguments, context)).catch_unwind().await;
    let output = ran.unwrap_or_else(|_| {
        tracing::error!(tool = tool.spec().name, "a tool panicked");
        crate::tool::ToolOutput::error(BROKEN)
    });
    let (details, summary) = (output.details.clone(), output.summary.clone());
    let limited = output::limit(output, &tools.settings, tools.outputs.as_deref(), tools.sees_images).await;
    let details = details.or(limited.json);
    let mut outcome = Outcome { took: started.elapsed(), ..limited.outcome };
    let ended = hooked::after(&tools, tool.spec(), &id, input, &mut outcome, &stop).await;
    Finished { id, outcome, details, summary, ended }
}

fn calling_text(call: &OpenCall) -> &'static str {
    match call.tool.as_ref().map(|tool| tool.spec().name.as_str()) {
        Some("spawn_agent") => "Waiting subagent",
        Some("ask_user") => "Waiting answer",
        _ => "Calling tool",
    }
}

/// What is left to do when the user said no and wants to be asked.
pub(super) fn ends_turn(batch: Batch, tools: &TurnTools) -> bool {
    batch.ended_by_hook || batch.rejected && tools.settings.after_rejection == AfterRejection::Ask
}

/// Says what a call prints and how far it is, without ever waiting.
impl CallOutput {
    pub(super) fn new(emitter: Emitter, open: super::OpenState, id: ToolCallId) -> Self {
        let running = move |details: Option<Details>| {
            open.change(&id, |call| call.details = details.clone().or(call.details.take()));
            open.call(&id).map(|call| (id.clone(), call.running()))
        };
        Self::with(emitter, Box::new(running))
    }
}
