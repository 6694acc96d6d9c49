//! What a client may show of a tool call in a way of its own.

use custom_methods::ChatId;
use custom_methods::chat::{
    ChatFileChangeContent, FileChange, FileChangeDetails, FileChangeKind, JsonOutputsDetails, ShellCommand,
    ShellCommandDetails, SubagentDetails, Task, TaskDetails, TaskPriority, TaskStatus, TaskSummary, ToolCallDetails,
};

use super::MAX_OUTPUT_BYTES;
use crate::base::text;
use crate::tool::{self, Details};

pub(super) fn details(details: &Details) -> ToolCallDetails {
    match details {
        Details::FileChange(change) => FileChangeDetails {
            path: change.path.display().to_string(),
            diff: cut(&change.diff),
            lines_added: change.lines_added,
            lines_removed: change.lines_removed,
        }
        .into(),
        Details::ShellCommand(shell) => ShellCommandDetails {
            commands: shell.commands.iter().map(shell_command).collect(),
            background: shell.background.then_some(true),
        }
        .into(),
        Details::JsonOutputs(jsons) => {
            JsonOutputsDetails { jsons: jsons.iter().map(|json| cut(json)).collect() }.into()
        }
        Details::Task(tasks) => task(tasks).into(),
        Details::Subagent(subagent) => SubagentDetails {
            subagent_chat_id: subagent.chat.as_ref().map(|chat| ChatId::from(chat.as_str())),
            model: subagent.model.clone(),
            variant: subagent.variant.clone(),
            agent_name: subagent.agent.clone(),
            max_steps: subagent.max_steps,
            step: subagent.step,
        }
        .into(),
    }
}

fn shell_command(unit: &tool::ShellUnit) -> ShellCommand {
    ShellCommand {
        command: unit.command.clone(),
        args: unit.args.clone(),
        approval_key: unit.approval_key.clone(),
        remembered: unit.approval_key.is_some().then_some(unit.remembered),
    }
}

fn task(details: &tool::TaskDetails) -> TaskDetails {
    let done = |id: &u64| details.tasks.iter().any(|task| task.id == *id && task.status == tool::TaskStatus::Done);
    let tasks: Vec<Task> = details
        .tasks
        .iter()
        .map(|task| Task {
            id: task.id,
            subject: task.subject.clone(),
            description: task.description.clone(),
            status: match task.status {
                tool::TaskStatus::Pending => TaskStatus::Pending,
                tool::TaskStatus::InProgress => TaskStatus::InProgress,
                tool::TaskStatus::Done => TaskStatus::Done,
            },
            priority: match task.priority {
                tool::TaskPriority::High => TaskPriority::High,
                tool::TaskPriority::Medium => TaskPriority::Medium,
                tool::TaskPriority::Low => TaskPriority::Low,
            },
            is_blocked: task.blocked_by.iter().any(|id| !done(id)),
            blocked_by: (!task.blocked_by.is_empty()).then(|| task.blocked_by.clone()),
        })
        .collect();
    let count = |status: TaskStatus| {
        u32::try_from(tasks.iter().filter(|task| task.status == status).count()).unwrap_or(u32::MAX)
    };
    let summary = TaskSummary {
        done: count(TaskStatus::Done),
        in_progress: count(TaskStatus::InProgress),
        pending: count(TaskStatus::Pending),
        total: u32::try_from(tasks.len()).unwrap_or(u32::MAX),
    };
    let in_progress_task_ids =
        tasks.iter().filter(|task| task.status == TaskStatus::InProgress).map(|task| task.id).collect();
    TaskDetails { tasks, in_progress_task_ids, summary, active_summary: details.active_summary.clone() }
}

/// v0 knows no tool calls, but changes of files.
pub(super) fn v0_file_change(
    id: &str,
    summary: Option<&str>,
    change: &tool::FileChange,
    manual_approval: bool,
) -> ChatFileChangeContent {
    let path = change.path.display().to_string();
    let kind = if change.before.is_some() { FileChangeKind::Change } else { FileChangeKind::Create };
    ChatFileChangeContent {
        id: Some(id.into()),
        description: summary.map_or_else(|| format!("Change {path}"), str::to_owned),
        manual_approval,
        file: Some(path),
        changes: Some(vec![FileChange { kind, content: Some(cut(&change.diff)), range: None }]),
    }
}

fn cut(long: &str) -> String {
    text::prefix(long, MAX_OUTPUT_BYTES).to_owned()
}
