//! The rules of one agent, ready to be held against calls: each pattern is compiled once.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::OnceLock;

use fancy_regex::Regex;
use serde_json::Value;

use super::shell::{Parsed, Unit};
use crate::base::text::one_line;
use crate::config::{ApprovalRule, ManualApproval, Ruling, ToolCallConfig, whole_match};
use crate::tool::{Arguments, ToolOrigin, ToolSpec};

/// The argument under whose name a command line is matched, whatever the tool calls it.
const COMMAND: &str = "command";
/// How much of a text is shown to the user.
const SHOWN: usize = 80;

/// What may run, for one agent.
#[derive(Debug, Clone)]
pub struct Rules {
    deny: Vec<Rule>,
    ask: Vec<Rule>,
    allow: Vec<Rule>,
    manual: Option<ManualApproval>,
    by_default: Option<Ruling>,
    /// Whether command lines are for a shell that can be read here.
    pub(super) reads_shell: bool,
}

#[derive(Debug, Clone)]
struct Rule {
    selector: String,
    /// By argument; without any, the rule is for every call.
    matchers: Vec<(String, Vec<Pattern>)>,
    is_for_all: bool,
}

#[derive(Debug, Clone)]
struct Pattern {
    source: String,
    dot_is_any: bool,
    /// Made when it is first needed, because that costs more than all the rest; `None` for one that
    /// cannot be read.
    regex: OnceLock<Option<Regex>>,
    /// Whether it was written for quotes as they stand in the text, and without any "not".
    is_about_quotes: bool,
}

/// A call, as rules see it.
pub(super) struct Subject<'a> {
    pub(super) spec: &'a ToolSpec,
    pub(super) arguments: &'a Arguments,
    pub(super) shell: Option<(&'a str, &'a Parsed)>,
}

/// Why a rule that forbids or asks applies.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Hit {
    Matches(String),
    /// It has a pattern that cannot be read, so nobody knows.
    Unreadable(String),
}

impl Rules {
    pub fn new(settings: &ToolCallConfig) -> Self {
        let approval = &settings.approval;
        Self {
            deny: compile(&approval.deny, true),
            ask: compile(&approval.ask, true),
            allow: compile(&approval.allow, false),
            manual: approval.manual.clone(),
            by_default: approval.by_default,
            reads_shell: is_readable(settings.shell.path.as_deref()),
        }
    }

    /// Whether a rule forbids the tool whatever its arguments are, so that it is not offered.
    pub fn hides(&self, spec: &ToolSpec) -> bool {
        self.deny.iter().any(|rule| rule.is_for_all && selects(&rule.selector, spec))
    }

    pub(super) fn denies(&self, subject: &Subject<'_>) -> Option<Hit> {
        first_hit(&self.deny, subject, "deny")
    }

    pub(super) fn asks(&self, subject: &Subject<'_>) -> Option<Hit> {
        first_hit(&self.ask, subject, "ask")
    }

    /// Whether a rule forbids or asks because of what a command line says.
    pub(super) fn looks_at_commands(&self, spec: &ToolSpec) -> bool {
        let looks = |rule: &&Rule| rule.matchers.iter().any(|(argument, _)| argument == COMMAND);
        self.deny.iter().chain(&self.ask).filter(looks).any(|rule| selects(&rule.selector, spec))
    }

    /// The rule by which the call may run.
    pub(super) fn allows(&self, subject: &Subject<'_>) -> Option<String> {
        let rules: Vec<&Rule> = self.allow.iter().filter(|rule| selects(&rule.selector, subject.spec)).collect();
        let by = |rule: &Rule| format!("the allow rule for {}", rule.selector);
        if let Some(rule) = rules.iter().find(|rule| rule.is_for_all || rule.allows_argument(subject)) {
            return Some(by(rule));
        }
        let (_, parsed) = subject.shell?;
        let patterns: Vec<&Pattern> = rules
            .iter()
            .flat_map(|rule| &rule.matchers)
            .filter(|(argument, _)| argument == COMMAND)
            .flat_map(|(_, patterns)| patterns)
            .collect();
        let first = rules.first().filter(|_| allows_each(&patterns, parsed))?;
        Some(format!("{}, for each command in it", by(first)))
    }

    pub(super) fn manual(&self, spec: &ToolSpec) -> bool {
        match &self.manual {
            Some(ManualApproval::All(all)) => *all,
            Some(ManualApproval::Tools(tools)) => tools.iter().any(|tool| selects(tool, spec)),
            None => false,
        }
    }

    pub(super) fn by_default(&self) -> Option<Ruling> {
        self.by_default
    }
}

impl Rule {
    /// Whether an argument that is no command line is allowed by itself.
    fn allows_argument(&self, subject: &Subject<'_>) -> bool {
        self.matchers.iter().any(|(argument, patterns)| {
            let is_command_line = argument == COMMAND && subject.shell.is_some();
            let text = text_of(subject.arguments, argument).filter(|_| !is_command_line);
            text.is_some_and(|text| patterns.iter().any(|pattern| pattern.surely_matches(&text)))
        })
    }

    fn hit(&self, subject: &Subject<'_>, kind: &str) -> Option<Hit> {
        let name = format!("the {kind} rule for {}", self.selector);
        if self.is_for_all {
            return Some(Hit::Matches(name));
        }
        let mut unreadable = None;
        for (argument, patterns) in &self.matchers {
            if patterns.iter().any(|pattern| pattern.regex().is_none()) {
                unreadable = Some(Hit::Unreadable(format!("{name}, which has a pattern that cannot be read")));
            }
            let shell = subject.shell.filter(|_| argument == COMMAND);
            let command_texts =
                shell.into_iter().flat_map(|(text, parsed)| [text.to_owned()].into_iter().chain(parsed.texts()));
            let mut texts = text_of(subject.arguments, argument).map(Cow::into_owned).into_iter().chain(command_texts);
            if let Some(text) = texts.find(|text| patterns.iter().any(|pattern| pattern.may_match(text))) {
                return Some(Hit::Matches(format!("{name} ({})", one_line(&text, SHOWN))));
            }
        }
        unreadable
    }
}

impl Pattern {
    fn new(source: &str, dot_is_any: bool) -> Self {
        let says_not = ["(?!", "(?<!", "[^"].iter().any(|not| source.contains(not));
        Self {
            source: source.to_owned(),
            dot_is_any,
            regex: OnceLock::new(),
            is_about_quotes: source.contains(['"', '\'']) && !says_not,
        }
    }

    fn regex(&self) -> Option<&Regex> {
        self.regex.get_or_init(|| whole_match(&self.source, self.dot_is_any).ok()).as_ref()
    }

    /// Also when the search was given up.
    fn may_match(&self, text: &str) -> bool {
        self.regex().is_some_and(|regex| !matches!(regex.is_match(text), Ok(false)))
    }

    fn surely_matches(&self, text: &str) -> bool {
        self.regex().is_some_and(|regex| matches!(regex.is_match(text), Ok(true)))
    }

    /// A pattern must fit a command both as it is written and as the program gets it: quotes could
    /// hide from the one what the other shows.
    fn allows(&self, unit: &Unit) -> bool {
        let written = unit.text.replace("\\\n", " ").replace(['\n', '\r'], " ");
        let flat = unit.flat.replace(['\n', '\r'], " ");
        if self.is_about_quotes && self.surely_matches(&written) {
            return true;
        }
        let is_bare = written.split_whitespace().eq(flat.split_whitespace());
        self.surely_matches(&flat) && (is_bare || self.surely_matches(&written))
    }
}

/// Whether every command and every file that is written is allowed by one of the patterns.
fn allows_each(patterns: &[&Pattern], parsed: &Parsed) -> bool {
    let mut units = parsed.units.iter().filter(|unit| !unit.is_transparent).peekable();
    parsed.doubt.is_none()
        && units.peek().is_some()
        && units.all(|unit| patterns.iter().any(|pattern| pattern.allows(unit)))
        && parsed.write_texts().all(|text| patterns.iter().any(|pattern| pattern.surely_matches(&text)))
}

fn first_hit(rules: &[Rule], subject: &Subject<'_>, kind: &str) -> Option<Hit> {
    let mut unreadable = None;
    for rule in rules.iter().filter(|rule| selects(&rule.selector, subject.spec)) {
        match rule.hit(subject, kind) {
            Some(Hit::Matches(why)) => return Some(Hit::Matches(why)),
            Some(hit) => unreadable = Some(hit),
            None => {}
        }
    }
    unreadable
}

fn compile(rules: &BTreeMap<String, ApprovalRule>, dot_is_any: bool) -> Vec<Rule> {
    let patterns = |sources: &Vec<String>| sources.iter().map(|source| Pattern::new(source, dot_is_any)).collect();
    let rule = |(selector, rule): (&String, &ApprovalRule)| Rule {
        selector: selector.clone(),
        matchers: rule.args_matchers.iter().map(|(name, sources)| (name.clone(), patterns(sources))).collect(),
        is_for_all: rule.args_matchers.is_empty(),
    };
    rules.iter().map(rule).collect()
}

/// Whether `selector` names this tool: `server__tool`, the short name of a native one, or a server.
fn selects(selector: &str, spec: &ToolSpec) -> bool {
    let is_short = spec.origin == ToolOrigin::Native && selector == spec.name;
    is_short || selector == spec.server || selector == spec.full_name()
}

/// An argument as patterns see it.
fn text_of<'a>(arguments: &'a Arguments, name: &str) -> Option<Cow<'a, str>> {
    match arguments.get(name)? {
        Value::Null => None,
        Value::String(text) => Some(Cow::Borrowed(text)),
        other => Some(Cow::Owned(other.to_string())),
    }
}

/// Whether the shell that runs command lines reads them like bash.
fn is_readable(path: Option<&str>) -> bool {
    let Some(path) = path else { return !cfg!(windows) };
    let name = Path::new(path).file_stem().map(|name| name.to_string_lossy().to_lowercase()).unwrap_or_default();
    matches!(name.as_str(), "bash" | "sh" | "dash" | "ash" | "ksh" | "mksh" | "zsh")
}

/// Whether an entry of `disabledTools` takes this tool away: a pattern for the whole of a native
/// tool's name or of `server__tool`, or a server's name.
pub fn is_disabled(spec: &ToolSpec, disabled: &[String]) -> bool {
    let full = spec.full_name();
    let short = (spec.origin == ToolOrigin::Native).then_some(spec.name.as_str());
    disabled.iter().any(|entry| {
        if *entry == full || *entry == spec.server || Some(entry.as_str()) == short {
            return true;
        }
        let is_pattern = entry.contains(|c: char| !c.is_alphanumeric() && !matches!(c, '_' | '-'));
        let regex = is_pattern.then(|| whole_match(entry, false).ok()).flatten();
        let fits = |name: &str| regex.as_ref().is_some_and(|regex| matches!(regex.is_match(name), Ok(true)));
        fits(&full) || short.is_some_and(fits)
    })
}
