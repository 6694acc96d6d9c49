//! From a configuration entry to a provider: dialect, address and key, or a sentence that says
//! what is wrong with it.

use std::sync::Arc;

use super::{Entry, Environment, KeySource, Wiring};
use crate::config::{Config, ProviderConfig, Secret};
use crate::providers::discovery::LocalServer;
use crate::providers::guide::Guide;

/// The dialects that exist so far.
const DIALECTS: [&str; 1] = ["openai-chat"];

pub(super) fn configured_entry(
    id: &str,
    config: &ProviderConfig,
    environment: &Environment,
    wiring: &Wiring,
) -> Result<Entry, String> {
    if id == Guide::ID {
        return Err("this name belongs to the built-in guide; choose another one".to_owned());
    }
    if id.is_empty() || id.contains(|c: char| c == '/' || c.is_whitespace() || c.is_control()) {
        return Err("a provider's name must not be empty or contain a slash or white space".to_owned());
    }
    let well_known = wiring.local_servers.iter().find(|server| server.id == id);
    let available = DIALECTS.join(", ");
    match config.api.as_deref() {
        Some(api) if DIALECTS.contains(&api) => {}
        Some(api) => return Err(format!("the api \"{api}\" is not available yet; available: {available}")),
        None if well_known.is_some() => {}
        None => return Err(format!("\"api\" is missing; available: {available}")),
    }
    let variable = format!("{}_API_URL", screaming_snake(id));
    let url = non_blank(config.url.as_deref())
        .or_else(|| non_blank(environment.vars.get(&variable).map(String::as_str)))
        .or_else(|| well_known.map(|server| server.url.as_str()))
        .ok_or_else(|| format!("\"url\" is missing; set it, or the environment variable {variable}"))?;
    // Ollama and LM Studio are commonly written by host and port alone.
    let is_plain = well_known.is_some() && config.completion_url_relative_path.is_none();
    let url = checked_url(url, is_plain)?;
    let mut config = ProviderConfig { api: Some(DIALECTS[0].to_owned()), url: Some(url), ..config.clone() };
    let (key, key_source) = find_key(id, config.key.take(), environment);
    let upstream = (wiring.build)(id, &config, key);
    Ok(Entry { upstream, config, key_source, local: false, listed: Arc::new([]) })
}

pub(super) fn local_entry(server: &LocalServer, environment: &Environment, wiring: &Wiring) -> Entry {
    let config = ProviderConfig {
        api: Some(DIALECTS[0].to_owned()),
        url: Some(server.url.clone()),
        fetch_models: true,
        ..ProviderConfig::default()
    };
    let (key, key_source) = find_key(&server.id, None, environment);
    let upstream = (wiring.build)(&server.id, &config, key);
    Entry { upstream, config, key_source, local: true, listed: Arc::new([]) }
}

/// The servers to look for, each where its `*_API_URL` variable says if there is one.
pub(super) fn unconfigured_servers(wiring: &Wiring, config: &Config, environment: &Environment) -> Vec<LocalServer> {
    let absent = wiring.local_servers.iter().filter(|server| !config.providers.contains_key(&server.id));
    absent
        .map(|server| {
            let variable = environment.vars.get(&format!("{}_API_URL", screaming_snake(&server.id)));
            let moved = non_blank(variable.map(String::as_str)).and_then(|url| checked_url(url, true).ok());
            LocalServer { id: server.id.clone(), url: moved.unwrap_or_else(|| server.url.clone()) }
        })
        .collect()
}

fn find_key(id: &str, configured: Option<Secret>, environment: &Environment) -> (Option<Secret>, KeySource) {
    if let Some(key) = configured.filter(|key| !key.expose().trim().is_empty()) {
        return (Some(key), KeySource::Config);
    }
    let variable = format!("{}_API_KEY", screaming_snake(id));
    match non_blank(environment.vars.get(&variable).map(String::as_str)) {
        Some(key) => (Some(Secret::new(key)), KeySource::Env(variable)),
        None => (None, KeySource::None),
    }
}

/// The url without trailing slashes. `add_version` appends `/v1` to one that has no path.
/// The error never repeats the url, which may carry a password.
fn checked_url(text: &str, add_version: bool) -> Result<String, String> {
    let url = reqwest::Url::parse(text).map_err(|error| format!("\"url\" cannot be read: {error}"))?;
    if !matches!(url.scheme(), "http" | "https") || !url.has_host() {
        return Err("\"url\" must start with http:// or https:// and name a host".to_owned());
    }
    let version = if add_version && matches!(url.path(), "" | "/") { "/v1" } else { "" };
    Ok(format!("{}{version}", text.trim_end_matches('/')))
}

pub(super) fn shown_url(text: &str) -> String {
    let Ok(mut url) = reqwest::Url::parse(text) else { return String::new() };
    url.set_query(None);
    url.set_fragment(None);
    // Both only fail for urls without a host, which have been refused.
    let _ = url.set_username("");
    let _ = url.set_password(None);
    url.as_str().trim_end_matches('/').to_owned()
}

fn non_blank(text: Option<&str>) -> Option<&str> {
    text.map(str::trim).filter(|text| !text.is_empty())
}

/// `github-copilot` and `githubCopilot` become `GITHUB_COPILOT`.
pub(super) fn screaming_snake(id: &str) -> String {
    let mut out = String::with_capacity(id.len() + 4);
    let mut after_lower = false;
    for c in id.chars() {
        if c.is_uppercase() && after_lower {
            out.push('_');
        }
        after_lower = c.is_lowercase() || c.is_numeric();
        if c.is_alphanumeric() {
            out.extend(c.to_uppercase());
        } else {
            out.push('_');
        }
    }
    out
}
