//! What a turn gets to work with: the tools its agent may use and the rules they run under.

use std::sync::Arc;

use super::super::Shared;
use super::super::chat_tools::{ChatMemory, TurnTools};
use super::super::hooks::Hooks;
use super::super::journal::ChatJournal;
use super::super::prompt::Prompt;
use super::super::toolbox::Toolbox;
use super::super::tools::ask_user::AskUser;
use super::super::tools::fetch_rule::{FetchRule, ScopedRules};
use super::super::tools::skill::SkillTool;
use super::super::tools::task::TaskTool;
use super::ChatActor;
use crate::approval::{self, Roots, Rules};
use crate::base::ModelId;
use crate::config::{Config, ToolCallConfig};
use crate::customization::Customization;
use crate::customization::hooks::{ChatFacts, Setting};
use crate::host::Capabilities;
use crate::llm::ModelInfo;
use crate::tool::{Tool, ToolSpec};
use crate::tools::custom::custom_tools;
use crate::tools::{editor, fetch};

/// What decides which tools an agent is offered.
struct Choice {
    settings: Arc<ToolCallConfig>,
    rules: Rules,
    disabled: Vec<String>,
    can: Capabilities,
}

impl Choice {
    fn of(config: &Config, agent: &str, can: Capabilities) -> Self {
        let settings = Arc::new(config.tool_call_of(agent));
        let rules = Rules::new(&settings);
        Self { rules, settings, disabled: config.disabled_tools_of(agent), can }
    }

    /// Whether the client can do what the tool needs.
    fn is_possible(&self, spec: &ToolSpec) -> bool {
        spec.name != "ask_user" || self.can.ask
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
        let choice = Choice::of(config, agent, self.host.capabilities());
        let tools = self.own_tools(config, &Arc::default(), &Arc::default());
        let specs = tools.iter().map(|tool| tool.spec()).filter(|spec| choice.is_possible(spec));
        specs.map(|spec| (spec.clone(), choice.is_disabled(spec))).collect()
    }
}

impl ChatActor {
    /// The hooks that count now.
    pub(super) fn hooks(&self, prompt: &Prompt) -> Hooks {
        let workspaces = prompt.workspace.roots().iter().map(|root| root.path.clone()).collect();
        Hooks {
            runner: Arc::clone(&self.shared.settings().hooks),
            setting: Arc::new(Setting { workspaces, ..self.shared.hook_setting.clone() }),
            sink: Arc::clone(&self.shared.sink),
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
        let choice = Choice::of(config, agent, shared.host.capabilities());
        let takes_tools = info.is_none_or(|info| info.tools);
        let fits =
            |tool: &Arc<dyn Tool>| takes_tools && choice.is_possible(tool.spec()) && !choice.is_disabled(tool.spec());
        let mut tools = shared.own_tools(config, &self.memory, customization);
        tools.extend(shared.servers.tools());
        let scoped_rules = ScopedRules {
            customization: Arc::clone(customization),
            agent: agent.to_owned(),
            model: model.to_string(),
            memory: Arc::clone(&self.memory),
        };
        if !scoped_rules.is_empty() {
            let plain = Toolbox::new(tools.iter().cloned());
            let variables = shared.instructions.variables(&prompt.workspace, false, &plain);
            tools.push(Arc::new(FetchRule::new(scoped_rules.clone(), variables)));
        }
        // The provider's own tool is switched off by its name, as ours are.
        let searching = ToolSpec::native("web_search", "", serde_json::Value::Null);
        let web_search = takes_tools && info.is_some_and(|info| info.web_search) && !choice.is_disabled(&searching);
        TurnTools {
            toolbox: Arc::new(Toolbox::new(tools.into_iter().filter(fits))),
            scoped_rules,
            hooks: self.hooks(prompt),
            facts: Arc::new(self.facts(prompt, agent, Some(model))),
            memory: Arc::clone(&self.memory),
            live: Arc::clone(&self.live.mail),
            agent: agent.to_owned(),
            workspace: Arc::clone(&prompt.workspace),
            roots: Arc::new(Roots::of(&prompt.workspace, shared.outputs.as_deref())),
            rules: Arc::new(choice.rules),
            settings: choice.settings,
            host: Arc::clone(&shared.host),
            journal: Arc::new(ChatJournal::new(shared.store.clone(), self.id.clone())),
            jobs: shared.jobs.clone(),
            outputs: shared.outputs.clone(),
            sees_images: info.is_some_and(|info| info.vision),
            web_search,
        }
    }
}
