//! How a client manages MCP servers. Their state comes back through `tool/serverUpdated`, see [`crate::tools`].

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::common::ResultError;
use crate::tolerant::{null_as_default, optional_list};
use crate::tools::ToolServerUpdatedParams;

/// Which server; all that most methods of this area need.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct McpServerName {
    pub name: String,
}

/// New settings for a server. What is absent stays as it is.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct McpUpdateServerParams {
    pub name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "optional_list")]
    pub args: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub env: Option<BTreeMap<String, String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub headers: Option<BTreeMap<String, String>>,
}

/// A new server: a `command` to run or a `url` to reach.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct McpAddServerParams {
    pub name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "optional_list")]
    pub args: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub env: Option<BTreeMap<String, String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub headers: Option<BTreeMap<String, String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_secret: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub oauth_port: Option<u16>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub auth_scope: Option<String>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not", deserialize_with = "null_as_default")]
    pub disabled: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scope: Option<McpScope>,
    /// Which workspace's config is meant when `scope` is the workspace.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workspace_uri: Option<String>,
}

open_words! {
    /// Which config file a new server is written to.
    pub enum McpScope {
        Global = "global",
        Workspace = "workspace",
    }
}

/// The server as added, or why it was not.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct McpAddServerResult {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server: Option<ToolServerUpdatedParams>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<ResultError>,
}

/// What was removed, or why nothing was.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct McpRemoveServerResult {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub removed: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<ResultError>,
}
