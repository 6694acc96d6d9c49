//! Logging in at a server behind an address: discovery, registration, the user's browser, tokens.
//!
//! The protocol's part is the library's (`rmcp::transport::auth`); ours is the HTTP client, the
//! listener that the browser comes back to, and the file that keeps the tokens.

mod store;

use std::sync::Arc;
use std::time::Duration;

use rmcp::transport::auth::{
    AuthError, AuthorizationManager, OAuthClientConfig, OAuthHttpClient, OAuthHttpClientFuture, OAuthHttpRequest,
};

use super::http;
use crate::config::{McpServerConfig, Secret};
use crate::http::Client;
use crate::http::callback::{Listener, Redirect};
pub(super) use store::Login;

/// How long the user may take in the browser.
const USER_PATIENCE: Duration = Duration::from_secs(600);
/// Metadata and tokens are small.
const MOST_BODY: usize = 1024 * 1024;
const NAME: &str = "ECA";

/// Our HTTP client, as the login wants it.
struct Requests(Client);

impl OAuthHttpClient for Requests {
    fn execute(&self, request: OAuthHttpRequest) -> OAuthHttpClientFuture<'_> {
        Box::pin(async move {
            let patience = request.timeout;
            let (parts, body) = request.request.into_parts();
            // Our client follows a redirect only where method, body and origin stay the same, which
            // is less than the library may ask for and never more than it allows.
            let builder = self.0.request(parts.method, &parts.uri.to_string())?.headers(parts.headers).body(body);
            let builder = match patience {
                Some(patience) => builder.timeout(patience),
                None => builder,
            };
            let mut response = http::send(builder).await.map_err(|error| error.to_string())?;
            let (status, headers) = (response.status(), std::mem::take(response.headers_mut()));
            let body = http::body(response, MOST_BODY).await.map_err(|error| error.to_string())?;
            let mut answer = Response::new(body);
            *answer.status_mut() = status;
            *answer.headers_mut() = headers;
            Ok(answer)
        })
    }
}

/// What such a future gives: the library takes the type and does not name it.
type Response = <<OAuthHttpClientFuture<'static> as Future>::Output as Outcome>::Good;

trait Outcome {
    type Good;
}

impl<T, E> Outcome for Result<T, E> {
    type Good = T;
}

/// What knows the login of a server; with its tokens if there are any.
pub(super) async fn manager(
    url: &str,
    client: &Client,
    login: &Login,
    config: &McpServerConfig,
) -> Result<AuthorizationManager, AuthError> {
    let mut manager = bare(url, client, login).await?;
    if manager.initialize_from_store().await? {
        configure_again(&mut manager, url, login, config).await?;
    }
    Ok(manager)
}

async fn bare(url: &str, client: &Client, login: &Login) -> Result<AuthorizationManager, AuthError> {
    let requests = Arc::new(Requests(client.clone()));
    let mut manager = AuthorizationManager::new_with_oauth_http_client(url, requests).await?;
    manager.set_credential_store(login.store());
    Ok(manager)
}

/// The library keeps a client's id with its tokens, but not its secret.
async fn configure_again(
    manager: &mut AuthorizationManager,
    url: &str,
    login: &Login,
    config: &McpServerConfig,
) -> Result<(), AuthError> {
    let secret = match &config.client_secret {
        Some(secret) => Some(secret.clone()),
        None => login.client_secret().await,
    };
    let Some(secret) = secret else { return Ok(()) };
    let (client_id, _) = manager.get_credentials().await?;
    manager.configure_client(OAuthClientConfig::new(client_id, url).with_client_secret(secret.expose()))
}

/// Takes the user through a login. `show` is given the address to open.
pub(super) async fn log_in(
    url: &str,
    client: &Client,
    login: &Login,
    config: &McpServerConfig,
    challenge: &str,
    show: impl FnOnce(&str),
) -> Result<(), String> {
    let listener = Listener::bind(&Redirect::to_localhost(config.oauth_port)).await?;
    let redirect = listener.redirect_uri();
    let words = |error: AuthError| error.to_string();
    let mut manager = bare(url, client, login).await.map_err(words)?;
    let challenge = (!challenge.is_empty()).then_some(challenge);
    let resolution = manager.resolve_metadata_from_challenge(challenge).await.map_err(words)?;
    manager.set_metadata(resolution.metadata);
    let scopes = manager.select_initial_scopes(&[]).await;
    let scopes: Vec<&str> = scopes.iter().map(String::as_str).collect();
    let secret = match &config.client_id {
        Some(id) => {
            let mut known = OAuthClientConfig::new(id, &redirect);
            if let Some(secret) = &config.client_secret {
                known = known.with_client_secret(secret.expose());
            }
            manager.configure_client(known).map_err(words)?;
            None
        }
        None => {
            let name = config.client_name.as_deref().unwrap_or(NAME);
            let registered = manager.register_client(name, &redirect, &scopes).await.map_err(words)?;
            registered.client_secret.map(Secret::new)
        }
    };
    login.remember_client_secret(secret);
    let address = manager.get_authorization_url(&scopes).await.map_err(words)?;
    if !["https://", "http://"].iter().any(|scheme| address.starts_with(scheme)) {
        return Err("the server names an address that no browser should open".to_owned());
    }
    show(&address);
    let waiting = tokio::time::timeout(USER_PATIENCE, listener.callback(&address));
    let answer = waiting.await.map_err(|_| "nobody logged in within ten minutes".to_owned())??;
    let exchanged = manager.exchange_code_for_token_with_issuer(&answer.code, &answer.state, answer.issuer.as_deref());
    exchanged.await.map(drop).map_err(words)
}
