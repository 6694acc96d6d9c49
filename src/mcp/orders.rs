//! What a server's actor is asked to do: a state that is wanted, not a queue of commands, so it never
//! grows and the newest wish is the one that counts.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use super::shared::Definition;

#[derive(Clone)]
pub(super) struct Wish {
    pub(super) definition: Arc<Definition>,
    /// Whether it should run.
    pub(super) run: bool,
    /// Counts how often it was asked to start anew, to log in, to log out, and to look at the folders.
    pub(super) restarts: u64,
    pub(super) logins: u64,
    pub(super) logouts: u64,
    pub(super) roots: u64,
    /// It is to end for good.
    pub(super) quit: bool,
    /// Another number for every change.
    pub(super) version: u64,
}

pub(super) struct Orders {
    wish: Mutex<Wish>,
    news: Notify,
}

impl Wish {
    /// Whether a connection that was made for `self` must end because of `new`.
    pub(super) fn ends_with(&self, new: &Self) -> bool {
        let same_client = self.definition.workspace == new.definition.workspace
            || new.definition.config.auth_scope != crate::config::AuthScope::Workspace;
        new.quit
            || !new.run
            || new.restarts != self.restarts
            || new.logouts != self.logouts
            || !self.definition.config.runs_like(&new.definition.config)
            || !same_client
    }

    /// Whether there is anything new for a server that rests.
    fn differs(&self, new: &Self) -> bool {
        new.quit
            || self.run != new.run
            || new.restarts != self.restarts
            || new.logins != self.logins
            || new.logouts != self.logouts
            || new.definition.config != self.definition.config
    }
}

impl Orders {
    pub(super) fn new(definition: Arc<Definition>) -> Self {
        let run = !definition.config.disabled;
        let wish = Wish { definition, run, restarts: 0, logins: 0, logouts: 0, roots: 0, quit: false, version: 0 };
        Self { wish: Mutex::new(wish), news: Notify::new() }
    }

    pub(super) fn give(&self, change: impl FnOnce(&mut Wish)) {
        let mut wish = self.wish();
        change(&mut wish);
        wish.version += 1;
        drop(wish);
        self.news.notify_one();
    }

    pub(super) fn now(&self) -> Wish {
        self.wish().clone()
    }

    /// Waits for any change since `wish`. For the actor alone.
    pub(super) async fn changed(&self, wish: &Wish) {
        while self.wish().version == wish.version {
            self.news.notified().await;
        }
    }

    /// Waits until a connection that was made for `wish` must end.
    pub(super) async fn ended(&self, wish: &Wish) {
        while !wish.ends_with(&self.now()) {
            self.news.notified().await;
        }
    }

    /// Waits until there is something new for a server that rests.
    pub(super) async fn differ(&self, wish: &Wish) {
        while !wish.differs(&self.now()) {
            self.news.notified().await;
        }
    }

    fn wish(&self) -> MutexGuard<'_, Wish> {
        self.wish.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
