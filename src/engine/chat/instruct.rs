//! What this chat's model is told before anything is said, what the user's own commands become,
//! and what there is to show of both.

use std::sync::Arc;

use super::super::chat_tools::TurnTools;
use super::super::commands::{CommandArgument, CommandInfo, CommandKind};
use super::super::instructions::About;
use super::super::mcp_parts;
use super::super::prompt::Prompt;
use super::super::turn::shares;
use super::ChatActor;
use super::commands::Typed;
use crate::base::{ModelId, text};
use crate::config::PromptsConfig;
use crate::context;
use crate::customization::prompt::SystemPrompt;
use crate::customization::template::Variables;
use crate::customization::{Customization, Origin, Scope, prompt};

const MAX_SKILL_NAME: usize = 64;
/// Characters per token, roughly.
const CHARS_PER_TOKEN: usize = 4;

/// The system prompt a chat began with. It stays, so that the provider's cache stays good.
pub(super) struct Pinned {
    agent: String,
    model: ModelId,
    text: String,
    /// Whether the user was told that it would be another one now.
    told: bool,
}

impl ChatActor {
    /// The system prompt of the next turn; a change of what it is made of is told, and counts from
    /// `/sync-system-prompt` on, or at once if the user wants that.
    pub(super) fn system_prompt(
        &mut self,
        prompt: &Prompt,
        agent: &str,
        model: &ModelId,
        tools: &TurnTools,
        customization: &Customization,
        notes: &mut Vec<String>,
    ) -> String {
        let now = self.compose(prompt, agent, model, tools, customization).text();
        let settings = self.shared.settings();
        match &mut self.pinned {
            Some(pinned) if pinned.agent == agent && pinned.model == *model && pinned.text == now => now,
            Some(pinned)
                if pinned.agent == agent
                    && pinned.model == *model
                    && !settings.config().chat.auto_sync_system_prompt =>
            {
                if !std::mem::replace(&mut pinned.told, true) {
                    notes.push(
                        "Rules, skills or AGENTS.md have changed. `/sync-system-prompt` makes them count in this \
                         chat; new chats have them.\n\n"
                            .to_owned(),
                    );
                }
                pinned.text.clone()
            }
            _ => {
                let pinned = Pinned { agent: agent.to_owned(), model: model.clone(), text: now.clone(), told: false };
                self.pinned = Some(pinned);
                now
            }
        }
    }

    fn compose(
        &self,
        prompt: &Prompt,
        agent: &str,
        model: &ModelId,
        tools: &TurnTools,
        customization: &Customization,
    ) -> SystemPrompt {
        let instructions = &self.shared.instructions;
        let variables = instructions.variables(&prompt.workspace, self.lineage.is_some(), &tools.toolbox);
        let settings = self.shared.settings();
        instructions.system_prompt(&About {
            config: settings.config(),
            customization,
            agent,
            model,
            workspace: &prompt.workspace,
            variables: &variables,
            contexts: &self.start_contexts,
            // Whoever is waited for should know how far it may go.
            max_steps: self.lineage.as_ref().and_then(|_| settings.config().agent_of(agent).max_steps),
        })
    }

    async fn customization(&self, prompt: &Prompt) -> Arc<Customization> {
        let settings = self.shared.settings();
        self.shared.instructions.of(&prompt.workspace, settings.config(), &*self.shared.sink).await
    }

    pub(super) fn init_prompt(&self, prompt: &Prompt) -> String {
        prompt::init(&self.prompts_for(prompt), &self.variables(prompt))
    }

    /// What `/skill-create` asks for; a problem says how it is written.
    pub(super) fn skill_prompt(&self, prompt: &Prompt, rest: &str) -> Result<String, String> {
        let (name, wish) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
        let is_name = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        if name.is_empty() || wish.trim().is_empty() {
            return Err("Say its name and what it should do: `/skill-create my-skill …`.".to_owned());
        }
        if name.len() > MAX_SKILL_NAME || !name.chars().all(is_name) {
            return Err(format!(
                "A skill's name has at most {MAX_SKILL_NAME} small letters, digits and hyphens, not {:?}.",
                text::one_line(name, MAX_SKILL_NAME)
            ));
        }
        let file = self.shared.hook_setting.config_dir.join("skills").join(name).join("SKILL.md");
        let (prompts, variables) = (self.prompts_for(prompt), self.variables(prompt));
        Ok(prompt::skill_create(&prompts, &file.display().to_string(), name, wish, &variables))
    }

    fn prompts_for(&self, prompt: &Prompt) -> PromptsConfig {
        let settings = self.shared.settings();
        let config = settings.config();
        config.prompts_of(prompt.agent.as_deref().unwrap_or(&config.default_agent))
    }

    fn variables(&self, prompt: &Prompt) -> Variables {
        self.shared.instructions.variables(&prompt.workspace, false, &Default::default())
    }

    /// A command or a skill of the user's; anything else is for the model as it is.
    pub(super) async fn expand_command(&self, name: &str, rest: &str, prompt: &Prompt) -> Typed {
        let customization = self.customization(prompt).await;
        if customization.commands.get(name).is_some() {
            return match customization.commands.expand(name, rest) {
                Ok(text) => Typed::Expanded(text),
                Err(error) => Typed::Problem(error.to_string()),
            };
        }
        if customization.skills.get(name).is_ok() {
            if rest.is_empty() {
                return Typed::Expanded(format!("Load the skill {name} and follow it."));
            }
            return match customization.skills.load_skill(name).await {
                Ok(skill) => Typed::Expanded(skill.with_arguments(rest)),
                Err(problem) => Typed::Problem(problem),
            };
        }
        match mcp_parts::prompt_text(&self.shared.servers, name, rest).await {
            Some(Ok(text)) => Typed::Expanded(text),
            Some(Err(problem)) => Typed::Problem(problem),
            None => Typed::ForModel,
        }
    }

    pub(super) async fn list_rules(&self, prompt: &Prompt) -> String {
        let customization = self.customization(prompt).await;
        let lines = customization.rules.iter().map(|rule| {
            let scope = match &rule.scope {
                Scope::Paths(paths) => format!("for {}", paths.patterns.join(", ")),
                _ => "always".to_owned(),
            };
            format!("- **{}** ({scope}, {}): `{}`", rule.id, origin(rule.origin), rule.file.display())
        });
        listed("Rules", lines.collect(), "`.eca/rules` in the workspace or `rules` in the configuration folder")
    }

    pub(super) async fn list_skills(&self, prompt: &Prompt) -> String {
        let customization = self.customization(prompt).await;
        let lines = customization.skills.iter().map(|skill| format!("- **{}**: {}", skill.name, skill.description));
        listed("Skills", lines.collect(), "`.eca/skills` or `.agents/skills` in the workspace")
    }

    pub(super) fn list_hooks(&self) -> String {
        let settings = self.shared.settings();
        let lines = settings.hooks.iter().map(|(name, hook)| {
            let about = hook.description.as_deref().map(|about| format!(": {about}")).unwrap_or_default();
            format!("- **{name}** ({}){about}", hook.kind.name())
        });
        listed("Hooks", lines.collect(), "`hooks` in the configuration")
    }

    pub(super) fn list_subagents(&self, prompt: &Prompt) -> String {
        let settings = self.shared.settings();
        let config = settings.config();
        let agent = prompt.agent.as_deref().unwrap_or(&config.default_agent);
        let lines = config.subagents_of(agent).into_iter().map(|name| {
            let about = config.agent_of(&name).description;
            format!("- **{name}**{}", about.map(|about| format!(": {about}")).unwrap_or_default())
        });
        listed("Agents that can be started", lines.collect(), "`.eca/agents` in the workspace")
    }

    /// The system prompt with the size of each part.
    pub(super) async fn show_prompt(&self, prompt: &Prompt) -> String {
        let customization = self.customization(prompt).await;
        let settings = self.shared.settings();
        let (agent, _) =
            settings.config().agent_name(prompt.agent.as_deref().unwrap_or(&settings.config().default_agent));
        let model = self.model.clone().unwrap_or_else(|| settings.registry.default_model());
        let info = settings.registry.info(&model);
        let tools = self.turn_tools(prompt, &agent, &model, info.as_ref(), &customization);
        let composed = self.compose(prompt, &agent, &model, &tools, &customization);
        let offers = tools.toolbox.offers();
        let offered: usize = offers
            .iter()
            .map(|tool| tool.name.len() + tool.description.len() + tool.parameters.to_string().len())
            .sum();
        let mut shown = format!("For agent `{agent}` and `{model}`, in tokens, roughly:\n");
        for section in &composed.sections {
            shown.push_str(&format!("- {}: {}\n", section.title, section.text.len() / CHARS_PER_TOKEN));
        }
        shown.push_str(&format!("- {} tools: {}\n", offers.len(), offered / CHARS_PER_TOKEN));
        format!("{shown}\n````text\n{}\n````", composed.text())
    }

    /// What fills the window, as far as it can be weighed.
    pub(super) async fn context_window(&self, prompt: &Prompt) -> String {
        let system = self.pinned.as_ref().map(|pinned| pinned.text.clone()).unwrap_or_default();
        let settings = self.shared.settings();
        let model = self.model.clone().unwrap_or_else(|| settings.registry.default_model());
        let limit = settings.registry.info(&model).and_then(|info| info.context_limit);
        let _ = prompt;
        let mut shown = match limit {
            Some(limit) if limit > 0 => {
                format!("{} of {limit} tokens of {model} ({} %)\n", self.occupancy, self.occupancy * 100 / limit)
            }
            _ => format!("{} tokens of {model}, whose limit is not known\n", self.occupancy),
        };
        for share in shares(&system, &self.history, self.occupancy) {
            shown.push_str(&format!("- {:?}: {}\n", share.kind, share.tokens));
        }
        shown
    }

    pub(super) async fn show_repo_map(&self, prompt: &Prompt) -> Result<String, String> {
        let settings = self.shared.settings();
        let config = &settings.config().index;
        let index = self.shared.indexes.of(&prompt.workspace, config);
        match context::repo_map::repo_map(&index, config.repo_map).await {
            Some(map) => Ok(format!("```text\n{map}\n```")),
            None => Err("There is nothing to show: no folder is open.".to_owned()),
        }
    }
}

fn origin(origin: Origin) -> &'static str {
    match origin {
        Origin::Workspace => "of this workspace",
        _ => "your own",
    }
}

fn listed(what: &str, lines: Vec<String>, place: &str) -> String {
    match lines.is_empty() {
        true => format!("There are none. They come from {place}."),
        false => format!("{what}:\n{}", lines.join("\n")),
    }
}

/// The user's own skills and commands, as they are listed.
pub(in crate::engine) fn listed_commands(customization: &Customization) -> Vec<CommandInfo> {
    let custom = customization.commands.iter().map(|command| CommandInfo {
        name: command.name.clone(),
        kind: CommandKind::CustomPrompt,
        description: command
            .description
            .clone()
            .unwrap_or_else(|| text::one_line(&command.file.to_string_lossy(), 120)),
        arguments: command
            .arguments
            .iter()
            .map(|argument| CommandArgument {
                name: argument.name.clone(),
                description: argument.description.clone(),
                required: argument.required,
            })
            .collect(),
    });
    let skills = customization.skills.iter().map(|skill| CommandInfo {
        name: skill.name.clone(),
        kind: CommandKind::Skill,
        description: skill.description.clone(),
        arguments: Vec::new(),
    });
    skills.chain(custom).collect()
}
