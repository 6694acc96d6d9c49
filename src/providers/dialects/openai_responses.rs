//! OpenAI's responses: the dialect of its newer models, which several other servers speak in part.
//!
//! Nothing is stored at the provider: every request carries the whole conversation, reasoning
//! included in its encrypted form. llama.cpp, LM Studio and LiteLLM send fewer events and fields;
//! [`decode`] takes what comes.

mod body;
mod decode;
mod items;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use serde_json::Value;

pub use decode::ResponsesDecoder;

use super::endpoint::Endpoint;
use super::exchange::{self, Call, Framing};
use super::openai_chat::parse_models;
use super::{ListedModel, Timeouts};
use crate::config::{ProviderConfig, Secret};
use crate::http;
use crate::llm::{DeltaStream, LlmError, Provider, Request};

/// The name of this dialect in the configuration and in what is replayed.
pub const NAME: &str = "openai-responses";

const VERSION: &str = "/v1";

/// A provider that speaks this dialect.
#[derive(Debug)]
pub struct OpenAiResponses {
    endpoint: Endpoint,
}

impl OpenAiResponses {
    /// Costs nothing and cannot fail: what is wrong with the settings shows in the first answer.
    pub fn new(id: &str, config: &ProviderConfig, key: Option<Secret>, http: http::Client, timeouts: Timeouts) -> Self {
        Self { endpoint: Endpoint::new(id, config, key, http, timeouts) }
    }

    /// What the provider says it has, at `<url>/v1/models`.
    pub async fn list_models(&self) -> Result<Vec<ListedModel>, LlmError> {
        const PATIENCE: Duration = Duration::from_secs(10);
        const MAX_BYTES: usize = 16 * 1024 * 1024;
        let Endpoint { config, key, http, .. } = &self.endpoint;
        let url = format!("{}{VERSION}/models", self.endpoint.base(None, VERSION, "")?);
        let origin = self.endpoint.origin("", &url);
        let headers = exchange::headers(key.as_ref(), &[&config.extra_headers], &origin)?;
        let body = exchange::get(http, &url, headers, &origin, PATIENCE, MAX_BYTES).await?;
        parse_models(&body).ok_or_else(|| origin.protocol("the list of models is not one"))
    }

    fn call(&self, request: &Request) -> Result<Call, LlmError> {
        let Endpoint { config, key, http, timeouts, .. } = &self.endpoint;
        let name = request.model.model();
        let url = match config.completion_url_relative_path.as_deref() {
            Some(path) => format!("{}/{}", self.endpoint.base(None, "", name)?, path.trim_start_matches('/')),
            None => format!("{}{VERSION}/responses", self.endpoint.base(None, VERSION, name)?),
        };
        let origin = self.endpoint.origin(name, &url);
        let model = self.endpoint.model(name);
        let body = body::build(request, &model);
        let headers = exchange::headers(key.as_ref(), &[&config.extra_headers, &model.extra_headers], &origin)?;
        Ok(Call {
            http: http.clone(),
            url,
            headers,
            streamed: body.get("stream") == Some(&Value::Bool(true)),
            framing: Framing::Sse,
            body: Bytes::from(Value::Object(body).to_string()),
            origin: Arc::new(origin),
            timeouts: *timeouts,
        })
    }
}

impl Provider for OpenAiResponses {
    fn id(&self) -> &str {
        &self.endpoint.id
    }

    fn dialect(&self) -> &'static str {
        NAME
    }

    fn stream(&self, request: Request) -> DeltaStream {
        match self.call(&request) {
            Ok(call) => exchange::answer(call, ResponsesDecoder::new(request.model.as_str())),
            Err(error) => exchange::failed(error),
        }
    }
}

#[cfg(test)]
mod tests;
