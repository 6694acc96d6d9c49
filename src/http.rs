//! The one HTTP client of the process: built on first use, shared by every provider.
//!
//! Building a client reads the system's certificates and costs milliseconds that `initialize`
//! must not pay, so a [`Client`] is only a handle and the real one is made by its first request.
//! Proxies come from the environment (`HTTP_PROXY`, `HTTPS_PROXY`, `NO_PROXY`); an address on
//! this machine never goes through one. Certificates of the user's are believed in addition to the
//! system's.

pub mod callback;
mod get;

use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use reqwest::redirect;
use reqwest::{Certificate, Identity, Method, RequestBuilder, StatusCode, Url};

pub use get::{Document, GetError, GetLimits, leads_inside};

use crate::config::Config;

/// What can be set about connections.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    pub connect_timeout: Duration,
}

/// What is spoken on a connection.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Versions {
    #[default]
    Any,
    Http1,
}

/// Certificates of the user's; none by default.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Certificates {
    /// PEM certificates that are believed besides the system's.
    authorities: Option<PathBuf>,
    /// The PEM certificate and key that this machine shows to servers.
    identity: Option<(PathBuf, PathBuf)>,
}

/// A cheap handle; clones share connections.
#[derive(Debug, Clone)]
pub struct Client {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    settings: Settings,
    certificates: Certificates,
    versions: Versions,
    /// For other machines: through the environment's proxy when there is one.
    remote: OnceLock<Result<reqwest::Client, String>>,
    /// For this machine: never through a proxy.
    local: OnceLock<Result<reqwest::Client, String>>,
}

/// A request that could not even be started.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HttpError {
    #[error("the url is not valid: {0}")]
    BadUrl(String),
    #[error("the HTTP client could not be set up: {0}")]
    Setup(String),
}

impl Client {
    /// Costs nothing; the first request builds what it needs.
    pub fn new(settings: Settings) -> Self {
        Self::with(settings, Certificates::default())
    }

    /// As the configuration wants it; the files it names are read by the first request too.
    pub fn configured(config: &Config) -> Self {
        let network = &config.network;
        let certificates = Certificates {
            authorities: network.ca_cert_file.clone(),
            identity: network.client_cert.clone().zip(network.client_key.clone()),
        };
        Self::with(Settings { connect_timeout: config.connect_timeout }, certificates)
    }

    /// The same with connections of its own, on which nothing newer than HTTP/1.1 is spoken.
    pub fn http1(&self) -> Self {
        let Shared { settings, certificates, .. } = &*self.shared;
        Self::speaking(Versions::Http1, settings.clone(), certificates.clone())
    }

    fn with(settings: Settings, certificates: Certificates) -> Self {
        Self::speaking(Versions::Any, settings, certificates)
    }

    fn speaking(versions: Versions, settings: Settings, certificates: Certificates) -> Self {
        let (remote, local) = (OnceLock::new(), OnceLock::new());
        Self { shared: Arc::new(Shared { settings, certificates, versions, remote, local }) }
    }

    /// Starts a request. There is no total timeout: an answer may take as long as it keeps coming.
    pub fn request(&self, method: Method, url: &str) -> Result<RequestBuilder, HttpError> {
        let url = parse(url)?;
        let local = is_local(&url);
        let slot = if local { &self.shared.local } else { &self.shared.remote };
        let client = slot.get_or_init(|| build(&self.shared, local)).as_ref();
        Ok(client.map_err(|error| HttpError::Setup(error.clone()))?.request(method, url))
    }
}

fn parse(url: &str) -> Result<Url, HttpError> {
    let url = Url::parse(url).map_err(|error| HttpError::BadUrl(error.to_string()))?;
    if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none() {
        return Err(HttpError::BadUrl("it must start with http:// or https://".to_owned()));
    }
    Ok(url)
}

/// Replaces every occurrence of a secret. Texts of fewer than four characters are left alone:
/// they are placeholders, and replacing them would only garble the message.
pub fn redact<'a>(text: &str, secrets: impl IntoIterator<Item = &'a str>) -> String {
    let mut secrets: Vec<&str> = secrets.into_iter().map(str::trim).filter(|s| s.chars().count() >= 4).collect();
    // A secret that contains another one must go first, or its rest would stay readable.
    secrets.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
    let mut cleaned = text.to_owned();
    for secret in secrets {
        if cleaned.contains(secret) {
            cleaned = cleaned.replace(secret, "****");
        }
    }
    cleaned
}

const IDLE_CONNECTIONS_PER_HOST: usize = 4;
const IDLE_CONNECTION_LIFE: Duration = Duration::from_secs(30);
const MAX_REDIRECTS: usize = 5;
/// Where Linux and BSD systems keep the certificates they believe.
const SYSTEM_BUNDLES: [&str; 4] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
];

fn build(shared: &Shared, local: bool) -> Result<reqwest::Client, String> {
    // Another part of the process may have installed it already; that is as good.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let builder = reqwest::Client::builder()
        .user_agent(concat!("eca/", env!("CARGO_PKG_VERSION")))
        .connect_timeout(shared.settings.connect_timeout)
        .tcp_nodelay(true)
        .pool_max_idle_per_host(IDLE_CONNECTIONS_PER_HOST)
        .pool_idle_timeout(IDLE_CONNECTION_LIFE)
        .redirect(redirect::Policy::custom(same_origin_only));
    let mut builder = if local { builder.no_proxy() } else { builder };
    if shared.versions == Versions::Http1 {
        builder = builder.http1_only();
    }
    if let Some(file) = &shared.certificates.authorities {
        builder = builder.tls_certs_merge(certificates(file)?);
        // Where this variable is set, the library takes its file instead of the system's
        // certificates; a user who adds one certificate does not mean to lose all others.
        if let Some(bundle) = SYSTEM_BUNDLES.iter().map(Path::new).find(|bundle| bundle.is_file()) {
            builder = builder.tls_certs_merge(certificates(bundle)?);
        }
    }
    if let Some((certificate, key)) = &shared.certificates.identity {
        let mut pem = read(key)?;
        pem.push(b'\n');
        pem.extend(read(certificate)?);
        let identity = Identity::from_pem(&pem)
            .map_err(|_| format!("{} and {} are no certificate with its key", certificate.display(), key.display()))?;
        builder = builder.identity(identity);
    }
    builder.build().map_err(|error| error.to_string())
}

fn certificates(file: &Path) -> Result<Vec<Certificate>, String> {
    let found = Certificate::from_pem_bundle(&read(file)?).unwrap_or_default();
    if found.is_empty() {
        return Err(format!("{} contains no certificate in PEM format", file.display()));
    }
    Ok(found)
}

fn read(file: &Path) -> Result<Vec<u8>, String> {
    std::fs::read(file).map_err(|error| format!("{} cannot be read ({})", file.display(), error.kind()))
}

/// Follows only what keeps method, body and origin. Anything else would either hand the key and
/// the conversation to a stranger or turn a POST into a GET; the caller sees the 3xx instead.
fn same_origin_only(attempt: redirect::Attempt<'_>) -> redirect::Action {
    let keeps_method = matches!(attempt.status(), StatusCode::TEMPORARY_REDIRECT | StatusCode::PERMANENT_REDIRECT);
    let same_origin = attempt.previous().first().is_some_and(|first| first.origin() == attempt.url().origin());
    if keeps_method && same_origin && attempt.previous().len() <= MAX_REDIRECTS {
        attempt.follow()
    } else {
        attempt.stop()
    }
}

/// Whether the address is on this machine.
pub fn is_local(url: &Url) -> bool {
    let Some(host) = url.host_str() else { return false };
    if host.eq_ignore_ascii_case("localhost") || host.to_ascii_lowercase().ends_with(".localhost") {
        return true;
    }
    match host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>() {
        Ok(address) => address.to_canonical().is_loopback() || address.is_unspecified(),
        Err(_) => false,
    }
}

#[cfg(test)]
mod tls_tests;

#[cfg(test)]
mod tests {
    use super::*;

    fn client() -> Client {
        Client::new(Settings { connect_timeout: Duration::from_secs(5) })
    }

    #[test]
    fn nothing_is_built_before_the_first_request_and_only_what_it_needs() {
        let client = client();
        assert!(client.shared.local.get().is_none() && client.shared.remote.get().is_none());
        assert!(client.request(Method::GET, "http://127.0.0.1:1/").is_ok());
        assert!(client.shared.local.get().is_some() && client.shared.remote.get().is_none());
    }

    #[test]
    fn certificates_that_cannot_be_read_are_named() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("ca.pem");
        std::fs::write(&file, "nothing").unwrap();
        let missing = folder.path().join("missing.pem");
        for (ca, cert, key, named) in [
            (Some(&missing), None, None, "missing.pem cannot be read"),
            (Some(&file), None, None, "ca.pem contains no certificate"),
            (None, Some(&file), Some(&file), "are no certificate with its key"),
        ] {
            let mut config = Config::default();
            config.network.ca_cert_file = ca.cloned();
            config.network.client_cert = cert.cloned();
            config.network.client_key = key.cloned();
            let error = Client::configured(&config).request(Method::GET, "https://example.org/").unwrap_err();
            assert!(error.to_string().contains(named), "{error}");
        }
    }

    #[test]
    fn bad_urls_are_refused_without_building() {
        let client = client();
        for url in ["", "localhost:1234", "ftp://example.org/", "http://", "/v1"] {
            assert!(matches!(client.request(Method::GET, url), Err(HttpError::BadUrl(_))), "{url}");
        }
        assert!(client.shared.remote.get().is_none());
    }

    #[test]
    fn local_addresses_are_recognised() {
        let local = |url: &str| is_local(&Url::parse(url).unwrap());
        for url in [
            "http://localhost:11434/v1",
            "http://LOCALHOST/",
            "http://llm.localhost/",
            "http://127.0.0.1:8080/",
            "http://127.3.2.1/",
            "http://[::1]:80/",
            "http://[::ffff:127.0.0.1]/",
            "http://0.0.0.0:1/",
        ] {
            assert!(local(url), "{url}");
        }
        for url in ["http://192.168.0.2/", "https://localhost.example.org/", "https://api.openai.com/"] {
            assert!(!local(url), "{url}");
        }
    }

    #[test]
    fn secrets_are_replaced_longest_first() {
        assert_eq!(redact("key sk-12345 and sk-1234", ["sk-1234", "sk-12345"]), "key **** and ****");
        assert_eq!(redact("a cat", ["a"]), "a cat");
        assert_eq!(redact("token abcdef", [" abcdef\n"]), "token ****");
    }
}
