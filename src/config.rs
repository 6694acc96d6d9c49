//! What the user wants: the public server's configuration format, typed.
//!
//! [`load`] reads the files; everything else only sees a [`Config`]. Keys that nobody knows and
//! keys with a wrong value are reported, and the rest counts. What a workspace's own file may say
//! before the user trusts it is decided in [`trust`].

pub mod commands;
pub mod edit;
pub mod imported_keys;
pub mod keys;
pub mod load;
pub mod schema;
pub mod show;
pub mod texts;
pub mod trust;
pub mod watch;

pub(crate) mod files;

mod acp_draft;
mod agents;
mod assist;
mod copilot;
mod customization;
mod decode;
mod document;
mod gather;
mod index;
mod interpolate;
mod legacy;
mod mcp;
mod netrc;
mod network;
mod provider;
mod tool_call;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::{Map, Value};

pub use acp_draft::AcpDraftConfig;
pub use assist::AssistConfig;
pub use copilot::CopilotConfig;
pub use customization::{
    CustomizationConfig, HookAction, HookConfig, HookMatcher, HookProgram, HookType, PromptsConfig,
};
pub use index::{IndexConfig, RepoMapConfig};
pub use mcp::{AuthScope, McpConfig, McpServerConfig, ShownServer};
pub use provider::{
    CacheRetention, HttpVersion, ModelConfig, OAuthConfig, ProviderConfig, ReasoningHistory, RetryConfig, RetryRule,
};
pub use tool_call::{
    AfterRejection, ApprovalConfig, ApprovalOverride, ApprovalRule, CustomToolConfig, ManualApproval, RememberFor,
    Ruling, Sandbox, ShellConfig, ToolCallConfig, UNREADABLE_PATTERN, whole_match,
};

/// The merged configuration.
#[derive(Debug, Clone, PartialEq)]
pub struct Config {
    pub providers: BTreeMap<String, ProviderConfig>,
    pub default_model: Option<String>,
    pub default_agent: String,
    pub welcome_message: Option<String>,
    pub chat: ChatConfig,
    /// What the configuration says about agents, by their names; [`Config::agent_of`] is what counts.
    pub agents: BTreeMap<String, AgentConfig>,
    /// Variants for all models whose name matches the pattern that is the key.
    pub variants_by_model: BTreeMap<String, VariantRule>,
    /// Whether Ollama and LM Studio are looked for on their default ports.
    pub local_discovery: bool,
    /// Whether the public catalogue of models is fetched and kept.
    pub models_dev: bool,
    /// A stream that is silent for so long is given up.
    pub stream_idle_timeout: Duration,
    pub connect_timeout: Duration,
    pub network: NetworkConfig,
    /// How tools behave; agents may have their own in [`AgentConfig::approval`].
    pub tool_call: ToolCallConfig,
    /// Tools that are not offered: names or patterns.
    pub disabled_tools: Vec<String>,
    pub custom_tools: BTreeMap<String, CustomToolConfig>,
    /// How long the editor's language servers may take to answer.
    pub lsp_timeout: Duration,
    /// Where rules, skills and commands are looked for besides the usual places.
    pub customization: CustomizationConfig,
    /// By name, which is also the order they run in.
    pub hooks: BTreeMap<String, HookConfig>,
    pub prompts: PromptsConfig,
    /// A chat that fills so much of its model's context is summed up.
    pub auto_compact_percentage: u32,
    /// Chats that nobody used for so many days are let go; `None` keeps them.
    pub chat_retention_days: Option<u32>,
    /// What of a workspace is found and listed.
    pub index: IndexConfig,
    pub mcp: McpConfig,
    pub copilot: CopilotConfig,
    pub acp_draft: AcpDraftConfig,
    pub assist: AssistConfig,
}

/// Whom to believe and how to be believed, beyond what the system has. The paths are absolute.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NetworkConfig {
    pub ca_cert_file: Option<PathBuf>,
    pub client_cert: Option<PathBuf>,
    pub client_key: Option<PathBuf>,
    /// Read so that it can be said that encrypted keys do not work.
    pub client_key_passphrase: Option<Secret>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct ChatConfig {
    /// Whether a chat gets a title made by the model.
    pub title: bool,
    /// How many model calls one turn may make before it is ended.
    pub max_steps: u32,
    /// Whether new chats run tools without asking.
    pub default_trust: bool,
    /// Whether a chat takes up changes of its system prompt by itself.
    pub auto_sync_system_prompt: bool,
}

/// One entry of `agent`.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct AgentConfig {
    /// A full id, or a bare name that is looked up in the chat's provider first.
    pub default_model: Option<String>,
    pub variant: Option<String>,
    /// `mode`: whether users can select it; absent means both.
    pub primary: Option<bool>,
    pub subagent: Option<bool>,
    pub description: Option<String>,
    pub system_prompt: Option<String>,
    pub max_steps: Option<u32>,
    /// In addition to the general ones: see [`Config::disabled_tools_of`].
    pub disabled_tools: Option<Vec<String>>,
    /// The agent's own `toolCall.approval`, laid over the general one: see [`Config::tool_call_of`].
    pub approval: ApprovalOverride,
    pub auto_compact_percentage: Option<u32>,
    /// The agent that says what this one does not.
    pub inherit: Option<String>,
    /// The agents that may start it; all when absent.
    pub spawnable_by: Option<Vec<String>>,
    /// What counts before the general `prompts`: see [`Config::prompts_of`].
    pub prompts: PromptsConfig,
}

/// One entry of `variantsByModel`.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct VariantRule {
    /// What each variant adds to the request body.
    pub variants: BTreeMap<String, Map<String, Value>>,
    pub exclude_providers: Vec<String>,
    /// The dialects it is for; all when empty.
    pub api: Vec<String>,
}

/// A text that must never reach a log, an error or a client.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The text itself, for the header that carries it.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Secret(****)")
    }
}

/// Something in a configuration source that could not be used; the rest still works.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigProblem {
    /// The file, or the name of another source such as `ECA_CONFIG`.
    pub source: String,
    /// Where in it, 1-based, when known.
    pub line: Option<usize>,
    pub message: String,
}

impl std::fmt::Display for ConfigProblem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.line {
            Some(line) => write!(f, "{}:{line}: {}", self.source, self.message),
            None => write!(f, "{}: {}", self.source, self.message),
        }
    }
}

/// Where things are on this machine, read from the environment once at start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dirs {
    /// `${XDG_CONFIG_HOME:-~/.config}/eca`
    pub config: PathBuf,
    /// `${XDG_DATA_HOME:-~/.local/share}/eca`
    pub data: PathBuf,
    /// `${XDG_CACHE_HOME:-~/.cache}/eca`
    pub cache: PathBuf,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            providers: BTreeMap::new(),
            default_model: None,
            default_agent: "code".to_owned(),
            welcome_message: None,
            chat: ChatConfig { title: true, max_steps: 200, default_trust: false, auto_sync_system_prompt: false },
            agents: BTreeMap::new(),
            variants_by_model: BTreeMap::new(),
            local_discovery: true,
            models_dev: true,
            stream_idle_timeout: Duration::from_secs(120),
            connect_timeout: Duration::from_secs(15),
            network: NetworkConfig::default(),
            tool_call: ToolCallConfig::default(),
            disabled_tools: Vec::new(),
            custom_tools: BTreeMap::new(),
            lsp_timeout: Duration::from_secs(30),
            customization: CustomizationConfig::default(),
            hooks: BTreeMap::new(),
            prompts: PromptsConfig::default(),
            auto_compact_percentage: 75,
            chat_retention_days: None,
            index: IndexConfig::default(),
            mcp: McpConfig::default(),
            copilot: CopilotConfig::default(),
            acp_draft: AcpDraftConfig::default(),
            assist: AssistConfig::default(),
        }
    }
}
