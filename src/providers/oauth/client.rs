//! What the user wrote about their client, checked and complete.

use std::collections::BTreeMap;

use reqwest::Url;

use crate::config::{OAuthConfig, Secret};
use crate::http::callback::Redirect;
use crate::http::is_local;

/// A client at an authorization server, with which something can be done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Client {
    pub(super) id: String,
    pub(super) secret: Option<Secret>,
    pub(super) token_url: String,
    /// The page for a browser, and where the browser comes back to.
    pub(super) browser: Option<(String, Redirect)>,
    pub(super) device_url: Option<String>,
    pub(super) scopes: Vec<String>,
    pub(super) params: BTreeMap<String, String>,
}

/// How a user can log in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// In a browser on this machine.
    Browser,
    /// On any device, by typing in a code.
    Device,
}

impl Client {
    /// `None` when nothing was written; an error says what is missing or wrong.
    pub fn new(config: &OAuthConfig) -> Result<Option<Self>, String> {
        if *config == OAuthConfig::default() {
            return Ok(None);
        }
        let id = config.client_id.clone().ok_or("oauth.clientId is missing: it has to be your own client")?;
        let token_url = config.token_url.as_deref().ok_or("oauth.tokenUrl is missing")?;
        let redirect = match &config.redirect_uri {
            Some(text) => Redirect::parse(text).map_err(|why| format!("oauth.redirectUri: {why}"))?,
            None => Redirect::default(),
        };
        let browser = config.authorization_url.as_deref().map(|url| checked("authorizationUrl", url)).transpose()?;
        let device = config.device_authorization_url.as_deref();
        let device_url = device.map(|url| checked("deviceAuthorizationUrl", url)).transpose()?;
        if browser.is_none() && device_url.is_none() {
            return Err("oauth.authorizationUrl or oauth.deviceAuthorizationUrl is missing".to_owned());
        }
        Ok(Some(Self {
            id,
            secret: config.client_secret.clone(),
            token_url: checked("tokenUrl", token_url)?,
            browser: browser.map(|url| (url, redirect)),
            device_url,
            scopes: config.scopes.clone(),
            params: config.authorization_params.clone(),
        }))
    }

    /// The ways that are open, the usual one first.
    pub fn ways(&self) -> Vec<Way> {
        let browser = self.browser.as_ref().map(|_| Way::Browser);
        browser.into_iter().chain(self.device_url.as_ref().map(|_| Way::Device)).collect()
    }
}

/// An address to which codes and tokens may go: encrypted, or on this machine.
fn checked(key: &str, text: &str) -> Result<String, String> {
    let url = Url::parse(text).map_err(|error| format!("oauth.{key} cannot be read: {error}"))?;
    let is_safe = url.scheme() == "https" || url.scheme() == "http" && is_local(&url);
    match is_safe && url.has_host() {
        true => Ok(text.to_owned()),
        false => Err(format!("oauth.{key} must start with https:// (or be on this machine)")),
    }
}
