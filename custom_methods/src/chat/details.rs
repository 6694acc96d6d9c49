//! Details of a tool call, for clients that show some tools in a way of their own.

use serde::{Deserialize, Serialize};

use crate::ids::ChatId;

tagged_union! {
    /// What there is to show besides arguments and outputs.
    pub enum ToolCallDetails: "details" by "type" {
        FileChange(FileChangeDetails) = "fileChange",
        JsonOutputs(JsonOutputsDetails) = "jsonOutputs",
        Subagent(SubagentDetails) = "subagent",
        Task(TaskDetails) = "task",
        ShellCommand(ShellCommandDetails) = "shellCommand",
    }
}

/// How a file changes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FileChangeDetails {
    pub path: String,
    /// A unified diff.
    pub diff: String,
    pub lines_added: u32,
    pub lines_removed: u32,
}

/// Outputs that are JSON, laid out for reading.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct JsonOutputsDetails {
    pub jsons: Vec<String>,
}

/// How far a subagent is. Clients find its chat by this.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SubagentDetails {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subagent_chat_id: Option<ChatId>,
    pub model: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub variant: Option<String>,
    pub agent_name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_steps: Option<u32>,
    pub step: u32,
}

/// The task list after a change.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TaskDetails {
    pub tasks: Vec<Task>,
    pub in_progress_task_ids: Vec<u64>,
    pub summary: TaskSummary,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub active_summary: Option<String>,
}

/// One task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Task {
    pub id: u64,
    pub subject: String,
    pub description: String,
    pub status: TaskStatus,
    pub priority: TaskPriority,
    pub is_blocked: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub blocked_by: Option<Vec<u64>>,
}

closed_words! {
    /// How a task stands.
    pub enum TaskStatus {
        Pending = "pending",
        InProgress = "in-progress",
        Done = "done",
    }
    /// How much a task matters.
    pub enum TaskPriority {
        High = "high",
        Medium = "medium",
        Low = "low",
    }
}

/// The tasks, counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TaskSummary {
    pub done: u32,
    pub in_progress: u32,
    pub pending: u32,
    pub total: u32,
}

/// What a shell tool runs, taken apart.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShellCommandDetails {
    pub commands: Vec<ShellCommand>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub background: Option<bool>,
}

/// One command of a command line.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ShellCommand {
    pub command: String,
    pub args: Vec<String>,
    /// Under which name a consent to this command is remembered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approval_key: Option<String>,
    /// Whether such a consent is there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remembered: Option<bool>,
}
