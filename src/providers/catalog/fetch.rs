//! Asks models.dev for its catalogue, bounded in time and size.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use reqwest::header::{ETAG, HeaderMap, IF_NONE_MATCH};
use reqwest::{Method, StatusCode};

use super::MAX_BYTES;
use crate::http;

const ADDRESS: &str = "https://models.dev/api.json";
const PATIENCE: Duration = Duration::from_secs(5);

/// What the catalogue's server said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fetched {
    /// What we have is what there is.
    Unchanged,
    Body {
        body: Vec<u8>,
        etag: Option<String>,
    },
}

/// Fetches the catalogue unless it still has the given tag. Tests put their own here.
pub type Fetch = Arc<dyn Fn(Option<String>) -> BoxFuture<'static, Result<Fetched, String>> + Send + Sync>;

/// From the real place.
pub fn from_models_dev(http: http::Client) -> Fetch {
    Arc::new(move |etag| {
        let http = http.clone();
        Box::pin(async move {
            let work = fetch(&http, ADDRESS, etag.as_deref());
            tokio::time::timeout(PATIENCE, work).await.unwrap_or_else(|_| Err("no answer in time".to_owned()))
        })
    })
}

async fn fetch(http: &http::Client, url: &str, etag: Option<&str>) -> Result<Fetched, String> {
    let mut request = http.request(Method::GET, url).map_err(|error| error.to_string())?;
    if let Some(etag) = etag {
        request = request.header(IF_NONE_MATCH, etag);
    }
    let mut response = request.send().await.map_err(|error| error.to_string())?;
    if response.status() == StatusCode::NOT_MODIFIED {
        return Ok(Fetched::Unchanged);
    }
    if !response.status().is_success() {
        return Err(format!("status {}", response.status()));
    }
    let etag = tag(response.headers());
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(|error| error.to_string())? {
        if body.len() + chunk.len() > MAX_BYTES {
            return Err("the catalogue is too large".to_owned());
        }
        body.extend_from_slice(&chunk);
    }
    Ok(Fetched::Body { body, etag })
}

/// A tag that fits into one line of our cache and back into a header.
fn tag(headers: &HeaderMap) -> Option<String> {
    let text = headers.get(ETAG)?.to_str().ok()?;
    (text.len() <= 256 && text.chars().all(|c| c.is_ascii_graphic())).then(|| text.to_owned())
}
