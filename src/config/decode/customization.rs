//! Rules, skills, commands, prompts and hooks: where they are, what they say, when they run.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Map, Value};

use super::choices::texts;
use super::{Blank, Decoder, expected, number};
use crate::config::{
    ApprovalRule, Config, CustomizationConfig, HookAction, HookConfig, HookMatcher, HookProgram, HookType,
    PromptsConfig,
};

const HOOK_TIMEOUT: Duration = Duration::from_secs(30);
/// A hook holds up the chat it belongs to.
const LONGEST_HOOK: Duration = Duration::from_secs(3600);
const MOST_ACTIONS: usize = 32;
const MOST_PATHS: usize = 64;

impl<'a> Decoder<'a> {
    pub(super) fn customization(&mut self, values: &'a Map<String, Value>, config: &mut Config) {
        let defaults = Config::default();
        self.object(values, "chat", |decoder, chat| {
            let (known, default) = (&mut config.chat, &defaults.chat);
            decoder.flag(chat, "defaultTrust", &mut known.default_trust, default.default_trust);
            let sync = &mut known.auto_sync_system_prompt;
            decoder.flag(chat, "autoSyncSystemPrompt", sync, default.auto_sync_system_prompt);
        });
        let compact = &mut config.auto_compact_percentage;
        self.value(
            values,
            "autoCompactPercentage",
            |found| percentage(found, defaults.auto_compact_percentage),
            compact,
        );
        let CustomizationConfig { rules, commands, skills, include_parent_agents_files, compat_rules, isolated: _ } =
            &mut config.customization;
        for (key, target) in [("rules", rules), ("commands", commands), ("skills", skills)] {
            self.value(values, key, paths, target);
        }
        let default = &defaults.customization;
        let key = "includeParentAgentsFiles";
        self.flag(values, key, include_parent_agents_files, default.include_parent_agents_files);
        self.flag(values, "compatRules", compat_rules, default.compat_rules);
        self.object(values, "prompts", |decoder, prompts| decoder.prompts(prompts, &mut config.prompts));
        self.object(values, "hooks", |decoder, hooks| {
            for (name, value) in hooks {
                if value.is_null() {
                    config.hooks.remove(name);
                }
                decoder.exact_object(hooks, name, |decoder, entry| {
                    let known = config.hooks.get(name).cloned();
                    drop(decoder.hook(entry, known).map(|hook| config.hooks.insert(name.clone(), hook)));
                });
            }
        });
    }

    pub(super) fn prompts(&mut self, entry: &'a Map<String, Value>, prompts: &mut PromptsConfig) {
        let PromptsConfig { chat, chat_title, compact, init, skill_create, completion, rewrite, tools } = prompts;
        for (key, target) in [
            ("chat", chat),
            ("chatTitle", chat_title),
            ("compact", compact),
            ("init", init),
            ("skillCreate", skill_create),
            ("completion", completion),
            ("rewrite", rewrite),
        ] {
            self.optional_text(entry, key, target, Blank::IsNone);
        }
        self.object(entry, "tools", |decoder, entries| {
            for (name, value) in entries {
                match value {
                    Value::String(text) => drop(tools.insert(name.clone(), text.clone())),
                    Value::Null => drop(tools.remove(name)),
                    other => decoder.report(name, &expected("a string", other)),
                }
            }
        });
    }

    /// The hook with what this source says about it; `None` when it cannot run.
    fn hook(&mut self, entry: &'a Map<String, Value>, known: Option<HookConfig>) -> Option<HookConfig> {
        let complete = known.is_some();
        let mut hook = known.unwrap_or(HookConfig {
            kind: HookType::SessionStart,
            matcher: None,
            actions: Vec::new(),
            visible: true,
            description: None,
            run_on_error: false,
        });
        let before = self.problems.len();
        self.value(entry, "type", hook_type, &mut hook.kind);
        self.value(entry, "matcher", matcher, &mut hook.matcher);
        self.value(entry, "actions", actions, &mut hook.actions);
        // Half a hook would run at another time, for other calls, or not what was meant.
        if self.problems.len() > before {
            return None;
        }
        self.flag(entry, "visible", &mut hook.visible, true);
        self.optional_text(entry, "description", &mut hook.description, Blank::IsNone);
        self.flag(entry, "runOnError", &mut hook.run_on_error, false);
        for (key, is_there) in [("type", complete || entry.contains_key("type")), ("actions", !hook.actions.is_empty())]
        {
            if !is_there {
                self.report(key, "a hook needs it; the hook is ignored");
                return None;
            }
        }
        Some(hook)
    }
}

fn percentage(found: Option<&Value>, default: u32) -> Result<u32, String> {
    match found {
        None => Ok(default),
        Some(value) => number(value)
            .filter(|percent| (1.0..=100.0).contains(percent))
            .map(|percent| percent.round() as u32)
            .ok_or_else(|| expected("a number from 1 to 100", value)),
    }
}

/// Each as `{"path": "…"}`, or the path alone.
fn paths(found: Option<&Value>) -> Result<Vec<String>, String> {
    let Some(value) = found else { return Ok(Vec::new()) };
    let what = "a list of objects with a \"path\"";
    let items = value.as_array().ok_or_else(|| expected(what, value))?;
    if items.len() > MOST_PATHS {
        return Err(format!("expected at most {MOST_PATHS} entries; the value is ignored"));
    }
    let path = |item: &Value| {
        let path = item.as_str().or_else(|| item.get("path").and_then(Value::as_str));
        path.map(|path| path.trim().to_owned()).filter(|path| !path.is_empty()).ok_or_else(|| expected(what, item))
    };
    items.iter().map(path).collect()
}

fn hook_type(found: Option<&Value>) -> Result<HookType, String> {
    let known = || HookType::ALL.map(HookType::name).join(", ");
    let name = found.and_then(Value::as_str).map(str::trim);
    name.and_then(HookType::from_name).ok_or_else(|| format!("expected one of {}; the hook is ignored", known()))
}

fn matcher(found: Option<&Value>) -> Result<Option<HookMatcher>, String> {
    match found {
        None => Ok(None),
        Some(Value::String(pattern)) => Ok(Some(HookMatcher::Pattern(pattern.clone()))),
        Some(Value::Object(tools)) => {
            let rules = tools.iter().map(|(tool, rule)| Ok((tool.clone(), args_matchers(rule)?)));
            Ok(Some(HookMatcher::Tools(rules.collect::<Result<_, String>>()?)))
        }
        Some(other) => Err(of_hook("a string or an object", other)),
    }
}

fn args_matchers(rule: &Value) -> Result<ApprovalRule, String> {
    let wrong = |value: &Value| of_hook("an object with \"argsMatchers\"", value);
    let entries = match rule {
        Value::Null => return Ok(ApprovalRule::default()),
        Value::Object(rule) => match rule.get("argsMatchers") {
            None | Some(Value::Null) => return Ok(ApprovalRule::default()),
            Some(Value::Object(entries)) => entries,
            Some(other) => return Err(wrong(other)),
        },
        other => return Err(wrong(other)),
    };
    let mut args_matchers = BTreeMap::new();
    for (argument, patterns) in entries {
        let patterns = texts(Some(patterns)).map_err(|_| of_hook("a list of strings", patterns))?;
        args_matchers.insert(argument.clone(), patterns);
    }
    Ok(ApprovalRule { args_matchers })
}

fn actions(found: Option<&Value>) -> Result<Vec<HookAction>, String> {
    let items = match found {
        None => return Ok(Vec::new()),
        Some(Value::Array(items)) if items.len() <= MOST_ACTIONS => items,
        Some(other) => return Err(of_hook(&format!("a list of at most {MOST_ACTIONS} actions"), other)),
    };
    items.iter().map(action).collect()
}

fn action(item: &Value) -> Result<HookAction, String> {
    let wrong = || of_hook("an object with either \"shell\" or \"file\"", item);
    if item.get("type").is_some_and(|kind| kind.as_str() != Some("shell")) {
        return Err("actions have the type \"shell\"; the hook is ignored".to_owned());
    }
    let text = |key: &str| match item.get(key) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) if !text.trim().is_empty() => Ok(Some(text.clone())),
        Some(_) => Err(wrong()),
    };
    let program = match (text("shell")?, text("file")?) {
        (Some(line), None) => HookProgram::Shell(line),
        (None, Some(file)) => HookProgram::File(file),
        _ => return Err(wrong()),
    };
    let timeout = match item.get("timeout") {
        None | Some(Value::Null) => HOOK_TIMEOUT,
        Some(value) => number(value)
            .filter(|milliseconds| *milliseconds > 0.0)
            .and_then(|milliseconds| Duration::try_from_secs_f64(milliseconds / 1000.0).ok())
            .filter(|timeout| *timeout <= LONGEST_HOOK)
            .ok_or_else(|| of_hook("a timeout in milliseconds, up to an hour", value))?,
    };
    Ok(HookAction { program, timeout })
}

fn of_hook(what: &str, found: &Value) -> String {
    expected(what, found).replace("the value is ignored", "the hook is ignored")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::apply;
    use super::*;
    use crate::config::ConfigProblem;
    use crate::config::document::Document;

    fn read_over(config: &mut Config, value: Value) -> Vec<String> {
        let mut problems: Vec<ConfigProblem> = Vec::new();
        let document = Document::from_value("test", value).expect("an object");
        apply(config, &document, false, &mut problems);
        problems.into_iter().map(|problem| problem.message).collect()
    }

    fn read(value: Value) -> (Config, Vec<String>) {
        let mut config = Config::default();
        let problems = read_over(&mut config, value);
        (config, problems)
    }

    #[test]
    fn places_flags_and_prompts() {
        let (config, problems) = read(json!({
            "rules": [{"path": "a.md"}, "b"], "commands": [{"path": " ~/c "}], "skills": [],
            "includeParentAgentsFiles": true, "compatRules": false, "autoCompactPercentage": 60.4,
            "chat": {"defaultTrust": true, "autoSyncSystemPrompt": true},
            "prompts": {"chat": "be good", "chatTitle": " ", "skillCreate": "s", "tools": {"eca__grep": "find"}},
        }));
        assert_eq!(problems, Vec::<String>::new());
        let customization = &config.customization;
        assert_eq!(customization.rules, ["a.md", "b"]);
        assert_eq!(customization.commands, ["~/c"]);
        assert!(customization.include_parent_agents_files && !customization.compat_rules);
        assert_eq!(config.auto_compact_percentage, 60);
        assert!(config.chat.default_trust && config.chat.auto_sync_system_prompt);
        let prompts = &config.prompts;
        assert_eq!((prompts.chat.as_deref(), prompts.chat_title.as_deref()), (Some("be good"), None));
        assert_eq!(prompts.tools["eca__grep"], "find");
        for wrong in [
            json!({"rules": {"path": "a"}}),
            json!({"rules": [{"file": "a"}]}),
            json!({"skills": [7]}),
            json!({"commands": (0..65).map(|n| n.to_string()).collect::<Vec<_>>()}),
            json!({"autoCompactPercentage": 0}),
            json!({"autoCompactPercentage": 101}),
            json!({"prompts": {"tools": {"x": 1}}}),
            json!({"compatRules": "yes"}),
        ] {
            let (config, problems) = read(wrong.clone());
            assert_eq!(problems.len(), 1, "{wrong}: {problems:?}");
            assert_eq!(config, Config::default(), "{wrong}");
        }
    }

    #[test]
    fn hooks_are_read_whole_and_merged_by_name() {
        let (mut config, problems) = read(json!({"hooks": {
            "guard": {"type": "preToolCall", "matcher": {"eca__write_file": {"argsMatchers": {"path": [".*"], "x": "y"}},
                "git": {}}, "actions": [{"type": "shell", "shell": "true"}, {"file": "h.sh", "timeout": 1500}]},
            "old": {"type": "postPrompt", "matcher": "manual", "visible": false, "runOnError": true,
                "description": "d", "actions": [{"shell": "x"}]},
        }}));
        assert_eq!(problems, Vec::<String>::new());
        let guard = &config.hooks["guard"];
        assert_eq!((guard.kind, guard.visible, guard.run_on_error), (HookType::PreToolCall, true, false));
        let shell = HookAction { program: HookProgram::Shell("true".into()), timeout: HOOK_TIMEOUT };
        let file = HookAction { program: HookProgram::File("h.sh".into()), timeout: Duration::from_millis(1500) };
        assert_eq!(guard.actions, [shell, file]);
        let Some(HookMatcher::Tools(tools)) = &guard.matcher else { panic!("{guard:?}") };
        assert_eq!(tools["eca__write_file"].args_matchers["x"], ["y"]);
        assert!(tools["git"].args_matchers.is_empty());
        let old = &config.hooks["old"];
        assert_eq!(old.kind, HookType::PostRequest, "the older name");
        assert_eq!(old.matcher, Some(HookMatcher::Pattern("manual".into())));
        let more = json!({"hooks": {"old": {"visible": true}, "guard": null}});
        assert_eq!(read_over(&mut config, more), Vec::<String>::new());
        assert_eq!(config.hooks.len(), 1);
        assert!(config.hooks["old"].visible && config.hooks["old"].run_on_error);
    }

    #[test]
    fn half_a_hook_is_none() {
        for (hook, word) in [
            (json!({"actions": [{"shell": "x"}]}), "type"),
            (json!({"type": "preToolCall"}), "actions"),
            (json!({"type": "preToolCall", "actions": []}), "actions"),
            (json!({"type": "whenever", "actions": [{"shell": "x"}]}), "sessionStart, "),
            (json!({"type": "chatEnd", "actions": [{"shell": "x", "file": "y"}]}), "either"),
            (json!({"type": "chatEnd", "actions": [{"shell": " "}]}), "either"),
            (json!({"type": "chatEnd", "actions": [{"type": "http", "shell": "x"}]}), "\"shell\""),
            (json!({"type": "chatEnd", "actions": [{"shell": "x", "timeout": 0}]}), "milliseconds"),
            (json!({"type": "chatEnd", "actions": [{"shell": "x", "timeout": 3_600_001}]}), "milliseconds"),
            (json!({"type": "chatEnd", "actions": "x"}), "list"),
            (json!({"type": "chatEnd", "matcher": 7, "actions": [{"shell": "x"}]}), "a string or an object"),
            (
                json!({"type": "chatEnd", "matcher": {"t": {"argsMatchers": {"a": [1]}}}, "actions": [{"shell": "x"}]}),
                "strings",
            ),
            (
                json!({"type": "chatEnd", "matcher": {"t": {"argsMatchers": 1}}, "actions": [{"shell": "x"}]}),
                "argsMatchers",
            ),
            (json!({"type": null, "actions": [{"shell": "x"}]}), "one of"),
        ] {
            let (config, problems) = read(json!({"hooks": {"h": hook}}));
            assert!(config.hooks.is_empty(), "{hook}");
            let [problem] = &problems[..] else { panic!("{hook}: {problems:?}") };
            assert!(problem.contains(word) && problem.ends_with("the hook is ignored"), "{hook}: {problem}");
        }
    }

    #[test]
    fn every_type_has_a_name_of_its_own() {
        for kind in HookType::ALL {
            assert_eq!(HookType::from_name(kind.name()), Some(kind));
        }
        assert_eq!(HookType::from_name("prePrompt"), Some(HookType::PreRequest));
        assert_eq!(HookType::from_name("PreToolCall"), None);
    }
}
