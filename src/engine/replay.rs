//! A chat from the store as it was shown: what is kept of tool calls beside their results, and the
//! events that show everything again.

use serde_json::{Value, json};

use super::event::{ChatEvent, RejectReason, ToolCallEvent, ToolCallOrigin, ToolCallStage};
use super::tool_call::OpenCall;
use super::tool_call::machine::{self, Why};
use crate::base::{ChatId, ToolCallId};
use crate::llm::{Message, Part};
use crate::store::{CallRecord, MessageExtra, MessageKind, StoredEntry, StoredFlag};
use crate::tool::{
    Details, FileChange, NATIVE_SERVER, ShellDetails, ShellUnit, SubagentDetails, TaskDetails, TaskItem, TaskPriority,
    TaskStatus,
};

impl OpenCall {
    /// What a replay needs of this call, as the store keeps it.
    pub(super) fn to_replay(&self, result: machine::Result) -> Option<Value> {
        let ChatEvent::ToolCall(event) = self.called() else { return None };
        let rejected = match result {
            machine::Result::Rejected(why) => Some(reject_word(why)),
            machine::Result::Interrupted => Some(reject_word(Why::Stopped)),
            machine::Result::Invalid | machine::Result::Output => None,
        };
        let took = self.outcome.as_ref().map(|outcome| outcome.took.as_millis());
        let subagent_chat = match &self.details {
            Some(Details::Subagent(subagent)) => subagent.chat.as_ref().map(ToString::to_string),
            _ => None,
        };
        let record = CallRecord {
            id: self.id.to_string(),
            name: event.name,
            server: event.server,
            origin: if event.origin == ToolCallOrigin::Mcp { "mcp" } else { "native" }.to_owned(),
            arguments: self.parsed.clone(),
            summary: self.summary.clone(),
            details: self.details.as_ref().map(details_to_json),
            total_time_ms: took.and_then(|took| u64::try_from(took).ok()),
            rejected: rejected.map(str::to_owned),
            subagent_chat,
        };
        MessageExtra { calls: vec![record], ..MessageExtra::default() }.to_value()
    }
}

fn reject_word(why: Why) -> &'static str {
    match why {
        Why::User => "user-choice",
        Why::Config => "user-config",
        Why::Hook => "hook-rejected",
        Why::Stopped | Why::StreamLost => "user-prompt-stop",
    }
}

/// The events that show these messages again. Nothing in them is in progress.
pub(super) fn events(entries: &[StoredEntry], flags: &[StoredFlag]) -> Vec<ChatEvent> {
    let mut events = Vec::new();
    // A flag at the very beginning, or behind a message that is not on this page.
    let first = entries.first().map_or(i64::MAX, |entry| entry.seq);
    events.extend(flags.iter().filter(|flag| flag.after < first).map(flag_event));
    for (at, entry) in entries.iter().enumerate() {
        match entry.kind {
            MessageKind::User => user_events(entry, &mut events),
            MessageKind::Assistant => answer_events(entry, &entries[at + 1..], &mut events),
            MessageKind::ToolResult => result_events(entry, &entries[..at], &mut events),
            MessageKind::Marker => {
                let extra = MessageExtra::read(entry.extra.as_ref());
                let by = if extra.compaction.is_some_and(|compaction| compaction.auto) { " automatically" } else { "" };
                events.push(ChatEvent::SystemText(format!("\n\nThe chat was compacted{by} here.\n\n")));
            }
            MessageKind::SystemNote => {
                events.push(ChatEvent::SystemText(text_of(&entry.message)));
            }
            MessageKind::Other(_) => {}
        }
        events.extend(flags.iter().filter(|flag| flag.after == entry.seq).map(flag_event));
    }
    events
}

fn flag_event(flag: &StoredFlag) -> ChatEvent {
    ChatEvent::Flag { text: flag.text.clone(), content_id: flag.content_id.clone() }
}

fn text_of(message: &Message) -> String {
    let texts = message.parts.iter().filter_map(|part| match part {
        Part::Text(text) => Some(text.as_str()),
        _ => None,
    });
    texts.collect::<Vec<_>>().join("\n")
}

const TYPED: &str = "typed";

/// What is kept of a command that became a longer message for the model.
pub(super) fn typed_extra(typed: &str) -> Option<Value> {
    let mut extra = MessageExtra::default();
    extra.other.insert(TYPED.to_owned(), Value::from(typed));
    extra.to_value()
}

/// What the user wrote stands last, behind what it is about.
fn user_events(entry: &StoredEntry, events: &mut Vec<ChatEvent>) {
    let extra = MessageExtra::read(entry.extra.as_ref());
    let typed = extra.other.get(TYPED).and_then(Value::as_str).map(str::to_owned);
    let last = entry.message.parts.iter().rev().find_map(|part| match part {
        Part::Text(text) => Some(text.clone()),
        _ => None,
    });
    match (typed.or(last), &entry.content_id) {
        (Some(text), Some(content_id)) => {
            events.push(ChatEvent::UserText { text: format!("{text}\n"), content_id: content_id.clone() });
        }
        (Some(text), None) => events.push(ChatEvent::SystemText(text)),
        (None, _) => {}
    }
}

fn answer_events(entry: &StoredEntry, later: &[StoredEntry], events: &mut Vec<ChatEvent>) {
    let extra = MessageExtra::read(entry.extra.as_ref());
    let mut thoughts = extra.reasoning_ms.iter();
    for part in &entry.message.parts {
        match part {
            Part::Text(text) => events.push(ChatEvent::Text(text.clone())),
            Part::Image(image) => {
                events.push(ChatEvent::Image { media_type: image.media_type.clone(), base64: image.base64.clone() });
            }
            Part::Reasoning { text, .. } if !text.is_empty() => {
                let id = uuid::Uuid::new_v4().to_string();
                let total_ms = thoughts.next().copied().flatten().unwrap_or(0);
                events.push(ChatEvent::ReasonStarted { id: id.clone() });
                events.push(ChatEvent::ReasonText { id: id.clone(), text: text.clone() });
                events.push(ChatEvent::ReasonFinished { id, total_ms });
            }
            // A call is shown with its result. One that never got any ended with the server.
            Part::ToolCall { id, name, .. } if !is_answered(id, later) => {
                let record = extra.calls.iter().find(|record| record.id == *id);
                let lost = CallRecord { rejected: Some(reject_word(Why::Stopped).to_owned()), ..CallRecord::default() };
                call_events(id, name, Some(record.unwrap_or(&lost)), "", true, events);
            }
            Part::Reasoning { .. } | Part::ToolCall { .. } | Part::ToolResult { .. } | Part::Opaque(_) => {}
        }
    }
}

fn is_answered(id: &str, later: &[StoredEntry]) -> bool {
    let mut parts = later.iter().flat_map(|entry| &entry.message.parts);
    parts.any(|part| matches!(part, Part::ToolResult { call_id, .. } if call_id == id))
}

fn result_events(entry: &StoredEntry, earlier: &[StoredEntry], events: &mut Vec<ChatEvent>) {
    let extra = MessageExtra::read(entry.extra.as_ref());
    for part in &entry.message.parts {
        let Part::ToolResult { call_id, text, images, error } = part else { continue };
        let record = extra.calls.iter().find(|record| record.id == *call_id);
        let mut calls = earlier.iter().rev().flat_map(|entry| &entry.message.parts);
        let name = calls.find_map(|part| match part {
            Part::ToolCall { id, name, .. } if id == call_id => Some(name.as_str()),
            _ => None,
        });
        call_events(call_id, name.unwrap_or_default(), record, text, *error, events);
        for image in images {
            events.push(ChatEvent::Image { media_type: image.media_type.clone(), base64: image.base64.clone() });
        }
    }
}

/// A finished call, from its beginning to its end.
fn call_events(
    id: &str,
    name: &str,
    record: Option<&CallRecord>,
    text: &str,
    error: bool,
    events: &mut Vec<ChatEvent>,
) {
    let nothing = CallRecord::default();
    let record = record.unwrap_or(&nothing);
    let or = |kept: &str, otherwise: &str| if kept.is_empty() { otherwise.to_owned() } else { kept.to_owned() };
    let call = |stage: ToolCallStage| {
        ChatEvent::ToolCall(Box::new(ToolCallEvent {
            id: ToolCallId::new(id),
            name: or(&record.name, name.strip_prefix("eca__").unwrap_or(name)),
            server: or(&record.server, NATIVE_SERVER),
            origin: if record.origin == "mcp" { ToolCallOrigin::Mcp } else { ToolCallOrigin::Native },
            summary: record.summary.clone(),
            details: record.details.as_ref().and_then(details_from_json),
            stage,
        }))
    };
    let arguments = record.arguments.clone();
    events.push(call(ToolCallStage::Prepare { arguments_text: String::new() }));
    events.push(call(ToolCallStage::Run { arguments: arguments.clone(), manual_approval: false }));
    let reason = record.rejected.as_deref().map(|word| match word {
        "user-choice" => RejectReason::User,
        "user-config" => RejectReason::Config,
        "hook-rejected" => RejectReason::Hook,
        _ => RejectReason::PromptStop,
    });
    match reason {
        Some(reason) => events.push(call(ToolCallStage::Rejected { arguments, reason })),
        None => {
            events.push(call(ToolCallStage::Running { arguments: arguments.clone() }));
            let (outputs, total_ms) = (vec![text.to_owned()], record.total_time_ms.unwrap_or(0));
            events.push(call(ToolCallStage::Called { arguments, error, outputs, total_ms }));
        }
    }
}

/// Whole texts of files are not kept here: the journal has what was before.
fn details_to_json(details: &Details) -> Value {
    match details {
        Details::FileChange(change) => json!({"type": "fileChange", "path": change.path, "diff": change.diff,
            "linesAdded": change.lines_added, "linesRemoved": change.lines_removed}),
        Details::ShellCommand(shell) => json!({"type": "shellCommand", "background": shell.background,
            "commands": shell.commands.iter().map(|unit| json!({"command": unit.command, "args": unit.args,
                "approvalKey": unit.approval_key})).collect::<Vec<_>>()}),
        Details::JsonOutputs(jsons) => json!({"type": "jsonOutputs", "jsons": jsons}),
        Details::Task(tasks) => json!({"type": "task", "activeSummary": tasks.active_summary,
            "tasks": tasks.tasks.iter().map(task_to_json).collect::<Vec<_>>()}),
        Details::Subagent(subagent) => json!({"type": "subagent", "model": subagent.model, "agentName": subagent.agent,
            "variant": subagent.variant, "subagentChatId": subagent.chat.as_ref().map(ToString::to_string),
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
            lines_added: number("linesAdded").unwrap_or(0),
            lines_removed: number("linesRemoved").unwrap_or(0),
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
                    approval_key: unit.get("approvalKey").and_then(Value::as_str).map(str::to_owned),
                    remembered: false,
                })
                .collect(),
        }),
        "jsonOutputs" => Details::JsonOutputs(texts(list("jsons"))),
        "task" => Details::Task(TaskDetails {
            active_summary: word("activeSummary"),
            tasks: list("tasks").iter().filter_map(task_from_json).collect(),
        }),
        "subagent" => Details::Subagent(SubagentDetails {
            chat: word("subagentChatId").map(|id| ChatId::new(id.as_str())),
            model: word("model")?,
            variant: word("variant"),
            agent: word("agentName")?,
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

    fn entry(seq: i64, kind: MessageKind, parts: Vec<Part>, extra: Option<Value>) -> StoredEntry {
        let role = if kind == MessageKind::Assistant { crate::llm::Role::Assistant } else { crate::llm::Role::User };
        let content_id = (kind == MessageKind::User).then(|| crate::base::ContentId::new("u"));
        StoredEntry { seq, kind, content_id, message: Message { role, parts }, extra, created_at: 0 }
    }

    fn call(id: &str) -> Part {
        Part::ToolCall { id: id.into(), name: "eca__grep".into(), arguments: "{}".into(), replay: None }
    }

    fn stages(events: &[ChatEvent]) -> Vec<String> {
        let word = |event: &ChatEvent| match event {
            ChatEvent::ToolCall(call) => {
                let stage = format!("{:?}", call.stage);
                format!("{} {} {}", call.id, call.name, stage.split([' ', '{']).next().unwrap_or_default())
            }
            ChatEvent::UserText { text, .. } => format!("user {}", text.trim()),
            ChatEvent::Text(text) => format!("text {text}"),
            ChatEvent::Flag { text, .. } => format!("flag {text}"),
            other => format!("{other:?}"),
        };
        events.iter().map(word).collect()
    }

    #[test]
    fn a_chat_is_shown_again_in_its_order() {
        let record = CallRecord {
            id: "2".into(),
            name: "grep".into(),
            rejected: Some("user-choice".into()),
            ..CallRecord::default()
        };
        let extra = MessageExtra { calls: vec![record], ..MessageExtra::default() }.to_value();
        let result =
            |id: &str| Part::ToolResult { call_id: id.into(), text: "out".into(), images: vec![], error: false };
        let entries = [
            entry(1, MessageKind::User, vec![Part::Text("<file/>".into()), Part::Text("hi".into())], None),
            entry(2, MessageKind::Assistant, vec![Part::Text("a".into()), call("1"), call("2"), call("3")], None),
            entry(3, MessageKind::ToolResult, vec![result("1")], None),
            entry(4, MessageKind::ToolResult, vec![result("2")], extra),
        ];
        let flags = [StoredFlag { after: 1, content_id: "f".into(), text: "here".into(), created_at: 0 }];
        assert_eq!(
            stages(&events(&entries, &flags)),
            [
                "user hi",
                "flag here",
                "text a",
                "3 grep Prepare",
                "3 grep Run",
                "3 grep Rejected",
                "1 grep Prepare",
                "1 grep Run",
                "1 grep Running",
                "1 grep Called",
                "2 grep Prepare",
                "2 grep Run",
                "2 grep Rejected",
            ]
        );
    }
}
