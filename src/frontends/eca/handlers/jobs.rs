//! Background jobs: what runs beside the chats, and how to end it.

use custom_methods::Empty;
use custom_methods::jobs::{
    JobLine as WireLine, JobStatus as WireStatus, JobStream, JobSummary, JobType, JobsKillParams, JobsKillResult,
    JobsListResult, JobsReadOutputParams, JobsReadOutputResult, JobsUpdatedParams,
};
use custom_methods::methods::{JobsKill, JobsList, JobsReadOutput, JobsUpdated};
use tower_lsp::jsonrpc::Result;

use super::super::client::Client;
use super::super::service::{Answer, EcaServer};
use super::super::to_wire::wire_chat_id;
use crate::base::time::iso8601;
use crate::engine::{Engine, Titles};
use crate::tools::jobs::{self, JobId, JobStatus, JobView, Jobs};

impl Answer<JobsList> for EcaServer {
    async fn answer(&self, _: Empty) -> Result<JobsListResult> {
        let engine = self.engine()?;
        Ok(JobsListResult { jobs: summaries(&engine.jobs(), &engine.titles()).await })
    }
}

impl Answer<JobsKill> for EcaServer {
    async fn answer(&self, params: JobsKillParams) -> Result<JobsKillResult> {
        let jobs = self.engine()?.jobs();
        Ok(JobsKillResult { killed: JobId::parse(&params.job_id.0).is_some_and(|id| jobs.kill(id)) })
    }
}

impl Answer<JobsReadOutput> for EcaServer {
    async fn answer(&self, params: JobsReadOutputParams) -> Result<JobsReadOutputResult> {
        let running = self.engine()?.jobs();
        let Some(reading) = JobId::parse(&params.job_id.0).and_then(|id| running.peek(id)) else {
            return Ok(JobsReadOutputResult { lines: Vec::new(), status: None, exit_code: None });
        };
        let line = |line: jobs::JobLine| WireLine {
            text: line.text,
            stream: match line.stream {
                jobs::JobStream::Stdout => JobStream::Stdout,
                jobs::JobStream::Stderr => JobStream::Stderr,
            },
        };
        Ok(JobsReadOutputResult {
            lines: reading.lines.into_iter().map(line).collect(),
            status: Some(status(reading.status)),
            exit_code: reading.exit_code,
        })
    }
}

/// Tells the client of every change, as long as the engine lives.
pub(in super::super) async fn tell_changes(client: Client, engine: Engine) {
    let (jobs, titles) = (engine.jobs(), engine.titles());
    let mut changes = jobs.changes();
    drop(engine);
    while changes.changed().await.is_ok() {
        client.notify::<JobsUpdated>(&JobsUpdatedParams { jobs: summaries(&jobs, &titles).await }).await;
    }
}

async fn summaries(jobs: &Jobs, titles: &Titles) -> Vec<JobSummary> {
    let mut summaries = Vec::new();
    for job in jobs.list() {
        // A chat without a title is still told apart from others.
        let label = titles.of(&job.chat).await.filter(|title| !title.trim().is_empty());
        let label = label.unwrap_or_else(|| job.chat.to_string());
        summaries.push(summary(job, label));
    }
    summaries
}

fn summary(job: JobView, chat_label: String) -> JobSummary {
    JobSummary {
        id: custom_methods::JobId(job.id.to_string()),
        kind: JobType::Shell,
        status: status(job.status),
        label: job.label,
        summary: Some(job.command),
        started_at: iso8601(job.started_at),
        elapsed: job.elapsed,
        exit_code: job.exit_code,
        chat_id: wire_chat_id(&job.chat),
        chat_label,
        tool_call_id: Some(job.call.as_str().into()),
    }
}

fn status(status: JobStatus) -> WireStatus {
    match status {
        JobStatus::Running => WireStatus::Running,
        JobStatus::Completed => WireStatus::Completed,
        JobStatus::Failed => WireStatus::Failed,
        JobStatus::Killed => WireStatus::Killed,
    }
}
