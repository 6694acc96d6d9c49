//! `providers` and what is below it: how a provider is reached, and what is special about its
//! models.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Map, Value};

use super::Secret;

/// One entry of `providers`.
#[derive(Debug, Clone, PartialEq)]
pub struct ProviderConfig {
    /// The wire dialect: `openai-chat`, `openai-responses`, `anthropic`, …; `None` when absent.
    pub api: Option<String>,
    pub url: Option<String>,
    pub key: Option<Secret>,
    /// Where in a netrc file the key is: `[login@]machine[:port]`.
    pub key_rc: Option<String>,
    /// How to log in with a client of the user's own; nothing of it by default.
    pub oauth: OAuthConfig,
    /// Old ways to name the variables that hold key and url.
    pub key_env: Option<String>,
    pub url_env: Option<String>,
    pub completion_url_relative_path: Option<String>,
    pub think_tag_start: Option<String>,
    pub think_tag_end: Option<String>,
    /// The newest version of HTTP that is spoken with it.
    pub http_version: HttpVersion,
    pub extra_headers: BTreeMap<String, String>,
    /// Whether the provider's own list of models is asked for; only an explicit `false` says no.
    pub fetch_models: bool,
    /// How long a provider is asked to keep what it cached of a prompt, where it can be asked.
    pub cache_retention: CacheRetention,
    pub retry: RetryConfig,
    pub models: BTreeMap<String, ModelConfig>,
}

/// The two lengths of life that vendors offer; the long one costs more to write.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum CacheRetention {
    #[default]
    Short,
    Long,
}

/// What `httpClient.version` can be.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum HttpVersion {
    /// What client and server agree on.
    #[default]
    Any,
    /// For servers and proxies that are confused by anything newer.
    Http1,
}

/// A client that the user has registered at an authorization server. Nothing here has a default:
/// this program has no identity of its own to log in with, and borrows nobody's.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OAuthConfig {
    pub client_id: Option<String>,
    pub client_secret: Option<Secret>,
    /// The page on which the user says yes.
    pub authorization_url: Option<String>,
    /// Where codes and old tokens become new tokens.
    pub token_url: Option<String>,
    /// Where a code is given out that the user types in on another device.
    pub device_authorization_url: Option<String>,
    pub scopes: Vec<String>,
    /// Where the browser comes back to, as it is registered; a free port of this machine otherwise.
    pub redirect_uri: Option<String>,
    /// What the authorization server wants to be asked besides.
    pub authorization_params: BTreeMap<String, String>,
}

/// How often and how long a failed call is tried again.
#[derive(Debug, Clone, PartialEq)]
pub struct RetryConfig {
    pub max_retries: u32,
    pub base_delay: Duration,
    pub backoff_multiplier: f64,
    pub max_delay: Duration,
    /// How often an answer that broke off is continued before the turn is given up.
    pub max_auto_continues: u32,
    /// How often an answer that stopped before it began is asked for again.
    pub premature_stop_max_retries: u32,
    /// A provider that wants to be left alone for longer is given up.
    pub rate_limit_max_wait: Duration,
    /// What else is worth another try.
    pub rules: Vec<RetryRule>,
}

/// One entry of `retryRules`: an error that has this status and matches this pattern.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RetryRule {
    pub status: Option<u16>,
    /// A regular expression that is looked for in the error's text, whatever the case of letters.
    pub error_pattern: Option<String>,
    /// What the user reads while waiting.
    pub label: Option<String>,
}

/// Which of a model's earlier thoughts are sent back to it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ReasoningHistory {
    #[default]
    All,
    /// Those since the user last said something.
    Turn,
    Off,
}

/// One entry of a provider's `models`.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ModelConfig {
    /// The name to send when it differs from the key.
    pub model_name: Option<String>,
    /// Merged into the request body; `null` removes a key.
    pub extra_payload: Map<String, Value>,
    pub extra_headers: BTreeMap<String, String>,
    pub context_limit: Option<u64>,
    pub output_limit: Option<u64>,
    pub cost: Option<crate::llm::Cost>,
    pub image_input: Option<bool>,
    pub reasoning_history: ReasoningHistory,
    /// What each variant adds to the request body; an empty object takes a built-in one away.
    pub variants: BTreeMap<String, Map<String, Value>>,
}

impl Default for ProviderConfig {
    fn default() -> Self {
        Self {
            api: None,
            url: None,
            key: None,
            key_rc: None,
            oauth: OAuthConfig::default(),
            key_env: None,
            url_env: None,
            completion_url_relative_path: None,
            think_tag_start: None,
            think_tag_end: None,
            http_version: HttpVersion::Any,
            extra_headers: BTreeMap::new(),
            fetch_models: true,
            cache_retention: CacheRetention::Short,
            retry: RetryConfig::default(),
            models: BTreeMap::new(),
        }
    }
}

impl Default for RetryConfig {
    fn default() -> Self {
        Self {
            max_retries: 10,
            base_delay: Duration::from_secs(2),
            backoff_multiplier: 2.0,
            max_delay: Duration::from_secs(60),
            max_auto_continues: 3,
            premature_stop_max_retries: 3,
            rate_limit_max_wait: Duration::from_secs(60),
            rules: Vec::new(),
        }
    }
}
