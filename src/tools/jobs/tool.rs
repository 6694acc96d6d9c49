//! The tool that looks after background jobs.

use futures_util::future::BoxFuture;
use serde_json::{Value, json};

use crate::tool::{Arguments, Preview, Tool, ToolContext, ToolOutput, ToolSpec};

use super::{JobId, Jobs, words};

const DESCRIPTION: &str = "Looks after background jobs, which `shell_command` starts with `background`. \
    `list` shows them, `read_output` returns what a job printed since it was last read, `kill` ends a job and \
    everything it started. You are told when a job ends, so there is no need to ask again and again.";

/// `bg_job`.
#[derive(Debug)]
pub struct BgJob {
    jobs: Jobs,
    spec: ToolSpec,
}

/// What a call asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Action {
    List,
    ReadOutput(JobId),
    Kill(JobId),
}

impl BgJob {
    pub fn new(jobs: Jobs) -> Self {
        let parameters = json!({
            "type": "object",
            "required": ["action"],
            "properties": {
                "action": {"type": "string", "enum": ["list", "read_output", "kill"]},
                "job_id": {"type": "string", "description": "Such as job-1; not needed to list."},
            },
        });
        Self { jobs, spec: ToolSpec::native("bg_job", DESCRIPTION, parameters) }
    }

    fn carry_out(&self, action: Action, context: &ToolContext) -> ToolOutput {
        match action {
            Action::List => self.list(context),
            Action::ReadOutput(id) => {
                // What another chat's model still has to read is not taken away from it.
                let own = self.jobs.list().iter().any(|job| job.id == id && job.chat == context.chat);
                let reading = if own { self.jobs.read_output(id) } else { self.jobs.peek(id) };
                reading.map_or_else(|| unknown(id), |reading| ToolOutput::text(words::reading(id, &reading)))
            }
            Action::Kill(id) if self.jobs.kill(id) => {
                self.jobs.set_reported(id);
                ToolOutput::text(format!("{id} was killed, with everything it started."))
            }
            Action::Kill(id) => match self.jobs.peek(id) {
                Some(job) => ToolOutput::error(format!("{id} does not run any more: it is {}.", job.status.word())),
                None => unknown(id),
            },
        }
    }

    fn list(&self, context: &ToolContext) -> ToolOutput {
        let listed: Vec<String> =
            self.jobs.list().iter().map(|job| words::listed(job, job.chat != context.chat)).collect();
        if listed.is_empty() {
            return ToolOutput::text("There are no background jobs.");
        }
        ToolOutput::text(listed.join("\n"))
    }
}

fn unknown(id: JobId) -> ToolOutput {
    ToolOutput::error(format!("There is no {id}; jobs that have ended are forgotten once you know of it."))
}

impl Action {
    fn read(arguments: &Arguments) -> Result<Self, String> {
        let job = || match arguments.get("job_id") {
            Some(Value::String(text)) => {
                JobId::parse(text).ok_or_else(|| format!("{text:?} is no job; they are called job-1 and so on."))
            }
            Some(Value::Number(number)) => {
                JobId::parse(&number.to_string()).ok_or_else(|| format!("{number} is no job."))
            }
            _ => Err("`job_id` is needed; `list` shows which jobs there are.".to_owned()),
        };
        match arguments.get("action").and_then(Value::as_str) {
            Some("list") => Ok(Self::List),
            Some("read_output") => Ok(Self::ReadOutput(job()?)),
            Some("kill") => Ok(Self::Kill(job()?)),
            _ => Err("`action` must be list, read_output or kill.".to_owned()),
        }
    }

    fn summary(self) -> String {
        match self {
            Self::List => "Listing background jobs".to_owned(),
            Self::ReadOutput(id) => format!("Reading output of {id}"),
            Self::Kill(id) => format!("Killing {id}"),
        }
    }
}

impl Tool for BgJob {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn summary(&self, arguments: &Arguments) -> Option<String> {
        Some(Action::read(arguments).map_or_else(|_| "Looking at background jobs".to_owned(), Action::summary))
    }

    fn preview<'a>(&'a self, arguments: &'a Arguments, _: &'a ToolContext) -> BoxFuture<'a, Result<Preview, String>> {
        let preview =
            Action::read(arguments).map(|action| Preview { summary: Some(action.summary()), ..Preview::default() });
        Box::pin(std::future::ready(preview))
    }

    fn run<'a>(&'a self, arguments: Arguments, context: ToolContext) -> BoxFuture<'a, ToolOutput> {
        let output = match Action::read(&arguments) {
            Ok(action) => self.carry_out(action, &context),
            Err(problem) => ToolOutput::error(problem),
        };
        Box::pin(std::future::ready(output))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn actions_are_understood_or_refused() {
        let read = |value: Value| Action::read(value.as_object().unwrap());
        assert_eq!(read(json!({"action": "list"})), Ok(Action::List));
        assert_eq!(read(json!({"action": "kill", "job_id": "job-3"})), Ok(Action::Kill(JobId(3))));
        assert_eq!(read(json!({"action": "read_output", "job_id": 3})), Ok(Action::ReadOutput(JobId(3))));
        assert_eq!(read(json!({"action": "read_output", "job_id": " 3 "})), Ok(Action::ReadOutput(JobId(3))));
        for bad in [
            json!({}),
            json!({"action": "stop"}),
            json!({"action": "kill"}),
            json!({"action": "kill", "job_id": "job-x"}),
            json!({"action": "kill", "job_id": -1}),
        ] {
            assert!(read(bad.clone()).is_err(), "{bad}");
        }
    }
}
