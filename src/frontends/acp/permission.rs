//! Asking the user about a tool call: the client shows the question, the engine waits for the
//! answer.

use std::sync::Arc;

use agent_client_protocol_schema::v1::{RequestPermissionOutcome, RequestPermissionRequest, RequestPermissionResponse};
use tokio_util::sync::CancellationToken;

use super::client::ANSWER_PATIENCE;
use super::methods::SESSION_REQUEST_PERMISSION;
use super::session::Session;
use super::tool_calls::{self, ALLOW_ALWAYS, ALLOW_ONCE};
use crate::base::task;
use crate::base::{ChatId, ToolCallId};
use crate::engine::{Decision, ToolCallEvent};

/// A call that waits for the user's word.
pub(super) struct Question {
    pub(super) session: Arc<Session>,
    /// Whose call it is: the session's chat, or that of a subagent.
    pub(super) chat: ChatId,
    pub(super) call: ToolCallId,
    /// The call as the client knows it.
    pub(super) wire_id: String,
    pub(super) event: ToolCallEvent,
    /// Cancelled when nobody waits for the answer any more.
    pub(super) ended: CancellationToken,
}

/// What the user's answer comes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Decided(Decision),
    /// The whole turn is to end.
    Cancelled,
}

impl Question {
    pub(super) fn ask(self) {
        task::spawn(async move {
            let Self { session, chat, call, wire_id, event, ended } = self;
            let options = tool_calls::permission_options(&event);
            let question = tool_calls::question(&wire_id, &event);
            let request = RequestPermissionRequest::new(session.voice.id.clone(), question, options);
            let client = session.voice.client.clone();
            let answer = tokio::select! {
                biased;
                () = ended.cancelled() => return,
                answer = client.call(SESSION_REQUEST_PERMISSION, &request, ANSWER_PATIENCE) => answer,
            };
            let verdict = answer.map(|answer: RequestPermissionResponse| verdict(&answer.outcome));
            match verdict {
                Ok(Verdict::Decided(decision)) => session.engine.decide(&chat, &call, decision),
                Ok(Verdict::Cancelled) => session.cancel(),
                Err(error) => {
                    tracing::warn!(%error, %call, "nobody could be asked about a call, so it is rejected");
                    session.engine.decide(&chat, &call, Decision::Reject);
                }
            }
        });
    }
}

/// An option that was not offered is no consent.
fn verdict(outcome: &RequestPermissionOutcome) -> Verdict {
    match outcome {
        RequestPermissionOutcome::Cancelled => Verdict::Cancelled,
        RequestPermissionOutcome::Selected(selected) => Verdict::Decided(match &*selected.option_id.0 {
            ALLOW_ONCE => Decision::Approve { remember: false },
            ALLOW_ALWAYS => Decision::Approve { remember: true },
            _ => Decision::Reject,
        }),
        _ => Verdict::Decided(Decision::Reject),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn read(outcome: Value) -> Verdict {
        let response: RequestPermissionResponse = serde_json::from_value(json!({"outcome": outcome})).unwrap();
        verdict(&response.outcome)
    }

    #[test]
    fn only_a_consent_is_one() {
        let selected = |option: &str| read(json!({"outcome": "selected", "optionId": option}));
        assert_eq!(selected("allow_once"), Verdict::Decided(Decision::Approve { remember: false }));
        assert_eq!(selected("allow_always"), Verdict::Decided(Decision::Approve { remember: true }));
        assert_eq!(selected("reject_once"), Verdict::Decided(Decision::Reject));
        assert_eq!(selected("allow"), Verdict::Decided(Decision::Reject));
        assert_eq!(read(json!({"outcome": "cancelled"})), Verdict::Cancelled);
    }
}
