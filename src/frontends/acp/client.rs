//! The client as the server sees it: what it can do, and a place to send requests to.

use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use agent_client_protocol_schema::v1::{InitializeRequest, SessionNotification};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::json;

use super::methods::{CANCEL_REQUEST, SESSION_UPDATE};
use crate::host::HostError;
use crate::transport::envelope::METHOD_NOT_FOUND;
use crate::transport::newline::{CallError, Peer};
use crate::transport::{Frame, PushError};

/// How long an editor may take for anything but a person's answer.
pub(super) const PATIENCE: Duration = Duration::from_secs(30);
/// A question waits for its user; it ends with its turn. This only bounds what is remembered.
pub(super) const ANSWER_PATIENCE: Duration = Duration::from_secs(24 * 3600);

/// What the client said about itself; nothing before `initialize`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Facts {
    pub(super) name: String,
    pub(super) reads_files: bool,
    pub(super) writes_files: bool,
    pub(super) terminals: bool,
    /// Shows forms to the user.
    pub(super) forms: bool,
    pub(super) notices: bool,
    pub(super) compaction: bool,
    /// Shows config options that are switches.
    pub(super) switches: bool,
}

impl Facts {
    pub(super) fn read(request: &InitializeRequest) -> Self {
        let can = &request.client_capabilities;
        let session = can.session.as_ref();
        let options = session.and_then(|session| session.config_options.as_ref());
        Self {
            name: request.client_info.as_ref().map(|info| info.name.clone()).unwrap_or_default(),
            reads_files: can.fs.read_text_file,
            writes_files: can.fs.write_text_file,
            terminals: can.terminal,
            forms: can.elicitation.as_ref().is_some_and(|elicitation| elicitation.form.is_some()),
            notices: session.is_some_and(|session| session.notices.is_some()),
            compaction: session.is_some_and(|session| session.compaction.is_some()),
            switches: options.is_some_and(|options| options.boolean.is_some()),
        }
    }
}

/// Cheap to clone; all clones are the same client.
#[derive(Debug, Clone)]
pub(super) struct Client {
    pub(super) peer: Peer,
    facts: Arc<RwLock<Arc<Facts>>>,
}

impl Client {
    pub(super) fn new(peer: Peer) -> Self {
        Self { peer, facts: Arc::default() }
    }

    pub(super) fn facts(&self) -> Arc<Facts> {
        Arc::clone(&self.facts.read().unwrap_or_else(PoisonError::into_inner))
    }

    pub(super) fn introduce(&self, facts: Facts) {
        *self.facts.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(facts);
    }

    /// Something about a session.
    pub(super) fn update(&self, notification: &SessionNotification) -> Frame {
        self.peer.notification(SESSION_UPDATE, notification, Some(Arc::clone(&notification.session_id.0)))
    }

    /// Asks the client. A question that nobody waits for any more is withdrawn.
    pub(super) async fn call<R: DeserializeOwned>(
        &self,
        method: &str,
        params: &(impl Serialize + Sync),
        wait: Duration,
    ) -> Result<R, HostError> {
        let withdraw = |id: i64| {
            let frame = self.peer.notification(CANCEL_REQUEST, &json!({"requestId": id}), None);
            // A client that reads nothing has no use for it; one that is gone neither.
            if let Err(PushError::Full(_)) = self.peer.outbox().try_push(frame) {
                tracing::debug!(id, "a question could not be withdrawn");
            }
        };
        let answer = self.peer.request_or(method, params, wait, withdraw).await;
        let value = answer.map_err(|error| match error {
            CallError::Timeout => HostError::Timeout,
            CallError::Closed => HostError::Gone,
            CallError::Refused(refused) if refused.code == METHOD_NOT_FOUND => HostError::Unsupported,
            CallError::Refused(refused) => HostError::Refused(refused.message),
            CallError::TooMany => HostError::Refused(error.to_string()),
        })?;
        // Some clients answer with null where there is nothing to say.
        let value = if value.is_null() { json!({}) } else { value };
        serde_json::from_value(value).map_err(|error| HostError::Refused(format!("{method}: {error}")))
    }
}
