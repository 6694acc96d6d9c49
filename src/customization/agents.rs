//! Agents that users write: a Markdown file whose front matter configures the agent and whose text
//! is its system prompt.
//!
//! One that comes with a workspace may speak and be chosen. What it says about consents to tools
//! counts only once it is trusted, and until then it cannot take the name of another agent.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::fields;
use super::read::{Document, Origin, Reader};
use crate::config::trust::WithheldKey;
use crate::config::{AgentConfig, ApprovalOverride, ApprovalRule, Ruling};

const BUILT_IN: [&str; 4] = ["code", "plan", "explorer", "general"];
const SHELL: &str = "eca__shell_command";
const MAX_DESCRIPTION: usize = 1024;
const MAX_TOOLS: usize = 200;

/// One agent.
#[derive(Debug, Clone, PartialEq)]
pub struct MarkdownAgent {
    pub name: String,
    pub config: AgentConfig,
    pub file: PathBuf,
    pub origin: Origin,
}

/// The user's own and those of the workspace; the last of a name counts.
pub(super) fn load(reader: &mut Reader<'_>) -> Vec<MarkdownAgent> {
    let mut agents: BTreeMap<String, MarkdownAgent> = BTreeMap::new();
    if reader.sources.isolated {
        return Vec::new();
    }
    let mut places = vec![reader.sources.config_dir.join("agents")];
    places.extend(reader.roots.iter().map(|root| root.join(".eca").join("agents")));
    let is_markdown = |file: &Path| file.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("md"));
    for place in places {
        for file in reader.walk(&place, None, is_markdown) {
            let Some(document) = reader.document(&file) else { continue };
            let mut notes = Vec::new();
            let mut agent = agent(&document, &mut notes);
            for note in notes {
                reader.report(&file, None, note);
            }
            if !document.trusted {
                let keys = withhold(&mut agent, |name| BUILT_IN.contains(&name) || agents.contains_key(name));
                let takes_a_name = keys.contains(&WithheldKey::name());
                if !keys.is_empty() {
                    reader.withhold(&file, &document.hash, keys);
                }
                if takes_a_name {
                    continue;
                }
            }
            agents.insert(agent.name.clone(), agent);
        }
    }
    agents.into_values().collect()
}

/// The agents of a configuration together with those of files: the configuration wins, whole agent
/// by whole agent.
pub fn merge(defined: &BTreeMap<String, AgentConfig>, files: &[MarkdownAgent]) -> BTreeMap<String, AgentConfig> {
    let mut merged = defined.clone();
    for agent in files {
        merged.entry(agent.name.clone()).or_insert_with(|| agent.config.clone());
    }
    merged
}

/// Takes out what a stranger's agent may not say. All of its rules go, also those that forbid: they
/// would stand in the place of the user's own.
fn withhold(agent: &mut MarkdownAgent, is_taken: impl Fn(&str) -> bool) -> Vec<WithheldKey> {
    let mut keys = Vec::new();
    if agent.config.approval != ApprovalOverride::default() {
        agent.config.approval = ApprovalOverride::default();
        keys.push(WithheldKey::tools());
    }
    // Another agent's consents must not come in by the back door.
    if agent.config.inherit.take().is_some() && keys.is_empty() {
        keys.push(WithheldKey::tools());
    }
    if is_taken(&agent.name) {
        keys.push(WithheldKey::name());
    }
    keys
}

/// What the file says; fields that cannot be used are noted and left out.
fn agent(document: &Document, notes: &mut Vec<String>) -> MarkdownAgent {
    let values = &document.split.values;
    let mut note = |why: String| notes.push(format!("{why}; it is ignored"));
    let file_name = document.path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let stem = file_name.split('.').next().unwrap_or_default().to_lowercase();
    let named = fields::line(values, "name", 100).unwrap_or_else(|why| {
        note(why);
        None
    });
    let mut config = AgentConfig::default();
    let mut line = |key: &str, max: usize| {
        fields::line(values, key, max).unwrap_or_else(|why| {
            note(why);
            None
        })
    };
    config.description = line("description", MAX_DESCRIPTION);
    config.default_model = line("model", 200).or_else(|| line("defaultModel", 200));
    config.variant = line("variant", 100);
    config.inherit = line("inherit", 100);
    for key in ["maxSteps", "steps"] {
        match fields::whole_number(values, key) {
            Ok(steps) => config.max_steps = config.max_steps.or(steps),
            Err(why) => note(why),
        }
    }
    for (key, target) in [("disabledTools", &mut config.disabled_tools), ("spawnableBy", &mut config.spawnable_by)] {
        match fields::texts(values, key) {
            Ok(texts) => *target = (!texts.is_empty()).then_some(texts),
            Err(why) => note(why),
        }
    }
    match fields::texts(values, "mode") {
        Ok(modes) => (config.primary, config.subagent) = mode(&modes, &mut note),
        Err(why) => note(why),
    }
    config.approval = values.get("tools").map(|tools| approval(tools, &mut note)).unwrap_or_default();
    let prompt = &document.split.body;
    config.system_prompt = (!prompt.is_empty()).then(|| prompt.clone());
    MarkdownAgent { name: named.unwrap_or(stem), config, file: document.path.clone(), origin: document.origin }
}

/// Whether it can be selected and whether it can be started by another; both when nothing is said.
fn mode(modes: &[String], note: &mut impl FnMut(String)) -> (Option<bool>, Option<bool>) {
    let strange = modes.iter().find(|mode| !["primary", "subagent"].contains(&mode.as_str()));
    if let Some(strange) = strange {
        note(format!("`mode` is primary, subagent or both, not {strange:?}"));
        return (None, None);
    }
    let says = |word: &str| (!modes.is_empty()).then(|| modes.iter().any(|mode| mode == word));
    (says("primary"), says("subagent"))
}

/// `tools`: lists by what is to be done, or one list of what is allowed.
fn approval(tools: &Value, note: &mut impl FnMut(String)) -> ApprovalOverride {
    let map = match tools {
        Value::Null => return ApprovalOverride::default(),
        Value::Object(map) => map,
        flat => {
            let allow = rules(Some(flat), "tools", false, note);
            let by_default = allow.is_some().then_some(Ruling::Ask);
            return ApprovalOverride { allow, by_default, ..ApprovalOverride::default() };
        }
    };
    let by_default = match map.get("byDefault").map(|value| value.as_str().unwrap_or_default()) {
        None => None,
        Some("allow") => Some(Ruling::Allow),
        Some("ask") => Some(Ruling::Ask),
        Some("deny") => Some(Ruling::Deny),
        Some(_) => {
            note("`tools.byDefault` is allow, ask or deny".to_owned());
            None
        }
    };
    let list = |key: &str, forbids: bool, note: &mut _| rules(map.get(key), key, forbids, note);
    ApprovalOverride {
        allow: list("allow", false, note),
        ask: list("ask", true, note),
        deny: list("deny", true, note),
        by_default,
    }
}

/// One list. An entry that cannot be understood is left out of what is allowed, and counts for the
/// whole tool where it restricts.
fn rules(
    found: Option<&Value>,
    key: &str,
    restricts: bool,
    note: &mut impl FnMut(String),
) -> Option<BTreeMap<String, ApprovalRule>> {
    let entries = found.filter(|value| !value.is_null())?;
    let Some(entries) = fields::list(entries).filter(|entries| entries.len() <= MAX_TOOLS) else {
        note(format!("`{key}` must be a list of at most {MAX_TOOLS} tools"));
        return None;
    };
    let mut rules: BTreeMap<String, ApprovalRule> = BTreeMap::new();
    let mut whole: Vec<String> = Vec::new();
    for entry in entries.iter().filter(|entry| !entry.is_empty()) {
        let (tool, pattern) = match entry.split_once('(') {
            None => (entry.as_str(), None),
            Some((tool, rest)) => (tool.trim(), rest.strip_suffix(')')),
        };
        let understood = !entry.contains('(') || pattern.is_some() && [SHELL, "shell_command"].contains(&tool);
        if !understood {
            note(format!("`{key}`: only {SHELL} can be followed by a pattern in parentheses, not {tool:?}"));
            if !restricts {
                continue;
            }
        }
        let rule = rules.entry(tool.to_owned()).or_default();
        match pattern.filter(|_| understood) {
            Some(pattern) => rule.args_matchers.entry("command".to_owned()).or_default().push(pattern.to_owned()),
            None => whole.push(tool.to_owned()),
        }
    }
    // A tool that is named as such is meant whatever its arguments.
    for tool in whole {
        rules.insert(tool, ApprovalRule::default());
    }
    Some(rules)
}

#[cfg(test)]
mod tests;
