//! What needs no server, and the one renewal for many.

#[path = "../../../tests/support/authority.rs"]
mod authority;
#[path = "../../../tests/support/web.rs"]
mod web;

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;

use super::exchange::{self, Refusal};
use super::session::Sessions;
use super::*;
use crate::config::{OAuthConfig, Secret};
use crate::http;
use crate::llm::ErrorClass;
use crate::state::Logins;

fn config(server: &str) -> OAuthConfig {
    OAuthConfig {
        client_id: Some("mine".into()),
        authorization_url: Some(format!("{server}/authorize")),
        token_url: Some(format!("{server}/token")),
        ..OAuthConfig::default()
    }
}

fn client(server: &str) -> Client {
    Client::new(&config(server)).unwrap().unwrap()
}

fn http() -> http::Client {
    http::Client::new(http::Settings { connect_timeout: Duration::from_secs(5) })
}

fn tokens(access: &str, expires_at: Option<i64>) -> Tokens {
    Tokens { access: Secret::new(access), refresh: Some(Secret::new("refresh-0")), expires_at }
}

#[test]
fn a_client_must_be_complete_and_its_addresses_safe() {
    assert_eq!(Client::new(&OAuthConfig::default()), Ok(None));
    let good = config("https://as.example");
    assert_eq!(client("https://as.example").ways(), [Way::Browser]);
    let both = OAuthConfig { device_authorization_url: Some("http://localhost:1/d".into()), ..good.clone() };
    assert_eq!(Client::new(&both).unwrap().unwrap().ways(), [Way::Browser, Way::Device]);
    let change = |change: fn(&mut OAuthConfig)| {
        let mut config = good.clone();
        change(&mut config);
        Client::new(&config).unwrap_err()
    };
    for (why, error) in [
        ("clientId is missing", change(|config| config.client_id = None)),
        ("tokenUrl is missing", change(|config| config.token_url = None)),
        ("authorizationUrl or", change(|config| config.authorization_url = None)),
        ("tokenUrl must start", change(|config| config.token_url = Some("http://as.example/token".into()))),
        ("tokenUrl cannot be read", change(|config| config.token_url = Some("token".into()))),
        ("authorizationUrl must", change(|config| config.authorization_url = Some("file:///etc/passwd".into()))),
        ("redirectUri", change(|config| config.redirect_uri = Some("https://elsewhere/".into()))),
    ] {
        assert!(error.contains(why), "{error}");
    }
}

#[test]
fn tokens_are_kept_for_one_client_at_one_address() {
    let kept = tokens("t0", Some(7)).to_keep(&client("https://as.example"));
    assert_eq!(Tokens::kept(&kept, &client("https://as.example")), Some(tokens("t0", Some(7))));
    assert_eq!(Tokens::kept(&kept, &client("https://other.example")), None);
    let other = Client { id: "theirs".into(), ..client("https://as.example") };
    assert_eq!(Tokens::kept(&kept, &other), None);
    for nonsense in [json!(null), json!({"access_token": 1}), json!([])] {
        assert_eq!(Tokens::kept(&nonsense, &other), None);
    }
    assert!(!format!("{:?} {:?}", tokens("t0k3n", None), client("https://x")).contains("t0k3n"));
}

#[test]
fn a_token_is_fresh_until_a_minute_before_its_end() {
    for (end, fresh) in [(None, true), (Some(161), true), (Some(160), false), (Some(0), false)] {
        assert_eq!(tokens("t", end).is_fresh(100), fresh, "{end:?}");
    }
}

async fn answer(status: u16, body: &str) -> Result<Tokens, Refusal> {
    let body = body.to_owned();
    let web =
        web::Web::serve(move |_| web::Response { status, ..web::Response::text("application/json", body.clone()) })
            .await;
    exchange::tokens(&http(), &client(&web.url("")), &[("grant_type", "x y")]).await
}

#[tokio::test]
async fn answers_of_an_authorization_server_are_read() {
    let good = answer(200, r#"{"access_token": " a ", "token_type": "bearer", "expires_in": "3600"}"#).await.unwrap();
    assert_eq!((good.access.expose(), good.refresh), ("a", None));
    let left = good.expires_at.unwrap() - crate::base::time::now_ms() / 1000;
    assert!((3590..=3600).contains(&left), "{left}");
    for (status, body, expected) in [
        (400, r#"{"error": "authorization_pending"}"#, Refusal::Pending),
        (400, r#"{"error": "slow_down"}"#, Refusal::SlowDown),
        // Some say so with a status that means success.
        (200, r#"{"error": "invalid_grant", "error_description": "too\nlate"}"#, Refusal::Ended("too late".into())),
        (200, "[]", Refusal::Other("the authorization server answered with HTTP 200".into())),
        (500, "<html>", Refusal::Other("the authorization server answered with HTTP 500".into())),
        (200, r#"{"token": "x"}"#, Refusal::Other("the authorization server sent no token".into())),
    ] {
        assert_eq!(answer(status, body).await, Err(expected), "{body}");
    }
    let odd = answer(200, r#"{"access_token": "a", "token_type": "mac"}"#).await.unwrap_err();
    assert!(odd.to_string().contains("not supported"), "{odd}");
    let long = answer(200, r#"{"access_token": "a", "expires_in": 9e18}"#).await.unwrap();
    assert!(long.expires_at.is_some());
    let large = answer(200, &format!("{{\"x\": \"{}\"}}", "x".repeat(300_000))).await.unwrap_err();
    assert!(large.to_string().contains("too much"), "{large}");
    let gone = exchange::tokens(&http(), &client("http://127.0.0.1:1"), &[]).await;
    assert_eq!(gone, Err(Refusal::Unreachable("cannot be reached")));
}

/// An authorization server that knows one refresh token.
async fn authority() -> (Arc<std::sync::Mutex<authority::Authority>>, web::Web) {
    let state =
        authority::Authority { clients: ["mine".to_owned()].into(), token_life: Some(3600), ..Default::default() };
    let state = Arc::new(std::sync::Mutex::new(state));
    let answering = Arc::clone(&state);
    let web = web::Web::serve(move |request| answering.lock().unwrap().token(&request)).await;
    (state, web)
}

#[tokio::test]
async fn many_who_ask_at_once_renew_once_also_across_servers() {
    let (state, web) = authority().await;
    let folder = tempfile::tempdir().unwrap();
    let logins = Logins::of_providers(folder.path());
    let client = client(&web.url(""));
    logins.set("p", tokens("old", Some(1)).to_keep(&client)).unwrap();
    // Two servers of one user.
    let sessions = [Sessions::kept_in(logins.clone()).unwrap(), Sessions::kept_in(logins.clone()).unwrap()];
    let sessions = sessions.map(|sessions| sessions.of("p", &client, &http()));
    let asking = (0..20).map(|n| {
        let session = Arc::clone(&sessions[n % 2]);
        tokio::spawn(async move { session.access(None).await.unwrap().expose().to_owned() })
    });
    for asked in asking.collect::<Vec<_>>() {
        assert_eq!(asked.await.unwrap(), "token-1");
    }
    assert_eq!(state.lock().unwrap().refreshes, 1);
    // A refusal of an old token does not renew a newer one.
    assert_eq!(sessions[0].access(Some(&Secret::new("old"))).await.unwrap().expose(), "token-1");
    assert_eq!(sessions[1].access(Some(&Secret::new("token-1"))).await.unwrap().expose(), "token-2");
    assert_eq!(sessions[0].access(Some(&Secret::new("token-1"))).await.unwrap().expose(), "token-2");
    assert_eq!(state.lock().unwrap().refreshes, 2);
    // What one has, the other finds when it looks again.
    sessions[0].keep(tokens("new", None)).await.unwrap();
    sessions[1].look_again().await.unwrap();
    assert_eq!(sessions[1].tokens(), Some(tokens("new", None)));
    // Who logs out in one server is logged out in the other when it looks.
    sessions[0].forget().await.unwrap();
    let failure = sessions[1].access(Some(&Secret::new("new"))).await.unwrap_err();
    assert!(failure.class == ErrorClass::Auth && failure.text.contains("/login p"), "{failure:?}");
}

#[tokio::test]
async fn a_renewal_goes_on_when_nobody_waits_for_it() {
    let (state, web) = authority().await;
    let folder = tempfile::tempdir().unwrap();
    let logins = Logins::of_providers(folder.path());
    let client = client(&web.url(""));
    logins.set("p", tokens("old", Some(1)).to_keep(&client)).unwrap();
    let session = Sessions::kept_in(logins.clone()).unwrap().of("p", &client, &http());
    let asking = session.clone();
    let asked = tokio::spawn(async move { asking.access(None).await });
    tokio::task::yield_now().await;
    asked.abort();
    let _ = asked.await;
    // Whether it had begun or not: the next one gets a good token, and none is lost.
    let token = session.access(None).await.unwrap();
    let state = state.lock().unwrap();
    assert_eq!(token.expose(), format!("token-{}", state.issued));
    assert_eq!(state.refreshes, state.issued);
}

#[tokio::test]
async fn an_authorization_server_out_of_reach_is_no_end_of_a_login() {
    let client = client("http://127.0.0.1:1");
    let folder = tempfile::tempdir().unwrap();
    let logins = Logins::of_providers(folder.path());
    logins.set("p", tokens("old", Some(1)).to_keep(&client)).unwrap();
    let session = Sessions::kept_in(logins.clone()).unwrap().of("p", &client, &http());
    let failure = session.access(None).await.unwrap_err();
    assert_eq!(failure.class, ErrorClass::Network, "{failure:?}");
    assert!(session.can_renew());
}
