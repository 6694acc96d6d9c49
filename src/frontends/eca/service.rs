//! The framework's service with every method of the protocol on it.
//!
//! This is the one place that instantiates `LspService`: it compiles some seventy LSP handlers,
//! so it is done once and behind a function that is not generic.

use std::sync::Arc;

use futures_util::future::{self, BoxFuture, Ready};
use lsp_types::notification::Notification;
use lsp_types::request::Request;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tower_lsp::jsonrpc::{Error, ErrorCode, Result};
use tower_lsp::lsp_types::{
    DidChangeTextDocumentParams, DidCloseTextDocumentParams, DidOpenTextDocumentParams, DidSaveTextDocumentParams,
    InitializeParams, InitializeResult, InitializedParams,
};
use tower_lsp::{ClientSocket, LanguageServer, LspService};

use super::client::Client;
use super::layers::{Normalise, PanicGuard};
use super::session::{Session, Started};
use super::start::Starter;
use crate::engine::Engine;
use crate::frontends::Surroundings;

/// The whole stack, from the outside in.
pub(super) type Service = PanicGuard<Normalise<LspService<EcaServer>>>;

/// What the handlers see.
#[derive(Debug)]
pub(super) struct EcaServer {
    pub(super) session: Arc<Session>,
    pub(super) starter: Starter,
}

/// How a request of the protocol is answered. A method of the table without an implementation
/// does not compile.
pub(super) trait Answer<M: Request> {
    fn answer(&self, params: M::Params) -> impl Future<Output = Result<M::Result>> + Send;
}

/// What a notification of the protocol does. It must not wait: the next message comes after it.
pub(super) trait Take<N: Notification> {
    fn take(&self, params: N::Params);
}

/// The service, and the framework's own channel to the client, which stays unused: everything goes
/// through the outbox.
pub(super) fn build(session: Arc<Session>, starter: Starter) -> (Service, ClientSocket) {
    let server = EcaServer { session: Arc::clone(&session), starter };
    let mut builder = LspService::build(|_client| server);
    macro_rules! register_requests {
        ([] $($method:ty,)*) => {
            $( builder = builder.custom_method(<$method as Request>::METHOD, on_request::<$method> as OnRequest); )*
        };
    }
    macro_rules! register_notifications {
        ([] $($method:ty,)*) => {
            $(
                builder = builder
                    .custom_method(<$method as Notification>::METHOD, on_notification::<$method> as OnNotification);
            )*
        };
    }
    custom_methods::for_each_client_request!(register_requests);
    custom_methods::for_each_client_notification!(register_notifications);
    let (service, socket) = builder.finish();
    (PanicGuard(Normalise { inner: service, session }), socket)
}

/// One type for all handlers, so that the framework's part of each is compiled once.
type OnRequest = for<'a> fn(&'a EcaServer, Value) -> BoxFuture<'a, Result<Value>>;
type OnNotification = for<'a> fn(&'a EcaServer, Value) -> Ready<()>;

fn on_request<M>(server: &EcaServer, params: Value) -> BoxFuture<'_, Result<Value>>
where
    M: Request,
    EcaServer: Answer<M>,
{
    Box::pin(async move {
        let result = Answer::<M>::answer(server, decode(M::METHOD, params)?).await?;
        serde_json::to_value(result).map_err(|error| failed(format!("{}: {error}", M::METHOD)))
    })
}

fn on_notification<N>(server: &EcaServer, params: Value) -> Ready<()>
where
    N: Notification,
    EcaServer: Take<N>,
{
    match decode(N::METHOD, params) {
        Ok(params) => Take::<N>::take(server, params),
        Err(error) => tracing::warn!(method = N::METHOD, error = %error.message, "a notification was ignored"),
    }
    future::ready(())
}

/// The error names the field that is wrong.
fn decode<P: DeserializeOwned>(method: &str, params: Value) -> Result<P> {
    serde_path_to_error::deserialize(params).map_err(|error| {
        let path = error.path().to_string();
        let place = if path == "." { String::new() } else { format!("{path}: ") };
        Error::invalid_params(format!("{method}: {place}{}", error.inner()))
    })
}

impl EcaServer {
    pub(super) fn started(&self) -> Result<&Started> {
        self.session.started().ok_or_else(|| failed("the server is not initialized"))
    }

    pub(super) fn surroundings(&self) -> &Surroundings {
        &self.starter.surroundings
    }

    pub(super) fn client(&self) -> &Client {
        &self.starter.client
    }

    pub(super) fn engine(&self) -> Result<&Engine> {
        Ok(&self.started()?.engine)
    }
}

/// A request that could not be carried out, in one sentence for the user.
pub(super) fn failed(message: impl Into<std::borrow::Cow<'static, str>>) -> Error {
    Error { code: ErrorCode::ServerError(-32803), message: message.into(), data: None }
}

impl LanguageServer for EcaServer {
    async fn initialize(&self, _: InitializeParams) -> Result<InitializeResult> {
        let params = decode("initialize", self.session.take_initialize())?;
        self.starter.initialize(&self.session, params);
        // The layer around us puts the real answer in its place.
        Ok(InitializeResult::default())
    }

    async fn initialized(&self, _: InitializedParams) {
        self.starter.initialized(&self.session);
    }

    async fn shutdown(&self) -> Result<()> {
        let started = self.started()?;
        let (saved, ()) = tokio::join!(started.engine.shutdown(), started.servers.shutdown());
        saved.map_err(|error| failed(format!("not everything could be saved: {error}")))
    }

    async fn did_open(&self, params: DidOpenTextDocumentParams) {
        let document = params.text_document;
        self.session.documents().opened(document.uri, document.version, document.text);
    }

    async fn did_change(&self, params: DidChangeTextDocumentParams) {
        let document = params.text_document;
        self.session.documents().changed(&document.uri, document.version, &params.content_changes);
    }

    async fn did_save(&self, params: DidSaveTextDocumentParams) {
        self.session.documents().saved(&params.text_document.uri);
    }

    async fn did_close(&self, params: DidCloseTextDocumentParams) {
        self.session.documents().closed(&params.text_document.uri);
    }
}
