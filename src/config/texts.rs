//! Interpolation in files that are text rather than configuration: rules, skills, commands, agents.
//!
//! The same forms and the same care as in configuration strings. A text of a workspace is expanded
//! only when the user trusts its content; see [`hash`] and [`dangers`].

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use serde_json::{Map, Value};

use super::commands::{CommandCall, Memory};
use super::interpolate::{self, Context};
use super::trust::{self, WithheldKey};

/// What the forms of one file may look at.
pub struct TextContext<'a> {
    pub env: &'a dyn Fn(&str) -> Option<String>,
    /// The directory of the file.
    pub directory: &'a Path,
    pub home: Option<&'a Path>,
    /// What commands have printed.
    pub memory: &'a Memory,
    /// When the file was written, so that saving it runs its commands again.
    pub written: Option<SystemTime>,
}

impl std::fmt::Debug for TextContext<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TextContext").field("directory", &self.directory).finish_non_exhaustive()
    }
}

/// What became of a text.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Expanded {
    /// `None` while it waits for a command.
    pub text: Option<String>,
    pub failures: Vec<String>,
    /// Every command in it, whether it has run or not.
    pub commands: Vec<CommandCall>,
    /// Files whose change would change the result.
    pub files: Vec<PathBuf>,
}

/// Expands every form of `text` once; what fails becomes empty.
pub fn expand(text: &str, context: &TextContext<'_>) -> Expanded {
    let call = |command: &str| CommandCall {
        text: command.to_owned(),
        directory: context.directory.to_owned(),
        written: context.written,
    };
    let mut values = as_values(text);
    let findings = interpolate::expand_values(
        &mut values,
        &Context {
            env: context.env,
            directory: context.directory,
            home: context.home,
            netrc_file: None,
            command: &|command| context.memory.outputs.get(&call(command)).cloned(),
        },
    );
    let text = values.remove(KEY).and_then(|value| match value {
        Value::String(text) => Some(text),
        _ => None,
    });
    Expanded {
        text,
        failures: findings.failures.into_iter().map(|(_, why)| why).collect(),
        commands: findings.commands.iter().map(|command| call(command)).collect(),
        files: findings.files.into_iter().collect(),
    }
}

/// What expanding `text` could do, one entry per kind of form; nothing when there is no form.
pub fn dangers(text: &str) -> Vec<WithheldKey> {
    let names: BTreeSet<&str> = interpolate::form_names(text).collect();
    names.into_iter().map(trust::withheld_form).collect()
}

/// What the user trusts when this text is trusted; `None` for one that cannot be.
pub fn hash(text: &str, directory: &Path, root: &Path, home: Option<&Path>) -> Option<String> {
    trust::content_hash(text, &as_values(text), directory, root, home)
}

const KEY: &str = "text";

fn as_values(text: &str) -> Map<String, Value> {
    Map::from_iter([(KEY.to_owned(), Value::from(text))])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn context<'a>(directory: &'a Path, memory: &'a Memory) -> TextContext<'a> {
        let env = &|name: &str| (name == "SET").then(|| "value ${env:SET}".to_owned());
        TextContext { env, directory, home: None, memory, written: None }
    }

    #[test]
    fn a_text_is_expanded_once_and_waits_for_its_commands() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("in.md"), "included\n").unwrap();
        let mut memory = Memory::default();
        let done = expand("a ${env:SET} ${file:in.md} {{ x }} ${other:y}", &context(folder.path(), &memory));
        assert_eq!(done.text.as_deref(), Some("a value ${env:SET} included {{ x }} ${other:y}"));
        assert_eq!(done.files, [folder.path().join("in.md")]);
        assert_eq!(done.failures, Vec::<String>::new());

        let waiting = expand("x ${cmd:date}", &context(folder.path(), &memory));
        assert_eq!((waiting.text, waiting.commands.len()), (None, 1));
        memory.outputs.insert(waiting.commands[0].clone(), Ok("today".to_owned()));
        assert_eq!(expand("x ${cmd:date}", &context(folder.path(), &memory)).text.as_deref(), Some("x today"));
        let failed = expand("x${env:UNSET}y", &context(folder.path(), &memory));
        assert_eq!((failed.text.as_deref(), failed.failures.len()), (Some("xy"), 1));
    }

    #[test]
    fn dangers_are_named_once_per_form() {
        let could: Vec<_> =
            dangers("${cmd:a}${env:B}${cmd:c} ${HOME}").into_iter().map(|key| (key.key, key.could)).collect();
        assert_eq!(could, [("${cmd:…}".to_owned(), "run programs"), ("${env:…}".to_owned(), "read files of yours")]);
        assert_eq!(dangers("plain ${} $1 {{ x }}"), []);
    }

    #[test]
    fn the_hash_covers_what_the_text_includes() {
        let folder = tempfile::tempdir().unwrap();
        let of = |text: &str| hash(text, folder.path(), folder.path(), None);
        let before = of("${file:in.md}");
        std::fs::write(folder.path().join("in.md"), "x").unwrap();
        assert!(before.is_some() && before != of("${file:in.md}"));
        assert_eq!(of("same"), of("same"));
    }
}
