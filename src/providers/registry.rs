//! Which providers and models exist right now, and what a model name means.
//!
//! The registry is built from the configuration without any I/O, so that `initialize` is fast;
//! [`Registry::refresh`] then asks providers for their lists and looks for local servers. Readers
//! always see one whole snapshot. A vendor whose key is known needs no configuration. The offline
//! guide is a provider like any other: it is listed last and is the default only while nothing else
//! exists.

mod adopt;
mod build;
mod environment;
mod refresh;
mod similar;
mod snapshot;
mod views;
mod wiring;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, PoisonError, RwLock, Weak};

use serde_json::{Map, Value};

use super::catalog::{Catalog, Wanted};
use super::dialects::ListedModel;
use super::discovery::{LocalServer, Upstream};
use super::guide::{Guide, GuideView};
use super::oauth::{self, Session};
use super::variants::{self, Asked, Rules, Variants};
use super::vendors::Vendor;
use crate::base::ModelId;
use crate::config::{Config, ConfigProblem, ProviderConfig, RetryConfig, Secret};
use crate::llm::{ModelInfo, Provider};

pub use environment::{Environment, Lookup};
use snapshot::{MAX_SHOWN_NAME, Snapshot};
pub use views::{KeySource, ProviderState, ProviderView};
pub use wiring::{BuildUpstream, DIALECTS, Wiring};

#[derive(Clone)]
pub struct Registry {
    inner: Arc<Inner>,
}

/// A model name that means nothing here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownModel {
    pub wanted: String,
    pub close: Vec<ModelId>,
}

/// What a chosen variant means for a model.
#[derive(Debug, Clone, PartialEq)]
pub enum VariantChoice {
    /// What to add to the request.
    Payload(Map<String, Value>),
    /// The model has no variant of that name; this is what to add without one.
    Unknown(Map<String, Value>),
}

impl Registry {
    /// Builds every provider that can be built; what cannot is reported and the rest works.
    pub fn new(config: &Config, environment: Environment, wiring: Wiring) -> (Self, Vec<ConfigProblem>) {
        let problem = |message: String| ConfigProblem { source: "configuration".to_owned(), line: None, message };
        let mut problems = Vec::new();
        let mut entries = BTreeMap::new();
        for (id, provider) in &config.providers {
            if let Err(message) = oauth::Client::new(&provider.oauth) {
                problems.push(problem(format!("providers.{id}.{message}")));
            }
            match build::configured_entry(id, provider, &environment, &wiring) {
                Ok(entry) => drop(entries.insert(id.clone(), entry)),
                Err(message) => problems.push(problem(format!("providers.{id}: {message}"))),
            }
        }
        entries.extend(build::vendor_entries(config, &environment, &wiring));
        let (rules, unreadable) = Rules::new(&config.variants_by_model);
        problems.extend(unreadable.into_iter().map(problem));
        // A provider that is configured, even wrongly, is the user's business and not looked for.
        let local_servers = match config.local_discovery {
            true => build::unconfigured_servers(&wiring, config, &environment),
            false => Vec::new(),
        };
        let wanted = refresh::wanted(entries.iter());
        let catalog = Arc::new(Catalog::embedded(&wanted));
        let inner = Arc::new_cyclic(|weak: &Weak<Inner>| {
            let weak = weak.clone();
            Inner {
                guide: Arc::new(Guide::new(move || guide_view(&weak))),
                config: config.clone(),
                environment,
                default_model: config.default_model.clone(),
                local_discovery: config.local_discovery,
                models_dev: config.models_dev,
                local_servers,
                wiring,
                rules,
                wanted,
                snapshot: RwLock::new(Arc::new(Snapshot::new(entries, catalog))),
                catalogue_read: AtomicBool::new(false),
                refreshing: tokio::sync::Mutex::new(()),
                fetching: tokio::sync::Mutex::new(()),
            }
        });
        (Self { inner }, problems)
    }

    /// The same with another key from a login, or without one. Logins with tokens are looked at again.
    pub fn with_login(&self, provider: &str, key: Option<Secret>) -> Self {
        let inner = &self.inner;
        let mut environment = inner.environment.clone();
        match key {
            Some(key) => drop(environment.logins.insert(provider.to_owned(), key)),
            None => drop(environment.logins.remove(provider)),
        }
        // What is wrong with the configuration has been said when it was read.
        let (registry, _) = Self::new(&inner.config, environment, inner.wiring.clone());
        registry
    }

    /// The login of a provider, where the user has a client for one.
    pub fn session(&self, id: &str) -> Option<Arc<Session>> {
        self.inner.snapshot().entries.get(id)?.session.clone()
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
        self.inner.snapshot().info(id)
    }

    /// The configured default if it means something, else the main model of a vendor with a key,
    /// else a model the user configured, else the first one listed, else the guide.
    pub fn default_model(&self) -> ModelId {
        let snapshot = self.inner.snapshot();
        let wished = self.inner.default_model.as_deref().map(str::trim).and_then(|name| snapshot.find(name, None));
        wished.unwrap_or_else(|| snapshot.first_choice())
    }

    /// Whether the configuration names a default model that means something.
    pub fn has_configured_default(&self) -> bool {
        let wished = self.inner.default_model.as_deref().map(str::trim);
        wished.is_some_and(|name| self.inner.snapshot().find(name, None).is_some())
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

    /// The names of a model's variants that a user can choose from, sorted.
    pub fn variants(&self, model: &ModelId) -> Vec<String> {
        let snapshot = self.inner.snapshot();
        let all = snapshot.entries.get(model.provider()).map(|entry| self.inner.variants_of(entry, model.model()));
        all.unwrap_or_default().into_keys().filter(|name| name != variants::DEFAULT).collect()
    }

    /// What a request to `model` gets beside its own configuration: the vendor's defaults and what
    /// the variant adds. Empty when there is neither.
    pub fn variant(&self, model: &ModelId, variant: Option<&str>) -> VariantChoice {
        let snapshot = self.inner.snapshot();
        let entry = snapshot.entries.get(model.provider());
        let mut all = entry.map(|entry| self.inner.variants_of(entry, model.model())).unwrap_or_default();
        let wanted = variant.map(str::trim).filter(|name| !name.is_empty());
        let chosen = wanted.and_then(|name| all.remove(name));
        let unknown = wanted.is_some() && chosen.is_none();
        let added = chosen.or_else(|| all.remove(variants::DEFAULT)).unwrap_or_default();
        let mut payload = entry.map(|entry| entry.payload.clone()).unwrap_or_default();
        if let Some(entry) = entry
            && !(payload.is_empty() && added.is_empty())
        {
            // The user's own additions lie between the two; a dialect merges the result last.
            variants::overlay(&mut payload, &entry.model(model.model()).extra_payload);
        }
        variants::overlay(&mut payload, &added);
        if unknown { VariantChoice::Unknown(payload) } else { VariantChoice::Payload(payload) }
    }
}

impl VariantChoice {
    pub fn into_payload(self) -> Map<String, Value> {
        match self {
            Self::Payload(payload) | Self::Unknown(payload) => payload,
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

struct Inner {
    /// Kept to build the next registry from when a key changes.
    config: Config,
    environment: Environment,
    default_model: Option<String>,
    local_discovery: bool,
    models_dev: bool,
    /// Those to look for; none when discovery is off.
    local_servers: Vec<LocalServer>,
    wiring: Wiring,
    rules: Rules,
    /// The providers whose models are taken from the catalogue in full.
    wanted: Arc<[Wanted]>,
    guide: Arc<Guide>,
    snapshot: RwLock<Arc<Snapshot>>,
    /// The disk's copy of the catalogue is in use.
    catalogue_read: AtomicBool,
    refreshing: tokio::sync::Mutex<()>,
    fetching: tokio::sync::Mutex<()>,
}

#[derive(Clone)]
struct Entry {
    upstream: Arc<dyn Upstream>,
    /// The user's settings over the vendor's; the key is not in it.
    config: ProviderConfig,
    vendor: Option<&'static Vendor>,
    /// What the vendor wants in every body.
    payload: Map<String, Value>,
    key_source: KeySource,
    /// How the user logs in, where that is possible.
    session: Option<Arc<Session>>,
    /// The models that the user wrote down.
    own_models: BTreeSet<String>,
    local: bool,
    configured: bool,
    listed: Arc<[ListedModel]>,
    /// The last time it was asked for its models, it did not say.
    list_failed: bool,
}

impl Inner {
    fn snapshot(&self) -> Arc<Snapshot> {
        self.snapshot.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn variants_of(&self, entry: &Entry, model: &str) -> Variants {
        let settings = entry.model(model);
        self.rules.variants(Asked {
            provider: entry.upstream.id(),
            api: entry.config.api.as_deref().unwrap_or_default(),
            name: settings.model_name.as_deref().unwrap_or(model),
            own: &settings.variants,
        })
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
