//! For which calls and compactions a hook is.

use serde_json::Value;

use super::event::HookEvent;
use crate::config::{HookConfig, HookMatcher, HookType};
use crate::customization::pattern::{Found, Pattern};

/// A matcher, compiled.
#[derive(Debug)]
pub(super) enum Matcher {
    All,
    /// For the whole of `server__tool`.
    Tool(Pattern),
    Selectors(Vec<Selector>),
    /// How a compaction was started.
    Trigger(String),
}

/// A tool or a server, and patterns by argument, of which each argument needs one.
#[derive(Debug)]
pub(super) struct Selector {
    name: String,
    arguments: Vec<(String, Vec<Pattern>)>,
}

impl Matcher {
    pub(super) fn compile(hook: &HookConfig) -> Result<Self, String> {
        let about_tools = matches!(hook.kind, HookType::PreToolCall | HookType::PostToolCall);
        let about_compaction = matches!(hook.kind, HookType::PreCompact | HookType::PostCompact);
        match &hook.matcher {
            // Nothing else has something to choose from.
            _ if !about_tools && !about_compaction => Ok(Self::All),
            None => Ok(Self::All),
            Some(HookMatcher::Pattern(all)) if matches!(all.trim(), "" | "*") => Ok(Self::All),
            Some(HookMatcher::Pattern(trigger)) if about_compaction => Ok(Self::Trigger(trigger.trim().to_owned())),
            Some(HookMatcher::Pattern(pattern)) => Pattern::whole(pattern).map(Self::Tool),
            Some(HookMatcher::Tools(_)) if about_compaction => Err("its matcher must be manual or auto".to_owned()),
            Some(HookMatcher::Tools(tools)) => {
                let mut selectors = Vec::new();
                for (name, rule) in tools {
                    let mut arguments = Vec::new();
                    for (argument, patterns) in &rule.args_matchers {
                        let patterns = patterns.iter().map(|pattern| Pattern::whole(pattern));
                        arguments.push((argument.clone(), patterns.collect::<Result<_, _>>()?));
                    }
                    selectors.push(Selector { name: name.clone(), arguments });
                }
                Ok(Self::Selectors(selectors))
            }
        }
    }

    pub(super) fn is_for(&self, event: &HookEvent) -> bool {
        match self {
            Self::All => true,
            Self::Tool(pattern) => event.call().is_some_and(|call| fits(pattern, &call.full_name())),
            Self::Selectors(selectors) => event.call().is_some_and(|call| {
                let fits = |selector: &Selector| {
                    call.is_selected_by(&selector.name)
                        && selector
                            .arguments
                            .iter()
                            .all(|argument| argument_fits(argument, call.input.get(&argument.0)))
                };
                selectors.iter().any(fits)
            }),
            Self::Trigger(wanted) => event.trigger().is_some_and(|trigger| trigger.name() == wanted),
        }
    }
}

fn argument_fits((_, patterns): &(String, Vec<Pattern>), value: Option<&Value>) -> bool {
    let text = match value {
        None => return false,
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
    };
    patterns.iter().any(|pattern| fits(pattern, &text))
}

/// A hook may be there to prevent something, so it runs when nobody can tell.
fn fits(pattern: &Pattern, text: &str) -> bool {
    pattern.search(text) != Found::No
}
