//! Skills: folders with a `SKILL.md`, of which a model sees name and description until it loads one.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::arguments::Placeholders;
use super::read::{Document, Origin, Reader, directory};
use super::{Sources, fields};
use crate::base::task;
use crate::config::commands::Memory;

const FILE: &str = "SKILL.md";
/// The bounds of the public specification.
const MAX_NAME: usize = 64;
const MAX_DESCRIPTION: usize = 1024;

/// The skills, by their names.
#[derive(Debug, Clone, Default)]
pub struct Skills {
    skills: BTreeMap<String, Skill>,
    sources: Option<Arc<Sources>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Skill {
    pub name: String,
    pub description: String,
    /// Where the files are that the skill speaks of.
    pub directory: PathBuf,
    pub origin: Origin,
}

/// A skill that was asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoadedSkill {
    pub name: String,
    pub directory: PathBuf,
    pub text: String,
}

impl LoadedSkill {
    /// The text with what the user wrote behind `/name`.
    pub fn with_arguments(&self, written: &str) -> String {
        Placeholders::of(&self.text).fill(&self.text, written)
    }
}

impl Skills {
    /// The user's own first, so that those of the workspace and those that the configuration names
    /// win over them.
    pub(super) fn load(reader: &mut Reader<'_>, sources: &Arc<Sources>) -> Self {
        let mut places = Vec::new();
        if !reader.sources.isolated {
            places.push(reader.sources.config_dir.join("skills"));
        }
        for root in &reader.roots {
            places.push(root.join(".agents").join("skills"));
            places.push(root.join(".eca").join("skills"));
        }
        let configured = reader.sources.settings.skills.clone();
        places.extend(reader.configured(&configured, "skills"));
        let mut skills = BTreeMap::new();
        for place in places {
            for file in reader.walk(&place, Some(FILE), |file| file.file_name().is_some_and(|name| name == FILE)) {
                let border = reader.border_of(&file);
                // What it says is read when it is loaded; a command in it must not run for its name.
                let Some(read) = reader.filled_file(&file, border) else { continue };
                match super::front_matter::split(&read.text) {
                    Ok(split) => match skill(&split.values, &file, read.origin) {
                        Ok(skill) => drop(skills.insert(skill.name.clone(), skill)),
                        Err(why) => reader.report(&file, None, format!("{why}; the skill is ignored")),
                    },
                    Err(flaw) => {
                        reader.report(&file, Some(flaw.line), format!("{}; the skill is ignored", flaw.message));
                    }
                }
            }
        }
        Self { skills, sources: Some(sources.clone()) }
    }

    pub fn iter(&self) -> impl Iterator<Item = &Skill> {
        self.skills.values()
    }

    pub fn is_empty(&self) -> bool {
        self.skills.is_empty()
    }

    /// The error names those that exist, for the model.
    pub fn get(&self, name: &str) -> Result<&Skill, String> {
        self.skills.get(name.trim()).ok_or_else(|| {
            let names: Vec<&str> = self.skills.keys().map(String::as_str).collect();
            match names.is_empty() {
                true => format!("There is no skill {name:?}, nor any other."),
                false => format!("There is no skill {name:?}. The skills are: {}.", names.join(", ")),
            }
        })
    }

    /// Reads a skill as it is now, and runs the commands in it if it may have any. The error is for
    /// the model.
    pub async fn load_skill(&self, name: &str) -> Result<LoadedSkill, String> {
        let skill = self.get(name)?.clone();
        let sources = self.sources.clone().ok_or("No skill can be read.")?;
        let mut memory = Memory::default();
        // Once to see what its commands are, once with what they printed.
        for _ in 0..2 {
            let (file, sources, known) = (skill.directory.join(FILE), sources.clone(), memory.clone());
            let read = task::blocking(move || read_now(&file, &sources, &known)).await;
            match read.map_err(|_| "The skill could not be read.".to_owned())? {
                Read::Text(text) => {
                    return Ok(LoadedSkill { name: skill.name, directory: skill.directory, text });
                }
                Read::Waits(calls) => {
                    let missing = memory.missing(&calls);
                    memory.run(missing).await;
                }
                Read::Failed(why) => return Err(format!("The skill {name:?} cannot be read: {why}")),
            }
        }
        Err(format!("The skill {name:?} is being changed; try again."))
    }
}

enum Read {
    Text(String),
    Waits(Vec<crate::config::commands::CommandCall>),
    Failed(String),
}

fn read_now(file: &Path, sources: &Sources, memory: &Memory) -> Read {
    let mut reader = Reader::new(sources, memory);
    match reader.document(file) {
        Some(Document { split, .. }) => Read::Text(split.body),
        None if !memory.missing(&reader.calls()).is_empty() => Read::Waits(reader.calls()),
        None => {
            let problem = reader.problems.first().map(|problem| problem.message.clone());
            Read::Failed(problem.unwrap_or_else(|| "it is gone".to_owned()))
        }
    }
}

fn skill(values: &serde_json::Map<String, serde_json::Value>, file: &Path, origin: Origin) -> Result<Skill, String> {
    let name = fields::line(values, "name", MAX_NAME)?.ok_or("it has no `name`")?;
    let description = fields::line(values, "description", MAX_DESCRIPTION)?.ok_or("it has no `description`")?;
    Ok(Skill { name, description, directory: directory(file).to_owned(), origin })
}

#[cfg(test)]
mod tests;
