//! The tools that a user writes into the configuration: a command line with places for arguments.
//!
//! Arguments come from a model and are never part of the command: each place becomes a quoted
//! variable, and the value goes into the environment. A shell does not run what a variable contains,
//! whatever quotes the place stands in.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use serde_json::{Map, Value};

use crate::config::{CustomToolConfig, ShellConfig};
use crate::tool::{Arguments, Tool, ToolContext, ToolOutput, ToolSpec};

use super::shell::request::{default_directory, must_be_directory};
use super::shell::run::{ZeroCode, program_of, report, run};

const TIMEOUT: Duration = Duration::from_secs(600);

/// The system takes strings of 128 KiB at most.
const MAX_VALUE_BYTES: usize = 100 * 1024;

/// Providers take names of 64 characters at most, our prefix included.
const MAX_NAME_CHARS: usize = 59;

/// One tool for each entry of `customTools`; those with impossible names are left out and logged.
pub fn custom_tools(configured: &BTreeMap<String, CustomToolConfig>) -> Vec<Arc<dyn Tool>> {
    let mut tools: Vec<Arc<dyn Tool>> = Vec::new();
    for (name, config) in configured {
        if is_name(name) {
            tools.push(Arc::new(Custom::new(name, config.clone())));
        } else {
            tracing::warn!(name, "customTools: a name has up to {MAX_NAME_CHARS} letters, digits, `_` and `-`");
        }
    }
    tools
}

fn is_name(name: &str) -> bool {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    !name.is_empty() && name.len() <= MAX_NAME_CHARS && name.chars().all(fits)
}

#[derive(Debug)]
struct Custom {
    spec: ToolSpec,
    config: CustomToolConfig,
}

impl Custom {
    fn new(name: &str, config: CustomToolConfig) -> Self {
        let mut parameters = config.schema.clone();
        parameters.insert("type".to_owned(), "object".into());
        parameters.entry("properties").or_insert_with(|| Map::new().into());
        Self { spec: ToolSpec::native(name, &config.description, parameters.into()), config }
    }

    async fn carry_out(&self, arguments: &Arguments, context: &ToolContext) -> Result<ToolOutput, String> {
        let properties = self.config.schema.get("properties").and_then(Value::as_object);
        let known = |name: &str| arguments.contains_key(name) || properties.is_some_and(|all| all.contains_key(name));
        let dialect = Dialect::of(&context.settings.shell);
        let (command, variables) = fill(&self.config.command, arguments, known, dialect)?;
        let directory = must_be_directory(default_directory(&context.workspace)?).await?;
        let program = program_of(context, &command, directory, variables).await?;
        let finished = run(&program, TIMEOUT, context).await?;
        Ok(report(&finished, ZeroCode::Silent, &program, Vec::new()))
    }
}

impl Tool for Custom {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn run<'a>(&'a self, arguments: Arguments, context: ToolContext) -> BoxFuture<'a, ToolOutput> {
        Box::pin(async move { self.carry_out(&arguments, &context).await.unwrap_or_else(ToolOutput::error) })
    }
}

/// How a shell writes a variable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Dialect {
    Posix,
    PowerShell,
}

/// In which quotes a place stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Quotes {
    None,
    Single,
    Double,
}

impl Dialect {
    fn of(shell: &ShellConfig) -> Self {
        let path = shell.path.as_deref().filter(|path| !path.trim().is_empty());
        let Some(path) = path else { return if cfg!(windows) { Self::PowerShell } else { Self::Posix } };
        let name = path.rsplit(['/', '\\']).next().unwrap_or_default().to_ascii_lowercase();
        let powershell = name.starts_with("pwsh") || name.starts_with("powershell");
        if powershell { Self::PowerShell } else { Self::Posix }
    }

    /// The text that stands for the variable, as one word. Were the quotes taken for others than they
    /// are, the value could be split or come out as the variable's name, but never be run.
    fn variable(self, name: &str, quotes: Quotes) -> Result<String, String> {
        match (self, quotes) {
            (Self::Posix, Quotes::None) => Ok(format!("\"${name}\"")),
            (Self::Posix, Quotes::Single) => Ok(format!("'\"${name}\"'")),
            (Self::Posix, Quotes::Double) => Ok(format!("\"\"${name}\"\"")),
            (Self::PowerShell, Quotes::None) => Ok(format!("\"${{env:{name}}}\"")),
            (Self::PowerShell, Quotes::Double) => Ok(format!("${{env:{name}}}")),
            (Self::PowerShell, Quotes::Single) => {
                Err("This tool cannot be run: a place for an argument stands in single quotes.".to_owned())
            }
        }
    }
}

/// The command with variables at its places, and the variables. Braces around a name that is not
/// `known` are none of ours.
fn fill(
    template: &str,
    arguments: &Arguments,
    known: impl Fn(&str) -> bool,
    dialect: Dialect,
) -> Result<(String, Vec<(String, String)>), String> {
    let mut command = String::with_capacity(template.len());
    let mut variables: Vec<(String, String)> = Vec::new();
    let mut quotes = Quotes::None;
    let mut rest = template;
    while let Some(start) = rest.find("{{") {
        let (before, place) = rest.split_at(start);
        quotes = quotes_after(before, quotes);
        command.push_str(before);
        let name = place[2..].find("}}").map(|end| &place[2..2 + end]);
        match name.filter(|name| known(name.trim())) {
            Some(name) => {
                let variable = format!("ECA_ARG_{}", variables.len());
                command.push_str(&dialect.variable(&variable, quotes)?);
                variables.push((variable, value_text(name.trim(), arguments.get(name.trim()))?));
                rest = &place[name.len() + 4..];
            }
            None => {
                command.push('{');
                rest = &place[1..];
            }
        }
    }
    command.push_str(rest);
    Ok((command, variables))
}

fn quotes_after(text: &str, mut quotes: Quotes) -> Quotes {
    let mut escaped = false;
    for c in text.chars() {
        quotes = match (quotes, c) {
            _ if escaped => {
                escaped = false;
                quotes
            }
            (Quotes::None | Quotes::Double, '\\') => {
                escaped = true;
                quotes
            }
            (Quotes::None, '\'') => Quotes::Single,
            (Quotes::None, '"') => Quotes::Double,
            (Quotes::Single, '\'') | (Quotes::Double, '"') => Quotes::None,
            _ => quotes,
        };
    }
    quotes
}

fn value_text(name: &str, value: Option<&Value>) -> Result<String, String> {
    let text = match value {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
    };
    if text.contains('\0') {
        Err(format!("`{name}` contains a null character."))
    } else if text.len() > MAX_VALUE_BYTES {
        Err(format!("`{name}` is longer than {} KiB; put it into a file.", MAX_VALUE_BYTES / 1024))
    } else {
        Ok(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn filled(template: &str, dialect: Dialect) -> Result<(String, Vec<String>), String> {
        let arguments = json!({"a": "x y", "n": 1.5, "flag": true, "list": [1, "b"]});
        let arguments = arguments.as_object().unwrap();
        let known = |name: &str| ["a", "n", "flag", "list", "missing"].contains(&name);
        let (command, variables) = fill(template, arguments, known, dialect)?;
        for (index, (name, _)) in variables.iter().enumerate() {
            assert_eq!(*name, format!("ECA_ARG_{index}"));
        }
        Ok((command, variables.into_iter().map(|(_, value)| value).collect()))
    }

    #[test]
    fn places_become_quoted_variables() {
        for (template, command, values) in [
            ("ls {{a}}", "ls \"$ECA_ARG_0\"", &["x y"][..]),
            ("ls {{ a }}/b", "ls \"$ECA_ARG_0\"/b", &["x y"]),
            ("ls '{{a}}'", "ls ''\"$ECA_ARG_0\"''", &["x y"]),
            ("ls \"-{{a}}-\"", "ls \"-\"\"$ECA_ARG_0\"\"-\"", &["x y"]),
            ("ls \\\"{{a}}", "ls \\\"\"$ECA_ARG_0\"", &["x y"]),
            ("it '\\' {{a}}", "it '\\' \"$ECA_ARG_0\"", &["x y"]),
            (
                "{{n}} {{flag}} {{list}} {{missing}}",
                "\"$ECA_ARG_0\" \"$ECA_ARG_1\" \"$ECA_ARG_2\" \"$ECA_ARG_3\"",
                &["1.5", "true", "[1,\"b\"]", ""],
            ),
            ("docker ps --format '{{.Names}} {{a}}'", "docker ps --format '{{.Names}} '\"$ECA_ARG_0\"''", &["x y"]),
            ("{{", "{{", &[]),
            ("{{a", "{{a", &[]),
            ("{{{a}}}", "{\"$ECA_ARG_0\"}", &["x y"]),
            ("{{other}}{{a}}", "{{other}}\"$ECA_ARG_0\"", &["x y"]),
        ] {
            let (found, found_values) = filled(template, Dialect::Posix).unwrap();
            assert_eq!(found, command, "{template}");
            assert_eq!(found_values, values, "{template}");
        }
        assert_eq!(filled("ls {{a}}", Dialect::PowerShell).unwrap().0, "ls \"${env:ECA_ARG_0}\"");
        assert_eq!(filled("ls \"{{a}}b\"", Dialect::PowerShell).unwrap().0, "ls \"${env:ECA_ARG_0}b\"");
        assert!(filled("ls '{{a}}'", Dialect::PowerShell).is_err());
    }

    #[test]
    fn the_shell_is_known_by_its_name() {
        let shell = |path: &str| {
            let mut config = crate::config::ToolCallConfig::default().shell;
            config.path = Some(path.to_owned());
            Dialect::of(&config)
        };
        assert_eq!(shell("/usr/bin/pwsh"), Dialect::PowerShell);
        assert_eq!(shell("C:\\Windows\\PowerShell.exe"), Dialect::PowerShell);
        assert_eq!(shell("/bin/zsh"), Dialect::Posix);
    }

    #[test]
    fn values_that_cannot_be_passed_are_refused() {
        assert!(value_text("x", Some(&json!("a\u{0}b"))).unwrap_err().contains("`x`"));
        assert!(value_text("x", Some(&json!("a".repeat(MAX_VALUE_BYTES + 1)))).is_err());
    }

    #[test]
    fn names_and_schemas_are_made_to_fit() {
        let config = CustomToolConfig { description: "d".to_owned(), command: "ls".to_owned(), schema: Map::new() };
        let long = "x".repeat(60);
        let all = ["good-name_1", "bad name", "", long.as_str()].map(|name| (name.to_owned(), config.clone()));
        let tools = custom_tools(&all.into());
        assert_eq!(tools.len(), 1);
        assert_eq!(tools[0].spec().full_name(), "eca__good-name_1");
        assert_eq!(*tools[0].spec().parameters, json!({"type": "object", "properties": {}}));
    }

    proptest::proptest! {
        #[test]
        fn no_value_becomes_part_of_the_command(value in ".{0,30}", template in "[a-z '\"\\\\$(){}]{0,12}\\{\\{a\\}\\}[a-z '\"]{0,6}") {
            let arguments = Map::from_iter([("a".to_owned(), Value::from(value.clone()))]);
            let other = Map::from_iter([("a".to_owned(), Value::from("other"))]);
            if let Ok((command, _)) = fill(&template, &arguments, |name| name == "a", Dialect::Posix) {
                let (same, _) = fill(&template, &other, |name| name == "a", Dialect::Posix).unwrap();
                proptest::prop_assert_eq!(command, same);
            }
        }
    }
}
