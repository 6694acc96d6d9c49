//! v0's way of telling a chat: text with its code blocks, and one message that completes it.

use std::sync::Arc;

use custom_methods::chat::{ChatContentReceivedParams, ChatRole, ChatTextContent, CodeBlock, ContentMetadata};
use custom_methods::methods::ChatContentReceived;
use dashmap::DashMap;
use lsp_types::notification::Notification;

use super::super::client::notification;
use super::{details, wire_chat_id};
use crate::base::{ChatId, shared_map};
use crate::engine::{ChatEvent, ToolCallEvent, ToolCallStage};
use crate::tool::Details;
use crate::transport::Frame;

pub(super) struct Translator {
    chats: DashMap<ChatId, Chat>,
}

impl Default for Translator {
    fn default() -> Self {
        Self { chats: shared_map() }
    }
}

/// What has to be remembered of a turn to complete it.
#[derive(Default)]
struct Chat {
    fences: Fences,
    tokens: Option<u64>,
}

impl Translator {
    pub(super) fn chat_event(&self, chat: &ChatId, event: ChatEvent) -> Vec<Frame> {
        match event {
            ChatEvent::Text(text) => {
                let blocks = self.chats.entry(chat.clone()).or_default().fences.feed(&text);
                vec![message(chat, ChatRole::Assistant, text, blocks, Completeness::More)]
            }
            ChatEvent::SystemText(text) | ChatEvent::Failed(text) => {
                vec![message(chat, ChatRole::System, text, Vec::new(), Completeness::More)]
            }
            ChatEvent::Usage(report) => {
                self.chats.entry(chat.clone()).or_default().tokens = Some(report.last.occupancy());
                Vec::new()
            }
            ChatEvent::Finished => {
                let tokens = self.chats.remove(chat).and_then(|(_, state)| state.tokens);
                vec![message(chat, ChatRole::Assistant, String::new(), Vec::new(), Completeness::Complete { tokens })]
            }
            ChatEvent::ToolCall(call) => file_change(chat, &call).into_iter().collect(),
            // The client shows the user's own text itself, and has no word for the rest.
            _ => Vec::new(),
        }
    }
}

/// A change of a file is shown once: when it is about to be made.
fn file_change(chat: &ChatId, call: &ToolCallEvent) -> Option<Frame> {
    let (ToolCallStage::Run { manual_approval, .. }, Some(Details::FileChange(change))) = (&call.stage, &call.details)
    else {
        return None;
    };
    let content = details::v0_file_change(call.id.as_str(), call.summary.as_deref(), change, *manual_approval);
    let params = ChatContentReceivedParams {
        chat_id: wire_chat_id(chat),
        role: Some(ChatRole::Assistant),
        content: content.into(),
        parent_chat_id: None,
        is_complete: Some(false),
        metadata: None,
    };
    Some(notification(ChatContentReceived::METHOD, &params, Some(Arc::from(chat.as_str()))))
}

enum Completeness {
    More,
    Complete { tokens: Option<u64> },
}

fn message(chat: &ChatId, role: ChatRole, text: String, blocks: Vec<CodeBlock>, complete: Completeness) -> Frame {
    let (is_complete, metadata) = match complete {
        Completeness::More => (false, None),
        Completeness::Complete { tokens } => (true, Some(ContentMetadata { tokens_used: Some(tokens.unwrap_or(0)) })),
    };
    let params = ChatContentReceivedParams {
        chat_id: wire_chat_id(chat),
        role: Some(role),
        content: ChatTextContent { text, content_id: None, code_blocks: (!blocks.is_empty()).then_some(blocks) }.into(),
        parent_chat_id: None,
        is_complete: Some(is_complete),
        metadata,
    };
    notification(ChatContentReceived::METHOD, &params, Some(Arc::from(chat.as_str())))
}

/// Finds fenced code in streamed text.
#[derive(Default)]
struct Fences {
    line: String,
    open: Option<OpenFence>,
}

struct OpenFence {
    marks: usize,
    language: Option<String>,
    code: String,
}

impl Fences {
    /// The blocks that this piece of text completes.
    fn feed(&mut self, text: &str) -> Vec<CodeBlock> {
        let mut blocks = Vec::new();
        for character in text.chars() {
            if character == '\n' {
                let line = std::mem::take(&mut self.line);
                blocks.extend(self.end_of_line(&line));
            } else {
                self.line.push(character);
                // The closing fence is often the last thing a model writes, with no newline after it.
                if self.open.as_ref().is_some_and(|open| closes(&self.line, open.marks)) {
                    blocks.extend(self.close());
                    self.line.clear();
                }
            }
        }
        blocks
    }

    fn end_of_line(&mut self, line: &str) -> Option<CodeBlock> {
        match &mut self.open {
            Some(open) => {
                open.code.push_str(line);
                open.code.push('\n');
                None
            }
            None => {
                let marks = fence_marks(line);
                if marks >= 3 {
                    let word = line.trim_start()[marks..].split_whitespace().next().map(str::to_owned);
                    self.open = Some(OpenFence { marks, language: word, code: String::new() });
                }
                None
            }
        }
    }

    fn close(&mut self) -> Option<CodeBlock> {
        self.open.take().map(|open| CodeBlock { code: open.code, language: open.language })
    }
}

fn fence_marks(line: &str) -> usize {
    line.trim_start().chars().take_while(|c| *c == '`').count()
}

fn closes(line: &str, marks: usize) -> bool {
    let line = line.trim();
    line.len() == marks && line.chars().all(|c| c == '`')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_is_complete_where_its_fence_closes() {
        let text = "look:\n```rust\nfn main() {}\n```\ndone";
        for size in 1..text.len() {
            let mut fences = Fences::default();
            let bytes: Vec<char> = text.chars().collect();
            let blocks: Vec<CodeBlock> =
                bytes.chunks(size).flat_map(|piece| fences.feed(&piece.iter().collect::<String>())).collect();
            assert_eq!(
                blocks,
                [CodeBlock { code: "fn main() {}\n".into(), language: Some("rust".into()) }],
                "pieces of {size}"
            );
        }
    }

    #[test]
    fn exactly_one_message_completes_the_turn() {
        let translator = Translator::default();
        let chat = ChatId::new("c");
        let events = [
            ChatEvent::Progress("Waiting model".into()),
            ChatEvent::Text("a".into()),
            ChatEvent::Text("b".into()),
            ChatEvent::Finished,
        ];
        let complete: Vec<bool> = events
            .into_iter()
            .flat_map(|event| translator.chat_event(&chat, event))
            .map(|frame| serde_json::from_slice::<serde_json::Value>(&frame.body()).unwrap())
            .map(|value| value["params"]["isComplete"].as_bool().unwrap())
            .collect();
        assert_eq!(complete, [false, false, true]);
    }
}
