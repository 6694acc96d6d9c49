//! The tool for `git` and `gh`: commands that never wait for a terminal, a pager or an editor.

use std::path::PathBuf;
use std::time::Duration;

use futures_util::future::BoxFuture;
use serde_json::{Value, json};

use crate::base::text::one_line;
use crate::tool::{Access, Arguments, Preview, Tool, ToolContext, ToolOutput, ToolSpec, TouchedPath};

use super::shell::request::{command, default_directory, leading_cd, must_be_directory, named_directory, text};
use super::shell::run::{Finished, ZeroCode, program_of, report, run};

const DESCRIPTION: &str = "Runs a git or gh command, such as `git status` or `cd sub && gh pr view`. There is no \
    editor: give a longer message on stdin, as in `git commit -F - <<'EOF'`. Write messages in the style of the \
    repository, only about the change. Commit, push or change history only when the user asks for it.";

const TIMEOUT: Duration = Duration::from_secs(120);

const OPERATIONS: [&str; 15] = [
    "status",
    "diff",
    "log",
    "add",
    "commit",
    "push",
    "branch",
    "checkout",
    "merge",
    "rebase",
    "stash",
    "pr_create",
    "pr_view",
    "pr_comment",
    "gh",
];

/// Operations for which git proposes a message that needs no change.
const PROPOSES_MESSAGE: [&str; 2] = ["merge", "rebase"];

/// Fails with a word of advice; git appends the file to be edited.
const NO_EDITOR: &str = "echo 'There is no editor here: pass the text with -m or -F.' >&2; false";

/// `git`.
#[derive(Debug)]
pub struct Git {
    spec: ToolSpec,
}

/// What a call asks for.
#[derive(Debug, PartialEq, Eq)]
struct Request {
    command: String,
    /// Where the command goes first.
    folder: Option<String>,
    operation: String,
    summary: Option<String>,
}

impl Request {
    fn read(arguments: &Arguments) -> Result<Self, String> {
        let command = command(arguments)?;
        let (folder, rest) = match leading_cd(&command) {
            Some((folder, rest)) => (Some(folder), rest),
            None => (None, command.trim_start()),
        };
        if !["git", "gh"].iter().any(|name| rest.strip_prefix(name).is_some_and(|rest| rest.starts_with([' ', '\t']))) {
            return Err("`command` must begin with `git ` or `gh `, after `cd <folder> &&` at most.".to_owned());
        }
        let operation = text(arguments, "operation")?.map(str::trim);
        let Some(operation) = operation.filter(|operation| OPERATIONS.contains(operation)) else {
            return Err(format!("`operation` must be one of: {}.", OPERATIONS.join(", ")));
        };
        let (operation, summary) = (operation.to_owned(), text(arguments, "summary")?.map(str::to_owned));
        Ok(Self { folder, operation, summary, command })
    }

    fn summary(&self) -> String {
        summary(&self.operation, self.summary.as_deref())
    }

    fn variables(&self) -> Vec<(String, String)> {
        let editor = if PROPOSES_MESSAGE.contains(&self.operation.as_str()) { "true" } else { NO_EDITOR };
        [
            ("GIT_TERMINAL_PROMPT", "0"),
            ("GIT_PAGER", "cat"),
            ("PAGER", "cat"),
            ("GH_PAGER", "cat"),
            ("GH_PROMPT_DISABLED", "1"),
            ("GIT_EDITOR", editor),
            ("GIT_SEQUENCE_EDITOR", NO_EDITOR),
            ("GH_EDITOR", "false"),
        ]
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .into()
    }
}

fn summary(operation: &str, purpose: Option<&str>) -> String {
    let operation = one_line(operation, 20);
    match purpose {
        Some(purpose) => format!("Git {operation}: {}", one_line(purpose, 80)),
        None => format!("Git {operation}"),
    }
}

/// A common slip: a text in quotes inside of `$(cat <<EOF …)`, where one apostrophe ends it all.
fn heredoc_hint(command: &str, finished: &Finished) -> Option<String> {
    let unmatched = finished.stderr.contains("unexpected EOF while looking for matching");
    let inside = command.find("$(").is_some_and(|at| command[at..].contains("<<"));
    (unmatched && inside).then(|| {
        "Note: the shell stumbles over quotes in a here-document inside of $(…). \
         Pass the text on stdin instead: git commit -F - <<'EOF'"
            .to_owned()
    })
}

impl Git {
    pub fn new() -> Self {
        let parameters = json!({
            "type": "object",
            "required": ["command", "operation"],
            "properties": {
                "command": {"type": "string"},
                "operation": {"type": "string", "enum": OPERATIONS},
                "summary": {"type": "string", "description": "A few words for the user about what it does."},
            },
        });
        Self { spec: ToolSpec::native("git", DESCRIPTION, parameters) }
    }

    async fn run_request(&self, request: Request, context: &ToolContext) -> Result<ToolOutput, String> {
        let directory = must_be_directory(default_directory(&context.workspace)?).await?;
        let program = program_of(context, &request.command, directory, request.variables()).await?;
        let finished = run(&program, TIMEOUT, context).await?;
        let notes = heredoc_hint(&request.command, &finished).into_iter().collect();
        Ok(report(&finished, ZeroCode::Shown, &program, notes))
    }
}

impl Default for Git {
    fn default() -> Self {
        Self::new()
    }
}

impl Tool for Git {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn summary(&self, arguments: &Arguments) -> Option<String> {
        let named = |name: &str| arguments.get(name).and_then(Value::as_str).map(str::to_owned);
        let Some(operation) = named("operation") else { return Some("Preparing git operation".to_owned()) };
        Some(summary(&operation, named("summary").as_deref()))
    }

    fn preview<'a>(
        &'a self,
        arguments: &'a Arguments,
        context: &'a ToolContext,
    ) -> BoxFuture<'a, Result<Preview, String>> {
        let preview = Request::read(arguments).and_then(|request| {
            let folder = request.folder.as_deref().map(|folder| named_directory(folder, &context.workspace));
            let touched = |path: PathBuf| TouchedPath { path, access: Access::Read };
            Ok(Preview {
                summary: Some(request.summary()),
                paths: folder.transpose()?.map(touched).into_iter().collect(),
                shell: Some(request.command),
                ..Preview::default()
            })
        });
        Box::pin(std::future::ready(preview))
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
    use crate::tools::shell::run::Ending;
    use serde_json::Value;

    fn read(value: &Value) -> Result<Request, String> {
        Request::read(value.as_object().unwrap())
    }

    #[test]
    fn only_git_and_gh_are_run() {
        for (command, folder) in [
            ("git status", None),
            ("  gh pr view 1", None),
            ("git\tlog", None),
            ("cd sub && git diff", Some("sub")),
            ("cd '/a b'; gh issue list", Some("/a b")),
        ] {
            let request = read(&json!({"command": command, "operation": "status"})).unwrap();
            assert_eq!(request.folder.as_deref(), folder, "{command}");
        }
        for command in
            ["ls", "gitk --all", "git", "X=1 git status", "cd a && ls", "cd a && cd b && git log", "sudo git x"]
        {
            assert!(read(&json!({"command": command, "operation": "status"})).is_err(), "{command}");
        }
        for operation in [json!("shell"), json!(null), json!(1)] {
            assert!(read(&json!({"command": "git status", "operation": operation})).is_err(), "{operation}");
        }
    }

    #[test]
    fn summaries_name_the_operation() {
        let request = read(&json!({"command": "git add .", "operation": "add", "summary": "the\nfix"})).unwrap();
        assert_eq!(request.summary(), "Git add: the fix");
        let request = read(&json!({"command": "git add .", "operation": "add"})).unwrap();
        assert_eq!(request.summary(), "Git add");
    }

    #[test]
    fn an_editor_is_only_told_to_leave_proposed_messages() {
        let editor = |operation: &str| {
            let request = read(&json!({"command": "git x", "operation": operation})).unwrap();
            request.variables().into_iter().find(|(name, _)| name == "GIT_EDITOR").unwrap().1
        };
        assert_eq!((editor("merge").as_str(), editor("commit").as_str()), ("true", NO_EDITOR));
    }

    #[test]
    fn the_hint_about_here_documents_comes_when_it_fits() {
        let finished =
            |stderr: &str| Finished { ending: Ending::Code(2), stdout: String::new(), stderr: stderr.to_owned() };
        let eof = finished("bash: -c: line 1: unexpected EOF while looking for matching `\"'");
        assert!(heredoc_hint("git commit -m \"$(cat <<EOF\nit's\nEOF\n)\"", &eof).is_some());
        assert!(heredoc_hint("git commit -m \"x", &eof).is_none());
        assert!(heredoc_hint("git commit -m \"$(cat <<EOF\nx\nEOF\n)\"", &finished("fatal: x")).is_none());
    }
}
