//! The tools that one turn offers to its model.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

use crate::llm;
use crate::tool::{Arguments, NATIVE_SERVER, Tool};
use crate::tools::jobs::Jobs;
use crate::tools::{files, shell};

/// The tools that need nothing but their arguments and the machine.
pub(super) fn built_in(jobs: &Jobs) -> Vec<Arc<dyn Tool>> {
    let mut tools = files::tools();
    tools.extend(shell::tools(jobs.clone()));
    tools
}

/// The tools of a turn, each name once.
#[derive(Default)]
pub(super) struct Toolbox {
    tools: Vec<Arc<dyn Tool>>,
    /// What the user wants said of a tool instead, by its full name.
    descriptions: BTreeMap<String, String>,
}

impl Toolbox {
    /// The first of several tools with one name counts.
    pub(super) fn new(tools: impl IntoIterator<Item = Arc<dyn Tool>>) -> Self {
        let mut kept: Vec<Arc<dyn Tool>> = Vec::new();
        for tool in tools {
            let spec = tool.spec();
            let known = kept.iter().any(|kept| kept.spec().server == spec.server && kept.spec().name == spec.name);
            if !known {
                kept.push(tool);
            }
        }
        Self { tools: kept, descriptions: BTreeMap::new() }
    }

    pub(super) fn described(self, descriptions: BTreeMap<String, String>) -> Self {
        Self { descriptions, ..self }
    }

    /// What the model means by a name. It is offered `server__tool`, but some write native tools
    /// without the server, or with one underscore.
    pub(super) fn find(&self, name: &str) -> Option<&Arc<dyn Tool>> {
        let native = |short: &str| {
            self.tools.iter().find(|tool| tool.spec().server == NATIVE_SERVER && tool.spec().name == short)
        };
        if let Some(exact) = self.tools.iter().find(|tool| {
            let spec = tool.spec();
            name.strip_prefix(spec.server.as_str()).and_then(|rest| rest.strip_prefix("__")) == Some(&spec.name)
        }) {
            return Some(exact);
        }
        if name.contains("__") {
            return None;
        }
        native(name).or_else(|| native(name.strip_prefix(NATIVE_SERVER)?.strip_prefix('_')?))
    }

    /// How the tools are shown to the model.
    pub(super) fn offers(&self) -> Vec<llm::ToolSpec> {
        let offer = |tool: &Arc<dyn Tool>| {
            let spec = tool.spec();
            let name = spec.full_name();
            llm::ToolSpec {
                description: self.descriptions.get(&name).unwrap_or(&spec.description).clone(),
                name,
                parameters: Value::clone(&spec.parameters),
            }
        };
        self.tools.iter().map(offer).collect()
    }

    pub(super) fn tools(&self) -> &[Arc<dyn Tool>] {
        &self.tools
    }

    /// For a model that calls something that is not there.
    pub(super) fn names(&self) -> String {
        let names: Vec<String> = self.tools.iter().map(|tool| tool.spec().full_name()).collect();
        if names.is_empty() {
            "No tools are available.".to_owned()
        } else {
            format!("There are: {}.", names.join(", "))
        }
    }
}

/// Brings arguments into the form tools expect: models fill in optional texts with nothing.
pub(super) fn tidy_arguments(tool: &dyn Tool, mut arguments: Arguments) -> Result<Arguments, String> {
    let spec = tool.spec();
    let required: Vec<&str> = spec.required().collect();
    arguments.retain(|name, value| {
        let blank = matches!(value, Value::Null) || value.as_str() == Some("");
        !blank || required.contains(&name.as_str())
    });
    let missing = |name: &&str| arguments.get(*name).is_none_or(Value::is_null);
    let missing: Vec<&str> = required.into_iter().filter(missing).collect();
    if missing.is_empty() {
        return Ok(arguments);
    }
    Err(format!("INVALID_ARGS: {} needs {}. Call it again with all of them.", spec.name, missing.join(", ")))
}

#[cfg(test)]
mod tests {
    use futures_util::future::BoxFuture;
    use serde_json::json;

    use super::*;
    use crate::tool::{ToolContext, ToolOrigin, ToolOutput, ToolSpec};

    struct Named(ToolSpec);

    impl Tool for Named {
        fn spec(&self) -> &ToolSpec {
            &self.0
        }

        fn run<'a>(&'a self, _: Arguments, _: ToolContext) -> BoxFuture<'a, ToolOutput> {
            Box::pin(std::future::ready(ToolOutput::default()))
        }
    }

    fn tool(server: &str, name: &str) -> Arc<dyn Tool> {
        let parameters = json!({"type": "object", "required": ["path"]});
        let origin = if server == NATIVE_SERVER { ToolOrigin::Native } else { ToolOrigin::Mcp };
        Arc::new(Named(ToolSpec { server: server.into(), origin, ..ToolSpec::native(name, "", parameters) }))
    }

    #[test]
    fn native_tools_are_found_by_every_spelling_others_by_their_full_name() {
        let toolbox =
            Toolbox::new([tool("eca", "grep"), tool("my__srv", "grep"), tool("srv", "a__b"), tool("eca", "grep")]);
        let found = |name: &str| toolbox.find(name).map(|tool| tool.spec().full_name());
        for name in ["eca__grep", "grep", "eca_grep"] {
            assert_eq!(found(name).as_deref(), Some("eca__grep"), "{name}");
        }
        assert_eq!(found("my__srv__grep").as_deref(), Some("my__srv__grep"));
        assert_eq!(found("srv__a__b").as_deref(), Some("srv__a__b"));
        for name in ["srv__grep", "b", "a__b", "ecagrep", ""] {
            assert_eq!(found(name), None, "{name}");
        }
        assert_eq!(toolbox.offers().len(), 3);
    }

    #[test]
    fn blank_optional_arguments_are_dropped_and_missing_ones_named() {
        let tool = tool("eca", "read");
        let read = |value: Value| tidy_arguments(&*tool, value.as_object().cloned().unwrap_or_default());
        let kept = read(json!({"path": "", "limit": "", "offset": null, "x": 0})).unwrap();
        assert_eq!(Value::Object(kept), json!({"path": "", "x": 0}));
        for bad in [json!({}), json!({"path": null})] {
            assert!(read(bad).unwrap_err().starts_with("INVALID_ARGS"));
        }
    }
}
