//! Why a request failed, in the protocol's codes.

use serde_json::{Value, json};

use crate::base::text::one_line;
use crate::transport::ResponseError;
use crate::transport::envelope::{INTERNAL_ERROR, INVALID_PARAMS, INVALID_REQUEST, METHOD_NOT_FOUND};

pub(super) const CANCELLED: i64 = -32800;
pub(super) const AUTH_REQUIRED: i64 = -32000;
pub(super) const NOT_FOUND: i64 = -32002;

/// Messages are one line.
const MOST_CHARS: usize = 1_000;

/// One error on its way to the client. Messages are short and never hold a secret.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Failure {
    pub(super) code: i64,
    pub(super) message: String,
    pub(super) data: Option<Value>,
}

impl Failure {
    pub(super) fn new(code: i64, message: impl AsRef<str>) -> Self {
        Self { code, message: one_line(message.as_ref(), MOST_CHARS), data: None }
    }

    /// Params that cannot be used; the message names the field.
    pub(super) fn params(message: impl AsRef<str>) -> Self {
        Self::new(INVALID_PARAMS, message)
    }

    pub(super) fn request(message: impl AsRef<str>) -> Self {
        Self::new(INVALID_REQUEST, message)
    }

    pub(super) fn unknown_method(method: &str) -> Self {
        Self::new(METHOD_NOT_FOUND, format!("Method not found: {}", one_line(method, 100)))
    }

    pub(super) fn unknown_session(session: &str) -> Self {
        let session = one_line(session, 100);
        let data = Some(json!({"sessionId": session}));
        Self { data, ..Self::new(NOT_FOUND, format!("There is no session {session}")) }
    }

    pub(super) fn cancelled() -> Self {
        Self::new(CANCELLED, "The request was cancelled")
    }

    pub(super) fn internal(message: impl AsRef<str>) -> Self {
        Self::new(INTERNAL_ERROR, message)
    }

    /// Something that should not happen.
    pub(super) fn bug() -> Self {
        Self::internal("Something went wrong inside; the log has the details")
    }
}

impl From<Failure> for ResponseError {
    fn from(failure: Failure) -> Self {
        Self { code: failure.code, message: failure.message, data: failure.data }
    }
}
