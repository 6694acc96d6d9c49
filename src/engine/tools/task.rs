//! `task`: the model's list of what it has to do, shown to the user as it changes.

mod list;

use std::sync::{Arc, PoisonError};

use futures_util::future::BoxFuture;
use serde_json::{Value, json};

use super::super::chat_tools::ChatMemory;
use super::super::event::{ChatEvent, ToolCallEvent, ToolCallOrigin, ToolCallStage};
use crate::base::ToolCallId;
use crate::base::text::one_line;
use crate::tool::{Arguments, Details, NATIVE_SERVER, Tool, ToolContext, ToolOutput, ToolSpec};

pub(crate) use list::TaskList;

pub(crate) struct TaskTool {
    spec: ToolSpec,
    memory: Arc<ChatMemory>,
}

impl TaskTool {
    pub(crate) fn new(memory: Arc<ChatMemory>) -> Self {
        let description = "Your task list for work of several steps. plan replaces the list, add appends, start begins \
                           tasks (with a short active_summary of what you are doing), complete ends them. Keep it current.";
        let task = json!({
            "type": "object",
            "required": ["subject", "description"],
            "properties": {
                "subject": {"type": "string"},
                "description": {"type": "string"},
                "priority": {"type": "string", "enum": ["high", "medium", "low"]},
                "blocked_by": {"type": "array", "items": {"type": "integer"}},
            },
        });
        let parameters = json!({
            "type": "object",
            "required": ["op"],
            "properties": {
                "op": {"type": "string", "enum": ["read", "plan", "add", "update", "start", "complete", "delete", "clear"]},
                "id": {"type": "integer"},
                "ids": {"type": "array", "items": {"type": "integer"}},
                "active_summary": {"type": "string"},
                "task": task,
                "tasks": {"type": "array", "items": {"type": "object"}, "description": "Several of what task takes."},
            },
        });
        Self { spec: ToolSpec::native("task", description, parameters), memory }
    }
}

/// Tells the client that the list is empty again.
pub(crate) fn cleared() -> ChatEvent {
    ChatEvent::ToolCall(Box::new(ToolCallEvent {
        id: ToolCallId::random(),
        name: "task".to_owned(),
        server: NATIVE_SERVER.to_owned(),
        origin: ToolCallOrigin::Native,
        summary: None,
        details: Some(Details::Task(TaskList::default().details())),
        stage: ToolCallStage::Called {
            arguments: Arguments::new(),
            error: false,
            outputs: vec![TaskList::default().to_text()],
            total_ms: 0,
        },
    }))
}

impl Tool for TaskTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn summary(&self, arguments: &Arguments) -> Option<String> {
        let doing = match arguments.get("op").and_then(Value::as_str) {
            Some("read") => "Reading the task list",
            Some("plan") => "Planning tasks",
            Some("add") => "Adding tasks",
            Some("start") => "Starting a task",
            Some("complete") => "Completing a task",
            Some("delete") => "Deleting tasks",
            Some("clear") => "Clearing the task list",
            _ => "Updating the task list",
        };
        let purpose = arguments.get("active_summary").and_then(Value::as_str).map(|purpose| one_line(purpose, 60));
        let purpose = purpose.filter(|purpose| !purpose.is_empty());
        Some(purpose.map_or_else(|| doing.to_owned(), |purpose| format!("{doing}: {purpose}")))
    }

    fn run<'a>(&'a self, arguments: Arguments, _: ToolContext) -> BoxFuture<'a, ToolOutput> {
        let mut tasks = self.memory.tasks.lock().unwrap_or_else(PoisonError::into_inner);
        let output = match tasks.apply(&arguments) {
            Ok(news) => ToolOutput {
                details: Some(Details::Task(tasks.details())),
                ..ToolOutput::text(format!("{news}{}", tasks.to_text()))
            },
            Err(problem) => ToolOutput::error(problem),
        };
        Box::pin(std::future::ready(output))
    }
}
