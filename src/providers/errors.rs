//! What went wrong with a model call, in the same classes and words for every dialect.
//!
//! A dialect hands over what it has (a status and a body, an error object, a broken connection)
//! and gets an [`LlmError`]: a class for the retry rules, and one or two sentences for the user
//! that say what happened and what to do. No text leaves here with a key in it.

mod network;
mod retry_after;

use std::time::Duration;

use jiff::Timestamp;
use reqwest::header::HeaderMap;
use serde_json::Value;

use crate::base::text;
use crate::config::Secret;
use crate::http;
use crate::llm::{ErrorClass, LlmError};

/// At most so much of an error body is read; see [`Origin::status`].
pub const MAX_ERROR_BODY_BYTES: usize = 64 * 1024;

/// How a stream of events can fail, as a decoder sees it.
#[derive(Debug, Clone, PartialEq)]
pub enum Fault {
    /// The stream does not follow the dialect.
    Protocol(String),
    /// The provider reported an error inside a stream that began well.
    Reported(Value),
    /// The stream ended before the answer was complete.
    PrematureStop,
}

/// Who was called, for the texts of errors.
#[derive(Debug, Clone)]
pub struct Origin {
    provider: String,
    model: String,
    /// Without credentials and query.
    url: String,
    secrets: Vec<Secret>,
}

impl Origin {
    pub fn new(provider: &str, model: &str, url: &str, secrets: Vec<Secret>) -> Self {
        Self { provider: provider.to_owned(), model: model.to_owned(), url: presentable(url), secrets }
    }

    /// An answer with a status other than 2xx.
    pub fn status(&self, status: u16, headers: &HeaderMap, body: &[u8]) -> LlmError {
        let body = String::from_utf8_lossy(&body[..body.len().min(MAX_ERROR_BODY_BYTES)]);
        let parsed: Option<Value> = serde_json::from_str(&body).ok();
        let message = match &parsed {
            Some(value) => message_of(value).unwrap_or_default(),
            None if looks_like_html(&body) => String::new(),
            None => body.trim().to_owned(),
        };
        let class = classify(status, &body.to_lowercase());
        let mut error = self.build(class, self.describe(class, Some(status), &message));
        if (300..400).contains(&status) {
            let target = headers.get("location").and_then(|value| value.to_str().ok()).unwrap_or("elsewhere");
            error.user_text = self.clean(&format!(
                "{} redirects to {}. Set that address as the provider's url if you trust it.",
                self.provider,
                presentable(target)
            ));
        }
        error.status = Some(status);
        error.retry_after = retry_after::from_headers(headers, Timestamp::now());
        error
    }

    /// What a decoder could not go on with.
    pub fn fault(&self, fault: Fault) -> LlmError {
        match fault {
            Fault::Protocol(detail) => self.protocol(&detail),
            Fault::Reported(error) => self.reported(&error),
            Fault::PrematureStop => self.build(
                ErrorClass::PrematureStop,
                format!("{} ended its answer before it was complete. Please try again.", self.provider),
            ),
        }
    }

    /// An answer that cannot be understood.
    pub fn protocol(&self, detail: &str) -> LlmError {
        self.build(
            ErrorClass::Protocol,
            format!(
                "{} sent an answer that cannot be understood: {}. Check that the provider's url ({}) and api are right.",
                self.provider,
                text::one_line(detail, MAX_MESSAGE_CHARS),
                self.url
            ),
        )
    }

    /// A request that could not be sent, or a connection that broke.
    pub fn network(&self, error: &reqwest::Error) -> LlmError {
        self.build(ErrorClass::Network, network::describe(error, &self.provider, &self.url))
    }

    /// Nothing came for `limit`.
    pub fn silent(&self, limit: Duration) -> LlmError {
        self.build(
            ErrorClass::Network,
            format!(
                "{} sent nothing for {} seconds, so the request was given up. \
                 A slow model may need a larger streamIdleTimeoutSeconds.",
                self.provider,
                limit.as_secs_f32()
            ),
        )
    }

    /// A text of the caller's own; secrets in it are removed.
    pub fn build(&self, class: ErrorClass, user_text: String) -> LlmError {
        LlmError {
            class,
            status: None,
            provider: self.provider.clone(),
            retry_after: None,
            user_text: self.clean(&user_text),
        }
    }

    fn reported(&self, error: &Value) -> LlmError {
        let text = error.to_string().to_lowercase();
        let status = ["code", "status", "http_code"].iter().find_map(|key| status_in(error.get(*key)?));
        let class = match status {
            Some(status) => classify(status, &text),
            None => classify_text(&text),
        };
        let message = message_of(error).unwrap_or_default();
        LlmError { status, ..self.build(class, self.describe(class, status, &message)) }
    }

    fn describe(&self, class: ErrorClass, status: Option<u16>, message: &str) -> String {
        let Self { provider, model, url, .. } = self;
        let said = match (text::one_line(message, MAX_MESSAGE_CHARS), status) {
            (message, _) if !message.is_empty() => format!(": {}", message.trim_end_matches('.')),
            (_, Some(status)) => format!(" (HTTP {status})"),
            (_, None) => String::new(),
        };
        match class {
            ErrorClass::Auth if status == Some(402) || is_out_of_credit(&message.to_lowercase()) => {
                format!("{provider} refuses to answer for lack of credit{said}. Check the account's plan and billing.")
            }
            ErrorClass::Auth => {
                format!("{provider} did not accept the API key{said}. Check the key configured for this provider.")
            }
            ErrorClass::RateLimited => {
                format!("{provider} limits how often it may be called{said}. Wait a moment, then try again.")
            }
            ErrorClass::Overloaded => format!("{provider} cannot answer right now{said}. Try again in a moment."),
            ErrorClass::InvalidImage => {
                format!("{provider}/{model} cannot use an image of this conversation{said}.")
            }
            ErrorClass::ContextOverflow => format!(
                "The conversation is too long for {provider}/{model}{said}. Compact the chat or start a new one."
            ),
            _ if status == Some(404) => format!(
                "{provider} does not know the model {model} or the address {url}{said}. \
                 Check the model's name and the provider's url."
            ),
            ErrorClass::BadRequest => {
                format!("{provider} did not accept the request{said}. Check the model {model} and its settings.")
            }
            _ => format!("{provider} reported an error{said}. Try again; if it stays, check the provider's settings."),
        }
    }

    fn clean(&self, text: &str) -> String {
        http::redact(text, self.secrets.iter().map(Secret::expose))
    }
}

const MAX_MESSAGE_CHARS: usize = 500;

/// The class of an answer; `text` is its body in lower case.
fn classify(status: u16, text: &str) -> ErrorClass {
    match status {
        401..=403 => ErrorClass::Auth,
        413 => ErrorClass::ContextOverflow,
        429 if is_out_of_credit(text) => ErrorClass::Auth,
        429 => ErrorClass::RateLimited,
        400 if is_bad_key(text) => ErrorClass::Auth,
        400 | 422 | 500 if is_context_overflow(text) => ErrorClass::ContextOverflow,
        400 | 415 | 422 if is_invalid_image(text) => ErrorClass::InvalidImage,
        408 => ErrorClass::Overloaded,
        400..=499 => ErrorClass::BadRequest,
        501 | 505 => ErrorClass::Unknown,
        500..=599 if is_rate_limit(text) => ErrorClass::RateLimited,
        500..=599 => ErrorClass::Overloaded,
        300..=399 => ErrorClass::BadRequest,
        _ => ErrorClass::Unknown,
    }
}

/// The class of an error object without a status.
fn classify_text(text: &str) -> ErrorClass {
    let has = |parts: &[&str]| parts.iter().any(|part| text.contains(part));
    if is_context_overflow(text) {
        ErrorClass::ContextOverflow
    } else if is_out_of_credit(text) || has(&["authentication", "invalid_api_key", "permission", "unauthorized"]) {
        ErrorClass::Auth
    } else if is_rate_limit(text) {
        ErrorClass::RateLimited
    } else if has(&["overloaded", "server_error", "internal_error", "unavailable", "api_error", "internal server"]) {
        ErrorClass::Overloaded
    } else if is_invalid_image(text) {
        ErrorClass::InvalidImage
    } else if has(&["invalid_request", "not_found", "bad_request", "invalid request"]) {
        ErrorClass::BadRequest
    } else {
        ErrorClass::Unknown
    }
}

/// How the vendors and the local servers say that a prompt does not fit.
const CONTEXT_OVERFLOW: [&str; 18] = [
    "context_length_exceeded",
    "exceed_context_size",
    "model_context_window_exceeded",
    "maximum context length",
    "maximum prompt length",
    "context length of only",
    "context size has been exceeded",
    "exceeds the available context",
    "exceeds the context window",
    "exceed context limit",
    "exceeds the model's maximum context",
    "larger than the maximum context",
    "prompt is too long",
    "prompt too long",
    "input is too long",
    "too many tokens",
    "exceeds the maximum number of tokens",
    "reduce the length of the messages",
];

fn is_context_overflow(text: &str) -> bool {
    CONTEXT_OVERFLOW.iter().any(|pattern| text.contains(pattern))
}

/// How the vendors say that they cannot use an image.
const INVALID_IMAGE: [&str; 14] = [
    "could not process image",
    "image exceeds",
    "image dimensions exceed",
    "image_parse_error",
    "invalid_image",
    "invalid image",
    "image data you provided does not represent",
    "unsupported image",
    "unable to process input image",
    "image input is not supported",
    "image inputs are not supported",
    "does not support image",
    "images are not supported",
    "failed to decode image",
];

fn is_invalid_image(text: &str) -> bool {
    INVALID_IMAGE.iter().any(|pattern| text.contains(pattern))
}

fn is_rate_limit(text: &str) -> bool {
    ["rate limit", "rate_limit", "ratelimit", "too many requests", "resource_exhausted"]
        .iter()
        .any(|p| text.contains(p))
}

/// Google says it with a status that means anything.
fn is_bad_key(text: &str) -> bool {
    ["api_key_invalid", "api key not valid", "api key expired"].iter().any(|pattern| text.contains(pattern))
}

/// Waiting does not help here, so it must not count as a rate limit.
fn is_out_of_credit(text: &str) -> bool {
    ["insufficient_quota", "insufficient balance", "insufficient credits", "billing_hard_limit"]
        .iter()
        .any(|pattern| text.contains(pattern))
}

fn status_in(code: &Value) -> Option<u16> {
    let code = code.as_u64().or_else(|| code.as_str()?.parse().ok())?;
    u16::try_from(code).ok().filter(|code| (400..600).contains(code))
}

/// The provider's own words, wherever it puts them.
fn message_of(value: &Value) -> Option<String> {
    let value = if let Value::Array(items) = value { items.first()? } else { value };
    let error = value.get("error").unwrap_or(value);
    let places = [error.get("message"), Some(error), error.get("detail"), error.get("msg"), value.get("message")];
    let found = places.into_iter().flatten().find_map(Value::as_str).filter(|text| !text.trim().is_empty());
    if let Some(found) = found {
        // A router's own message says little; the upstream's words are what helps.
        return Some(match error.pointer("/metadata/raw").and_then(Value::as_str) {
            Some(raw) => format!("{found}: {raw}"),
            None => found.to_owned(),
        });
    }
    let details = error.get("detail").and_then(Value::as_array)?;
    details.iter().find_map(|detail| detail.get("msg").and_then(Value::as_str)).map(str::to_owned)
}

fn looks_like_html(body: &str) -> bool {
    let start = text::prefix(body.trim_start(), 16).to_lowercase();
    start.starts_with("<!doctype") || start.starts_with("<html")
}

/// A url without what may be secret in it.
fn presentable(url: &str) -> String {
    match reqwest::Url::parse(url) {
        Ok(mut url) => {
            let _ = url.set_username("");
            let _ = url.set_password(None);
            url.set_query(None);
            url.set_fragment(None);
            url.to_string().trim_end_matches('/').to_owned()
        }
        Err(_) => text::one_line(url.split(['?', '#']).next().unwrap_or_default(), 200),
    }
}

#[cfg(test)]
mod tests;
