//! A connection that works: lists, calls, prompts and resources, each bounded in time and size.

// The protocol is about to drop setting the level of logs; today's servers use it.
#![expect(deprecated)]

use std::sync::Arc;
use std::time::Duration;

use rmcp::RoleClient;
use rmcp::model::{
    CallToolRequest, CallToolRequestParams, CancelledNotificationParam, ClientRequest, CustomResult, GetPromptRequest,
    GetPromptRequestParams, ListPromptsRequest, ListResourcesRequest, ListToolsRequest, LoggingLevel,
    PaginatedRequestParams, PingRequest, ReadResourceRequest, ReadResourceRequestParams, RequestId, ServerResult,
    SetLevelRequestParams,
};
use rmcp::service::{Peer, PeerRequestOptions, RequestHandle, ServiceError};
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio_util::sync::CancellationToken;

use super::calls::{Call, Calls};
use super::content;
use super::failure::{needs_login, said};
use super::handler::Signals;
use super::status::{McpError, PromptMessage};
use crate::llm::Role;
use crate::tool::{Arguments, Content, ToolContext, ToolOutput};

/// Calls that one server works on at a time.
const CALLS_AT_ONCE: usize = 32;
const MOST_PAGES: usize = 50;
const MOST_ITEMS: usize = 1_000;
/// A sign of life takes less than this.
const PING_PATIENCE: Duration = Duration::from_secs(5);
/// How long it may take to tell a server that a call is over.
const CANCEL_PATIENCE: Duration = Duration::from_millis(300);
/// Whatever progress it reports, a call ends after this.
const LONGEST_CALL: Duration = Duration::from_secs(3600);
/// How often a call that asks the user something looks whether it still does.
const ASKING_AGAIN: Duration = Duration::from_secs(1);

/// Cheap to clone; lives as long as its connection.
#[derive(Debug, Clone)]
pub(super) struct Live {
    server: Arc<str>,
    peer: Peer<RoleClient>,
    calls: Arc<Calls>,
    signals: Arc<Signals>,
    /// Cancelled when the connection is gone.
    closed: CancellationToken,
    slots: Arc<Semaphore>,
    timeout: Duration,
}

impl Live {
    pub(super) fn new(
        server: &str,
        peer: Peer<RoleClient>,
        calls: Arc<Calls>,
        signals: Arc<Signals>,
        closed: CancellationToken,
        timeout: Duration,
    ) -> Self {
        let slots = Arc::new(Semaphore::new(CALLS_AT_ONCE));
        Self { server: server.into(), peer, calls, signals, closed, slots, timeout }
    }

    /// Whether the server has announced other tools than are known.
    pub(super) fn has_other_tools(&self) -> bool {
        self.signals.has(Signals::TOOLS)
    }

    /// Whether a call is running.
    pub(super) fn is_busy(&self) -> bool {
        !self.calls.is_empty()
    }

    pub(super) async fn tools(&self) -> Result<Vec<rmcp::model::Tool>, McpError> {
        self.list("tools", |params| ClientRequest::ListToolsRequest(ListToolsRequest { params, ..Default::default() }))
            .await
    }

    pub(super) async fn prompts(&self) -> Result<Vec<rmcp::model::Prompt>, McpError> {
        self.list("prompts", |params| {
            ClientRequest::ListPromptsRequest(ListPromptsRequest { params, ..Default::default() })
        })
        .await
    }

    pub(super) async fn resources(&self) -> Result<Vec<rmcp::model::Resource>, McpError> {
        self.list("resources", |params| {
            ClientRequest::ListResourcesRequest(ListResourcesRequest { params, ..Default::default() })
        })
        .await
    }

    /// All pages. Taken apart by hand, so that one broken entry does not cost all others.
    async fn list<T: DeserializeOwned>(
        &self,
        key: &str,
        request: impl Fn(Option<PaginatedRequestParams>) -> ClientRequest,
    ) -> Result<Vec<T>, McpError> {
        let pages = async {
            let mut items = Vec::new();
            let mut cursor = None;
            for _ in 0..MOST_PAGES {
                let params = cursor.clone().map(|cursor| PaginatedRequestParams::default().with_cursor(Some(cursor)));
                let result = self.request(request(params)).await?;
                let page = serde_json::to_value(result).unwrap_or_default();
                items.extend(self.entries::<T>(key, &page));
                let next = page.get("nextCursor").and_then(Value::as_str).map(str::to_owned);
                if next.is_none() || next == cursor || items.len() >= MOST_ITEMS {
                    break;
                }
                cursor = next;
            }
            items.truncate(MOST_ITEMS);
            Ok(items)
        };
        tokio::time::timeout(self.timeout, pages).await.unwrap_or_else(|_| Err(self.too_slow(self.timeout)))
    }

    fn entries<T: DeserializeOwned>(&self, key: &str, page: &Value) -> Vec<T> {
        let mut broken = 0;
        let entries = page.get(key).and_then(Value::as_array).into_iter().flatten().take(MOST_ITEMS);
        let good = entries.filter_map(|entry| {
            let entry = serde_json::from_value(entry.clone()).ok();
            broken += usize::from(entry.is_none());
            entry
        });
        let good = good.collect();
        if broken > 0 {
            tracing::warn!(server = &*self.server, broken, list = key, "entries of an MCP server cannot be read");
        }
        good
    }

    pub(super) async fn prompt(
        &self,
        name: &str,
        arguments: Vec<(String, String)>,
        sees_images: bool,
    ) -> Result<Vec<PromptMessage>, McpError> {
        let arguments = arguments.into_iter().map(|(name, value)| (name, Value::from(value))).collect();
        let params = GetPromptRequestParams::new(name).with_arguments(arguments);
        match self.bounded(ClientRequest::GetPromptRequest(GetPromptRequest::new(params))).await? {
            ServerResult::GetPromptResult(result) => {
                let message = |message: rmcp::model::PromptMessage| PromptMessage {
                    role: if message.role == rmcp::model::Role::Assistant { Role::Assistant } else { Role::User },
                    content: content::content(message.content, sees_images),
                };
                Ok(result.messages.into_iter().map(message).collect())
            }
            _ => Err(self.odd_answer()),
        }
    }

    pub(super) async fn resource(&self, uri: &str, sees_images: bool) -> Result<Vec<Content>, McpError> {
        let params = ReadResourceRequestParams::new(uri);
        match self.bounded(ClientRequest::ReadResourceRequest(ReadResourceRequest::new(params))).await? {
            ServerResult::ReadResourceResult(result) => {
                Ok(result.contents.into_iter().flat_map(|part| content::resource(part, sees_images)).collect())
            }
            _ => Err(self.odd_answer()),
        }
    }

    /// Any answer is a sign of life, also that the question is not known.
    pub(super) async fn is_alive(&self) -> bool {
        let ping = self.request(ClientRequest::PingRequest(PingRequest::default()));
        match tokio::time::timeout(PING_PATIENCE, ping).await {
            Ok(Ok(_) | Err(McpError::Refused(_))) => true,
            Ok(Err(McpError::NeedsLogin { .. })) => {
                self.signals.raise(Signals::LOGIN);
                true
            }
            Ok(Err(error)) => {
                tracing::info!(server = &*self.server, %error, "an MCP server does not answer");
                false
            }
            Err(_) => false,
        }
    }

    /// Asks for messages from this level on; a server that cannot do it sends what it likes.
    pub(super) async fn ask_for_logs(&self) {
        let asking = self.peer.set_level(SetLevelRequestParams::new(LoggingLevel::Info));
        let _ = tokio::time::timeout(PING_PATIENCE, asking).await;
    }

    pub(super) async fn roots_changed(&self) {
        let _ = tokio::time::timeout(PING_PATIENCE, self.peer.notify_roots_list_changed()).await;
    }

    /// Carries a call out. Ends when it is stopped, when the server is gone or silent for too long;
    /// when it is dropped, the server is told.
    pub(super) async fn call(&self, name: String, arguments: Arguments, context: ToolContext) -> ToolOutput {
        let (stop, sees_images) = (context.stop.clone(), context.sees_images);
        let Some(_slot) = self.slot(&stop).await else {
            return ToolOutput::error("The call was stopped before it began.");
        };
        let params = CallToolRequestParams::new(name).with_arguments(arguments);
        let request = ClientRequest::CallToolRequest(CallToolRequest::new(params));
        let sending = self.peer.send_cancellable_request(request, PeerRequestOptions::no_options());
        let handle = tokio::select! {
            handle = sending => handle,
            () = stop.cancelled() => return ToolOutput::error("The call was stopped before it began."),
            () = self.closed.cancelled() => Err(ServiceError::TransportClosed),
        };
        let mut handle = match handle {
            Ok(handle) => handle,
            Err(error) => return self.failed(error),
        };
        let open = self.calls.open(handle.id.clone(), handle.progress_token.clone(), context);
        let mut unanswered = Unanswered { live: self, id: Some(handle.id.clone()) };
        let outcome = self.answer(&mut handle, &open.call, &stop).await;
        if matches!(outcome, Outcome::Answered(_) | Outcome::Closed) {
            unanswered.id = None;
        }
        match outcome {
            Outcome::Answered(answer) => match *answer {
                Ok(ServerResult::CallToolResult(result)) => content::output(result, sees_images),
                Ok(ServerResult::CustomResult(CustomResult(value))) => content::unknown_output(&value, sees_images),
                Ok(_) => ToolOutput::error(self.odd_answer().to_string()),
                Err(error) => self.failed(error),
            },
            Outcome::Closed => self.failed(ServiceError::TransportClosed),
            Outcome::Stopped => {
                unanswered.cancel("the user stopped it").await;
                ToolOutput::error("The call was stopped, and the server was told. What it had done by then stays done.")
            }
            Outcome::Silent(patience) => {
                unanswered.cancel("it took too long").await;
                self.signals.raise(Signals::DOUBT);
                ToolOutput::error(self.too_slow(patience).to_string())
            }
        }
    }

    async fn slot(&self, stop: &CancellationToken) -> Option<SemaphorePermit<'_>> {
        tokio::select! {
            slot = self.slots.acquire() => slot.ok(),
            () = stop.cancelled() => None,
            () = self.closed.cancelled() => None,
        }
    }

    async fn answer(&self, handle: &mut RequestHandle<RoleClient>, call: &Call, stop: &CancellationToken) -> Outcome {
        let patience = self.timeout * 2;
        let mut deadline = tokio::time::Instant::now() + patience;
        let last = tokio::time::Instant::now() + LONGEST_CALL.max(patience);
        loop {
            tokio::select! {
                biased;
                answer = &mut handle.rx => {
                    return Outcome::Answered(Box::new(answer.unwrap_or(Err(ServiceError::TransportClosed))));
                }
                () = stop.cancelled() => return Outcome::Stopped,
                () = self.closed.cancelled() => return Outcome::Closed,
                () = call.alive.notified() => deadline = tokio::time::Instant::now() + patience,
                () = tokio::time::sleep_until(deadline.min(last)) => {
                    // A person takes longer than a program, and that is not the program's fault.
                    if !call.is_asking() {
                        return Outcome::Silent(patience);
                    }
                    deadline = tokio::time::Instant::now() + ASKING_AGAIN;
                }
            }
        }
    }

    async fn bounded(&self, request: ClientRequest) -> Result<ServerResult, McpError> {
        let timeout = self.timeout;
        let answer = tokio::time::timeout(timeout, self.request(request)).await;
        if answer.is_err() {
            self.signals.raise(Signals::DOUBT);
        }
        answer.unwrap_or_else(|_| Err(self.too_slow(timeout)))
    }

    /// One request; the server is told when nobody waits for it any more.
    async fn request(&self, request: ClientRequest) -> Result<ServerResult, McpError> {
        let asking = async {
            let mut handle = self.peer.send_cancellable_request(request, PeerRequestOptions::no_options()).await?;
            let mut unanswered = Unanswered { live: self, id: Some(handle.id.clone()) };
            let answer = (&mut handle.rx).await.unwrap_or(Err(ServiceError::TransportClosed));
            unanswered.id = None;
            answer
        };
        let answer = tokio::select! {
            answer = asking => answer,
            () = self.closed.cancelled() => Err(ServiceError::TransportClosed),
        };
        answer.map_err(|error| self.error(error))
    }

    fn failed(&self, error: ServiceError) -> ToolOutput {
        if let ServiceError::TransportClosed = error {
            self.signals.raise(Signals::DOUBT);
            return ToolOutput::error(format!(
                "The MCP server {:?} ended while it worked on this call. It is not known how far it got.",
                self.server
            ));
        }
        let error = self.error(error);
        if let McpError::NeedsLogin { .. } = error {
            self.signals.raise(Signals::LOGIN);
        }
        ToolOutput::error(error.to_string())
    }

    fn error(&self, error: ServiceError) -> McpError {
        let server = self.server.to_string();
        match error {
            ServiceError::McpError(error) => McpError::Refused(said(&error)),
            ServiceError::TransportClosed => McpError::Closed(server),
            ServiceError::TransportSend(error) if needs_login(&error).is_some() => McpError::NeedsLogin { server },
            ServiceError::TransportSend(error) => {
                self.signals.raise(Signals::DOUBT);
                McpError::Failed(format!("The MCP server {server:?} cannot be reached: {}", error.error))
            }
            ServiceError::Timeout { timeout } => self.too_slow(timeout),
            other => McpError::Failed(format!("The MCP server {server:?} failed: {other}")),
        }
    }

    fn too_slow(&self, patience: Duration) -> McpError {
        McpError::Timeout { server: self.server.to_string(), seconds: patience.as_secs().max(1) }
    }

    fn odd_answer(&self) -> McpError {
        McpError::Failed(format!("The MCP server {:?} answered with something that cannot be used.", self.server))
    }
}

enum Outcome {
    Answered(Box<Result<ServerResult, ServiceError>>),
    Stopped,
    Closed,
    Silent(Duration),
}

/// A request that the server still works on. When it is dropped, the server is told that nobody
/// waits any more.
struct Unanswered<'a> {
    live: &'a Live,
    id: Option<RequestId>,
}

impl Unanswered<'_> {
    async fn cancel(&mut self, reason: &str) {
        if let Some(id) = self.id.take() {
            let told = tell(self.live.peer.clone(), id, reason.to_owned());
            let _ = tokio::time::timeout(CANCEL_PATIENCE, told).await;
        }
    }
}

impl Drop for Unanswered<'_> {
    fn drop(&mut self) {
        let (Some(id), Ok(runtime)) = (self.id.take(), tokio::runtime::Handle::try_current()) else { return };
        let told = tell(self.live.peer.clone(), id, "nobody waits for it any more".to_owned());
        runtime.spawn(async move {
            let _ = tokio::time::timeout(CANCEL_PATIENCE, told).await;
        });
    }
}

async fn tell(peer: Peer<RoleClient>, id: RequestId, reason: String) {
    let _ = peer.notify_cancelled(CancelledNotificationParam::new(Some(id), Some(reason))).await;
}
