//! Which providers and models exist right now, and what a model name means.
//!
//! The registry is built from the configuration without any I/O, so that `initialize` is fast;
//! [`Registry::refresh`] then asks providers for their lists and looks for local servers. Readers
//! always see one whole snapshot. The offline guide is a provider like any other: it is listed
//! last and is the default only while nothing else exists.

mod adopt;
mod build;
mod similar;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, PoisonError, RwLock, Weak};
use std::time::Duration;

use futures_util::future::{join, join_all};

use super::dialects::openai_chat::OpenAiChat;
use super::dialects::{ListedModel, Timeouts};
use super::discovery::{self, Listing, LocalServer, Upstream};
use super::guide::{Guide, GuideView};
use crate::base::ModelId;
use crate::config::{Config, ConfigProblem, ProviderConfig, RetryConfig, Secret};
use crate::http;
use crate::llm::{ModelInfo, Provider};

/// What the caller read from the process environment and the disk layout; nothing here reads it
/// itself.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Environment {
    /// The variables that matter here: `*_API_KEY` and `*_API_URL`.
    pub vars: BTreeMap<String, String>,
    /// The user's configuration file, shown by the guide whether or not it exists.
    pub config_path: PathBuf,
}

/// How providers are made and how long they are waited for; tests put their own here.
#[derive(Clone)]
pub struct Wiring {
    pub build: BuildUpstream,
    pub local_servers: Vec<LocalServer>,
    /// For the model list of a configured provider.
    pub list_patience: Duration,
    /// For a local server, which answers at once or is not there.
    pub probe_patience: Duration,
}

/// Makes a provider of the `openai-chat` dialect. The configuration it gets has its url filled in.
pub type BuildUpstream = Arc<dyn Fn(&str, &ProviderConfig, Option<Secret>) -> Arc<dyn Upstream> + Send + Sync>;

#[derive(Clone)]
pub struct Registry {
    inner: Arc<Inner>,
}

/// A provider as shown to a person. Never holds a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProviderView {
    pub id: String,
    pub api: String,
    /// Without user name, password and query, which may be secrets.
    pub url: String,
    pub has_key: bool,
    pub key_source: KeySource,
    pub model_count: usize,
    /// Found on this machine, not configured.
    pub local: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeySource {
    Config,
    /// The variable's name.
    Env(String),
    None,
}

/// A model name that means nothing here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownModel {
    pub wanted: String,
    pub close: Vec<ModelId>,
}

impl Registry {
    /// Builds every provider that can be built; what cannot is reported and the rest works.
    pub fn new(config: &Config, environment: Environment, wiring: Wiring) -> (Self, Vec<ConfigProblem>) {
        let mut problems = Vec::new();
        let mut entries = BTreeMap::new();
        for (id, provider) in &config.providers {
            match build::configured_entry(id, provider, &environment, &wiring) {
                Ok(entry) => drop(entries.insert(id.clone(), entry)),
                Err(message) => problems.push(ConfigProblem {
                    source: "configuration".to_owned(),
                    line: None,
                    message: format!("providers.{id}: {message}"),
                }),
            }
        }
        // A provider that is configured, even wrongly, is the user's business and not looked for.
        let local_servers = match config.local_discovery {
            true => build::unconfigured_servers(&wiring, config, &environment),
            false => Vec::new(),
        };
        let inner = Arc::new_cyclic(|weak: &Weak<Inner>| {
            let weak = weak.clone();
            Inner {
                guide: Arc::new(Guide::new(move || guide_view(&weak))),
                environment,
                default_model: config.default_model.clone(),
                local_discovery: config.local_discovery,
                local_servers,
                wiring,
                snapshot: RwLock::new(Arc::new(Snapshot::new(entries))),
                refreshing: tokio::sync::Mutex::new(()),
            }
        });
        (Self { inner }, problems)
    }

    pub fn provider(&self, id: &str) -> Option<Arc<dyn Provider>> {
        if id == Guide::ID {
            return Some(self.inner.guide.clone());
        }
        self.inner.snapshot().entries.get(id).map(|entry| entry.upstream.clone() as Arc<dyn Provider>)
    }

    /// Every known model, sorted by id, the guide last.
    pub fn models(&self) -> Arc<[ModelInfo]> {
        self.inner.snapshot().models.clone()
    }

    /// What is known of a model; an unlisted model of a known provider is known by name only.
    pub fn info(&self, id: &ModelId) -> Option<ModelInfo> {
        let snapshot = self.inner.snapshot();
        let listed = snapshot.models.iter().find(|model| model.id == *id).cloned();
        listed.or_else(|| snapshot.entries.contains_key(id.provider()).then(|| ModelInfo::named(id.clone())))
    }

    /// The configured default if it means something, else a model the user configured, else the
    /// first one listed, else the guide.
    pub fn default_model(&self) -> ModelId {
        let snapshot = self.inner.snapshot();
        let wished = self.inner.default_model.as_deref().map(str::trim).and_then(|name| snapshot.find(name, None));
        wished.unwrap_or_else(|| snapshot.first_choice())
    }

    /// What a client's model name means. Blank and `auto` mean the default; a full id of a known
    /// provider is taken as given; a bare name is looked up in the current provider, then in all.
    pub fn resolve(&self, wanted: &str, current: Option<&ModelId>) -> Result<ModelId, UnknownModel> {
        let wanted = wanted.trim();
        if wanted.is_empty() || wanted == "auto" {
            return Ok(self.default_model());
        }
        let snapshot = self.inner.snapshot();
        snapshot.find(wanted, current).ok_or_else(|| UnknownModel {
            wanted: crate::base::text::one_line(wanted, MAX_SHOWN_NAME),
            close: snapshot.close_to(wanted),
        })
    }

    pub fn retry(&self, provider: &str) -> RetryConfig {
        self.inner.snapshot().entries.get(provider).map(|entry| entry.config.retry.clone()).unwrap_or_default()
    }

    /// Asks providers for their models and looks for local servers, all at once and each bounded
    /// in time. Returns whether anything changed. A list that cannot be had leaves the last one.
    pub async fn refresh(&self) -> bool {
        let inner = &self.inner;
        // A slow refresh must not overwrite the result of a later one.
        let _turn = inner.refreshing.lock().await;
        let before = inner.snapshot();
        let configured = before.entries.values().filter(|entry| !entry.local && entry.config.fetch_models);
        let lists = configured.map(|entry| async {
            (entry.upstream.id().to_owned(), discovery::list(&*entry.upstream, inner.wiring.list_patience).await)
        });
        let probes = inner.local_servers.iter().map(|server| async {
            let entry = build::local_entry(server, &inner.environment, &inner.wiring);
            let listing = discovery::list(&*entry.upstream, inner.wiring.probe_patience).await;
            (server.id.clone(), entry, listing)
        });
        let (lists, probes) = join(join_all(lists), join_all(probes)).await;

        let mut entries = before.entries.clone();
        for (id, listing) in lists {
            if let (Some(entry), Listing::Models(models)) = (entries.get_mut(&id), listing) {
                entry.listed = models.into();
            }
        }
        for (id, mut found, listing) in probes {
            match listing {
                Listing::Models(models) => {
                    found.listed = models.into();
                    entries.insert(id, found);
                }
                Listing::Failed => drop(entries.remove(&id)),
                // A busy server is slow to answer; a chat that uses it must not lose it.
                Listing::TimedOut => {}
            }
        }
        let after = Snapshot::new(entries);
        let changed = after.models != before.models || !after.entries.keys().eq(before.entries.keys());
        *inner.snapshot.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(after);
        changed
    }

    /// Every real provider, for a diagnosis.
    pub fn describe(&self) -> Vec<ProviderView> {
        self.inner.describe()
    }
}

impl Wiring {
    /// What a server runs with.
    pub fn standard(config: &Config) -> Self {
        let http = http::Client::configured(config);
        let timeouts = Timeouts::new(config.stream_idle_timeout);
        Self::new(Arc::new(move |id, provider, key| {
            Arc::new(OpenAiChat::new(id, provider, key, http.clone(), timeouts)) as Arc<dyn Upstream>
        }))
    }

    /// The given dialect with the real ports and patience.
    pub fn new(build: BuildUpstream) -> Self {
        Self {
            build,
            local_servers: LocalServer::well_known(),
            list_patience: Duration::from_secs(10),
            probe_patience: Duration::from_millis(700),
        }
    }
}

impl std::error::Error for UnknownModel {}

impl std::fmt::Display for UnknownModel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "There is no model named `{}`.", self.wanted)?;
        if !self.close.is_empty() {
            let names: Vec<String> = self.close.iter().map(|id| format!("`{id}`")).collect();
            write!(f, " Close to it: {}.", names.join(", "))?;
        }
        f.write_str(
            " Your editor's model selection lists every model that is available; \
             a model that is not listed can be named in full, as `provider/model`.",
        )
    }
}

impl std::fmt::Debug for Registry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Registry").field("providers", &self.describe()).finish_non_exhaustive()
    }
}

impl std::fmt::Debug for Environment {
    // The values are keys; only the names may be seen.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names: Vec<&String> = self.vars.keys().collect();
        f.debug_struct("Environment").field("vars", &names).field("config_path", &self.config_path).finish()
    }
}

impl std::fmt::Debug for Wiring {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Wiring").field("local_servers", &self.local_servers).finish_non_exhaustive()
    }
}

const MAX_CLOSE_MATCHES: usize = 3;
const MAX_SHOWN_NAME: usize = 80;

struct Inner {
    environment: Environment,
    default_model: Option<String>,
    local_discovery: bool,
    /// Those to look for; none when discovery is off.
    local_servers: Vec<LocalServer>,
    wiring: Wiring,
    guide: Arc<Guide>,
    snapshot: RwLock<Arc<Snapshot>>,
    refreshing: tokio::sync::Mutex<()>,
}

struct Snapshot {
    entries: BTreeMap<String, Entry>,
    models: Arc<[ModelInfo]>,
}

#[derive(Clone)]
struct Entry {
    upstream: Arc<dyn Upstream>,
    config: ProviderConfig,
    key_source: KeySource,
    local: bool,
    listed: Arc<[ListedModel]>,
}

impl Inner {
    fn snapshot(&self) -> Arc<Snapshot> {
        self.snapshot.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn describe(&self) -> Vec<ProviderView> {
        let snapshot = self.snapshot();
        let view = |(id, entry): (&String, &Entry)| ProviderView {
            id: id.clone(),
            api: entry.config.api.clone().unwrap_or_default(),
            url: build::shown_url(entry.config.url.as_deref().unwrap_or_default()),
            has_key: entry.key_source != KeySource::None,
            key_source: entry.key_source.clone(),
            model_count: snapshot.models.iter().filter(|model| model.id.provider() == id).count(),
            local: entry.local,
        };
        snapshot.entries.iter().map(view).collect()
    }
}

impl Snapshot {
    fn new(entries: BTreeMap<String, Entry>) -> Self {
        let mut models: Vec<ModelInfo> =
            entries.iter().flat_map(|(id, entry)| discovery::catalogue(id, &entry.config, &entry.listed)).collect();
        models.sort_by(|a, b| a.id.cmp(&b.id));
        models.push(Guide::model());
        Self { entries, models: models.into() }
    }

    fn find(&self, wanted: &str, current: Option<&ModelId>) -> Option<ModelId> {
        let full = ModelId::parse(wanted);
        if let Some(id) = full
            && (self.entries.contains_key(id.provider()) || id == Guide::model().id)
        {
            return Some(id);
        }
        let named = |model: &&ModelInfo| model.id.model() == wanted;
        let of_current = |model: &&ModelInfo| current.is_some_and(|id| id.provider() == model.id.provider());
        let mut candidates = self.models.iter().filter(named);
        let preferred = candidates.clone().find(of_current);
        preferred.or_else(|| candidates.next()).map(|model| model.id.clone())
    }

    /// A configured model comes before a listed one: the user chose it, and it is already known
    /// before the first refresh, so the selection does not jump afterwards.
    fn first_choice(&self) -> ModelId {
        let is_configured = |model: &&ModelInfo| {
            self.entries
                .get(model.id.provider())
                .is_some_and(|entry| entry.config.models.contains_key(model.id.model()))
        };
        // The list is never empty, and its last element is the guide.
        let first = self.models.iter().find(is_configured).or(self.models.first());
        first.map_or_else(|| Guide::model().id, |model| model.id.clone())
    }

    fn close_to(&self, wanted: &str) -> Vec<ModelId> {
        let wanted = crate::base::text::prefix(wanted, MAX_SHOWN_NAME).to_lowercase();
        let real = self.models.iter().filter(|model| model.id.provider() != Guide::ID);
        let mut scored: Vec<(usize, &ModelId)> = real
            .filter_map(|model| Some((similar::dissimilarity(&wanted, &model.id.as_str().to_lowercase())?, &model.id)))
            .collect();
        scored.sort();
        scored.into_iter().take(MAX_CLOSE_MATCHES).map(|(_, id)| id.clone()).collect()
    }
}

fn guide_view(inner: &Weak<Inner>) -> GuideView {
    let version = env!("CARGO_PKG_VERSION").to_owned();
    let Some(inner) = inner.upgrade() else { return GuideView { version, ..GuideView::default() } };
    let set = |(name, value): (&String, &String)| {
        (name.ends_with("_API_KEY") && !value.trim().is_empty()).then(|| name.clone())
    };
    GuideView {
        config_path: inner.environment.config_path.clone(),
        providers: inner.describe(),
        key_variables: inner.environment.vars.iter().filter_map(set).collect(),
        local_discovery: inner.local_discovery,
        version,
    }
}

#[cfg(test)]
mod tests;
