//! One whole state of the registry: its providers, their models, and what names mean in it.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{Entry, KeySource, similar};
use crate::base::ModelId;
use crate::config::ModelConfig;
use crate::llm::ModelInfo;
use crate::providers::catalog::{Catalog, ModelFacts};
use crate::providers::dialects::ListedModel;
use crate::providers::discovery;
use crate::providers::guide::Guide;

pub(super) struct Snapshot {
    pub(super) entries: BTreeMap<String, Entry>,
    pub(super) catalog: Arc<Catalog>,
    pub(super) models: Arc<[ModelInfo]>,
}

const MAX_CLOSE_MATCHES: usize = 3;
pub(super) const MAX_SHOWN_NAME: usize = 80;

/// Whose model is the default where the user has no wish: what most people with several keys
/// expect, in this order.
const PREFERRED: [&str; 3] = ["anthropic", "openai", "github-copilot"];

impl Snapshot {
    pub(super) fn new(entries: BTreeMap<String, Entry>, catalog: Arc<Catalog>) -> Self {
        let usable = entries.iter().filter(|(_, entry)| entry.is_usable());
        let all = usable.flat_map(|(id, entry)| {
            let models = models_of(id, entry, &catalog).into_iter();
            models.map(|model| ModelInfo { web_search: entry.searches(model.id.model()), ..model })
        });
        let mut models: Vec<ModelInfo> = all.collect();
        models.sort_by(|a, b| a.id.cmp(&b.id));
        models.push(Guide::model());
        Self { entries, catalog, models: models.into() }
    }

    /// What is known of a model; an unlisted model of a known provider by its name only.
    pub(super) fn info(&self, id: &ModelId) -> Option<ModelInfo> {
        if let Some(listed) = self.models.iter().find(|model| model.id == *id) {
            return Some(listed.clone());
        }
        let entry = self.entries.get(id.provider())?;
        let alone = [ListedModel { name: id.model().to_owned(), ..ListedModel::default() }];
        let facts = |real: &str, written: &str| facts(&self.catalog, entry, real, written);
        let known = discovery::catalogue(id.provider(), &entry.config, &alone, &facts);
        let known = known.into_iter().find(|model| model.id == *id);
        known.map(|model| ModelInfo { web_search: entry.searches(model.id.model()), ..model })
    }

    pub(super) fn find(&self, wanted: &str, current: Option<&ModelId>) -> Option<ModelId> {
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

    /// The main model of a preferred vendor, else a model the user wrote down, else one of Ollama,
    /// else any vendor's main model, else the first there is. What is known before the first
    /// refresh comes before what is only found by it, so that the selection does not jump.
    pub(super) fn first_choice(&self) -> ModelId {
        let preferred = PREFERRED.iter().find_map(|id| self.main_model(self.entries.get(*id)?));
        let written = || {
            let is_written = |model: &&ModelInfo| {
                let entry = self.entries.get(model.id.provider());
                entry.is_some_and(|entry| entry.own_models.contains(model.id.model()))
            };
            self.models.iter().find(is_written).map(|model| model.id.clone())
        };
        let of_ollama =
            || self.models.iter().find(|model| model.id.provider() == "ollama").map(|model| model.id.clone());
        let any_main = || self.entries.values().find_map(|entry| self.main_model(entry));
        // The list is never empty, and its last element is the guide.
        let first = || self.models.first().map_or_else(|| Guide::model().id, |model| model.id.clone());
        preferred.or_else(written).or_else(of_ollama).or_else(any_main).unwrap_or_else(first)
    }

    pub(super) fn close_to(&self, wanted: &str) -> Vec<ModelId> {
        let wanted = crate::base::text::prefix(wanted, MAX_SHOWN_NAME).to_lowercase();
        let real = self.models.iter().filter(|model| model.id.provider() != Guide::ID);
        let mut scored: Vec<(usize, &ModelId)> = real
            .filter_map(|model| Some((similar::dissimilarity(&wanted, &model.id.as_str().to_lowercase())?, &model.id)))
            .collect();
        scored.sort();
        scored.into_iter().take(MAX_CLOSE_MATCHES).map(|(_, id)| id.clone()).collect()
    }

    /// The vendor's model to begin with, if it is there and can be used.
    fn main_model(&self, entry: &Entry) -> Option<ModelId> {
        let vendor = entry.vendor?;
        let id = ModelId::new(vendor.id, vendor.default_model?);
        self.models.iter().any(|model| model.id == id).then_some(id)
    }
}

impl Entry {
    /// Whether its models can be offered: some vendors answer nobody without a key.
    pub(super) fn is_usable(&self) -> bool {
        let needs_login = self.session.is_some() || self.vendor.is_some_and(|vendor| vendor.needs_key);
        self.key_source != KeySource::None || !needs_login
    }

    pub(super) fn model(&self, name: &str) -> ModelConfig {
        self.config.models.get(name).cloned().unwrap_or_default()
    }

    /// Whether the provider searches the web for this model: only the vendor itself does, at its own
    /// address, and not in every dialect.
    fn searches(&self, name: &str) -> bool {
        let (Some(vendor), Some(api)) = (self.vendor, self.config.api.as_deref()) else { return false };
        let real = self.config.models.get(name).and_then(|model| model.model_name.as_deref()).unwrap_or(name);
        let at_home = vendor.endpoints.iter().any(|endpoint| {
            endpoint.api == api && endpoint.url.is_some() && endpoint.url == self.config.url.as_deref()
        });
        at_home && api != "openai-chat" && vendor.searching_models.iter().any(|prefix| real.starts_with(prefix))
    }

    pub(super) fn is_on_this_machine(&self) -> bool {
        let url = self.config.url.as_deref().and_then(|url| reqwest::Url::parse(url).ok());
        let host = url.as_ref().and_then(reqwest::Url::host_str).unwrap_or_default();
        matches!(host, "localhost" | "127.0.0.1" | "[::1]" | "0.0.0.0")
    }
}

fn models_of(id: &str, entry: &Entry, catalog: &Catalog) -> Vec<ModelInfo> {
    let facts = |real: &str, written: &str| facts(catalog, entry, real, written);
    // What a vendor has that every customer sets up alone is not what it has in general.
    let is_common = entry.vendor.is_none_or(|vendor| vendor.endpoints.iter().any(|endpoint| endpoint.url.is_some()));
    if entry.list_failed && entry.listed.is_empty() && entry.config.fetch_models && is_common {
        // The provider did not say what it has; the catalogue may know.
        let known = |name: &str| ListedModel { name: name.to_owned(), ..ListedModel::default() };
        let names = discovery::usable(catalog.names_of(id).map(known).collect());
        return discovery::catalogue(id, &entry.config, &names, &facts);
    }
    discovery::catalogue(id, &entry.config, &entry.listed, &facts)
}

/// A server on this machine runs known models, but with limits of its own and for nothing.
fn facts(catalog: &Catalog, entry: &Entry, real: &str, written: &str) -> ModelFacts {
    let facts = catalog.facts(entry.upstream.id(), real, written);
    match entry.is_on_this_machine() {
        true => ModelFacts { context: None, output: None, cost: None, ..facts },
        false => facts,
    }
}
