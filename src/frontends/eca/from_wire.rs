//! From ECA's words to the engine's. Pure.

use std::sync::Arc;

use custom_methods::chat::{ChatContext, ChatPromptParams, FileContext};

use crate::base::ChatId;
use crate::base::ids::BadChatId;
use crate::engine::{Context, Prompt, ReplyWhen};
use crate::workspace::Workspace;

/// A prompt as the engine takes it. `v0` is the dialect in which it came.
pub(super) fn prompt(params: ChatPromptParams, workspace: Arc<Workspace>, v0: bool) -> Result<Prompt, BadChatId> {
    let chat = params.chat_id.as_ref().map(|id| ChatId::from_client(&id.0)).transpose()?;
    let contexts = params.context.into_iter().chain(params.contexts).flatten().flat_map(context).collect();
    Ok(Prompt {
        chat,
        text: params.message,
        model: params.model,
        variant: params.variant,
        agent: params.agent.or(params.behavior).as_deref().map(agent).map(str::to_owned),
        trust: params.trust,
        contexts,
        workspace,
        reply: if v0 { ReplyWhen::Connected } else { ReplyWhen::Recorded },
    })
}

/// The older words `agent` and `build` both mean the agent `code`.
pub(super) fn agent(word: &str) -> &str {
    match word {
        "agent" | "build" => "code",
        other => other,
    }
}

fn context(context: ChatContext) -> Vec<Context> {
    match context {
        ChatContext::File(file) => file_context(file),
        ChatContext::Text(text) => vec![Context::Text { label: text.label, content: text.content }],
        ChatContext::Code(code) => {
            vec![Context::Code { language: code.language, description: code.description, content: code.content }]
        }
        ChatContext::Cursor(cursor) => match (cursor.path, cursor.position) {
            (Some(path), Some(range)) => vec![Context::Cursor {
                path,
                start: (range.start.line.into(), range.start.character.into()),
                end: (range.end.line.into(), range.end.character.into()),
            }],
            // An editor with no file open has no cursor to tell of.
            _ => Vec::new(),
        },
        ChatContext::Image(image) => {
            vec![Context::Image { media_type: image.media_type, base64: image.base64 }]
        }
        ChatContext::Directory(directory) => vec![Context::Directory { path: directory.path }],
        ChatContext::Web(web) => vec![Context::Web { url: web.url }],
        ChatContext::RepoMap(_) => vec![Context::RepoMap],
        ChatContext::McpResource(resource) => {
            vec![Context::McpResource { server: resource.server, uri: resource.uri, name: resource.name }]
        }
        other => vec![Context::Unsupported { kind: other.tag().to_owned() }],
    }
}

fn file_context(file: FileContext) -> Vec<Context> {
    let lines = file
        .lines_range
        .map(|range| (range.start.into(), range.end.into()))
        .or(file.selection.map(|span| (span.start_line.into(), span.end_line.into())));
    let cursor = file.cursor.map(|position| {
        let place = (position.line.into(), position.character.into());
        Context::Cursor { path: file.path.clone(), start: place, end: place }
    });
    std::iter::once(Context::File { path: file.path.clone(), lines }).chain(cursor).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn read(params: serde_json::Value) -> Prompt {
        prompt(serde_json::from_value(params).unwrap(), Arc::default(), false).unwrap()
    }

    #[test]
    fn both_spellings_of_contexts_are_joined() {
        let prompt = read(json!({
            "message": "hi",
            "context": [{"type": "code", "content": "fn", "language": "rust"}],
            "contexts": [{"type": "file", "path": "/a", "linesRange": {"start": 2, "end": 3}}],
        }));
        assert_eq!(
            prompt.contexts,
            [
                Context::Code { language: "rust".into(), description: None, content: "fn".into() },
                Context::File { path: "/a".into(), lines: Some((2, 3)) },
            ]
        );
    }

    #[test]
    fn v0_client_selection_and_cursor_are_understood() {
        let prompt = read(json!({"message": "hi", "context": [
            {"type": "file", "path": "/a", "selection": {"startLine": 1, "endLine": 4}, "cursor": {"line": 2, "character": 7}},
        ]}));
        assert_eq!(prompt.contexts[0], Context::File { path: "/a".into(), lines: Some((1, 4)) });
        assert_eq!(prompt.contexts[1], Context::Cursor { path: "/a".into(), start: (2, 7), end: (2, 7) });
    }

    #[test]
    fn agents_have_old_and_new_names() {
        assert_eq!(read(json!({"message": "", "behavior": "agent"})).agent.as_deref(), Some("code"));
        assert_eq!(read(json!({"message": "", "behavior": "plan"})).agent.as_deref(), Some("plan"));
        assert_eq!(read(json!({"message": "", "behavior": "plan", "agent": "code"})).agent.as_deref(), Some("code"));
        assert_eq!(read(json!({"message": "", "agent": "nobody"})).agent.as_deref(), Some("nobody"));
    }

    #[test]
    fn what_cannot_be_read_is_named() {
        let prompt =
            read(json!({"message": "", "contexts": [{"type": "web", "url": "https://x"}, {"type": "hologram"}]}));
        assert_eq!(
            prompt.contexts,
            [Context::Web { url: "https://x".into() }, Context::Unsupported { kind: "hologram".into() }]
        );
    }
}
