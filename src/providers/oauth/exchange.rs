//! Requests to an authorization server, and what its answers mean.

use std::time::Duration;

use reqwest::header::{ACCEPT, CONTENT_TYPE};
use reqwest::{Method, Url};
use serde_json::Value;

use super::{Client, Tokens};
use crate::base::{text, time};
use crate::config::Secret;
use crate::http;

/// For one answer of an authorization server.
const PATIENCE: Duration = Duration::from_secs(30);
/// Tokens can be long; nothing else in an answer is.
const MOST_BODY: usize = 256 * 1024;
const MOST_REASON: usize = 200;
/// Longer lives are taken for this one, so that no clock overflows.
const LONGEST_LIFE_SECONDS: i64 = 10 * 365 * 24 * 3600;

/// Why there are no tokens.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum Refusal {
    /// The user has not answered yet.
    #[error("nobody has answered yet")]
    Pending,
    /// The same, and we ask too often.
    #[error("nobody has answered yet")]
    SlowDown,
    #[error("the authorization server {0}")]
    Unreachable(&'static str),
    /// What was presented is worth nothing any more.
    #[error("{0}")]
    Ended(String),
    #[error("{0}")]
    Other(String),
}

/// Asks for tokens with the given fields, besides those that say who asks.
pub(super) async fn tokens(http: &http::Client, client: &Client, fields: &[(&str, &str)]) -> Result<Tokens, Refusal> {
    let answer = post(http, client, &client.token_url, fields).await?;
    read_tokens(&answer, time::now_ms() / 1000)
}

/// One answer as JSON, if it is no error.
pub(super) async fn post(
    http: &http::Client,
    client: &Client,
    url: &str,
    fields: &[(&str, &str)],
) -> Result<Value, Refusal> {
    let mut fields = fields.to_vec();
    fields.push(("client_id", &client.id));
    fields.extend(client.secret.as_ref().map(|secret| ("client_secret", secret.expose())));
    let (status, body) = match tokio::time::timeout(PATIENCE, send(http, url, &fields)).await {
        Ok(answer) => answer?,
        Err(_) => return Err(Refusal::Unreachable("does not answer")),
    };
    let answer: Value = serde_json::from_slice(&body).unwrap_or_default();
    // Some say with status 200 that something is wrong.
    match answer.get("error").and_then(Value::as_str) {
        Some(error) => Err(refusal(error, &answer)),
        None if (200..300).contains(&status) && answer.is_object() => Ok(answer),
        None => Err(Refusal::Other(format!("the authorization server answered with HTTP {status}"))),
    }
}

async fn send(http: &http::Client, url: &str, fields: &[(&str, &str)]) -> Result<(u16, Vec<u8>), Refusal> {
    let request = http.request(Method::POST, url).map_err(|error| Refusal::Other(error.to_string()))?;
    let request = request
        .header(ACCEPT, "application/json")
        .header(CONTENT_TYPE, "application/x-www-form-urlencoded")
        .body(form(fields));
    let failed = |error: reqwest::Error| {
        Refusal::Unreachable(if error.is_connect() { "cannot be reached" } else { "broke off its answer" })
    };
    let mut response = request.send().await.map_err(failed)?;
    let status = response.status().as_u16();
    let mut body = Vec::new();
    while let Some(piece) = response.chunk().await.map_err(failed)? {
        if body.len() + piece.len() > MOST_BODY {
            return Err(Refusal::Other("the authorization server sent too much".to_owned()));
        }
        body.extend_from_slice(&piece);
    }
    Ok((status, body))
}

/// Fields as a form, or as the query of an address.
pub(super) fn form(fields: &[(&str, &str)]) -> String {
    // Any address will do: this is the encoding that all of them have.
    let Ok(mut url) = Url::parse("http://localhost/") else { return String::new() };
    url.query_pairs_mut().extend_pairs(fields);
    url.query().unwrap_or_default().to_owned()
}

fn refusal(error: &str, answer: &Value) -> Refusal {
    let said = answer.get("error_description").and_then(Value::as_str).unwrap_or(error);
    let said = text::one_line(said, MOST_REASON);
    match error {
        "authorization_pending" => Refusal::Pending,
        "slow_down" => Refusal::SlowDown,
        "invalid_grant" | "expired_token" | "access_denied" | "bad_refresh_token" => Refusal::Ended(said),
        _ => Refusal::Other(format!("the authorization server says: {said}")),
    }
}

fn read_tokens(answer: &Value, now: i64) -> Result<Tokens, Refusal> {
    let token = |key: &str| {
        let text = answer.get(key).and_then(Value::as_str).map(str::trim).filter(|text| !text.is_empty());
        text.map(Secret::new)
    };
    let access = token("access_token");
    let access = access.ok_or_else(|| Refusal::Other("the authorization server sent no token".to_owned()))?;
    let kind = answer.get("token_type").and_then(Value::as_str).unwrap_or("bearer");
    if !kind.eq_ignore_ascii_case("bearer") {
        return Err(Refusal::Other("the authorization server sent tokens of a kind that is not supported".to_owned()));
    }
    let life = answer.get("expires_in").and_then(whole);
    let expires_at = life.map(|life| now + life.clamp(0, LONGEST_LIFE_SECONDS));
    Ok(Tokens { access, refresh: token("refresh_token"), expires_at })
}

/// Numbers are often written as texts here.
pub(super) fn whole(value: &Value) -> Option<i64> {
    value.as_i64().or_else(|| value.as_f64().map(|number| number as i64)).or_else(|| value.as_str()?.parse().ok())
}
