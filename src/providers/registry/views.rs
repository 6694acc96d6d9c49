//! Providers as they are shown to a person. Nothing here holds a key.

use super::{Entry, Inner, Registry, build};
use crate::base::time;
use crate::providers::oauth::Way;
use crate::providers::vendors::{Place, VENDORS, Vendor};

const SECONDS_OF_A_DAY: i64 = 24 * 3600;

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
    /// How the user can log in, besides entering a key.
    pub ways: Vec<Way>,
    /// When its login ends, in seconds since 1970; absent when it renews itself.
    pub expires_at: Option<i64>,
}

/// Where a key was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeySource {
    Config,
    /// Entered by the user.
    Login,
    /// Tokens of a login.
    OAuth,
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
    /// It has a login that ends within a day.
    Expiring,
    /// It has a login that has ended.
    Expired,
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
                ways: Vec::new(),
                expires_at: None,
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
            ways: entry.session.as_ref().map(|session| session.client().ways()).unwrap_or_default(),
            expires_at: entry.end_of_login(),
        };
        snapshot.entries.iter().map(view).collect()
    }
}

impl Entry {
    /// A login that can be renewed has no end that the user should care about.
    fn end_of_login(&self) -> Option<i64> {
        let session = self.session.as_ref().filter(|_| self.key_source == KeySource::OAuth)?;
        let tokens = session.tokens()?;
        tokens.expires_at.filter(|_| tokens.refresh.is_none())
    }

    fn state(&self) -> ProviderState {
        if self.key_source != KeySource::None {
            let left = self.end_of_login().map(|end| end - time::now_ms() / 1000);
            return match left {
                Some(..=0) => ProviderState::Expired,
                Some(..SECONDS_OF_A_DAY) => ProviderState::Expiring,
                _ => ProviderState::Authenticated,
            };
        }
        if self.session.is_some() {
            return ProviderState::Unauthenticated;
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
