//! Providers as they are shown to a person. Nothing here holds a key.

use super::{Entry, Inner, Registry, build};
use crate::providers::vendors::{Place, VENDORS, Vendor};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProviderView {
    pub id: String,
    /// Its name for people, when it is a known vendor.
    pub label: Option<&'static str>,
    pub api: String,
    /// Without user name, password and query, which may be secrets.
    pub url: String,
    pub has_key: bool,
    pub key_source: KeySource,
    pub state: ProviderState,
    pub model_count: usize,
    /// Found on this machine, not configured.
    pub local: bool,
    /// Written in the configuration.
    pub configured: bool,
}

/// Where a key was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeySource {
    Config,
    /// Entered by the user.
    Login,
    /// The variable's name.
    Env(String),
    Netrc,
    None,
}

/// Whether a provider can be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProviderState {
    /// It has a key.
    Authenticated,
    /// It needs a key and has none.
    Unauthenticated,
    /// It needs none.
    Local,
    /// It would be on this machine, but it does not answer.
    NotRunning,
    /// There is no way to log in, for this reason.
    NoLogin(&'static str),
}

impl Registry {
    /// Every real provider, for a diagnosis.
    pub fn describe(&self) -> Vec<ProviderView> {
        self.inner.describe()
    }

    /// Every provider a user may want to know of: the real ones, the main vendors without a key,
    /// local servers that do not run, and vendors that cannot be used, with the reason.
    pub fn overview(&self) -> Vec<ProviderView> {
        let looked_for = |vendor: &Vendor| self.inner.local_servers.iter().any(|server| server.id == vendor.id);
        self.with_vendors(|vendor| match vendor.no_login {
            Some(reason) => Some(ProviderState::NoLogin(reason)),
            None if looked_for(vendor) => Some(ProviderState::NotRunning),
            None if vendor.needs_key => Some(ProviderState::Unauthenticated),
            None => None,
        })
    }

    /// Every provider that takes a key, whether it has one or not, and those that cannot be given
    /// one, with the reason.
    pub fn with_keys(&self) -> Vec<ProviderView> {
        let mut views = self.with_vendors(|vendor| match (vendor.no_login, vendor.place) {
            (Some(reason), _) => Some(ProviderState::NoLogin(reason)),
            (None, Place::Remote) => Some(ProviderState::Unauthenticated),
            (None, Place::Discovered | Place::Configured) => None,
        });
        views.retain(|view| !view.local);
        views
    }

    /// The real providers, and the vendors beside them that `state` has a word for.
    fn with_vendors(&self, state: impl Fn(&Vendor) -> Option<ProviderState>) -> Vec<ProviderView> {
        let mut views = self.inner.describe();
        let known: Vec<String> = views.iter().map(|view| view.id.clone()).collect();
        for vendor in VENDORS.iter().filter(|vendor| !known.iter().any(|id| id == vendor.id)) {
            let Some(state) = state(vendor) else { continue };
            let endpoint = vendor.endpoint(None, &self.inner.wiring.dialects);
            views.push(ProviderView {
                id: vendor.id.to_owned(),
                label: Some(vendor.label),
                api: endpoint.map_or_else(String::new, |endpoint| endpoint.api.to_owned()),
                url: endpoint.and_then(|endpoint| endpoint.url).unwrap_or_default().to_owned(),
                has_key: false,
                key_source: KeySource::None,
                state,
                model_count: 0,
                local: vendor.place == Place::Discovered,
                configured: false,
            });
        }
        views.sort_by(|a, b| a.id.cmp(&b.id));
        views
    }
}

impl Inner {
    pub(super) fn describe(&self) -> Vec<ProviderView> {
        let snapshot = self.snapshot();
        let view = |(id, entry): (&String, &Entry)| ProviderView {
            id: id.clone(),
            label: entry.vendor.map(|vendor| vendor.label),
            api: entry.config.api.clone().unwrap_or_default(),
            url: build::shown_url(entry.config.url.as_deref().unwrap_or_default()),
            has_key: entry.key_source != KeySource::None,
            key_source: entry.key_source.clone(),
            state: entry.state(),
            model_count: snapshot.models.iter().filter(|model| model.id.provider() == id).count(),
            local: entry.local,
            configured: entry.configured,
        };
        snapshot.entries.iter().map(view).collect()
    }
}

impl Entry {
    fn state(&self) -> ProviderState {
        if self.key_source != KeySource::None {
            return ProviderState::Authenticated;
        }
        match self.vendor {
            Some(Vendor { no_login: Some(reason), .. }) => ProviderState::NoLogin(reason),
            Some(Vendor { place: Place::Remote, .. }) => ProviderState::Unauthenticated,
            Some(Vendor { place: Place::Discovered, .. }) if self.list_failed => ProviderState::NotRunning,
            // A server of the user's own that asks for no key is as good as one on this machine.
            _ => ProviderState::Local,
        }
    }
}
