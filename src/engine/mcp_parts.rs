//! What MCP servers bring into chats besides tools: prompts as commands, resources as contexts, and
//! words for the model.

use futures_util::future::BoxFuture;

use super::commands::{CommandArgument, CommandInfo, CommandKind};
use crate::context::query::McpResource;
use crate::context::render::Resources;
use crate::mcp::Servers;
use crate::tool::Content;

/// The prompts of all servers, as they are listed.
pub(super) fn commands(servers: &Servers) -> Vec<CommandInfo> {
    let command = |prompt: crate::mcp::PromptInfo| CommandInfo {
        name: format!("{}:{}", prompt.server, prompt.name),
        kind: CommandKind::McpPrompt,
        description: prompt.description.unwrap_or_default(),
        arguments: prompt
            .arguments
            .into_iter()
            .map(|argument| CommandArgument {
                name: argument.name,
                description: argument.description,
                required: argument.required,
            })
            .collect(),
    };
    servers.prompts().into_iter().map(command).collect()
}

/// The text of a prompt; `None` when no server has one of this name.
pub(super) async fn prompt_text(servers: &Servers, name: &str, rest: &str) -> Option<Result<String, String>> {
    let (server, prompt) = name.split_once(':')?;
    let known = servers.prompts().into_iter().find(|known| known.server == server && known.name == prompt)?;
    let words: Vec<String> = rest.split_whitespace().map(str::to_owned).collect();
    let arguments = match known.arguments_from(&words) {
        Ok(arguments) => arguments,
        Err(problem) => return Some(Err(problem)),
    };
    let messages = match servers.get_prompt(server, prompt, arguments, false).await {
        Ok(messages) => messages,
        Err(error) => return Some(Err(error.to_string())),
    };
    let texts = messages.into_iter().map(|message| text_of(message.content));
    Some(Ok(texts.collect::<Vec<_>>().join("\n\n")))
}

/// What servers want every model to know; empty when they want nothing.
pub(super) fn instructions(servers: &Servers) -> String {
    let told = servers.instructions();
    if told.is_empty() {
        return String::new();
    }
    let parts = told.into_iter().map(|(server, text)| format!("### {server}\n\n{}", text.trim()));
    format!("\n\n## MCP servers\n\n{}", parts.collect::<Vec<_>>().join("\n\n"))
}

/// The resources of all servers, to choose from.
pub(super) fn resources(servers: &Servers) -> Vec<McpResource> {
    let resource = |found: crate::mcp::ResourceInfo| McpResource {
        server: found.server,
        uri: found.uri,
        name: found.name,
        description: found.description.unwrap_or_default(),
        mime_type: found.mime_type.unwrap_or_default(),
    };
    servers.resources().into_iter().map(resource).collect()
}

/// Reads resources that a user attached.
pub(super) struct ServerResources(pub(super) Servers);

impl Resources for ServerResources {
    fn read<'a>(&'a self, server: &'a str, uri: &'a str) -> BoxFuture<'a, Result<String, String>> {
        Box::pin(async move {
            let contents = self.0.read_resource(server, uri, false).await.map_err(|error| error.to_string())?;
            Ok(text_of(contents))
        })
    }
}

fn text_of(contents: Vec<Content>) -> String {
    let texts = contents.into_iter().map(|content| match content {
        Content::Text(text) => text,
        Content::Image(image) => format!("[Image: {}]", image.media_type),
    });
    texts.collect::<Vec<_>>().join("\n")
}
