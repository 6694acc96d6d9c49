//! Where the tokens of one server are kept: an entry of the file of logins, for one address.

use std::path::Path;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rmcp::transport::auth::{AuthError, CredentialRefreshGuard, CredentialStore, StoredCredentials};
use serde::{Deserialize, Serialize};

use crate::base::task;
use crate::config::{AuthScope, Secret};
use crate::state::Logins;

/// Another server that refreshes a login is done within this.
const LOCK_PATIENCE: Duration = Duration::from_secs(20);

/// The login of one server.
#[derive(Debug, Clone)]
pub(in crate::mcp) struct Login {
    file: Logins,
    key: String,
    /// Without its query, which may hold what changes.
    url: String,
    /// Of the client that was registered for this login.
    client_secret: Arc<Mutex<Option<Secret>>>,
}

/// As it is kept.
#[derive(Serialize, Deserialize)]
struct Entry {
    url: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    client_secret: Option<String>,
    credentials: StoredCredentials,
}

impl Login {
    /// `workspace` tells the folders of one client from those of another.
    pub(in crate::mcp) fn new(data: &Path, server: &str, scope: &AuthScope, url: &str, workspace: &str) -> Self {
        let key = match scope {
            AuthScope::Global => server.to_owned(),
            AuthScope::Workspace => {
                let hash = ring::digest::digest(&ring::digest::SHA256, workspace.as_bytes());
                let short: String = hash.as_ref().iter().take(8).map(|byte| format!("{byte:02x}")).collect();
                format!("{server}#ws:{short}")
            }
            AuthScope::Named(name) => format!("{server}#scope:{name}"),
        };
        let url = url.split(['?', '#']).next().unwrap_or_default().to_owned();
        Self { file: Logins::of_mcp(data), key, url, client_secret: Arc::default() }
    }

    /// Whether there are tokens. A file that cannot be read has none.
    pub(in crate::mcp) async fn exists(&self) -> bool {
        matches!(self.read().await, Ok(Some(_)))
    }

    /// Forgets the tokens.
    pub(in crate::mcp) async fn forget(&self) -> Result<(), String> {
        self.remember_client_secret(None);
        self.clear().await.map_err(|error| error.to_string())
    }

    pub(super) fn store(&self) -> Self {
        self.clone()
    }

    pub(super) fn remember_client_secret(&self, secret: Option<Secret>) {
        *self.client_secret.lock().unwrap_or_else(PoisonError::into_inner) = secret;
    }

    /// The secret of the client that was registered, in this run or an earlier one.
    pub(super) async fn client_secret(&self) -> Option<Secret> {
        let known = self.client_secret.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if known.is_some() {
            return known;
        }
        let kept = self.read().await.ok()??.client_secret.map(Secret::new);
        self.remember_client_secret(kept.clone());
        kept
    }

    async fn read(&self) -> Result<Option<Entry>, AuthError> {
        let (file, key) = (self.file.clone(), self.key.clone());
        let value = blocking(move || file.get(&key)).await?;
        // What an older version wrote, or somebody else, is no login.
        let entry: Option<Entry> = value.and_then(|value| serde_json::from_value(value).ok());
        Ok(entry.filter(|entry| entry.url == self.url && entry.credentials.token_response.is_some()))
    }
}

type Answer<'a, T> = Pin<Box<dyn Future<Output = Result<T, AuthError>> + Send + 'a>>;

// Written as the library's macro would write it.
impl CredentialStore for Login {
    fn load<'a, 'b>(&'a self) -> Answer<'b, Option<StoredCredentials>>
    where
        'a: 'b,
        Self: 'b,
    {
        Box::pin(async { Ok(self.read().await?.map(|entry| entry.credentials)) })
    }

    fn save<'a, 'b>(&'a self, credentials: StoredCredentials) -> Answer<'b, ()>
    where
        'a: 'b,
        Self: 'b,
    {
        Box::pin(async {
            let client_secret = self.client_secret().await.map(|secret| secret.expose().to_owned());
            let entry = Entry { url: self.url.clone(), client_secret, credentials };
            let value = serde_json::to_value(entry).map_err(|_| failed("a login cannot be kept"))?;
            let (file, key) = (self.file.clone(), self.key.clone());
            blocking(move || file.set(&key, value)).await
        })
    }

    fn clear<'a, 'b>(&'a self) -> Answer<'b, ()>
    where
        'a: 'b,
        Self: 'b,
    {
        Box::pin(async {
            let (file, key) = (self.file.clone(), self.key.clone());
            blocking(move || file.remove(&key)).await.map(drop)
        })
    }

    fn acquire_refresh_guard<'a, 'b>(&'a self) -> Answer<'b, Option<CredentialRefreshGuard>>
    where
        'a: 'b,
        Self: 'b,
    {
        Box::pin(async {
            let file = self.file.clone();
            let locking = blocking(move || file.lock_refresh());
            let lock = tokio::time::timeout(LOCK_PATIENCE, locking).await;
            lock.map_err(|_| failed("another server holds the logins"))?
                .map(|lock| Some(CredentialRefreshGuard::new(lock)))
        })
    }
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> std::io::Result<T> + Send + 'static,
) -> Result<T, AuthError> {
    let done = task::blocking(work).await.map_err(|_| failed("the file of logins is stuck"))?;
    done.map_err(|error| AuthError::CredentialStoreError(format!("the file of logins: {error}")))
}

fn failed(text: &str) -> AuthError {
    AuthError::CredentialStoreError(text.to_owned())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn credentials(token: &str) -> StoredCredentials {
        serde_json::from_value(json!({"client_id": "id", "token_response":
            {"access_token": token, "token_type": "bearer", "refresh_token": "r", "expires_in": 60}}))
        .unwrap()
    }

    #[tokio::test]
    async fn a_login_is_for_one_server_at_one_address() {
        let directory = tempfile::tempdir().unwrap();
        let login = |name: &str, scope: AuthScope, url: &str, workspace: &str| {
            Login::new(directory.path(), name, &scope, url, workspace)
        };
        let first = login("s", AuthScope::Global, "https://x/mcp?key=1", "/w");
        assert!(!first.exists().await);
        first.remember_client_secret(Some(Secret::new("cs")));
        first.save(credentials("t1")).await.unwrap();
        assert!(first.exists().await);
        let again = login("s", AuthScope::Global, "https://x/mcp?key=2", "/other");
        assert_eq!(again.client_secret().await, Some(Secret::new("cs")));
        assert_eq!(again.load().await.unwrap().unwrap().client_id, "id");
        for other in [
            login("s", AuthScope::Global, "https://evil/mcp", "/w"),
            login("t", AuthScope::Global, "https://x/mcp", "/w"),
            login("s", AuthScope::Workspace, "https://x/mcp", "/w"),
            login("s", AuthScope::Named("team".into()), "https://x/mcp", "/w"),
        ] {
            assert!(!other.exists().await, "{other:?}");
        }
        let here = login("s", AuthScope::Workspace, "https://x/mcp", "/w");
        here.save(credentials("t2")).await.unwrap();
        assert!(!login("s", AuthScope::Workspace, "https://x/mcp", "/v").exists().await);
        first.forget().await.unwrap();
        assert!(!again.exists().await && here.exists().await);
        assert!(!format!("{here:?} {:?}", here.load().await.unwrap()).contains("t2"));
    }

    #[tokio::test]
    async fn one_refresh_at_a_time() {
        let directory = tempfile::tempdir().unwrap();
        let login = Login::new(directory.path(), "s", &AuthScope::Global, "https://x", "");
        let guard = login.acquire_refresh_guard().await.unwrap();
        let other = login.clone();
        let waiting = tokio::spawn(async move { other.acquire_refresh_guard().await.is_ok() });
        assert!(!waiting.is_finished());
        login.save(credentials("t")).await.unwrap();
        drop(guard);
        assert!(waiting.await.unwrap());
    }

    #[tokio::test]
    async fn nonsense_in_the_file_is_no_login() {
        let directory = tempfile::tempdir().unwrap();
        let login = Login::new(directory.path(), "s", &AuthScope::Global, "https://x", "");
        std::fs::write(directory.path().join("mcp-auth.json"), r#"{"logins": {"s": {"token": 1}}}"#).unwrap();
        assert!(!login.exists().await);
        std::fs::write(directory.path().join("mcp-auth.json"), "{").unwrap();
        assert!(!login.exists().await && login.load().await.is_err());
    }
}
