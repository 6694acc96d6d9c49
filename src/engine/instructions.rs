//! What the user wrote for the assistant, read when it is needed and again when it has changed,
//! and the system prompt that comes of it.

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::Mutex as AsyncMutex;

use super::emitter::say;
use super::event::{Event, EventSink, NoticeLevel};
use super::toolbox::Toolbox;
use crate::base::ModelId;
use crate::base::task;
use crate::config::commands::Memory;
use crate::config::{Config, ConfigProblem};
use crate::customization::prompt::{self, Environment, Parts, SystemPrompt};
use crate::customization::template::Variables;
use crate::customization::{Audience, Customization, Sources};
use crate::workspace::Workspace;

/// Workspaces whose customization is kept; a client has one, an engine rarely more.
const MAX_KEPT: usize = 16;

/// Says where things are looked for; reads what the user trusts.
pub type FindSources = Arc<dyn Fn(&Workspace, &Config) -> Sources + Send + Sync>;

pub(super) struct Instructions {
    find: FindSources,
    pub(super) environment: Environment,
    /// By the key of the workspace. Each is locked by itself while it is read: a command in the files
    /// of one workspace may take its time, and nobody in another one waits for it.
    kept: Mutex<HashMap<String, Arc<Place>>>,
}

type Place = AsyncMutex<Option<Kept>>;

struct Kept {
    customization: Arc<Customization>,
    /// What the configuration said when it was read.
    settings: crate::config::CustomizationConfig,
    /// What the user trusted then.
    trusted: BTreeMap<PathBuf, String>,
    memory: Memory,
    told: Vec<ConfigProblem>,
}

impl Instructions {
    pub(super) fn new(find: FindSources, environment: Environment) -> Self {
        Self { find, environment, kept: Mutex::new(HashMap::new()) }
    }

    /// What counts in this workspace now. Problems are told once.
    pub(super) async fn of(&self, workspace: &Workspace, config: &Config, sink: &dyn EventSink) -> Arc<Customization> {
        let place = self.place(workspace.key());
        let mut kept = place.lock().await;
        let sources = Arc::new((self.find)(workspace, config));
        let previous = kept.take();
        if let Some(current) = previous
            .as_ref()
            .filter(|kept| kept.settings == config.customization && kept.trusted == sources.trusted)
            .map(|kept| Arc::clone(&kept.customization))
        {
            let asked = Arc::clone(&current);
            let stale = task::blocking(move || asked.is_stale()).await.unwrap_or(true);
            if !stale {
                *kept = previous;
                return current;
            }
        }
        let (mut memory, told) = previous.map(|kept| (kept.memory, kept.told)).unwrap_or_default();
        let trusted = sources.trusted.clone();
        let (customization, problems) = Customization::load_complete(sources, &mut memory).await;
        *kept = Some(Kept {
            customization: Arc::clone(&customization),
            settings: config.customization.clone(),
            trusted,
            memory,
            told: problems.clone(),
        });
        drop(kept);
        for problem in problems.iter().filter(|problem| !told.contains(problem)) {
            say(sink, Event::Notice { level: NoticeLevel::Warning, text: problem.to_string() }).await;
        }
        customization
    }

    fn place(&self, key: String) -> Arc<Place> {
        let mut all = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() >= MAX_KEPT && !all.contains_key(&key) {
            all.clear();
        }
        Arc::clone(all.entry(key).or_default())
    }

    /// What templates may ask for.
    pub(super) fn variables(&self, workspace: &Workspace, is_subagent: bool, toolbox: &Toolbox) -> Variables {
        let roots: Vec<String> = workspace.roots().iter().map(|root| root.path.display().to_string()).collect();
        let tools: Vec<String> = toolbox.tools().iter().map(|tool| tool.spec().full_name()).collect();
        Variables::of_chat(
            &self.environment,
            roots.iter().map(String::as_str),
            is_subagent,
            tools.iter().map(String::as_str),
        )
    }

    /// What a model is told before anything is said.
    pub(super) fn system_prompt(&self, about: &About<'_>) -> SystemPrompt {
        let About { config, customization, agent, model, workspace, variables, contexts, max_steps } = *about;
        let audience = Audience { agent, model: model.as_str() };
        let agent_config = config.agent_of(agent);
        let agent_prompt = prompt::agent_prompt(agent, Some(&agent_config), &config.prompts_of(agent), variables);
        let rules = customization.rules.static_for(&audience, variables);
        let listed_rules = customization.rules.scoped_for(&audience);
        let skills: Vec<_> = customization.skills.iter().collect();
        let roots: Vec<String> = workspace.roots().iter().map(|root| root.path.display().to_string()).collect();
        prompt::system_prompt(&Parts {
            agent_prompt: &agent_prompt,
            rules: &rules,
            listed_rules: &listed_rules,
            skills: &skills,
            environment: &self.environment,
            roots: &roots,
            files: &customization.contexts,
            contexts,
            max_steps,
        })
    }
}

/// Whom a system prompt is for.
#[derive(Clone, Copy)]
pub(super) struct About<'a> {
    pub(super) config: &'a Config,
    pub(super) customization: &'a Customization,
    pub(super) agent: &'a str,
    pub(super) model: &'a ModelId,
    pub(super) workspace: &'a Workspace,
    pub(super) variables: &'a Variables,
    /// Further blocks, by name.
    pub(super) contexts: &'a [(String, String)],
    /// Only for agents that must know.
    pub(super) max_steps: Option<u32>,
}
