//! What agents come to: built-in ones, inherited ones, and those that do not exist.

use serde_json::json;

use super::*;
use crate::config::{ConfigProblem, Ruling, decode, document::Document};

fn config(value: serde_json::Value) -> Config {
    let mut config = Config::default();
    let mut problems: Vec<ConfigProblem> = Vec::new();
    let document = Document::from_value("test", value).expect("an object");
    decode::apply(&mut config, &document, false, &mut problems);
    assert_eq!(problems, []);
    config
}

#[test]
fn four_agents_are_there_by_themselves() {
    let config = Config::default();
    assert_eq!(config.primary_agents(), ["code", "plan"]);
    assert_eq!(config.subagents_of("code"), ["explorer", "general"]);
    assert_eq!(config.disabled_tools_of("code"), ["preview_file_change"]);
    assert_eq!(config.disabled_tools_of("general"), ["preview_file_change"]);
    assert_eq!(config.disabled_tools_of("plan"), ["edit_file", "write_file", "move_file", "git"]);
    assert_eq!(config.disabled_tools_of("explorer").len(), 5);
    for name in ["code", "general"] {
        assert_eq!(config.tool_call_of(name), config.tool_call);
    }
    let plan = config.tool_call_of("plan").approval;
    assert!(plan.allow.contains_key("eca__preview_file_change") && plan.allow.contains_key("eca__ask_user"));
    assert_eq!(plan.deny.keys().collect::<Vec<_>>(), ["eca__shell_command"]);
    assert_eq!(config.tool_call_of("explorer").approval, plan);
    let patterns = plan.allow.values().chain(plan.deny.values()).flat_map(|rule| rule.args_matchers.values().flatten());
    for pattern in patterns {
        assert!(crate::config::whole_match(pattern, true).is_ok(), "{pattern}");
    }
}

#[test]
fn an_agent_that_does_not_exist_is_code_and_says_so() {
    let config = config(json!({"agent": {"mine": {"maxSteps": 2}, "code": {"maxSteps": 5}}}));
    assert_eq!(config.agent_name("plan"), ("plan".to_owned(), None));
    assert_eq!(config.agent_name("mine"), ("mine".to_owned(), None));
    assert_eq!(config.agent_name("agent"), ("code".to_owned(), None));
    let (name, note) = config.agent_name("plam\n");
    assert_eq!(name, "code");
    assert!(note.unwrap().contains("\"plam\""));
    assert_eq!(config.agent_of("nobody").max_steps, Some(5));
    assert_eq!(config.agent_of("mine").max_steps, Some(2));
}

#[test]
fn the_users_words_about_a_built_in_agent_are_laid_over_it() {
    let config = config(json!({
        "disabledTools": ["task", "git"],
        "toolCall": {"approval": {"allow": {"general": {}}, "deny": {"bad": {}, "eca__shell_command":
            {"argsMatchers": {"command": ["mine"]}}}, "byDefault": "allow"}},
        "agent": {
            "plan": {"disabledTools": ["x"], "toolCall": {"approval": {"allow": {"shell_command": {}}}}},
            "explorer": {"toolCall": {"approval": {"deny": {"only": {}}, "byDefault": "deny"}}},
            "code": {"toolCall": {"approval": {"deny": {}}}, "mode": "subagent"},
        }
    }));
    assert_eq!(config.disabled_tools_of("plan"), ["task", "git", "x"]);
    let plan = config.tool_call_of("plan").approval;
    assert!(plan.allow.contains_key("shell_command") && plan.allow.contains_key("eca__read_file"));
    assert!(!plan.allow.contains_key("eca__shell_command"), "the short name means the same tool");
    assert!(!plan.allow.contains_key("general"), "the agent's allow rules replace the general ones");
    assert_eq!(plan.by_default, Some(Ruling::Allow));
    assert!(plan.deny.contains_key("bad"), "what the user forbids for all stays forbidden");
    let shell = &plan.deny["eca__shell_command"].args_matchers["command"];
    assert!(shell.len() > 2 && shell.contains(&"mine".to_owned()), "{shell:?}");
    let explorer = config.tool_call_of("explorer").approval;
    assert_eq!(explorer.deny.keys().collect::<Vec<_>>(), ["eca__shell_command", "only"]);
    assert_eq!(explorer.by_default, Some(Ruling::Deny));
    assert!(config.tool_call_of("code").approval.deny.is_empty(), "an agent may say that nothing is denied");
    assert_eq!(config.primary_agents(), ["plan"]);
}

#[test]
fn an_agent_inherits_one_level() {
    let config = config(json!({
        "toolCall": {"approval": {"deny": {"bad": {}}}},
        "agent": {
            "base": {"inherit": "plan", "systemPrompt": "base", "maxSteps": 9, "disabledTools": ["a"], "mode": "primary",
                "toolCall": {"approval": {"ask": {"one": {}, "two": {}}}}},
            "child": {"inherit": "base", "maxSteps": 1, "disabledTools": [],
                "toolCall": {"approval": {"ask": {"two": {"argsMatchers": {"x": ["y"]}}}}}},
            "reader": {"inherit": "plan", "mode": "subagent", "spawnableBy": "code"},
            "self": {"inherit": "self"}, "lost": {"inherit": "nobody"},
        }
    }));
    let child = config.agent_of("child");
    assert_eq!((child.system_prompt.as_deref(), child.max_steps), (Some("base"), Some(1)));
    assert_eq!((child.primary, child.subagent), (Some(true), Some(false)));
    assert_eq!(child.disabled_tools.as_deref(), Some(&[] as &[String]));
    let ask = child.approval.ask.unwrap();
    assert!(ask["one"].args_matchers.is_empty() && !ask["two"].args_matchers.is_empty());
    assert_eq!(child.approval.deny, None, "what the parent inherits is not looked at");
    let reader = config.tool_call_of("reader").approval;
    assert!(reader.deny.contains_key("bad") && reader.deny.contains_key("eca__shell_command"));
    assert_eq!(config.subagents_of("code"), ["explorer", "general", "lost", "reader", "self"]);
    assert_eq!(config.subagents_of("plan"), ["explorer", "general", "lost", "self"]);
    assert_eq!(config.agent_of("self"), AgentConfig { inherit: Some("self".into()), ..AgentConfig::default() });
    let problems = config.agent_problems();
    assert!(
        problems.len() == 2 && problems[0].contains("agent.lost") && problems[1].contains("itself"),
        "{problems:?}"
    );
}

#[test]
fn two_rules_together_match_what_either_matches() {
    let mut rule = ApprovalRule::matching("a", &["1", "2"]);
    rule.widen(&ApprovalRule::matching("a", &["2", "3"]));
    rule.widen(&ApprovalRule::matching("b", &["4"]));
    assert_eq!(rule.args_matchers["a"], ["1", "2", "3"]);
    assert_eq!(rule.args_matchers.len(), 2);
    rule.widen(&ApprovalRule::default());
    assert_eq!(rule, ApprovalRule::default());
}
