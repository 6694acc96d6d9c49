//! Reads a catalogue in the shape of models.dev's `api.json`, one provider at a time, so that its
//! megabytes are never in memory as a whole. What has another shape than expected is skipped.

use serde::Deserializer;
use serde::de::{MapAccess, Visitor};
use serde_json::Value;

use super::ModelFacts;
use crate::llm::Cost;

/// One provider of the catalogue.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Source {
    pub(super) id: String,
    pub(super) api: Option<String>,
    pub(super) models: Vec<Model>,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Model {
    pub(super) name: String,
    pub(super) facts: ModelFacts,
    pub(super) deprecated: bool,
}

/// Calls `take` for every provider of `body`.
pub(super) fn each_provider(body: &[u8], take: impl FnMut(Source)) -> Result<(), String> {
    let mut reader = serde_json::Deserializer::from_slice(body);
    reader.deserialize_map(Providers { take }).map_err(|error| error.to_string())?;
    reader.end().map_err(|error| error.to_string())
}

struct Providers<F> {
    take: F,
}

impl<'de, F: FnMut(Source)> Visitor<'de> for Providers<F> {
    type Value = ();

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("an object of providers")
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> Result<(), A::Error> {
        while let Some((key, value)) = map.next_entry::<String, Value>()? {
            if let Some(source) = source(key, &value) {
                (self.take)(source);
            }
        }
        Ok(())
    }
}

fn source(key: String, value: &Value) -> Option<Source> {
    let models = value.get("models")?.as_object()?;
    let id = value.get("id").and_then(Value::as_str).map_or(key, str::to_owned);
    let api = value.get("api").and_then(Value::as_str).map(str::to_owned);
    let models = models.iter().filter_map(|(name, value)| model(name, value)).collect();
    Some(Source { id, api, models })
}

fn model(name: &str, value: &Value) -> Option<Model> {
    value.as_object()?;
    let flag = |key: &str| value.get(key).and_then(Value::as_bool);
    let inputs = value.pointer("/modalities/input").and_then(Value::as_array);
    let context = limit(value, "/limit/context");
    // An output limit of the whole window is no limit, and would leave no room for the question.
    let output = limit(value, "/limit/output").filter(|output| context.is_none_or(|context| *output < context));
    Some(Model {
        name: name.to_owned(),
        facts: ModelFacts {
            context,
            output,
            cost: value.get("cost").and_then(cost),
            reasoning: flag("reasoning"),
            tools: flag("tool_call"),
            vision: inputs.map(|inputs| inputs.iter().any(|input| input == "image")),
        },
        deprecated: value.get("status").and_then(Value::as_str) == Some("deprecated"),
    })
}

fn limit(value: &Value, pointer: &str) -> Option<u64> {
    let number = value.pointer(pointer)?;
    let whole = number.as_u64().or_else(|| number.as_f64().filter(|n| (1.0..1e15).contains(n)).map(|n| n as u64));
    whole.filter(|limit| *limit > 0)
}

/// Known only when both main prices are. A cache without a price of its own costs what the input
/// costs, which errs on the side of the higher sum.
fn cost(value: &Value) -> Option<Cost> {
    let price = |key: &str| value.get(key).and_then(Value::as_f64).filter(|price| price.is_finite() && *price >= 0.0);
    let (input, output) = (price("input")?, price("output")?);
    Some(Cost {
        input,
        output,
        cache_read: price("cache_read").unwrap_or(input),
        cache_write: price("cache_write").unwrap_or(input),
    })
}
