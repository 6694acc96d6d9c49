//! Older names for prompts, brought to where they are looked for today. Done before anything else is
//! read from a document, so that trust and interpolation see one spelling only.

use serde_json::{Map, Value};

/// A file is named by the form that inserts one.
const FILE: &str = "File";

/// `inserts` says whether files can be inserted into this document: not into what a client sends.
pub(super) fn rename_prompts(values: &mut Map<String, Value>, inserts: bool) {
    for agents in ["agent", "behavior"] {
        let Some(Value::Object(agents)) = values.get_mut(agents) else { continue };
        for agent in agents.values_mut().filter_map(Value::as_object_mut) {
            if let Some(text) = take(agent, "systemPrompt", inserts) {
                agent.insert("systemPrompt".to_owned(), text);
            }
        }
    }
    for (place, name, prompt) in [
        ("", "compactPrompt", "compact"),
        ("", "systemPrompt", "chat"),
        ("completion", "systemPrompt", "completion"),
        ("rewrite", "systemPrompt", "rewrite"),
    ] {
        let text = match (place, values.get_mut(place)) {
            ("", _) => take(values, name, inserts),
            (_, Some(Value::Object(inside))) => take(inside, name, inserts),
            _ => None,
        };
        let prompts = values.get_mut("prompts").and_then(Value::as_object_mut);
        match (text, prompts) {
            // What stands under its present name counts.
            (Some(text), Some(prompts)) => drop(prompts.entry(prompt).or_insert(text)),
            (Some(text), None) => {
                let prompts = Map::from_iter([(prompt.to_owned(), text)]);
                values.insert("prompts".to_owned(), Value::Object(prompts));
            }
            (None, _) => {}
        }
    }
}

/// The text of this name, or a reference to the file that holds it; both are gone then.
fn take(values: &mut Map<String, Value>, name: &str, inserts: bool) -> Option<Value> {
    let file = values.remove(&format!("{name}{FILE}"));
    let text = values.remove(name);
    let named = file.as_ref().and_then(Value::as_str).map(str::trim).filter(|file| !file.is_empty() && inserts);
    text.or_else(|| named.map(|file| Value::from(format!("${{file:{file}}}"))))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn renamed(mut values: Value, inserts: bool) -> Value {
        rename_prompts(values.as_object_mut().unwrap(), inserts);
        values
    }

    #[test]
    fn older_names_become_the_present_ones() {
        let old = json!({
            "compactPromptFile": "compact.md", "systemPromptFile": "chat.md",
            "completion": {"model": "m", "systemPrompt": "complete"}, "rewrite": {"systemPromptFile": "rewrite.md"},
            "behavior": {"plan": {"systemPromptFile": "plan.md"}},
            "agent": {"x": {"systemPrompt": "own", "systemPromptFile": "x.md"}, "y": 3},
        });
        let new = json!({
            "prompts": {"compact": "${file:compact.md}", "chat": "${file:chat.md}", "completion": "complete",
                "rewrite": "${file:rewrite.md}"},
            "completion": {"model": "m"}, "rewrite": {},
            "behavior": {"plan": {"systemPrompt": "${file:plan.md}"}},
            "agent": {"x": {"systemPrompt": "own"}, "y": 3},
        });
        assert_eq!(renamed(old, true), new);
    }

    #[test]
    fn the_present_names_count_and_clients_name_no_files() {
        let both = json!({"compactPrompt": "old", "prompts": {"compact": "new"}});
        assert_eq!(renamed(both, true), json!({"prompts": {"compact": "new"}}));
        let options = json!({"compactPromptFile": "/etc/passwd", "systemPrompt": "s", "other": 1});
        assert_eq!(renamed(options, false), json!({"prompts": {"chat": "s"}, "other": 1}));
        assert_eq!(renamed(json!({}), true), json!({}));
    }
}
