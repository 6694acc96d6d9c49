//! Taking a user through a login: to a page in the browser, or to a code for another device.

use std::sync::Arc;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use reqwest::Url;
use ring::digest::{SHA256, digest};
use ring::rand::{SecureRandom, SystemRandom};
use tokio::sync::mpsc;

use super::exchange::{self, Refusal};
use super::{Session, Way};
use crate::config::Secret;
use crate::http::callback::{self, Answer, Listener};

/// How long the user may take in the browser.
const BROWSER_PATIENCE: Duration = Duration::from_secs(600);
/// How long a code for another device may live, whatever is said of it.
const LONGEST_CODE_SECONDS: i64 = 1800;
const USUAL_INTERVAL_SECONDS: i64 = 5;
const LONGEST_INTERVAL_SECONDS: i64 = 60;
const DEVICE_GRANT: &str = "urn:ietf:params:oauth:grant-type:device_code";
/// What the user's own parameters must not replace.
const RESERVED: [&str; 7] =
    ["response_type", "client_id", "redirect_uri", "scope", "state", "code_challenge", "code_challenge_method"];

/// A login that waits for the user.
#[derive(Debug)]
pub enum Opened {
    Browser(Authorization),
    Device(DeviceCode),
}

/// A page that is waiting for the user's yes.
#[derive(Debug)]
pub struct Authorization {
    session: Arc<Session>,
    /// To be opened in a browser.
    url: String,
    listener: Listener,
    state: Secret,
    verifier: Secret,
    pasted: (mpsc::Sender<Answer>, mpsc::Receiver<Answer>),
}

/// The way for what a user copied out of the browser.
#[derive(Debug, Clone)]
pub struct Paste {
    state: Secret,
    answers: mpsc::Sender<Answer>,
}

/// A code that the user types in on another device.
#[derive(Debug)]
pub struct DeviceCode {
    session: Arc<Session>,
    url: String,
    code: String,
    device_code: Secret,
    interval: i64,
    life: i64,
}

impl Session {
    /// Begins a login. Nothing that was kept changes before it is complete.
    pub async fn open(self: &Arc<Self>, way: Way) -> Result<Opened, String> {
        match way {
            Way::Browser => self.authorize().await.map(Opened::Browser),
            Way::Device => self.device_code().await.map(Opened::Device),
        }
    }

    async fn authorize(self: &Arc<Self>) -> Result<Authorization, String> {
        let (page, redirect) = self.client.browser.as_ref().ok_or("oauth.authorizationUrl is missing")?;
        let listener = Listener::bind(redirect).await?;
        let (state, verifier) = (random()?, random()?);
        let challenge = URL_SAFE_NO_PAD.encode(digest(&SHA256, verifier.expose().as_bytes()));
        let mut url = Url::parse(page).map_err(|error| error.to_string())?;
        {
            let mut query = url.query_pairs_mut();
            query.append_pair("response_type", "code").append_pair("client_id", &self.client.id);
            query.append_pair("redirect_uri", &listener.redirect_uri());
            if !self.client.scopes.is_empty() {
                query.append_pair("scope", &self.client.scopes.join(" "));
            }
            query.append_pair("state", state.expose());
            query.append_pair("code_challenge", &challenge).append_pair("code_challenge_method", "S256");
            let own = self.client.params.iter().filter(|(name, _)| !RESERVED.contains(&name.as_str()));
            query.extend_pairs(own);
        }
        let session = Arc::clone(self);
        Ok(Authorization { session, url: url.into(), listener, state, verifier, pasted: mpsc::channel(1) })
    }

    async fn device_code(self: &Arc<Self>) -> Result<DeviceCode, String> {
        let url = self.client.device_url.as_deref().ok_or("oauth.deviceAuthorizationUrl is missing")?;
        let scopes = self.client.scopes.join(" ");
        let fields: &[(&str, &str)] = if scopes.is_empty() { &[] } else { &[("scope", &scopes)] };
        let answer = exchange::post(&self.http, &self.client, url, fields).await.map_err(|why| why.to_string())?;
        let text = |keys: &[&str]| {
            let found = keys.iter().find_map(|key| answer.get(*key)?.as_str());
            found.map(str::to_owned).ok_or_else(|| "the authorization server gave no code".to_owned())
        };
        let page = text(&["verification_uri", "verification_url"])?;
        if !Url::parse(&page).is_ok_and(|page| matches!(page.scheme(), "https" | "http")) {
            return Err("the authorization server names an address that no browser should open".to_owned());
        }
        let number = |key: &str, usual: i64| answer.get(key).and_then(exchange::whole).unwrap_or(usual);
        Ok(DeviceCode {
            session: Arc::clone(self),
            url: page,
            code: text(&["user_code"])?,
            device_code: Secret::new(text(&["device_code"])?),
            interval: number("interval", USUAL_INTERVAL_SECONDS).clamp(1, LONGEST_INTERVAL_SECONDS),
            life: number("expires_in", LONGEST_CODE_SECONDS).clamp(1, LONGEST_CODE_SECONDS),
        })
    }
}

impl Authorization {
    pub fn url(&self) -> &str {
        &self.url
    }

    /// For a browser that cannot come back by itself, because it runs elsewhere.
    pub fn paste(&self) -> Paste {
        Paste { state: self.state.clone(), answers: self.pasted.0.clone() }
    }

    /// Waits for the user and keeps the tokens.
    pub async fn finish(mut self) -> Result<(), String> {
        let answer = async {
            tokio::select! {
                answer = self.listener.callback(&self.url) => answer,
                // This side holds a sender, so the channel stays open.
                Some(answer) = self.pasted.1.recv() => Ok(answer),
            }
        };
        let answer = tokio::time::timeout(BROWSER_PATIENCE, answer).await;
        let answer = answer.map_err(|_| "nobody logged in within ten minutes".to_owned())??;
        let redirect = self.listener.redirect_uri();
        let fields = [
            ("grant_type", "authorization_code"),
            ("code", &answer.code),
            ("redirect_uri", &redirect),
            ("code_verifier", self.verifier.expose()),
        ];
        let session = &self.session;
        let tokens = exchange::tokens(&session.http, &session.client, &fields).await.map_err(|why| why.to_string())?;
        session.keep(tokens).await
    }
}

impl Paste {
    /// Takes what was copied, or says what is wrong with it.
    pub fn paste(&self, text: &str) -> Result<(), String> {
        let answer = callback::read_pasted(text, self.state.expose())?;
        self.answers.try_send(answer).map_err(|_| "the login is over".to_owned())
    }
}

impl DeviceCode {
    /// The page on which the code is typed in.
    pub fn url(&self) -> &str {
        &self.url
    }

    pub fn code(&self) -> &str {
        &self.code
    }

    /// Asks until the user has typed it in, and keeps the tokens.
    pub async fn finish(self) -> Result<(), String> {
        let life = Duration::from_secs(self.life.unsigned_abs());
        let asked = tokio::time::timeout(life, self.ask()).await;
        let tokens = asked.map_err(|_| "nobody typed in the code in time".to_owned())??;
        self.session.keep(tokens).await
    }

    async fn ask(&self) -> Result<super::Tokens, String> {
        let Session { http, client, .. } = &*self.session;
        let fields = [("grant_type", DEVICE_GRANT), ("device_code", self.device_code.expose())];
        let mut interval = self.interval;
        loop {
            tokio::time::sleep(Duration::from_secs(interval.unsigned_abs())).await;
            match exchange::tokens(http, client, &fields).await {
                Ok(tokens) => return Ok(tokens),
                Err(Refusal::Pending | Refusal::Unreachable(_)) => {}
                Err(Refusal::SlowDown) => interval = (interval + 5).min(LONGEST_INTERVAL_SECONDS),
                Err(other) => return Err(other.to_string()),
            }
        }
    }
}

/// 256 bits that nobody can guess.
fn random() -> Result<Secret, String> {
    let mut bytes = [0; 32];
    SystemRandom::new().fill(&mut bytes).map_err(|_| "the system has no random numbers".to_owned())?;
    Ok(Secret::new(URL_SAFE_NO_PAD.encode(bytes)))
}
