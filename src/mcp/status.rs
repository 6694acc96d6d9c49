//! What is known of a server, as plain data for whoever shows or offers it.

use std::sync::Arc;

use serde_json::Value;

use crate::llm::Role;
use crate::tool::Content;

/// Everything about one server.
#[derive(Debug, Clone, PartialEq)]
pub struct ServerStatus {
    pub name: String,
    pub status: Status,
    /// As it is written in the configuration; of a server that is a process.
    pub command: Option<String>,
    pub args: Vec<String>,
    /// Of a server that is reached over HTTP.
    pub url: Option<String>,
    /// What the configuration says.
    pub disabled: bool,
    /// Whether there is a login that could be forgotten.
    pub has_auth: bool,
    pub instructions: Option<String>,
    pub tools: Vec<ToolInfo>,
    pub prompts: Vec<PromptInfo>,
    pub resources: Vec<ResourceInfo>,
    /// Why it is not running, for people.
    pub problem: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    Starting,
    Running,
    Failed,
    Stopping,
    Stopped,
    Disabled,
    RequiresAuth,
}

/// A tool as it is listed.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolInfo {
    /// Without the server's name.
    pub name: String,
    pub description: String,
    /// A JSON schema of type object.
    pub parameters: Arc<Value>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PromptInfo {
    pub server: String,
    pub name: String,
    pub description: Option<String>,
    pub arguments: Vec<PromptArgument>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PromptArgument {
    pub name: String,
    pub description: Option<String>,
    pub required: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResourceInfo {
    pub server: String,
    pub uri: String,
    pub name: String,
    pub description: Option<String>,
    pub mime_type: Option<String>,
}

/// What a prompt says.
#[derive(Debug, Clone, PartialEq)]
pub struct PromptMessage {
    pub role: Role,
    pub content: Vec<Content>,
}

/// News about servers.
#[derive(Debug, Clone, PartialEq)]
pub enum ServerEvent {
    /// A server is in another state or offers something else. Always the whole of it.
    Updated(Box<ServerStatus>),
    Removed {
        name: String,
    },
    /// Something the user should read.
    Notice {
        server: String,
        level: NoticeLevel,
        text: String,
    },
    /// The user must open this address to log in.
    Authorize {
        server: String,
        url: String,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoticeLevel {
    Info,
    Warning,
}

/// Why a server did not do what it was asked for.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum McpError {
    #[error("there is no MCP server {0:?}")]
    Unknown(String),
    #[error("the MCP server {0:?} is not running{1}")]
    NotRunning(String, String),
    #[error("the MCP server {server:?} did not answer within {seconds} s")]
    Timeout { server: String, seconds: u64 },
    #[error("the MCP server {0:?} ended before it answered")]
    Closed(String),
    #[error("the MCP server {server:?} needs a login")]
    NeedsLogin { server: String },
    /// In the server's own words.
    #[error("{0}")]
    Refused(String),
    #[error("{0}")]
    Failed(String),
}

impl PromptInfo {
    /// Gives each argument of the prompt the word at its position; the last one takes what is left.
    /// The error says which ones are missing.
    pub fn arguments_from(&self, words: &[String]) -> Result<Vec<(String, String)>, String> {
        let missing: Vec<&str> = self
            .arguments
            .iter()
            .skip(words.len())
            .filter(|argument| argument.required)
            .map(|argument| argument.name.as_str())
            .collect();
        if !missing.is_empty() {
            return Err(format!("/{}:{} also needs: {}", self.server, self.name, missing.join(", ")));
        }
        let last = self.arguments.len().saturating_sub(1);
        let word = |index: usize| match words.get(index..) {
            Some(rest) if index == last => rest.join(" "),
            Some([word, ..]) => word.clone(),
            _ => String::new(),
        };
        let given = self.arguments.iter().take(words.len()).enumerate();
        Ok(given.map(|(index, argument)| (argument.name.clone(), word(index))).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_become_arguments_by_their_position() {
        let argument = |name: &str, required| PromptArgument { name: name.into(), description: None, required };
        let prompt = |arguments| PromptInfo { server: "s".into(), name: "p".into(), description: None, arguments };
        let words = |text: &str| text.split(' ').filter(|word| !word.is_empty()).map(str::to_owned).collect::<Vec<_>>();
        let two = prompt(vec![argument("a", true), argument("b", false)]);
        let pairs = |list: &[(&str, &str)]| -> Vec<(String, String)> {
            list.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
        };
        assert_eq!(two.arguments_from(&words("1")), Ok(pairs(&[("a", "1")])));
        assert_eq!(two.arguments_from(&words("1 2 3")), Ok(pairs(&[("a", "1"), ("b", "2 3")])));
        assert_eq!(two.arguments_from(&words("")), Err("/s:p also needs: a".to_owned()));
        assert_eq!(prompt(vec![]).arguments_from(&words("1 2")), Ok(vec![]));
    }
}
