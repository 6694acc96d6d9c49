//! Everything about models that takes time: providers' own lists, servers on this machine, and the
//! public catalogue. None of it is waited for by a prompt.

use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};

use futures_util::future::{join, join_all};

use super::snapshot::Snapshot;
use super::{Entry, Inner, Registry, build};
use crate::base::task;
use crate::base::time::now_ms;
use crate::providers::catalog::fetch::Fetched;
use crate::providers::catalog::{Catalog, Wanted, cache};
use crate::providers::discovery::{self, Listing};

impl Registry {
    /// Asks providers for their models and looks for local servers, all at once and each bounded
    /// in time. Returns whether anything changed. A list that cannot be had leaves the last one.
    pub async fn refresh(&self) -> bool {
        let inner = &self.inner;
        // A slow refresh must not overwrite the result of a later one.
        let _turn = inner.refreshing.lock().await;
        let before = inner.snapshot();
        let asked = before.entries.values().filter(|entry| !entry.local && entry.config.fetch_models);
        let lists = asked.filter(|entry| entry.is_usable()).map(|entry| async {
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
            let Some(entry) = entries.get_mut(&id) else { continue };
            match listing {
                Listing::Models(models) => {
                    *entry = Entry { listed: models.into(), list_failed: false, ..entry.clone() }
                }
                Listing::Failed | Listing::TimedOut => entry.list_failed = true,
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
        // The catalogue may have changed meanwhile; entries change only here.
        inner.replace(|now| Snapshot::new(entries, Arc::clone(&now.catalog)))
    }

    /// Reads the catalogue of models from the disk, the first time, and fetches it when that copy
    /// is older than a day. Returns whether anything changed. Failures are silent: what is built
    /// in stays.
    pub async fn refresh_catalogue(&self) -> bool {
        let inner = &self.inner;
        if !inner.models_dev {
            return false;
        }
        let _turn = inner.fetching.lock().await;
        let mut changed = false;
        let mut etag = None;
        if let Some(directory) = inner.environment.cache_dir.clone() {
            let wanted = Arc::clone(&inner.wanted);
            let cached = blocking(move || cache::load(&directory, &wanted)).await.flatten();
            if let Some(cached) = cached {
                etag.clone_from(&cached.etag);
                let fresh = cached.is_fresh(now_ms());
                if !inner.catalogue_read.swap(true, Ordering::AcqRel) {
                    changed = inner.put_catalog(cached.catalog);
                }
                if fresh {
                    return changed;
                }
            }
        }
        let Some(fetch) = &inner.wiring.fetch_catalogue else { return changed };
        match fetch(etag).await {
            Ok(fetched) => self.keep(fetched).await || changed,
            Err(error) => {
                tracing::debug!(error, "the catalogue of models was not fetched");
                changed
            }
        }
    }

    async fn keep(&self, fetched: Fetched) -> bool {
        let inner = &self.inner;
        let directory = inner.environment.cache_dir.clone();
        let wanted = Arc::clone(&inner.wanted);
        let work = move || match fetched {
            Fetched::Unchanged => {
                report(directory.map(|directory| cache::touch(&directory, now_ms())));
                None
            }
            Fetched::Body { body, etag } => match Catalog::from_body(&body, &wanted) {
                Ok(catalog) => {
                    report(directory.map(|directory| cache::store(&directory, &body, etag.as_deref(), now_ms())));
                    Some(catalog)
                }
                Err(error) => {
                    tracing::debug!(error, "the fetched catalogue cannot be read");
                    None
                }
            },
        };
        match blocking(work).await.flatten() {
            Some(catalog) => inner.put_catalog(catalog),
            None => false,
        }
    }
}

impl Inner {
    fn put_catalog(&self, catalog: Catalog) -> bool {
        tracing::debug!(bytes = catalog.approximate_bytes(), "another catalogue of models");
        self.replace(|now| Snapshot::new(now.entries.clone(), Arc::new(catalog)))
    }

    /// Puts another snapshot in the place of the present one. Returns whether a client would see
    /// the difference.
    pub(super) fn replace(&self, make: impl FnOnce(&Snapshot) -> Snapshot) -> bool {
        let mut place = self.snapshot.write().unwrap_or_else(PoisonError::into_inner);
        let after = make(&place);
        let changed = after.models != place.models || !after.entries.keys().eq(place.entries.keys());
        *place = Arc::new(after);
        changed
    }
}

/// Every provider whose models are wanted from the catalogue in full.
pub(super) fn wanted<'a>(entries: impl Iterator<Item = (&'a String, &'a Entry)>) -> Arc<[Wanted]> {
    let row = |(id, entry): (&String, &Entry)| Wanted {
        id: id.clone(),
        catalogue_id: entry.vendor.and_then(|vendor| vendor.catalogue).unwrap_or(id).to_owned(),
        url: entry.config.url.clone(),
    };
    entries.map(row).collect()
}

async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    task::blocking(work).await.ok()
}

fn report(written: Option<std::io::Result<()>>) {
    if let Some(Err(error)) = written {
        tracing::debug!(%error, "the catalogue of models was not kept");
    }
}
