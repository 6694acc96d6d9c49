//! `spawn_agent`: a task for another agent, which works in a chat of its own and reports back.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use tokio::sync::{oneshot, watch};

use super::super::Shared;
use super::super::chat_tools::{ChatMemory, TurnMail};
use super::super::prompt::{Prompt, ReplyWhen};
use super::super::subagent::{Lineage, Report, Task};
use super::super::turn::TurnEnd;
use crate::base::{ChatId, ModelId, ToolCallId, text};
use crate::config::Config;
use crate::tool::{Arguments, Details, Preview, SubagentDetails, Tool, ToolContext, ToolOutput, ToolSpec};

pub(in crate::engine) const NAME: &str = "spawn_agent";

const MAX_ACTIVITY: usize = 40;
const MAX_TASK_BYTES: usize = 256 * 1024;
const MAX_DESCRIPTION: usize = 200;

/// How the tool is offered to an agent; `None` for one that may start no other.
pub(in crate::engine) fn spec(config: &Config, agent: &str) -> Option<ToolSpec> {
    let names = config.subagents_of(agent);
    if names.is_empty() {
        return None;
    }
    let listed = names.iter().map(|name| match config.agent_of(name).description {
        Some(about) => format!("- {name}: {}", text::one_line(&about, MAX_DESCRIPTION)),
        None => format!("- {name}"),
    });
    let description = format!(
        "Give a task to another agent. It works by itself with its own context, sees nothing of this chat, and only \
         its report comes back, so say in the task all it has to know and what you want to hear. Several calls in one \
         answer work side by side.\n{}",
        listed.collect::<Vec<_>>().join("\n")
    );
    let parameters = json!({
        "type": "object",
        "required": ["agent", "task"],
        "properties": {
            "agent": {"type": "string", "enum": names},
            "task": {"type": "string"},
            "activity": {"type": "string", "description": "A few words for the user: what it is doing."},
            "model": {"type": "string", "description": "Only when the user asked for another model."},
            "variant": {"type": "string"},
        },
    });
    Some(ToolSpec::native(NAME, &description, parameters))
}

/// The tool of one turn.
pub(in crate::engine) struct SpawnAgent {
    pub(in crate::engine) spec: ToolSpec,
    pub(in crate::engine) shared: Arc<Shared>,
    /// The chat and the model of the turn.
    pub(in crate::engine) parent: ChatId,
    pub(in crate::engine) model: ModelId,
    pub(in crate::engine) agent: String,
    pub(in crate::engine) mail: Arc<TurnMail>,
    pub(in crate::engine) memory: Arc<ChatMemory>,
    /// The chats of the calls, which are known before they exist.
    pub(in crate::engine) chats: Mutex<HashMap<ToolCallId, ChatId>>,
}

/// Who does the task, and with what.
struct Chosen {
    agent: String,
    task: String,
    model: ModelId,
    variant: Option<String>,
    max_steps: Option<u32>,
}

impl SpawnAgent {
    fn choose(&self, arguments: &Arguments) -> Result<Chosen, String> {
        let word = |name: &str| arguments.get(name).and_then(Value::as_str).map(str::trim).filter(|w| !w.is_empty());
        let settings = self.shared.settings();
        let (config, registry) = (settings.config(), &settings.registry);
        let agent = word("agent").unwrap_or_default();
        let may_start = config.subagents_of(&self.agent);
        if !may_start.iter().any(|name| name == agent) {
            return Err(format!("There is no agent {agent:?} to start. There are: {}.", may_start.join(", ")));
        }
        let task = word("task").ok_or("The task is empty. Say what the agent has to do.")?;
        if task.len() > MAX_TASK_BYTES {
            return Err("The task is too long. Name the files that it is about instead of quoting them.".to_owned());
        }
        let agent_config = config.agent_of(agent);
        let named = |name: &str| registry.resolve(name, Some(&self.model));
        let model = match (word("model"), agent_config.default_model.as_deref()) {
            (Some(name), _) => named(name).map_err(|unknown| unknown.to_string())?,
            // A default that is gone stops nobody.
            (None, Some(name)) => named(name).unwrap_or_else(|_| self.model.clone()),
            (None, None) => self.model.clone(),
        };
        let known = registry.variants(&model);
        let variant = match word("variant") {
            Some(name) if !known.is_empty() && !known.iter().any(|variant| variant == name) => {
                return Err(format!("{model} has no variant {name:?}. There are: {}.", known.join(", ")));
            }
            // A model without variants has nothing to choose from.
            asked => asked.filter(|_| !known.is_empty()).map(str::to_owned).or(agent_config.variant),
        };
        let max_steps = agent_config.max_steps;
        Ok(Chosen { agent: agent.to_owned(), task: task.to_owned(), model, variant, max_steps })
    }

    /// The chat of a call; the same one each time.
    async fn chat_of(&self, call: &ToolCallId) -> ChatId {
        if let Some(known) = self.chats.lock().unwrap_or_else(PoisonError::into_inner).get(call) {
            return known.clone();
        }
        let made = self.shared.subagent_chat(call).await;
        self.chats.lock().unwrap_or_else(PoisonError::into_inner).entry(call.clone()).or_insert(made).clone()
    }

    async fn work(&self, chosen: Chosen, context: ToolContext) -> ToolOutput {
        let chat = self.chat_of(&context.call).await;
        let mut details = chosen.details(&chat);
        let Chosen { agent, task, model, variant, .. } = chosen;
        // More at once would only wait for each other at the provider.
        let _place = tokio::select! {
            biased;
            () = context.stop.cancelled() => return stopped(&agent, ""),
            place = self.memory.subagents.acquire() => place,
        };
        let prompt = Prompt {
            chat: Some(chat.clone()),
            text: task,
            model: Some(model.to_string()),
            variant,
            agent: Some(agent.clone()),
            trust: None,
            contexts: Vec::new(),
            workspace: Arc::clone(&context.workspace),
            reply: ReplyWhen::Recorded,
        };
        let (steps, mut step) = watch::channel(0);
        let lineage = Lineage {
            parent: self.parent.clone(),
            mail: Arc::clone(&self.mail),
            remembered: Arc::clone(&self.memory.remembered),
            spent: Arc::clone(&self.memory.spent),
            steps,
        };
        let (report, mut reported) = oneshot::channel();
        if let Err(problem) = self.shared.start_subagent(&chat, lineage, Task { prompt, report }) {
            return ToolOutput::error(problem);
        }
        let _stop = StopOnDrop { shared: &self.shared, chat: &chat };
        let mut is_stopping = false;
        let report = loop {
            tokio::select! {
                report = &mut reported => break report,
                Ok(()) = step.changed() => {
                    details.step = *step.borrow_and_update();
                    context.live.details(Details::Subagent(details.clone()));
                }
                () = context.stop.cancelled(), if !is_stopping => {
                    is_stopping = true;
                    self.shared.stop(&chat);
                }
            }
        };
        details.step = *step.borrow();
        let broke =
            Report { end: TurnEnd::Failed("It broke; the server's log has the details.".into()), text: "".into() };
        let output = told(&agent, &report.unwrap_or(broke));
        ToolOutput { details: Some(Details::Subagent(details)), ..output }
    }
}

impl Chosen {
    fn details(&self, chat: &ChatId) -> SubagentDetails {
        SubagentDetails {
            chat: Some(chat.clone()),
            model: self.model.to_string(),
            variant: self.variant.clone(),
            agent: self.agent.clone(),
            max_steps: self.max_steps,
            step: 0,
        }
    }
}

impl Tool for SpawnAgent {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn preview<'a>(
        &'a self,
        arguments: &'a Arguments,
        context: &'a ToolContext,
    ) -> BoxFuture<'a, Result<Preview, String>> {
        Box::pin(async move {
            let chosen = self.choose(arguments)?;
            let activity = arguments.get("activity").and_then(Value::as_str).map(str::trim).unwrap_or_default();
            let summary = match activity {
                "" => chosen.agent.clone(),
                activity => format!("{}: {}", chosen.agent, text::one_line(activity, MAX_ACTIVITY)),
            };
            let details = chosen.details(&self.chat_of(&context.call).await);
            Ok(Preview { summary: Some(summary), details: Some(Details::Subagent(details)), ..Preview::default() })
        })
    }

    fn run<'a>(&'a self, arguments: Arguments, context: ToolContext) -> BoxFuture<'a, ToolOutput> {
        Box::pin(async move {
            match self.choose(&arguments) {
                Ok(chosen) => self.work(chosen, context).await,
                Err(problem) => ToolOutput::error(problem),
            }
        })
    }
}

/// A subagent does not outlive the call that it works for.
struct StopOnDrop<'a> {
    shared: &'a Shared,
    chat: &'a ChatId,
}

impl Drop for StopOnDrop<'_> {
    fn drop(&mut self) {
        self.shared.stop(self.chat);
    }
}

/// What the model is told of a task that ended.
fn told(agent: &str, report: &Report) -> ToolOutput {
    let said = report.text.trim();
    match &report.end {
        TurnEnd::Finished if said.is_empty() => {
            ToolOutput::error(format!("{}It ended without a report.", heading(agent)))
        }
        TurnEnd::Finished => ToolOutput::text(format!("{}{said}", heading(agent))),
        TurnEnd::OutOfSteps(steps) => {
            let why = format!("It was not done after {steps} model calls, which is all it may make.");
            ToolOutput::error(unfinished(agent, &why, said))
        }
        TurnEnd::Failed(why) => ToolOutput::error(unfinished(agent, &format!("It failed: {}", why.trim()), said)),
        TurnEnd::Stopped => stopped(agent, said),
    }
}

fn stopped(agent: &str, said: &str) -> ToolOutput {
    ToolOutput::error(unfinished(agent, "The user stopped it before it was done.", said))
}

fn unfinished(agent: &str, why: &str, said: &str) -> String {
    match said {
        "" => format!("{}{why}", heading(agent)),
        said => format!("{}{why} The last it said:\n\n{said}", heading(agent)),
    }
}

fn heading(agent: &str) -> String {
    format!("## Agent '{agent}' Result\n\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tool::Content;

    #[test]
    fn the_tool_names_those_that_may_be_started() {
        let mut config = Config::default();
        let mut only_for_plan = crate::config::AgentConfig { subagent: Some(true), ..Default::default() };
        only_for_plan.spawnable_by = Some(vec!["plan".to_owned()]);
        config.agents.insert("reviewer".to_owned(), only_for_plan);
        let names = |agent: &str| spec(&config, agent).unwrap().parameters["properties"]["agent"]["enum"].clone();
        assert_eq!(names("code"), json!(["explorer", "general"]));
        assert_eq!(names("plan"), json!(["explorer", "general", "reviewer"]));
        let description = spec(&config, "code").unwrap().description;
        assert!(description.contains("- explorer: ") && !description.contains("reviewer"), "{description}");
        for name in ["explorer", "general"] {
            let none = crate::config::AgentConfig { subagent: Some(false), primary: Some(true), ..Default::default() };
            config.agents.insert(name.to_owned(), none);
        }
        assert!(spec(&config, "code").is_none());
    }

    #[test]
    fn a_model_hears_how_its_task_ended() {
        let of = |end: TurnEnd, text: &str| {
            let output = told("explorer", &Report { end, text: text.to_owned() });
            let Some(Content::Text(text)) = output.contents.first() else { panic!("a text") };
            (output.error, text.clone())
        };
        let (error, text) = of(TurnEnd::Finished, "found\n");
        assert_eq!((error, text.as_str()), (false, "## Agent 'explorer' Result\n\nfound"));
        for (end, text, needle) in [
            (TurnEnd::Finished, "", "without a report"),
            (TurnEnd::OutOfSteps(3), "half", "after 3 model calls"),
            (TurnEnd::Failed("\n\nno key".into()), "half", "It failed: no key"),
            (TurnEnd::Stopped, "half", "stopped"),
        ] {
            let (error, told) = of(end, text);
            assert!(error && told.contains(needle) && told.ends_with(text), "{told}");
        }
    }
}
