//! From a configuration entry or a vendor's row to a provider: dialect, address and key, or a
//! sentence that says what is wrong with it.

use std::sync::Arc;

use serde_json::{Map, Value};

use super::{Entry, Environment, KeySource, Wiring};
use crate::config::{Config, ProviderConfig, Secret};
use crate::providers::discovery::LocalServer;
use crate::providers::guide::Guide;
use crate::providers::oauth;
use crate::providers::oauth::upstream::WithTokens;
use crate::providers::vendors::{self, Auth, Endpoint, Place, VENDORS, Vendor};

/// The provider that the configuration describes, with the vendor's row below it.
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
    let vendor = vendors::find(id);
    let endpoint = vendor.and_then(|vendor| vendor.endpoint(config.api.as_deref(), &wiring.dialects));
    let available = wiring.dialects.join(", ");
    let api = match config.api.as_deref().or(endpoint.map(|endpoint| endpoint.api)) {
        Some(api) if wiring.dialects.contains(&api) => api.to_owned(),
        Some(api) => return Err(format!("the api \"{api}\" is not available; available: {available}")),
        None => return Err(format!("\"api\" is missing; available: {available}")),
    };
    let url = find_url(id, config, vendor, endpoint, &api, environment, wiring)?;
    let mut entry =
        assemble(id, vendor, endpoint, ProviderConfig { api: Some(api), url, ..config.clone() }, environment, wiring);
    entry.own_models = config.models.keys().cloned().collect();
    Ok(entry)
}

/// Vendors that need no configuration: those whose key, or whose own address, is known.
pub(super) fn vendor_entries(
    config: &Config,
    environment: &Environment,
    wiring: &Wiring,
) -> impl Iterator<Item = (String, Entry)> {
    let unconfigured = VENDORS.iter().filter(|vendor| !config.providers.contains_key(vendor.id));
    unconfigured.filter_map(|vendor| {
        let nothing = ProviderConfig::default();
        let (key, _) = find_key(vendor.id, Some(vendor), &nothing, environment);
        let usable = match vendor.place {
            Place::Remote => key.is_some() && vendor.no_login.is_none(),
            Place::Configured => environment.get(&vendors::url_variable(vendor.id)).is_some(),
            Place::Discovered => false,
        };
        let entry = usable.then(|| configured_entry(vendor.id, &nothing, environment, wiring))?;
        let entry =
            entry.inspect_err(|why| tracing::debug!(vendor = vendor.id, why, "a key alone is not enough")).ok()?;
        Some((vendor.id.to_owned(), Entry { configured: false, ..entry }))
    })
}

pub(super) fn local_entry(server: &LocalServer, environment: &Environment, wiring: &Wiring) -> Entry {
    let vendor = vendors::find(&server.id);
    let endpoint = vendor.and_then(|vendor| vendor.endpoint(Some(&server.api), &wiring.dialects));
    let config =
        ProviderConfig { api: Some(server.api.clone()), url: Some(server.url.clone()), ..ProviderConfig::default() };
    let entry = assemble(&server.id, vendor, endpoint, config, environment, wiring);
    Entry { local: true, configured: false, ..entry }
}

/// The servers to look for, each where its `*_API_URL` variable says if there is one.
pub(super) fn unconfigured_servers(wiring: &Wiring, config: &Config, environment: &Environment) -> Vec<LocalServer> {
    let absent = wiring.local_servers.iter().filter(|server| !config.providers.contains_key(&server.id));
    absent
        .map(|server| {
            let variable = environment.get(&vendors::url_variable(&server.id));
            let moved = variable.and_then(|url| checked_url(&url, server.api == OPENAI_CHAT).ok());
            LocalServer { url: moved.unwrap_or_else(|| server.url.clone()), ..server.clone() }
        })
        .collect()
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

const OPENAI_CHAT: &str = "openai-chat";
/// The one dialect that finds its address by itself.
const BEDROCK: &str = "bedrock";

/// Lays the configuration over the vendor's row and makes the provider.
fn assemble(
    id: &str,
    vendor: Option<&'static Vendor>,
    endpoint: Option<&'static Endpoint>,
    mut config: ProviderConfig,
    environment: &Environment,
    wiring: &Wiring,
) -> Entry {
    // What is wrong with the client was said when the registry was built.
    let client = oauth::Client::new(&config.oauth).ok().flatten();
    let session = client.map(|client| environment.sessions.of(id, &client, &wiring.http));
    let (mut key, mut key_source) = find_key(id, vendor, &config, environment);
    let has_tokens = session.as_ref().is_some_and(|session| session.tokens().is_some());
    if has_tokens && key_source != KeySource::Config {
        (key, key_source) = (None, KeySource::OAuth);
    }
    config.key = None;
    let mut payload = Map::new();
    if let Some(endpoint) = endpoint {
        let path = &mut config.completion_url_relative_path;
        *path = path.take().or_else(|| endpoint.path.map(str::to_owned));
        if let (None, None, Some((start, end))) = (&config.think_tag_start, &config.think_tag_end, endpoint.think_tags)
        {
            (config.think_tag_start, config.think_tag_end) = (Some(start.to_owned()), Some(end.to_owned()));
        }
        if let Some(Ok(Value::Object(defaults))) = endpoint.payload.map(serde_json::from_str) {
            payload = defaults;
        }
    }
    if let Some(vendor) = vendor {
        for model in vendor.models {
            config.models.entry((*model).to_owned()).or_default();
        }
        if let (Auth::Header(name), Some(secret)) = (vendor.auth, &key) {
            config.extra_headers.entry(name.to_owned()).or_insert_with(|| secret.expose().to_owned());
            key = None;
        }
    }
    let upstream = match &session {
        Some(session) if matches!(key_source, KeySource::OAuth | KeySource::None) => {
            Arc::new(WithTokens::new(id, &config, Arc::clone(session), Arc::clone(&wiring.build)))
        }
        _ => (wiring.build)(id, &config, key),
    };
    Entry {
        upstream,
        config,
        vendor,
        payload,
        key_source,
        session,
        own_models: Default::default(),
        local: false,
        configured: true,
        listed: Arc::new([]),
        list_failed: false,
    }
}

/// In the order in which the public server looks: configuration, login, environment, netrc, and
/// the variable that an old configuration names.
fn find_key(
    id: &str,
    vendor: Option<&Vendor>,
    config: &ProviderConfig,
    environment: &Environment,
) -> (Option<Secret>, KeySource) {
    let says_something = |key: &&Secret| !key.expose().trim().is_empty();
    if let Some(key) = config.key.as_ref().filter(says_something) {
        return (Some(key.clone()), KeySource::Config);
    }
    if let Some(key) = environment.logins.get(id).filter(says_something) {
        return (Some(key.clone()), KeySource::Login);
    }
    let mut variables: Vec<String> = match vendor {
        Some(vendor) => vendor.all_key_variables().collect(),
        None => vec![vendors::key_variable(id)],
    };
    let from = |names: &[String]| {
        names.iter().find_map(|name| Some((Some(Secret::new(environment.get(name)?)), KeySource::Env(name.clone()))))
    };
    if let Some(found) = from(&variables) {
        return found;
    }
    let machine = config.key_rc.as_deref().zip(environment.netrc.as_ref());
    if let Some(key) = machine.and_then(|(machine, netrc)| netrc(machine)).filter(|key| says_something(&key)) {
        return (Some(key), KeySource::Netrc);
    }
    variables.clear();
    variables.extend(config.key_env.clone());
    from(&variables).unwrap_or((None, KeySource::None))
}

fn find_url(
    id: &str,
    config: &ProviderConfig,
    vendor: Option<&Vendor>,
    endpoint: Option<&Endpoint>,
    api: &str,
    environment: &Environment,
    wiring: &Wiring,
) -> Result<Option<String>, String> {
    let variable = vendors::url_variable(id);
    let server = wiring.local_servers.iter().find(|server| server.id == id && server.api == api);
    let known = || match server {
        Some(server) => Some(server.url.clone()),
        None => endpoint.and_then(|endpoint| endpoint.url).map(str::to_owned),
    };
    let written = config.url.as_deref().map(str::trim).filter(|url| !url.is_empty()).map(str::to_owned);
    let url = written
        .or_else(|| environment.get(&variable))
        .or_else(|| config.url_env.as_deref().and_then(|name| environment.get(name)))
        .or_else(known);
    match url {
        // Servers of the user's own are commonly written by host and port alone.
        Some(url) => {
            let own = vendor.is_some_and(|vendor| vendor.place != Place::Remote);
            let is_plain = own && api == OPENAI_CHAT && config.completion_url_relative_path.is_none();
            checked_url(&url, is_plain).map(Some)
        }
        None if api == BEDROCK => Ok(None),
        None => Err(format!("\"url\" is missing; set it, or the environment variable {variable}")),
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
