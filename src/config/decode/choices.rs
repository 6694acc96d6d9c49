//! What may be chosen per agent and per model: default models and variants.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::{Blank, Decoder, current_agent_name, expected};
use crate::config::{AgentConfig, CacheRetention, Config, HttpVersion, ReasoningHistory, VariantRule};

type Variants = BTreeMap<String, Map<String, Value>>;

impl<'a> Decoder<'a> {
    /// Whether a client's test suite asks for nothing that depends on the machine or the network.
    pub(super) fn is_isolated(&self, values: &'a Map<String, Value>) -> bool {
        let says = |key: &str, what: Value| self.find(values, key).is_some_and(|(_, value)| *value == what);
        self.loose && (says("pureConfig", true.into()) || says("env", "test".into()))
    }

    /// `behavior` is the older name of `agent`.
    pub(super) fn agents(&mut self, values: &'a Map<String, Value>, config: &mut Config) {
        for key in ["behavior", "agent"] {
            self.object(values, key, |decoder, agents| {
                for (name, _) in agents {
                    decoder.exact_object(agents, name, |decoder, entry| {
                        let known = config.agents.entry(current_agent_name(name).to_owned()).or_default();
                        decoder.agent(entry, known);
                    });
                }
            });
        }
    }

    pub(super) fn variants_by_model(&mut self, values: &'a Map<String, Value>, config: &mut Config) {
        self.object(values, "variantsByModel", |decoder, patterns| {
            for (pattern, _) in patterns {
                decoder.exact_object(patterns, pattern, |decoder, entry| {
                    decoder.variant_rule(entry, config.variants_by_model.entry(pattern.clone()).or_default());
                });
            }
        });
    }

    fn agent(&mut self, entry: &'a Map<String, Value>, agent: &mut AgentConfig) {
        self.optional_text(entry, "defaultModel", &mut agent.default_model, Blank::IsNone);
        self.optional_text(entry, "variant", &mut agent.variant, Blank::IsNone);
        self.agent_behavior(entry, agent);
    }

    fn variant_rule(&mut self, entry: &'a Map<String, Value>, rule: &mut VariantRule) {
        self.variants(entry, &mut rule.variants);
        self.value(entry, "excludeProviders", texts, &mut rule.exclude_providers);
        self.value(entry, "api", texts, &mut rule.api);
    }

    pub(super) fn variants(&mut self, entry: &'a Map<String, Value>, variants: &mut Variants) {
        self.object(entry, "variants", |decoder, entries| {
            for (name, _) in entries {
                decoder.exact_object(entries, name, |_, payload| {
                    drop(variants.insert(name.clone(), payload.clone()));
                });
            }
        });
    }
}

pub(super) fn cache_retention(found: Option<&Value>) -> Result<CacheRetention, String> {
    one_of(found, &[("short", CacheRetention::Short), ("long", CacheRetention::Long)])
}

pub(super) fn reasoning_history(found: Option<&Value>) -> Result<ReasoningHistory, String> {
    let words = [("all", ReasoningHistory::All), ("turn", ReasoningHistory::Turn), ("off", ReasoningHistory::Off)];
    one_of(found, &words)
}

pub(super) fn http_version(found: Option<&Value>) -> Result<HttpVersion, String> {
    one_of(found, &[("http-1.1", HttpVersion::Http1), ("http-2", HttpVersion::Any)])
}

fn one_of<T: Copy + Default>(found: Option<&Value>, words: &[(&str, T)]) -> Result<T, String> {
    let Some(value) = found else { return Ok(T::default()) };
    let chosen = value.as_str().and_then(|text| words.iter().find(|(word, _)| *word == text.trim()));
    let listed: Vec<String> = words.iter().map(|(word, _)| format!("\"{word}\"")).collect();
    let wanted = listed.join(" or ");
    match (chosen, value) {
        (Some((_, choice)), _) => Ok(*choice),
        (None, Value::String(_)) => Err(format!("expected {wanted}; the value is ignored")),
        (None, other) => Err(expected(&wanted, other)),
    }
}

/// A list of texts, or a single one.
pub(super) fn texts(found: Option<&Value>) -> Result<Vec<String>, String> {
    match found {
        None => Ok(Vec::new()),
        Some(Value::String(text)) => Ok(vec![text.clone()]),
        Some(Value::Array(items)) => items
            .iter()
            .map(|item| item.as_str().map(str::to_owned).ok_or_else(|| expected("a list of strings", item)))
            .collect(),
        Some(other) => Err(expected("a string or a list of strings", other)),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::apply;
    use super::*;
    use crate::config::document::Document;

    fn read(value: Value, loose: bool) -> (Config, Vec<String>) {
        let mut config = Config::default();
        let mut problems = Vec::new();
        let document = Document::from_value("test", value).expect("an object");
        apply(&mut config, &document, loose, &mut problems);
        (config, problems.into_iter().map(|problem| problem.message).collect())
    }

    #[test]
    fn agents_have_a_model_and_a_variant() {
        let (config, problems) = read(
            json!({
                "behavior": {"agent": {"defaultModel": "old/m", "variant": "low"}},
                "agent": {"code": {"variant": "high", "unknown": 1}, "plan": {"defaultModel": " p/m "}, "odd": 7}
            }),
            false,
        );
        assert_eq!(problems.len(), 1, "{problems:?}");
        let agent = |model: Option<&str>, variant: Option<&str>| AgentConfig {
            default_model: model.map(Into::into),
            variant: variant.map(Into::into),
            ..AgentConfig::default()
        };
        assert_eq!(config.agents["code"], agent(Some("old/m"), Some("high")), "`agent` is the older name of `code`");
        assert_eq!(config.agents["plan"], agent(Some("p/m"), None));
    }

    #[test]
    fn variants_are_read_by_pattern_and_by_model() {
        let (config, problems) = read(
            json!({
                "variantsByModel": {".*qwen.*": {
                    "variants": {"fast": {"a": 1}, "bad": 1}, "excludeProviders": ["p"], "api": "openai-chat"
                }},
                "providers": {"p": {"keyRc": "me@host", "keyEnv": "K", "urlEnv": "U",
                    "models": {"m": {"variants": {"none": {}, "hot": {"t": 2}}}}}}
            }),
            false,
        );
        assert_eq!(problems.len(), 1, "{problems:?}");
        let rule = &config.variants_by_model[".*qwen.*"];
        assert_eq!(rule.variants.keys().collect::<Vec<_>>(), ["fast"]);
        assert_eq!((rule.exclude_providers.clone(), rule.api.clone()), (vec!["p".into()], vec!["openai-chat".into()]));
        let provider = &config.providers["p"];
        assert_eq!(
            (provider.key_rc.as_deref(), provider.key_env.as_deref(), provider.url_env.as_deref()),
            (Some("me@host"), Some("K"), Some("U"))
        );
        let variants = &provider.models["m"].variants;
        assert!(variants["none"].is_empty() && variants["hot"]["t"] == 2, "an empty one is kept: it removes");
        assert_eq!(read(json!({"variantsByModel": {"x": {"api": [1]}}}), false).1.len(), 1);
    }

    #[test]
    fn the_public_catalogue_is_left_alone_by_test_suites() {
        for (options, loose, expected) in [
            (json!({}), true, true),
            (json!({"modelsDev": false}), false, false),
            (json!({"pureConfig": true}), true, false),
            (json!({"pure-config": true}), true, false),
            (json!({"env": "test"}), true, false),
            (json!({"env": "prod", "pureConfig": false}), true, true),
            (json!({"env": "test", "modelsDev": true}), true, true),
            (json!({"env": "test"}), false, true),
        ] {
            assert_eq!(read(options.clone(), loose).0.models_dev, expected, "{options}");
        }
    }
}
