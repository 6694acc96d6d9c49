//! `skill`: the model loads instructions that it knows by name and description only.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use serde_json::{Value, json};

use crate::customization::Customization;
use crate::tool::{Arguments, Preview, Tool, ToolContext, ToolOutput, ToolSpec};

pub(crate) struct SkillTool {
    spec: ToolSpec,
    customization: Arc<Customization>,
}

impl SkillTool {
    pub(crate) fn new(customization: Arc<Customization>) -> Self {
        let description = "Load the instructions of a skill that fits what you are about to do.";
        let parameters = json!({
            "type": "object",
            "required": ["name"],
            "properties": {"name": {"type": "string"}},
        });
        Self { spec: ToolSpec::native("skill", description, parameters), customization }
    }
}

impl Tool for SkillTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn summary(&self, arguments: &Arguments) -> Option<String> {
        let name = arguments.get("name").and_then(Value::as_str);
        Some(name.map_or_else(|| "Loading skill".to_owned(), |name| format!("Loading skill '{name}'")))
    }

    fn preview<'a>(&'a self, arguments: &'a Arguments, _: &'a ToolContext) -> BoxFuture<'a, Result<Preview, String>> {
        let summary = self.summary(arguments);
        Box::pin(std::future::ready(Ok(Preview { summary, ..Preview::default() })))
    }

    fn run<'a>(&'a self, arguments: Arguments, _: ToolContext) -> BoxFuture<'a, ToolOutput> {
        Box::pin(async move {
            let name = arguments.get("name").and_then(Value::as_str).unwrap_or_default();
            match self.customization.skills.load_skill(name).await {
                Ok(skill) => ToolOutput::text(format!(
                    "Skill {} (its files are in {})\n\n{}",
                    skill.name,
                    skill.directory.display(),
                    skill.text
                )),
                Err(problem) => ToolOutput::error(problem),
            }
        })
    }
}
