//! A provider behind a login: the dialect as it is, with a token on each request.
//!
//! A dialect is made for its credentials, so there is one per token. A token that the provider
//! refuses is renewed once, and the request sent again: nothing of an answer has been shown then.

use std::sync::{Arc, Mutex, PoisonError};

use futures_util::future::BoxFuture;
use futures_util::{FutureExt, StreamExt, stream};

use super::Session;
use super::session::Failure;
use crate::config::{ProviderConfig, Secret};
use crate::llm::{DeltaStream, ErrorClass, LlmError, Provider, Request};
use crate::providers::dialects::ListedModel;
use crate::providers::dialects::exchange::failed;
use crate::providers::discovery::Upstream;
use crate::providers::registry::BuildUpstream;

const AUTHORIZATION: &str = "authorization";

/// A provider whose key is a token.
#[derive(Clone)]
pub(in crate::providers) struct WithTokens {
    inner: Arc<Inner>,
}

struct Inner {
    id: String,
    dialect: &'static str,
    session: Arc<Session>,
    config: ProviderConfig,
    build: BuildUpstream,
    /// The dialect with the newest token.
    made: Mutex<Option<(Secret, Arc<dyn Upstream>)>>,
}

impl WithTokens {
    /// `config` is complete except for its credentials.
    pub(in crate::providers) fn new(
        id: &str,
        config: &ProviderConfig,
        session: Arc<Session>,
        build: BuildUpstream,
    ) -> Self {
        let dialect = build(id, config, None).dialect();
        let config = config.clone();
        Self { inner: Arc::new(Inner { id: id.to_owned(), dialect, session, config, build, made: Mutex::default() }) }
    }
}

impl Inner {
    /// The dialect with a token that is not `refused`, and that token.
    async fn upstream(&self, refused: Option<&Secret>) -> Result<(Secret, Arc<dyn Upstream>), LlmError> {
        let failure = |Failure { class, text }| LlmError {
            class,
            status: None,
            provider: self.id.clone(),
            retry_after: None,
            user_text: text,
        };
        let token = self.session.access(refused).await.map_err(failure)?;
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((of, upstream)) = &*made
            && *of == token
        {
            return Ok((token, Arc::clone(upstream)));
        }
        let mut config = self.config.clone();
        // Every vendor takes a token in this header, wherever it wants its keys.
        if !config.extra_headers.keys().any(|name| name.eq_ignore_ascii_case(AUTHORIZATION)) {
            config.extra_headers.insert(AUTHORIZATION.to_owned(), format!("Bearer {}", token.expose()));
        }
        let upstream = (self.build)(&self.id, &config, None);
        *made = Some((token.clone(), Arc::clone(&upstream)));
        Ok((token, upstream))
    }

    async fn stream(&self, request: Request) -> DeltaStream {
        let (token, upstream) = match self.upstream(None).await {
            Ok(found) => found,
            Err(error) => return failed(error),
        };
        let again = self.session.can_renew().then(|| request.clone());
        let mut answer = upstream.stream(request);
        match answer.next().await {
            Some(Err(error)) if error.class == ErrorClass::Auth => match again {
                None => failed(hint(&self.id, error)),
                Some(request) => match self.upstream(Some(&token)).await {
                    Ok((_, upstream)) => {
                        let id = self.id.clone();
                        let answer = upstream.stream(request);
                        answer.map(move |item| item.map_err(|error| hint(&id, error))).boxed()
                    }
                    Err(error) => failed(error),
                },
            },
            Some(first) => stream::iter([first]).chain(answer).boxed(),
            None => answer,
        }
    }

    async fn list_models(&self) -> Result<Vec<ListedModel>, LlmError> {
        let (token, upstream) = self.upstream(None).await?;
        match upstream.list_models().await {
            Err(error) if error.class == ErrorClass::Auth && self.session.can_renew() => {
                let (_, upstream) = self.upstream(Some(&token)).await?;
                upstream.list_models().await
            }
            listed => listed,
        }
    }
}

/// A refusal may have other reasons than the token, so the provider's own words stay.
fn hint(id: &str, error: LlmError) -> LlmError {
    match error.class {
        ErrorClass::Auth => {
            let user_text = format!("{} If the login has ended, log in with `/login {id}`.", error.user_text);
            LlmError { user_text, ..error }
        }
        _ => error,
    }
}

impl Provider for WithTokens {
    fn id(&self) -> &str {
        &self.inner.id
    }

    fn dialect(&self) -> &'static str {
        self.inner.dialect
    }

    fn stream(&self, request: Request) -> DeltaStream {
        let inner = Arc::clone(&self.inner);
        async move { inner.stream(request).await }.flatten_stream().boxed()
    }
}

impl Upstream for WithTokens {
    fn list_models(&self) -> BoxFuture<'_, Result<Vec<ListedModel>, LlmError>> {
        self.inner.list_models().boxed()
    }
}

impl std::fmt::Debug for WithTokens {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WithTokens").field("id", &self.inner.id).field("session", &self.inner.session).finish()
    }
}
