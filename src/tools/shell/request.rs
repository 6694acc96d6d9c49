//! What a call of `shell_command` asks for, and the folder it runs in.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;

use crate::base::task;
use crate::process::home::home;
use crate::tool::Arguments;
use crate::workspace::Workspace;

pub(super) const DEFAULT_TIMEOUT_MS: u64 = 60_000;
pub(super) const MAX_TIMEOUT_MS: u64 = 600_000;

/// A folder that takes longer to look at is taken for dead.
const FOLDER_PATIENCE: Duration = Duration::from_secs(5);

/// The arguments, understood.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Request {
    pub(super) command: String,
    pub(super) working_directory: Option<String>,
    pub(super) timeout: Duration,
    /// The label, if it shall run in the background; may be empty.
    pub(super) background: Option<String>,
}

impl Request {
    pub(super) fn read(arguments: &Arguments) -> Result<Self, String> {
        Ok(Self {
            command: command(arguments)?,
            working_directory: text(arguments, "working_directory")?.map(str::to_owned),
            timeout: timeout(arguments.get("timeout"))?,
            background: background(arguments.get("background"))?,
        })
    }
}

/// The `command` of a call, which must say something.
pub(crate) fn command(arguments: &Arguments) -> Result<String, String> {
    match text(arguments, "command")? {
        Some(command) if command.contains('\0') => Err("`command` contains a null character.".to_owned()),
        Some(command) => Ok(command.to_owned()),
        None => Err("`command` is missing or blank.".to_owned()),
    }
}

/// A text argument; blank is as good as none.
pub(crate) fn text<'a>(arguments: &'a Arguments, name: &str) -> Result<Option<&'a str>, String> {
    match arguments.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.as_str()).filter(|text| !text.trim().is_empty())),
        Some(_) => Err(format!("`{name}` must be a string.")),
    }
}

/// Models also write numbers as text or with a fraction.
fn timeout(value: Option<&Value>) -> Result<Duration, String> {
    let milliseconds = match value {
        None | Some(Value::Null) => return Ok(Duration::from_millis(DEFAULT_TIMEOUT_MS)),
        Some(Value::String(text)) if text.trim().is_empty() => return Ok(Duration::from_millis(DEFAULT_TIMEOUT_MS)),
        Some(Value::String(text)) => text.trim().parse().ok(),
        Some(value) => value.as_f64(),
    };
    match milliseconds.filter(|number| *number >= 1.0) {
        // The cast saturates.
        Some(number) => Ok(Duration::from_millis((number as u64).min(MAX_TIMEOUT_MS))),
        None => Err(format!("`timeout` must be a number of milliseconds from 1 to {MAX_TIMEOUT_MS}.")),
    }
}

/// Models also say just yes or no.
fn background(value: Option<&Value>) -> Result<Option<String>, String> {
    match value {
        None | Some(Value::Null | Value::Bool(false)) => Ok(None),
        Some(Value::Bool(true)) => Ok(Some(String::new())),
        Some(Value::String(label)) if label.trim().is_empty() => Ok(None),
        Some(Value::String(label)) => Ok(Some(label.trim().to_owned())),
        Some(_) => Err("`background` must be a short label.".to_owned()),
    }
}

/// The folder a call names, absolute; relative ones are below the first root.
pub(crate) fn named_directory(written: &str, workspace: &Workspace) -> Result<PathBuf, String> {
    let written = written.trim();
    let below_home = written.strip_prefix('~').filter(|rest| rest.is_empty() || rest.starts_with('/'));
    if let (Some(rest), Some(home)) = (below_home, home()) {
        return Ok(home.join(rest.trim_start_matches('/')));
    }
    let path = Path::new(written);
    match workspace.roots().first() {
        _ if path.is_absolute() => Ok(path.to_owned()),
        Some(root) => Ok(root.path.join(path)),
        None => Err(format!("{written} is relative, and no folder is open; give an absolute path.")),
    }
}

/// Where a command runs that names no folder.
pub(crate) fn default_directory(workspace: &Workspace) -> Result<PathBuf, String> {
    let root = workspace.roots().first().map(|root| root.path.clone());
    let place = root.or_else(|| home().map(Path::to_owned));
    place.ok_or_else(|| "No folder is open; say in which folder to run the command.".to_owned())
}

/// Fails unless the folder is there.
pub(crate) async fn must_be_directory(path: PathBuf) -> Result<PathBuf, String> {
    let looked_at = path.clone();
    // A folder on a network that is down would block.
    let look = task::blocking(move || looked_at.metadata());
    match tokio::time::timeout(FOLDER_PATIENCE, look).await {
        Ok(Ok(Ok(found))) if found.is_dir() => Ok(path),
        Ok(Ok(Ok(_))) => Err(format!("{} is not a folder.", path.display())),
        Ok(Ok(Err(error))) => Err(format!("The folder {} cannot be used: {error}", path.display())),
        Ok(Err(_)) | Err(_) => Err(format!("The folder {} does not answer.", path.display())),
    }
}

/// One line for people: the command without what is always the same, cut to `max` characters.
pub(crate) fn summary(command: &str, workspace: &Workspace, max: usize) -> String {
    let command = without_cd_to_root(command.trim(), workspace);
    let mut line = String::new();
    for (at, c) in command.chars().enumerate() {
        if at == max {
            line.push('…');
            break;
        }
        line.push(if c.is_control() { ' ' } else { c });
    }
    format!("$ {line}")
}

fn without_cd_to_root<'a>(command: &'a str, workspace: &Workspace) -> &'a str {
    let Some((folder, rest)) = leading_cd(command) else { return command };
    let is_root = workspace.roots().iter().any(|root| root.path == Path::new(&folder));
    if is_root && !rest.is_empty() { rest } else { command }
}

/// The folder and the rest of `cd <folder> && rest` or `cd <folder>; rest`.
pub(crate) fn leading_cd(command: &str) -> Option<(String, &str)> {
    let after = command.trim_start().strip_prefix("cd")?;
    let after = after.strip_prefix([' ', '\t'])?.trim_start();
    let (folder, rest) = match after.chars().next()? {
        quote @ ('"' | '\'') => after[1..].split_once(quote)?,
        _ => after.split_at(after.find([' ', '\t', ';', '&', '\n'])?),
    };
    let rest = rest.trim_start();
    let rest = rest.strip_prefix("&&").or_else(|| rest.strip_prefix(';'))?;
    Some((folder.to_owned(), rest.trim_start()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn arguments(value: Value) -> Arguments {
        value.as_object().cloned().unwrap()
    }

    #[cfg(unix)]
    fn workspace() -> Workspace {
        Workspace::from_folders(&[("file:///w/one".to_owned(), None), ("file:///w/two%20b".to_owned(), None)]).0
    }

    #[test]
    fn arguments_are_understood_or_refused() {
        let ok = |value: Value| Request::read(&arguments(value)).unwrap();
        assert_eq!(ok(json!({"command": "ls"})).timeout, Duration::from_secs(60));
        for (timeout, expected) in [
            (json!(5), 5),
            (json!("250"), 250),
            (json!(1.5e3), 1_500),
            (json!(1e300), MAX_TIMEOUT_MS),
            (json!(600_001), MAX_TIMEOUT_MS),
            (json!(null), DEFAULT_TIMEOUT_MS),
            (json!(""), DEFAULT_TIMEOUT_MS),
        ] {
            let request = ok(json!({"command": "ls", "timeout": timeout}));
            assert_eq!(request.timeout, Duration::from_millis(expected), "{timeout}");
        }
        for (background, expected) in [
            (json!("dev server "), Some("dev server")),
            (json!(true), Some("")),
            (json!(false), None),
            (json!(" "), None),
            (json!(null), None),
        ] {
            let request = ok(json!({"command": "ls", "background": background}));
            assert_eq!(request.background.as_deref(), expected, "{background}");
        }
        for bad in [
            json!({}),
            json!({"command": " "}),
            json!({"command": 1}),
            json!({"command": "a\u{0}b"}),
            json!({"command": "ls", "timeout": 0}),
            json!({"command": "ls", "timeout": -5}),
            json!({"command": "ls", "timeout": "soon"}),
            json!({"command": "ls", "timeout": "NaN"}),
            json!({"command": "ls", "timeout": true}),
            json!({"command": "ls", "background": 1}),
            json!({"command": "ls", "working_directory": []}),
        ] {
            assert!(Request::read(&arguments(bad.clone())).is_err(), "{bad}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn folders_are_found() {
        let none = Workspace::default();
        assert_eq!(named_directory("/a/b", &none).unwrap(), Path::new("/a/b"));
        assert_eq!(named_directory(" sub/x ", &workspace()).unwrap(), Path::new("/w/one/sub/x"));
        assert_eq!(named_directory("~x", &workspace()).unwrap(), Path::new("/w/one/~x"));
        assert!(named_directory("sub", &none).unwrap_err().contains("relative"));
        assert_eq!(default_directory(&workspace()).unwrap(), Path::new("/w/one"));
    }

    #[cfg(unix)]
    #[test]
    fn summaries_are_short_and_one_line() {
        for (command, expected) in [
            ("ls -l", "$ ls -l"),
            ("  cd /w/one && cargo test", "$ cargo test"),
            ("cd /w/one/ && cargo test", "$ cargo test"),
            ("cd '/w/two b'; ls", "$ ls"),
            ("cd \"/w/two b\" && ls", "$ ls"),
            ("cd /w/other && ls", "$ cd /w/other && ls"),
            ("cd /w/one &&", "$ cd /w/one &&"),
            ("cd /w/one", "$ cd /w/one"),
            ("cdx /w/one && ls", "$ cdx /w/one && ls"),
            ("echo a\necho b\tc", "$ echo a echo b c"),
            ("0123456789012345678901234567", "$ 01234567890123456789…"),
            ("éééééééééééééééééééé", "$ éééééééééééééééééééé"),
        ] {
            assert_eq!(summary(command, &workspace(), 20), expected, "{command}");
        }
    }

    proptest::proptest! {
        #[test]
        fn no_command_makes_it_panic(text in "(cd)?[ \"';&/a-zé\n]{0,30}") {
            let _ = (leading_cd(&text), summary(&text, &Workspace::default(), 5));
        }
    }
}
