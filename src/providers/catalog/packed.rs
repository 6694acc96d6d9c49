//! Facts in few bytes: thousands of them stay in memory for as long as the server runs.

use super::ModelFacts;
use crate::llm::Cost;

/// Zero means unknown; prices are in millionths of a dollar per million tokens, one more than they
/// are, so that a price of nothing differs from no price.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct PackedFacts {
    context: u32,
    output: u32,
    cost: [u32; 4],
    flags: u8,
}

const REASONING: u8 = 0;
const TOOLS: u8 = 2;
const VISION: u8 = 4;

impl PackedFacts {
    pub(super) fn pack(facts: &ModelFacts) -> Self {
        let tokens = |limit: Option<u64>| limit.and_then(|limit| u32::try_from(limit).ok()).unwrap_or_default();
        let cost = facts.cost.map(|cost| [cost.input, cost.output, cost.cache_read, cost.cache_write].map(millionths));
        Self {
            context: tokens(facts.context),
            output: tokens(facts.output),
            cost: cost.unwrap_or_default(),
            flags: flag(facts.reasoning, REASONING) | flag(facts.tools, TOOLS) | flag(facts.vision, VISION),
        }
    }

    pub(super) fn unpack(self) -> ModelFacts {
        let tokens = |limit: u32| (limit > 0).then_some(u64::from(limit));
        let dollars = |price: u32| f64::from(price.saturating_sub(1)) / 1_000_000.0;
        let [input, output, cache_read, cache_write] = self.cost;
        ModelFacts {
            context: tokens(self.context),
            output: tokens(self.output),
            cost: (input > 0).then(|| Cost {
                input: dollars(input),
                output: dollars(output),
                cache_read: dollars(cache_read),
                cache_write: dollars(cache_write),
            }),
            reasoning: self.read(REASONING),
            tools: self.read(TOOLS),
            vision: self.read(VISION),
        }
    }

    fn read(self, place: u8) -> Option<bool> {
        match (self.flags >> place) & 0b11 {
            0b10 => Some(false),
            0b11 => Some(true),
            _ => None,
        }
    }
}

fn flag(value: Option<bool>, place: u8) -> u8 {
    match value {
        None => 0,
        Some(value) => (0b10 | u8::from(value)) << place,
    }
}

/// Nobody asks for more than four thousand dollars; such a price is cut, not wrapped around.
fn millionths(price: f64) -> u32 {
    let price = (price * 1_000_000.0).round();
    if price.is_finite() && price >= 0.0 { (price.min(4_000_000_000.0) as u32).saturating_add(1) } else { 1 }
}
