//! What configurations say about tools and agents, read from values and from text with lines.

use serde_json::json;

use super::super::apply;
use super::*;
use crate::config::document::Document;

fn over(mut config: Config, value: Value) -> (Config, Vec<String>) {
    let mut problems = Vec::new();
    let document = Document::from_value("test", value).expect("an object");
    apply(&mut config, &document, false, &mut problems);
    (config, problems.into_iter().map(|problem| problem.message).collect())
}

fn read(value: Value) -> (Config, Vec<String>) {
    over(Config::default(), value)
}

#[test]
fn every_key_of_tools_is_read() {
    let (config, problems) = read(json!({
        "disabledTools": ["git", "my_server"], "lspTimeoutSeconds": 1.5,
        "customTools": {"lint": {"description": "Lints", "command": "lint {{file}}", "schema": {"required": ["file"]}},
            "bare": {"command": "  make  all "}},
        "toolCall": {
            "approval": {"byDefault": "deny", "rememberFor": "server",
                "allow": {"a": {}}, "ask": {"b": {"argsMatchers": {"path": "/etc/.*"}}},
                "deny": {"c": {"argsMatchers": {"command": ["rm .*", "(?!git).*"]}}, "d": {"argsMatchers": {}}}},
            "manualApproval": ["x"], "afterRejection": "ask", "readFile": {"maxLines": 7},
            "shellCommand": {"path": "zsh", "args": ["-f"], "summaryMaxLength": 9, "sandbox": "read-only"},
            "editorNav": {"enabled": false}, "outputTruncation": {"lines": 3, "sizeKb": 2}
        }
    }));
    assert_eq!(problems, Vec::<String>::new());
    assert_eq!(config.disabled_tools, ["git", "my_server"]);
    assert_eq!(config.lsp_timeout, std::time::Duration::from_millis(1500));
    let lint = &config.custom_tools["lint"];
    assert_eq!((lint.description.as_str(), lint.command.as_str()), ("Lints", "lint {{file}}"));
    assert_eq!(Value::Object(lint.schema.clone()), json!({"required": ["file"]}));
    assert_eq!(config.custom_tools["bare"].description, "Runs: make all");
    let tool_call = &config.tool_call;
    let approval = &tool_call.approval;
    assert_eq!((approval.by_default, approval.remember_for), (Some(Ruling::Deny), RememberFor::Server));
    assert!(approval.allow["a"].args_matchers.is_empty() && approval.deny["d"].args_matchers.is_empty());
    assert!(approval.allow.contains_key("eca__read_file"), "what is allowed by itself stays allowed");
    assert_eq!(approval.ask["b"], ApprovalRule::matching("path", &["/etc/.*"]));
    assert_eq!(approval.deny["c"], ApprovalRule::matching("command", &["rm .*", "(?!git).*"]));
    assert_eq!(approval.manual, Some(ManualApproval::Tools(vec!["x".to_owned()])));
    assert_eq!((tool_call.read_file_max_lines, tool_call.editor_nav), (7, false));
    assert_eq!((tool_call.max_output_lines, tool_call.max_output_bytes), (3, 2048));
    assert_eq!(tool_call.after_rejection, AfterRejection::Ask);
    let shell = ShellConfig {
        path: Some("zsh".into()),
        args: vec!["-f".into()],
        summary_max_length: 9,
        sandbox: Sandbox::ReadOnly,
    };
    assert_eq!(tool_call.shell, shell);
}

#[test]
fn null_goes_back_to_the_default_and_a_later_source_replaces_a_rule_whole() {
    let first = json!({
        "disabledTools": ["git"], "customTools": {"t": {"command": "x", "description": "d"}, "gone": {"command": "y"}},
        "toolCall": {"approval": {"byDefault": "deny", "allow": {"a": {"argsMatchers": {"x": ["1"], "y": ["2"]}}, "b": {}},
                "deny": {"c": {}}, "rememberFor": "server"},
            "manualApproval": true, "afterRejection": "ask", "shellCommand": {"path": "zsh", "sandbox": "read-only"}}
    });
    let (config, problems) = read(first);
    assert_eq!((problems.len(), config.tool_call.approval.manual.clone()), (0, Some(ManualApproval::All(true))));
    let (config, problems) = over(
        config,
        json!({
            "disabledTools": null, "customTools": {"t": {"command": "z"}, "gone": null},
            "toolCall": {"approval": {"byDefault": null, "allow": {"a": {"argsMatchers": {"x": ["3"]}}, "b": null,
                    "eca__read_file": null}, "deny": null, "rememberFor": null},
                "manualApproval": null, "afterRejection": null, "shellCommand": {"path": null, "sandbox": null}}
        }),
    );
    assert_eq!(problems, Vec::<String>::new());
    let approval = &config.tool_call.approval;
    assert_eq!(approval.allow["a"], ApprovalRule::matching("x", &["3"]));
    assert!(!approval.allow.contains_key("b") && !approval.allow.contains_key("eca__read_file"));
    assert!(approval.deny.is_empty() && approval.by_default.is_none() && approval.manual.is_none());
    assert_eq!((config.tool_call.after_rejection, approval.remember_for), Default::default());
    assert_eq!(config.tool_call.shell, ToolCallConfig::default().shell);
    assert_eq!(config.disabled_tools, Vec::<String>::new());
    assert_eq!(config.custom_tools.keys().collect::<Vec<_>>(), ["t"]);
    assert_eq!((config.custom_tools["t"].command.as_str(), config.custom_tools["t"].description.as_str()), ("z", "d"));
    let (config, _) = over(config, json!({"toolCall": {"approval": {"allow": null}}}));
    assert_eq!(config.tool_call.approval.allow, ToolCallConfig::default().approval.allow);
}

#[test]
fn what_cannot_be_read_is_reported_with_its_line_and_loosens_nothing() {
    let text = r#"{
"toolCall": {
"approval": {
"byDefault": "maybe",
"allow": {"a": {"argsMatchers": {"command": [
  "fine",
  "(broken"]}},
"b": {"argsMatchers": "ls"},
"c": {"argsMatchers": {"x": 1}},
"d": true},
"deny": {"e": {"argsMatchers": {"command": ["a)|(b"]}},
"f": {"argsMatchers": ["x"]}}},
"manualApproval": "all",
"afterRejection": 1,
"shellCommand": {"sandbox": "on"},
"readFile": {"maxLines": 0},
"outputTruncation": []},
"customTools": {"no command": {"command": "x"},
"empty": {},
"odd": {"command": "x", "schema": 1}},
"agent": {"x": {"mode": "first",
"autoCompactPercentage": 101,
"toolCall": {"approval": {"ask": {"t": {"argsMatchers": {"p": ["["]}}}}}}}}"#;
    let document = Document::parse("f", text.to_owned()).unwrap();
    let (mut config, mut problems) = (Config::default(), Vec::new());
    apply(&mut config, &document, false, &mut problems);
    let mut places: Vec<(usize, String)> = problems
        .iter()
        .map(|problem| (problem.line.unwrap(), problem.message.split(": ").next().unwrap().to_owned()))
        .collect();
    places.sort();
    let expected = [
        (4, "toolCall.approval.byDefault"),
        (7, "toolCall.approval.allow.a.argsMatchers.command.1"),
        (8, "toolCall.approval.allow.b.argsMatchers"),
        (9, "toolCall.approval.allow.c.argsMatchers.x"),
        (10, "toolCall.approval.allow.d"),
        (11, "toolCall.approval.deny.e.argsMatchers.command.0"),
        (12, "toolCall.approval.deny.f.argsMatchers"),
        (13, "toolCall.manualApproval"),
        (14, "toolCall.afterRejection"),
        (15, "toolCall.shellCommand.sandbox"),
        (16, "toolCall.readFile.maxLines"),
        (17, "toolCall.outputTruncation"),
        (18, "customTools.no command"),
        (19, "customTools.empty"),
        (20, "customTools.odd.schema"),
        (21, "agent.x.mode"),
        (22, "agent.x.autoCompactPercentage"),
        (23, "agent.x.toolCall.approval.ask.t.argsMatchers.p.0"),
    ];
    assert_eq!(places, expected.map(|(line, place)| (line, place.to_owned())));
    let approval = &config.tool_call.approval;
    // None of them became a rule for every call.
    for rules in [&approval.allow, &approval.deny] {
        for (selector, rule) in rules.iter().filter(|(selector, _)| selector.len() == 1) {
            assert!(!rule.args_matchers.is_empty(), "{selector}");
        }
    }
    assert!(!approval.allow.contains_key("d"));
    assert_eq!(config.custom_tools.keys().collect::<Vec<_>>(), ["odd"]);
    assert!(!format!("{problems:?}").contains("broken"), "values are not shown: {problems:?}");
}

#[test]
fn every_key_of_an_agent_is_read() {
    let (config, problems) = read(json!({"agent": {
        "mine": {"mode": "subagent", "description": "d", "systemPrompt": "s", "maxSteps": 3, "disabledTools": "git",
            "toolCall": {"approval": {"byDefault": "allow", "deny": {"x": {}}}}, "autoCompactPercentage": 80,
            "inherit": "build", "spawnableBy": "agent"},
        "other": {"mode": ["primary", "subagent"], "disabledTools": [], "spawnableBy": ["plan", "mine"]},
    }}));
    assert_eq!(problems, Vec::<String>::new());
    let expected = AgentConfig {
        primary: Some(false),
        subagent: Some(true),
        description: Some("d".to_owned()),
        system_prompt: Some("s".to_owned()),
        max_steps: Some(3),
        disabled_tools: Some(vec!["git".to_owned()]),
        approval: ApprovalOverride {
            deny: Some(BTreeMap::from([("x".to_owned(), ApprovalRule::default())])),
            by_default: Some(Ruling::Allow),
            ..ApprovalOverride::default()
        },
        auto_compact_percentage: Some(80),
        inherit: Some("code".to_owned()),
        spawnable_by: Some(vec!["code".to_owned()]),
        ..AgentConfig::default()
    };
    assert_eq!(config.agents["mine"], expected);
    let other = &config.agents["other"];
    assert_eq!((other.primary, other.subagent), (Some(true), Some(true)));
    assert_eq!(other.disabled_tools.as_deref(), Some(&[] as &[String]));
    let reset = json!({"agent": {"mine": {"mode": null, "disabledTools": null, "spawnableBy": null, "inherit": null,
        "maxSteps": null, "autoCompactPercentage": null, "toolCall": {"approval": {"deny": null, "byDefault": null}}}}});
    let (config, _) = over(config, reset);
    let rest = AgentConfig {
        description: Some("d".to_owned()),
        system_prompt: Some("s".to_owned()),
        ..AgentConfig::default()
    };
    assert_eq!(config.agents["mine"], rest);
}

#[test]
fn patterns_match_the_whole_of_a_text_or_are_none() {
    let matches = |pattern: &str, text: &str| whole_match(pattern, true).map(|regex| regex.is_match(text).ok());
    assert_eq!(matches("a|b", "ab").unwrap(), Some(false));
    assert_eq!(matches("a.b", "a\nb").unwrap(), Some(true));
    assert!(!whole_match("a.b", false).unwrap().is_match("a\nb").unwrap());
    assert_eq!(matches("(?!rm).*", "rm x").unwrap(), Some(false));
    assert_eq!(matches("^x$", "x").unwrap(), Some(true));
    assert_eq!(matches("x", "x\n").unwrap(), Some(false));
    for broken in ["(", "a)|(b", "[", "*", "(?<", UNREADABLE_PATTERN] {
        assert!(whole_match(broken, true).is_err(), "{broken}");
    }
    let endless = whole_match("(?=a)(a|a)*b", true).unwrap();
    assert!(endless.is_match(&"a".repeat(5000)).is_err(), "it gives up instead of running on");
}
