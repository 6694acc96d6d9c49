//! Why a server could not be reached, and whether it is worth another try.

use std::error::Error;

use rmcp::model::ErrorData;
use rmcp::service::ClientInitializeError;
use rmcp::transport::DynamicTransportError;
use rmcp::transport::auth::AuthError;
use rmcp::transport::streamable_http_client::{AuthRequiredError, InsufficientScopeError, StreamableHttpError};

use super::http::HttpFailure;
use crate::base::text::one_line;

const SHOWN_WORDS: usize = 500;

/// The end of a connection, or of an attempt to make one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Failure {
    /// Another try may help.
    Passing(String),
    /// Only a change of the configuration or a decision of the user's helps.
    Lasting(String),
    /// The server wants to know who is there; with what it said about that.
    NeedsLogin(String),
}

impl Failure {
    pub(super) fn text(&self) -> &str {
        match self {
            Self::Passing(text) | Self::Lasting(text) => text,
            Self::NeedsLogin(_) => "it needs a login",
        }
    }
}

/// A server's complaint in one line.
pub(super) fn said(error: &ErrorData) -> String {
    let text = one_line(&error.message, SHOWN_WORDS);
    if text.is_empty() { format!("The server answered with error {}.", error.code.0) } else { text }
}

pub(super) fn of_handshake(error: &ClientInitializeError) -> Failure {
    match error {
        ClientInitializeError::TransportError { error, .. } => of_transport(error),
        ClientInitializeError::ConnectionClosed(_) | ClientInitializeError::Cancelled => {
            Failure::Passing("it closed the connection before it answered".to_owned())
        }
        ClientInitializeError::JsonRpcError(error) => Failure::Lasting(format!("it refused us: {}", said(error))),
        ClientInitializeError::NoCompatibleProtocolVersion { .. } => {
            Failure::Lasting("it speaks no version of the protocol that we speak".to_owned())
        }
        _ => Failure::Passing("its answer to our introduction makes no sense".to_owned()),
    }
}

pub(super) fn of_transport(error: &DynamicTransportError) -> Failure {
    if let Some(challenge) = needs_login(error) {
        return Failure::NeedsLogin(challenge);
    }
    match error.error.downcast_ref::<StreamableHttpError<HttpFailure>>() {
        Some(StreamableHttpError::Client(failure)) => of_http(failure),
        Some(StreamableHttpError::HttpStatus(status)) => {
            Failure::Passing(format!("it answered with HTTP {}", status.status))
        }
        Some(StreamableHttpError::Auth(error)) => of_login(error),
        Some(StreamableHttpError::UnexpectedContentType(_)) => {
            Failure::Lasting("what answers at this address is no MCP server".to_owned())
        }
        Some(other) => Failure::Passing(one_line(&other.to_string(), SHOWN_WORDS)),
        None => Failure::Passing(one_line(&error.error.to_string(), SHOWN_WORDS)),
    }
}

fn of_http(failure: &HttpFailure) -> Failure {
    let text = failure.to_string();
    match failure {
        HttpFailure::Network(_) => Failure::Passing(text),
        HttpFailure::Setup(_) | HttpFailure::Refused(..) | HttpFailure::TooLarge => Failure::Lasting(text),
    }
}

pub(super) fn of_login(error: &AuthError) -> Failure {
    match error {
        AuthError::AuthorizationRequired | AuthError::TokenExpired | AuthError::TokenRefreshRejected(_) => {
            Failure::NeedsLogin(String::new())
        }
        // Most of it is a network that is not there.
        other => Failure::Passing(one_line(&format!("its login cannot be used: {other}"), SHOWN_WORDS)),
    }
}

/// The server's challenge, if it wants a login.
pub(super) fn needs_login(error: &DynamicTransportError) -> Option<String> {
    let mut source: Option<&(dyn Error + 'static)> = Some(error.error.as_ref());
    while let Some(error) = source {
        if let Some(required) = error.downcast_ref::<AuthRequiredError>() {
            return Some(required.www_authenticate_header.clone());
        }
        if let Some(scope) = error.downcast_ref::<InsufficientScopeError>() {
            return Some(scope.www_authenticate_header.clone());
        }
        if let Some(AuthError::AuthorizationRequired) = error.downcast_ref::<AuthError>() {
            return Some(String::new());
        }
        source = error.source();
    }
    None
}
