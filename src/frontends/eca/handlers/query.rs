//! What a client offers while the user types: contexts and files.

use custom_methods::chat::{
    ChatContext, ChatQueryContextParams, ChatQueryContextResult, ChatQueryFilesParams, ChatQueryFilesResult,
    CursorContext, DirectoryContext, FileContext, McpResourceContext, RepoMapContext,
};
use custom_methods::methods::{ChatQueryContext, ChatQueryFiles};
use tower_lsp::jsonrpc::Result;

use super::super::service::{Answer, EcaServer};
use crate::config::load::home;
use crate::context::Places;
use crate::context::query::{ContextHit, McpResource, Query, contexts, files};

impl Answer<ChatQueryContext> for EcaServer {
    async fn answer(&self, params: ChatQueryContextParams) -> Result<ChatQueryContextResult> {
        let (index, limit) = self.session.index();
        let places = Places { roots: index.roots().to_vec(), home: home() };
        let chosen: Vec<ContextHit> = params.contexts.into_iter().filter_map(chosen).collect();
        let query = Query { text: &params.query, limit, places: &places };
        let found = contexts(&index, query, &[], &chosen).await;
        Ok(ChatQueryContextResult {
            chat_id: params.chat_id,
            contexts: found.into_iter().filter_map(offered).collect(),
        })
    }
}

impl Answer<ChatQueryFiles> for EcaServer {
    async fn answer(&self, params: ChatQueryFilesParams) -> Result<ChatQueryFilesResult> {
        let (index, limit) = self.session.index();
        let places = Places { roots: index.roots().to_vec(), home: home() };
        let found = files(&index, Query { text: &params.query, limit, places: &places }).await;
        Ok(ChatQueryFilesResult { chat_id: params.chat_id, files: found.into_iter().filter_map(offered).collect() })
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
