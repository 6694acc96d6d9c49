//! The tools that one turn offers to its model.

use std::sync::Arc;

use serde_json::Value;

use crate::base::text::prefix;
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
    /// What the model sees each of them as.
    names: Vec<String>,
}

/// What every vendor accepts as the name of a tool.
const MOST_NAME: usize = 64;

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
        let names = offered_names(&kept);
        Self { tools: kept, names }
    }

    /// What the model means by a name. It is offered `server__tool`, but some write native tools
    /// without the server, or with one underscore.
    pub(super) fn find(&self, name: &str) -> Option<&Arc<dyn Tool>> {
        let native = |short: &str| {
            self.tools.iter().find(|tool| tool.spec().server == NATIVE_SERVER && tool.spec().name == short)
        };
        if let Some(exact) = self.names.iter().position(|offered| offered == name) {
            return self.tools.get(exact);
        }
        if name.contains("__") {
            return None;
        }
        native(name).or_else(|| native(name.strip_prefix(NATIVE_SERVER)?.strip_prefix('_')?))
    }

    /// How the tools are shown to the model.
    pub(super) fn offers(&self) -> Vec<llm::ToolSpec> {
        let offer = |(tool, name): (&Arc<dyn Tool>, &String)| {
            let spec = tool.spec();
            llm::ToolSpec {
                name: name.clone(),
                description: spec.description.clone(),
                parameters: Value::clone(&spec.parameters),
            }
        };
        self.tools.iter().zip(&self.names).map(offer).collect()
    }

    pub(super) fn tools(&self) -> &[Arc<dyn Tool>] {
        &self.tools
    }

    /// For a model that calls something that is not there.
    pub(super) fn names(&self) -> String {
        let names = &self.names;
        if names.is_empty() {
            "No tools are available.".to_owned()
        } else {
            format!("There are: {}.", names.join(", "))
        }
    }
}

/// A vendor refuses the whole chat for one name that it does not like, such as that of a server with a
/// dot in it. A name that is fine stays; one that had to be changed never takes another's.
fn offered_names(tools: &[Arc<dyn Tool>]) -> Vec<String> {
    let full: Vec<String> = tools.iter().map(|tool| tool.spec().full_name()).collect();
    let plain: Vec<String> = full.iter().map(|name| plain_name(name)).collect();
    let is_taken = |at: usize| {
        let same = |(other, name): (usize, &String)| other != at && *name == plain[at];
        plain[at] != full[at] && plain.iter().enumerate().any(same)
    };
    let offered = |at: usize| match is_taken(at) || plain[at].len() > MOST_NAME {
        true => marked(&plain[at], &full[at]),
        false => plain[at].clone(),
    };
    (0..full.len()).map(offered).collect()
}

fn plain_name(name: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    name.chars().map(|c| if is_plain(c) { c } else { '_' }).collect()
}

/// The same for the same tool, whatever else there is: a mark made of its true name takes the end of
/// it (FNV-1a, 32 bits).
fn marked(plain: &str, full: &str) -> String {
    let hash = full.bytes().fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
    let mark = format!("_{hash:08x}");
    format!("{}{mark}", prefix(plain, MOST_NAME - mark.len()))
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
    fn odd_names_of_servers_are_offered_as_vendors_take_them_and_never_mixed_up() {
        let long = "s".repeat(60);
        let toolbox = Toolbox::new([
            tool("a_b", "t"),
            tool("a.b", "t"),
            tool("a b", "t"),
            tool("日本", "t"),
            tool(&long, "tool"),
            tool("x.y", "t"),
        ]);
        let offered: Vec<String> = toolbox.offers().into_iter().map(|offer| offer.name).collect();
        assert_eq!((offered[0].as_str(), offered[5].as_str()), ("a_b__t", "x_y__t"));
        let is_fine = |c: char| c.is_ascii_alphanumeric() || "_-".contains(c);
        assert!(offered.iter().all(|name| name.len() <= MOST_NAME && name.chars().all(is_fine)), "{offered:?}");
        let different: std::collections::HashSet<&String> = offered.iter().collect();
        assert_eq!(different.len(), 6, "{offered:?}");
        let servers = ["a_b", "a.b", "a b", "日本", long.as_str(), "x.y"];
        for (name, server) in offered.iter().zip(servers) {
            assert_eq!(toolbox.find(name).map(|tool| tool.spec().server.as_str()), Some(server));
        }
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
