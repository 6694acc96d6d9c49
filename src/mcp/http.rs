//! MCP over HTTP: the library's transport on our one HTTP client.
//!
//! The library could use a client of its own. Ours has the user's proxies and certificates, follows
//! no redirect to a stranger, and bounds what a server can make us hold.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::stream::{self, BoxStream};
use reqwest::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, WWW_AUTHENTICATE};
use reqwest::{Method, RequestBuilder, Response, StatusCode};
use rmcp::model::{ClientJsonRpcMessage, JsonRpcMessage, ServerJsonRpcMessage};
use rmcp::transport::streamable_http_client::{
    AuthRequiredError, HttpStatusError, InsufficientScopeError, StreamableHttpClient, StreamableHttpError,
    StreamableHttpPostResponse,
};
use sse_stream_of_rmcp::{Error as SseError, Sse, SseStream};

use super::lines::MAX_LINE_BYTES;
use super::pace::Pace;
use crate::base::task;
use crate::base::text::one_line;
use crate::config::Secret;
use crate::http::Client;

/// The body of a refusal is looked into no further.
const MOST_COMPLAINT: usize = 64 * 1024;
const SHOWN_COMPLAINT: usize = 200;
/// Reading more than this at once would keep a worker of the runtime busy for too long.
const LARGE_BYTES: usize = 128 * 1024;
const SSE: &str = "text/event-stream";
const JSON: &str = "application/json";
const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
const LAST_EVENT: HeaderName = HeaderName::from_static("last-event-id");

/// Headers that belong to the protocol and not to the user.
const OURS: [&str; 6] =
    ["accept", "content-type", "content-length", "mcp-session-id", "mcp-protocol-version", "last-event-id"];

/// Why a request gave no usable answer. It never names the address: that may contain a key.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum HttpFailure {
    #[error("{0}")]
    Setup(String),
    #[error("{0}")]
    Network(String),
    #[error("it answered with HTTP {0}{1}")]
    Refused(u16, String),
    #[error("its answer is larger than {} MiB", MAX_LINE_BYTES / (1024 * 1024))]
    TooLarge,
}

type Failed = StreamableHttpError<HttpFailure>;
type Events = BoxStream<'static, Result<Sse, SseError>>;

#[derive(Debug, Clone)]
pub(super) struct HttpClient(pub(super) Client);

/// The user's headers; the error names the one that cannot be sent.
pub(super) fn headers<'a>(
    configured: impl IntoIterator<Item = (&'a String, &'a Secret)>,
) -> Result<HashMap<HeaderName, HeaderValue>, String> {
    let mut headers = HashMap::new();
    for (name, value) in configured {
        let header =
            HeaderName::try_from(name.trim()).map_err(|_| format!("{name:?} cannot be the name of a header"))?;
        if OURS.contains(&header.as_str()) {
            return Err(format!("the header {name:?} belongs to the protocol and cannot be set"));
        }
        let mut value = HeaderValue::try_from(value.expose().trim())
            .map_err(|_| format!("the value of the header {name:?} cannot be sent"))?;
        value.set_sensitive(true);
        headers.insert(header, value);
    }
    Ok(headers)
}

/// Whether the user takes care of the login.
pub(super) fn is_authorized(headers: &HashMap<HeaderName, HeaderValue>) -> bool {
    headers.contains_key(&AUTHORIZATION)
}

impl HttpClient {
    fn request(
        &self,
        method: Method,
        uri: &str,
        token: Option<String>,
        session: Option<Arc<str>>,
        custom: HashMap<HeaderName, HeaderValue>,
    ) -> Result<RequestBuilder, Failed> {
        let setup = |error: crate::http::HttpError| Failed::Client(HttpFailure::Setup(error.to_string()));
        let mut request = self.0.request(method, uri).map_err(setup)?;
        if let Some(token) = token {
            request = request.bearer_auth(token);
        }
        if let Some(session) = session {
            request = request.header(SESSION, &*session);
        }
        Ok(request.headers(custom.into_iter().collect::<HeaderMap>()))
    }
}

impl StreamableHttpClient for HttpClient {
    type Error = HttpFailure;

    async fn post_message(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session_id: Option<Arc<str>>,
        auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<StreamableHttpPostResponse, Failed> {
        let has_session = session_id.is_some();
        let request = self.request(Method::POST, &uri, auth_header, session_id, custom_headers)?;
        let request = request.header(ACCEPT, format!("{JSON}, {SSE}")).json(&message);
        let response = send(request).await?;
        let status = response.status();
        refuse_strangers(&response)?;
        if matches!(status, StatusCode::ACCEPTED | StatusCode::NO_CONTENT) {
            return Ok(StreamableHttpPostResponse::Accepted);
        }
        if status == StatusCode::NOT_FOUND && has_session {
            return Err(Failed::SessionExpired);
        }
        let kind = content_type(&response);
        let session = response.headers().get(&SESSION).and_then(|id| id.to_str().ok()).map(str::to_owned);
        if !status.is_success() {
            return complaint(response, &kind, session).await;
        }
        let waits = matches!(message, JsonRpcMessage::Request(_));
        match kind.as_str() {
            SSE => Ok(StreamableHttpPostResponse::Sse(events(response), session)),
            JSON => {
                let body = body(response, MAX_LINE_BYTES).await?;
                match read_message(body).await {
                    Some(message) => Ok(StreamableHttpPostResponse::Json(message, session)),
                    // Nobody waits for an answer to a notification.
                    None if !waits => Ok(StreamableHttpPostResponse::Accepted),
                    None => Err(Failed::UnexpectedServerResponse(Cow::Borrowed("its answer is no message"))),
                }
            }
            _ if !waits => Ok(StreamableHttpPostResponse::Accepted),
            _ => Err(Failed::UnexpectedContentType(Some(one_line(&kind, SHOWN_COMPLAINT)))),
        }
    }

    async fn delete_session(
        &self,
        uri: Arc<str>,
        session_id: Arc<str>,
        auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<(), Failed> {
        let request = self.request(Method::DELETE, &uri, auth_header, Some(session_id), custom_headers)?;
        match send(request).await?.status() {
            StatusCode::METHOD_NOT_ALLOWED => Err(Failed::ServerDoesNotSupportDeleteSession),
            _ => Ok(()),
        }
    }

    async fn get_stream(
        &self,
        uri: Arc<str>,
        session_id: Option<Arc<str>>,
        last_event_id: Option<String>,
        auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<Events, Failed> {
        let mut request = self.request(Method::GET, &uri, auth_header, session_id, custom_headers)?.header(ACCEPT, SSE);
        if let Some(id) = last_event_id {
            request = request.header(LAST_EVENT, id);
        }
        let response = send(request).await?;
        refuse_strangers(&response)?;
        match response.status() {
            // A server without a stream of its own says so in several ways.
            StatusCode::METHOD_NOT_ALLOWED | StatusCode::NOT_FOUND | StatusCode::NOT_IMPLEMENTED => {
                Err(Failed::ServerDoesNotSupportSse)
            }
            status if !status.is_success() => Err(Failed::Client(HttpFailure::Refused(status.as_u16(), String::new()))),
            _ if content_type(&response) != SSE => Err(Failed::ServerDoesNotSupportSse),
            _ => Ok(events(response)),
        }
    }
}

pub(super) async fn send(request: RequestBuilder) -> Result<Response, Failed> {
    request.send().await.map_err(|error| Failed::Client(network(error)))
}

fn network(error: reqwest::Error) -> HttpFailure {
    let error = error.without_url();
    let reason = match std::error::Error::source(&error) {
        _ if error.is_timeout() => "it did not answer in time".to_owned(),
        Some(mut source) => {
            while let Some(deeper) = source.source() {
                source = deeper;
            }
            source.to_string()
        }
        None => error.to_string(),
    };
    HttpFailure::Network(format!("it cannot be reached: {}", one_line(&reason, SHOWN_COMPLAINT)))
}

/// 401 and 403 with a challenge are the way to a login.
fn refuse_strangers(response: &Response) -> Result<(), Failed> {
    let challenge = response.headers().get(WWW_AUTHENTICATE).and_then(|value| value.to_str().ok());
    match response.status() {
        StatusCode::UNAUTHORIZED => {
            Err(Failed::AuthRequired(AuthRequiredError::new(challenge.unwrap_or_default().to_owned())))
        }
        StatusCode::FORBIDDEN => match challenge {
            Some(challenge) => {
                Err(Failed::InsufficientScope(InsufficientScopeError::new(challenge.to_owned(), scope_of(challenge))))
            }
            None => Ok(()),
        },
        _ => Ok(()),
    }
}

fn scope_of(challenge: &str) -> Option<String> {
    let (_, rest) = challenge.split_once("scope=\"")?;
    rest.split_once('"').map(|(scope, _)| scope.to_owned())
}

/// A refusal that carries an error of the protocol is that error.
async fn complaint(
    response: Response,
    kind: &str,
    session: Option<String>,
) -> Result<StreamableHttpPostResponse, Failed> {
    let status = response.status();
    if status == StatusCode::TOO_MANY_REQUESTS || status.is_server_error() && kind != JSON {
        return Err(HttpStatusError::new(status.as_u16(), None).into());
    }
    let body = body(response, MOST_COMPLAINT).await.unwrap_or_default();
    let is_ours = !matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) && kind == JSON;
    if is_ours && let Ok(message @ JsonRpcMessage::Error(_)) = serde_json::from_slice::<ServerJsonRpcMessage>(&body) {
        return Ok(StreamableHttpPostResponse::Json(message, session));
    }
    if status.is_server_error() {
        return Err(HttpStatusError::new(status.as_u16(), None).into());
    }
    let text = if kind.contains("html") { String::new() } else { String::from_utf8_lossy(&body).into_owned() };
    let text = one_line(&text, SHOWN_COMPLAINT);
    let text = if text.is_empty() { text } else { format!(": {text}") };
    Err(Failed::Client(HttpFailure::Refused(status.as_u16(), text)))
}

/// The whole body, if it is no larger than allowed.
pub(super) async fn body(mut response: Response, most: usize) -> Result<Vec<u8>, Failed> {
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(|error| Failed::Client(network(error)))? {
        if body.len() + chunk.len() > most {
            return Err(Failed::Client(HttpFailure::TooLarge));
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body)
}

async fn read_message(body: Vec<u8>) -> Option<ServerJsonRpcMessage> {
    if body.len() > LARGE_BYTES {
        let reading = task::blocking(move || serde_json::from_slice(&body).ok());
        return reading.await.ok().flatten();
    }
    serde_json::from_slice(&body).ok()
}

fn content_type(response: &Response) -> String {
    let value = response.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    value.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}

/// The events of a body, each of bounded size and none faster than we take them.
fn events(response: Response) -> Events {
    let state = (response, Meter::default(), Pace::new());
    let bytes = stream::try_unfold(state, |(mut response, mut meter, mut pace)| async move {
        let Some(chunk) = response.chunk().await.map_err(network)? else { return Ok(None) };
        let events = meter.count(&chunk).ok_or(HttpFailure::TooLarge)?;
        pace.admit(events, chunk.len()).await;
        Ok::<_, HttpFailure>(Some((chunk, (response, meter, pace))))
    });
    SseStream::from_bytes_stream(bytes.boxed()).boxed()
}

/// Counts the bytes of an event, which ends with an empty line.
#[derive(Debug, Default)]
struct Meter {
    event: usize,
    line: usize,
}

impl Meter {
    /// How many events end in this piece; nothing when one is too large.
    fn count(&mut self, piece: &Bytes) -> Option<usize> {
        let mut ended = 0;
        for byte in piece {
            self.event += 1;
            match byte {
                b'\n' if self.line == 0 => {
                    ended += usize::from(self.event > 1);
                    self.event = 0;
                }
                b'\n' => self.line = 0,
                b'\r' => {}
                _ => self.line += 1,
            }
            if self.event > MAX_LINE_BYTES {
                return None;
            }
        }
        Some(ended)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn events_are_counted_wherever_they_are_cut() {
        let text = "data: a\n\ndata: b\r\ndata: c\r\n\r\n: ping\n\n\n";
        let whole = Meter::default().count(&Bytes::from_static(text.as_bytes()));
        assert_eq!(whole, Some(3));
        let mut meter = Meter::default();
        let single = text.bytes().map(|byte| meter.count(&Bytes::copy_from_slice(&[byte])).unwrap()).sum::<usize>();
        assert_eq!(single, 3);
        let mut meter = Meter::default();
        let mebibyte = Bytes::from(vec![b'x'; 1024 * 1024]);
        let fits = (0..100).take_while(|_| meter.count(&mebibyte).is_some()).count();
        assert_eq!(fits, MAX_LINE_BYTES / (1024 * 1024));
    }

    #[test]
    fn headers_are_checked_by_name_and_never_shown() {
        let secret = |value: &str| Secret::new(value);
        let good =
            BTreeMap::from([("X-Key".to_owned(), secret(" k ")), ("authorization".to_owned(), secret("Bearer t"))]);
        let headers = headers(&good).unwrap();
        assert_eq!(headers.get(&HeaderName::from_static("x-key")).map(|value| value.to_str().unwrap()), Some("k"));
        assert!(is_authorized(&headers) && !format!("{headers:?}").contains("Bearer"));
        for (name, value) in [("bad name", "x"), ("X", "a\nb"), ("Mcp-Session-Id", "x"), ("Accept", "x")] {
            let error = super::headers(&BTreeMap::from([(name.to_owned(), secret(value))])).unwrap_err();
            assert!(error.contains(name) && !error.contains("a\nb"), "{error}");
        }
    }

    #[test]
    fn a_scope_is_found_in_a_challenge() {
        assert_eq!(scope_of("Bearer error=\"insufficient_scope\", scope=\"a b\""), Some("a b".to_owned()));
        assert_eq!(scope_of("Bearer"), None);
    }
}
