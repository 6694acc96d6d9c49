//! Keeps what files were before tools of a chat changed them.

use std::sync::atomic::{AtomicI64, Ordering};

use futures_util::future::BoxFuture;

use crate::base::ChatId;
use crate::store::{NewChange, Store};
use crate::tool::{Journal, PlannedChange};

/// The journal of one chat, in the store.
pub(super) struct ChatJournal {
    store: Store,
    chat: ChatId,
    /// Tells the changes of one call apart.
    next: AtomicI64,
}

impl ChatJournal {
    pub(super) fn new(store: Store, chat: ChatId) -> Self {
        Self { store, chat, next: AtomicI64::new(0) }
    }
}

impl Journal for ChatJournal {
    fn before_change(&self, change: PlannedChange) -> BoxFuture<'_, Result<(), String>> {
        Box::pin(async move {
            let order = self.next.fetch_add(1, Ordering::Relaxed);
            let PlannedChange { call, path, before, after } = change;
            let change = NewChange { call, order, path, before, after };
            self.store.record_change(&self.chat, change).await.map_err(|error| error.to_string())
        })
    }
}
