//! Tool calls in the protocol's words: what kind they are, what they touch, what came of them.

use std::path::{Path, PathBuf};

use agent_client_protocol_schema::v1::{
    ContentBlock, Diff, PermissionOption, PermissionOptionKind, Plan, PlanEntry, PlanEntryPriority, PlanEntryStatus,
    SessionUpdate, Terminal, TerminalId, TextContent, ToolCall, ToolCallContent, ToolCallLocation, ToolCallStatus,
    ToolCallUpdate, ToolCallUpdateFields, ToolKind,
};
use serde_json::{Map, Value};
use tokio::time::{Duration, Instant};

use crate::base::text;
use crate::engine::{RejectReason, ToolCallEvent, ToolCallOrigin, ToolCallStage};
use crate::tool::{Details, FileChange, TaskDetails, TaskPriority, TaskStatus};

/// What a tool printed is cut for the wire; the model and the store have all of it.
const MAX_OUTPUT_BYTES: usize = 32 * 1024;
/// Both texts of a larger change are not sent; its differences are.
const MAX_DIFF_BYTES: usize = 4 * 1024 * 1024;
/// So much of a running tool's output is shown, its end.
const MAX_LIVE_BYTES: usize = 8 * 1024;
/// Output that is still coming is not shown more often than this: every time, all of it is sent.
const LIVE_EVERY: Duration = Duration::from_millis(300);

pub(super) const ALLOW_ONCE: &str = "allow_once";
pub(super) const ALLOW_ALWAYS: &str = "allow_always";
pub(super) const REJECT_ONCE: &str = "reject_once";

/// What the client knows of a call.
#[derive(Debug, Default)]
pub(super) struct Told {
    output: String,
    output_told: Option<Instant>,
    change: Option<FileChange>,
    terminal: Option<TerminalId>,
}

impl Told {
    /// The beginning of a call.
    pub(super) fn announcement(id: &str, event: &ToolCallEvent) -> SessionUpdate {
        let call = ToolCall::new(id.to_owned(), title(event))
            .kind(kind(event))
            .name(event.name.clone())
            .status(ToolCallStatus::Pending);
        SessionUpdate::ToolCall(call)
    }

    /// What a stage of a call changes; nothing while its arguments are written.
    pub(super) fn stage(&mut self, event: &ToolCallEvent) -> Option<ToolCallUpdateFields> {
        let fields = ToolCallUpdateFields::new();
        Some(match &event.stage {
            ToolCallStage::Prepare { .. } => return None,
            ToolCallStage::Run { arguments, .. } => {
                let content = self.change_content(event.details.as_ref());
                let locations = locations(event.details.as_ref(), arguments);
                fields
                    .title(title(event))
                    .raw_input(Value::Object(arguments.clone()))
                    .locations((!locations.is_empty()).then_some(locations))
                    .content(content)
            }
            ToolCallStage::Running { .. } => {
                fields.status(ToolCallStatus::InProgress).content(self.change_content(event.details.as_ref()))
            }
            ToolCallStage::Called { error, outputs, .. } => {
                let status = if *error { ToolCallStatus::Failed } else { ToolCallStatus::Completed };
                let output = outputs.join("\n");
                let shown = text::prefix(&output, MAX_OUTPUT_BYTES);
                fields
                    .status(status)
                    .title(title(event))
                    .content(self.final_content(event, *error, shown))
                    .raw_output(Value::from(shown))
            }
            ToolCallStage::Rejected { reason, .. } => {
                let text = match reason {
                    RejectReason::User => "Rejected by you.",
                    RejectReason::Config => "Rejected by a rule of the configuration.",
                    RejectReason::Hook => "Rejected by a hook.",
                    RejectReason::PromptStop => "Stopped.",
                };
                fields.status(ToolCallStatus::Failed).content(vec![plain(text)])
            }
        })
    }

    /// The program of this call runs in a terminal of the client from now on.
    pub(super) fn attach(&mut self, terminal: TerminalId) -> ToolCallUpdateFields {
        self.terminal = Some(terminal.clone());
        ToolCallUpdateFields::new()
            .status(ToolCallStatus::InProgress)
            .content(vec![ToolCallContent::Terminal(Terminal::new(terminal))])
    }

    /// Keeps a piece of output; says what to show when that is due.
    pub(super) fn output(&mut self, piece: &str, now: Instant) -> Option<ToolCallUpdateFields> {
        if self.terminal.is_some() {
            return None;
        }
        self.output.push_str(piece);
        if self.output.len() > 2 * MAX_LIVE_BYTES {
            let from = self.output.len() - MAX_LIVE_BYTES;
            let from = (from..self.output.len()).find(|at| self.output.is_char_boundary(*at))?;
            self.output.drain(..from);
        }
        if self.output_told.is_some_and(|told| now.duration_since(told) < LIVE_EVERY) {
            return None;
        }
        self.output_told = Some(now);
        Some(ToolCallUpdateFields::new().content(vec![plain(fenced(&self.output, ""))]))
    }

    /// How a file changes, unless the client has that already.
    fn change_content(&mut self, details: Option<&Details>) -> Option<Vec<ToolCallContent>> {
        let Some(Details::FileChange(change)) = details else { return None };
        if self.change.as_ref() == Some(change) {
            return None;
        }
        self.change = Some(change.clone());
        Some(vec![difference(change)])
    }

    fn final_content(&mut self, event: &ToolCallEvent, error: bool, shown: &str) -> Option<Vec<ToolCallContent>> {
        if let Some(terminal) = &self.terminal {
            return Some(vec![ToolCallContent::Terminal(Terminal::new(terminal.clone()))]);
        }
        if !error && matches!(event.details, Some(Details::FileChange(_))) {
            return self.change_content(event.details.as_ref());
        }
        if let Some(Details::JsonOutputs(jsons)) = &event.details {
            let cut = |json: &String| plain(fenced(text::prefix(json, MAX_OUTPUT_BYTES), "json"));
            return Some(jsons.iter().map(cut).collect());
        }
        let is_ours = event.origin == ToolCallOrigin::Native && !error;
        let text = if is_ours { fenced(shown, "") } else { shown.to_owned() };
        Some(if shown.trim().is_empty() { Vec::new() } else { vec![plain(text)] })
    }
}

/// What the user is asked about a call.
pub(super) fn question(id: &str, event: &ToolCallEvent) -> ToolCallUpdate {
    let arguments = match &event.stage {
        ToolCallStage::Run { arguments, .. } => arguments.clone(),
        _ => Map::new(),
    };
    let locations = locations(event.details.as_ref(), &arguments);
    let content = match &event.details {
        Some(Details::FileChange(change)) => Some(vec![difference(change)]),
        _ => None,
    };
    let fields = ToolCallUpdateFields::new()
        .title(title(event))
        .kind(kind(event))
        .status(ToolCallStatus::Pending)
        .raw_input(Value::Object(arguments))
        .locations((!locations.is_empty()).then_some(locations))
        .content(content);
    ToolCallUpdate::new(id.to_owned(), fields)
}

/// What the user can answer.
pub(super) fn permission_options(event: &ToolCallEvent) -> Vec<PermissionOption> {
    let always = match &event.details {
        // Some commands are dangerous each time, and are asked about each time.
        Some(Details::ShellCommand(shell)) => shell.commands.iter().all(|unit| unit.approval_key.is_some()),
        _ => true,
    };
    let option = |id: &'static str, name: &str, kind| PermissionOption::new(id, name, kind);
    let mut options = vec![option(ALLOW_ONCE, "Allow", PermissionOptionKind::AllowOnce)];
    if always {
        let name = "Always allow in this session";
        options.push(option(ALLOW_ALWAYS, name, PermissionOptionKind::AllowAlways));
    }
    options.push(option(REJECT_ONCE, "Reject", PermissionOptionKind::RejectOnce));
    options
}

/// The task list, whole each time.
pub(super) fn plan(tasks: &TaskDetails) -> SessionUpdate {
    let entry = |task: &crate::tool::TaskItem| {
        let priority = match task.priority {
            TaskPriority::High => PlanEntryPriority::High,
            TaskPriority::Medium => PlanEntryPriority::Medium,
            TaskPriority::Low => PlanEntryPriority::Low,
        };
        let status = match task.status {
            TaskStatus::Pending => PlanEntryStatus::Pending,
            TaskStatus::InProgress => PlanEntryStatus::InProgress,
            TaskStatus::Done => PlanEntryStatus::Completed,
        };
        PlanEntry::new(task.subject.clone(), priority, status)
    };
    SessionUpdate::Plan(Plan::new(tasks.tasks.iter().map(entry).collect()))
}

fn title(event: &ToolCallEvent) -> String {
    event.summary.clone().filter(|summary| !summary.trim().is_empty()).unwrap_or_else(|| match event.origin {
        ToolCallOrigin::Mcp => format!("{}: {}", event.server, event.name),
        ToolCallOrigin::Native | ToolCallOrigin::Provider => event.name.clone(),
    })
}

fn kind(event: &ToolCallEvent) -> ToolKind {
    match (event.origin, event.name.as_str()) {
        (ToolCallOrigin::Mcp, _) => ToolKind::Other,
        (ToolCallOrigin::Provider, name) if name.contains("search") => ToolKind::Search,
        (ToolCallOrigin::Provider, name) if name.contains("fetch") => ToolKind::Fetch,
        (ToolCallOrigin::Provider, _) => ToolKind::Other,
        (_, "read_file" | "directory_tree" | "editor_diagnostics" | "fetch_rule" | "skill") => ToolKind::Read,
        (_, "write_file" | "edit_file" | "preview_file_change") => ToolKind::Edit,
        (_, "move_file") => ToolKind::Move,
        (_, "grep" | "editor_definition" | "editor_references") => ToolKind::Search,
        (_, "shell_command" | "git" | "bg_job") => ToolKind::Execute,
        (_, "fetch") => ToolKind::Fetch,
        (_, "task") => ToolKind::Think,
        _ => ToolKind::Other,
    }
}

fn locations(details: Option<&Details>, arguments: &Map<String, Value>) -> Vec<ToolCallLocation> {
    let named = arguments.get("path").and_then(Value::as_str).map(Path::new).filter(|path| path.is_absolute());
    let path: Option<PathBuf> = match details {
        Some(Details::FileChange(change)) => Some(change.path.clone()),
        _ => named.map(Path::to_owned),
    };
    // A model counts the lines it leaves out; the client counts from 1.
    let line = arguments.get("line_offset").and_then(Value::as_u64).and_then(|line| u32::try_from(line + 1).ok());
    path.map(|path| ToolCallLocation::new(path).line(line)).into_iter().collect()
}

/// Both texts; of a change that is only known by its differences, those.
fn difference(change: &FileChange) -> ToolCallContent {
    let size = change.before.as_ref().map_or(0, |before| before.len()) + change.after.len();
    let has_texts = change.before.is_some() || !change.after.is_empty() || change.diff.is_empty();
    if has_texts && size <= MAX_DIFF_BYTES {
        let before = change.before.as_ref().map(ToString::to_string);
        return ToolCallContent::Diff(Diff::new(change.path.clone(), change.after.to_string()).old_text(before));
    }
    plain(format!("`{}`\n\n{}", change.path.display(), fenced(&change.diff, "diff")))
}

fn plain(text: impl Into<String>) -> ToolCallContent {
    ToolCallContent::from(ContentBlock::Text(TextContent::new(text.into())))
}

/// Between fences that do not occur in it.
fn fenced(text: &str, language: &str) -> String {
    let longest = text.split(|letter| letter != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest.max(2) + 1);
    format!("{fence}{language}\n{}\n{fence}", text.trim_end_matches('\n'))
}

#[cfg(test)]
mod tests;
