//! What a server may tell and ask us: the client's side of the protocol.
//!
//! Everything here returns at once, except a question to the user, because the library runs each in
//! a task of its own and a server can send as many as it likes.

// The protocol is about to drop roots, logging and sampling; today's servers use them.
#![expect(deprecated)]

use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use rmcp::ClientHandler;
use rmcp::model::{
    ClientCapabilities, ClientConfig, CreateMessageRequestParams, CreateMessageResult, ElicitRequestParams,
    ElicitResult, ElicitationAction, ElicitationCapability, ErrorCode, ErrorData, FormElicitationCapability,
    Implementation, ListRootsResult, LoggingLevel, LoggingMessageNotificationParam, ProgressNotificationParam,
    ProtocolVersion, Root, RootsCapabilities, UrlElicitationCapability,
};
use rmcp::service::{InboundStreamOrigin, NotificationContext, RequestContext, RoleClient};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::calls::Calls;
use super::elicitation;
use crate::base::text::prefix;
use crate::http::redact;

const MOST_LOG_TEXT: usize = 2_000;

/// What the server says has changed, until the actor looks.
#[derive(Debug, Default)]
pub(super) struct Signals {
    bits: AtomicU8,
    raised: Notify,
}

impl Signals {
    pub(super) const TOOLS: u8 = 1;
    pub(super) const PROMPTS: u8 = 2;
    pub(super) const RESOURCES: u8 = 4;
    /// Somebody doubts that the server is alive.
    pub(super) const DOUBT: u8 = 8;
    /// The server wants a login, although it worked before.
    pub(super) const LOGIN: u8 = 16;

    pub(super) fn raise(&self, bit: u8) {
        self.bits.fetch_or(bit, Ordering::Relaxed);
        self.raised.notify_one();
    }

    /// Waits for any, and takes them all.
    pub(super) async fn next(&self) -> u8 {
        loop {
            let bits = self.bits.swap(0, Ordering::Relaxed);
            if bits != 0 {
                return bits;
            }
            self.raised.notified().await;
        }
    }

    pub(super) fn has(&self, bit: u8) -> bool {
        self.bits.load(Ordering::Relaxed) & bit != 0
    }
}

/// Folders as servers are told about them; replaced as a whole.
#[derive(Debug, Default)]
pub(super) struct Roots(Mutex<Arc<Vec<(String, String)>>>);

impl Roots {
    /// URIs with names. Returns whether they are others than before.
    pub(super) fn set(&self, roots: Vec<(String, String)>) -> bool {
        let mut current = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let changed = **current != roots;
        *current = Arc::new(roots);
        changed
    }

    fn get(&self) -> Arc<Vec<(String, String)>> {
        Arc::clone(&self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// One connection's handler.
#[derive(Debug)]
pub(super) struct Handler {
    pub(super) server: String,
    pub(super) calls: Arc<Calls>,
    pub(super) signals: Arc<Signals>,
    pub(super) roots: Arc<Roots>,
    /// Whether the user can be asked at all.
    pub(super) can_ask: bool,
    /// Cancelled with the connection.
    pub(super) closed: CancellationToken,
    /// What must not stand in a log.
    pub(super) secrets: Arc<Vec<String>>,
}

impl ClientHandler for Handler {
    fn get_info(&self) -> ClientConfig {
        let mut capabilities = ClientCapabilities::default();
        let mut roots = RootsCapabilities::default();
        roots.list_changed = Some(true);
        capabilities.roots = Some(roots);
        if self.can_ask {
            let forms = FormElicitationCapability::new();
            capabilities.elicitation =
                Some(ElicitationCapability::new().with_form(forms).with_url(UrlElicitationCapability::default()));
        }
        let ourselves = Implementation::new("ECA", env!("CARGO_PKG_VERSION"));
        ClientConfig::new(capabilities, ourselves).with_protocol_version(ProtocolVersion::LATEST_WITH_INITIALIZE)
    }

    async fn create_message(
        &self,
        _: CreateMessageRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<CreateMessageResult, ErrorData> {
        tracing::info!(server = self.server, "an MCP server asked for a model and was refused");
        Err(ErrorData::new(ErrorCode::METHOD_NOT_FOUND, "this client does not lend its model to servers", None))
    }

    async fn list_roots(&self, _: RequestContext<RoleClient>) -> Result<ListRootsResult, ErrorData> {
        let roots = self.roots.get();
        Ok(ListRootsResult::new(roots.iter().map(|(uri, name)| Root::new(uri).with_name(name)).collect()))
    }

    async fn create_elicitation(
        &self,
        request: ElicitRequestParams,
        context: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        let declined = || Ok(ElicitResult::new(ElicitationAction::Decline));
        let named = match context.extensions.get::<InboundStreamOrigin>() {
            Some(InboundStreamOrigin::OutboundRequest(id)) => Some(id),
            Some(InboundStreamOrigin::Unassociated) | None => None,
        };
        let Some(call) = self.calls.asking(named) else {
            tracing::info!(
                server = self.server,
                "a question of an MCP server is declined: it belongs to no single call"
            );
            return declined();
        };
        if !call.context.host.capabilities().ask {
            return declined();
        }
        let asking = call.ask();
        let cancelled = ElicitResult::new(ElicitationAction::Cancel);
        let result = tokio::select! {
            result = elicitation::ask(&self.server, request, &call) => result,
            () = call.context.stop.cancelled() => cancelled,
            () = self.closed.cancelled() => cancelled,
            () = context.ct.cancelled() => cancelled,
        };
        drop(asking);
        Ok(result)
    }

    async fn on_progress(&self, params: ProgressNotificationParam, _: NotificationContext<RoleClient>) {
        self.calls.progress(&params.progress_token, params.progress, params.total, params.message.as_deref());
    }

    async fn on_logging_message(&self, params: LoggingMessageNotificationParam, _: NotificationContext<RoleClient>) {
        let text = match &params.data {
            serde_json::Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        let text = redact(prefix(&text, MOST_LOG_TEXT), self.secrets.iter().map(String::as_str));
        let (server, logger) = (&self.server, params.logger.as_deref().map_or("", |logger| prefix(logger, 100)));
        match params.level {
            LoggingLevel::Debug => tracing::debug!(server, logger, text, "MCP server"),
            LoggingLevel::Info | LoggingLevel::Notice => tracing::info!(server, logger, text, "MCP server"),
            LoggingLevel::Warning => tracing::warn!(server, logger, text, "MCP server"),
            LoggingLevel::Error | LoggingLevel::Critical | LoggingLevel::Alert | LoggingLevel::Emergency => {
                tracing::error!(server, logger, text, "MCP server");
            }
        }
    }

    async fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.signals.raise(Signals::TOOLS);
    }

    async fn on_prompt_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.signals.raise(Signals::PROMPTS);
    }

    async fn on_resource_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.signals.raise(Signals::RESOURCES);
    }
}
