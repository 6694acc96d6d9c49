//! Broken connections in the user's words: what failed, and what to look at.

use std::error::Error;
use std::io;

/// One or two sentences about why `url` could not be reached.
pub(super) fn describe(error: &reqwest::Error, provider: &str, url: &str) -> String {
    let causes = causes(error);
    let text = causes.join(" ").to_lowercase();
    let has = |parts: &[&str]| parts.iter().any(|part| text.contains(part));
    let detail = causes.last().map(String::as_str).unwrap_or("no reason given");
    if io_kind(error) == Some(io::ErrorKind::ConnectionRefused) || has(&["connection refused"]) {
        format!("Nothing answers at {url} for {provider}. Is the server running, and is the provider's url right?")
    } else if has(&["dns error", "failed to lookup", "name resolution", "no such host"]) {
        format!("The host of {url} for {provider} was not found. Check the provider's url and the network connection.")
    } else if has(&["certificate", "tls", "handshake", "invalidcontenttype", "corrupt message"]) {
        format!(
            "No secure connection to {url} for {provider}: {detail}. \
             Check the certificate, and whether the url should begin with http:// instead of https://."
        )
    } else if has(&["proxy", "tunnel"]) {
        format!("The proxy did not connect to {url} for {provider}: {detail}. Check HTTPS_PROXY and NO_PROXY.")
    } else if error.is_timeout() || has(&["timed out"]) {
        format!("{provider} did not answer in time at {url}. Check the provider's url and the network connection.")
    } else if error.is_connect() {
        format!("Could not connect to {url} for {provider}: {detail}. Is the server running, and is the url right?")
    } else {
        format!("The connection to {provider} broke: {detail}. Check the network connection, then try again.")
    }
}

/// The texts of the error and of everything beneath it. The outermost one is left out because it
/// only repeats the url, which may hold a secret.
fn causes(error: &reqwest::Error) -> Vec<String> {
    let mut texts = Vec::new();
    let mut cause = error.source();
    while let Some(error) = cause {
        texts.push(error.to_string());
        cause = error.source();
    }
    texts
}

fn io_kind(error: &reqwest::Error) -> Option<io::ErrorKind> {
    let mut cause = error.source();
    while let Some(error) = cause {
        if let Some(error) = error.downcast_ref::<io::Error>() {
            return Some(error.kind());
        }
        cause = error.source();
    }
    None
}
