//! Anthropic's messages: Claude at its maker, and the servers that speak the same language.
//!
//! [`body`] sends what the strict original accepts, [`decode`] also takes what its imitators
//! answer, and [`resume`] goes on with an answer that the provider interrupted itself.

mod body;
mod decode;
mod models;
mod resume;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use serde_json::Value;

pub use decode::AnthropicDecoder;

use super::endpoint;
use super::exchange::{self, Call, Framing};
use super::{ListedModel, Timeouts};
use crate::config::{CacheRetention, ModelConfig, ProviderConfig, Secret};
use crate::http;
use crate::llm::{DeltaStream, ErrorClass, LlmError, Provider, Request};
use crate::providers::errors::Origin;

/// The name of this dialect in the configuration and in what is replayed.
pub const NAME: &str = "anthropic";

const API_VERSION: &str = "2023-06-01";
const ORIGINAL_HOST: &str = "api.anthropic.com";

/// A provider that speaks this dialect. Clones share connections.
#[derive(Debug, Clone)]
pub struct Anthropic {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    id: String,
    config: ProviderConfig,
    key: Option<Secret>,
    http: http::Client,
    timeouts: Timeouts,
}

impl Anthropic {
    /// Costs nothing and cannot fail: what is wrong with the settings shows in the first answer.
    pub fn new(id: &str, config: &ProviderConfig, key: Option<Secret>, http: http::Client, timeouts: Timeouts) -> Self {
        Self { inner: Arc::new(Inner { id: id.to_owned(), config: config.clone(), key, http, timeouts }) }
    }

    /// What the provider says it has, at `<url>/v1/models`.
    pub async fn list_models(&self) -> Result<Vec<ListedModel>, LlmError> {
        const PATIENCE: Duration = Duration::from_secs(10);
        const MAX_BYTES: usize = 16 * 1024 * 1024;
        let inner = &self.inner;
        let url = inner.url(&models::path(inner.config.completion_url_relative_path.as_deref()), "");
        let origin = inner.origin("", url.as_deref().unwrap_or_default());
        let url = url?;
        let headers = inner.headers(&ModelConfig::default(), &origin)?;
        let body = exchange::get(&inner.http, &url, headers, &origin, PATIENCE, MAX_BYTES).await?;
        models::parse(&body).ok_or_else(|| origin.protocol("the list of models is not one"))
    }

    /// One request and its answer, which may stop before its end; see [`resume`].
    fn ask(&self, request: &Request, resumed: bool, decoder: AnthropicDecoder) -> DeltaStream {
        match self.inner.call(request, resumed) {
            Ok(call) => exchange::answer(call, decoder),
            Err(error) => exchange::failed(error),
        }
    }
}

impl Inner {
    fn call(&self, request: &Request, resumed: bool) -> Result<Call, LlmError> {
        let name = request.model.model();
        let path = self.config.completion_url_relative_path.as_deref().unwrap_or("/v1/messages");
        let url = self.url(path, name)?;
        let origin = self.origin(name, &url);
        let model = self.config.models.get(name).cloned().unwrap_or_default();
        let long = self.config.cache_retention == CacheRetention::Long && is_original(&url);
        let body = body::build(request, &model, body::Options { long_cache: long, resumed });
        Ok(Call {
            http: self.http.clone(),
            url,
            headers: self.headers(&model, &origin)?,
            streamed: body.get("stream") == Some(&Value::Bool(true)),
            framing: Framing::Sse,
            body: Bytes::from(Value::Object(body).to_string()),
            origin: Arc::new(origin),
            timeouts: self.timeouts,
        })
    }

    fn headers(&self, model: &ModelConfig, origin: &Origin) -> Result<reqwest::header::HeaderMap, LlmError> {
        let mut own = BTreeMap::from([("anthropic-version".to_owned(), API_VERSION.to_owned())]);
        if let Some(key) = self.key.as_ref().map(|key| key.expose().trim()).filter(|key| !key.is_empty()) {
            own.insert("x-api-key".to_owned(), key.to_owned());
        }
        exchange::headers(None, &[&own, &self.config.extra_headers, &model.extra_headers], origin)
    }

    fn url(&self, path: &str, model: &str) -> Result<String, LlmError> {
        let base = self.config.url.as_deref().map(|url| url.trim().trim_end_matches('/')).unwrap_or_default();
        if base.is_empty() {
            let text =
                format!("The provider {} has no url. Set providers.{}.url in the configuration.", self.id, self.id);
            return Err(self.origin(model, "").build(ErrorClass::BadRequest, text));
        }
        let path = path.trim_start_matches('/');
        // Other dialects want the version in the url, so it is often written here as well.
        let base = if path.starts_with("v1/") { base.strip_suffix("/v1").unwrap_or(base) } else { base };
        Ok(format!("{base}/{path}"))
    }

    fn origin(&self, model: &str, url: &str) -> Origin {
        Origin::new(&self.id, model, url, endpoint::secrets(&self.config, model, self.key.as_ref()))
    }
}

impl Provider for Anthropic {
    fn id(&self) -> &str {
        &self.inner.id
    }

    fn dialect(&self) -> &'static str {
        NAME
    }

    fn stream(&self, request: Request) -> DeltaStream {
        resume::stream(self.clone(), request)
    }
}

/// Whether the url is the maker's own, which alone is known to take the long life of a cache.
fn is_original(url: &str) -> bool {
    reqwest::Url::parse(url).is_ok_and(|url| url.host_str() == Some(ORIGINAL_HOST))
}

#[cfg(test)]
mod tests;
