//! `mcpServers`, entry by entry.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::choices::texts;
use super::{Blank, Decoder, expected, whole_number};
use crate::config::{AuthScope, Config, McpConfig, McpServerConfig, Secret};

/// Enough for any use, and few enough to start all at once.
const MOST_SERVERS: usize = 64;

impl<'a> Decoder<'a> {
    pub(super) fn mcp(&mut self, values: &'a Map<String, Value>, config: &mut Config) {
        let defaults = McpConfig::default();
        let mcp = &mut config.mcp;
        self.seconds(values, "mcpTimeoutSeconds", &mut mcp.timeout, defaults.timeout);
        self.seconds(values, "mcpKeepAliveSeconds", &mut mcp.keep_alive, defaults.keep_alive);
        self.object(values, "mcpServers", |decoder, servers| {
            for (name, value) in servers {
                if value.is_null() {
                    mcp.servers.remove(name);
                } else if let Some(problem) = decoder.bad_name(name, &mcp.servers) {
                    decoder.report(name, problem);
                } else {
                    decoder.exact_object(servers, name, |decoder, entry| {
                        decoder.mcp_server(entry, mcp.servers.entry(name.clone()).or_default());
                    });
                }
            }
        });
    }

    fn bad_name(&self, name: &str, known: &BTreeMap<String, McpServerConfig>) -> Option<&'static str> {
        let is_odd = |c: char| c.is_control() || c.is_whitespace();
        if name.is_empty() || name.chars().count() > 64 || name.contains(is_odd) || name.contains(':') {
            return Some("a server's name has up to 64 characters, without white space and colons; it is ignored");
        }
        // Their tools could not be told apart from the built-in ones.
        if name.eq_ignore_ascii_case("eca") {
            return Some("this name belongs to the built-in tools; the server is ignored");
        }
        let is_full = known.len() >= MOST_SERVERS && !known.contains_key(name);
        is_full.then_some("more than 64 servers; this one is ignored")
    }

    fn mcp_server(&mut self, entry: &'a Map<String, Value>, server: &mut McpServerConfig) {
        self.optional_text(entry, "command", &mut server.command, Blank::IsNone);
        self.value(entry, "args", texts, &mut server.args);
        self.secrets(entry, "env", &mut server.env);
        self.optional_text(entry, "url", &mut server.url, Blank::IsNone);
        self.secrets(entry, "headers", &mut server.headers);
        self.flag(entry, "disabled", &mut server.disabled, false);
        self.optional_text(entry, "clientId", &mut server.client_id, Blank::IsNone);
        self.secret(entry, "clientSecret", &mut server.client_secret);
        self.value(entry, "oauthPort", port, &mut server.oauth_port);
        self.optional_text(entry, "clientName", &mut server.client_name, Blank::IsNone);
        self.value(entry, "authScope", auth_scope, &mut server.auth_scope);
    }

    fn secrets(&mut self, entry: &'a Map<String, Value>, key: &str, target: &mut BTreeMap<String, Secret>) {
        self.object(entry, key, |decoder, entries| {
            for (name, value) in entries {
                match value {
                    Value::String(text) => drop(target.insert(name.clone(), Secret::new(text))),
                    // Variables are text; people write numbers and flags all the same.
                    Value::Number(number) => drop(target.insert(name.clone(), Secret::new(number.to_string()))),
                    Value::Bool(flag) => drop(target.insert(name.clone(), Secret::new(flag.to_string()))),
                    Value::Null => drop(target.remove(name)),
                    other => decoder.report(name, &expected("a string", other)),
                }
            }
        });
    }
}

/// Keeps what was written of each server, for showing it.
pub(in crate::config) fn note_written(config: &mut Config, written: &Map<String, Value>) {
    for (name, entry) in written {
        let (Some(server), Some(entry)) = (config.mcp.servers.get_mut(name), entry.as_object()) else { continue };
        let text = |key: &str| entry.get(key).map(|value| value.as_str().map(|text| text.trim().to_owned()));
        if let Some(command) = text("command") {
            server.shown.command = command.filter(|command| !command.is_empty());
        }
        if let Some(url) = text("url") {
            server.shown.url = url.filter(|url| !url.is_empty());
        }
        if let Some(args) = entry.get("args").filter(|args| !args.is_null()) {
            server.shown.args = texts(Some(args)).unwrap_or_default();
        }
    }
}

fn port(found: Option<&Value>) -> Result<Option<u16>, String> {
    let Some(value) = found else { return Ok(None) };
    let port = whole_number(value).and_then(|number| u16::try_from(number).ok()).filter(|port| *port > 0);
    port.map(Some).ok_or_else(|| expected("a number from 1 to 65535", value))
}

fn auth_scope(found: Option<&Value>) -> Result<AuthScope, String> {
    match found {
        None => Ok(AuthScope::Global),
        Some(Value::String(text)) => Ok(match text.trim() {
            "" | "global" => AuthScope::Global,
            "workspace" => AuthScope::Workspace,
            name => AuthScope::Named(name.to_owned()),
        }),
        Some(other) => Err(expected("a string", other)),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::apply;
    use super::*;
    use crate::config::document::Document;

    fn read(sources: &[Value]) -> (McpConfig, Vec<String>) {
        let mut config = Config::default();
        let mut problems = Vec::new();
        for source in sources {
            let document = Document::from_value("test", source.clone()).expect("an object");
            apply(&mut config, &document, false, &mut problems);
        }
        (config.mcp, problems.into_iter().map(|problem| problem.message).collect())
    }

    #[test]
    fn every_key_of_a_server_is_read() {
        let (mcp, problems) = read(&[json!({
        "mcpTimeoutSeconds": 5, "mcpKeepAliveSeconds": 7.5,
        "mcpServers": {
            "files": {"command": " npx ", "args": ["-y", "x"], "env": {"A": "1", "N": 2, "B": true}},
            "web": {"url": "https://x/mcp", "headers": {"X-Key": "k"}, "disabled": true, "clientId": "id",
                "clientSecret": "s", "oauthPort": 8123, "clientName": "n", "authScope": "workspace"},
            "shared": {"url": "https://y/mcp", "authScope": "team"},
        }})]);
        assert_eq!(problems, Vec::<String>::new());
        assert_eq!((mcp.timeout.as_secs(), mcp.keep_alive.as_millis()), (5, 7500));
        let files = &mcp.servers["files"];
        assert_eq!((files.command.as_deref(), files.args.len(), files.disabled), (Some("npx"), 2, false));
        let env: Vec<_> = files.env.iter().map(|(name, value)| (name.as_str(), value.expose())).collect();
        assert_eq!(env, [("A", "1"), ("B", "true"), ("N", "2")]);
        let web = &mcp.servers["web"];
        assert_eq!(web.headers["X-Key"].expose(), "k");
        assert_eq!((web.oauth_port, web.client_id.as_deref(), web.disabled), (Some(8123), Some("id"), true));
        assert_eq!((&web.auth_scope, web.client_name.as_deref()), (&AuthScope::Workspace, Some("n")));
        assert_eq!(mcp.servers["shared"].auth_scope, AuthScope::Named("team".to_owned()));
        let printed = format!("{mcp:?}");
        assert!(!printed.contains("\"k\"") && !printed.contains("\"s\""), "{printed}");
    }

    #[test]
    fn later_sources_change_parts_and_null_takes_away() {
        let (mcp, problems) = read(&[
            json!({"mcpServers": {"a": {"command": "x", "env": {"K": "1", "L": "2"}}, "b": {"command": "y"}}}),
            json!({"mcpServers": {"a": {"disabled": true, "env": {"K": null}}, "b": null}}),
        ]);
        assert_eq!(problems, Vec::<String>::new());
        assert_eq!(mcp.servers.keys().collect::<Vec<_>>(), ["a"]);
        let a = &mcp.servers["a"];
        assert!(a.disabled && a.command.as_deref() == Some("x"));
        assert_eq!(a.env.keys().collect::<Vec<_>>(), ["L"]);
    }

    #[test]
    fn wrong_values_are_reported_and_the_rest_counts() {
        let (mcp, problems) = read(&[json!({"mcpServers": {
            "a": {"command": 1, "args": [2], "env": {"X": []}, "oauthPort": 0, "disabled": "no", "url": "http://x"},
            "b": 7, "ECA": {"command": "x"}, "two words": {"command": "x"}, "c:d": {"command": "x"}, "": {"command": "x"},
        }})]);
        assert_eq!(problems.len(), 10, "{problems:#?}");
        assert_eq!(mcp.servers.keys().collect::<Vec<_>>(), ["a"]);
        assert_eq!(mcp.servers["a"].url.as_deref(), Some("http://x"));
        let many: Map<String, Value> = (0..70).map(|n| (format!("s{n}"), json!({"command": "x"}))).collect();
        let (mcp, problems) = read(&[json!({"mcpServers": many})]);
        assert_eq!((mcp.servers.len(), problems.len()), (64, 6));
    }

    #[test]
    fn what_was_written_is_shown() {
        let (mcp, _) = read(&[json!({"mcpServers": {"a": {"command": "/bin/x", "args": ["sk-1"]}}})]);
        let mut config = Config { mcp, ..Config::default() };
        let written = json!({"a": {"command": "${env:X}", "args": ["${env:KEY}"]}, "gone": {"url": "u"}});
        note_written(&mut config, written.as_object().unwrap());
        let shown = &config.mcp.servers["a"].shown;
        assert_eq!(
            (shown.command.as_deref(), shown.args.as_slice()),
            (Some("${env:X}"), &["${env:KEY}".to_owned()][..])
        );
    }
}
