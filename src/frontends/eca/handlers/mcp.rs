//! How a client manages MCP servers: what lasts goes into a configuration file, and from there to the
//! servers, like every other change of it.

use std::path::PathBuf;
use std::time::Duration;

use custom_methods::common::{Empty, ResultError};
use custom_methods::general::MessageType;
use custom_methods::mcp::{
    McpAddServerParams, McpAddServerResult, McpRemoveServerResult, McpScope, McpServerName, McpUpdateServerParams,
};
use custom_methods::methods::{
    McpAddServer, McpConnectServer, McpDisableServer, McpEnableServer, McpLogoutServer, McpRemoveServer,
    McpStartServer, McpStopServer, McpUpdateServer,
};
use serde_json::{Map, Value, json};
use tower_lsp::jsonrpc::Result;

use super::super::servers::{switched_off, updated};
use super::super::service::{Answer, EcaServer, Take, failed};
use super::super::sink::show_message;
use crate::base::task;
use crate::config::edit::{self, ConfigFile, EditError, ServerChange};
use crate::config::load;
use crate::mcp::{McpError, Servers};
use crate::workspace::path_from_uri;

/// How long a change of a file takes to reach the servers.
const TAKE_UP_PATIENCE: Duration = Duration::from_secs(5);
const LOOK_AGAIN: Duration = Duration::from_millis(10);
const INVALID: &str = "invalid_request";

/// Which file a change goes to.
enum Place {
    /// The one in which the server stands, those of the workspace first; else the user's own.
    Defining,
    /// The same, but only if it stands in one.
    DefiningOnly,
    Own,
    /// Of the workspace folder with this path, or of the first one.
    Workspace(Option<PathBuf>),
}

impl Take<McpStartServer> for EcaServer {
    fn take(&self, params: McpServerName) {
        self.order(|servers| servers.start(&params.name));
    }
}

impl Take<McpStopServer> for EcaServer {
    fn take(&self, params: McpServerName) {
        self.order(|servers| servers.stop(&params.name));
    }
}

impl Take<McpConnectServer> for EcaServer {
    fn take(&self, params: McpServerName) {
        self.order(|servers| servers.connect(&params.name));
    }
}

impl Take<McpLogoutServer> for EcaServer {
    fn take(&self, params: McpServerName) {
        self.order(|servers| servers.logout(&params.name));
    }
}

impl Take<McpDisableServer> for EcaServer {
    fn take(&self, params: McpServerName) {
        self.switch(params.name, true);
    }
}

impl Take<McpEnableServer> for EcaServer {
    fn take(&self, params: McpServerName) {
        self.switch(params.name, false);
    }
}

impl Answer<McpUpdateServer> for EcaServer {
    async fn answer(&self, params: McpUpdateServerParams) -> Result<Empty> {
        let servers = &self.started()?.servers;
        if servers.status(&params.name).is_none() {
            return Err(failed(McpError::Unknown(params.name).to_string()));
        }
        let name = params.name.clone();
        let change = ServerChange::Set(updated_keys(params));
        self.change(name, change, Place::Defining).await.map(|_| Empty).map_err(|error| failed(error.to_string()))
    }
}

impl Answer<McpAddServer> for EcaServer {
    async fn answer(&self, params: McpAddServerParams) -> Result<McpAddServerResult> {
        let servers = &self.started()?.servers;
        let refused = |message: String| {
            let error = ResultError { code: INVALID.to_owned(), message, data: None };
            Ok(McpAddServerResult { server: None, error: Some(error) })
        };
        if let Err(reason) = check(&params, servers) {
            return refused(reason);
        }
        let place = match &params.scope {
            None | Some(McpScope::Global) => Place::Own,
            Some(McpScope::Workspace) => match params.workspace_uri.as_deref().map(path_from_uri).transpose() {
                Ok(root) => Place::Workspace(root),
                Err(reason) => return refused(format!("workspaceUri: {reason}")),
            },
            Some(McpScope::Other(word)) => return refused(format!("scope is global or workspace, not {word:?}")),
        };
        let name = params.name.clone();
        let file = match self.change(name.clone(), ServerChange::Set(new_keys(params)), place).await {
            Ok(file) => file,
            Err(error) => return refused(error.to_string()),
        };
        let taken_up = async {
            loop {
                if let Some(status) = servers.status(&name) {
                    return status;
                }
                tokio::time::sleep(LOOK_AGAIN).await;
            }
        };
        match tokio::time::timeout(TAKE_UP_PATIENCE, taken_up).await {
            Ok(status) => Ok(McpAddServerResult {
                server: Some(updated(status, switched_off(&self.session).as_ref())),
                error: None,
            }),
            Err(_) => refused(format!("{name} was written to {}, but is not in use", file.display())),
        }
    }
}

impl Answer<McpRemoveServer> for EcaServer {
    async fn answer(&self, params: McpServerName) -> Result<McpRemoveServerResult> {
        let name = params.name.clone();
        match self.change(name.clone(), ServerChange::Remove, Place::DefiningOnly).await {
            Ok(_) => Ok(McpRemoveServerResult { name: Some(name), removed: Some(true), error: None }),
            Err(error) => {
                let error = ResultError { code: INVALID.to_owned(), message: error.to_string(), data: None };
                Ok(McpRemoveServerResult { name: Some(name), removed: Some(false), error: Some(error) })
            }
        }
    }
}

impl EcaServer {
    fn order(&self, order: impl FnOnce(&Servers) -> std::result::Result<(), McpError>) {
        if let Ok(started) = self.started()
            && let Err(error) = order(&started.servers)
        {
            self.send(show_message(&self.session, MessageType::Warning, error.to_string()));
        }
    }

    /// Switches a server off or on, for good.
    fn switch(&self, name: String, disabled: bool) {
        let Ok(started) = self.started() else { return };
        if started.servers.status(&name).is_none() {
            return self.order(|_| Err(McpError::Unknown(name)));
        }
        let changing = self.changing(
            name,
            ServerChange::Set(Map::from_iter([("disabled".to_owned(), disabled.into())])),
            Place::Defining,
        );
        let (session, client) = (std::sync::Arc::clone(&self.session), self.client().clone());
        task::spawn(async move {
            match changing.await {
                Ok(_) => session.note_config_change(),
                Err(error) => {
                    for frame in show_message(&session, MessageType::Error, format!("MCP server: {error}")) {
                        let _ = client.outbox.push(frame).await;
                    }
                }
            }
        });
    }

    /// Changes a file and has it taken up. Returns the file.
    async fn change(
        &self,
        name: String,
        change: ServerChange,
        place: Place,
    ) -> std::result::Result<PathBuf, EditError> {
        let changed = self.changing(name, change, place).await;
        if changed.is_ok() {
            self.session.note_config_change();
        }
        changed
    }

    fn changing(
        &self,
        name: String,
        change: ServerChange,
        place: Place,
    ) -> impl Future<Output = std::result::Result<PathBuf, EditError>> + Send + 'static {
        let here = self.surroundings().clone();
        let roots: Vec<PathBuf> = match here.config_file {
            // It replaces the files of the workspace too.
            Some(_) => Vec::new(),
            None => self.session.workspace().roots().iter().map(|root| root.path.clone()).collect(),
        };
        let work = move || {
            let home = load::process_home();
            let (trust, files) = (here.trust(), edit::candidates(&roots, here.own_file()));
            let trusted = trust.trusted();
            let counts = |file: &ConfigFile| edit::counts(file, &trusted, home.as_deref());
            let file = find(&files, &name, &place, counts)?;
            let edited = edit::change_server(file, &name, &change, home.as_deref())?;
            // The user wanted this change, so a file that counted before still does.
            if let Some(hash) = &edited.hash
                && let Err(error) = trust.set(&file.path, hash)
            {
                tracing::error!(%error, "the changed file could not be recorded as trusted");
            }
            Ok(file.path.clone())
        };
        async move {
            let stuck = |_| EditError::File { file: "configuration".into(), reason: "it could not be changed".into() };
            task::blocking(work).await.map_err(stuck)?
        }
    }
}

/// The file that a change goes to.
fn find<'a>(
    files: &'a [ConfigFile],
    name: &str,
    place: &Place,
    counts: impl Fn(&ConfigFile) -> bool,
) -> std::result::Result<&'a ConfigFile, EditError> {
    let own = files.iter().find(|file| file.root.is_none());
    let nowhere = || EditError::NotThere(name.to_owned());
    let chosen = match place {
        Place::Own => own,
        Place::Workspace(wanted) => {
            let is_wanted = |file: &&ConfigFile| match (&file.root, wanted) {
                (Some(root), Some(wanted)) => {
                    root == wanted || dunce::canonicalize(wanted).is_ok_and(|wanted| *root == wanted)
                }
                (Some(_), None) => true,
                (None, _) => false,
            };
            let file = files.iter().find(is_wanted).ok_or_else(|| EditError::File {
                file: wanted.as_ref().map_or_else(|| "workspace".to_owned(), |root| root.display().to_string()),
                reason: "this folder is not part of the workspace".to_owned(),
            })?;
            if !counts(file) {
                let reason = "it is not trusted yet; trust it first, with: eca trust".to_owned();
                return Err(EditError::File { file: file.path.display().to_string(), reason });
            }
            Some(file)
        }
        Place::Defining | Place::DefiningOnly => {
            // What stands in a stranger's file is not what runs.
            let defines = |file: &&ConfigFile| counts(file) && matches!(edit::server_in(&file.path, name), Ok(Some(_)));
            let defining = files.iter().find(defines);
            match place {
                Place::DefiningOnly => defining,
                _ => defining.or(own),
            }
        }
    };
    chosen.ok_or_else(nowhere)
}

fn check(params: &McpAddServerParams, servers: &Servers) -> std::result::Result<(), String> {
    let has = |text: &Option<String>| text.as_deref().is_some_and(|text| !text.trim().is_empty());
    let name = params.name.as_str();
    let is_odd = |c: char| c.is_control() || c.is_whitespace() || c == ':';
    if name.is_empty() || name.chars().count() > 64 || name.contains(is_odd) || name.eq_ignore_ascii_case("eca") {
        return Err("the name has up to 64 characters, without white space and colons, and is not ECA".to_owned());
    }
    if servers.status(name).is_some() {
        return Err(format!("there is an MCP server {name:?} already"));
    }
    match (has(&params.command), has(&params.url)) {
        (true, true) => Err("a server has a command or a url, not both".to_owned()),
        (false, false) => Err("a server needs a command or a url".to_owned()),
        _ => Ok(()),
    }
}

fn new_keys(params: McpAddServerParams) -> Map<String, Value> {
    let disabled = params.disabled.then_some(true);
    let all = json!({
        "command": params.command, "args": params.args, "env": params.env, "url": params.url,
        "headers": params.headers, "clientId": params.client_id, "clientSecret": params.client_secret,
        "oauthPort": params.oauth_port, "authScope": params.auth_scope, "disabled": disabled,
    });
    all.as_object().cloned().unwrap_or_default().into_iter().filter(|(_, value)| !value.is_null()).collect()
}

/// What is absent stays; a server that becomes a program is no address any more, and the other way
/// round.
fn updated_keys(params: McpUpdateServerParams) -> Map<String, Value> {
    let (has_command, has_url) = (params.command.is_some(), params.url.is_some());
    let all = json!({
        "command": params.command, "args": params.args, "url": params.url, "env": params.env, "headers": params.headers,
    });
    let mut keys: Map<String, Value> =
        all.as_object().cloned().unwrap_or_default().into_iter().filter(|(_, value)| !value.is_null()).collect();
    let dropped: &[&str] = match (has_command, has_url) {
        (true, false) => &["url"],
        (false, true) => &["command", "args"],
        _ => &[],
    };
    for key in dropped {
        keys.entry(*key).or_insert(Value::Null);
    }
    keys
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_update_changes_what_it_names() {
        let update = |value: Value| Value::Object(updated_keys(serde_json::from_value(value).expect("params")));
        assert_eq!(update(json!({"name": "s", "args": ["a"]})), json!({"args": ["a"]}));
        assert_eq!(
            update(json!({"name": "s", "command": "x", "env": {"A": "1"}})),
            json!({"command": "x", "env": {"A": "1"}, "url": null})
        );
        assert_eq!(update(json!({"name": "s", "url": "u"})), json!({"url": "u", "command": null, "args": null}));
    }

    #[test]
    fn a_new_server_has_only_what_was_given() {
        let params =
            json!({"name": "s", "url": "u", "headers": {"A": "b"}, "clientId": "i", "oauthPort": 1, "disabled": true});
        let keys = Value::Object(new_keys(serde_json::from_value(params).expect("params")));
        assert_eq!(keys, json!({"url": "u", "headers": {"A": "b"}, "clientId": "i", "oauthPort": 1, "disabled": true}));
    }

    #[test]
    fn names_and_kinds_are_checked() {
        let servers = Servers::default();
        let checked = |value: Value| check(&serde_json::from_value(value).expect("params"), &servers);
        assert_eq!(checked(json!({"name": "s", "command": "x"})), Ok(()));
        for bad in [
            json!({"name": "", "command": "x"}),
            json!({"name": "a b", "command": "x"}),
            json!({"name": "ECA", "command": "x"}),
            json!({"name": "s"}),
            json!({"name": "s", "command": " "}),
            json!({"name": "s", "command": "x", "url": "u"}),
        ] {
            assert!(checked(bad.clone()).is_err(), "{bad}");
        }
    }

    #[test]
    fn the_file_that_defines_a_server_is_changed_and_no_strangers_one() {
        let folder = tempfile::tempdir().expect("a folder");
        let root = dunce::canonicalize(folder.path()).expect("a path").join("w");
        std::fs::create_dir_all(root.join(".eca")).expect("a folder");
        let own = root.parent().expect("a folder").join("own.json");
        std::fs::write(root.join(".eca/config.json"), r#"{"mcpServers": {"local": {}, "both": {}}}"#).expect("a file");
        std::fs::write(&own, r#"{"mcpServers": {"global": {}, "both": {}}}"#).expect("a file");
        let files = edit::candidates(std::slice::from_ref(&root), own.clone());
        let found = |name: &str, place: Place, trusted: bool| {
            let counts = |file: &ConfigFile| file.root.is_none() || trusted;
            find(&files, name, &place, counts).map(|file| file.root.is_some()).map_err(|error| error.to_string())
        };
        for (name, trusted, is_local) in [
            ("local", true, true),
            ("both", true, true),
            ("both", false, false),
            ("global", true, false),
            ("from options", true, false),
        ] {
            assert_eq!(found(name, Place::Defining, trusted), Ok(is_local), "{name}");
        }
        assert!(found("local", Place::DefiningOnly, false).is_err());
        assert!(found("from options", Place::DefiningOnly, true).is_err());
        assert_eq!(found("new", Place::Own, true), Ok(false));
        assert_eq!(found("new", Place::Workspace(None), true), Ok(true));
        assert_eq!(found("new", Place::Workspace(Some(root.clone())), true), Ok(true));
        assert!(found("new", Place::Workspace(None), false).expect_err("a stranger's").contains("trust"));
        assert!(found("new", Place::Workspace(Some("/elsewhere".into())), true).is_err());
    }
}
