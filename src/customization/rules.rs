//! Rules: what users want a model to follow, always or for certain files.
//!
//! A rule without paths is part of the system prompt. One with paths is only listed there; a model
//! fetches it when it comes to such a file, and may be kept from the file until it has.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};
use serde_json::{Map, Value};

use super::pattern::{Found, Pattern};
use super::read::{Document, Origin, Reader};
use super::template::{self, Variables};
use super::{agents_md, fields};
use crate::config::files::without_dots;
use crate::tool::Access;

const MAX_PATTERNS: usize = 100;
const MAX_DESCRIPTION: usize = 300;

/// Everything that was found, in the order in which it is told.
#[derive(Debug, Clone, Default)]
pub struct Rules {
    rules: Vec<Rule>,
}

/// One rule.
#[derive(Debug, Clone)]
pub struct Rule {
    /// How a model asks for it.
    pub id: String,
    pub file: PathBuf,
    pub origin: Origin,
    pub description: Option<String>,
    pub scope: Scope,
    agents: Vec<String>,
    models: Vec<Pattern>,
    text: String,
    /// Whether the text may contain a template; rules of other assistants do not.
    is_template: bool,
}

/// When a rule counts.
#[derive(Debug, Clone)]
pub enum Scope {
    Always,
    Paths(Paths),
    /// When the model finds its description fitting.
    OnRequest,
}

/// For which files a rule is, and what it keeps a model from until it is fetched.
#[derive(Debug, Clone)]
pub struct Paths {
    /// As they are written.
    pub patterns: Vec<String>,
    pub enforced_on_read: bool,
    pub enforced_on_write: bool,
    globs: GlobSet,
    /// The folders that the patterns are relative to.
    roots: Vec<PathBuf>,
}

/// Who would follow a rule.
#[derive(Debug, Clone, Copy)]
pub struct Audience<'a> {
    pub agent: &'a str,
    /// The full id.
    pub model: &'a str,
}

/// A rule that is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleText {
    pub id: String,
    pub origin: Origin,
    pub text: String,
}

impl Rules {
    pub(super) fn load(reader: &mut Reader<'_>) -> Self {
        let mut rules = Self::default();
        if !reader.sources.isolated {
            let folder = reader.sources.config_dir.join("rules");
            rules.add_folder(reader, &folder);
        }
        for root in reader.roots.clone() {
            rules.add_folder(reader, &root.join(".eca").join("rules"));
            if reader.sources.settings.compat_rules && !agents_md::is_in(&root) {
                rules.add_foreign(reader, &root);
            }
        }
        let configured = reader.sources.settings.rules.clone();
        for path in reader.configured(&configured, "rules") {
            rules.add_folder(reader, &path);
        }
        rules
    }

    fn add_folder(&mut self, reader: &mut Reader<'_>, folder: &Path) {
        for file in reader.walk(folder, None, |_| true) {
            let Some(document) = reader.document(&file) else { continue };
            let roots = reader.roots_for(&file);
            match own_rule(&document, roots) {
                Ok(Some(rule)) => self.push(rule, folder),
                Ok(None) => {}
                Err((line, why)) => reader.report(&file, line, format!("{why}; the rule is ignored")),
            }
        }
    }

    /// `.cursor/rules` of a folder.
    fn add_foreign(&mut self, reader: &mut Reader<'_>, root: &Path) {
        let folder = root.join(".cursor").join("rules");
        let is_rule = |file: &Path| file.extension().is_some_and(|extension| extension == "mdc");
        for path in reader.walk(&folder, None, is_rule) {
            let border = reader.border_of(&path);
            let Some(file) = reader.file(&path, border) else { continue };
            let split = match super::front_matter::split(&file.text) {
                Ok(split) => split,
                Err(flaw) => {
                    reader.report(&path, Some(flaw.line), format!("{}; the rule is ignored", flaw.message));
                    continue;
                }
            };
            let roots = reader.roots_for(&path);
            match foreign_rule(&path, &split.values, &split.body, roots) {
                Ok(Some(rule)) => self.push(rule, &folder),
                Ok(None) => {}
                Err(why) => reader.report(&path, None, format!("{why}; the rule is ignored")),
            }
        }
    }

    /// Gives the rule a name that no other has.
    fn push(&mut self, mut rule: Rule, folder: &Path) {
        let below = rule.file.strip_prefix(folder).ok().filter(|below| !below.as_os_str().is_empty());
        let named = below.unwrap_or_else(|| rule.file.file_name().map_or(&rule.file, Path::new));
        let name = named.with_extension("").to_string_lossy().replace('\\', "/");
        let taken: BTreeSet<&str> = self.rules.iter().map(|rule| rule.id.as_str()).collect();
        let numbered = (2..).map(|number| format!("{name}-{number}"));
        let id = std::iter::once(name.clone()).chain(numbered).find(|id| !taken.contains(id.as_str()));
        rule.id = id.unwrap_or(name);
        self.rules.push(rule);
    }

    pub fn iter(&self) -> impl Iterator<Item = &Rule> {
        self.rules.iter()
    }

    /// The rules of the system prompt, the user's own first.
    pub fn static_for(&self, audience: &Audience<'_>, variables: &Variables) -> Vec<RuleText> {
        let always = self.of(audience).filter(|rule| matches!(rule.scope, Scope::Always));
        always.filter_map(|rule| rule.told(variables)).collect()
    }

    /// The rules that are only listed.
    pub fn scoped_for<'a>(&'a self, audience: &Audience<'_>) -> Vec<&'a Rule> {
        self.of(audience).filter(|rule| !matches!(rule.scope, Scope::Always)).collect()
    }

    /// The listed rules that are for `path`, which is absolute.
    pub fn matching<'a>(&'a self, audience: &Audience<'_>, path: &Path) -> Vec<&'a Rule> {
        let is_for = |rule: &&Rule| matches!(&rule.scope, Scope::Paths(paths) if paths.match_path(path));
        self.of(audience).filter(is_for).collect()
    }

    /// Those of them that must be fetched before `path` may be touched in this way.
    pub fn enforced<'a>(&'a self, audience: &Audience<'_>, path: &Path, access: Access) -> Vec<&'a Rule> {
        let mut rules = self.matching(audience, path);
        rules.retain(|rule| match (&rule.scope, access) {
            (Scope::Paths(paths), Access::Read) => paths.enforced_on_read,
            (Scope::Paths(paths), Access::Write) => paths.enforced_on_write,
            _ => false,
        });
        rules
    }

    /// What a model gets when it asks for a rule because of `path`. The error is for the model.
    pub fn fetch(
        &self,
        audience: &Audience<'_>,
        id: &str,
        path: &Path,
        variables: &Variables,
    ) -> Result<RuleText, String> {
        let listed = self.scoped_for(audience);
        let Some(rule) = listed.iter().find(|rule| rule.id == id.trim()) else {
            let ids: Vec<&str> = listed.iter().map(|rule| rule.id.as_str()).collect();
            return Err(format!("There is no rule {id:?}. The rules are: {}.", ids.join(", ")));
        };
        if let Scope::Paths(paths) = &rule.scope {
            if !path.is_absolute() {
                return Err("The path must be absolute.".to_owned());
            }
            if !paths.match_path(path) {
                let patterns = paths.patterns.join(", ");
                return Err(format!("The rule {id:?} is not for {}, only for: {patterns}.", path.display()));
            }
        }
        rule.told(variables).ok_or_else(|| format!("The rule {id:?} says nothing here."))
    }

    fn of<'a>(&'a self, audience: &Audience<'_>) -> impl Iterator<Item = &'a Rule> {
        let (agent, model) = (audience.agent.to_owned(), audience.model.to_owned());
        self.rules.iter().filter(move |rule| rule.is_for(&agent, &model))
    }
}

impl Rule {
    fn is_for(&self, agent: &str, model: &str) -> bool {
        let agents = self.agents.is_empty() || self.agents.iter().any(|name| name == agent);
        agents && (self.models.is_empty() || self.models.iter().any(|pattern| pattern.search(model) == Found::Yes))
    }

    fn told(&self, variables: &Variables) -> Option<RuleText> {
        let text = match self.is_template.then(|| template::render(&self.text, variables)) {
            None => self.text.clone(),
            Some(Ok(text)) => text.trim().to_owned(),
            Some(Err(error)) => {
                tracing::warn!(rule = self.id, %error, "a rule is left out");
                return None;
            }
        };
        (!text.is_empty()).then(|| RuleText { id: self.id.clone(), origin: self.origin, text })
    }
}

impl Paths {
    fn new(patterns: Vec<String>, roots: Vec<PathBuf>) -> Result<Self, String> {
        if patterns.len() > MAX_PATTERNS {
            return Err(format!("more than {MAX_PATTERNS} patterns"));
        }
        let mut globs = GlobSetBuilder::new();
        for pattern in &patterns {
            let clean = pattern.trim_start_matches("./").trim_start_matches('/');
            let glob = GlobBuilder::new(clean).literal_separator(true).build();
            globs.add(glob.map_err(|_| format!("{pattern:?} is no pattern for paths"))?);
        }
        let globs = globs.build().map_err(|_| "the patterns are too large".to_owned())?;
        Ok(Self { patterns, enforced_on_read: false, enforced_on_write: true, globs, roots })
    }

    fn match_path(&self, path: &Path) -> bool {
        let path = without_dots(path);
        self.roots.iter().filter_map(|root| path.strip_prefix(root).ok()).any(|below| self.globs.is_match(below))
    }
}

type Flaw = (Option<usize>, String);

/// A rule in our own format; `None` when it says nothing.
fn own_rule(document: &Document, roots: Vec<PathBuf>) -> Result<Option<Rule>, Flaw> {
    let plain = |why: String| (None, why);
    let (values, body) = (&document.split.values, &document.split.body);
    if body.is_empty() {
        return Ok(None);
    }
    template::render(body, &Variables::of_chat(&super::prompt::Environment::default(), [], false, []))
        .map_err(|error| (error.line().map(|line| document.split.body_line + line - 1), error.to_string()))?;
    let patterns = fields::texts(values, "paths").map_err(plain)?;
    let scope = if patterns.is_empty() {
        Scope::Always
    } else {
        let mut paths = Paths::new(patterns, roots).map_err(plain)?;
        (paths.enforced_on_read, paths.enforced_on_write) = enforcement(values).map_err(plain)?;
        Scope::Paths(paths)
    };
    let models = fields::texts(values, "model").map_err(plain)?;
    let models = models.iter().map(|pattern| Pattern::anywhere(pattern).map_err(|why| format!("`model`: {why}")));
    Ok(Some(Rule {
        id: String::new(),
        file: document.path.clone(),
        origin: document.origin,
        description: fields::line(values, "description", MAX_DESCRIPTION).map_err(plain)?,
        scope,
        agents: fields::texts(values, "agent").map_err(plain)?,
        models: models.collect::<Result<_, String>>().map_err(plain)?,
        text: body.clone(),
        is_template: true,
    }))
}

/// Whether reading and writing wait for the rule.
fn enforcement(values: &Map<String, Value>) -> Result<(bool, bool), String> {
    let words = fields::texts(values, "enforce")?;
    if let Some(strange) = words.iter().find(|word| !["read", "modify"].contains(&word.as_str())) {
        return Err(format!("`enforce` is read, modify or both, not {strange:?}"));
    }
    let says = |word: &str| words.iter().any(|said| said == word);
    Ok(if words.is_empty() { (false, true) } else { (says("read"), says("modify")) })
}

/// A rule as Cursor writes them; `None` for one that only its user asks for.
fn foreign_rule(
    file: &Path,
    values: &Map<String, Value>,
    body: &str,
    roots: Vec<PathBuf>,
) -> Result<Option<Rule>, String> {
    let description = fields::line(values, "description", MAX_DESCRIPTION)?;
    // Several patterns are one text with commas between them.
    let globs = fields::texts(values, "globs")?;
    let globs =
        globs.iter().flat_map(|globs| split_outside_braces(globs)).map(|glob| anywhere(&glob)).collect::<Vec<_>>();
    let scope = match (fields::flag(values, "alwaysApply")?.unwrap_or(false), globs.is_empty(), &description) {
        (true, ..) => Scope::Always,
        (false, false, _) => Scope::Paths(Paths::new(globs, roots)?),
        (false, true, Some(_)) => Scope::OnRequest,
        (false, true, None) => return Ok(None),
    };
    let rule = Rule {
        id: String::new(),
        file: file.to_owned(),
        origin: Origin::Workspace,
        description,
        scope,
        agents: Vec::new(),
        models: Vec::new(),
        text: body.to_owned(),
        is_template: false,
    };
    Ok((!body.is_empty()).then_some(rule))
}

fn split_outside_braces(text: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut depth = 0_usize;
    for c in text.chars() {
        match c {
            '{' => depth += 1,
            '}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        match (c, depth, parts.last_mut()) {
            (',', 0, _) => parts.push(String::new()),
            (c, _, Some(part)) => part.push(c),
            _ => {}
        }
    }
    parts.into_iter().map(|part| part.trim().to_owned()).filter(|part| !part.is_empty()).collect()
}

/// Without a slash, such a pattern is for files in any folder.
fn anywhere(glob: &str) -> String {
    if glob.contains('/') { glob.to_owned() } else { format!("**/{glob}") }
}

#[cfg(test)]
mod tests;
