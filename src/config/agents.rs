//! The agents that are there by themselves, and what an agent comes to when the configuration, the
//! agent it inherits from and the built-in one have all been heard.

mod read_only;

use std::collections::{BTreeMap, BTreeSet};

use super::{AgentConfig, ApprovalOverride, ApprovalRule, Config, PromptsConfig, ToolCallConfig};

/// The agent of everyday work, and the one that takes the place of an agent that does not exist.
const CODE: &str = "code";

const BUILT_IN: [&str; 4] = [CODE, "plan", "explorer", "general"];

/// Showing a change that is not made is only for those that must not make it.
const WITHOUT_PREVIEW: &[&str] = &["preview_file_change"];
const PLAN_WITHOUT: &[&str] = &["edit_file", "write_file", "move_file", "git"];
const EXPLORER_WITHOUT: &[&str] = &["edit_file", "write_file", "move_file", "git", "preview_file_change"];

type Rules = BTreeMap<String, ApprovalRule>;

impl Config {
    /// The agent that is meant by `wanted`, and a note for the user if there is none of that name.
    pub fn agent_name(&self, wanted: &str) -> (String, Option<String>) {
        let name = match wanted.trim() {
            // What older clients and configurations call it.
            "agent" | "build" => CODE,
            other => other,
        };
        if self.has_agent(name) {
            return (name.to_owned(), None);
        }
        let shown = crate::base::text::one_line(name, 60);
        (CODE.to_owned(), Some(format!("There is no agent named \"{shown}\"; \"{CODE}\" is used instead.")))
    }

    /// What counts for the agent; for one that does not exist, what counts for `code`.
    pub fn agent_of(&self, name: &str) -> AgentConfig {
        let (name, _) = self.agent_name(name);
        let own = self.said_of(&name);
        // One level: what the other one inherits is not looked at.
        let parent = own.inherit.as_deref().filter(|parent| *parent != name && self.has_agent(parent));
        match parent.map(|parent| self.said_of(parent)) {
            Some(parent) => own.over(parent),
            None => own,
        }
    }

    /// How tools behave for the agent, and who may run them. Each kind of rule of the agent replaces
    /// the general one; only what a built-in agent forbids by itself is added to what the user
    /// forbids for all, because nobody would expect to lose that.
    pub fn tool_call_of(&self, name: &str) -> ToolCallConfig {
        let agent = self.agent_of(name);
        let mut settings = self.tool_call.clone();
        let approval = &mut settings.approval;
        if let Some(allow) = agent.approval.allow {
            approval.allow = allow;
        }
        let parent = agent.inherit.as_deref().map(built_in).unwrap_or_default();
        let default = built_in(&self.agent_name(name).0).over(parent).approval;
        replace_or_add(&mut approval.ask, agent.approval.ask, &default.ask);
        replace_or_add(&mut approval.deny, agent.approval.deny, &default.deny);
        approval.by_default = agent.approval.by_default.or(approval.by_default);
        settings
    }

    /// The tools that the agent is not offered: the general ones and its own.
    pub fn disabled_tools_of(&self, name: &str) -> Vec<String> {
        let own = self.agent_of(name).disabled_tools.unwrap_or_default();
        let mut all = self.disabled_tools.clone();
        all.extend(own.into_iter().filter(|tool| !self.disabled_tools.contains(tool)));
        all
    }

    /// What is said to models when the agent works.
    pub fn prompts_of(&self, name: &str) -> PromptsConfig {
        self.agent_of(name).prompts.over(self.prompts.clone())
    }

    /// The agents that a user can select, the built-in ones first.
    pub fn primary_agents(&self) -> Vec<String> {
        self.agent_names().into_iter().filter(|name| self.agent_of(name).primary != Some(false)).collect()
    }

    /// The agents that `parent` may start.
    pub fn subagents_of(&self, parent: &str) -> Vec<String> {
        let (parent, _) = self.agent_name(parent);
        let may_start = |name: &String| {
            let agent = self.agent_of(name);
            let by = agent.spawnable_by.unwrap_or_default();
            agent.subagent != Some(false) && (by.is_empty() || by.contains(&parent))
        };
        self.agent_names().into_iter().filter(may_start).collect()
    }

    /// Everything in the configuration of agents that cannot be followed.
    pub(super) fn agent_problems(&self) -> Vec<String> {
        let wrong = |(name, agent): (&String, &AgentConfig)| {
            let parent = agent.inherit.as_deref()?;
            let why = match parent {
                parent if parent == name => "itself",
                parent if !self.has_agent(parent) => "an agent that does not exist",
                _ => return None,
            };
            Some(format!("agent.{name}.inherit: it names {why}; the value is ignored"))
        };
        self.agents.iter().filter_map(wrong).collect()
    }

    fn has_agent(&self, name: &str) -> bool {
        BUILT_IN.contains(&name) || self.agents.contains_key(name)
    }

    fn agent_names(&self) -> Vec<String> {
        let others: BTreeSet<&str> =
            self.agents.keys().map(String::as_str).filter(|name| !BUILT_IN.contains(name)).collect();
        BUILT_IN.into_iter().chain(others).map(str::to_owned).collect()
    }

    /// What the configuration says of the agent over what is built in.
    fn said_of(&self, name: &str) -> AgentConfig {
        self.agents.get(name).cloned().unwrap_or_default().over(built_in(name))
    }
}

impl AgentConfig {
    /// This agent, with `base` saying what it does not. Rules are laid over each other tool by tool.
    fn over(self, base: Self) -> Self {
        // Both parts of the mode are one word.
        let says_mode = self.primary.is_some() || self.subagent.is_some();
        let mode = if says_mode { (self.primary, self.subagent) } else { (base.primary, base.subagent) };
        Self {
            default_model: self.default_model.or(base.default_model),
            variant: self.variant.or(base.variant),
            primary: mode.0,
            subagent: mode.1,
            description: self.description.or(base.description),
            system_prompt: self.system_prompt.or(base.system_prompt),
            max_steps: self.max_steps.or(base.max_steps),
            disabled_tools: self.disabled_tools.or(base.disabled_tools),
            approval: ApprovalOverride {
                allow: laid_over(self.approval.allow, base.approval.allow),
                ask: laid_over(self.approval.ask, base.approval.ask),
                deny: laid_over(self.approval.deny, base.approval.deny),
                by_default: self.approval.by_default.or(base.approval.by_default),
            },
            auto_compact_percentage: self.auto_compact_percentage.or(base.auto_compact_percentage),
            inherit: self.inherit.or(base.inherit),
            spawnable_by: self.spawnable_by.or(base.spawnable_by),
            prompts: self.prompts.over(base.prompts),
        }
    }
}

fn laid_over(own: Option<Rules>, base: Option<Rules>) -> Option<Rules> {
    let (Some(own), Some(mut base)) = (own.clone(), base.clone()) else { return own.or(base) };
    for (selector, rule) in own {
        // The built-in rules have the full name of a native tool, for which users write the short.
        base.remove(&format!("eca__{selector}"));
        base.insert(selector, rule);
    }
    Some(base)
}

fn replace_or_add(general: &mut Rules, own: Option<Rules>, built_in: &Option<Rules>) {
    let Some(own) = own else { return };
    if Some(&own) != built_in.as_ref() {
        *general = own;
        return;
    }
    for (selector, rule) in own {
        match general.get_mut(&selector) {
            Some(known) => known.widen(&rule),
            None => drop(general.insert(selector, rule)),
        }
    }
}

fn built_in(name: &str) -> AgentConfig {
    let without = |tools: &[&str]| Some(tools.iter().map(|tool| (*tool).to_owned()).collect());
    match name {
        CODE => AgentConfig {
            primary: Some(true),
            subagent: Some(false),
            disabled_tools: without(WITHOUT_PREVIEW),
            ..AgentConfig::default()
        },
        "plan" => AgentConfig {
            primary: Some(true),
            subagent: Some(false),
            disabled_tools: without(PLAN_WITHOUT),
            approval: read_only::approval(),
            ..AgentConfig::default()
        },
        "explorer" => AgentConfig {
            primary: Some(false),
            subagent: Some(true),
            description: Some("Searches and reads the project, changes nothing, and reports what it found.".to_owned()),
            disabled_tools: without(EXPLORER_WITHOUT),
            approval: read_only::approval(),
            ..AgentConfig::default()
        },
        "general" => AgentConfig {
            primary: Some(false),
            subagent: Some(true),
            description: Some("Carries out a task of several steps by itself, with all tools.".to_owned()),
            disabled_tools: without(WITHOUT_PREVIEW),
            ..AgentConfig::default()
        },
        _ => AgentConfig::default(),
    }
}

#[cfg(test)]
mod tests;
