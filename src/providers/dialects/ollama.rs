//! Ollama's own interface, which tells what a model can do and takes what its OpenAI-compatible
//! one does not: the size of the context, levels of thinking.

mod body;
mod decode;
mod models;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::{StreamExt, stream};
use reqwest::header::HeaderMap;
use serde_json::{Value, json};

pub use decode::OllamaDecoder;

use super::endpoint::Endpoint;
use super::exchange::{self, Call, Framing};
use super::{ListedModel, Timeouts};
use crate::config::{ProviderConfig, Secret};
use crate::http;
use crate::llm::{DeltaStream, LlmError, Provider, Request};
use crate::providers::errors::Origin;

/// The name of this dialect in the configuration and in what is replayed.
pub const NAME: &str = "ollama";

/// Where it is when no address is set.
pub const DEFAULT_URL: &str = "http://127.0.0.1:11434";

/// What users append for the other interface.
const OTHER_INTERFACE: &str = "/v1";

/// A provider that speaks this dialect.
#[derive(Debug)]
pub struct Ollama {
    endpoint: Endpoint,
}

impl Ollama {
    /// Costs nothing and cannot fail: what is wrong with the settings shows in the first answer.
    pub fn new(id: &str, config: &ProviderConfig, key: Option<Secret>, http: http::Client, timeouts: Timeouts) -> Self {
        Self { endpoint: Endpoint::new(id, config, key, http, timeouts) }
    }

    /// What the provider says it has, at `/api/tags`, each with what `/api/show` says about it.
    /// Details that do not come in time are missing, never the model.
    pub async fn list_models(&self) -> Result<Vec<ListedModel>, LlmError> {
        const PATIENCE: Duration = Duration::from_secs(10);
        const MAX_BYTES: usize = 16 * 1024 * 1024;
        const PATIENCE_FOR_DETAILS: Duration = Duration::from_millis(500);
        const AT_ONCE: usize = 8;
        const MAX_DETAILED: usize = 200;
        let base = self.base("")?;
        let url = format!("{base}/api/tags");
        let origin = self.endpoint.origin("", &url);
        let Endpoint { config, key, http, .. } = &self.endpoint;
        let headers = exchange::headers(key.as_ref(), &[&config.extra_headers], &origin)?;
        let body = exchange::get(http, &url, headers.clone(), &origin, PATIENCE, MAX_BYTES).await?;
        let mut found = models::names(&body).ok_or_else(|| origin.protocol("the list of models is not one"))?;
        let url = format!("{base}/api/show");
        let names: Vec<(usize, String)> =
            found.iter().take(MAX_DETAILED).map(|model| model.name.clone()).enumerate().collect();
        let details = stream::iter(names)
            .map(|(at, name)| {
                let (url, headers, origin) = (&url, headers.clone(), &origin);
                async move { (at, self.show(&name, url, headers, origin).await) }
            })
            .buffer_unordered(AT_ONCE)
            .take_until(tokio::time::sleep(PATIENCE_FOR_DETAILS));
        let details: Vec<_> = details.collect().await;
        for (at, body) in details {
            if let (Some(model), Some(body)) = (found.get_mut(at), body) {
                models::add_details(model, &body);
            }
        }
        self.endpoint.remember(&found);
        Ok(found)
    }

    async fn show(&self, name: &str, url: &str, headers: HeaderMap, origin: &Origin) -> Option<Bytes> {
        const PATIENCE: Duration = Duration::from_secs(2);
        const MAX_BYTES: usize = 4 * 1024 * 1024;
        let body = Bytes::from(json!({"model": name}).to_string());
        let answer = exchange::post(&self.endpoint.http, url, headers, body, origin, (PATIENCE, MAX_BYTES)).await;
        answer.inspect_err(|error| tracing::debug!(model = name, "no details: {error}")).ok()
    }

    fn call(&self, request: &Request) -> Result<Call, LlmError> {
        let Endpoint { config, key, http, timeouts, .. } = &self.endpoint;
        let name = request.model.model();
        let model = self.endpoint.model(name);
        let path = config.completion_url_relative_path.as_deref().unwrap_or("/api/chat");
        let url = format!("{}/{}", self.base(name)?, path.trim_start_matches('/'));
        let origin = self.endpoint.origin(name, &url);
        let can = self.endpoint.capabilities(model.model_name.as_deref().unwrap_or(name));
        let body = body::build(request, &model, can);
        let headers = exchange::headers(key.as_ref(), &[&config.extra_headers, &model.extra_headers], &origin)?;
        Ok(Call {
            http: http.clone(),
            url,
            headers,
            // Ollama streams unless it is told not to.
            streamed: body.get("stream") != Some(&Value::Bool(false)),
            framing: Framing::Lines,
            body: Bytes::from(Value::Object(body).to_string()),
            origin: Arc::new(origin),
            timeouts: *timeouts,
        })
    }

    fn base(&self, model: &str) -> Result<String, LlmError> {
        self.endpoint.base(Some(DEFAULT_URL), OTHER_INTERFACE, model)
    }
}

impl Provider for Ollama {
    fn id(&self) -> &str {
        &self.endpoint.id
    }

    fn dialect(&self) -> &'static str {
        NAME
    }

    fn stream(&self, request: Request) -> DeltaStream {
        match self.call(&request) {
            Ok(call) => exchange::answer(call, OllamaDecoder::default()),
            Err(error) => exchange::failed(error),
        }
    }
}

#[cfg(test)]
mod tests;
