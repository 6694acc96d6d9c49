//! Why a request failed, in the contract's codes.

use serde_json::{Value, json};

use super::methods::Work;
use super::spec::Problems;
use crate::llm::{ErrorClass, LlmError};
use crate::transport::ResponseError;
use crate::transport::envelope::{INTERNAL_ERROR, INVALID_PARAMS, INVALID_REQUEST, METHOD_NOT_FOUND};

pub(super) const GENERATION_FAILED: i64 = -32000;
pub(super) const CUSTOMIZATION_FAILED: i64 = -32001;
pub(super) const SPEC_INVALID: i64 = -32002;
pub(super) const CONTEXT_TOO_LARGE: i64 = -32003;
pub(super) const RATE_LIMITED: i64 = -32004;

/// One error on its way to the client. Messages are short and never hold a secret.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Failure {
    pub(super) code: i64,
    pub(super) message: String,
    pub(super) data: Option<Value>,
}

impl Failure {
    pub(super) fn new(code: i64, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), data: None }
    }

    pub(super) fn with(self, data: Value) -> Self {
        Self { data: Some(data), ..self }
    }

    /// Params that cannot be used; the message names the field.
    pub(super) fn params(message: impl Into<String>) -> Self {
        Self::new(INVALID_PARAMS, message)
    }

    pub(super) fn unknown_method(method: &str) -> Self {
        let method = crate::base::text::one_line(method, 100);
        Self::new(METHOD_NOT_FOUND, format!("Method not found: {method}"))
    }

    pub(super) fn id_in_use() -> Self {
        Self::new(INVALID_REQUEST, "A request with this id is still being answered")
    }

    /// Something that should not happen.
    pub(super) fn bug() -> Self {
        Self::new(INTERNAL_ERROR, "Something went wrong inside; the log has the details")
    }

    pub(super) fn spec(problems: &Problems) -> Self {
        Self::new(SPEC_INVALID, format!("The specification cannot be used: {}", problems.summary()))
            .with(problems.data())
    }

    pub(super) fn too_large(estimated: u64, limit: u64) -> Self {
        Self::new(CONTEXT_TOO_LARGE, "The input is larger than a model can read")
            .with(json!({"estimatedTokens": estimated, "limit": limit}))
    }

    pub(super) fn queue_full(depth: usize) -> Self {
        Self::new(RATE_LIMITED, "Too many requests are waiting").with(json!({"queueDepth": depth}))
    }

    pub(super) fn timeout(work: Work, seconds: f64) -> Self {
        Self::new(work.failed_code(), format!("{} took longer than {seconds} s", work.name()))
            .with(json!({"timeout": true}))
    }

    pub(super) fn cancelled(work: Work) -> Self {
        Self::new(work.failed_code(), format!("{} was cancelled", work.name())).with(json!({"cancelled": true}))
    }

    /// The model gave nothing that can be used.
    pub(super) fn unusable(work: Work, what: &str) -> Self {
        Self::new(work.failed_code(), what).with(json!({"unusableOutput": true}))
    }

    /// The provider did not answer, or refused.
    pub(super) fn model(work: Work, error: &LlmError) -> Self {
        let message = crate::base::text::one_line(&error.user_text, 500);
        match error.class {
            ErrorClass::ContextOverflow => Self::new(CONTEXT_TOO_LARGE, message),
            ErrorClass::RateLimited => {
                let wait = error.retry_after.map(|wait| u64::try_from(wait.as_millis()).unwrap_or(u64::MAX));
                Self::new(RATE_LIMITED, message).with(json!({"retryAfterMs": wait}))
            }
            class => Self::new(work.failed_code(), message).with(json!({"reason": reason(class)})),
        }
    }
}

fn reason(class: ErrorClass) -> &'static str {
    match class {
        ErrorClass::Auth => "auth",
        ErrorClass::RateLimited => "rateLimited",
        ErrorClass::Overloaded => "overloaded",
        ErrorClass::Network => "network",
        ErrorClass::PrematureStop => "incomplete",
        ErrorClass::ContextOverflow => "contextOverflow",
        ErrorClass::BadRequest | ErrorClass::InvalidImage => "refused",
        ErrorClass::Protocol | ErrorClass::Unknown => "provider",
    }
}

impl From<Failure> for ResponseError {
    fn from(Failure { code, message, data }: Failure) -> Self {
        Self { code, message, data }
    }
}
