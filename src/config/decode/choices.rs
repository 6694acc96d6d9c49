//! What may be chosen per agent and per model: default models and variants.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::{Blank, Decoder, current_agent_name, expected};
use crate::config::{AgentConfig, Config, VariantRule};

type Variants = BTreeMap<String, Map<String, Value>>;

impl<'a> Decoder<'a> {
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

/// A list of texts, or a single one.
fn texts(found: Option<&Value>) -> Result<Vec<String>, String> {
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
