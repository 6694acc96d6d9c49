//! What a provider over HTTP is made of, whatever it speaks: settings, address, key, and what its
//! own list said about its models.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use reqwest::header::{HeaderMap, HeaderValue};

use super::{Capabilities, ListedModel, Timeouts, exchange};
use crate::config::{ModelConfig, ProviderConfig, Secret};
use crate::http;
use crate::llm::{ErrorClass, LlmError};
use crate::providers::errors::Origin;

#[derive(Debug)]
pub(super) struct Endpoint {
    pub(super) id: String,
    pub(super) config: ProviderConfig,
    pub(super) key: Option<Secret>,
    pub(super) http: http::Client,
    pub(super) timeouts: Timeouts,
    known: Mutex<HashMap<String, Capabilities>>,
}

impl Endpoint {
    pub(super) fn new(
        id: &str,
        config: &ProviderConfig,
        key: Option<Secret>,
        http: http::Client,
        timeouts: Timeouts,
    ) -> Self {
        Self { id: id.to_owned(), config: config.clone(), key, http, timeouts, known: Mutex::default() }
    }

    /// The settings of a model; all defaults when it has none.
    pub(super) fn model(&self, name: &str) -> ModelConfig {
        self.config.models.get(name).cloned().unwrap_or_default()
    }

    /// The base address, or `default` when none is set. An address that already ends with
    /// `version` (users copy both kinds) is taken without it.
    pub(super) fn base(&self, default: Option<&str>, version: &str, model: &str) -> Result<String, LlmError> {
        let base = self.config.url.as_deref().map(|url| url.trim().trim_end_matches('/')).unwrap_or_default();
        let base = if base.is_empty() { default.unwrap_or_default() } else { base };
        if base.is_empty() {
            let text =
                format!("The provider {} has no url. Set providers.{}.url in the configuration.", self.id, self.id);
            return Err(self.origin(model, "").build(ErrorClass::BadRequest, text));
        }
        Ok(base.strip_suffix(version).unwrap_or(base).trim_end_matches('/').to_owned())
    }

    /// Who is called, knowing every secret that must not show in an error.
    pub(super) fn origin(&self, model: &str, url: &str) -> Origin {
        Origin::new(&self.id, model, url, secrets(&self.config, model, self.key.as_ref()))
    }

    /// Adds the key under a vendor's own header, unless the user set that header.
    pub(super) fn add_key(&self, headers: &mut HeaderMap, name: &'static str, origin: &Origin) -> Result<(), LlmError> {
        let key = self.key.as_ref().map(|key| key.expose().trim()).filter(|key| !key.is_empty());
        let Some(key) = key.filter(|_| !headers.contains_key(name)) else { return Ok(()) };
        let mut value = HeaderValue::from_str(key).map_err(|_| {
            let text = "The API key contains characters that cannot be sent. Check the provider's settings.";
            origin.build(ErrorClass::Auth, text.to_owned())
        })?;
        value.set_sensitive(true);
        headers.insert(name, value);
        Ok(())
    }

    /// Keeps what a list said, for the requests that follow.
    pub(super) fn remember(&self, models: &[ListedModel]) {
        let known = models.iter().filter_map(|model| Some((model.name.clone(), model.capabilities?)));
        *self.known.lock().unwrap_or_else(PoisonError::into_inner) = known.collect();
    }

    /// What the provider said about the model that is sent as `name`.
    pub(super) fn capabilities(&self, name: &str) -> Option<Capabilities> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner).get(name).copied()
    }
}

/// Everything that must not show in an error about a request to `model`.
pub(super) fn secrets(config: &ProviderConfig, model: &str, key: Option<&Secret>) -> Vec<Secret> {
    let model_headers = config.models.get(model).map(|model| &model.extra_headers);
    let headers = config.extra_headers.iter().chain(model_headers.into_iter().flatten());
    let secret = headers.filter(|(name, _)| exchange::is_secret_header(name)).map(|(_, value)| value.as_str());
    // A provider may repeat the token without the word in front of it.
    let both = secret.flat_map(|value| [Some(value), value.split_once(' ').map(|(_, token)| token)]);
    both.flatten().map(Secret::new).chain(key.cloned()).collect()
}

/// The smaller of what is wanted and what is possible, as far as known.
pub(super) fn output_limit(wanted: Option<u64>, possible: Option<u64>) -> Option<u64> {
    match (wanted, possible) {
        (Some(wanted), Some(possible)) => Some(wanted.min(possible)),
        (wanted, possible) => wanted.or(possible),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn a_token_is_a_secret_with_and_without_its_scheme() {
        let mut config = ProviderConfig::default();
        config.extra_headers.insert("Authorization".into(), "Bearer t0ken".into());
        config.extra_headers.insert("X-Colour".into(), "blue".into());
        let found = secrets(&config, "m", Some(&Secret::new("k3y")));
        let found: Vec<&str> = found.iter().map(Secret::expose).collect();
        assert_eq!(found, ["Bearer t0ken", "t0ken", "k3y"]);
    }

    #[test]
    fn an_address_is_taken_with_or_without_its_version() {
        let base = |url: Option<&str>| {
            let config = ProviderConfig { url: url.map(str::to_owned), ..ProviderConfig::default() };
            let http = http::Client::new(http::Settings { connect_timeout: Duration::from_secs(1) });
            let timeouts = Timeouts::new(Duration::from_secs(1));
            Endpoint::new("p", &config, None, http, timeouts).base(Some("http://default"), "/v1", "m").unwrap()
        };
        for url in ["http://x/a", "http://x/a/", "http://x/a/v1", " http://x/a/v1// "] {
            assert_eq!(base(Some(url)), "http://x/a", "{url}");
        }
        assert_eq!(base(None), "http://default");
        assert_eq!(base(Some("  ")), "http://default");
    }
}
