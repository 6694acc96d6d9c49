//! How tools behave and what may run without a question: `toolCall` and its relatives, typed.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

/// `toolCall`.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolCallConfig {
    pub approval: ApprovalConfig,
    /// `readFile.maxLines`
    pub read_file_max_lines: usize,
    pub shell: ShellConfig,
    /// `editorNav.enabled`
    pub editor_nav: bool,
    /// Longer outputs go to a file: `outputTruncation.lines` and `.sizeKb`.
    pub max_output_lines: usize,
    pub max_output_bytes: usize,
    pub after_rejection: AfterRejection,
}

/// `toolCall.approval`. The keys of the maps select tools: `server__tool`, a native name, or a server.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ApprovalConfig {
    pub allow: BTreeMap<String, ApprovalRule>,
    pub ask: BTreeMap<String, ApprovalRule>,
    pub deny: BTreeMap<String, ApprovalRule>,
    pub by_default: Option<Ruling>,
    pub remember_for: RememberFor,
    /// The old `toolCall.manualApproval`.
    pub manual: Option<ManualApproval>,
}

/// What an agent says instead of the general rules; each map replaces the general one whole.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ApprovalOverride {
    pub allow: Option<BTreeMap<String, ApprovalRule>>,
    pub ask: Option<BTreeMap<String, ApprovalRule>>,
    pub deny: Option<BTreeMap<String, ApprovalRule>>,
    pub by_default: Option<Ruling>,
}

/// Matches always without patterns; else when any pattern matches the whole of its argument.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ApprovalRule {
    /// `argsMatchers`: patterns by argument.
    pub args_matchers: BTreeMap<String, Vec<String>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ruling {
    Allow,
    Ask,
    Deny,
}

/// For whom a consent to a tool is remembered.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum RememberFor {
    #[default]
    Chat,
    Server,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ManualApproval {
    All(bool),
    Tools(Vec<String>),
}

/// What follows when a user rejects a call.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum AfterRejection {
    /// The model goes on, knowing of it.
    #[default]
    Continue,
    /// The turn ends and the user is asked what to do instead.
    Ask,
}

/// `toolCall.shellCommand`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShellConfig {
    /// Another shell than bash.
    pub path: Option<String>,
    pub args: Vec<String>,
    pub summary_max_length: usize,
    pub sandbox: Sandbox,
}

/// What programs may touch, where the system can enforce it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Sandbox {
    #[default]
    Off,
    WorkspaceWrite,
    ReadOnly,
}

/// One entry of `customTools`.
#[derive(Debug, Clone, PartialEq)]
pub struct CustomToolConfig {
    pub description: String,
    /// A shell command with `{{name}}` where an argument goes.
    pub command: String,
    /// The JSON schema of the arguments.
    pub schema: Map<String, Value>,
}

impl Default for ToolCallConfig {
    fn default() -> Self {
        Self {
            approval: ApprovalConfig::default(),
            read_file_max_lines: 2_000,
            shell: ShellConfig { path: None, args: Vec::new(), summary_max_length: 35, sandbox: Sandbox::Off },
            editor_nav: true,
            max_output_lines: 2_000,
            max_output_bytes: 50 * 1024,
            after_rejection: AfterRejection::Continue,
        }
    }
}
