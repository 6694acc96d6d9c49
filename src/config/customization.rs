//! What users add to the assistant, as far as the configuration says it: places of rules, skills
//! and commands, prompts, and hooks.

use std::collections::BTreeMap;
use std::time::Duration;

use super::ApprovalRule;

/// Where rules, skills and commands are looked for besides the usual places. Paths are as they are
/// written: `~` is the home folder, and a relative one is looked for in every workspace folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CustomizationConfig {
    pub rules: Vec<String>,
    pub commands: Vec<String>,
    pub skills: Vec<String>,
    /// Whether `AGENTS.md` of the folders above a workspace folder counts too.
    pub include_parent_agents_files: bool,
    /// Whether `CLAUDE.md` and `.cursor/rules` stand in for a missing `AGENTS.md`.
    pub compat_rules: bool,
    /// Whether nothing of the user's own counts, which test suites of clients ask for.
    pub isolated: bool,
}

impl Default for CustomizationConfig {
    fn default() -> Self {
        Self {
            rules: Vec::new(),
            commands: Vec::new(),
            skills: Vec::new(),
            include_parent_agents_files: false,
            compat_rules: true,
            isolated: false,
        }
    }
}

/// `prompts`: what is said to models instead of the built-in texts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PromptsConfig {
    pub chat: Option<String>,
    pub chat_title: Option<String>,
    pub compact: Option<String>,
    pub init: Option<String>,
    pub skill_create: Option<String>,
    pub completion: Option<String>,
    pub rewrite: Option<String>,
    /// Descriptions of tools, by their full names.
    pub tools: BTreeMap<String, String>,
}

impl PromptsConfig {
    /// These, with `base` saying what they do not.
    pub(super) fn over(self, base: Self) -> Self {
        let mut tools = base.tools;
        tools.extend(self.tools);
        Self {
            chat: self.chat.or(base.chat),
            chat_title: self.chat_title.or(base.chat_title),
            compact: self.compact.or(base.compact),
            init: self.init.or(base.init),
            skill_create: self.skill_create.or(base.skill_create),
            completion: self.completion.or(base.completion),
            rewrite: self.rewrite.or(base.rewrite),
            tools,
        }
    }
}

/// One entry of `hooks`.
#[derive(Debug, Clone, PartialEq)]
pub struct HookConfig {
    pub kind: HookType,
    pub matcher: Option<HookMatcher>,
    /// Never empty.
    pub actions: Vec<HookAction>,
    /// Whether the user sees that it runs.
    pub visible: bool,
    pub description: Option<String>,
    /// For `postToolCall`: whether it also runs after a call that failed.
    pub run_on_error: bool,
}

/// Which calls or compactions a hook is for.
#[derive(Debug, Clone, PartialEq)]
pub enum HookMatcher {
    /// A regular expression for the whole of `server__tool`, or `manual` or `auto`.
    Pattern(String),
    /// By tool; all arguments that a rule names must match.
    Tools(BTreeMap<String, ApprovalRule>),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HookAction {
    pub program: HookProgram,
    pub timeout: Duration,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HookProgram {
    /// A command line for the shell.
    Shell(String),
    /// A script, by its path.
    File(String),
}

/// When a hook runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum HookType {
    SessionStart,
    SessionEnd,
    ChatStart,
    ChatEnd,
    ChatStatusChanged,
    SubagentStart,
    PreRequest,
    PostRequest,
    SubagentPostRequest,
    PreToolCall,
    PostToolCall,
    PreCompact,
    PostCompact,
}

impl HookType {
    pub const ALL: [Self; 13] = [
        Self::SessionStart,
        Self::SessionEnd,
        Self::ChatStart,
        Self::ChatEnd,
        Self::ChatStatusChanged,
        Self::SubagentStart,
        Self::PreRequest,
        Self::PostRequest,
        Self::SubagentPostRequest,
        Self::PreToolCall,
        Self::PostToolCall,
        Self::PreCompact,
        Self::PostCompact,
    ];

    /// As it is written in a configuration and told to hooks.
    pub fn name(self) -> &'static str {
        match self {
            Self::SessionStart => "sessionStart",
            Self::SessionEnd => "sessionEnd",
            Self::ChatStart => "chatStart",
            Self::ChatEnd => "chatEnd",
            Self::ChatStatusChanged => "chatStatusChanged",
            Self::SubagentStart => "subagentStart",
            Self::PreRequest => "preRequest",
            Self::PostRequest => "postRequest",
            Self::SubagentPostRequest => "subagentPostRequest",
            Self::PreToolCall => "preToolCall",
            Self::PostToolCall => "postToolCall",
            Self::PreCompact => "preCompact",
            Self::PostCompact => "postCompact",
        }
    }

    /// Also by the two older names.
    pub fn from_name(name: &str) -> Option<Self> {
        match name {
            "prePrompt" => Some(Self::PreRequest),
            "postPrompt" => Some(Self::PostRequest),
            name => Self::ALL.into_iter().find(|kind| kind.name() == name),
        }
    }
}
