//! One POST and its answer as a stream of deltas: what every dialect over HTTP has in common.
//!
//! Nothing happens before the stream is polled, and dropping it closes the connection. The idle
//! watchdog looks at bytes, so a server's keep-alive comments count as life, and it only runs
//! while the stream is polled.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream::BoxStream;
use futures_util::{StreamExt, stream};
use reqwest::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Method, RequestBuilder, Response};
use serde_json::Value;

use super::event_stream::{self, FrameError};
use super::watchdog::unless_silent;
use super::{Decoder, Progress, Timeouts, lines};
use crate::base::task;
use crate::config::Secret;
use crate::http;
use crate::llm::{Delta, DeltaStream, ErrorClass, LlmError};
use crate::providers::errors::{Fault, MAX_ERROR_BODY_BYTES, Origin};
use crate::providers::sse::{Event, Events, SseError};

/// An answer longer than this is cut: no model means it.
pub const MAX_ANSWER_BYTES: usize = 32 * 1024 * 1024;

/// A request that is ready to be sent.
#[derive(Debug)]
pub struct Call {
    pub http: http::Client,
    pub url: String,
    pub headers: HeaderMap,
    pub body: Bytes,
    /// Whether the answer was asked for as a stream.
    pub streamed: bool,
    pub framing: Framing,
    pub origin: Arc<Origin>,
    pub timeouts: Timeouts,
}

/// How a streamed body is cut into events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Framing {
    /// Server-sent events.
    Sse,
    /// Amazon's binary frames.
    EventStream,
    /// One JSON text per line.
    Lines,
}

/// The answer to `call`, decoded.
pub fn answer(call: Call, decoder: impl Decoder) -> DeltaStream {
    deltas(Phase::Sending(Box::new(call)), decoder)
}

/// The answer in a body that streams from somewhere else, with the limits and the one end of
/// [`answer`], so that what reads it can be tried without a socket.
pub fn decode(
    framing: Framing,
    body: BoxStream<'static, Result<Bytes, LlmError>>,
    origin: Arc<Origin>,
    decoder: impl Decoder,
) -> DeltaStream {
    deltas(Phase::Streaming { events: framed(framing, body, &origin), origin }, decoder)
}

fn deltas(phase: Phase, decoder: impl Decoder) -> DeltaStream {
    let answer = Answer { phase, decoder, ready: VecDeque::new(), bytes: 0, limit: MAX_ANSWER_BYTES };
    stream::unfold(answer, |mut answer| async move {
        loop {
            if let Some(item) = answer.ready.pop_front() {
                return Some((item, answer));
            }
            if matches!(answer.phase, Phase::Over) {
                return None;
            }
            answer.advance().await;
        }
    })
    .boxed()
}

/// An answer that is one error.
pub fn failed(error: LlmError) -> DeltaStream {
    stream::iter([Err(error)]).boxed()
}

/// GET `url` as JSON text of at most `max` bytes, all within `patience`.
pub async fn get(
    http: &http::Client,
    url: &str,
    headers: HeaderMap,
    origin: &Origin,
    patience: Duration,
    max: usize,
) -> Result<Bytes, LlmError> {
    let request = http.request(Method::GET, url).map_err(|error| unsendable(origin, &error))?;
    fetch(request.headers(headers), origin, patience, max).await
}

/// POST a JSON `body` to `url`; the answer is as for [`get`].
pub async fn post(
    http: &http::Client,
    url: &str,
    headers: HeaderMap,
    body: Bytes,
    origin: &Origin,
    (patience, max): (Duration, usize),
) -> Result<Bytes, LlmError> {
    let request = http.request(Method::POST, url).map_err(|error| unsendable(origin, &error))?;
    fetch(request.headers(headers).body(body), origin, patience, max).await
}

async fn fetch(request: RequestBuilder, origin: &Origin, patience: Duration, max: usize) -> Result<Bytes, LlmError> {
    let work = async {
        let response = request.send().await.map_err(|error| origin.network(&error))?;
        let response = check_status(response, origin, patience).await?;
        read_all(response, max, origin, patience).await
    };
    match tokio::time::timeout(patience, work).await {
        Ok(result) => result,
        Err(_) => Err(origin.silent(patience)),
    }
}

/// The headers of a request to a model: a bearer key unless the user set their own
/// `authorization`, then the user's headers, the later map winning. A header that cannot be sent
/// is an error that names it and never shows its value.
pub fn headers(
    key: Option<&Secret>,
    extra: &[&BTreeMap<String, String>],
    origin: &Origin,
) -> Result<HeaderMap, LlmError> {
    let mut headers = HeaderMap::new();
    headers.insert("x-llm-application-name", HeaderValue::from_static("eca"));
    headers.insert(ACCEPT, HeaderValue::from_static("text/event-stream, application/json"));
    if let Some(key) = key.map(|key| key.expose().trim()).filter(|key| !key.is_empty()) {
        headers.insert(AUTHORIZATION, header_value("authorization", &format!("Bearer {key}"), origin)?);
    }
    for (name, value) in extra.iter().copied().flatten() {
        let parsed = HeaderName::from_bytes(name.trim().as_bytes()).map_err(|_| {
            origin.build(ErrorClass::BadRequest, format!("extraHeaders: {name:?} is not a header name."))
        })?;
        headers.insert(parsed, header_value(name, value, origin)?);
    }
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    Ok(headers)
}

/// Whether the value of a user's header must not be shown. Others are left readable in errors:
/// hiding every word that also happens to be a header's value would garble them.
pub fn is_secret_header(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    ["auth", "key", "token", "secret", "cookie", "password", "credential"].iter().any(|part| name.contains(part))
}

struct Answer<D> {
    phase: Phase,
    decoder: D,
    ready: VecDeque<Result<Delta, LlmError>>,
    /// Of text, reasoning and arguments so far.
    bytes: usize,
    limit: usize,
}

/// The events of a body, whatever their framing.
pub(super) type EventItems = BoxStream<'static, Result<Event, LlmError>>;

enum Phase {
    Sending(Box<Call>),
    Streaming {
        events: EventItems,
        origin: Arc<Origin>,
    },
    /// The answer comes in one piece.
    Whole {
        response: Box<Response>,
        origin: Arc<Origin>,
        patience: Duration,
    },
    Over,
}

impl<D: Decoder> Answer<D> {
    async fn advance(&mut self) {
        // The phase is out of its place while this waits. Nothing can be lost by that: the stream
        // keeps this future until it is done or the stream itself is dropped.
        match std::mem::replace(&mut self.phase, Phase::Over) {
            Phase::Sending(call) => {
                if let Err(error) = self.begin(*call).await {
                    self.ready.push_back(Err(error));
                }
            }
            Phase::Whole { response, origin, patience } => {
                match read_all(*response, self.limit, &origin, patience).await {
                    Ok(body) => self.take_whole(&body, &origin),
                    Err(error) => self.ready.push_back(Err(error)),
                }
            }
            Phase::Streaming { mut events, origin } => match events.next().await {
                Some(Ok(event)) => self.take_event(&event, events, origin),
                Some(Err(error)) => self.finish(&origin, Some(error)),
                None => {
                    tracing::debug!("the answer's body ended");
                    self.finish(&origin, None);
                }
            },
            Phase::Over => {}
        }
    }

    async fn begin(&mut self, call: Call) -> Result<(), LlmError> {
        let Call { http, url, headers, body, streamed, framing, origin, timeouts } = call;
        let request = http.request(Method::POST, &url).map_err(|error| unsendable(&origin, &error))?;
        let patience = if streamed { timeouts.stream_idle } else { timeouts.whole_answer };
        let response = unless_silent(patience, request.headers(headers).body(body).send())
            .await
            .ok_or_else(|| origin.silent(patience))?
            .map_err(|error| origin.network(&error))?;
        let response = check_status(response, &origin, patience).await?;
        let kind = content_type(&response);
        if kind.starts_with("text/html") {
            return Err(origin.protocol("a web page instead of a model's answer"));
        }
        self.ready.push_back(Ok(Delta::Started));
        // Lines are JSON themselves, and proxies label them so.
        let is_whole = kind.starts_with("application/json") && framing != Framing::Lines;
        if streamed && !is_whole {
            let source = chunks(response, timeouts.stream_idle, Arc::clone(&origin));
            self.phase = Phase::Streaming { events: framed(framing, source, &origin), origin };
            return Ok(());
        }
        self.phase = Phase::Whole { response: Box::new(response), origin, patience };
        Ok(())
    }

    fn take_event(&mut self, event: &Event, events: EventItems, origin: Arc<Origin>) {
        let mut deltas = Vec::new();
        let progress = self.decoder.event(event, &mut deltas);
        if !self.emit(deltas, &origin) {
            return;
        }
        match progress {
            Ok(Progress::More) => self.phase = Phase::Streaming { events, origin },
            Ok(Progress::Complete) => {
                drain(events);
                self.finish(&origin, None);
            }
            // A cut event is how a broken stream ends, not a fault of the dialect.
            Err(Fault::Protocol(_)) if !event.terminated => self.finish(&origin, None),
            Err(fault) => {
                let error = origin.fault(fault);
                self.finish(&origin, Some(error));
            }
        }
    }

    fn take_whole(&mut self, body: &[u8], origin: &Origin) {
        let mut deltas = Vec::new();
        let result = self.decoder.whole(body, &mut deltas);
        if self.emit(deltas, origin) {
            self.finish(origin, result.err().map(|fault| origin.fault(fault)));
        }
    }

    /// Queues deltas. Once the answer is too long it says so, ends, and returns false.
    fn emit(&mut self, deltas: Vec<Delta>, origin: &Origin) -> bool {
        for delta in deltas {
            self.bytes += match &delta {
                Delta::Text(text) | Delta::Reasoning(text) | Delta::ToolCallArguments { text, .. } => text.len(),
                Delta::Opaque(replay) => weight(&replay.data),
                Delta::Image(image) => image.base64.len(),
                _ => 0,
            };
            if self.bytes > self.limit {
                let text = format!(
                    "The answer was cut at {} MiB. Ask for a shorter one, or for a part of it at a time.",
                    self.limit / (1024 * 1024)
                );
                self.ready.push_back(Err(origin.build(ErrorClass::BadRequest, text)));
                return false;
            }
            self.ready.push_back(Ok(delta));
        }
        true
    }

    /// Ends the answer. A connection that broke after the provider had said everything is no
    /// failure, so the decoder is asked first; but what it reported itself always counts.
    fn finish(&mut self, origin: &Origin, error: Option<LlmError>) {
        let mut deltas = Vec::new();
        let end = self.decoder.end(&mut deltas);
        let error = match (end, error) {
            (Ok(()), None) => None,
            (Ok(()), Some(error)) if error.class == ErrorClass::Network => None,
            (_, Some(error)) => Some(error),
            (Err(fault), None) => Some(origin.fault(fault)),
        };
        if error.is_some() {
            deltas.retain(|delta| !matches!(delta, Delta::Stop(_)));
        }
        if self.emit(deltas, origin)
            && let Some(error) = error
        {
            self.ready.push_back(Err(error));
        }
    }
}

/// About how much memory a value takes.
fn weight(value: &Value) -> usize {
    match value {
        Value::String(text) => text.len(),
        Value::Array(items) => items.iter().map(weight).sum(),
        Value::Object(entries) => entries.iter().map(|(key, value)| key.len() + weight(value)).sum(),
        _ => 8,
    }
}

/// Reads the few bytes that end the body, off the path of the answer, so that the connection can
/// be used again. Bounded, because a server may keep it open for no reason.
fn drain(mut events: EventItems) {
    const PATIENCE: Duration = Duration::from_secs(1);
    const MAX_EVENTS: usize = 16;
    task::spawn(tokio::time::timeout(PATIENCE, async move {
        for _ in 0..MAX_EVENTS {
            if !matches!(events.next().await, Some(Ok(_))) {
                break;
            }
        }
    }));
}

pub(super) fn framed(
    framing: Framing,
    source: BoxStream<'static, Result<Bytes, LlmError>>,
    origin: &Arc<Origin>,
) -> EventItems {
    let origin = Arc::clone(origin);
    match framing {
        Framing::Sse => Events::new(source).map(move |item| item.map_err(|error| sse_error(error, &origin))).boxed(),
        Framing::Lines => {
            lines::events(source).map(move |item| item.map_err(|error| sse_error(error, &origin))).boxed()
        }
        Framing::EventStream => {
            event_stream::events(source).map(move |item| item.map_err(|error| frame_error(error, &origin))).boxed()
        }
    }
}

fn chunks(response: Response, idle: Duration, origin: Arc<Origin>) -> BoxStream<'static, Result<Bytes, LlmError>> {
    stream::try_unfold(response, move |mut response| {
        let origin = Arc::clone(&origin);
        async move {
            match unless_silent(idle, response.chunk()).await {
                Some(Ok(Some(chunk))) => Ok(Some((chunk, response))),
                Some(Ok(None)) => Ok(None),
                Some(Err(error)) => Err(origin.network(&error)),
                None => Err(origin.silent(idle)),
            }
        }
    })
    .boxed()
}

/// Reads a failed answer's body, as far as it helps, and turns it into the error.
async fn check_status(response: Response, origin: &Origin, patience: Duration) -> Result<Response, LlmError> {
    const PATIENCE_FOR_BODY: Duration = Duration::from_secs(10);
    if response.status().is_success() {
        return Ok(response);
    }
    let (status, headers) = (response.status().as_u16(), response.headers().clone());
    let mut response = response;
    let mut body = Vec::new();
    let read = async {
        while let Ok(Some(chunk)) = response.chunk().await {
            let room = MAX_ERROR_BODY_BYTES - body.len();
            body.extend_from_slice(&chunk[..chunk.len().min(room)]);
            if body.len() == MAX_ERROR_BODY_BYTES {
                break;
            }
        }
    };
    // Whatever came is enough: the status already says that it failed.
    let _ = tokio::time::timeout(patience.min(PATIENCE_FOR_BODY), read).await;
    Err(origin.status(status, &headers, &body))
}

async fn read_all(mut response: Response, max: usize, origin: &Origin, idle: Duration) -> Result<Bytes, LlmError> {
    let mut body = Vec::new();
    loop {
        match unless_silent(idle, response.chunk()).await {
            Some(Ok(Some(chunk))) if body.len() + chunk.len() > max => {
                return Err(origin.protocol(&format!("more than {} MiB in one piece", max / (1024 * 1024))));
            }
            Some(Ok(Some(chunk))) => body.extend_from_slice(&chunk),
            Some(Ok(None)) => return Ok(Bytes::from(body)),
            Some(Err(error)) => return Err(origin.network(&error)),
            None => return Err(origin.silent(idle)),
        }
    }
}

fn content_type(response: &Response) -> String {
    let value = response.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    value.unwrap_or_default().trim().to_ascii_lowercase()
}

fn header_value(name: &str, value: &str, origin: &Origin) -> Result<HeaderValue, LlmError> {
    let mut parsed = HeaderValue::from_str(value.trim()).map_err(|_| {
        let (class, what) = match name {
            "authorization" | "x-api-key" => (ErrorClass::Auth, "The API key".to_owned()),
            name => (ErrorClass::BadRequest, format!("The header {name}")),
        };
        origin.build(class, format!("{what} contains characters that cannot be sent. Check the provider's settings."))
    })?;
    parsed.set_sensitive(true);
    Ok(parsed)
}

fn unsendable(origin: &Origin, error: &http::HttpError) -> LlmError {
    origin.build(ErrorClass::BadRequest, format!("The request could not be sent: {error}. Check the provider's url."))
}

fn sse_error(error: SseError, origin: &Origin) -> LlmError {
    match error {
        SseError::TooLarge => origin.protocol("one event of the stream is larger than 16 MiB"),
        SseError::NotUtf8 => origin.protocol("the stream is not UTF-8 text"),
        SseError::Source(error) => error,
    }
}

fn frame_error(error: FrameError, origin: &Origin) -> LlmError {
    match error {
        FrameError::Malformed(what) => origin.protocol(what),
        FrameError::Source(error) => error,
    }
}
