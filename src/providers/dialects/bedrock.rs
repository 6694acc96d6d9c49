//! Amazon Bedrock's Converse: one dialect for every vendor's models that Amazon hosts.
//!
//! [`body`] and [`decode`] are the dialect, [`sign`] proves who asks when there is no bearer key,
//! and [`credentials`] reads what Amazon's own tools store on a machine.

mod body;
mod credentials;
mod decode;
mod sign;

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use jiff::Timestamp;
use reqwest::Url;
use reqwest::header::{AUTHORIZATION, HeaderMap, HeaderValue};
use serde_json::Value;

pub use credentials::{AwsAccess, AwsCredentials, AwsProfile, parse_profiles};
pub use decode::BedrockDecoder;

use super::endpoint;
use super::exchange::{self, Call, Framing};
use super::{ListedModel, Timeouts};
use crate::config::{ModelConfig, ProviderConfig, Secret};
use crate::http;
use crate::llm::{DeltaStream, ErrorClass, LlmError, Provider, Request};
use crate::providers::errors::Origin;

/// The name of this dialect in the configuration and in what is replayed.
pub const NAME: &str = "bedrock";

/// A provider that speaks this dialect.
#[derive(Debug)]
pub struct Bedrock {
    id: String,
    config: ProviderConfig,
    key: Option<Secret>,
    access: AwsAccess,
    http: http::Client,
    timeouts: Timeouts,
}

impl Bedrock {
    /// `key` is a bearer key and comes before the credentials in `access`. Costs nothing and
    /// cannot fail: what is wrong with the settings shows in the first answer.
    pub fn new(
        id: &str,
        config: &ProviderConfig,
        key: Option<Secret>,
        access: AwsAccess,
        http: http::Client,
        timeouts: Timeouts,
    ) -> Self {
        Self { id: id.to_owned(), config: config.clone(), key, access, http, timeouts }
    }

    /// Nothing: what an account may use is not what Amazon lists, so only configured models count.
    pub async fn list_models(&self) -> Result<Vec<ListedModel>, LlmError> {
        Ok(Vec::new())
    }

    /// `now` is when the request is signed.
    fn call(&self, request: &Request, now: Timestamp) -> Result<Call, LlmError> {
        let name = request.model.model();
        let model = self.config.models.get(name).cloned().unwrap_or_default();
        let sent_name = model.model_name.as_deref().unwrap_or(name);
        let (streamed, body) = body::build(request, &model);
        let action = if streamed { "converse-stream" } else { "converse" };
        let url = format!("{}/model/{}/{action}", self.base(name)?, sign::percent_encoded(sent_name));
        let origin = self.origin(name, &url);
        let body = Bytes::from(Value::Object(body).to_string());
        let headers = self.headers(&model, &url, &body, &origin, now)?;
        Ok(Call {
            http: self.http.clone(),
            url,
            headers,
            streamed,
            framing: Framing::EventStream,
            body,
            origin: Arc::new(origin),
            timeouts: self.timeouts,
        })
    }

    fn headers(
        &self,
        model: &ModelConfig,
        url: &str,
        body: &[u8],
        origin: &Origin,
        now: Timestamp,
    ) -> Result<HeaderMap, LlmError> {
        let accept = "application/vnd.amazon.eventstream, application/json".to_owned();
        let own = BTreeMap::from([("accept".to_owned(), accept)]);
        let extra = [&own, &self.config.extra_headers, &model.extra_headers];
        let key = self.key.as_ref().filter(|key| !key.expose().trim().is_empty());
        let mut headers = exchange::headers(key, &extra, origin)?;
        if headers.contains_key(AUTHORIZATION) {
            return Ok(headers);
        }
        let Some(credentials) = &self.access.credentials else {
            let text = format!(
                "There are no credentials for {}. Set providers.{}.key to a Bedrock API key, or AWS_BEARER_TOKEN_BEDROCK, \
                 or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or a profile with AWS_PROFILE.",
                self.id, self.id
            );
            return Err(origin.build(ErrorClass::Auth, text));
        };
        let unusable = |what: &str| {
            origin.build(ErrorClass::BadRequest, format!("The request to {} cannot be signed: {what}.", self.id))
        };
        let url = Url::parse(url).map_err(|error| unusable(&format!("the url is not valid ({error})")))?;
        let region = credentials::region_of(url.host_str().unwrap_or_default());
        let region = region.or(self.access.region.as_deref()).ok_or_else(|| unusable("set AWS_REGION"))?;
        let signature = sign::headers(credentials, region, &url, body, now);
        for (name, value) in signature {
            let mut value = HeaderValue::from_str(&value)
                .map_err(|_| unusable("the credentials contain characters that cannot be sent"))?;
            value.set_sensitive(true);
            headers.insert(name, value);
        }
        Ok(headers)
    }

    fn base(&self, model: &str) -> Result<String, LlmError> {
        let configured = self.config.url.as_deref().map(|url| url.trim().trim_end_matches('/'));
        if let Some(url) = configured.filter(|url| !url.is_empty()) {
            return Ok(url.to_owned());
        }
        match self.access.region.as_deref().and_then(credentials::default_url) {
            Some(url) => Ok(url),
            None => {
                let id = &self.id;
                let text = format!("The provider {id} has no region. Set AWS_REGION, or providers.{id}.url.");
                Err(self.origin(model, "").build(ErrorClass::BadRequest, text))
            }
        }
    }

    fn origin(&self, model: &str, url: &str) -> Origin {
        let mut secrets = endpoint::secrets(&self.config, model, self.key.as_ref());
        if let Some(credentials) = &self.access.credentials {
            secrets.push(credentials.secret_access_key.clone());
            secrets.extend(credentials.session_token.clone());
        }
        Origin::new(&self.id, model, url, secrets)
    }
}

impl Provider for Bedrock {
    fn id(&self) -> &str {
        &self.id
    }

    fn dialect(&self) -> &'static str {
        NAME
    }

    fn stream(&self, request: Request) -> DeltaStream {
        match self.call(&request, Timestamp::now()) {
            Ok(call) => exchange::answer(call, BedrockDecoder::new(&request.model)),
            Err(error) => exchange::failed(error),
        }
    }
}

#[cfg(test)]
mod tests;
