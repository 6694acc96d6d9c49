//! Variants: named additions to a model's request, mostly how hard it should think.
//!
//! Known families of models have built-in ones. `variantsByModel` in the configuration comes
//! before the built-in table, and `models.<name>.variants` is laid over both; an empty object
//! there takes a variant away. The variant `default` is not offered: it is what is sent when the
//! user chose none.

use std::collections::BTreeMap;

use fancy_regex::Regex;
use serde_json::{Map, Value, json};

use crate::config::VariantRule;

/// A model's variants and what each adds to the request body.
pub type Variants = BTreeMap<String, Map<String, Value>>;

/// The name of what is sent when nothing was chosen.
pub const DEFAULT: &str = "default";

/// A model as the rules see it.
#[derive(Debug, Clone, Copy)]
pub struct Asked<'a> {
    pub provider: &'a str,
    /// The dialect it is spoken to in.
    pub api: &'a str,
    /// The name that is sent.
    pub name: &'a str,
    /// What the configuration says about this very model.
    pub own: &'a Variants,
}

/// The user's rules, ready to be matched.
#[derive(Debug, Default)]
pub struct Rules {
    rules: Vec<(Regex, VariantRule)>,
}

impl Rules {
    /// Patterns that cannot be read are left out and named in the second value.
    pub fn new(rules: &BTreeMap<String, VariantRule>) -> (Self, Vec<String>) {
        let mut problems = Vec::new();
        let read = |(pattern, rule): (&String, &VariantRule)| match Regex::new(&format!("(?i){pattern}")) {
            Ok(regex) => Some((regex, rule.clone())),
            Err(_) => {
                problems.push(format!("variantsByModel: \"{pattern}\" is not a pattern that can be read"));
                None
            }
        };
        let rules = rules.iter().filter_map(read).collect();
        (Self { rules }, problems)
    }

    /// Every variant of a model, `default` included.
    pub fn variants(&self, asked: Asked<'_>) -> Variants {
        let fits = |(pattern, rule): &&(Regex, VariantRule)| {
            // A pattern that needs too many steps does not match.
            pattern.is_match(asked.name).unwrap_or(false)
                && (rule.api.is_empty() || rule.api.iter().any(|api| api == asked.api))
                && !rule.exclude_providers.iter().any(|provider| provider == asked.provider)
        };
        let mut variants = match self.rules.iter().find(fits) {
            Some((_, rule)) => rule.variants.clone(),
            None => built_in(asked),
        };
        for (name, payload) in asked.own {
            variants.insert(name.clone(), payload.clone());
        }
        variants.retain(|_, payload| !payload.is_empty());
        variants
    }
}

/// Lays `extra` over `target`, object by object. A `null` stays: it removes a key of the body.
pub fn overlay(target: &mut Map<String, Value>, extra: &Map<String, Value>) {
    for (key, value) in extra {
        match (target.get_mut(key), value) {
            (Some(Value::Object(below)), Value::Object(above)) => overlay(below, above),
            _ => drop(target.insert(key.clone(), value.clone())),
        }
    }
}

/// A family of models that share their variants.
struct Family {
    /// Parts of names, with `-` for any separator.
    names: &'static [&'static str],
    /// The dialects in which `payload` means something.
    apis: &'static [&'static str],
    excluded: &'static [&'static str],
    variants: &'static [&'static str],
    /// What a variant adds, by dialect and variant.
    payload: fn(&str, &str) -> Value,
}

const CLAUDE: &[&str] = &["anthropic", "bedrock"];
const OPENAI: &[&str] = &["openai-responses", "openai-chat"];
const CHAT: &[&str] = &["openai-chat"];

const FAMILIES: &[Family] = &[
    Family {
        names: &["opus-4-7", "opus-4-8", "opus-5", "sonnet-5", "fable-5", "mythos-5"],
        apis: CLAUDE,
        excluded: &[],
        variants: &[DEFAULT, "low", "medium", "high", "xhigh", "max"],
        payload: claude_with_summary,
    },
    Family {
        names: &["sonnet-4-6", "opus-4-5", "opus-4-6"],
        apis: CLAUDE,
        excluded: &[],
        variants: &["low", "medium", "high", "max"],
        payload: claude,
    },
    Family {
        names: &["gpt-5-6"],
        apis: OPENAI,
        excluded: &["github-copilot"],
        variants: &["none", "low", "medium", "high", "xhigh", "max"],
        payload: gpt,
    },
    Family {
        names: &["gpt-5-2", "gpt-5-4", "gpt-5-5", "gpt-5-3-codex"],
        apis: OPENAI,
        excluded: &["github-copilot"],
        variants: &["none", "low", "medium", "high", "xhigh"],
        payload: gpt,
    },
    Family {
        names: &["deepseek-v4-pro", "deepseek-v4-flash"],
        apis: CHAT,
        excluded: &[],
        variants: &["none", "high", "max"],
        payload: deepseek,
    },
    Family {
        names: &["glm-5-2"],
        apis: CHAT,
        excluded: &[],
        variants: &["none", "high", "max"],
        payload: |_, effort| json!({"reasoning_effort": effort}),
    },
];

fn built_in(asked: Asked<'_>) -> Variants {
    let name: String =
        asked.name.to_lowercase().chars().map(|c| if matches!(c, '.' | '_') { '-' } else { c }).collect();
    let fits = |family: &&Family| {
        family.apis.contains(&asked.api)
            && !family.excluded.contains(&asked.provider)
            && family.names.iter().any(|part| names(&name, part))
    };
    let Some(family) = FAMILIES.iter().find(fits) else { return Variants::new() };
    let row = |variant: &&str| match (family.payload)(asked.api, variant) {
        Value::Object(payload) => Some(((*variant).to_owned(), payload)),
        _ => None,
    };
    family.variants.iter().filter_map(row).collect()
}

/// Whether `part` stands in `name` as a whole: `gpt-5-2` is not in `gpt-5-2025-08-07`.
fn names(name: &str, part: &str) -> bool {
    name.match_indices(part).any(|(at, _)| {
        let after = name[at + part.len()..].chars().next();
        let before = name[..at].chars().next_back();
        !after.is_some_and(|c| c.is_ascii_digit()) && !before.is_some_and(char::is_alphanumeric)
    })
}

fn claude(_: &str, effort: &str) -> Value {
    json!({"thinking": {"type": "adaptive"}, "output_config": {"effort": effort}})
}

fn claude_with_summary(_: &str, effort: &str) -> Value {
    let thinking = json!({"type": "adaptive", "display": "summarized"});
    match effort {
        DEFAULT => json!({"thinking": thinking}),
        effort => json!({"thinking": thinking, "output_config": {"effort": effort}}),
    }
}

fn gpt(api: &str, effort: &str) -> Value {
    match (api, effort) {
        ("openai-chat", effort) => json!({"reasoning_effort": effort}),
        (_, "none") => json!({"reasoning": {"effort": "none"}}),
        (_, effort) => json!({"reasoning": {"effort": effort, "summary": "auto"}}),
    }
}

fn deepseek(_: &str, effort: &str) -> Value {
    match effort {
        "none" => json!({"thinking": {"type": "disabled"}}),
        effort => json!({"reasoning_effort": effort}),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names_of(provider: &str, api: &str, name: &str) -> Vec<String> {
        let own = Variants::new();
        Rules::default().variants(Asked { provider, api, name, own: &own }).into_keys().collect()
    }

    fn object(value: Value) -> Map<String, Value> {
        value.as_object().cloned().expect("an object")
    }

    #[test]
    fn known_families_have_variants() {
        let gpt = ["high", "low", "medium", "none", "xhigh"];
        let newer_gpt = ["high", "low", "max", "medium", "none", "xhigh"];
        let claude = ["high", "low", "max", "medium"];
        let newer_claude = ["default", "high", "low", "max", "medium", "xhigh"];
        let effort = ["high", "max", "none"];
        for (provider, api, name, expected) in [
            ("anthropic", "anthropic", "claude-sonnet-4-6", &claude[..]),
            ("anthropic", "anthropic", "claude-opus-4-5-20251101", &claude),
            ("bedrock", "bedrock", "us.anthropic.claude-opus-4.6-v1:0", &claude),
            ("anthropic", "anthropic", "claude-opus-4-8", &newer_claude),
            ("anthropic", "anthropic", "claude-sonnet-5", &newer_claude),
            ("anthropic", "anthropic", "claude-mythos_5", &newer_claude),
            ("openai", "openai-responses", "gpt-5.2", &gpt),
            ("openai", "openai-responses", "gpt-5.3-codex", &gpt),
            ("openai", "openai-responses", "GPT-5_6-luna", &newer_gpt),
            ("openrouter", "openai-chat", "openai/gpt-5.4", &gpt),
            ("deepseek", "openai-chat", "deepseek-v4-flash", &effort),
            ("z", "openai-chat", "glm-5.2", &effort),
            ("github-copilot", "openai-responses", "gpt-5.2", &[]),
            ("openrouter", "openai-chat", "anthropic/claude-opus-4-8", &[]),
            ("openai", "openai-responses", "gpt-5-2025-08-07", &[]),
            ("openai", "openai-responses", "gpt-5", &[]),
            ("openai", "openai-responses", "gpt-5.3", &[]),
            ("x", "openai-chat", "octopus-5", &[]),
        ] {
            assert_eq!(names_of(provider, api, name), expected, "{provider}/{name}");
        }
    }

    #[test]
    fn payloads_fit_the_dialect() {
        let own = Variants::new();
        let payload = |api, name, variant: &str| {
            Rules::default().variants(Asked { provider: "p", api, name, own: &own }).remove(variant).map(Value::Object)
        };
        assert_eq!(
            payload("openai-responses", "gpt-5.2", "high"),
            Some(json!({"reasoning": {"effort": "high", "summary": "auto"}}))
        );
        assert_eq!(payload("openai-responses", "gpt-5.2", "none"), Some(json!({"reasoning": {"effort": "none"}})));
        assert_eq!(payload("openai-chat", "gpt-5.2", "high"), Some(json!({"reasoning_effort": "high"})));
        assert_eq!(
            payload("anthropic", "claude-opus-5", "default"),
            Some(json!({"thinking": {"type": "adaptive", "display": "summarized"}}))
        );
        assert_eq!(
            payload("bedrock", "claude-opus-4-6", "max"),
            Some(json!({"thinking": {"type": "adaptive"}, "output_config": {"effort": "max"}}))
        );
        assert_eq!(payload("openai-chat", "deepseek-v4-pro", "none"), Some(json!({"thinking": {"type": "disabled"}})));
    }

    #[test]
    fn the_configuration_comes_first_and_an_empty_object_removes() {
        let rule = |api: &[&str], excluded: &[&str]| VariantRule {
            variants: BTreeMap::from([("mine".to_owned(), object(json!({"a": 1})))]),
            api: api.iter().map(|api| (*api).to_owned()).collect(),
            exclude_providers: excluded.iter().map(|id| (*id).to_owned()).collect(),
        };
        let patterns = BTreeMap::from([
            ("^gpt-5[.]2$".to_owned(), rule(&["openai-responses"], &["other"])),
            ("qwen(?!3)".to_owned(), rule(&[], &[])),
            ("(".to_owned(), rule(&[], &[])),
        ]);
        let (rules, problems) = Rules::new(&patterns);
        assert_eq!(problems.len(), 1);
        let own = BTreeMap::from([
            ("extra".to_owned(), object(json!({"b": 2}))),
            ("none".to_owned(), Map::new()),
            ("mine".to_owned(), object(json!({"a": 2}))),
        ]);
        let names = |provider, api, name, own: &Variants| -> Vec<String> {
            rules.variants(Asked { provider, api, name, own }).into_keys().collect()
        };
        let nothing = Variants::new();
        assert_eq!(names("openai", "openai-responses", "gpt-5.2", &nothing), ["mine"]);
        assert_eq!(names("other", "openai-responses", "gpt-5.2", &nothing).len(), 5, "the rule excludes this provider");
        assert_eq!(names("p", "openai-chat", "Qwen2", &nothing), ["mine"]);
        assert!(names("p", "openai-chat", "qwen3", &nothing).is_empty());
        assert_eq!(
            names("other", "openai-responses", "gpt-5.2", &own),
            ["extra", "high", "low", "medium", "mine", "xhigh"]
        );
    }

    #[test]
    fn overlaying_is_deep_and_keeps_null() {
        let mut target = object(json!({"a": {"b": 1, "c": 2}, "d": 1}));
        overlay(&mut target, &object(json!({"a": {"b": null, "e": 3}, "d": {"f": 1}})));
        assert_eq!(Value::Object(target), json!({"a": {"b": null, "c": 2, "e": 3}, "d": {"f": 1}}));
    }
}
