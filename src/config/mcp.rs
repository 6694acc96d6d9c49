//! `mcpServers` and its relatives: the programs and addresses that offer tools, prompts and
//! resources.

use std::collections::BTreeMap;
use std::time::Duration;

use super::Secret;

/// Everything about MCP.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct McpConfig {
    pub servers: BTreeMap<String, McpServerConfig>,
    /// `mcpTimeoutSeconds`: for a handshake and for a list; a call has twice as long.
    pub timeout: Duration,
    /// `mcpKeepAliveSeconds`: how often a server behind an address is asked whether it is there.
    pub keep_alive: Duration,
}

/// One entry of `mcpServers`.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct McpServerConfig {
    /// A program to run; `url` wins where both are given.
    pub command: Option<String>,
    pub args: Vec<String>,
    /// Added to our own environment.
    pub env: BTreeMap<String, Secret>,
    pub url: Option<String>,
    /// Sent with every request to `url`.
    pub headers: BTreeMap<String, Secret>,
    pub disabled: bool,
    /// A client that is registered with the authorization server already.
    pub client_id: Option<String>,
    pub client_secret: Option<Secret>,
    /// Where the browser comes back to; any free port without it.
    pub oauth_port: Option<u16>,
    /// Under which name we register.
    pub client_name: Option<String>,
    /// Who shares a login: everybody, a workspace, or all servers with the same word.
    pub auth_scope: AuthScope,
    /// What the user wrote, before anything was inserted.
    pub shown: ShownServer,
}

/// Who shares a login.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum AuthScope {
    #[default]
    Global,
    Workspace,
    Named(String),
}

/// How a server is shown: inserted text may be a secret, and a client that edits an entry must give
/// back what was written.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ShownServer {
    pub command: Option<String>,
    pub args: Vec<String>,
    pub url: Option<String>,
}

impl McpServerConfig {
    /// Whether a server that was started by `other` need not be started anew.
    pub fn runs_like(&self, other: &Self) -> bool {
        let bare = |config: &Self| Self { disabled: false, shown: ShownServer::default(), ..config.clone() };
        bare(self) == bare(other)
    }
}

impl Default for McpConfig {
    fn default() -> Self {
        Self { servers: BTreeMap::new(), timeout: Duration::from_secs(60), keep_alive: Duration::from_secs(30) }
    }
}

impl std::fmt::Debug for McpServerConfig {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Secrets may stand in an argument and in an address just as well.
        f.debug_struct("McpServerConfig")
            .field("shown", &self.shown)
            .field("env", &self.env.keys().collect::<Vec<_>>())
            .field("headers", &self.headers.keys().collect::<Vec<_>>())
            .field("disabled", &self.disabled)
            .finish_non_exhaustive()
    }
}
