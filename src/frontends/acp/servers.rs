//! MCP servers that a client brings along, as entries of the configuration.

use std::collections::BTreeMap;

use agent_client_protocol_schema::v1::McpServer;
use serde_json::Value;

use crate::base::text::one_line;
use crate::config::{McpConfig, McpServerConfig, Secret};

/// More than these are named and left out.
const MOST_SERVERS: usize = 64;
const MOST_NAME: usize = 64;
/// This name belongs to the built-in tools.
const OWN_NAME: &str = "eca";

/// The servers of one session.
#[derive(Debug, Clone, Default)]
pub(super) struct Brought {
    servers: BTreeMap<String, McpServerConfig>,
    /// What could not be used, in sentences.
    pub(super) problems: Vec<String>,
}

impl Brought {
    /// Entries are read one by one: one of a kind that is not known is no reason to have none.
    pub(super) fn read(entries: Vec<Value>) -> Self {
        let mut brought = Self::default();
        for entry in entries {
            let name = entry.get("name").and_then(Value::as_str).map_or_else(String::new, |name| one_line(name, 80));
            if brought.servers.len() >= MOST_SERVERS {
                brought.problems.push(format!("MCP server {name:?} is left out: there are more than {MOST_SERVERS}."));
                continue;
            }
            match serde_json::from_value::<McpServer>(entry) {
                Ok(server) => brought.add(&name, server),
                Err(error) => brought.problems.push(format!("MCP server {name:?} cannot be used: {error}.")),
            }
        }
        brought
    }

    fn add(&mut self, name: &str, server: McpServer) {
        let config = match server {
            McpServer::Stdio(stdio) => McpServerConfig {
                command: Some(stdio.command.to_string_lossy().into_owned()),
                args: stdio.args,
                env: stdio.env.into_iter().map(|variable| (variable.name, Secret::new(variable.value))).collect(),
                ..McpServerConfig::default()
            },
            McpServer::Http(http) => McpServerConfig {
                url: Some(http.url),
                headers: http.headers.into_iter().map(|header| (header.name, Secret::new(header.value))).collect(),
                ..McpServerConfig::default()
            },
            McpServer::Sse(_) => {
                self.problems.push(format!("MCP server {name:?} speaks SSE, which is not supported; use HTTP."));
                return;
            }
            _ => {
                self.problems.push(format!("MCP server {name:?} is of a kind that is not supported."));
                return;
            }
        };
        let name = self.free_name(name);
        self.servers.insert(name, config);
    }

    /// A name that the tools of a server can have before theirs; two servers never share one.
    fn free_name(&self, wished: &str) -> String {
        let is_odd = |letter: char| letter.is_control() || letter.is_whitespace() || letter == ':';
        let plain: String = wished.chars().map(|letter| if is_odd(letter) { '_' } else { letter }).collect();
        let plain: String = plain.chars().take(MOST_NAME - 4).collect();
        let plain = if plain.is_empty() { "server".to_owned() } else { plain };
        let is_free = |name: &String| !name.eq_ignore_ascii_case(OWN_NAME) && !self.servers.contains_key(name);
        let numbered = (2..=MOST_SERVERS + 2).map(|number| format!("{plain}-{number}"));
        std::iter::once(plain.clone()).chain(numbered).find(is_free).unwrap_or(plain)
    }

    /// Lays these over the servers of the configuration.
    pub(super) fn lay_over(&self, config: &mut McpConfig) {
        config.servers.extend(self.servers.clone());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn every_kind_is_read_and_odd_ones_are_named() {
        let brought = Brought::read(vec![
            json!({"name": "files", "command": "/bin/mcp", "args": ["-v"], "env": [{"name": "A", "value": "1"}]}),
            json!({"type": "http", "name": "web", "url": "https://x/mcp", "headers": [{"name": "K", "value": "v"}]}),
            json!({"type": "sse", "name": "old", "url": "https://x/sse", "headers": []}),
            json!({"type": "carrier pigeon", "name": "p"}),
            json!(7),
        ]);
        let files = &brought.servers["files"];
        assert_eq!((files.command.as_deref(), files.args.len()), (Some("/bin/mcp"), 1));
        assert_eq!(files.env["A"].expose(), "1");
        let web = &brought.servers["web"];
        assert_eq!((web.url.as_deref(), web.headers["K"].expose()), (Some("https://x/mcp"), "v"));
        assert_eq!(brought.servers.len(), 2);
        assert_eq!(brought.problems.len(), 3, "{:?}", brought.problems);
        assert!(brought.problems[0].contains("\"old\" speaks SSE"));
    }

    #[test]
    fn names_are_made_usable_and_are_never_the_same() {
        let entry = |name: &str| json!({"name": name, "command": "x", "args": [], "env": []});
        let many = ["a b", "a b", "ECA", "", "x:y"].map(entry).to_vec();
        let names: Vec<String> = Brought::read(many).servers.into_keys().collect();
        assert_eq!(names, ["ECA-2", "a_b", "a_b-2", "server", "x_y"]);
        let brought = Brought::read((0..70).map(|number| entry(&format!("s{number}"))).collect());
        assert_eq!((brought.servers.len(), brought.problems.len()), (64, 6));
    }

    #[test]
    fn the_clients_word_counts_more() {
        let mut config = McpConfig::default();
        config.servers.insert("a".into(), McpServerConfig { command: Some("old".into()), ..Default::default() });
        config.servers.insert("b".into(), McpServerConfig::default());
        Brought::read(vec![json!({"name": "a", "command": "new", "args": [], "env": []})]).lay_over(&mut config);
        assert_eq!(config.servers["a"].command.as_deref(), Some("new"));
        assert_eq!(config.servers.len(), 2);
    }
}
