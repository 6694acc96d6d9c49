//! What tools there are, who may run them, and what an agent says about itself.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::choices::texts;
use super::{Blank, Decoder, current_agent_name, expected, whole_number};
use crate::config::{
    AfterRejection, AgentConfig, ApprovalConfig, ApprovalOverride, ApprovalRule, Config, CustomToolConfig,
    ManualApproval, RememberFor, Ruling, Sandbox, ShellConfig, ToolCallConfig, UNREADABLE_PATTERN, whole_match,
};

type Rules = BTreeMap<String, ApprovalRule>;

/// Longer names are refused by the vendors, and so are other characters.
const MAX_TOOL_NAME: usize = 48;

impl<'a> Decoder<'a> {
    pub(super) fn tools(&mut self, values: &'a Map<String, Value>, config: &mut Config) {
        let defaults = Config::default();
        self.value(values, "disabledTools", texts, &mut config.disabled_tools);
        self.seconds(values, "lspTimeoutSeconds", &mut config.lsp_timeout, defaults.lsp_timeout);
        self.object(values, "customTools", |decoder, tools| {
            for (name, value) in tools {
                if value.is_null() {
                    config.custom_tools.remove(name);
                }
                decoder.exact_object(tools, name, |decoder, entry| {
                    decoder.custom_tool(name, entry, &mut config.custom_tools);
                });
            }
        });
        self.object(values, "toolCall", |decoder, entry| decoder.tool_call(entry, &mut config.tool_call));
    }

    /// Everything of an agent but what it begins with.
    pub(super) fn agent_behavior(&mut self, entry: &'a Map<String, Value>, agent: &mut AgentConfig) {
        let mut mode = (agent.primary, agent.subagent);
        self.value(entry, "mode", agent_mode, &mut mode);
        (agent.primary, agent.subagent) = mode;
        self.optional_text(entry, "description", &mut agent.description, Blank::IsNone);
        self.optional_text(entry, "systemPrompt", &mut agent.system_prompt, Blank::IsNone);
        self.value(entry, "maxSteps", |found| optional_whole(found, 1, u32::MAX), &mut agent.max_steps);
        let percentage = &mut agent.auto_compact_percentage;
        self.value(entry, "autoCompactPercentage", |found| optional_whole(found, 1, 100), percentage);
        self.value(entry, "disabledTools", optional_texts, &mut agent.disabled_tools);
        self.optional_text(entry, "inherit", &mut agent.inherit, Blank::IsNone);
        if let Some(parent) = &mut agent.inherit {
            *parent = current_agent_name(parent).to_owned();
        }
        self.value(entry, "spawnableBy", optional_texts, &mut agent.spawnable_by);
        for name in agent.spawnable_by.iter_mut().flatten() {
            *name = current_agent_name(name).to_owned();
        }
        self.object(entry, "prompts", |decoder, entry| decoder.prompts(entry, &mut agent.prompts));
        self.object(entry, "toolCall", |decoder, entry| {
            decoder.object(entry, "approval", |decoder, entry| decoder.approval(entry, &mut agent.approval));
        });
    }

    fn tool_call(&mut self, entry: &'a Map<String, Value>, settings: &mut ToolCallConfig) {
        let defaults = ToolCallConfig::default();
        self.object(entry, "approval", |decoder, entry| decoder.general_approval(entry, &mut settings.approval));
        self.value(entry, "manualApproval", manual_approval, &mut settings.approval.manual);
        self.object(entry, "readFile", |decoder, entry| {
            decoder.size(entry, "maxLines", &mut settings.read_file_max_lines, defaults.read_file_max_lines);
        });
        self.object(entry, "shellCommand", |decoder, entry| decoder.shell(entry, &mut settings.shell));
        self.object(entry, "editorNav", |decoder, entry| {
            decoder.flag(entry, "enabled", &mut settings.editor_nav, defaults.editor_nav);
        });
        self.object(entry, "outputTruncation", |decoder, entry| {
            decoder.size(entry, "lines", &mut settings.max_output_lines, defaults.max_output_lines);
            let mut kibibytes = settings.max_output_bytes / 1024;
            decoder.size(entry, "sizeKb", &mut kibibytes, defaults.max_output_bytes / 1024);
            settings.max_output_bytes = kibibytes.saturating_mul(1024);
        });
        let words = [("continue", AfterRejection::Continue), ("ask", AfterRejection::Ask)];
        self.choice(entry, "afterRejection", &words, &mut settings.after_rejection);
    }

    fn general_approval(&mut self, entry: &'a Map<String, Value>, approval: &mut ApprovalConfig) {
        let defaults = ToolCallConfig::default().approval;
        let mut said = ApprovalOverride {
            allow: Some(std::mem::take(&mut approval.allow)),
            ask: Some(std::mem::take(&mut approval.ask)),
            deny: Some(std::mem::take(&mut approval.deny)),
            by_default: approval.by_default,
        };
        self.approval(entry, &mut said);
        approval.allow = said.allow.unwrap_or(defaults.allow);
        approval.ask = said.ask.unwrap_or(defaults.ask);
        approval.deny = said.deny.unwrap_or(defaults.deny);
        approval.by_default = said.by_default;
        let words = [("chat", RememberFor::Chat), ("server", RememberFor::Server)];
        self.choice(entry, "rememberFor", &words, &mut approval.remember_for);
    }

    fn approval(&mut self, entry: &'a Map<String, Value>, approval: &mut ApprovalOverride) {
        self.rules(entry, "allow", &mut approval.allow);
        self.rules(entry, "ask", &mut approval.ask);
        self.rules(entry, "deny", &mut approval.deny);
        let words = [("allow", Some(Ruling::Allow)), ("ask", Some(Ruling::Ask)), ("deny", Some(Ruling::Deny))];
        self.choice(entry, "byDefault", &words, &mut approval.by_default);
    }

    /// The rules of one kind, by the tools they are for. A later source replaces a tool's rule whole.
    fn rules(&mut self, entry: &'a Map<String, Value>, key: &str, rules: &mut Option<Rules>) {
        if matches!(self.find(entry, key), Some((_, Value::Null))) {
            *rules = None;
        }
        self.object(entry, key, |decoder, entries| {
            let rules = rules.get_or_insert_default();
            for (selector, value) in entries {
                if value.is_null() {
                    rules.remove(selector);
                }
                decoder.exact_object(entries, selector, |decoder, entry| {
                    let mut rule = ApprovalRule::default();
                    decoder.matchers(entry, &mut rule.args_matchers);
                    rules.insert(selector.clone(), rule);
                });
            }
        });
    }

    /// What cannot be read stays as a pattern that is none: a rule must not begin to match
    /// everything because somebody mistyped it.
    fn matchers(&mut self, entry: &'a Map<String, Value>, matchers: &mut BTreeMap<String, Vec<String>>) {
        match self.find(entry, "argsMatchers") {
            None | Some((_, Value::Null)) => return,
            Some((_, Value::Object(entries))) if entries.is_empty() => return,
            Some((_, Value::Object(_))) => {}
            Some(_) => drop(matchers.insert(String::new(), vec![UNREADABLE_PATTERN.to_owned()])),
        }
        self.object(entry, "argsMatchers", |decoder, entries| {
            for (argument, value) in entries {
                let patterns = texts(Some(value)).unwrap_or_else(|message| {
                    decoder.report(argument, &message);
                    vec![UNREADABLE_PATTERN.to_owned()]
                });
                decoder.path.push(argument.clone());
                for (index, pattern) in patterns.iter().enumerate() {
                    if pattern != UNREADABLE_PATTERN && whole_match(pattern, true).is_err() {
                        let message = "this is no regular expression; it allows nothing, and what it should \
                                       forbid is asked about";
                        decoder.report(&index.to_string(), message);
                    }
                }
                decoder.path.pop();
                matchers.insert(argument.clone(), patterns);
            }
        });
    }

    fn shell(&mut self, entry: &'a Map<String, Value>, shell: &mut ShellConfig) {
        let defaults = ToolCallConfig::default().shell;
        self.optional_text(entry, "path", &mut shell.path, Blank::IsNone);
        self.value(entry, "args", texts, &mut shell.args);
        self.size(entry, "summaryMaxLength", &mut shell.summary_max_length, defaults.summary_max_length);
        let words =
            [("off", Sandbox::Off), ("workspace-write", Sandbox::WorkspaceWrite), ("read-only", Sandbox::ReadOnly)];
        self.choice(entry, "sandbox", &words, &mut shell.sandbox);
    }

    fn custom_tool(
        &mut self,
        name: &str,
        entry: &'a Map<String, Value>,
        tools: &mut BTreeMap<String, CustomToolConfig>,
    ) {
        let fits = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        if name.is_empty() || name.len() > MAX_TOOL_NAME || !name.chars().all(fits) {
            let message = format!(
                "a tool's name has up to {MAX_TOOL_NAME} letters, digits, dashes and underscores; the tool is ignored"
            );
            return self.report_here(&message);
        }
        let known = tools.remove(name);
        let mut command = known.as_ref().map(|tool| tool.command.clone());
        let mut description = known.as_ref().map(|tool| tool.description.clone());
        let mut schema = known.map(|tool| tool.schema).unwrap_or_default();
        self.optional_text(entry, "command", &mut command, Blank::IsNone);
        self.optional_text(entry, "description", &mut description, Blank::IsNone);
        self.value(
            entry,
            "schema",
            |found| match found {
                None => Ok(Map::new()),
                Some(Value::Object(schema)) => Ok(schema.clone()),
                Some(other) => Err(expected("an object", other)),
            },
            &mut schema,
        );
        let Some(command) = command else {
            return self.report_here("there is no \"command\"; the tool is ignored");
        };
        let description = description.unwrap_or_else(|| format!("Runs: {}", crate::base::text::one_line(&command, 80)));
        tools.insert(name.to_owned(), CustomToolConfig { description, command, schema });
    }

    /// A number of lines, characters or kibibytes.
    pub(super) fn size(&mut self, map: &'a Map<String, Value>, key: &str, target: &mut usize, default: usize) {
        let mut number = u32::try_from(*target).unwrap_or(u32::MAX);
        self.count(map, key, &mut number, u32::try_from(default).unwrap_or(u32::MAX), 1);
        *target = number as usize;
    }

    /// One of a few words; `null` asks for the default.
    fn choice<T: Copy + Default>(
        &mut self,
        map: &'a Map<String, Value>,
        key: &str,
        words: &[(&str, T)],
        target: &mut T,
    ) {
        let decode = |found: Option<&Value>| {
            let Some(value) = found else { return Ok(T::default()) };
            let said = value.as_str().map(str::trim);
            let known = words.iter().find(|(word, _)| said == Some(*word));
            known.map(|(_, choice)| *choice).ok_or_else(|| {
                let names: Vec<String> = words.iter().map(|(word, _)| format!("\"{word}\"")).collect();
                format!("expected {}; the value is ignored", names.join(" or "))
            })
        };
        self.value(map, key, decode, target);
    }

    /// A problem of the object in hand.
    fn report_here(&mut self, message: &str) {
        self.problems.push(self.document.problem(&self.path, message));
    }
}

/// Whether users can select the agent, and whether other agents can start it.
fn agent_mode(found: Option<&Value>) -> Result<(Option<bool>, Option<bool>), String> {
    if found.is_none() {
        return Ok((None, None));
    }
    let modes = texts(found)?;
    let known = |mode: &String| matches!(mode.trim(), "primary" | "subagent");
    if modes.is_empty() || !modes.iter().all(known) {
        return Err("expected \"primary\", \"subagent\" or a list of both; the value is ignored".to_owned());
    }
    let says = |wanted: &str| Some(modes.iter().any(|mode| mode.trim() == wanted));
    Ok((says("primary"), says("subagent")))
}

fn manual_approval(found: Option<&Value>) -> Result<Option<ManualApproval>, String> {
    match found {
        None => Ok(None),
        Some(Value::Bool(all)) => Ok(Some(ManualApproval::All(*all))),
        Some(Value::Array(_)) => texts(found).map(|tools| Some(ManualApproval::Tools(tools))),
        Some(other) => Err(expected("true, false or a list of strings", other)),
    }
}

fn optional_texts(found: Option<&Value>) -> Result<Option<Vec<String>>, String> {
    found.map(|value| texts(Some(value))).transpose()
}

fn optional_whole(found: Option<&Value>, least: u32, most: u32) -> Result<Option<u32>, String> {
    let read = |value: &Value| {
        let number = whole_number(value).and_then(|n| u32::try_from(n).ok()).filter(|n| (least..=most).contains(n));
        let range = if most == u32::MAX { format!("from {least}") } else { format!("from {least} to {most}") };
        number.ok_or_else(|| expected(&format!("a whole number {range}"), value))
    };
    found.map(read).transpose()
}

#[cfg(test)]
mod tests;
