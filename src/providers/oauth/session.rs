//! The tokens of one provider while a server runs: whoever needs one gets a fresh one, and however
//! many ask at once, the authorization server is asked once.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::Value;

use super::exchange::{self, Refusal};
use super::{Client, Tokens};
use crate::base::task;
use crate::base::time;
use crate::config::Secret;
use crate::http;
use crate::llm::ErrorClass;
use crate::state::Logins;

/// Another server that renews the same login is done within this.
const LOCK_PATIENCE: Duration = Duration::from_secs(40);

/// Why there is no token to send.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Failure {
    /// Whether it is worth another try.
    pub(super) class: ErrorClass,
    /// For the user.
    pub(super) text: String,
}

impl From<String> for Failure {
    fn from(text: String) -> Self {
        Self { class: ErrorClass::Auth, text }
    }
}

/// A provider's login.
#[derive(Debug)]
pub struct Session {
    pub(super) provider: String,
    pub(super) client: Client,
    pub(super) http: http::Client,
    /// Where tokens outlive the server; nowhere in a server that keeps nothing.
    kept: Option<Logins>,
    current: Mutex<Option<Tokens>>,
    /// Held by the one who renews.
    renewing: tokio::sync::Mutex<()>,
}

impl Session {
    /// Without I/O: `tokens` are those that were kept, if any.
    pub(super) fn new(
        provider: &str,
        client: Client,
        http: http::Client,
        kept: Option<Logins>,
        tokens: Option<Tokens>,
    ) -> Self {
        Self {
            provider: provider.to_owned(),
            client,
            http,
            kept,
            current: Mutex::new(tokens),
            renewing: tokio::sync::Mutex::new(()),
        }
    }

    pub fn client(&self) -> &Client {
        &self.client
    }

    /// What there is, fresh or not.
    pub fn tokens(&self) -> Option<Tokens> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Keeps what a login gave.
    pub(super) async fn keep(&self, tokens: Tokens) -> Result<(), String> {
        if let Some(logins) = self.kept.clone() {
            let (provider, value) = (self.provider.clone(), tokens.to_keep(&self.client));
            blocking(move || logins.set(&provider, value)).await?;
        }
        self.put(Some(tokens));
        Ok(())
    }

    /// Takes up what is kept now: the login may have been completed by an earlier session of the
    /// same provider, before the configuration changed.
    pub async fn look_again(&self) -> Result<(), String> {
        let newest = self.read().await?;
        self.put(newest);
        Ok(())
    }

    /// Forgets the login, here and where it is kept.
    pub async fn forget(&self) -> Result<(), String> {
        self.put(None);
        match self.kept.clone() {
            Some(logins) => {
                let provider = self.provider.clone();
                blocking(move || logins.remove(&provider)).await.map(drop)
            }
            None => Ok(()),
        }
    }

    /// A token to send. With `refused`, one that is not that one.
    pub(super) async fn access(self: &Arc<Self>, refused: Option<&Secret>) -> Result<Secret, Failure> {
        let usable = |tokens: &Tokens, now: i64| tokens.is_fresh(now) && refused != Some(&tokens.access);
        let current = || self.tokens().filter(|tokens| usable(tokens, now()));
        if let Some(tokens) = current() {
            return Ok(tokens.access);
        }
        let _turn = self.renewing.lock().await;
        if let Some(tokens) = current() {
            return Ok(tokens.access);
        }
        // A refresh token works once. Whoever gives up waiting must not take its successor along,
        // so the renewal goes on by itself.
        let (session, refused) = (Arc::clone(self), refused.cloned());
        let renewal = task::spawn(async move { session.renew(refused.as_ref()).await });
        renewal.await.unwrap_or_else(|_| Err("The login could not be renewed.".to_owned().into()))
    }

    /// Whether a token that is refused can be replaced without the user.
    pub(super) fn can_renew(&self) -> bool {
        self.tokens().is_some_and(|tokens| tokens.refresh.is_some())
    }

    async fn renew(&self, refused: Option<&Secret>) -> Result<Secret, Failure> {
        // Other servers of the user share the login.
        let _lock = match self.kept.clone() {
            Some(logins) => {
                let locking = tokio::time::timeout(LOCK_PATIENCE, blocking(move || logins.lock_refresh()));
                Some(locking.await.map_err(|_| "Another server holds the logins.".to_owned())??)
            }
            None => None,
        };
        // One of them may have renewed it, or ended it.
        let newest = self.read().await?;
        self.put(newest.clone());
        let Some(tokens) = newest else { return Err(self.log_in("You are not logged in.")) };
        if tokens.is_fresh(now()) && refused != Some(&tokens.access) {
            return Ok(tokens.access);
        }
        let Some(refresh) = &tokens.refresh else { return Err(self.log_in("The login has ended.")) };
        let fields = [("grant_type", "refresh_token"), ("refresh_token", refresh.expose())];
        match exchange::tokens(&self.http, &self.client, &fields).await {
            Ok(new) => {
                // Where no new one comes, the old one goes on.
                let new = Tokens { refresh: new.refresh.or(tokens.refresh), ..new };
                self.keep(new.clone()).await?;
                tracing::info!(provider = self.provider, "the login was renewed");
                Ok(new.access)
            }
            Err(Refusal::Ended(why)) => {
                // Nothing will make it good again; the user should see it as what it is.
                let ended = Tokens { refresh: None, expires_at: Some(0), ..tokens };
                self.keep(ended).await?;
                Err(self.log_in(&format!("The login has ended ({why}).")))
            }
            Err(other) => {
                let class = match other {
                    Refusal::Unreachable(_) => ErrorClass::Network,
                    _ => ErrorClass::Auth,
                };
                Err(Failure { class, text: format!("The login at {} could not be renewed: {other}.", self.provider) })
            }
        }
    }

    fn log_in(&self, what: &str) -> Failure {
        format!("{what} Log in with `/login {}`.", self.provider).into()
    }

    async fn read(&self) -> Result<Option<Tokens>, String> {
        let Some(logins) = self.kept.clone() else { return Ok(self.tokens()) };
        let provider = self.provider.clone();
        let value = blocking(move || logins.get(&provider)).await?;
        Ok(value.and_then(|value| Tokens::kept(&value, &self.client)))
    }

    fn put(&self, tokens: Option<Tokens>) {
        *self.current.lock().unwrap_or_else(PoisonError::into_inner) = tokens;
    }
}

/// The logins of all providers of a server. Clones are the same; a session lives as long as its
/// client stays what it is, so that a change of the configuration does not renew anything twice.
#[derive(Debug, Clone, Default)]
pub struct Sessions {
    kept: Option<Logins>,
    /// As they were found when the server started.
    found: Arc<BTreeMap<String, Value>>,
    open: Arc<Mutex<BTreeMap<String, Arc<Session>>>>,
}

impl Sessions {
    /// Reads what is kept; a file that cannot be read is the caller's to report.
    pub fn kept_in(logins: Logins) -> std::io::Result<Self> {
        let found = Arc::new(logins.all()?);
        Ok(Self { kept: Some(logins), found, open: Arc::default() })
    }

    /// The login of a provider with this client.
    pub(in crate::providers) fn of(&self, provider: &str, client: &Client, http: &http::Client) -> Arc<Session> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(session) = open.get(provider)
            && session.client == *client
        {
            return Arc::clone(session);
        }
        let tokens = self.found.get(provider).and_then(|value| Tokens::kept(value, client));
        let session = Session::new(provider, client.clone(), http.clone(), self.kept.clone(), tokens);
        let session = Arc::new(session);
        open.insert(provider.to_owned(), Arc::clone(&session));
        session
    }
}

fn now() -> i64 {
    time::now_ms() / 1000
}

async fn blocking<T: Send + 'static>(work: impl FnOnce() -> std::io::Result<T> + Send + 'static) -> Result<T, String> {
    let done = task::blocking(work).await.map_err(|_| "the file of logins is stuck".to_owned())?;
    done.map_err(|error| format!("The file of logins: {error}."))
}
