//! What is kept of a tool call beside its result, so that a chat that is opened again looks as it
//! did. The form is the store's business for years: fields are added, never changed.

use serde_json::{Map, Value, json};

use super::event::{ChatEvent, RejectReason, ToolCallEvent, ToolCallOrigin, ToolCallStage};
use super::tool_call::OpenCall;
use super::tool_call::machine::{self, Why};
use crate::base::ToolCallId;
use crate::tool::{
    Details, FileChange, ShellDetails, ShellUnit, SubagentDetails, TaskDetails, TaskItem, TaskPriority, TaskStatus,
};

impl OpenCall {
    /// What a replay needs of this call.
    pub(super) fn to_replay(&self, result: machine::Result) -> Value {
        let ChatEvent::ToolCall(event) = self.called() else { return Value::Null };
        let rejected = match result {
            machine::Result::Rejected(why) => Some(match why {
                Why::User => "user",
                Why::Config => "config",
                Why::Hook => "hook",
                Why::Stopped | Why::StreamLost => "stop",
            }),
            machine::Result::Interrupted => Some("stop"),
            machine::Result::Invalid | machine::Result::Output => None,
        };
        let took = self.outcome.as_ref().map_or(0, |outcome| outcome.took.as_millis());
        json!({"toolCall": {
            "name": event.name,
            "server": event.server,
            "origin": match event.origin { ToolCallOrigin::Mcp => "mcp", _ => "native" },
            "arguments": self.parsed,
            "summary": self.summary,
            "details": self.details.as_ref().map(details_to_json),
            "ms": u64::try_from(took).unwrap_or(u64::MAX),
            "rejected": rejected,
        }})
    }
}

/// The events that show a finished call again.
pub(super) fn tool_call_events(id: &str, extra: Option<&Value>, name: &str, text: &str, error: bool) -> Vec<ChatEvent> {
    let kept = extra.and_then(|extra| extra.get("toolCall")).and_then(Value::as_object).cloned().unwrap_or_default();
    let word = |key: &str| kept.get(key).and_then(Value::as_str).map(str::to_owned);
    let arguments: Map<String, Value> = kept.get("arguments").and_then(Value::as_object).cloned().unwrap_or_default();
    let bare = name.strip_prefix("eca__").unwrap_or(name);
    let call = |stage: ToolCallStage| {
        ChatEvent::ToolCall(Box::new(ToolCallEvent {
            id: ToolCallId::new(id),
            name: word("name").unwrap_or_else(|| bare.to_owned()),
            server: word("server").unwrap_or_else(|| crate::tool::NATIVE_SERVER.to_owned()),
            origin: if word("origin").as_deref() == Some("mcp") { ToolCallOrigin::Mcp } else { ToolCallOrigin::Native },
            summary: word("summary"),
            details: kept.get("details").and_then(details_from_json),
            stage,
        }))
    };
    let mut events = vec![
        call(ToolCallStage::Prepare { arguments_text: String::new() }),
        call(ToolCallStage::Run { arguments: arguments.clone(), manual_approval: false }),
    ];
    let reason = word("rejected").map(|word| match word.as_str() {
        "user" => RejectReason::User,
        "config" => RejectReason::Config,
        "hook" => RejectReason::Hook,
        _ => RejectReason::PromptStop,
    });
    match reason {
        Some(reason) => events.push(call(ToolCallStage::Rejected { arguments, reason })),
        None => {
            events.push(call(ToolCallStage::Running { arguments: arguments.clone() }));
            let total_ms = kept.get("ms").and_then(Value::as_u64).unwrap_or(0);
            events.push(call(ToolCallStage::Called { arguments, error, outputs: vec![text.to_owned()], total_ms }));
        }
    }
    events
}

/// Whole texts of files are not kept here: the journal has what was before.
fn details_to_json(details: &Details) -> Value {
    match details {
        Details::FileChange(change) => json!({"type": "fileChange", "path": change.path, "diff": change.diff,
            "added": change.lines_added, "removed": change.lines_removed}),
        Details::ShellCommand(shell) => json!({"type": "shellCommand", "background": shell.background,
            "commands": shell.commands.iter().map(|unit| json!({"command": unit.command, "args": unit.args,
                "key": unit.approval_key})).collect::<Vec<_>>()}),
        Details::JsonOutputs(jsons) => json!({"type": "jsonOutputs", "jsons": jsons}),
        Details::Task(tasks) => json!({"type": "task", "active": tasks.active_summary,
            "tasks": tasks.tasks.iter().map(task_to_json).collect::<Vec<_>>()}),
        Details::Subagent(subagent) => json!({"type": "subagent", "model": subagent.model, "agent": subagent.agent,
            "variant": subagent.variant, "chat": subagent.chat.as_ref().map(ToString::to_string),
            "maxSteps": subagent.max_steps, "step": subagent.step}),
    }
}

fn details_from_json(value: &Value) -> Option<Details> {
    let word = |key: &str| value.get(key).and_then(Value::as_str).map(str::to_owned);
    let number = |key: &str| value.get(key).and_then(Value::as_u64).and_then(|number| u32::try_from(number).ok());
    let list = |key: &str| value.get(key).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let texts = |values: &[Value]| values.iter().filter_map(Value::as_str).map(str::to_owned).collect::<Vec<_>>();
    Some(match value.get("type")?.as_str()? {
        "fileChange" => Details::FileChange(FileChange {
            path: word("path")?.into(),
            diff: word("diff")?,
            lines_added: number("added").unwrap_or(0),
            lines_removed: number("removed").unwrap_or(0),
            before: None,
            after: "".into(),
        }),
        "shellCommand" => Details::ShellCommand(ShellDetails {
            background: value.get("background").and_then(Value::as_bool).unwrap_or(false),
            commands: list("commands")
                .iter()
                .map(|unit| ShellUnit {
                    command: unit.get("command").and_then(Value::as_str).unwrap_or_default().to_owned(),
                    args: texts(unit.get("args").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()),
                    approval_key: unit.get("key").and_then(Value::as_str).map(str::to_owned),
                    remembered: false,
                })
                .collect(),
        }),
        "jsonOutputs" => Details::JsonOutputs(texts(list("jsons"))),
        "task" => Details::Task(TaskDetails {
            active_summary: word("active"),
            tasks: list("tasks").iter().filter_map(task_from_json).collect(),
        }),
        "subagent" => Details::Subagent(SubagentDetails {
            chat: word("chat").map(|id| crate::base::ChatId::new(id.as_str())),
            model: word("model")?,
            variant: word("variant"),
            agent: word("agent")?,
            max_steps: number("maxSteps"),
            step: number("step").unwrap_or(0),
        }),
        _ => return None,
    })
}

pub(super) fn task_to_json(task: &TaskItem) -> Value {
    json!({"id": task.id, "subject": task.subject, "description": task.description,
        "status": status_word(task.status), "priority": priority_word(task.priority), "blockedBy": task.blocked_by})
}

pub(super) fn task_from_json(value: &Value) -> Option<TaskItem> {
    let word = |key: &str| value.get(key).and_then(Value::as_str);
    Some(TaskItem {
        id: value.get("id")?.as_u64()?,
        subject: word("subject")?.to_owned(),
        description: word("description").unwrap_or_default().to_owned(),
        status: match word("status")? {
            "done" => TaskStatus::Done,
            "in-progress" => TaskStatus::InProgress,
            _ => TaskStatus::Pending,
        },
        priority: priority_from(word("priority").unwrap_or_default()).unwrap_or(TaskPriority::Medium),
        blocked_by: value
            .get("blockedBy")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(Value::as_u64)
            .collect(),
    })
}

pub(super) fn status_word(status: TaskStatus) -> &'static str {
    match status {
        TaskStatus::Pending => "pending",
        TaskStatus::InProgress => "in-progress",
        TaskStatus::Done => "done",
    }
}

pub(super) fn priority_word(priority: TaskPriority) -> &'static str {
    match priority {
        TaskPriority::High => "high",
        TaskPriority::Medium => "medium",
        TaskPriority::Low => "low",
    }
}

pub(super) fn priority_from(word: &str) -> Option<TaskPriority> {
    [TaskPriority::High, TaskPriority::Medium, TaskPriority::Low].into_iter().find(|p| priority_word(*p) == word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn details_come_back_as_they_were() {
        let task = TaskItem {
            id: 3,
            subject: "s".into(),
            description: "d".into(),
            status: TaskStatus::InProgress,
            priority: TaskPriority::Low,
            blocked_by: vec![1, 2],
        };
        for details in [
            Details::JsonOutputs(vec!["{}".into()]),
            Details::Task(TaskDetails { tasks: vec![task], active_summary: Some("a".into()) }),
            Details::ShellCommand(ShellDetails {
                commands: vec![ShellUnit {
                    command: "git".into(),
                    args: vec!["status".into()],
                    approval_key: Some("git status".into()),
                    remembered: false,
                }],
                background: true,
            }),
            Details::Subagent(SubagentDetails {
                model: "m".into(),
                agent: "a".into(),
                step: 2,
                max_steps: Some(9),
                ..SubagentDetails::default()
            }),
            Details::FileChange(FileChange {
                path: "/a".into(),
                diff: "+x".into(),
                lines_added: 1,
                lines_removed: 0,
                before: None,
                after: "".into(),
            }),
        ] {
            assert_eq!(details_from_json(&details_to_json(&details)), Some(details));
        }
        assert_eq!(details_from_json(&json!({"type": "of the future"})), None);
    }

    #[test]
    fn a_rejected_call_is_shown_as_rejected_and_one_without_details_still_shows() {
        let extra = json!({"toolCall": {"name": "shell_command", "server": "eca", "rejected": "user", "arguments": {"command": "x"}}});
        let events = tool_call_events("1", Some(&extra), "eca__shell_command", "no", true);
        let ChatEvent::ToolCall(last) = events.last().unwrap() else { panic!("a call") };
        assert!(
            matches!(&last.stage, ToolCallStage::Rejected { reason: RejectReason::User, arguments } if arguments.len() == 1)
        );
        let events = tool_call_events("1", None, "eca__grep", "out", false);
        let ChatEvent::ToolCall(last) = events.last().unwrap() else { panic!("a call") };
        assert_eq!(last.name, "grep");
        assert!(matches!(&last.stage, ToolCallStage::Called { outputs, error: false, .. } if outputs[0] == "out"));
    }
}
