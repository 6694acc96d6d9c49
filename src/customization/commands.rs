//! Commands that users write: a Markdown file whose text is sent as the prompt.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use super::arguments::{self, Placeholders};
use super::fields;
use super::read::{Document, Origin, Reader};

const MAX_DESCRIPTION: usize = 300;
const MAX_ARGUMENTS: usize = 50;

/// The commands, by their names.
#[derive(Debug, Clone, Default)]
pub struct Commands {
    commands: BTreeMap<String, CustomCommand>,
}

/// One command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CustomCommand {
    /// Without the slash.
    pub name: String,
    pub description: Option<String>,
    pub arguments: Vec<Argument>,
    pub file: PathBuf,
    pub origin: Origin,
    text: String,
    placeholders: Placeholders,
}

/// An argument, for those who ask the user for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Argument {
    pub name: String,
    pub description: Option<String>,
    pub required: bool,
}

/// Why a command has no prompt.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ExpandError {
    #[error("There is no command /{name}.")]
    Unknown { name: String },
    #[error("/{name} needs more: {}.", .missing.join(", "))]
    Missing { name: String, missing: Vec<String> },
}

impl Commands {
    /// The user's own first, so that those of the workspace and those that the configuration names
    /// win over them.
    pub(super) fn load(reader: &mut Reader<'_>) -> Self {
        let mut commands = Self::default();
        let mut places = Vec::new();
        if !reader.sources.isolated {
            places.push(reader.sources.config_dir.join("commands"));
        }
        places.extend(reader.roots.iter().map(|root| root.join(".eca").join("commands")));
        let configured = reader.sources.settings.commands.clone();
        places.extend(reader.configured(&configured, "commands"));
        let is_markdown = |file: &Path| file.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("md"));
        for place in places {
            for file in reader.walk(&place, None, is_markdown) {
                let Some(document) = reader.document(&file) else { continue };
                match command(&document) {
                    Ok(command) => drop(commands.commands.insert(command.name.clone(), command)),
                    Err(why) => reader.report(&file, None, format!("{why}; the command is ignored")),
                }
            }
        }
        commands
    }

    pub fn iter(&self) -> impl Iterator<Item = &CustomCommand> {
        self.commands.values()
    }

    pub fn get(&self, name: &str) -> Option<&CustomCommand> {
        self.commands.get(&name.to_lowercase())
    }

    /// The prompt of `/name written`.
    pub fn expand(&self, name: &str, written: &str) -> Result<String, ExpandError> {
        let command = self.get(name).ok_or_else(|| ExpandError::Unknown { name: name.to_owned() })?;
        let given = arguments::count(written);
        let required = command.arguments.iter().skip(given).filter(|argument| argument.required);
        let missing: Vec<String> = required.map(|argument| argument.name.clone()).collect();
        if !missing.is_empty() {
            return Err(ExpandError::Missing { name: command.name.clone(), missing });
        }
        Ok(command.placeholders.fill(&command.text, written))
    }
}

fn command(document: &Document) -> Result<CustomCommand, String> {
    let (values, text) = (&document.split.values, &document.split.body);
    let name = document.path.file_stem().map(|stem| stem.to_string_lossy().to_lowercase()).unwrap_or_default();
    if name.is_empty() || name.contains(|c: char| c.is_whitespace() || c.is_control() || c == '/') {
        return Err("the file's name cannot be the name of a command".to_owned());
    }
    if text.is_empty() {
        return Err("it says nothing".to_owned());
    }
    let placeholders = Placeholders::of(text);
    let named = match &placeholders {
        Placeholders::None => Vec::new(),
        Placeholders::Named(names) => names.clone(),
        Placeholders::Positional { count: 0, .. } => vec!["arguments".to_owned()],
        Placeholders::Positional { count, .. } => (1..=*count).map(|position| format!("arg{position}")).collect(),
        Placeholders::Mixed => return Err("`$1` and `{{name}}` cannot be mixed".to_owned()),
    };
    Ok(CustomCommand {
        name,
        description: fields::line(values, "description", MAX_DESCRIPTION)?,
        arguments: describe(named, values, matches!(placeholders, Placeholders::Named(_)))?,
        file: document.path.clone(),
        origin: document.origin,
        text: text.clone(),
        placeholders,
    })
}

/// The arguments with what the front matter says about them: by name, or by position where they
/// have no names of their own.
fn describe(names: Vec<String>, values: &Map<String, Value>, by_name: bool) -> Result<Vec<Argument>, String> {
    let declared = match values.get("arguments") {
        None | Some(Value::Null) => Vec::new(),
        Some(Value::Array(entries)) if entries.len() <= MAX_ARGUMENTS => {
            entries.iter().map(declared).collect::<Result<_, _>>()?
        }
        Some(_) => return Err(format!("`arguments` must be a list of at most {MAX_ARGUMENTS} entries")),
    };
    let names = if names.is_empty() { declared.iter().map(|entry| entry.0.clone()).collect() } else { names };
    let argument = |(index, name): (usize, String)| {
        let known = match by_name {
            true => declared.iter().find(|entry| entry.0 == name),
            false => declared.get(index),
        };
        match known {
            Some((declared, description, required)) => Argument {
                name: declared.clone(),
                description: description.clone(),
                required: required.unwrap_or(by_name),
            },
            None => Argument { name, description: None, required: by_name },
        }
    };
    Ok(names.into_iter().enumerate().map(argument).collect())
}

type Declared = (String, Option<String>, Option<bool>);

fn declared(entry: &Value) -> Result<Declared, String> {
    if let Value::String(name) = entry {
        return Ok((name.clone(), None, None));
    }
    let wrong = || "each of `arguments` needs a `name`".to_owned();
    let values = entry.as_object().ok_or_else(wrong)?;
    let name = fields::line(values, "name", MAX_DESCRIPTION)?.ok_or_else(wrong)?;
    Ok((name, fields::line(values, "description", MAX_DESCRIPTION)?, fields::flag(values, "required")?))
}

#[cfg(test)]
mod tests;
