//! A server's tool as one of ours.

use std::collections::HashSet;
use std::sync::{Arc, Weak};

use futures_util::future::BoxFuture;
use serde_json::{Map, Value};

use super::shared::Shared;
use super::status::ToolInfo;
use crate::base::text::prefix;
use crate::tool::{Arguments, Tool, ToolContext, ToolOrigin, ToolOutput, ToolSpec};

/// More tools would leave no room for a conversation.
const MOST_TOOLS: usize = 256;
const MOST_DESCRIPTION: usize = 16 * 1024;
const MOST_SCHEMA: usize = 64 * 1024;
/// What every vendor accepts as the name of a tool, the server's part included.
const MOST_NAME: usize = 64;
/// However long the server's name is, so much of the tool's is kept.
const LEAST_NAME: usize = 16;

pub(super) struct McpTool {
    spec: ToolSpec,
    /// As the server calls it.
    name: String,
    server: Weak<Shared>,
}

impl std::fmt::Debug for McpTool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("McpTool").field("server", &self.spec.server).field("name", &self.name).finish_non_exhaustive()
    }
}

impl McpTool {
    pub(super) fn info(&self) -> ToolInfo {
        ToolInfo {
            name: self.spec.name.clone(),
            description: self.spec.description.clone(),
            parameters: Arc::clone(&self.spec.parameters),
        }
    }
}

impl Tool for McpTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn run<'a>(&'a self, arguments: Arguments, context: ToolContext) -> BoxFuture<'a, ToolOutput> {
        Box::pin(async move {
            let Some(server) = self.server.upgrade() else {
                return ToolOutput::error(format!("The MCP server {:?} is not there any more.", self.spec.server));
            };
            match server.live(&context.stop).await {
                Ok(live) => live.call(self.name.clone(), arguments, context).await,
                Err(error) => ToolOutput::error(error.to_string()),
            }
        })
    }
}

/// The tools of a server, as they can be offered.
pub(super) fn offered(server: &Arc<Shared>, tools: Vec<rmcp::model::Tool>) -> Vec<Arc<McpTool>> {
    let mut taken = HashSet::new();
    let mut offered = Vec::new();
    for tool in tools {
        if offered.len() == MOST_TOOLS {
            tracing::warn!(
                server = server.name(),
                "an MCP server has more than {MOST_TOOLS} tools; the rest is left out"
            );
            break;
        }
        let Some(parameters) = parameters(&tool.input_schema) else {
            tracing::warn!(server = server.name(), tool = &*tool.name, "a tool with too large a schema is left out");
            continue;
        };
        let name = offered_name(server.name(), &tool.name, &mut taken);
        let title = tool.title.as_deref().or(tool.annotations.as_ref().and_then(|notes| notes.title.as_deref()));
        let words = tool.description.as_deref().map(str::trim).filter(|text| !text.is_empty()).or(title);
        let description = words.map_or_else(
            || format!("The tool {} of the MCP server {}.", tool.name, server.name()),
            |words| prefix(words, MOST_DESCRIPTION).to_owned(),
        );
        let spec = ToolSpec {
            server: server.name().to_owned(),
            name,
            origin: ToolOrigin::Mcp,
            description,
            parameters: Arc::new(parameters),
        };
        offered.push(Arc::new(McpTool { spec, name: tool.name.into_owned(), server: Arc::downgrade(server) }));
    }
    offered
}

/// A schema that vendors accept: of type object, with properties.
fn parameters(schema: &Map<String, Value>) -> Option<Value> {
    let mut schema = schema.clone();
    if schema.get("type").and_then(Value::as_str) != Some("object") {
        schema.insert("type".to_owned(), "object".into());
    }
    if !schema.get("properties").is_some_and(Value::is_object) {
        schema.insert("properties".to_owned(), Value::Object(Map::new()));
    }
    let schema = Value::Object(schema);
    (schema.to_string().len() <= MOST_SCHEMA).then_some(schema)
}

/// The tool's own name where a vendor would take it; a vendor that does not refuses the whole chat.
fn offered_name(server: &str, name: &str, taken: &mut HashSet<String>) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    let clean: String = name.chars().map(|c| if is_plain(c) { c } else { '_' }).collect();
    let room = MOST_NAME.saturating_sub(server.len() + 2).max(LEAST_NAME);
    let mut offered = if clean.is_empty() { "tool".to_owned() } else { clean };
    if offered.len() > room {
        let hash = ring::digest::digest(&ring::digest::SHA256, name.as_bytes());
        let mark: String = hash.as_ref().iter().take(3).map(|byte| format!("{byte:02x}")).collect();
        offered = format!("{}_{mark}", prefix(&offered, room - mark.len() - 1));
    }
    let mut unique = offered.clone();
    let mut number = 2;
    while !taken.insert(unique.clone()) {
        let end = format!("_{number}");
        unique = format!("{}{end}", prefix(&offered, room - end.len()));
        number += 1;
    }
    unique
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn names_are_what_vendors_accept() {
        let mut taken = HashSet::new();
        let mut name = |tool: &str| offered_name("srv", tool, &mut taken);
        assert_eq!(name("read_file"), "read_file");
        assert_eq!(name("files.read/all now"), "files_read_all_now");
        assert_eq!(name("files read.all/now"), "files_read_all_now_2");
        assert_eq!((name(""), name("日本")), ("tool".to_owned(), "__".to_owned()));
        let (long, longer) = (name(&"x".repeat(70)), name(&"x".repeat(71)));
        assert!(long.len() == 59 && longer.len() == 59 && long != longer, "{long} {longer}");
        let far = offered_name(&"s".repeat(64), &"y".repeat(40), &mut taken);
        assert_eq!(far.len(), LEAST_NAME);
    }

    #[test]
    fn schemas_are_objects_of_bounded_size() {
        let read = |value: Value| parameters(value.as_object().unwrap());
        assert_eq!(read(json!({})), Some(json!({"type": "object", "properties": {}})));
        let own = json!({"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]});
        assert_eq!(read(own.clone()), Some(own));
        assert_eq!(read(json!({"type": "object", "description": "x".repeat(MOST_SCHEMA)})), None);
    }
}
