//! OpenAI's chat completions: the dialect that nearly every other server speaks as well.
//!
//! llama.cpp, LM Studio, vLLM, Ollama, OpenRouter, Mistral and many more answer at this endpoint,
//! each with its own deviations; [`decode`] takes them all, [`body`] sends what the strictest of
//! them accepts.

mod body;
mod decode;
mod models;
mod plain;
mod think;
mod tool_calls;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use serde_json::Value;

pub use decode::ChatDecoder;
/// The other OpenAI dialect lists models in the same shape.
pub(super) use models::parse as parse_models;

use super::endpoint;
use super::exchange::{self, Call, Framing};
use super::{ListedModel, Timeouts};
use crate::config::{ProviderConfig, Secret};
use crate::http;
use crate::llm::{DeltaStream, ErrorClass, LlmError, Provider, Request};
use crate::providers::errors::Origin;

/// The name of this dialect in the configuration and in what is replayed.
pub const NAME: &str = "openai-chat";

/// A provider that speaks this dialect.
#[derive(Debug)]
pub struct OpenAiChat {
    id: String,
    config: ProviderConfig,
    key: Option<Secret>,
    http: http::Client,
    timeouts: Timeouts,
}

impl OpenAiChat {
    /// Costs nothing and cannot fail: what is wrong with the settings shows in the first answer.
    pub fn new(id: &str, config: &ProviderConfig, key: Option<Secret>, http: http::Client, timeouts: Timeouts) -> Self {
        Self { id: id.to_owned(), config: config.clone(), key, http, timeouts }
    }

    /// What the provider says it has, at `<url>/models`.
    pub async fn list_models(&self) -> Result<Vec<ListedModel>, LlmError> {
        const PATIENCE: Duration = Duration::from_secs(10);
        const MAX_BYTES: usize = 16 * 1024 * 1024;
        let url = self.url(&models::path(self.config.completion_url_relative_path.as_deref()), "");
        let origin = self.origin("", url.as_deref().unwrap_or_default());
        let url = url?;
        let headers = exchange::headers(self.key.as_ref(), &[&self.config.extra_headers], &origin)?;
        let body = exchange::get(&self.http, &url, headers, &origin, PATIENCE, MAX_BYTES).await?;
        models::parse(&body).ok_or_else(|| origin.protocol("the list of models is not one"))
    }

    fn call(&self, request: &Request) -> Result<Call, LlmError> {
        let name = request.model.model();
        let path = self.config.completion_url_relative_path.as_deref().unwrap_or("/chat/completions");
        let url = self.url(path, name)?;
        let origin = self.origin(name, &url);
        let model = self.config.models.get(name).cloned().unwrap_or_default();
        let body = body::build(request, &model);
        let headers =
            exchange::headers(self.key.as_ref(), &[&self.config.extra_headers, &model.extra_headers], &origin)?;
        Ok(Call {
            http: self.http.clone(),
            url,
            headers,
            streamed: body.get("stream") == Some(&Value::Bool(true)),
            framing: Framing::Sse,
            body: Bytes::from(Value::Object(body).to_string()),
            origin: Arc::new(origin),
            timeouts: self.timeouts,
        })
    }

    fn url(&self, path: &str, model: &str) -> Result<String, LlmError> {
        let base = self.config.url.as_deref().map(|url| url.trim().trim_end_matches('/')).unwrap_or_default();
        if base.is_empty() {
            let text =
                format!("The provider {} has no url. Set providers.{}.url in the configuration.", self.id, self.id);
            return Err(self.origin(model, "").build(ErrorClass::BadRequest, text));
        }
        Ok(format!("{base}/{}", path.trim_start_matches('/')))
    }

    fn origin(&self, model: &str, url: &str) -> Origin {
        Origin::new(&self.id, model, url, endpoint::secrets(&self.config, model, self.key.as_ref()))
    }
}

impl Provider for OpenAiChat {
    fn id(&self) -> &str {
        &self.id
    }

    fn dialect(&self) -> &'static str {
        NAME
    }

    fn stream(&self, request: Request) -> DeltaStream {
        match self.call(&request) {
            Ok(call) => {
                let start = self.config.think_tag_start.as_deref();
                exchange::answer(call, ChatDecoder::new(start, self.config.think_tag_end.as_deref()))
            }
            Err(error) => exchange::failed(error),
        }
    }
}

#[cfg(test)]
mod tests;
