//! A thread's history in the document's words, and back. Pure.

use serde_json::{Value, json};

use crate::engine::{ChatEvent, ToolCallOrigin, ToolCallStage};
use crate::llm::{Message, Part, Role};

/// The tool whose successful calls are entries of their own.
const READ_FILE: &str = "read_file";

/// Messages, and the files that were read in between. What is neither has no place here.
pub(super) fn entries(events: Vec<ChatEvent>) -> Vec<Value> {
    let mut entries: Vec<Value> = Vec::new();
    for event in events {
        match event {
            ChatEvent::UserText { text, .. } => {
                let text = text.strip_suffix('\n').unwrap_or(&text);
                entries.push(json!({"type": "message", "role": "user", "chunks": [chunk(text)]}));
            }
            ChatEvent::Text(text) | ChatEvent::SystemText(text) => push_answer(&mut entries, &text),
            ChatEvent::ToolCall(call) if call.name == READ_FILE && call.origin == ToolCallOrigin::Native => {
                if let ToolCallStage::Called { arguments, error: false, outputs, .. } = call.stage {
                    let path = arguments.get("path").and_then(Value::as_str).unwrap_or_default();
                    entries.push(json!({"type": "readFile", "path": path, "content": outputs.join("\n")}));
                }
            }
            _ => {}
        }
    }
    entries
}

/// Texts that follow each other are chunks of one message.
fn push_answer(entries: &mut Vec<Value>, text: &str) {
    let last = entries.last_mut().filter(|entry| entry.get("role") == Some(&Value::from("assistant")));
    match last.and_then(|entry| entry.get_mut("chunks")).and_then(Value::as_array_mut) {
        Some(chunks) => chunks.push(chunk(text)),
        None => entries.push(json!({"type": "message", "role": "assistant", "chunks": [chunk(text)]})),
    }
}

pub(super) fn chunk(text: &str) -> Value {
    json!({"type": "text", "chunk": text})
}

/// What a model should know of a thread that the client kept. `next` is the message that is about to
/// be answered; a client may have put it into its thread already.
pub(super) fn messages(result: &Value, next: &str) -> Vec<Message> {
    let entries = result.get("entries").and_then(Value::as_array);
    let mut messages: Vec<Message> = entries.into_iter().flatten().filter_map(message).collect();
    let said = |message: &Message| match &message.parts[..] {
        [Part::Text(text)] => message.role == Role::User && text.trim() == next.trim(),
        _ => false,
    };
    if messages.last().is_some_and(said) {
        messages.pop();
    }
    messages
}

fn message(entry: &Value) -> Option<Message> {
    let word = |name: &str| entry.get(name).and_then(Value::as_str);
    let (role, text) = match word("type")? {
        "message" => {
            let role = if word("role") == Some("assistant") { Role::Assistant } else { Role::User };
            let chunks = entry.get("chunks").and_then(Value::as_array)?.iter();
            (role, chunks.filter_map(|chunk| chunk.get("chunk")?.as_str()).collect::<String>())
        }
        "readFile" => (Role::User, format!("The file {} was read:\n\n{}", word("path")?, word("content")?)),
        _ => return None,
    };
    let is_blank = text.trim().is_empty();
    (!is_blank).then(|| Message { role, parts: vec![Part::Text(text)] })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::{ContentId, ToolCallId};
    use crate::engine::{RejectReason, ToolCallEvent};

    fn user(text: &str) -> ChatEvent {
        ChatEvent::UserText { text: text.into(), content_id: ContentId::new("c") }
    }

    fn call(name: &str, origin: ToolCallOrigin, stage: ToolCallStage) -> ChatEvent {
        let id = ToolCallId::new("1");
        let event =
            ToolCallEvent { id, name: name.into(), server: "eca".into(), origin, summary: None, details: None, stage };
        ChatEvent::ToolCall(Box::new(event))
    }

    fn called(error: bool) -> ToolCallStage {
        let arguments = json!({"path": "/a"}).as_object().cloned().unwrap();
        ToolCallStage::Called { arguments, error, outputs: vec!["one\ntwo".into()], total_ms: 1 }
    }

    #[test]
    fn messages_and_files_that_were_read_are_entries_and_nothing_else_is() {
        let native = ToolCallOrigin::Native;
        let rejected = ToolCallStage::Rejected { arguments: Default::default(), reason: RejectReason::User };
        let found = entries(vec![
            user("hi\n\n"),
            ChatEvent::ReasonStarted { id: "r".into() },
            ChatEvent::Text("a".into()),
            call("read_file", native, ToolCallStage::Prepare { arguments_text: String::new() }),
            call("read_file", native, called(false)),
            call("read_file", native, called(true)),
            call("read_file", ToolCallOrigin::Mcp, called(false)),
            call("read_file", native, rejected),
            call("grep", native, called(false)),
            ChatEvent::Text("b".into()),
            ChatEvent::SystemText("c".into()),
            user("bye\n"),
        ]);
        let message = |role: &str, chunks: Vec<Value>| json!({"type": "message", "role": role, "chunks": chunks});
        assert_eq!(
            found,
            [
                message("user", vec![chunk("hi\n")]),
                message("assistant", vec![chunk("a")]),
                json!({"type": "readFile", "path": "/a", "content": "one\ntwo"}),
                message("assistant", vec![chunk("b"), chunk("c")]),
                message("user", vec![chunk("bye")]),
            ]
        );
    }

    #[test]
    fn a_thread_of_the_client_comes_without_what_is_about_to_be_answered() {
        let kept = json!({"entries": [
            {"type": "message", "role": "user", "chunks": [chunk("one "), chunk("two")]},
            {"type": "message", "role": "assistant", "chunks": [chunk("three")]},
            {"type": "readFile", "path": "/a", "content": "x"},
            {"type": "of the future"},
            {"type": "message", "role": "assistant", "chunks": []},
            {"type": "message", "role": "user", "chunks": [chunk(" next\n")]},
        ]});
        let texts = |next: &str| -> Vec<(Role, String)> {
            let text = |message: &Message| match &message.parts[..] {
                [Part::Text(text)] => (message.role, text.clone()),
                other => panic!("{other:?}"),
            };
            messages(&kept, next).iter().map(text).collect()
        };
        let before = [
            (Role::User, "one two".to_owned()),
            (Role::Assistant, "three".to_owned()),
            (Role::User, "The file /a was read:\n\nx".to_owned()),
        ];
        assert_eq!(texts("next"), before);
        assert_eq!(texts("other").len(), 4);
        for nothing in [json!(null), json!({}), json!({"entries": 1}), json!({"entries": [1, {"type": 1}]})] {
            assert_eq!(messages(&nothing, ""), [], "{nothing}");
        }
    }
}
