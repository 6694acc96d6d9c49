//! Calls as the client sees them, stage by stage.

use serde_json::json;

use super::*;
use crate::base::ToolCallId;
use crate::tool::{ShellDetails, ShellUnit, TaskItem};

fn event(name: &str, origin: ToolCallOrigin, details: Option<Details>, stage: ToolCallStage) -> ToolCallEvent {
    ToolCallEvent {
        id: ToolCallId::new("c"),
        name: name.to_owned(),
        server: "eca".to_owned(),
        origin,
        summary: None,
        details,
        stage,
    }
}

fn native(name: &str, details: Option<Details>, stage: ToolCallStage) -> ToolCallEvent {
    event(name, ToolCallOrigin::Native, details, stage)
}

fn called(error: bool, output: &str) -> ToolCallStage {
    ToolCallStage::Called { arguments: Map::new(), error, outputs: vec![output.to_owned()], total_ms: 1 }
}

fn change(before: Option<&str>, after: &str, diff: &str) -> Details {
    Details::FileChange(FileChange {
        path: "/w/a".into(),
        diff: diff.to_owned(),
        lines_added: 1,
        lines_removed: 0,
        before: before.map(Into::into),
        after: after.into(),
    })
}

fn wire(told: &mut Told, event: &ToolCallEvent) -> Value {
    told.stage(event).map_or(Value::Null, |fields| serde_json::to_value(fields).unwrap())
}

#[test]
fn every_tool_has_its_kind() {
    for (name, origin, expected) in [
        ("read_file", ToolCallOrigin::Native, ToolKind::Read),
        ("grep", ToolCallOrigin::Native, ToolKind::Search),
        ("edit_file", ToolCallOrigin::Native, ToolKind::Edit),
        ("write_file", ToolCallOrigin::Native, ToolKind::Edit),
        ("move_file", ToolCallOrigin::Native, ToolKind::Move),
        ("shell_command", ToolCallOrigin::Native, ToolKind::Execute),
        ("fetch", ToolCallOrigin::Native, ToolKind::Fetch),
        ("task", ToolCallOrigin::Native, ToolKind::Think),
        ("my_tool", ToolCallOrigin::Native, ToolKind::Other),
        ("read_file", ToolCallOrigin::Mcp, ToolKind::Other),
        ("web_search", ToolCallOrigin::Provider, ToolKind::Search),
    ] {
        let stage = ToolCallStage::Prepare { arguments_text: String::new() };
        assert_eq!(kind(&event(name, origin, None, stage)), expected, "{name}");
    }
}

#[test]
fn a_change_is_sent_once() {
    let mut told = Told::default();
    let details = Some(change(Some("a"), "b", "-a\n+b"));
    let arguments = json!({"path": "/w/a", "line_offset": 4}).as_object().unwrap().clone();
    let run = native("edit_file", details.clone(), ToolCallStage::Run { arguments, manual_approval: false });
    let first = wire(&mut told, &run);
    assert_eq!(first["content"], json!([{"type": "diff", "path": "/w/a", "oldText": "a", "newText": "b"}]));
    assert_eq!(first["locations"], json!([{"path": "/w/a", "line": 5}]));
    let done = wire(&mut told, &native("edit_file", details, called(false, "edited")));
    assert_eq!((&done["status"], &done["content"]), (&json!("completed"), &Value::Null));
    // What was really done may be something else.
    let other = wire(&mut told, &native("edit_file", Some(change(Some("a"), "c", "")), called(false, "edited")));
    assert_eq!(other["content"][0]["newText"], "c");
    let failed =
        wire(&mut told, &native("edit_file", Some(change(Some("a"), "c", "")), called(true, "no `such` text")));
    assert_eq!(failed["content"][0]["content"]["text"], "no `such` text");
}

#[test]
fn a_change_of_which_only_the_differences_are_known_is_shown_as_those() {
    let mut told = Told::default();
    let replayed = wire(&mut told, &native("edit_file", Some(change(None, "", "-a\n+b")), called(false, "edited")));
    assert_eq!(replayed["content"][0]["content"]["text"], "`/w/a`\n\n```diff\n-a\n+b\n```");
    let large = "x".repeat(MAX_DIFF_BYTES + 1);
    let shown = wire(&mut told, &native("edit_file", Some(change(Some("a"), &large, "+x")), called(false, "")));
    assert!(shown["content"][0]["content"]["text"].as_str().unwrap().contains("```diff"), "{}", shown["status"]);
    let empty = wire(&mut told, &native("write_file", Some(change(None, "", "")), called(false, "")));
    assert_eq!(empty["content"], json!([{"type": "diff", "path": "/w/a", "newText": ""}]));
}

#[test]
fn outputs_are_fenced_cut_and_laid_out() {
    let mut told = Told::default();
    let text = |value: &Value| value["content"][0]["content"]["text"].as_str().unwrap().to_owned();
    assert_eq!(text(&wire(&mut told, &native("grep", None, called(false, "a ``` b\n")))), "````\na ``` b\n````");
    assert_eq!(text(&wire(&mut told, &native("grep", None, called(true, "no")))), "no");
    let of_mcp = event("say", ToolCallOrigin::Mcp, None, called(false, "*kind*"));
    assert_eq!(text(&wire(&mut told, &of_mcp)), "*kind*");
    let long = wire(&mut told, &native("grep", None, called(false, &"é".repeat(MAX_OUTPUT_BYTES))));
    assert!(text(&long).len() < MAX_OUTPUT_BYTES + 20);
    assert_eq!(wire(&mut told, &native("grep", None, called(false, " ")))["content"], json!([]));
    let details = Some(Details::JsonOutputs(vec!["{\n}".to_owned()]));
    assert_eq!(text(&wire(&mut told, &native("fetch", details, called(false, "{}")))), "```json\n{\n}\n```");
}

#[test]
fn rejections_have_a_reason() {
    let mut told = Told::default();
    for (reason, part) in [
        (RejectReason::User, "by you"),
        (RejectReason::Config, "rule"),
        (RejectReason::Hook, "hook"),
        (RejectReason::PromptStop, "Stopped"),
    ] {
        let stage = ToolCallStage::Rejected { arguments: Map::new(), reason };
        let sent = wire(&mut told, &native("grep", None, stage));
        assert_eq!(sent["status"], "failed");
        assert!(sent["content"][0]["content"]["text"].as_str().unwrap().contains(part), "{sent}");
    }
}

#[test]
fn live_output_is_bounded_and_not_sent_too_often() {
    let mut told = Told::default();
    let text = |fields: Option<ToolCallUpdateFields>| {
        fields.map(|fields| serde_json::to_value(fields).unwrap()["content"][0]["content"]["text"].to_string())
    };
    let start = Instant::now();
    assert!(text(told.output("one\n", start)).unwrap().contains("one"));
    assert_eq!(text(told.output("two\n", start)), None, "too soon");
    let later = start + LIVE_EVERY;
    assert!(text(told.output("three\n", later)).unwrap().contains("one\\ntwo\\nthree"));
    for _ in 0..100 {
        told.output(&"é".repeat(1000), later);
        assert!(told.output.len() <= 2 * MAX_LIVE_BYTES + 2000);
    }
    told.attach(TerminalId::new("t"));
    assert_eq!(text(told.output("four", later + LIVE_EVERY)), None, "the terminal shows it");
}

#[test]
fn what_is_asked_each_time_has_no_always() {
    let unit = |key: Option<&str>| ShellUnit { approval_key: key.map(str::to_owned), ..ShellUnit::default() };
    let options = |units: Vec<ShellUnit>| {
        let details = Some(Details::ShellCommand(ShellDetails { commands: units, background: false }));
        let stage = ToolCallStage::Run { arguments: Map::new(), manual_approval: true };
        permission_options(&native("shell_command", details, stage)).len()
    };
    assert_eq!(options(vec![unit(Some("ls"))]), 3);
    assert_eq!(options(vec![unit(Some("ls")), unit(None)]), 2);
}

#[test]
fn a_task_list_is_a_plan() {
    let task = |id, status| TaskItem {
        id,
        subject: format!("task {id}"),
        description: String::new(),
        status,
        priority: TaskPriority::Low,
        blocked_by: Vec::new(),
    };
    let tasks = vec![task(1, TaskStatus::Done), task(2, TaskStatus::InProgress), task(3, TaskStatus::Pending)];
    let sent = serde_json::to_value(plan(&TaskDetails { tasks, active_summary: None })).unwrap();
    let statuses: Vec<&Value> = sent["entries"].as_array().unwrap().iter().map(|entry| &entry["status"]).collect();
    assert_eq!(statuses, ["completed", "in_progress", "pending"]);
    assert_eq!((&sent["sessionUpdate"], &sent["entries"][0]["priority"]), (&json!("plan"), &json!("low")));
}
