//! What a turn gets to work with: the tools its agent may use and the rules they run under.

use std::sync::Arc;

use super::super::chat_tools::TurnTools;
use super::super::journal::ChatJournal;
use super::super::prompt::Prompt;
use super::super::toolbox::Toolbox;
use super::super::tools::ask_user::AskUser;
use super::super::tools::task::TaskTool;
use super::ChatActor;
use crate::approval::{self, Roots, Rules};
use crate::llm::ModelInfo;
use crate::tool::Tool;

impl ChatActor {
    pub(super) fn turn_tools(&self, prompt: &Prompt, agent: &str, info: Option<&ModelInfo>) -> TurnTools {
        let shared = &self.shared;
        let config = Arc::clone(&shared.settings().config);
        let settings = Arc::new(config.tool_call_of(agent));
        let rules = Rules::new(&settings);
        let disabled = config.disabled_tools_of(agent);
        let own: [Arc<dyn Tool>; 2] = [Arc::new(TaskTool::new(Arc::clone(&self.memory))), Arc::new(AskUser::new())];
        let can = shared.host.capabilities();
        let fits = |tool: &Arc<dyn Tool>| {
            let spec = tool.spec();
            let possible = match spec.name.as_str() {
                "ask_user" => can.ask,
                "editor_diagnostics" => can.diagnostics,
                "editor_definition" => can.definition && settings.editor_nav,
                "editor_references" => can.references && settings.editor_nav,
                _ => true,
            };
            possible && !approval::is_disabled(spec, &disabled) && !rules.hides(spec)
        };
        let tools = shared.tools.iter().cloned().chain(own).filter(fits);
        TurnTools {
            toolbox: Arc::new(Toolbox::new(tools)),
            memory: Arc::clone(&self.memory),
            live: Arc::clone(&self.live.mail),
            agent: agent.to_owned(),
            workspace: Arc::clone(&prompt.workspace),
            roots: Arc::new(Roots::of(&prompt.workspace, shared.outputs.as_deref())),
            rules: Arc::new(rules),
            settings,
            host: Arc::clone(&shared.host),
            journal: Arc::new(ChatJournal::new(shared.store.clone(), self.id.clone())),
            outputs: shared.outputs.clone(),
            sees_images: info.is_some_and(|info| info.vision),
        }
    }
}
