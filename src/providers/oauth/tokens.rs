//! The tokens of one login, and how they are kept.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Client;
use crate::config::Secret;

/// A token that ends within this is replaced before it is used.
const MARGIN_SECONDS: i64 = 60;

/// What a login gave.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tokens {
    pub access: Secret,
    pub refresh: Option<Secret>,
    /// Seconds since 1970; never, as far as we know, when absent.
    pub expires_at: Option<i64>,
}

/// As it is kept, with whom it is for: a refresh token must not go to an address that was written
/// into the configuration later.
#[derive(Serialize, Deserialize)]
struct Entry {
    client_id: String,
    token_url: String,
    access_token: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    refresh_token: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    expires_at: Option<i64>,
}

impl Tokens {
    /// What was kept for this client; nothing when it is another one's, or cannot be read.
    pub(super) fn kept(value: &Value, client: &Client) -> Option<Self> {
        let entry: Entry = serde::Deserialize::deserialize(value).ok()?;
        let is_ours = entry.client_id == client.id && entry.token_url == client.token_url;
        is_ours.then(|| Self {
            access: Secret::new(entry.access_token),
            refresh: entry.refresh_token.map(Secret::new),
            expires_at: entry.expires_at,
        })
    }

    pub(super) fn to_keep(&self, client: &Client) -> Value {
        let entry = Entry {
            client_id: client.id.clone(),
            token_url: client.token_url.clone(),
            access_token: self.access.expose().to_owned(),
            refresh_token: self.refresh.as_ref().map(|token| token.expose().to_owned()),
            expires_at: self.expires_at,
        };
        serde_json::to_value(entry).unwrap_or_default()
    }

    /// Whether it will still be taken when a request arrives.
    pub(super) fn is_fresh(&self, now: i64) -> bool {
        self.expires_at.is_none_or(|end| now + MARGIN_SECONDS < end)
    }
}
