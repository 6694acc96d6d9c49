//! How providers are made: the one place that knows every dialect.

use std::sync::Arc;
use std::time::Duration;

use super::Environment;
use crate::config::{Config, HttpVersion, ProviderConfig, Secret};
use crate::http;
use crate::providers::catalog::fetch::{self, Fetch};
use crate::providers::dialects::Timeouts;
use crate::providers::dialects::anthropic::{self, Anthropic};
use crate::providers::dialects::bedrock::{self, AwsAccess, Bedrock};
use crate::providers::dialects::gemini::{self, Gemini};
use crate::providers::dialects::ollama::{self, Ollama};
use crate::providers::dialects::openai_chat::{self, OpenAiChat};
use crate::providers::dialects::openai_responses::{self, OpenAiResponses};
use crate::providers::discovery::{LocalServer, Upstream};

/// Every dialect, by the name it has in the configuration.
pub const DIALECTS: [&str; 6] =
    [openai_chat::NAME, openai_responses::NAME, anthropic::NAME, bedrock::NAME, gemini::NAME, ollama::NAME];

/// How providers are made and how long they are waited for; tests put their own here.
#[derive(Clone)]
pub struct Wiring {
    pub build: BuildUpstream,
    /// For logins.
    pub http: http::Client,
    /// The dialects that `build` knows.
    pub dialects: Vec<&'static str>,
    pub local_servers: Vec<LocalServer>,
    /// For the model list of a configured provider.
    pub list_patience: Duration,
    /// For a local server, which answers at once or is not there.
    pub probe_patience: Duration,
    /// Where the public catalogue comes from; nothing is fetched without it.
    pub fetch_catalogue: Option<Fetch>,
}

/// Makes a provider of the dialect that `api` names. The configuration it gets has its url filled
/// in, and no key.
pub type BuildUpstream = Arc<dyn Fn(&str, &ProviderConfig, Option<Secret>) -> Arc<dyn Upstream> + Send + Sync>;

impl Wiring {
    /// What a server runs with.
    pub fn standard(config: &Config, environment: &Environment) -> Self {
        let http = http::Client::configured(config);
        let timeouts = Timeouts::new(config.stream_idle_timeout);
        let environment = environment.clone();
        let (logins, http1) = (http.clone(), http.http1());
        let fetch_catalogue = config.models_dev.then(|| fetch::from_models_dev(http.clone()));
        let build: BuildUpstream = Arc::new(move |id, provider, key| {
            let http = match provider.http_version {
                HttpVersion::Any => http.clone(),
                HttpVersion::Http1 => http1.clone(),
            };
            match provider.api.as_deref() {
                Some(openai_responses::NAME) => Arc::new(OpenAiResponses::new(id, provider, key, http, timeouts)),
                Some(anthropic::NAME) => Arc::new(Anthropic::new(id, provider, key, http, timeouts)),
                Some(gemini::NAME) => Arc::new(Gemini::new(id, provider, key, http, timeouts)),
                Some(ollama::NAME) => Arc::new(Ollama::new(id, provider, key, http, timeouts)),
                Some(bedrock::NAME) => {
                    let variable = |name: &str| environment.get(name);
                    let access = AwsAccess::find(variable, &environment.aws("credentials"), &environment.aws("config"));
                    Arc::new(Bedrock::new(id, provider, key, access, http, timeouts))
                }
                _ => Arc::new(OpenAiChat::new(id, provider, key, http, timeouts)),
            }
        });
        Self { fetch_catalogue, http: logins, ..Self::new(build) }
    }

    /// The given dialects with the real ports and patience, and no catalogue but the built-in one.
    pub fn new(build: BuildUpstream) -> Self {
        Self {
            build,
            http: http::Client::new(http::Settings { connect_timeout: Config::default().connect_timeout }),
            dialects: DIALECTS.to_vec(),
            local_servers: LocalServer::well_known(&DIALECTS),
            list_patience: Duration::from_secs(10),
            probe_patience: Duration::from_millis(1_200),
            fetch_catalogue: None,
        }
    }
}

impl std::fmt::Debug for Wiring {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Wiring")
            .field("dialects", &self.dialects)
            .field("local_servers", &self.local_servers)
            .finish_non_exhaustive()
    }
}
