//! What fills the context window, roughly.
//!
//! Providers count tokens as a whole. The parts are weighed by their length and scaled to that
//! count, so that they add up to what was really used.

use super::super::event::{Share, ShareKind};
use crate::llm::{Message, Part, Role};

pub(in crate::engine) fn shares(system: &str, history: &[Message], occupancy: u64) -> Vec<Share> {
    let mut weights = [
        (ShareKind::Instructions, system.len()),
        (ShareKind::User, 0),
        (ShareKind::Assistant, 0),
        (ShareKind::Reasoning, 0),
        (ShareKind::Tools, 0),
    ];
    for message in history {
        for part in &message.parts {
            let (kind, weight) = match (part, message.role) {
                (Part::Text(text), Role::User) => (ShareKind::User, text.len()),
                (Part::Text(text), Role::Assistant) => (ShareKind::Assistant, text.len()),
                (Part::Reasoning { text, .. }, _) => (ShareKind::Reasoning, text.len()),
                (Part::ToolCall { name, arguments, .. }, _) => (ShareKind::Tools, name.len() + arguments.len()),
                (Part::ToolResult { text, .. }, _) => (ShareKind::Tools, text.len()),
                // Their size says nothing about their tokens.
                (Part::Image(_) | Part::Opaque(_), _) => continue,
            };
            if let Some(entry) = weights.iter_mut().find(|(found, _)| *found == kind) {
                entry.1 += weight;
            }
        }
    }
    let total: usize = weights.iter().map(|(_, weight)| weight).sum();
    if total == 0 {
        return Vec::new();
    }
    let tokens = |weight: usize| (occupancy as f64 * weight as f64 / total as f64).round() as u64;
    let used = weights.into_iter().filter(|(_, weight)| *weight > 0);
    used.map(|(kind, weight)| Share { kind, tokens: tokens(weight) }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shares_add_up_to_what_was_used() {
        let history = [
            Message { role: Role::User, parts: vec![Part::Text("x".repeat(100))] },
            Message {
                role: Role::Assistant,
                parts: vec![Part::Reasoning { text: "y".repeat(50), replay: None }, Part::Text("z".repeat(150))],
            },
        ];
        let shares = shares(&"s".repeat(100), &history, 1_000);
        let found: Vec<(ShareKind, u64)> = shares.iter().map(|share| (share.kind, share.tokens)).collect();
        assert_eq!(
            found,
            [
                (ShareKind::Instructions, 250),
                (ShareKind::User, 250),
                (ShareKind::Assistant, 375),
                (ShareKind::Reasoning, 125)
            ]
        );
        assert_eq!(super::shares("", &[], 5), []);
    }
}
