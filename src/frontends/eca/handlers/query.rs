//! What a client offers while the user types: contexts and files.

use custom_methods::chat::{
    ChatCommand, ChatCommandArgument, ChatCommandType, ChatContext, ChatQueryCommandsParams, ChatQueryCommandsResult,
    ChatQueryContextParams, ChatQueryContextResult, ChatQueryFilesParams, ChatQueryFilesResult, CursorContext,
    DirectoryContext, FileContext, McpResourceContext, RepoMapContext,
};
use custom_methods::methods::{ChatQueryCommands, ChatQueryContext, ChatQueryFiles};
use tower_lsp::jsonrpc::Result;

use super::super::service::{Answer, EcaServer};
use crate::config::load::home;
use crate::context::Places;
use crate::context::query::{ContextHit, McpResource, Query, contexts, files};
use crate::engine::{CommandInfo, CommandKind};

impl Answer<ChatQueryContext> for EcaServer {
    async fn answer(&self, params: ChatQueryContextParams) -> Result<ChatQueryContextResult> {
        let (index, limit) = (self.engine()?.index(&self.session.workspace()), self.session.query_limit());
        let places = Places { roots: index.roots().to_vec(), home: home() };
        let chosen: Vec<ContextHit> = params.contexts.into_iter().filter_map(chosen).collect();
        let query = Query { text: &params.query, limit, places: &places };
        let found = contexts(&index, query, &self.engine()?.resources(), &chosen).await;
        Ok(ChatQueryContextResult {
            chat_id: params.chat_id,
            contexts: found.into_iter().filter_map(offered).collect(),
        })
    }
}

impl Answer<ChatQueryFiles> for EcaServer {
    async fn answer(&self, params: ChatQueryFilesParams) -> Result<ChatQueryFilesResult> {
        let (index, limit) = (self.engine()?.index(&self.session.workspace()), self.session.query_limit());
        let places = Places { roots: index.roots().to_vec(), home: home() };
        let found = files(&index, Query { text: &params.query, limit, places: &places }).await;
        Ok(ChatQueryFilesResult { chat_id: params.chat_id, files: found.into_iter().filter_map(offered).collect() })
    }
}

impl Answer<ChatQueryCommands> for EcaServer {
    async fn answer(&self, params: ChatQueryCommandsParams) -> Result<ChatQueryCommandsResult> {
        let started = self.started()?;
        let wanted = params.query.trim().trim_start_matches('/').to_lowercase();
        let all = started.engine.commands(&self.session.workspace()).await;
        let mut found: Vec<CommandInfo> =
            all.into_iter().filter(|command| command.name.to_lowercase().contains(&wanted)).collect();
        // What begins with the query is what is meant; otherwise the order stays.
        found.sort_by_key(|command| !command.name.to_lowercase().starts_with(&wanted));
        // The public server's word for clients that know its capabilities.
        let public = started.client.is_modern;
        Ok(ChatQueryCommandsResult {
            chat_id: params.chat_id,
            commands: found.into_iter().map(|found| command(found, public)).collect(),
        })
    }
}

fn command(command: CommandInfo, public: bool) -> ChatCommand {
    ChatCommand {
        name: command.name,
        description: command.description,
        kind: match command.kind {
            CommandKind::Native => ChatCommandType::Native,
            CommandKind::McpPrompt if public => ChatCommandType::McpPromptPublic,
            CommandKind::McpPrompt => ChatCommandType::McpPrompt,
            CommandKind::CustomPrompt => ChatCommandType::CustomPrompt,
            CommandKind::Skill => ChatCommandType::Skill,
        },
        arguments: command
            .arguments
            .into_iter()
            .map(|argument| ChatCommandArgument {
                name: argument.name,
                description: argument.description,
                required: argument.required,
            })
            .collect(),
    }
}

/// What the user has attached already. Lines of a file are not the file: it is still offered.
fn chosen(context: ChatContext) -> Option<ContextHit> {
    match context {
        ChatContext::RepoMap(_) => Some(ContextHit::RepoMap),
        ChatContext::Cursor(_) => Some(ContextHit::Cursor),
        ChatContext::Directory(directory) => Some(ContextHit::Directory(directory.path.into())),
        ChatContext::File(file) if file.lines_range.is_none() && file.selection.is_none() => {
            Some(ContextHit::File(file.path.into()))
        }
        ChatContext::McpResource(resource) => Some(ContextHit::McpResource(McpResource {
            server: resource.server,
            uri: resource.uri,
            ..McpResource::default()
        })),
        _ => None,
    }
}

/// Nothing for a path that cannot be written in JSON.
fn offered(hit: ContextHit) -> Option<ChatContext> {
    Some(match hit {
        ContextHit::RepoMap => ChatContext::RepoMap(RepoMapContext {}),
        ContextHit::Cursor => ChatContext::Cursor(CursorContext::default()),
        ContextHit::Directory(path) => ChatContext::Directory(DirectoryContext { path: path.to_str()?.to_owned() }),
        ContextHit::File(path) => {
            ChatContext::File(FileContext { path: path.to_str()?.to_owned(), ..FileContext::default() })
        }
        ContextHit::McpResource(resource) => ChatContext::McpResource(McpResourceContext {
            uri: resource.uri,
            name: resource.name,
            description: resource.description,
            mime_type: resource.mime_type,
            server: resource.server,
        }),
    })
}
