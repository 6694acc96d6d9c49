//! What a turn gets to work with: the tools its agent may use and the rules they run under.

use std::sync::{Arc, Mutex};

use super::super::chat_tools::{ChatMemory, TurnTools};
use super::super::hooks::Hooks;
use super::super::journal::ChatJournal;
use super::super::prompt::Prompt;
use super::super::toolbox::Toolbox;
use super::super::tools::ask_user::AskUser;
use super::super::tools::fetch_rule::{FetchRule, ScopedRules};
use super::super::tools::skill::SkillTool;
use super::super::tools::spawn_agent::{self, SpawnAgent};
use super::super::tools::task::TaskTool;
use super::super::{Engine, Shared};
use super::ChatActor;
use crate::approval::{self, Roots, Rules};
use crate::base::ModelId;
use crate::config::{AfterRejection, Config, RememberFor, ToolCallConfig};
use crate::customization::Customization;
use crate::customization::hooks::{ChatFacts, Setting};
use crate::customization::template;
use crate::host::Capabilities;
use crate::llm::ModelInfo;
use crate::tool::{Tool, ToolOrigin, ToolSpec};
use crate::tools::custom::custom_tools;
use crate::tools::{editor, fetch};

/// What decides which tools an agent is offered.
struct Choice {
    settings: Arc<ToolCallConfig>,
    rules: Rules,
    disabled: Vec<String>,
    can: Capabilities,
    is_subagent: bool,
}

impl Choice {
    fn of(config: &Config, agent: &str, can: Capabilities, is_subagent: bool) -> Self {
        let mut settings = config.tool_call_of(agent);
        if is_subagent {
            // Nobody is there who could say what should be done instead.
            settings.after_rejection = AfterRejection::Continue;
        }
        let rules = Rules::new(&settings);
        Self { rules, settings: Arc::new(settings), disabled: config.disabled_tools_of(agent), can, is_subagent }
    }

    /// Whether the client can do what the tool needs, and the chat is one that has it.
    fn is_possible(&self, spec: &ToolSpec) -> bool {
        let by_client = match spec.name.as_str() {
            "ask_user" => self.can.ask,
            // What another chat asks for could not be shown.
            spawn_agent::NAME => !self.can.approves_file_changes_only,
            _ => true,
        };
        by_client && (!self.is_subagent || approval::is_for_subagents(spec))
    }

    fn is_disabled(&self, spec: &ToolSpec) -> bool {
        approval::is_disabled(spec, &self.disabled) || self.rules.hides(spec)
    }
}

impl Shared {
    /// The tools of this server; those that belong to a chat work on `memory`.
    fn own_tools(
        &self,
        config: &Config,
        memory: &Arc<ChatMemory>,
        customization: &Arc<Customization>,
    ) -> Vec<Arc<dyn Tool>> {
        let mut of_chat: Vec<Arc<dyn Tool>> =
            vec![Arc::new(TaskTool::new(Arc::clone(memory))), Arc::new(AskUser::new())];
        if !customization.skills.is_empty() {
            of_chat.push(Arc::new(SkillTool::new(Arc::clone(customization))));
        }
        let by_config = fetch::tools(self.settings().http.clone())
            .into_iter()
            .chain(editor::tools(self.host.capabilities(), config))
            .chain(custom_tools(&config.custom_tools));
        self.tools.iter().cloned().chain(of_chat).chain(by_config).collect()
    }

    /// The tools of this server as an agent has them, and whether each is switched off.
    pub(in crate::engine) fn listed_tools(&self, agent: &str) -> Vec<(ToolSpec, bool)> {
        let settings = self.settings();
        let config = settings.config();
        let choice = Choice::of(config, agent, self.host.capabilities(), false);
        let tools = self.own_tools(config, &Arc::default(), &Arc::default());
        let specs = tools.iter().map(|tool| tool.spec().clone()).chain(spawn_agent::spec(config, agent));
        let possible = specs.filter(|spec| choice.is_possible(spec));
        let listed = |spec: ToolSpec| {
            let is_disabled = choice.is_disabled(&spec);
            (spec, is_disabled)
        };
        possible.map(listed).collect()
    }
}

impl Engine {
    /// Which tools an agent is not offered, those of MCP servers included.
    pub fn switched_off(&self, agent: &str) -> SwitchedOff {
        SwitchedOff(Choice::of(self.shared.settings().config(), agent, self.shared.host.capabilities(), false))
    }
}

/// Which tools an agent is not offered.
pub struct SwitchedOff(Choice);

impl std::fmt::Debug for SwitchedOff {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SwitchedOff").field("disabled", &self.0.disabled).finish_non_exhaustive()
    }
}

impl SwitchedOff {
    /// Whether this tool of an MCP server is one of them.
    pub fn has(&self, server: &str, tool: &str) -> bool {
        let spec = ToolSpec {
            server: server.to_owned(),
            origin: ToolOrigin::Mcp,
            ..ToolSpec::native(tool, "", serde_json::Value::Null)
        };
        self.0.is_disabled(&spec)
    }
}

impl ChatActor {
    /// The hooks that count now.
    pub(super) fn hooks(&self, prompt: &Prompt) -> Hooks {
        let workspaces = prompt.workspace.roots().iter().map(|root| root.path.clone()).collect();
        Hooks {
            runner: Arc::clone(&self.shared.settings().hooks),
            setting: Arc::new(Setting { workspaces, ..self.shared.hook_setting.clone() }),
            sink: Arc::clone(&self.sink),
        }
    }

    /// What hooks are told about this chat.
    pub(super) fn facts(&self, prompt: &Prompt, agent: &str, model: Option<&ModelId>) -> ChatFacts {
        ChatFacts {
            chat: self.id.clone(),
            agent: agent.to_owned(),
            model: model.or(self.model.as_ref()).map(ToString::to_string),
            variant: prompt.variant.clone(),
        }
    }

    /// The tool that starts other agents, if this one may start any.
    fn spawn_agent(&self, config: &Config, agent: &str, model: &ModelId) -> Option<Arc<dyn Tool>> {
        let spec = spawn_agent::spec(config, agent).filter(|_| self.lineage.is_none())?;
        Some(Arc::new(SpawnAgent {
            spec,
            shared: Arc::clone(&self.shared),
            parent: self.id.clone(),
            model: model.clone(),
            agent: agent.to_owned(),
            mail: Arc::clone(&self.live.mail),
            memory: Arc::clone(&self.memory),
            chats: Mutex::default(),
        }))
    }

    /// With what the user wants said of tools instead.
    fn described(&self, toolbox: Toolbox, config: &Config, agent: &str, prompt: &Prompt) -> Toolbox {
        let mut texts = config.prompts_of(agent).tools;
        if texts.is_empty() {
            return toolbox;
        }
        let is_subagent = self.lineage.is_some();
        let variables = self.shared.instructions.variables(&prompt.workspace, is_subagent, &toolbox);
        for text in texts.values_mut() {
            *text = template::render_or_keep(text, &variables);
        }
        toolbox.described(texts)
    }

    pub(super) fn turn_tools(
        &self,
        prompt: &Prompt,
        agent: &str,
        model: &ModelId,
        info: Option<&ModelInfo>,
        customization: &Arc<Customization>,
    ) -> TurnTools {
        let shared = &self.shared;
        let settings = shared.settings();
        let config = settings.config();
        let choice = Choice::of(config, agent, shared.host.capabilities(), self.lineage.is_some());
        let takes_tools = info.is_none_or(|info| info.tools);
        let fits =
            |tool: &Arc<dyn Tool>| takes_tools && choice.is_possible(tool.spec()) && !choice.is_disabled(tool.spec());
        let mut tools = shared.own_tools(config, &self.memory, customization);
        tools.extend(self.spawn_agent(config, agent, model));
        tools.extend(shared.servers.tools());
        let scoped_rules = ScopedRules {
            customization: Arc::clone(customization),
            agent: agent.to_owned(),
            model: model.to_string(),
            memory: Arc::clone(&self.memory),
        };
        if !scoped_rules.is_empty() {
            let plain = Toolbox::new(tools.iter().cloned());
            let variables = shared.instructions.variables(&prompt.workspace, self.lineage.is_some(), &plain);
            tools.push(Arc::new(FetchRule::new(scoped_rules.clone(), variables)));
        }
        // Winding a chat back also undoes what others did for it.
        let journaled = self.lineage.as_ref().map_or(&self.id, |lineage| &lineage.parent);
        // The provider's own tool is switched off by its name, as ours are.
        let searching = ToolSpec::native("web_search", "", serde_json::Value::Null);
        let web_search = takes_tools && info.is_some_and(|info| info.web_search) && !choice.is_disabled(&searching);
        TurnTools {
            toolbox: Arc::new(self.described(Toolbox::new(tools.into_iter().filter(fits)), config, agent, prompt)),
            scoped_rules,
            hooks: self.hooks(prompt),
            facts: Arc::new(self.facts(prompt, agent, Some(model))),
            memory: Arc::clone(&self.memory),
            consents: Arc::clone(match choice.settings.approval.remember_for {
                RememberFor::Chat => &self.memory.remembered,
                RememberFor::Server => &shared.consents,
            }),
            live: Arc::clone(&self.live.mail),
            agent: agent.to_owned(),
            workspace: Arc::clone(&prompt.workspace),
            roots: Arc::new(Roots::of(&prompt.workspace, shared.outputs.as_deref())),
            rules: Arc::new(choice.rules),
            settings: choice.settings,
            host: Arc::clone(&shared.host),
            journal: Arc::new(ChatJournal::new(shared.store.clone(), journaled.clone())),
            jobs: shared.jobs.clone(),
            outputs: shared.outputs.clone(),
            sees_images: info.is_some_and(|info| info.vision),
            web_search,
        }
    }
}
