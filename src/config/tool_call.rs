//! How tools behave and what may run without a question: `toolCall` and its relatives, typed.

use std::collections::BTreeMap;

use fancy_regex::{Regex, RegexBuilder};
use serde_json::{Map, Value};

/// The native tools that run without a question as long as nobody says otherwise, by their full
/// names: a short one would also mean a server that happens to be called so.
const ALLOWED: [&str; 12] = [
    "eca__read_file",
    "eca__directory_tree",
    "eca__grep",
    "eca__editor_diagnostics",
    "eca__editor_definition",
    "eca__editor_references",
    "eca__skill",
    "eca__fetch_rule",
    "eca__compact_chat",
    "eca__task",
    "eca__spawn_agent",
    "eca__ask_user",
];

/// Looking at background jobs is harmless, ending one is not.
const JOBS: &str = "eca__bg_job";
const ALLOWED_JOB_ACTIONS: [&str; 2] = ["list", "read_output"];

/// Stands in a rule for a pattern that could not be read, so that the rule does not become one
/// without patterns. It is no regular expression.
pub const UNREADABLE_PATTERN: &str = "(";

/// A pattern of a user may backtrack so often; the longest honest ones need a hundredth of it.
const MOST_BACKTRACKS: usize = 100_000;
const MAX_COMPILED_BYTES: usize = 1024 * 1024;

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

impl ApprovalRule {
    /// A rule for the calls whose argument `name` matches one of the patterns.
    pub fn matching(name: &str, patterns: &[&str]) -> Self {
        let patterns = patterns.iter().map(|pattern| (*pattern).to_owned()).collect();
        Self { args_matchers: BTreeMap::from([(name.to_owned(), patterns)]) }
    }

    /// Makes it match whatever either of the two matches.
    pub fn widen(&mut self, other: &Self) {
        if self.args_matchers.is_empty() || other.args_matchers.is_empty() {
            self.args_matchers.clear();
            return;
        }
        for (name, patterns) in &other.args_matchers {
            let known = self.args_matchers.entry(name.clone()).or_default();
            known.extend(patterns.iter().filter(|pattern| !known.contains(pattern)).cloned().collect::<Vec<_>>());
        }
    }
}

/// A pattern of the configuration as an expression that matches only a whole text. Look-around is
/// understood, because patterns written for the public server use it.
pub fn whole_match(pattern: &str, dot_is_any: bool) -> Result<Regex, Box<fancy_regex::Error>> {
    // By itself first: a pattern with a parenthesis too many would break out of the brackets.
    fancy_regex::Expr::parse_tree(pattern)?;
    let regex = RegexBuilder::new(&format!("\\A(?:{pattern})\\z"))
        .dot_matches_new_line(dot_is_any)
        .backtrack_limit(MOST_BACKTRACKS)
        .delegate_size_limit(MAX_COMPILED_BYTES)
        .build()?;
    Ok(regex)
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
        let tools = ALLOWED.iter().map(|name| ((*name).to_owned(), ApprovalRule::default()));
        let jobs = (JOBS.to_owned(), ApprovalRule::matching("action", &ALLOWED_JOB_ACTIONS));
        Self {
            approval: ApprovalConfig { allow: tools.chain([jobs]).collect(), ..ApprovalConfig::default() },
            read_file_max_lines: 2_000,
            shell: ShellConfig { path: None, args: Vec::new(), summary_max_length: 35, sandbox: Sandbox::Off },
            editor_nav: true,
            max_output_lines: 2_000,
            max_output_bytes: 50 * 1024,
            after_rejection: AfterRejection::Continue,
        }
    }
}
