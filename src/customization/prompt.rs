//! The system prompt and the other texts that models are given, put together from their parts.
//!
//! Pure: the same parts give the same text, byte by byte, because vendors charge less for what a
//! request has in common with the one before. What changes least comes first.

use super::agents_md::ContextFile;
use super::read::Origin;
use super::rules::{Rule, RuleText, Scope};
use super::skills::Skill;
use super::template::{self, Variables};
use crate::config::{AgentConfig, PromptsConfig};

const CODE: &str = include_str!("prompts/code.md");
const PLAN: &str = include_str!("prompts/plan.md");
const EXPLORER: &str = include_str!("prompts/explorer.md");
const GENERAL: &str = include_str!("prompts/general.md");
const TITLE: &str = include_str!("prompts/title.md");
const COMPACT: &str = include_str!("prompts/compact.md");
const INIT: &str = include_str!("prompts/init.md");
const SKILL_CREATE: &str = include_str!("prompts/skill_create.md");
const COMPLETION: &str = include_str!("prompts/completion.md");
const REWRITE: &str = include_str!("prompts/rewrite.md");

/// The machine, as far as a model needs to know it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Environment {
    pub os: String,
    pub shell: String,
    pub user: String,
    pub home: String,
}

impl Environment {
    /// From the environment variables that systems set for it.
    pub fn from_variables(env: &dyn Fn(&str) -> Option<String>) -> Self {
        let first = |names: &[&str]| {
            let set = names.iter().find_map(|name| env(name).filter(|value| !value.trim().is_empty()));
            set.unwrap_or_default()
        };
        let os = match () {
            () if cfg!(target_os = "linux") => "Linux",
            () if cfg!(target_os = "macos") => "macOS",
            () if cfg!(windows) => "Windows",
            () => "Unix",
        };
        Self {
            os: os.to_owned(),
            shell: first(&["SHELL", "ComSpec"]),
            user: first(&["USER", "USERNAME", "LOGNAME"]),
            home: first(&["HOME", "USERPROFILE"]),
        }
    }
}

/// What a system prompt consists of.
#[derive(Debug, Clone, Copy)]
pub struct Parts<'a> {
    /// See [`agent_prompt`].
    pub agent_prompt: &'a str,
    pub rules: &'a [RuleText],
    /// The rules that are only listed.
    pub listed_rules: &'a [&'a Rule],
    pub skills: &'a [&'a Skill],
    pub environment: &'a Environment,
    /// The workspace folders.
    pub roots: &'a [String],
    pub files: &'a [ContextFile],
    /// Further blocks by their names: the map of the repository, what hooks added at the start.
    pub contexts: &'a [(String, String)],
    /// How many model calls the agent may make, if somebody must know.
    pub max_steps: Option<u32>,
}

/// A system prompt in its parts, so that each can be shown and counted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SystemPrompt {
    pub sections: Vec<Section>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Section {
    pub title: &'static str,
    pub text: String,
}

impl SystemPrompt {
    /// The whole text.
    pub fn text(&self) -> String {
        let mut text = String::new();
        for (index, section) in self.sections.iter().enumerate() {
            if index > 0 {
                text.push_str("\n\n## ");
                text.push_str(section.title);
                text.push_str("\n\n");
            }
            text.push_str(&section.text);
        }
        text
    }
}

/// Puts the parts together; what is empty is left out.
pub fn system_prompt(parts: &Parts<'_>) -> SystemPrompt {
    let mut instructions = parts.agent_prompt.trim().to_owned();
    if let Some(steps) = parts.max_steps {
        instructions.push_str(&format!("\n\nYou have at most {steps} turns with tools; keep one for your report."));
    }
    let sections = [
        ("Instructions", instructions),
        ("Rules", rules(parts.rules, parts.listed_rules)),
        ("Skills", skills(parts.skills)),
        ("Environment", environment(parts.environment)),
        ("Workspace", workspace(parts.roots)),
        ("Context", contexts(parts.files, parts.contexts)),
    ];
    let sections = sections.into_iter().enumerate().filter(|(index, (_, text))| *index == 0 || !text.is_empty());
    SystemPrompt { sections: sections.map(|(_, (title, text))| Section { title, text }).collect() }
}

/// What an agent is told to be: its own prompt, else the user's general one, else the built-in.
pub fn agent_prompt(name: &str, agent: Option<&AgentConfig>, prompts: &PromptsConfig, variables: &Variables) -> String {
    let own = agent.and_then(|agent| agent.system_prompt.as_deref());
    let text = own.or(prompts.chat.as_deref()).unwrap_or_else(|| built_in(name));
    template::render_or_keep(text.trim(), variables)
}

/// The prompt of a built-in agent; every other agent begins as `code`.
pub fn built_in(name: &str) -> &'static str {
    match name {
        "plan" => PLAN,
        "explorer" => EXPLORER,
        "general" => GENERAL,
        _ => CODE,
    }
    .trim_end()
}

pub fn title(prompts: &PromptsConfig) -> String {
    chosen(&prompts.chat_title, TITLE).to_owned()
}

/// `wishes` is what the user wrote behind `/compact`.
pub fn compact(prompts: &PromptsConfig, wishes: &str, variables: &Variables) -> String {
    let variables = variables.clone().with_text("additionalUserInput", wishes.trim());
    template::render_or_keep(chosen(&prompts.compact, COMPACT), &variables)
}

/// What `/init` asks for.
pub fn init(prompts: &PromptsConfig, variables: &Variables) -> String {
    template::render_or_keep(chosen(&prompts.init, INIT), variables)
}

/// What `/skill-create` asks for.
pub fn skill_create(prompts: &PromptsConfig, file: &str, name: &str, wish: &str, variables: &Variables) -> String {
    let variables = variables
        .clone()
        .with_text("skillFilePath", file)
        .with_text("skillName", name)
        .with_text("userPrompt", wish.trim());
    template::render_or_keep(chosen(&prompts.skill_create, SKILL_CREATE), &variables)
}

/// What a model is told that continues a text; [`CURSOR`] marks where.
pub fn completion(prompts: &PromptsConfig) -> &str {
    chosen(&prompts.completion, COMPLETION)
}

/// Stands where the cursor is in a text that is to be continued.
pub const CURSOR: &str = "<ECA_TAG>";

/// A selection that is to be rewritten, and what is around it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Selection<'a> {
    pub text: &'a str,
    /// Empty when it belongs to no file.
    pub path: &'a str,
    /// Its lines, in words; may be empty.
    pub range: &'a str,
    /// The file, or the part around the selection; may be empty.
    pub file: &'a str,
}

pub fn rewrite(prompts: &PromptsConfig, selection: Selection<'_>) -> String {
    let variables = Variables::default()
        .with_text("text", selection.text)
        .with_text("path", selection.path)
        .with_text("rangeText", selection.range)
        .with_text("fullText", selection.file);
    template::render_or_keep(chosen(&prompts.rewrite, REWRITE), &variables)
}

fn chosen<'a>(configured: &'a Option<String>, built_in: &'static str) -> &'a str {
    configured.as_deref().unwrap_or(built_in).trim()
}

fn rules(told: &[RuleText], listed: &[&Rule]) -> String {
    let mut blocks = Vec::new();
    if !told.is_empty() {
        blocks.push("Follow these. Where two disagree, the later one counts; the user's words count most.".to_owned());
        blocks.extend(told.iter().map(|rule| {
            let from = match rule.origin {
                Origin::Global => "user",
                Origin::Workspace => "workspace",
            };
            element("rule", &[("id", &rule.id), ("from", from)], &rule.text)
        }));
    }
    if !listed.is_empty() {
        let lines: Vec<String> = listed.iter().map(|rule| listed_rule(rule)).collect();
        blocks.push(format!(
            "More rules, for some files. Before you work on such a file, call `eca__fetch_rule` with the rule's id and \
             the file's absolute path.\n{}",
            lines.join("\n")
        ));
    }
    blocks.join("\n\n")
}

fn listed_rule(rule: &Rule) -> String {
    let mut line = format!("- `{}`", rule.id);
    if let Scope::Paths(paths) = &rule.scope {
        let patterns: Vec<String> = paths.patterns.iter().map(|pattern| format!("`{pattern}`")).collect();
        line.push_str(&format!(" for {}", patterns.join(", ")));
        line.push_str(match (paths.enforced_on_read, paths.enforced_on_write) {
            (true, _) => ", required before reading",
            (false, true) => ", required before changes",
            (false, false) => "",
        });
    }
    if let Some(description) = &rule.description {
        line.push_str(&format!(": {description}"));
    }
    line
}

fn skills(skills: &[&Skill]) -> String {
    if skills.is_empty() {
        return String::new();
    }
    let lines: Vec<String> = skills.iter().map(|skill| format!("- `{}`: {}", skill.name, skill.description)).collect();
    format!("Instructions for certain tasks. When one fits, load it with `eca__skill` first.\n{}", lines.join("\n"))
}

fn environment(environment: &Environment) -> String {
    let facts = [
        ("System", &environment.os),
        ("Shell", &environment.shell),
        ("User", &environment.user),
        ("Home", &environment.home),
    ];
    let lines = facts.iter().filter(|(_, value)| !value.is_empty()).map(|(name, value)| format!("- {name}: {value}"));
    lines.collect::<Vec<_>>().join("\n")
}

fn workspace(roots: &[String]) -> String {
    if roots.is_empty() {
        return String::new();
    }
    let lines: Vec<String> = roots.iter().map(|root| format!("- {root}")).collect();
    format!("{}\n\nA relative path is meant from the first of these. Give tools absolute paths.", lines.join("\n"))
}

fn contexts(files: &[ContextFile], contexts: &[(String, String)]) -> String {
    let files = files.iter().map(|file| element("file", &[("path", &file.path.to_string_lossy())], &file.text));
    let contexts = contexts.iter().map(|(name, text)| element("context", &[("name", name)], text));
    files.chain(contexts).collect::<Vec<_>>().join("\n\n")
}

/// What a hook adds, so that the model can tell it from the user's words.
pub fn additional_context<'a>(texts: impl IntoIterator<Item = &'a str>) -> String {
    let blocks: Vec<String> = texts.into_iter().map(|text| element("additionalContext", &[], text)).collect();
    blocks.join("\n")
}

fn element(name: &str, attributes: &[(&str, &str)], text: &str) -> String {
    let quoted = |(key, value): &(&str, &str)| format!(" {key}=\"{}\"", value.replace('"', "'").replace('\n', " "));
    let attributes: String = attributes.iter().map(quoted).collect();
    format!("<{name}{attributes}>\n{}\n</{name}>", text.trim_matches('\n'))
}

#[cfg(test)]
mod tests;
