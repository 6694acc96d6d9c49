//! Keeps a key that a user entered, puts it to use, and tells the client.

use std::sync::Arc;
use std::time::Duration;

use super::login::{self, LoginError, LoginOption};
use super::{Event, Settings, Shared, emitter};
use crate::config::Secret;

/// Clients wait about ten seconds for the answer to a login.
const LIST_AFTER_LOGIN: Duration = Duration::from_secs(4);

impl Shared {
    pub(super) fn login_options(&self) -> Vec<LoginOption> {
        let views = self.settings().registry.with_keys();
        views.into_iter().filter_map(login::option).collect()
    }

    /// Keeps a key, or forgets it when there is none, and goes on with the providers that follow.
    pub(super) async fn log_in(&self, provider: &str, key: Option<Secret>) -> Result<String, LoginError> {
        let option = self.login_options().into_iter().find(|option| option.id == provider);
        let option = option.ok_or_else(|| LoginError::UnknownProvider(provider.to_owned()))?;
        if let (Some(reason), true) = (&option.unavailable, key.is_some()) {
            return Err(LoginError::NoWayIn { provider: option.label, reason: reason.clone() });
        }
        let (secrets, id, kept) = (self.secrets.clone(), provider.to_owned(), key.clone());
        let keeping = tokio::task::spawn_blocking(move || match &kept {
            Some(key) => secrets.set_api_key(&id, key),
            None => secrets.remove_api_key(&id).map(drop),
        });
        let failed = |error: std::io::Error| LoginError::NotKept(error.to_string());
        keeping.await.map_err(|error| failed(error.into()))?.map_err(failed)?;
        let entered = key.is_some();
        let settings = self.settings();
        let registry = settings.registry.with_login(provider, key);
        // What the key opens is what the user wants to see; a slow provider is asked in the background.
        registry.adopt(&settings.registry);
        let listed = tokio::time::timeout(LIST_AFTER_LOGIN, registry.refresh()).await.is_ok();
        let used = registry.describe().into_iter().find(|view| view.id == provider).map(|view| view.key_source);
        let changed = Settings::new(registry, Arc::clone(&settings.loaded));
        self.reconfigure(changed).await;
        emitter::say(&*self.sink, Event::ProviderChanged { id: provider.to_owned() }).await;
        if !listed {
            let (registry, sink) = (self.settings().registry.clone(), Arc::clone(&self.sink));
            tokio::spawn(async move {
                if registry.refresh().await {
                    emitter::say(&*sink, Event::ModelsChanged).await;
                }
            });
        }
        Ok(login::outcome(&option.label, entered, used))
    }
}
