//! Commands that run in the background, beyond the turn that started them.

use serde::{Deserialize, Serialize};

use crate::ids::{ChatId, JobId, ToolCallId};

/// Every job.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct JobsListResult {
    pub jobs: Vec<JobSummary>,
}

/// Every job, after one of them changed.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct JobsUpdatedParams {
    pub jobs: Vec<JobSummary>,
}

/// One job.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct JobSummary {
    /// Of the form `job-1`.
    pub id: JobId,
    #[serde(rename = "type")]
    pub kind: JobType,
    pub status: JobStatus,
    pub label: String,
    /// `null` if there is none.
    pub summary: Option<String>,
    /// ISO 8601.
    pub started_at: String,
    /// For people: `5s`, `5m23s`, `1h2m`.
    pub elapsed: String,
    /// `null` while it runs.
    pub exit_code: Option<i32>,
    pub chat_id: ChatId,
    pub chat_label: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_call_id: Option<ToolCallId>,
}

closed_words! {
    /// What a job is.
    pub enum JobType {
        Shell = "shell",
    }
    /// How a job stands.
    pub enum JobStatus {
        Running = "running",
        Completed = "completed",
        Failed = "failed",
        Killed = "killed",
    }
    /// Where a line was printed.
    pub enum JobStream {
        Stdout = "stdout",
        Stderr = "stderr",
    }
}

/// Which job to end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct JobsKillParams {
    pub job_id: JobId,
}

/// Whether there was something to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobsKillResult {
    pub killed: bool,
}

/// Which job's output to return.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct JobsReadOutputParams {
    pub job_id: JobId,
}

/// What a job printed. For an unknown job there are no lines and both other fields are `null`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct JobsReadOutputResult {
    pub lines: Vec<JobLine>,
    pub status: Option<JobStatus>,
    pub exit_code: Option<i32>,
}

/// A printed line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobLine {
    pub text: String,
    pub stream: JobStream,
}
