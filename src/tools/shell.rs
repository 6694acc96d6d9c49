//! The tool that runs commands in a shell, in the foreground or as a background job.

pub(crate) mod clean;
pub(crate) mod confinement;
pub(crate) mod keep;
pub(crate) mod request;
pub(crate) mod run;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use serde_json::{Value, json};

use crate::process::sandbox::Confinement;
use crate::tool::{
    Access, Arguments, Details, Preview, ShellDetails, Tool, ToolContext, ToolOutput, ToolSpec, TouchedPath,
};
use crate::workspace::Workspace;

use super::git::Git;
use super::jobs::{BgJob, Jobs, NewJob, Started};
pub use confinement::{Wanted, wanted};
use request::{Request, default_directory, must_be_directory, named_directory, summary};
use run::{ZeroCode, program_of, report};

const DESCRIPTION: &str = "Runs a command in a shell, without input; returns exit code, stderr and stdout. What it \
    leaves running ends with it: for servers and watchers give `background` a short label, and the command becomes \
    a job that `bg_job` looks after. Prefer the other tools for reading, searching and changing files.";

/// A background job has so long to say something or to fail before the call returns.
const FIRST_WORDS: Duration = Duration::from_secs(2);
/// After its first output, it has so long to say more or to fail.
const SETTLE: Duration = Duration::from_millis(500);
/// A job without a label is called by its command, cut to this many characters.
const LABEL_CHARS: usize = 40;

/// The tools that run programs, apart from those of the configuration.
pub fn tools(jobs: Jobs) -> Vec<Arc<dyn Tool>> {
    vec![Arc::new(ShellCommand::new(jobs.clone())), Arc::new(BgJob::new(jobs)), Arc::new(Git::new())]
}

/// `shell_command`.
#[derive(Debug)]
pub struct ShellCommand {
    jobs: Jobs,
    spec: ToolSpec,
}

impl ShellCommand {
    pub fn new(jobs: Jobs) -> Self {
        let parameters = json!({
            "type": "object",
            "required": ["command"],
            "properties": {
                "command": {"type": "string"},
                "working_directory": {"type": "string", "description": "Where to run; default: the first workspace folder."},
                "timeout": {
                    "type": "integer",
                    "description": format!(
                        "Milliseconds; default {}, at most {}. Not for background jobs.",
                        request::DEFAULT_TIMEOUT_MS, request::MAX_TIMEOUT_MS,
                    ),
                },
                "background": {"type": "string", "description": "A label; the command then runs as a background job."},
            },
        });
        Self { jobs, spec: ToolSpec::native("shell_command", DESCRIPTION, parameters) }
    }

    async fn run_request(&self, request: Request, context: &ToolContext) -> Result<ToolOutput, String> {
        let directory = directory_of(&request, context).await?;
        let program = program_of(context, &request.command, directory, Vec::new()).await?;
        if let Some(label) = request.background {
            let label = if label.is_empty() { short_label(&request.command, context) } else { label };
            let (chat, call) = (context.chat.clone(), context.call.clone());
            return self.start_job(NewJob { label, command: request.command, chat, call, program }, context).await;
        }
        let finished = run::where_the_user_sees_it(&program, request.timeout, context).await?;
        Ok(report(&finished, ZeroCode::Shown, &program, Vec::new()))
    }

    /// Starts a job and waits for its first words. A call that is stopped meanwhile takes it along.
    async fn start_job(&self, new: NewJob, context: &ToolContext) -> Result<ToolOutput, String> {
        let (command, program) = (new.command.clone(), new.program.clone());
        let failed = |error| format!("The background job was not started: {error}.");
        let started = Started::new(&self.jobs, new).map_err(failed)?;
        tokio::select! {
            () = started.first_words(FIRST_WORDS, SETTLE) => {}
            () = context.stop.cancelled() => {
                return Ok(ToolOutput::error("The call was stopped, and the background job was killed."));
            }
        }
        let (id, told) = started.keep();
        let hint = |failed: bool, confinement: &Confinement| confinement::hint(confinement, failed, &told.output, "");
        let hint = program.confinement.as_ref().and_then(|confinement| hint(told.failed, confinement));
        let mut text = format!("{}\nCommand: {command}\nFolder: {}\n", told.state, program.directory.display());
        if !told.ended {
            text.push_str(&format!("Read its output with bg_job read_output {id}, end it with bg_job kill {id}.\n"));
        }
        text.push_str(if told.output.is_empty() { "It has printed nothing so far." } else { "Its output so far:\n" });
        text.push_str(&told.output);
        text.extend(hint.into_iter().flat_map(|hint| ["\n".to_owned(), hint]));
        Ok(ToolOutput { error: told.failed, ..ToolOutput::text(text) })
    }
}

/// Where it runs.
async fn directory_of(request: &Request, context: &ToolContext) -> Result<PathBuf, String> {
    let path = match &request.working_directory {
        Some(written) => named_directory(written, &context.workspace)?,
        None => default_directory(&context.workspace)?,
    };
    must_be_directory(path).await
}

fn short_label(command: &str, context: &ToolContext) -> String {
    summary(command, &context.workspace, LABEL_CHARS).trim_start_matches("$ ").to_owned()
}

impl Tool for ShellCommand {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn summary(&self, arguments: &Arguments) -> Option<String> {
        let command = arguments.get("command").and_then(Value::as_str);
        let shown = command.map(|command| summary(command, &Workspace::default(), LABEL_CHARS));
        Some(shown.unwrap_or_else(|| "Preparing shell command".to_owned()))
    }

    fn preview<'a>(
        &'a self,
        arguments: &'a Arguments,
        context: &'a ToolContext,
    ) -> BoxFuture<'a, Result<Preview, String>> {
        Box::pin(async move {
            let request = Request::read(arguments)?;
            let directory = directory_of(&request, context).await?;
            let named = request.working_directory.is_some();
            let paths = named.then_some(TouchedPath { path: directory, access: Access::Read }).into_iter().collect();
            let background = ShellDetails { background: true, ..ShellDetails::default() };
            Ok(Preview {
                summary: Some(summary(&request.command, &context.workspace, context.settings.shell.summary_max_length)),
                details: request.background.is_some().then_some(Details::ShellCommand(background)),
                paths,
                shell: Some(request.command),
                ..Preview::default()
            })
        })
    }

    fn run<'a>(&'a self, arguments: Arguments, context: ToolContext) -> BoxFuture<'a, ToolOutput> {
        Box::pin(async move {
            let outcome = match Request::read(&arguments) {
                Ok(request) => self.run_request(request, &context).await,
                Err(problem) => Err(problem),
            };
            outcome.unwrap_or_else(ToolOutput::error)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descriptions_are_short_since_they_are_sent_each_time() {
        for tool in tools(Jobs::default()) {
            let spec = tool.spec();
            assert!((50..=350).contains(&spec.description.len()), "{}: {}", spec.name, spec.description.len());
            assert!(spec.required().all(|name| spec.parameters["properties"].get(name).is_some()), "{}", spec.name);
        }
    }
}
