//! Help beside the chats: rewrites of a selection, and completion at the cursor.

use std::collections::HashMap;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use custom_methods::completion::{CompletionError, CompletionInlineParams, CompletionInlineResult, CompletionItem};
use custom_methods::general::MessageType;
use custom_methods::methods::{CompletionInline, RewriteContentReceived, RewritePrompt};
use custom_methods::rewrite::{
    RewriteContent, RewriteContentReceivedParams, RewriteErrorContent, RewriteFinishedContent, RewritePromptParams,
    RewritePromptResult, RewriteReasoningContent, RewriteReplaceContent, RewriteStartedContent, RewriteStatus,
    RewriteTextContent,
};
use custom_methods::{Range, RewriteId};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;
use tower_lsp::jsonrpc::Result;

use super::super::client::Client;
use super::super::response_slot::keep_until_queued;
use super::super::service::{Answer, EcaServer, failed};
use crate::base::task;
use crate::engine::assist::{AssistError, CompletionOrder, RewriteOrder, RewriteStep, Rewriting};

/// More at once is a client that has lost count.
const MOST_REWRITES: usize = 16;

/// The rewrites of one client that run.
#[derive(Debug, Clone, Default)]
pub(in super::super) struct Rewrites(Arc<Mutex<HashMap<RewriteId, Running>>>);

/// One of them, as the others see it.
#[derive(Debug, Clone, Default)]
struct Running {
    stop: CancellationToken,
    /// Cancelled when it says nothing more.
    silent: CancellationToken,
}

impl Rewrites {
    /// Takes a place for a rewrite, in place of one of the same name, which is stopped and returned
    /// too. `None`: there is no room.
    fn begin(&self, id: &RewriteId) -> Option<(Running, Option<Running>)> {
        let mut running = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let older = running.remove(id).inspect(|older| older.stop.cancel());
        (running.len() < MOST_REWRITES).then(|| {
            let new = Running::default();
            running.insert(id.clone(), new.clone());
            (new, older)
        })
    }

    fn end(&self, id: &RewriteId, ended: &Running) {
        // A newer one of the same name keeps its place.
        if !ended.stop.is_cancelled() {
            self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(id);
        }
    }
}

impl Answer<RewritePrompt> for EcaServer {
    async fn answer(&self, params: RewritePromptParams) -> Result<RewritePromptResult> {
        let engine = self.engine()?;
        let path = params.path.map(PathBuf::from);
        let unsaved = match &path {
            Some(path) => self.session.documents().unsaved(path).await,
            None => None,
        };
        let order = RewriteOrder {
            lines: params.range.map(lines),
            text: params.text,
            wish: params.prompt,
            path,
            unsaved,
            model: self.session.selected_model(),
        };
        let rewriting = engine.rewrite(order).await.map_err(|error| failed(error.to_string()))?;
        let rewrites = self.session.rewrites();
        let begun = rewrites.begin(&params.id).ok_or_else(|| failed("too many rewrites are running"))?;
        let model = rewriting.model().to_string();
        let (answered, response_queued) = oneshot::channel::<std::convert::Infallible>();
        keep_until_queued(answered);
        let (client, id) = (self.client().clone(), params.id);
        task::spawn(async move {
            let (this, older) = begun;
            let _silent = this.silent.clone().drop_guard();
            let _ = response_queued.await;
            // Both have one name, so what the older one still said would count as the new one's.
            if let Some(older) = older {
                older.silent.cancelled().await;
            }
            let work = Telling { client, id: id.clone() }.all(rewriting);
            tokio::select! {
                () = work => {}
                () = this.stop.cancelled() => {}
            }
            rewrites.end(&id, &this);
        });
        Ok(RewritePromptResult { status: RewriteStatus::Prompting, model })
    }
}

/// The lines of a range that ends before its last character.
fn lines(range: Range) -> RangeInclusive<u32> {
    let Range { start, end } = range;
    let last = if end.character <= 1 { end.line.saturating_sub(1) } else { end.line };
    start.line..=last.max(start.line)
}

/// Tells the client of one rewrite.
struct Telling {
    client: Client,
    id: RewriteId,
}

impl Telling {
    async fn all(self, mut rewriting: Rewriting) {
        let begun = Instant::now();
        self.tell(RewriteContent::Started(RewriteStartedContent {})).await;
        while let Some(step) = rewriting.next().await {
            let content = match step {
                Ok(RewriteStep::Thinking) => RewriteContent::Reasoning(RewriteReasoningContent {}),
                Ok(RewriteStep::Text(text)) => RewriteContent::Text(RewriteTextContent { text }),
                Ok(RewriteStep::Replace(text)) => RewriteContent::Replace(RewriteReplaceContent { text }),
                Err(error) => {
                    let message = error.to_string();
                    return self.tell(RewriteContent::Error(RewriteErrorContent { message })).await;
                }
            };
            self.tell(content).await;
        }
        let total_time_ms = u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.tell(RewriteContent::Finished(RewriteFinishedContent { total_time_ms })).await;
    }

    async fn tell(&self, content: RewriteContent) {
        let params = RewriteContentReceivedParams { rewrite_id: self.id.clone(), content };
        self.client.notify::<RewriteContentReceived>(&params).await;
    }
}

impl Answer<CompletionInline> for EcaServer {
    async fn answer(&self, params: CompletionInlineParams) -> Result<CompletionInlineResult> {
        let CompletionInlineParams { doc_text, doc_version, position, path } = params;
        let order = CompletionOrder {
            text: doc_text,
            line: position.line,
            column: position.character,
            path,
            model: self.session.selected_model(),
        };
        Ok(match self.engine()?.complete(order).await {
            Ok(Some(text)) => {
                let range = Range { start: position, end: position };
                CompletionInlineResult { items: Some(vec![CompletionItem { text, doc_version, range }]), error: None }
            }
            Ok(None) => refused(MessageType::Info, "the model has nothing to propose here"),
            Err(error @ AssistError::KeyFile(_)) => refused(MessageType::Info, &error.to_string()),
            Err(error) => refused(MessageType::Warning, &error.to_string()),
        })
    }
}

fn refused(kind: MessageType, message: &str) -> CompletionInlineResult {
    CompletionInlineResult { items: None, error: Some(CompletionError { kind, message: message.to_owned() }) }
}
