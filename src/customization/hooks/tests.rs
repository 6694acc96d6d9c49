//! For which events a hook runs, what it is told, and what a later one sees of an earlier one.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Map, Value, json};

use super::*;
use crate::config::{ApprovalRule, HookMatcher, Ruling};

fn hook(kind: HookType, matcher: Option<HookMatcher>) -> HookConfig {
    HookConfig {
        kind,
        matcher,
        actions: vec![HookAction { program: HookProgram::Shell("true".into()), timeout: Duration::from_secs(30) }],
        visible: true,
        description: None,
        run_on_error: false,
    }
}

fn pattern(text: &str) -> Option<HookMatcher> {
    Some(HookMatcher::Pattern(text.to_owned()))
}

/// Patterns by the names of arguments.
type Patterns<'a> = &'a [(&'a str, &'a [&'a str])];

fn tools(selectors: &[(&str, Patterns<'_>)]) -> Option<HookMatcher> {
    let rule = |arguments: Patterns<'_>| ApprovalRule {
        args_matchers: arguments
            .iter()
            .map(|(name, patterns)| {
                ((*name).to_owned(), patterns.iter().map(|pattern| (*pattern).to_owned()).collect())
            })
            .collect(),
    };
    let selectors = selectors.iter().map(|(name, arguments)| ((*name).to_owned(), rule(arguments)));
    Some(HookMatcher::Tools(selectors.collect()))
}

fn object(value: Value) -> Map<String, Value> {
    value.as_object().cloned().unwrap_or_default()
}

fn call(server: &str, tool: &str, input: Value) -> HookEvent {
    let call = HookedCall { call: "c1".into(), server: server.into(), tool: tool.into(), input: object(input) };
    HookEvent::PreToolCall { call, approval: Ruling::Ask }
}

#[test]
fn tools_are_matched_by_name_and_by_all_arguments() {
    let write = || call("eca", "write_file", json!({"path": "/a.clj", "n": 3}));
    let other = || call("srv", "write_file", json!({}));
    for (matcher, event, expected) in [
        (None, write(), true),
        (pattern(""), write(), true),
        (pattern("*"), write(), true),
        (pattern("eca__write_file"), write(), true),
        (pattern("eca__.*"), write(), true),
        (pattern("write_file"), write(), false),
        (pattern("(?!eca__).*"), other(), true),
        (tools(&[("eca__write_file", &[])]), write(), true),
        (tools(&[("write_file", &[])]), write(), true),
        (tools(&[("write_file", &[])]), other(), false),
        (tools(&[("srv", &[])]), other(), true),
        (tools(&[]), write(), false),
        (tools(&[("write_file", &[("path", &[".*\\.allium", ".*\\.clj"])])]), write(), true),
        (tools(&[("write_file", &[("path", &[".*\\.clj"]), ("n", &["3"])])]), write(), true),
        (tools(&[("write_file", &[("path", &[".*\\.clj"]), ("n", &["4"])])]), write(), false),
        (tools(&[("write_file", &[("path", &["a"])])]), write(), false),
        (tools(&[("write_file", &[("missing", &[".*"])])]), write(), false),
        (tools(&[("write_file", &[("path", &[])])]), write(), false),
    ] {
        let compiled = matcher::Matcher::compile(&hook(HookType::PreToolCall, matcher.clone())).unwrap();
        assert_eq!(compiled.is_for(&event), expected, "{matcher:?}");
    }
}

#[test]
fn compactions_are_matched_by_what_started_them() {
    let compact = |trigger| HookEvent::PreCompact { trigger, custom_instructions: String::new() };
    for (matcher, manual, auto) in [
        (None, true, true),
        (pattern("manual"), true, false),
        (pattern("auto"), false, true),
        (pattern("a.*"), false, false),
    ] {
        let compiled = matcher::Matcher::compile(&hook(HookType::PreCompact, matcher)).unwrap();
        assert_eq!(compiled.is_for(&compact(CompactTrigger::Manual)), manual);
        assert_eq!(compiled.is_for(&compact(CompactTrigger::Auto)), auto);
    }
    let anywhere = matcher::Matcher::compile(&hook(HookType::ChatEnd, pattern("("))).unwrap();
    assert!(anywhere.is_for(&HookEvent::ChatEnd), "where there is nothing to choose, a matcher means nothing");
}

#[test]
fn wrong_matchers_are_reported() {
    let hooks = BTreeMap::from([
        ("a".to_owned(), hook(HookType::PreToolCall, pattern("("))),
        ("b".to_owned(), hook(HookType::PostToolCall, tools(&[("x", &[("y", &["["])])]))),
        ("c".to_owned(), hook(HookType::PreCompact, tools(&[]))),
        ("d".to_owned(), hook(HookType::PreToolCall, None)),
    ]);
    let (runner, problems) = HookRunner::new(&hooks);
    let sources: Vec<&str> = problems.iter().map(|problem| problem.source.as_str()).collect();
    assert_eq!(sources, ["hooks.a", "hooks.b", "hooks.c"]);
    assert_eq!(runner.iter().map(|(name, _)| name).collect::<Vec<_>>(), ["d"]);
    assert!(runner.has(HookType::PreToolCall) && !runner.has(HookType::PreCompact));
}

fn merged(more: &Value, facts: Value) -> Value {
    let mut all = object(more.clone());
    all.extend(object(facts));
    Value::Object(all)
}

/// One event of every kind, and what only hooks of that kind are told.
fn every_kind_of_event() -> Vec<(HookEvent, Value)> {
    let about = json!({"tool_name": "t", "server": "srv", "tool_input": {"camelCase": 1}, "tool_call_id": "c1"});
    let HookEvent::PreToolCall { call: hooked, .. } = call("srv", "t", json!({"camelCase": 1})) else { panic!() };
    let status = ChatStatus {
        status: "running".into(),
        awaiting_user_input: true,
        pending_approvals: vec!["a".into()],
        running: vec!["b".into()],
        waiting_reason: Some("approval".into()),
        parent: Some("p".into()),
        ..ChatStatus::default()
    };
    let quiet = ChatStatus { status: "idle".into(), ..ChatStatus::default() };
    vec![
        (HookEvent::SessionStart, json!({})),
        (HookEvent::SessionEnd, json!({})),
        (HookEvent::ChatStart { resumed: true }, json!({"resumed": true})),
        (HookEvent::ChatEnd, json!({})),
        (
            HookEvent::ChatStatusChanged(status),
            json!({"status": "running", "awaiting_user_input": true, "pending_approval_tool_call_ids": ["a"],
                "pending_question_tool_call_ids": [], "running_tool_call_ids": ["b"], "waiting_reason": "approval",
                "parent_chat_id": "p"}),
        ),
        (
            HookEvent::ChatStatusChanged(quiet),
            json!({"status": "idle", "awaiting_user_input": false, "pending_approval_tool_call_ids": [],
                "pending_question_tool_call_ids": [], "running_tool_call_ids": []}),
        ),
        (HookEvent::SubagentStart { parent: "p".into() }, json!({"parent_chat_id": "p"})),
        (HookEvent::PreRequest { prompt: "x".into(), replaceable: true }, json!({"prompt": "x"})),
        (
            HookEvent::PostRequest { response: "r".into(), follow_up_active: true, parent: None },
            json!({"response": "r", "follow_up_active": true}),
        ),
        (
            HookEvent::PostRequest { response: "r".into(), follow_up_active: false, parent: Some("p".into()) },
            json!({"response": "r", "follow_up_active": false, "parent_chat_id": "p"}),
        ),
        (
            HookEvent::SubagentPostRequest { response: "r".into(), follow_up_active: false, parent: "p".into() },
            json!({"response": "r", "follow_up_active": false, "parent_chat_id": "p"}),
        ),
        (
            HookEvent::PreToolCall { call: hooked.clone(), approval: Ruling::Deny },
            merged(&about, json!({"approval": "deny"})),
        ),
        (
            HookEvent::PostToolCall { call: hooked, response: "out".into(), error: true },
            merged(&about, json!({"tool_response": "out", "error": true})),
        ),
        (
            HookEvent::PreCompact { trigger: CompactTrigger::Manual, custom_instructions: "i".into() },
            json!({"triggered": "manual", "custom_instructions": "i"}),
        ),
        (
            HookEvent::PostCompact { trigger: CompactTrigger::Auto, summary: "s".into() },
            json!({"triggered": "auto", "compact_summary": "s"}),
        ),
    ]
}

#[test]
fn hooks_are_told_everything_of_their_kind() {
    let setting = Setting {
        workspaces: vec!["/w".into(), "/v".into()],
        db_cache_path: "/c/db".into(),
        session_id: "s".into(),
        eca_executable: "eca".into(),
        ..Setting::default()
    };
    let chat = ChatFacts { chat: "chat".into(), agent: "code".into(), model: Some("p/m".into()), variant: None };
    let base = json!({"hook_name": "h", "workspaces": ["/w", "/v"], "cwd": "/w", "db_cache_path": "/c/db",
        "session_id": "s", "eca_executable": "eca"});
    let of_chat = json!({"chat_id": "chat", "agent": "code", "behavior": "code", "full_model": "p/m", "variant": null});
    let mut kinds = std::collections::BTreeSet::new();
    for (event, facts) in every_kind_of_event() {
        kinds.insert(event.kind());
        let expected = merged(&base, merged(&facts, json!({"hook_type": event.kind().name()})));
        let told: Value = serde_json::from_slice(&event.input("h", &setting, None)).unwrap();
        assert_eq!(told, expected, "{event:?}");
        let told: Value = serde_json::from_slice(&event.input("h", &setting, Some(&chat))).unwrap();
        assert_eq!(told, merged(&expected, of_chat.clone()), "{event:?}");
    }
    assert_eq!(kinds.len(), HookType::ALL.len());
}

#[test]
fn later_hooks_see_what_earlier_ones_changed() {
    let mut event = call("eca", "grep", json!({"a": 1, "b": 2}));
    event.absorb(&HookOutcome {
        updated_input: object(json!({"b": 3})),
        approval: Some(Ruling::Allow),
        ..HookOutcome::default()
    });
    let HookEvent::PreToolCall { call: hooked, approval } = &event else { panic!() };
    assert_eq!((Value::Object(hooked.input.clone()), *approval), (json!({"a": 1, "b": 3}), Ruling::Ask));
    event.absorb(&HookOutcome { approval: Some(Ruling::Deny), ..HookOutcome::default() });
    assert!(matches!(event, HookEvent::PreToolCall { approval: Ruling::Deny, .. }));

    let rewritten = HookOutcome { replaced_prompt: Some("new".into()), ..HookOutcome::default() };
    for (replaceable, expected) in [(true, "new"), (false, "old")] {
        let mut event = HookEvent::PreRequest { prompt: "old".into(), replaceable };
        let mut outcome = rewritten.clone();
        event.restrict(&mut outcome);
        event.absorb(&outcome);
        assert_eq!(outcome.replaced_prompt.is_some(), replaceable);
        assert!(matches!(event, HookEvent::PreRequest { prompt, .. } if prompt == expected));
    }
}

#[cfg(unix)]
#[test]
fn scripts_are_looked_for_at_home_first() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let places = [folder.path().join("config"), folder.path().join("repo")];
    for place in &places {
        std::fs::create_dir_all(place.join("hooks")).unwrap();
    }
    std::fs::write(places[1].join("hooks/a.sh"), "").unwrap();
    let find =
        |file: &str| find_script(Path::new(file), &places, Some(folder.path())).map_err(|error| error.to_string());
    assert_eq!(find("hooks/a.sh"), Ok((places[1].join("hooks/a.sh"), false)));
    std::fs::write(places[0].join("hooks/a.sh"), "").unwrap();
    std::fs::set_permissions(places[0].join("hooks/a.sh"), PermissionsExt::from_mode(0o755)).unwrap();
    assert_eq!(find("hooks/a.sh"), Ok((places[0].join("hooks/a.sh"), true)));
    assert_eq!(find("~/repo/hooks/a.sh"), Ok((places[1].join("hooks/a.sh"), false)));
    let absolute = places[1].join("hooks/a.sh");
    assert_eq!(find(absolute.to_str().unwrap()), Ok((absolute.clone(), false)));
    assert_eq!(find("hooks"), Err("there is no file hooks".to_owned()));
    assert_eq!(find("nope.sh"), Err("there is no file nope.sh".to_owned()));
}

#[tokio::test]
async fn without_a_workspace_nothing_runs() {
    let hooks = BTreeMap::from([("h".to_owned(), hook(HookType::SessionStart, None))]);
    let (runner, _) = HookRunner::new(&hooks);
    let seen = |_: HookReport| panic!("nothing is to be seen");
    let verdict =
        runner.run(HookEvent::SessionStart, &Setting::default(), None, &seen, &CancellationToken::new()).await;
    assert_eq!(verdict, Verdict::default());
}
