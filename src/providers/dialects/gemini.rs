//! Google's own interface to Gemini, which gives thoughts, signatures, citations and limits that
//! its OpenAI-compatible one leaves out.

mod body;
mod decode;
mod models;
mod schema;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use serde_json::Value;

pub use decode::GeminiDecoder;

use super::endpoint::Endpoint;
use super::exchange::{self, Call, Framing};
use super::{ListedModel, Timeouts};
use crate::config::{ModelConfig, ProviderConfig, Secret};
use crate::http;
use crate::llm::{DeltaStream, LlmError, Provider, Request};
use crate::providers::errors::Origin;

/// The name of this dialect in the configuration and in what is replayed.
pub const NAME: &str = "gemini";

/// Where it is when no address is set.
pub const DEFAULT_URL: &str = "https://generativelanguage.googleapis.com";

const VERSION: &str = "/v1beta";

/// A provider that speaks this dialect.
#[derive(Debug)]
pub struct Gemini {
    endpoint: Endpoint,
}

impl Gemini {
    /// Costs nothing and cannot fail: what is wrong with the settings shows in the first answer.
    pub fn new(id: &str, config: &ProviderConfig, key: Option<Secret>, http: http::Client, timeouts: Timeouts) -> Self {
        Self { endpoint: Endpoint::new(id, config, key, http, timeouts) }
    }

    /// What the provider says it has, at `<url>/v1beta/models`, page by page.
    pub async fn list_models(&self) -> Result<Vec<ListedModel>, LlmError> {
        const PATIENCE: Duration = Duration::from_secs(10);
        const MAX_BYTES: usize = 16 * 1024 * 1024;
        const MAX_PAGES: usize = 10;
        let base = format!("{}{VERSION}/models?pageSize=1000", self.endpoint.base(Some(DEFAULT_URL), VERSION, "")?);
        let origin = self.endpoint.origin("", &base);
        let headers = self.headers(&ModelConfig::default(), &origin)?;
        let mut found = Vec::new();
        let mut url = base.clone();
        for _ in 0..MAX_PAGES {
            let http = &self.endpoint.http;
            let body = exchange::get(http, &url, headers.clone(), &origin, PATIENCE, MAX_BYTES).await?;
            let page = models::parse(&body).ok_or_else(|| origin.protocol("the list of models is not one"))?;
            found.extend(page.models);
            match page.next {
                Some(token) => url = format!("{base}&pageToken={}", percent_encoded(&token, "")),
                None => break,
            }
        }
        self.endpoint.remember(&found);
        Ok(found)
    }

    fn call(&self, request: &Request) -> Result<Call, LlmError> {
        let name = request.model.model();
        let model = self.endpoint.model(name);
        let real_name = model.model_name.as_deref().unwrap_or(name);
        let thinks = self.endpoint.capabilities(real_name).map(|can| can.reasoning);
        let mut body = body::build(request, &model, thinks);
        // Here streaming is a matter of the address, not of the body.
        let streamed = body.remove("stream") != Some(Value::Bool(false));
        let url = self.url(real_name, name, streamed)?;
        let origin = self.endpoint.origin(name, &url);
        Ok(Call {
            http: self.endpoint.http.clone(),
            headers: self.headers(&model, &origin)?,
            url,
            streamed,
            framing: Framing::Sse,
            body: Bytes::from(Value::Object(body).to_string()),
            origin: Arc::new(origin),
            timeouts: self.endpoint.timeouts,
        })
    }

    fn url(&self, model: &str, name: &str, streamed: bool) -> Result<String, LlmError> {
        if let Some(path) = self.endpoint.config.completion_url_relative_path.as_deref() {
            let base = self.endpoint.base(Some(DEFAULT_URL), "", name)?;
            let path = path.replace("{model}", &percent_encoded(model, "/"));
            return Ok(format!("{base}/{}", path.trim_start_matches('/')));
        }
        let base = self.endpoint.base(Some(DEFAULT_URL), VERSION, name)?;
        let folder = if model.contains('/') { "" } else { "models/" };
        let method = if streamed { "streamGenerateContent?alt=sse" } else { "generateContent" };
        Ok(format!("{base}{VERSION}/{folder}{}:{method}", percent_encoded(model, "/")))
    }

    fn headers(&self, model: &ModelConfig, origin: &Origin) -> Result<reqwest::header::HeaderMap, LlmError> {
        let extra = [&self.endpoint.config.extra_headers, &model.extra_headers];
        let mut headers = exchange::headers(None, &extra, origin)?;
        self.endpoint.add_key(&mut headers, "x-goog-api-key", origin)?;
        Ok(headers)
    }
}

impl Provider for Gemini {
    fn id(&self) -> &str {
        &self.endpoint.id
    }

    fn dialect(&self) -> &'static str {
        NAME
    }

    fn stream(&self, request: Request) -> DeltaStream {
        match self.call(&request) {
            Ok(call) => exchange::answer(call, GeminiDecoder::new(request.model.as_str())),
            Err(error) => exchange::failed(error),
        }
    }
}

/// The generation of a model by its name, as `major * 10 + minor`; `None` when it does not say.
fn generation(model: &str) -> Option<u32> {
    let name = model.rsplit('/').next().unwrap_or(model);
    let mut numbers = name.strip_prefix("gemini-")?.split('-').next()?.split('.');
    let major: u32 = numbers.next()?.parse().ok().filter(|major| *major < 1000)?;
    let minor: u32 = numbers.next().and_then(|minor| minor.parse().ok()).unwrap_or(0);
    Some(major * 10 + minor.min(9))
}

fn percent_encoded(text: &str, kept: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        let c = char::from(byte);
        if c.is_ascii_alphanumeric() || "-._~".contains(c) || kept.contains(c) {
            encoded.push(c);
        } else {
            encoded.push_str(&format!("%{byte:02X}"));
        }
    }
    encoded
}

#[cfg(test)]
mod tests;
