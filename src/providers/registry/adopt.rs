//! A new registry takes over what the old one has found out, so that a change of the configuration
//! does not make models disappear until every provider has been asked again.

use std::sync::{Arc, PoisonError};

use super::{Registry, Snapshot};

impl Registry {
    /// Takes over the model lists of providers that are configured as before, and the servers that
    /// were found on this machine and are still looked for.
    pub fn adopt(&self, previous: &Registry) {
        let (before, now) = (previous.inner.snapshot(), self.inner.snapshot());
        let mut entries = now.entries.clone();
        for (id, old) in &before.entries {
            match entries.get_mut(id) {
                Some(entry) if entry.config == old.config && entry.key_source == old.key_source => {
                    entry.listed = old.listed.clone();
                }
                Some(_) => {}
                None => {
                    let same = |server: &&super::LocalServer| {
                        server.id == *id && old.config.url.as_deref() == Some(server.url.as_str())
                    };
                    if old.local && self.inner.local_servers.iter().any(|server| same(&server)) {
                        entries.insert(id.clone(), old.clone());
                    }
                }
            }
        }
        *self.inner.snapshot.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(Snapshot::new(entries));
    }
}
