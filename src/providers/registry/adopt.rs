//! A new registry takes over what the old one has found out, so that a change of the configuration
//! does not make models disappear until every provider has been asked again.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::{Registry, Snapshot};

impl Registry {
    /// Takes over the model lists of providers that are configured as before, and the servers that
    /// were found on this machine and are still looked for, and the catalogue.
    pub fn adopt(&self, previous: &Registry) {
        let (before, now) = (previous.inner.snapshot(), self.inner.snapshot());
        let mut entries = now.entries.clone();
        for (id, old) in &before.entries {
            match entries.get_mut(id) {
                Some(entry) if entry.config == old.config && entry.key_source == old.key_source => {
                    entry.listed = old.listed.clone();
                    entry.list_failed = old.list_failed;
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
        let mut catalog = Arc::clone(&now.catalog);
        // The extract of the catalogue is made for certain providers.
        if self.inner.models_dev && self.inner.wanted == previous.inner.wanted {
            catalog = Arc::clone(&before.catalog);
            let read = previous.inner.catalogue_read.load(Ordering::Acquire);
            self.inner.catalogue_read.store(read, Ordering::Release);
        }
        self.inner.replace(|_| Snapshot::new(entries, catalog));
    }
}
