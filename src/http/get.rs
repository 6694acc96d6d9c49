//! Pages and documents that a person or a model names: bounded in size, time and redirects, and
//! never led from the outside into the local network.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::Duration;

use reqwest::header::{ACCEPT, CONTENT_TYPE, LOCATION};
use reqwest::{Method, Response, Url};

use super::{Client, HttpError, parse};

/// How long a name may take to become an address before it counts as unknown.
const LOOKUP_WAIT: Duration = Duration::from_secs(2);
const WANTED: &str =
    "text/markdown, text/html, application/xhtml+xml, text/plain;q=0.9, application/json;q=0.9, */*;q=0.5";

/// What a download may cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GetLimits {
    pub bytes: usize,
    pub time: Duration,
    pub redirects: usize,
}

/// What was downloaded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Document {
    /// Where it was found in the end, without a password.
    pub url: String,
    /// In lower case, without parameters; empty when the server did not say.
    pub media_type: String,
    pub charset: Option<String>,
    pub body: Vec<u8>,
    /// Whether there was more than the limit.
    pub is_cut: bool,
}

/// Why nothing was downloaded; one sentence for people and models.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum GetError {
    #[error(transparent)]
    Unusable(#[from] HttpError),
    #[error("the server answered {0}")]
    Status(String),
    #[error("it took longer than {} seconds", .0.as_secs())]
    Timeout(Duration),
    #[error("it leads to other addresses too often")]
    Redirects,
    #[error("it leads to {0}, which is inside the local network")]
    LedInside(String),
    #[error("the connection failed: {0}")]
    Connection(String),
}

impl Client {
    /// Downloads a document.
    pub async fn get(&self, url: &str, limits: GetLimits) -> Result<Document, GetError> {
        match tokio::time::timeout(limits.time, self.get_patiently(url, limits)).await {
            Ok(result) => result,
            Err(_) => Err(GetError::Timeout(limits.time)),
        }
    }

    async fn get_patiently(&self, url: &str, limits: GetLimits) -> Result<Document, GetError> {
        let mut url = parse(url.trim())?;
        for _ in 0..=limits.redirects {
            let request = self.request(Method::GET, url.as_str())?.header(ACCEPT, WANTED);
            let response = request.send().await.map_err(connection)?;
            if !response.status().is_redirection() {
                return download(response, limits.bytes).await;
            }
            let Some(next) = response.headers().get(LOCATION).and_then(|place| place.to_str().ok()) else {
                return Err(GetError::Status(response.status().to_string()));
            };
            let next = response.url().join(next).map_err(|error| HttpError::BadUrl(error.to_string()))?;
            if is_led_inside(response.url(), &next).await {
                return Err(GetError::LedInside(next.host_str().unwrap_or_default().to_owned()));
            }
            url = next;
        }
        Err(GetError::Redirects)
    }
}

/// Whether this address is on this machine or in its network. A name is looked up; one that is
/// unknown is outside.
pub async fn leads_inside(url: &str) -> Result<bool, HttpError> {
    Ok(is_inside(&parse(url.trim())?).await)
}

/// A stranger's page must not make us ask the machines that trust this one.
async fn is_led_inside(from: &Url, to: &Url) -> bool {
    !is_inside_by_name(from) && is_inside(to).await && !is_inside(from).await
}

async fn is_inside(url: &Url) -> bool {
    if is_inside_by_name(url) {
        return true;
    }
    let Some(host) = url.host_str() else { return false };
    let lookup = tokio::net::lookup_host((host, url.port_or_known_default().unwrap_or(443)));
    match tokio::time::timeout(LOOKUP_WAIT, lookup).await {
        Ok(Ok(mut addresses)) => addresses.any(|address| is_private(address.ip())),
        _ => false,
    }
}

fn is_inside_by_name(url: &Url) -> bool {
    let Some(host) = url.host_str() else { return false };
    if let Ok(address) = host.trim_start_matches('[').trim_end_matches(']').parse() {
        return is_private(address);
    }
    let host = host.trim_end_matches('.').to_ascii_lowercase();
    let endings =
        [".localhost", ".local", ".internal", ".intranet", ".lan", ".home", ".home.arpa", ".corp", ".private"];
    !host.contains('.') || endings.iter().any(|ending| host.ends_with(ending))
}

fn is_private(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_private_v4(address),
        IpAddr::V6(address) => {
            let [first, second, .., sixth, seventh, eighth] = address.segments();
            let embedded = || {
                let [a, b] = seventh.to_be_bytes();
                let [c, d] = eighth.to_be_bytes();
                Ipv4Addr::new(a, b, c, d)
            };
            let carries_v4 =
                address.segments()[..5] == [0; 5] && matches!(sixth, 0 | 0xffff) || (first, second) == (0x64, 0xff9b);
            address == Ipv6Addr::LOCALHOST
                || address.is_unspecified()
                || address.is_unique_local()
                || address.is_unicast_link_local()
                || carries_v4 && is_private_v4(embedded())
        }
    }
}

fn is_private_v4(address: Ipv4Addr) -> bool {
    let [first, second, ..] = address.octets();
    address.is_private()
        || address.is_loopback()
        || address.is_link_local()
        || address.is_broadcast()
        || first == 0
        // Shared between a provider's customers, and what test networks use.
        || first == 100 && (64..128).contains(&second)
        || first == 198 && (18..20).contains(&second)
}

async fn download(mut response: Response, limit: usize) -> Result<Document, GetError> {
    if !response.status().is_success() {
        return Err(GetError::Status(response.status().to_string()));
    }
    let named = response.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let (media_type, charset) = content_type(named);
    let mut url = response.url().clone();
    // They fail for addresses that cannot have any.
    let _ = (url.set_username(""), url.set_password(None));
    let mut body = Vec::new();
    let mut is_cut = false;
    while let Some(piece) = response.chunk().await.map_err(connection)? {
        let room = limit - body.len();
        body.extend_from_slice(&piece[..piece.len().min(room)]);
        if piece.len() > room {
            is_cut = true;
            break;
        }
    }
    Ok(Document { url: url.into(), media_type, charset, body, is_cut })
}

/// The type and the charset of a `Content-Type`.
fn content_type(header: &str) -> (String, Option<String>) {
    let mut parts = header.split(';');
    let media_type = parts.next().unwrap_or_default().trim().to_ascii_lowercase();
    let charset = parts.find_map(|part| {
        let (name, value) = part.split_once('=')?;
        name.trim().eq_ignore_ascii_case("charset").then(|| value.trim().trim_matches(['"', '\'']).to_owned())
    });
    (media_type, charset.filter(|charset| !charset.is_empty()))
}

/// The innermost reason, which is the one that tells something.
fn connection(error: reqwest::Error) -> GetError {
    let error = error.without_url();
    let mut reason: &dyn std::error::Error = &error;
    while let Some(source) = reason.source() {
        reason = source;
    }
    GetError::Connection(reason.to_string())
}

#[cfg(test)]
mod tests;
