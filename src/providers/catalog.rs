//! What is publicly known of models: limits, prices and abilities, from the models.dev catalogue.
//!
//! A small copy is built in, so that the main models are known without any network. The whole
//! catalogue is fetched in the background at most once a day and kept on disk; of it only a packed
//! extract stays in memory: every model of the providers in use, and one entry per name of the
//! others, for proxies and servers that offer a known model under their own id.

pub mod cache;
mod embedded;
pub mod fetch;
mod packed;
mod parse;

use std::collections::BTreeMap;

use crate::llm::Cost;

use packed::PackedFacts;
use parse::{Model, Source};

/// A larger catalogue is not read.
pub const MAX_BYTES: usize = 8 * 1024 * 1024;

/// What is known of a model; everything may be unknown.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct ModelFacts {
    pub context: Option<u64>,
    pub output: Option<u64>,
    pub cost: Option<Cost>,
    pub reasoning: Option<bool>,
    pub tools: Option<bool>,
    pub vision: Option<bool>,
}

/// A provider whose models are wanted in full.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wanted {
    /// The id of the provider here.
    pub id: String,
    /// Its id in the catalogue.
    pub catalogue_id: String,
    /// Where it is; a catalogue entry with the same address is the same provider.
    pub url: Option<String>,
}

/// The extract.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Catalog {
    /// By the provider's id here, then by the model's name.
    providers: BTreeMap<Box<str>, BTreeMap<Box<str>, Kept>>,
    /// By the lower-cased name, for models of any provider.
    names: BTreeMap<Box<str>, PackedFacts>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
struct Kept {
    facts: PackedFacts,
    deprecated: bool,
}

const MAX_NAMES: usize = 6_000;
const MAX_MODELS_OF_ONE: usize = 2_000;
const MAX_NAME_BYTES: usize = 128;

impl Catalog {
    /// The built-in copy alone.
    pub fn embedded(wanted: &[Wanted]) -> Self {
        let mut catalog = Self::default();
        for provider in embedded::PROVIDERS {
            let model = |(name, facts): &(&str, ModelFacts)| Model {
                name: (*name).to_owned(),
                facts: *facts,
                deprecated: false,
            };
            let source = Source {
                id: provider.id.to_owned(),
                api: provider.api.map(str::to_owned),
                models: provider.models.iter().map(model).collect(),
            };
            catalog.add_provider(&source, wanted);
        }
        catalog
    }

    /// The built-in copy under what `body`, a catalogue as models.dev serves it, says.
    pub fn from_body(body: &[u8], wanted: &[Wanted]) -> Result<Self, String> {
        let mut fetched = Self::default();
        fetched.add(body, wanted)?;
        let mut catalog = Self::embedded(wanted);
        for (id, models) in fetched.providers {
            catalog.providers.entry(id).or_default().extend(models);
        }
        catalog.names.extend(fetched.names);
        Ok(catalog)
    }

    /// What is known of the model that `provider` offers: under its own name there (`real` is the
    /// name that is sent, `written` the one the user sees), else as any provider's model of that
    /// name.
    pub fn facts(&self, provider: &str, real: &str, written: &str) -> ModelFacts {
        self.own_facts(provider, real, written).or_else(|| self.named_facts(real, written)).unwrap_or_default()
    }

    /// Only what this very provider is known to offer.
    pub fn own_facts(&self, provider: &str, real: &str, written: &str) -> Option<ModelFacts> {
        let models = self.providers.get(provider)?;
        models.get(real).or_else(|| models.get(written)).map(|kept| kept.facts.unpack())
    }

    /// The names a provider's models have, for when it does not list them itself. Models that are
    /// about to be switched off are not offered.
    pub fn names_of(&self, provider: &str) -> impl Iterator<Item = &str> {
        let models = self.providers.get(provider).into_iter().flatten();
        models.filter(|(_, kept)| !kept.deprecated).map(|(name, _)| &**name)
    }

    /// About how much memory this takes.
    pub fn approximate_bytes(&self) -> usize {
        const PER_ENTRY: usize = 3 * size_of::<usize>();
        let names = self.names.keys().map(|name| name.len() + size_of::<PackedFacts>() + PER_ENTRY);
        let own = self.providers.values().flat_map(BTreeMap::keys);
        names.chain(own.map(|name| name.len() + size_of::<Kept>() + PER_ENTRY)).sum()
    }

    fn named_facts(&self, real: &str, written: &str) -> Option<ModelFacts> {
        let find = |name: &str| self.names.get(name.to_lowercase().as_str());
        find(real).or_else(|| find(written)).map(|facts| facts.unpack())
    }

    fn add(&mut self, body: &[u8], wanted: &[Wanted]) -> Result<(), String> {
        if body.len() > MAX_BYTES {
            return Err("the catalogue is too large".to_owned());
        }
        parse::each_provider(body, |source| self.add_provider(&source, wanted))
    }

    fn add_provider(&mut self, source: &Source, wanted: &[Wanted]) {
        // The maker of a model knows it better than those who resell it.
        let maker = super::vendors::VENDORS
            .iter()
            .any(|vendor| vendor.catalogue.unwrap_or(vendor.id) == source.id && !vendor.models.is_empty());
        for model in source.models.iter().filter(|model| model.name.len() <= MAX_NAME_BYTES) {
            let name: Box<str> = model.name.to_lowercase().into();
            let facts = PackedFacts::pack(&model.facts);
            if self.names.contains_key(&name) {
                if maker {
                    self.names.insert(name, facts);
                }
            } else if self.names.len() < MAX_NAMES {
                self.names.insert(name, facts);
            }
        }
        for provider in wanted.iter().filter(|provider| provider.is(source)) {
            let kept = |model: &Model| {
                let entry = Kept { facts: PackedFacts::pack(&model.facts), deprecated: model.deprecated };
                (model.name.as_str().into(), entry)
            };
            let models = source.models.iter().take(MAX_MODELS_OF_ONE).map(kept);
            self.providers.entry(provider.id.as_str().into()).or_default().extend(models);
        }
    }
}

impl Wanted {
    /// The entry with the same address; the same id only counts for an entry without one, because
    /// several entries of the catalogue share a name with what users call their own servers.
    fn is(&self, source: &Source) -> bool {
        let plain = |url: &str| url.trim_end_matches('/').to_lowercase();
        match (&source.api, &self.url) {
            (Some(api), Some(url)) if plain(api) == plain(url) => true,
            (Some(_), _) => self.catalogue_id == source.id && super::vendors::find(&self.id).is_some(),
            (None, _) => self.catalogue_id == source.id,
        }
    }
}

#[cfg(test)]
mod tests;
