//! What the editor knows of the code: its problems, and where a symbol is defined and used.

mod symbol;
#[cfg(test)]
pub(super) mod testing;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::base::text::one_line;
use crate::config::Config;
use crate::host::{Capabilities, Diagnostic, HostError, Locations, Severity, SymbolPlace};
use crate::tool::{Access, Arguments, Preview, Tool, ToolContext, ToolOutput, ToolSpec, TouchedPath};

/// How soon a language server that is starting is asked again.
const ASK_AGAIN: Duration = Duration::from_secs(2);
const MOST_DIAGNOSTICS: usize = 500;
const MOST_LOCATIONS: usize = 100;
const SHOWN_SYMBOL: usize = 40;
const SHOWN_MESSAGE: usize = 1_000;
/// What to do when the editor does not help.
const INSTEAD: &str = "Use grep to look for it instead.";

/// The tools that this client can serve.
pub fn tools(capabilities: Capabilities, config: &Config) -> Vec<Arc<dyn Tool>> {
    let mut tools: Vec<Arc<dyn Tool>> = Vec::new();
    if capabilities.diagnostics {
        tools.push(Arc::new(Diagnostics::new(config.lsp_timeout)));
    }
    let navigation = config.tool_call.editor_nav;
    if capabilities.definition && navigation {
        tools.push(Arc::new(Navigation::new(Goal::Definition, config.lsp_timeout)));
    }
    if capabilities.references && navigation {
        tools.push(Arc::new(Navigation::new(Goal::References, config.lsp_timeout)));
    }
    tools
}

struct Diagnostics {
    spec: ToolSpec,
    timeout: Duration,
}

impl Diagnostics {
    fn new(timeout: Duration) -> Self {
        let description = "Lists the errors and warnings that the editor's language servers report right now, one per \
                           line as path:line:column: severity: [code] message. Check it after changing code; it is \
                           quicker than a build. Without a path it covers everything the editor knows.";
        let parameters = json!({
            "type": "object",
            "properties": {"path": {"type": "string", "description": "A file, as an absolute path. Leave out for all."}},
            "required": [],
        });
        Self { spec: ToolSpec::native("editor_diagnostics", description, parameters), timeout }
    }

    async fn report(&self, arguments: &Arguments, context: &ToolContext) -> Result<String, String> {
        let path = path(arguments, context);
        if path.as_ref().is_some_and(|path| path.is_dir()) {
            return Err("path is a directory. Name one file, or leave path out to get all diagnostics.".to_owned());
        }
        let asked = tokio::time::timeout(self.timeout, context.host.diagnostics(path)).await;
        let found = asked.unwrap_or(Err(HostError::Timeout)).map_err(|error| format!("No diagnostics: {error}."))?;
        if found.is_empty() {
            return Ok("The editor reports no problems.".to_owned());
        }
        let mut lines: Vec<String> = found.iter().take(MOST_DIAGNOSTICS).map(diagnostic_line).collect();
        if found.len() > MOST_DIAGNOSTICS {
            lines.push(format!("… and {} more", found.len() - MOST_DIAGNOSTICS));
        }
        Ok(lines.join("\n"))
    }
}

fn diagnostic_line(diagnostic: &Diagnostic) -> String {
    let severity = match diagnostic.severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Information => "information",
        Severity::Hint => "hint",
    };
    let (line, column) = diagnostic.start;
    let code = diagnostic.code.as_ref().map(|code| format!("[{code}] ")).unwrap_or_default();
    let message = one_line(&diagnostic.message, SHOWN_MESSAGE);
    format!("{}:{line}:{column}: {severity}: {code}{message}", diagnostic.path.display())
}

impl Tool for Diagnostics {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn summary(&self, arguments: &Arguments) -> Option<String> {
        let path = arguments.get("path").and_then(Value::as_str).map(Path::new).and_then(Path::file_name);
        Some(path.map_or_else(
            || "Checking diagnostics".to_owned(),
            |name| format!("Checking diagnostics: {}", name.to_string_lossy()),
        ))
    }

    fn preview<'a>(
        &'a self,
        arguments: &'a Arguments,
        context: &'a ToolContext,
    ) -> BoxFuture<'a, Result<Preview, String>> {
        let path = path(arguments, context);
        let name = path.as_deref().and_then(Path::file_name).map(|name| name.to_string_lossy().into_owned());
        let preview = Preview {
            summary: Some(format!("Checking diagnostics: {}", name.as_deref().unwrap_or("all"))),
            paths: path.into_iter().map(|path| TouchedPath { path, access: Access::Read }).collect(),
            ..Preview::default()
        };
        Box::pin(std::future::ready(Ok(preview)))
    }

    fn run<'a>(&'a self, arguments: Arguments, context: ToolContext) -> BoxFuture<'a, ToolOutput> {
        Box::pin(async move { until_stopped(&context, self.report(&arguments, &context)).await })
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Goal {
    Definition,
    References,
}

/// Definitions or references of a symbol.
struct Navigation {
    spec: ToolSpec,
    goal: Goal,
    timeout: Duration,
    ask_again: Duration,
}

impl Navigation {
    fn new(goal: Goal, timeout: Duration) -> Self {
        let (name, description) = match goal {
            Goal::Definition => (
                "editor_definition",
                "Asks the editor's language server where a symbol is defined. Give a file and a line where the symbol \
                 stands. More precise than grep, since scopes and imports are resolved. Answers with \
                 path:line:column: text.",
            ),
            Goal::References => (
                "editor_references",
                "Asks the editor's language server where a symbol is used. Give a file and a line where the symbol \
                 stands. Use it before renaming or changing something; comments and other symbols of the same name \
                 are not listed. Answers with path:line:column: text, at most 100.",
            ),
        };
        let mut properties = json!({
            "path": {"type": "string", "description": "The file, as an absolute path."},
            "line": {"type": "integer", "description": "The line, counted from 1."},
            "symbol": {"type": "string", "description": "The symbol as it stands on that line."},
            "character": {
                "type": "integer",
                "description": "Where on the line, counted from 1, if it stands there more than once.",
            },
        });
        if goal == Goal::References {
            properties["include_declaration"] =
                json!({"type": "boolean", "description": "Whether the declaration counts too; true by default."});
        }
        let parameters = json!({"type": "object", "properties": properties, "required": ["path", "line", "symbol"]});
        Self { spec: ToolSpec::native(name, description, parameters), goal, timeout, ask_again: ASK_AGAIN }
    }

    async fn look(&self, arguments: &Arguments, context: &ToolContext) -> Result<String, String> {
        let path = path(arguments, context).ok_or("path must name a file.")?;
        let symbol = text(arguments, "symbol").ok_or("symbol must not be empty.")?;
        let line = number(arguments, "line").filter(|line| *line > 0).ok_or("line must be a number from 1 on.")?;
        let unsaved = context.host.unsaved(context.chat.clone(), path.clone()).await;
        let source = match unsaved {
            Some(unsaved) => symbol::line_of(&unsaved, line),
            None => symbol::read_line(path.clone(), line).await,
        };
        let source = source.map_err(|problem| format!("{}: {problem}.", path.display()))?;
        let column = symbol::column(&source, symbol, number(arguments, "character")).ok_or_else(|| {
            format!("\"{symbol}\" does not stand on line {line}, which is: {}", one_line(&source, 200))
        })?;
        let place = SymbolPlace { path, line, column };
        let include = arguments.get("include_declaration").and_then(Value::as_bool).unwrap_or(true);
        let found = self.ask(&place, include, context).await.map_err(|why| format!("{why} {INSTEAD}"))?;
        if found.is_empty() {
            return Err(format!("The language server knows nothing about \"{symbol}\" there. {INSTEAD}"));
        }
        let omitted = found.len().saturating_sub(MOST_LOCATIONS);
        let mut lines = symbol::shown(found.into_iter().take(MOST_LOCATIONS).collect()).await;
        if omitted > 0 {
            lines.push(format!("… and {omitted} more"));
        }
        Ok(lines.join("\n"))
    }

    /// Asks until the language server has started, within the time that it has.
    async fn ask(
        &self,
        place: &SymbolPlace,
        include_declaration: bool,
        context: &ToolContext,
    ) -> Result<Vec<crate::host::Location>, String> {
        let deadline = Instant::now() + self.timeout;
        loop {
            let answer = match self.goal {
                Goal::Definition => context.host.definition(place.clone()),
                Goal::References => context.host.references(place.clone(), include_declaration),
            };
            let answer = tokio::time::timeout_at(deadline, answer).await.unwrap_or(Err(HostError::Timeout));
            match answer.map_err(|error| format!("{}.", capitalized(&error.to_string())))? {
                Locations::Found(found) => return Ok(found),
                Locations::Starting if Instant::now() + self.ask_again < deadline => {
                    tokio::time::sleep(self.ask_again).await;
                }
                Locations::Starting => return Err("The language server is still starting.".to_owned()),
                Locations::NoServer => return Err("The editor has no language server for this file.".to_owned()),
                Locations::Failed(why) => {
                    return Err(format!("The language server failed: {}.", one_line(&why, 200)));
                }
            }
        }
    }
}

impl Tool for Navigation {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn summary(&self, arguments: &Arguments) -> Option<String> {
        let what = if self.goal == Goal::Definition { "definition" } else { "references" };
        let symbol = one_line(text(arguments, "symbol").unwrap_or_default(), SHOWN_SYMBOL);
        Some(if symbol.is_empty() { format!("LSP {what}") } else { format!("LSP {what}: {symbol}") })
    }

    fn preview<'a>(
        &'a self,
        arguments: &'a Arguments,
        context: &'a ToolContext,
    ) -> BoxFuture<'a, Result<Preview, String>> {
        let preview = Preview {
            summary: self.summary(arguments),
            paths: path(arguments, context)
                .into_iter()
                .map(|path| TouchedPath { path, access: Access::Read })
                .collect(),
            ..Preview::default()
        };
        Box::pin(std::future::ready(Ok(preview)))
    }

    fn run<'a>(&'a self, arguments: Arguments, context: ToolContext) -> BoxFuture<'a, ToolOutput> {
        Box::pin(async move { until_stopped(&context, self.look(&arguments, &context)).await })
    }
}

async fn until_stopped(context: &ToolContext, work: impl Future<Output = Result<String, String>>) -> ToolOutput {
    tokio::select! {
        () = context.stop.cancelled() => ToolOutput::error("The call was stopped."),
        result = work => result.map_or_else(ToolOutput::error, ToolOutput::text),
    }
}

/// The path that is meant: a relative one begins at the first folder that has it.
fn path(arguments: &Arguments, context: &ToolContext) -> Option<PathBuf> {
    let written = Path::new(text(arguments, "path")?);
    if written.is_absolute() {
        return Some(written.to_owned());
    }
    let roots = context.workspace.roots();
    let mut candidates = roots.iter().map(|root| root.path.join(written));
    let first = candidates.next()?;
    if first.exists() { Some(first) } else { Some(candidates.find(|path| path.exists()).unwrap_or(first)) }
}

fn text<'a>(arguments: &'a Arguments, name: &str) -> Option<&'a str> {
    arguments.get(name).and_then(Value::as_str).map(str::trim).filter(|text| !text.is_empty())
}

/// Models write numbers as text now and then.
fn number(arguments: &Arguments, name: &str) -> Option<u64> {
    let value = arguments.get(name)?;
    value.as_u64().or_else(|| value.as_str()?.trim().parse().ok())
}

fn capitalized(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}

#[cfg(test)]
mod tests;
