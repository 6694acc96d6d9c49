//! Completion at the cursor and rewriting of a selection: requests that belong to no chat.

use std::path::PathBuf;

use custom_methods::common::Range;
use custom_methods::completion::{CompletionError, CompletionInlineParams, CompletionInlineResult, CompletionItem};
use custom_methods::general::MessageType;
use custom_methods::ids::RewriteId;
use custom_methods::methods::{CompletionInline, RewriteContentReceived, RewritePrompt};
use custom_methods::rewrite::{
    RewriteContent, RewriteContentReceivedParams, RewriteErrorContent, RewriteFinishedContent, RewritePromptParams,
    RewritePromptResult, RewriteReasoningContent, RewriteReplaceContent, RewriteStartedContent, RewriteStatus,
    RewriteTextContent,
};
use tower_lsp::jsonrpc::Result;

use super::super::client::Client;
use super::super::service::{Answer, EcaServer, failed};
use crate::engine::{NoCompletion, Rewrite, RewriteStep, Rewriting};

/// A new text is sent in pieces no longer than this: some clients read no frame above 64 KiB.
const MAX_PIECE: usize = 10 * 1024;

impl Answer<CompletionInline> for EcaServer {
    async fn answer(&self, params: CompletionInlineParams) -> Result<CompletionInlineResult> {
        let CompletionInlineParams { doc_text, doc_version, position, .. } = params;
        let (line, column) = (position.line, position.character);
        let error =
            |kind, message| CompletionInlineResult { error: Some(CompletionError { kind, message }), items: None };
        Ok(match self.engine()?.complete(&doc_text, line, column).await {
            Ok(text) => {
                let range = Range { start: position, end: position };
                let items = Some(vec![CompletionItem { text, doc_version, range }]);
                CompletionInlineResult { items, error: None }
            }
            Err(NoCompletion::Nothing) => error(MessageType::Info, "Nothing to complete here.".to_owned()),
            Err(NoCompletion::Problem(problem)) => error(MessageType::Warning, problem),
        })
    }
}

impl Answer<RewritePrompt> for EcaServer {
    async fn answer(&self, params: RewritePromptParams) -> Result<RewritePromptResult> {
        let RewritePromptParams { id, text, prompt, path, range } = params;
        if prompt.trim().is_empty() {
            return Err(failed("say what should become of the selection"));
        }
        let lines = range.map(|range| (range.start.line, range.end.line));
        let rewrite = Rewrite { text, wish: prompt, path: path.map(PathBuf::from), lines };
        let rewriting = self.engine()?.rewrite(rewrite).await.map_err(failed)?;
        let model = rewriting.model().to_string();
        tokio::spawn(tell(self.client().clone(), id, rewriting));
        Ok(RewritePromptResult { status: RewriteStatus::Prompting, model })
    }
}

/// Sends a rewrite as it comes.
async fn tell(client: Client, id: RewriteId, mut rewriting: Rewriting) {
    let send = |content: RewriteContent| {
        let params = RewriteContentReceivedParams { rewrite_id: id.clone(), content };
        let client = client.clone();
        async move { client.notify::<RewriteContentReceived>(&params).await }
    };
    send(RewriteContent::Started(RewriteStartedContent {})).await;
    let mut has_reasoned = false;
    loop {
        let steps = rewriting.next().await;
        if steps.is_empty() {
            return;
        }
        for step in steps {
            match step {
                RewriteStep::Reasoning if std::mem::replace(&mut has_reasoned, true) => {}
                RewriteStep::Reasoning => send(RewriteContent::Reasoning(RewriteReasoningContent {})).await,
                RewriteStep::Text(text) => {
                    for piece in crate::base::text::pieces(&text, MAX_PIECE) {
                        let text = piece.to_owned();
                        send(RewriteContent::Text(RewriteTextContent { text })).await;
                    }
                }
                RewriteStep::Replace(text) => send(RewriteContent::Replace(RewriteReplaceContent { text })).await,
                RewriteStep::Finished { took } => {
                    let total_time_ms = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
                    send(RewriteContent::Finished(RewriteFinishedContent { total_time_ms })).await;
                }
                RewriteStep::Failed(message) => send(RewriteContent::Error(RewriteErrorContent { message })).await,
            }
        }
    }
}
