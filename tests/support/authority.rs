//! An authorization server under the test's control: pages on which a user says yes or no, codes
//! for other devices, and tokens that end when the test says so.
#![allow(dead_code, unreachable_pub, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::{BTreeMap, BTreeSet};

use serde_json::json;

use super::web::{self, Request, Response};

#[derive(Debug, Default)]
pub struct Authority {
    pub clients: BTreeSet<String>,
    /// What every client has to know besides its id.
    pub client_secret: Option<String>,
    /// Tokens that are good.
    pub tokens: BTreeSet<String>,
    pub issued: u32,
    /// In seconds; tokens that do not say when they end, otherwise.
    pub token_life: Option<u64>,
    pub refreshes: u32,
    pub refuses_refresh: bool,
    /// Whether it gives out tokens to renew a login with.
    pub forgets_refresh: bool,
    pub denies: bool,
    /// Codes that were given out, with the challenge and the address that they were asked for.
    pub codes: BTreeMap<String, (String, String)>,
    /// How often a device has to ask before the user has typed in its code.
    pub device_patience: u32,
    pub device_polls: u32,
}

impl Authority {
    /// The page on which a user says yes, and where it sends the browser.
    pub fn authorize(&mut self, request: &Request) -> Response {
        let asked = |name: &str| request.query.get(name).cloned().unwrap_or_default();
        let redirect = asked("redirect_uri");
        let on_this_machine = ["http://localhost:", "http://127.0.0.1:"].iter().any(|here| redirect.starts_with(here));
        let is_right = asked("response_type") == "code"
            && asked("code_challenge_method") == "S256"
            && self.clients.contains(&asked("client_id"))
            && on_this_machine;
        if !is_right {
            return Response::empty(400);
        }
        let state = asked("state");
        let answer = if self.denies {
            format!("error=access_denied&error_description=not+today&state={state}")
        } else {
            let code = format!("code-{}", self.codes.len() + 1);
            self.codes.insert(code.clone(), (asked("code_challenge"), redirect.clone()));
            format!("code={code}&state={state}")
        };
        Response::empty(302).with("Location", format!("{redirect}?{answer}"))
    }

    /// A code for another device.
    pub fn device(&mut self, request: &Request, page: &str) -> Response {
        if !self.knows(request) {
            return refused("invalid_client");
        }
        Response::json(&json!({"device_code": "device-1", "user_code": "ABCD-EFGH", "verification_uri": page,
            "expires_in": 60, "interval": 1}))
    }

    /// What becomes of a code, or of an old token.
    pub fn token(&mut self, request: &Request) -> Response {
        let form = request.form();
        let given = |name: &str| form.get(name).cloned().unwrap_or_default();
        if !self.knows(request) {
            return refused("invalid_client");
        }
        match given("grant_type").as_str() {
            "authorization_code" => {
                let Some((challenge, redirect)) = self.codes.remove(&given("code")) else {
                    return refused("invalid_grant");
                };
                if challenge != sha256_base64url(&given("code_verifier")) || redirect != given("redirect_uri") {
                    return refused("invalid_grant");
                }
            }
            "urn:ietf:params:oauth:grant-type:device_code" if given("device_code") == "device-1" => {
                self.device_polls += 1;
                if self.denies {
                    return refused("access_denied");
                }
                if self.device_polls <= self.device_patience {
                    return refused("authorization_pending");
                }
            }
            "refresh_token" if self.refuses_refresh || given("refresh_token") != format!("refresh-{}", self.issued) => {
                return refused("invalid_grant");
            }
            "refresh_token" => self.refreshes += 1,
            _ => return refused("unsupported_grant_type"),
        }
        self.issued += 1;
        let token = format!("token-{}", self.issued);
        self.tokens = BTreeSet::from([token.clone()]);
        let mut answer = json!({"access_token": token, "token_type": "Bearer"});
        if let Some(life) = self.token_life {
            answer["expires_in"] = json!(life);
        }
        if !self.forgets_refresh {
            answer["refresh_token"] = json!(format!("refresh-{}", self.issued));
        }
        Response::json(&answer)
    }

    /// Whether a request carries a token that is good.
    pub fn lets_in(&self, request: &Request) -> bool {
        self.tokens.contains(request.header("authorization").strip_prefix("Bearer ").unwrap_or_default())
    }

    fn knows(&self, request: &Request) -> bool {
        let form = request.form();
        form.get("client_id").is_some_and(|id| self.clients.contains(id))
            && form.get("client_secret") == self.client_secret.as_ref()
    }
}

/// Says yes in the browser: the page that the user sees at the end.
pub async fn log_in(address: &str) -> (u16, String) {
    let (status, location, _) = web::get(address).await;
    assert_eq!(status, 302, "{address}");
    let (status, _, page) = web::get(&location.unwrap().replace("localhost", "127.0.0.1")).await;
    (status, page)
}

fn refused(why: &str) -> Response {
    Response { status: 400, ..Response::json(&json!({"error": why})) }
}

fn sha256_base64url(text: &str) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let hash = ring::digest::digest(&ring::digest::SHA256, text.as_bytes());
    let mut out = String::new();
    for chunk in hash.as_ref().chunks(3) {
        let bits = chunk.iter().fold(0_u32, |bits, byte| bits << 8 | u32::from(*byte)) << (8 * (3 - chunk.len()));
        for position in 0..=chunk.len() {
            out.push(char::from(DIGITS[(bits >> (18 - 6 * position) & 63) as usize]));
        }
    }
    out
}
