//! Making a connection to a server, from nothing to its list of tools.

use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::{BoxFuture, MaybeDone, maybe_done};
use rmcp::RoleClient;
use rmcp::model::{ServerCapabilities, ServerPeerInfo};
use rmcp::service::{ClientInitializeError, RunningService, RunningServiceCancellationToken, serve_client};
use rmcp::transport::auth::AuthClient;
use rmcp::transport::streamable_http_client::{
    StreamableHttpClient, StreamableHttpClientTransport, StreamableHttpClientTransportConfig,
};
use tokio_util::sync::CancellationToken;

use super::calls::Calls;
use super::child::{self, Process};
use super::failure::{self, Failure};
use super::handler::{Handler, Signals};
use super::http::{self, HttpClient};
use super::limited::Limited;
use super::lines::MAX_LINE_BYTES;
use super::live::Live;
use super::oauth::{self, Login};
use super::pipe::PipeTransport;
use super::shared::{Definition, Shared};
use super::status::McpError;

/// A connection, and what keeps it.
pub(super) struct Connection {
    pub(super) live: Live,
    pub(super) signals: Arc<Signals>,
    pub(super) closed: CancellationToken,
    /// Of a server that is a process.
    pub(super) process: Option<Process>,
    /// Ends with the connection; more than one waits for it, so it may be asked again after that.
    pub(super) serving: MaybeDone<BoxFuture<'static, ()>>,
    pub(super) info: Arc<ServerPeerInfo>,
    pub(super) tools: Vec<rmcp::model::Tool>,
    cancel: RunningServiceCancellationToken,
}

type Running = RunningService<RoleClient, Handler>;

/// What a handler is made of, besides its connection.
struct Ends {
    calls: Arc<Calls>,
    signals: Arc<Signals>,
    closed: CancellationToken,
}

/// Connects to the server of `definition`. Dropping the future ends everything it began.
pub(super) async fn connect(
    shared: &Shared,
    definition: &Definition,
    login: Option<&Login>,
) -> Result<Connection, Failure> {
    let ends = Ends { calls: Arc::default(), signals: Arc::default(), closed: CancellationToken::new() };
    let secrets = Arc::new(definition.secrets());
    let handler = Handler {
        server: shared.name().to_owned(),
        calls: Arc::clone(&ends.calls),
        signals: Arc::clone(&ends.signals),
        roots: Arc::clone(&shared.world().roots),
        can_ask: shared.world().can_ask,
        closed: ends.closed.clone(),
        secrets: Arc::clone(&secrets),
    };
    match (&definition.config.url, login) {
        (Some(url), Some(login)) => {
            let running = remote(url, handler, definition, login).await?;
            established(shared, definition, running, ends, None).await
        }
        _ => {
            let (program, pipes) = child::start(shared.name(), definition)?;
            let process = Process::new(shared.name(), program, pipes.errors, &secrets);
            let transport = PipeTransport::new(shared.name(), pipes.output, pipes.input, ends.closed.clone());
            match introduce(handler, Limited::new(transport), definition).await {
                Ok(running) => established(shared, definition, running, ends, Some(process)).await,
                // A program that ended says more about it than a closed pipe.
                Err(Failure::Passing(_)) if ends.closed.is_cancelled() => Err(child::post_mortem(process).await),
                Err(failure) => Err(failure),
            }
        }
    }
}

async fn remote(url: &str, handler: Handler, definition: &Definition, login: &Login) -> Result<Running, Failure> {
    let headers = http::headers(&definition.config.headers).map_err(Failure::Lasting)?;
    let client = HttpClient(definition.client.clone());
    let mut config = StreamableHttpClientTransportConfig::with_uri(url).max_sse_event_size(MAX_LINE_BYTES);
    config.custom_headers = headers;
    if http::is_authorized(&config.custom_headers) {
        let refused = |failure| match failure {
            Failure::NeedsLogin(_) => {
                Failure::Lasting("it does not accept the configured Authorization header".to_owned())
            }
            other => other,
        };
        return over_http(client, config, handler, definition).await.map_err(refused);
    }
    let manager =
        tokio::time::timeout(definition.timeout, oauth::manager(url, &definition.client, login, &definition.config));
    let manager = manager.await.map_err(|_| silent(definition))?.map_err(|error| failure::of_login(&error))?;
    over_http(AuthClient::new(client, manager), config, handler, definition).await
}

async fn over_http(
    client: impl StreamableHttpClient<Error = http::HttpFailure> + Sync,
    config: StreamableHttpClientTransportConfig,
    handler: Handler,
    definition: &Definition,
) -> Result<Running, Failure> {
    let transport = StreamableHttpClientTransport::with_client(client, config);
    introduce(handler, Limited::new(transport), definition).await
}

async fn introduce<T>(handler: Handler, transport: T, definition: &Definition) -> Result<Running, Failure>
where
    T: rmcp::transport::Transport<RoleClient> + 'static,
{
    let serving = tokio::time::timeout(definition.timeout, serve_client(handler, transport));
    let introduced: Result<Running, ClientInitializeError> = serving.await.map_err(|_| silent(definition))?;
    introduced.map_err(|error| failure::of_handshake(&error))
}

async fn established(
    shared: &Shared,
    definition: &Definition,
    running: Running,
    ends: Ends,
    process: Option<Process>,
) -> Result<Connection, Failure> {
    let mut connection = Connection::new(shared.name(), running, ends, process, definition.timeout)?;
    if connection.capabilities().logging.is_some() {
        connection.live.ask_for_logs().await;
    }
    // A server without tools may have prompts or resources all the same.
    if connection.capabilities().tools.is_none() {
        return Ok(connection);
    }
    let listed = tokio::select! {
        listed = connection.live.tools() => listed,
        () = &mut connection.serving => Err(McpError::Closed(shared.name().to_owned())),
    };
    match listed {
        Ok(tools) => connection.tools = tools,
        Err(McpError::NeedsLogin { .. }) => return Err(Failure::NeedsLogin(String::new())),
        Err(McpError::Closed(_)) => {
            return Err(match connection.process.take() {
                Some(process) => child::post_mortem(process).await,
                None => Failure::Passing("it closed the connection".to_owned()),
            });
        }
        Err(error) => return Err(Failure::Passing(format!("its tools cannot be listed: {error}"))),
    }
    Ok(connection)
}

fn silent(definition: &Definition) -> Failure {
    Failure::Passing(format!("it did not answer within {} s", definition.timeout.as_secs().max(1)))
}

impl Connection {
    fn new(
        server: &str,
        running: Running,
        ends: Ends,
        process: Option<Process>,
        timeout: Duration,
    ) -> Result<Self, Failure> {
        let Ends { calls, signals, closed } = ends;
        let peer = running.peer().clone();
        let info = peer.peer_info().ok_or_else(|| Failure::Passing("it did not introduce itself".to_owned()))?;
        let live = Live::new(server, peer, calls, Arc::clone(&signals), closed.clone(), timeout);
        let cancel = running.cancellation_token();
        let ended = closed.clone();
        let serving = async move {
            let _ = running.waiting().await;
            ended.cancel();
        };
        let serving = maybe_done(serving.boxed());
        Ok(Self { live, signals, closed, process, serving, info, tools: Vec::new(), cancel })
    }

    pub(super) fn capabilities(&self) -> &ServerCapabilities {
        &self.info.capabilities
    }

    /// Closes it: a process reads the end of its input and has a moment to leave by itself.
    pub(super) async fn end(self, patience: Duration) {
        self.cancel.cancel();
        self.closed.cancel();
        let Self { process, mut serving, .. } = self;
        let closing = tokio::time::timeout(patience, &mut serving);
        match process {
            Some(process) => drop(tokio::join!(closing, process.end(patience))),
            None => drop(closing.await),
        }
    }

    /// Why it ended by itself.
    pub(super) async fn why(&mut self) -> Failure {
        match self.process.take() {
            Some(process) => child::post_mortem(process).await,
            None => Failure::Passing("the connection is closed".to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, duplex};

    use super::*;

    #[tokio::test]
    async fn one_that_ended_by_itself_is_closed_like_any_other() {
        let (mut output, ours) = duplex(4096);
        let (mine, input) = duplex(4096);
        let ends = Ends { calls: Arc::default(), signals: Arc::default(), closed: CancellationToken::new() };
        let handler = Handler {
            server: "s".to_owned(),
            calls: Arc::clone(&ends.calls),
            signals: Arc::clone(&ends.signals),
            roots: Arc::default(),
            can_ask: false,
            closed: ends.closed.clone(),
            secrets: Arc::default(),
        };
        let transport = PipeTransport::new("s", ours, mine, ends.closed.clone());
        let server = async {
            let mut lines = BufReader::new(input).lines();
            let request: serde_json::Value = serde_json::from_str(&lines.next_line().await.unwrap().unwrap()).unwrap();
            let result = json!({
                "protocolVersion": "2025-06-18", "capabilities": {}, "serverInfo": {"name": "s", "version": "1"},
            });
            let answer = json!({"jsonrpc": "2.0", "id": request["id"], "result": result});
            output.write_all(format!("{answer}\n").as_bytes()).await.unwrap();
            lines.next_line().await.unwrap().expect("it is told that we are ready");
            drop(output);
        };
        let (running, ()) = tokio::join!(serve_client(handler, Limited::new(transport)), server);
        let mut connection = Connection::new("s", running.unwrap(), ends, None, Duration::from_secs(5)).ok().unwrap();
        (&mut connection.serving).await;
        assert!(connection.closed.is_cancelled());
        connection.end(Duration::from_secs(5)).await;
    }
}
