//! Tower layers around the framework's service: what real clients send, made fit for it.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::task::{Context, Poll};

use custom_methods::general::DidChangeWorkspaceFoldersParams;
use custom_methods::keys::normalise_keys;
use futures_util::FutureExt;
use futures_util::future::{self, BoxFuture};
use serde_json::{Value, json};
use tower::Service;
use tower_lsp::jsonrpc::{Error, ErrorCode, Id, Request, Response};

use super::session::Session;

type Answer<E> = Result<Option<Response>, E>;

/// Turns a panic of a handler into an error for that one request; the server lives.
#[derive(Debug, Clone)]
pub(super) struct PanicGuard<S>(pub(super) S);

impl<S, E> Service<Request> for PanicGuard<S>
where
    S: Service<Request, Response = Option<Response>, Error = E>,
    S::Future: Send + 'static,
    E: Send + 'static,
{
    type Response = Option<Response>;
    type Error = E;
    type Future = BoxFuture<'static, Answer<E>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), E>> {
        self.0.poll_ready(cx)
    }

    fn call(&mut self, request: Request) -> Self::Future {
        let id = request.id().cloned();
        let method = request.method().to_owned();
        // Handlers hold no lock over an await and keep their state in actors, so nothing that a
        // panic leaves behind is seen half done.
        let call = match std::panic::catch_unwind(AssertUnwindSafe(|| self.0.call(request))) {
            Ok(call) => call,
            Err(_) => return future::ready(Ok(panicked(id, &method))).boxed(),
        };
        AssertUnwindSafe(call)
            .catch_unwind()
            .map(move |outcome| outcome.unwrap_or_else(|_| Ok(panicked(id, &method))))
            .boxed()
    }
}

fn panicked(id: Option<Id>, method: &str) -> Option<Response> {
    tracing::error!(method, "a handler panicked");
    let error = Error {
        code: ErrorCode::InternalError,
        message: format!("{method} failed inside the server; its log has the details").into(),
        data: None,
    };
    id.map(|id| Response::from_error(id, error))
}

/// Accepts every shape of params and keys that clients send, keeps the raw `initialize`, and
/// answers what the framework would leave unanswered.
#[derive(Debug)]
pub(super) struct Normalise<S> {
    pub(super) inner: S,
    pub(super) session: Arc<Session>,
}

impl<S, E> Service<Request> for Normalise<S>
where
    S: Service<Request, Response = Option<Response>, Error = E>,
    S::Future: Send + 'static,
    E: Send + 'static,
{
    type Response = Option<Response>;
    type Error = E;
    type Future = BoxFuture<'static, Answer<E>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), E>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request) -> Self::Future {
        let (method, id, params) = request.into_parts();
        let params = match object_params(&method, params) {
            Ok(params) => params,
            Err(problem) => {
                tracing::warn!(%method, problem, "params refused");
                return future::ready(Ok(id.map(|id| Response::from_error(id, Error::invalid_params(problem)))))
                    .boxed();
            }
        };
        match &*method {
            "initialize" => self.initialize(id, params),
            "workspace/didChangeWorkspaceFolders" => {
                match serde_json::from_value::<DidChangeWorkspaceFoldersParams>(params) {
                    Ok(params) => self.session.change_folders(&params.event),
                    Err(error) => tracing::warn!(%error, "workspace folders could not be read"),
                }
                future::ready(Ok(None)).boxed()
            }
            _ => {
                let takes_no_params = matches!(&*method, "shutdown" | "exit");
                let mut builder = Request::build(method.clone());
                if let Some(id) = id.clone() {
                    builder = builder.id(id);
                }
                if !takes_no_params {
                    builder = builder.params(params);
                }
                if method == "exit" {
                    self.session.request_exit();
                }
                let call = self.inner.call(builder.finish());
                call.map(move |answer| answer.map(|response| complete(response, id, &method))).boxed()
            }
        }
    }
}

impl<S, E> Normalise<S>
where
    S: Service<Request, Response = Option<Response>, Error = E>,
    S::Future: Send + 'static,
    E: Send + 'static,
{
    /// The framework's types would lose or refuse parts of what clients send here, and cannot
    /// carry all of our answer; it sees a minimal handshake and decides only about the order.
    fn initialize(&mut self, id: Option<Id>, params: Value) -> BoxFuture<'static, Answer<E>> {
        self.session.offer_initialize(params);
        let mut builder = Request::build("initialize").params(json!({"capabilities": {}}));
        if let Some(id) = id {
            builder = builder.id(id);
        }
        let call = self.inner.call(builder.finish());
        let session = Arc::clone(&self.session);
        call.map(move |answer| {
            answer.map(|response| match response.map(Response::into_parts) {
                Some((id, Ok(_))) => Some(Response::from_ok(id, session.initialize_result())),
                Some((id, Err(error))) => Some(Response::from_error(id, error)),
                None => None,
            })
        })
        .boxed()
    }
}

/// Params as an object with our spelling of keys: absent, `null` and `[]` mean "none".
fn object_params(method: &str, params: Option<Value>) -> Result<Value, String> {
    let mut params = match params {
        None | Some(Value::Null) => json!({}),
        Some(Value::Array(list)) if list.is_empty() => json!({}),
        Some(object @ Value::Object(_)) => object,
        Some(_) => return Err(format!("the params of {method} must be an object")),
    };
    normalise_keys(method, &mut params);
    Ok(params)
}

/// Every request gets an answer, and an unknown method is named the way clients know it.
fn complete(response: Option<Response>, id: Option<Id>, method: &str) -> Option<Response> {
    let unknown = || Error {
        code: ErrorCode::MethodNotFound,
        message: format!("Method not found: {method}").into(),
        data: Some(json!({"method": method})),
    };
    match response {
        // The framework is silent about unknown methods that start with `$/`.
        None => id.map(|id| Response::from_error(id, unknown())),
        Some(response) => match response.into_parts() {
            (id, Err(error))
                if error.code == ErrorCode::MethodNotFound && error.data.as_ref().is_some_and(Value::is_string) =>
            {
                Some(Response::from_error(id, unknown()))
            }
            (id, body) => Some(Response::from_parts(id, body)),
        },
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use tower::service_fn;

    use super::*;

    async fn answer(panics_before: bool, request: Request) -> Option<Response> {
        let mut guard = PanicGuard(service_fn(move |request: Request| {
            assert!(!panics_before, "a bug before the first await");
            async move {
                tokio::task::yield_now().await;
                assert!(request.method() != "boom", "a bug after it");
                Ok::<_, Infallible>(request.id().cloned().map(|id| Response::from_ok(id, json!("fine"))))
            }
        }));
        guard.call(request).await.unwrap_or_default()
    }

    #[tokio::test]
    async fn a_panic_costs_one_request_an_error() {
        for before in [false, true] {
            let response = answer(before, Request::build("boom").id(7).finish()).await.expect("an answer");
            let (id, body) = response.into_parts();
            let error = body.expect_err("an error");
            assert_eq!((id, error.code), (Id::Number(7), ErrorCode::InternalError));
            assert!(error.message.contains("boom"), "{}", error.message);
        }
        assert_eq!(answer(false, Request::build("boom").finish()).await, None, "a notification has no answer");
        assert!(answer(false, Request::build("calm").id(1).finish()).await.is_some_and(|response| response.is_ok()));
    }

    #[test]
    fn params_come_in_many_shapes() {
        for none in [None, Some(Value::Null), Some(json!([])), Some(json!({}))] {
            assert_eq!(object_params("shutdown", none), Ok(json!({})));
        }
        assert_eq!(object_params("chat/prompt", Some(json!({"chat-id": "c"}))), Ok(json!({"chatId": "c"})));
        assert!(object_params("chat/prompt", Some(json!([1]))).is_err());
    }
}
