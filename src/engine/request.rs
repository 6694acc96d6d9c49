//! From a chat's history to one model request. Pure.

use std::collections::HashSet;

use crate::base::ModelId;
use crate::llm::{Message, ModelInfo, Part, Request, Role};

/// What a model's variant adds to the body of a request.
pub(super) type Payload = serde_json::Map<String, serde_json::Value>;

/// The request for the next answer. Neighbours of one role become one message, because strict
/// servers want user and assistant to alternate and a failed turn leaves a question unanswered.
pub(super) fn assemble(model: &ModelId, system: &str, history: &[Message], info: Option<&ModelInfo>) -> Request {
    let mut messages: Vec<Message> = Vec::with_capacity(history.len());
    for message in history {
        match messages.last_mut() {
            Some(last) if last.role == message.role => last.parts.extend(message.parts.iter().cloned()),
            _ => messages.push(message.clone()),
        }
    }
    Request {
        system: system.to_owned(),
        messages,
        max_output_tokens: info.and_then(|info| info.output_limit),
        reasoning: info.is_none_or(|info| info.reasoning),
        ..Request::to(model.clone())
    }
}

/// Makes a history from the store fit to be sent: a crash may have come between a tool call and
/// its result, and every vendor refuses a call that was never answered.
pub(super) fn repair(history: Vec<Message>) -> Vec<Message> {
    let answered: HashSet<String> = history
        .iter()
        .flat_map(|message| &message.parts)
        .filter_map(|part| match part {
            Part::ToolResult { call_id, .. } => Some(call_id.clone()),
            _ => None,
        })
        .collect();
    let mut repaired = Vec::with_capacity(history.len());
    for message in history {
        let open: Vec<Part> = message
            .parts
            .iter()
            .filter_map(|part| match part {
                Part::ToolCall { id, .. } if !answered.contains(id) => Some(Part::ToolResult {
                    call_id: id.clone(),
                    text: "The call was interrupted; whether it ran is unknown.".into(),
                    images: Vec::new(),
                    error: true,
                }),
                _ => None,
            })
            .collect();
        repaired.push(message);
        if !open.is_empty() {
            repaired.push(Message { role: Role::User, parts: open });
        }
    }
    repaired
}

/// Whether a model is shown any image.
pub(super) fn has_images(history: &[Message]) -> bool {
    let shows = |part: &Part| match part {
        Part::Image(_) => true,
        Part::ToolResult { images, .. } => !images.is_empty(),
        _ => false,
    };
    history.iter().any(|message| message.parts.iter().any(shows))
}

/// Puts words in the place of images.
pub(super) fn hide_images(history: &mut [Message]) {
    for part in history.iter_mut().flat_map(|message| &mut message.parts) {
        match part {
            Part::Image(image) => *part = Part::Text(format!("[Image: {}]", image.media_type)),
            Part::ToolResult { text, images, .. } => {
                for image in images.drain(..) {
                    text.push_str(&format!("\n[Image: {}]", image.media_type));
                }
            }
            _ => {}
        }
    }
}

/// What a compacted chat begins with.
pub(super) fn summary(summary: &str) -> Message {
    user_text(&format!("This is what was said and done so far, as a summary:\n\n{}", summary.trim()))
}

pub(super) fn user_text(text: &str) -> Message {
    Message { role: Role::User, parts: vec![Part::Text(text.trim().to_owned())] }
}

/// What the model is told where an answer was broken off by the user.
pub(super) fn stopped_answer(mut parts: Vec<Part>) -> Message {
    parts.push(Part::Text("\n\n[The user stopped this answer here.]".into()));
    Message { role: Role::Assistant, parts }
}

/// What the model is told where a turn had no end.
pub(super) fn interrupted_answer() -> Message {
    let text = "[This answer was interrupted before it was complete.]";
    Message { role: Role::Assistant, parts: vec![Part::Text(text.into())] }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(role: Role, text: &str) -> Message {
        Message { role, parts: vec![Part::Text(text.into())] }
    }

    #[test]
    fn a_call_without_a_result_gets_one() {
        let call = |id: &str| Part::ToolCall { id: id.into(), name: "n".into(), arguments: "{}".into(), replay: None };
        let history = vec![
            Message { role: Role::Assistant, parts: vec![call("a"), call("b")] },
            Message {
                role: Role::User,
                parts: vec![Part::ToolResult {
                    call_id: "b".into(),
                    text: "ok".into(),
                    images: Vec::new(),
                    error: false,
                }],
            },
        ];
        let repaired = repair(history);
        assert_eq!(repaired.len(), 3);
        assert!(matches!(&repaired[1].parts[..], [Part::ToolResult { call_id, error: true, .. }] if call_id == "a"));
    }

    #[test]
    fn neighbours_of_one_role_are_joined() {
        let history = [text(Role::User, "a"), text(Role::User, "b"), text(Role::Assistant, "c"), text(Role::User, "d")];
        let request = assemble(&ModelId::new("p", "m"), "s", &history, None);
        let roles: Vec<Role> = request.messages.iter().map(|m| m.role).collect();
        assert_eq!(roles, [Role::User, Role::Assistant, Role::User]);
        assert_eq!(request.messages[0].parts.len(), 2);
    }
}
