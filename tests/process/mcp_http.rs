//! MCP servers behind an address: sessions, streams, refusals, and the way through a login.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use eca::config::{McpServerConfig, Secret, ShownServer};
use eca::mcp::{ServerEvent, Status};
use eca::tool::ToolOutput;
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::authority::{Authority, log_in};
use super::mcp::{Setup, Watcher, words};
use super::wait_until;
use super::web::{self, Request, Response, Web};

/// A server with a session, and an authorization server beside it.
#[derive(Default)]
struct Remote {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    own_address: String,
    /// Everything that was asked.
    requests: Vec<Request>,
    sessions: u32,
    /// Sessions that exist.
    open: BTreeSet<String>,
    /// Whether a login is needed.
    guarded: bool,
    authority: Authority,
}

impl Remote {
    async fn start(guarded: bool) -> (Arc<Self>, Web) {
        let remote = Arc::new(Self::default());
        let answering = Arc::clone(&remote);
        let web = Web::serve(move |request| answering.answer(request)).await;
        let mut state = remote.state.lock().unwrap();
        state.own_address = web.url("");
        state.guarded = guarded;
        state.authority.token_life = Some(3600);
        state.authority.clients.insert("known-client".to_owned());
        drop(state);
        (remote, web)
    }

    fn requests(&self, method: &str, path: &str) -> Vec<Request> {
        let requests = &self.state.lock().unwrap().requests;
        requests.iter().filter(|request| request.method == method && request.path == path).cloned().collect()
    }

    fn answer(&self, request: Request) -> Response {
        let mut state = self.state.lock().unwrap();
        state.requests.push(request.clone());
        match (request.method.as_str(), request.path.as_str()) {
            (_, "/mcp") => state.mcp(&request),
            ("GET", "/.well-known/oauth-protected-resource/mcp") => Response::json(&json!({
                "resource": format!("{}/mcp", state.own_address), "authorization_servers": [state.own_address],
                "scopes_supported": ["read", "write"]})),
            ("GET", "/.well-known/oauth-authorization-server") => Response::json(&json!({
                "issuer": state.own_address,
                "authorization_endpoint": format!("{}/authorize", state.own_address),
                "token_endpoint": format!("{}/token", state.own_address),
                "registration_endpoint": format!("{}/register", state.own_address),
                "code_challenge_methods_supported": ["S256"], "response_types_supported": ["code"]})),
            ("POST", "/register") => {
                let wanted = request.json();
                let id = format!("client-{}", state.authority.clients.len());
                state.authority.clients.insert(id.clone());
                Response::json(&json!({"client_id": id, "client_name": wanted["client_name"],
                    "redirect_uris": wanted["redirect_uris"]}))
            }
            ("GET", "/authorize") => state.authorize(&request),
            ("POST", "/token") => state.authority.token(&request),
            _ => Response::empty(404),
        }
    }
}

impl State {
    fn mcp(&mut self, request: &Request) -> Response {
        if self.guarded && !self.authority.lets_in(request) {
            let place = format!("{}/.well-known/oauth-protected-resource/mcp", self.own_address);
            return Response::empty(401).with("WWW-Authenticate", format!("Bearer resource_metadata=\"{place}\""));
        }
        let session = request.header("mcp-session-id").to_owned();
        match request.method.as_str() {
            "GET" => return Response::empty(405),
            "DELETE" => {
                self.open.remove(&session);
                return Response::empty(200);
            }
            _ => {}
        }
        let message = request.json();
        let method = message["method"].as_str().unwrap_or_default();
        if method == "initialize" {
            self.sessions += 1;
            let session = format!("session-{}", self.sessions);
            self.open.insert(session.clone());
            let result = json!({"protocolVersion": "2025-06-18", "capabilities": {"tools": {}},
                "serverInfo": {"name": "remote", "version": "1"}});
            return reply(&message, result).with("Mcp-Session-Id", session);
        }
        if !self.open.contains(&session) {
            return Response::empty(404);
        }
        match method {
            "tools/list" => {
                let names = ["plain", "stream", "large", "endless", "break"];
                let tools: Vec<Value> =
                    names.iter().map(|name| json!({"name": name, "inputSchema": {"type": "object"}})).collect();
                reply(&message, json!({"tools": tools}))
            }
            "tools/call" => call(&message),
            "ping" => reply(&message, json!({})),
            _ => Response::empty(202),
        }
    }

    /// The page on which a user says yes, to this server and no other.
    fn authorize(&mut self, request: &Request) -> Response {
        let resource = format!("{}/mcp", self.own_address);
        match request.query.get("resource") == Some(&resource) {
            true => self.authority.authorize(request),
            false => Response::empty(400),
        }
    }
}

fn reply(message: &Value, result: Value) -> Response {
    Response::json(&json!({"jsonrpc": "2.0", "id": message["id"], "result": result}))
}

fn call(message: &Value) -> Response {
    let text = |text: &str| json!({"content": [{"type": "text", "text": text}]});
    let event = |value: Value| format!("event: message\ndata: {value}\n\n");
    match message["params"]["name"].as_str().unwrap_or_default() {
        "plain" => reply(message, text("plain")),
        "large" => reply(message, text(&"x".repeat(20 * 1024 * 1024))),
        "stream" => {
            let (sender, pieces) = mpsc::channel(8);
            let token = message["params"]["_meta"]["progressToken"].clone();
            let answer = json!({"jsonrpc": "2.0", "id": message["id"], "result": text("streamed")});
            tokio::spawn(async move {
                let progress = json!({"progressToken": token, "progress": 1, "total": 2, "message": "half"});
                let note = json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": progress});
                let _ = sender.send(": hello\n\n".to_owned()).await;
                let _ = sender.send(event(note)).await;
                let _ = sender.send(event(answer)).await;
            });
            Response::events(pieces)
        }
        "endless" => {
            let (sender, pieces) = mpsc::channel(8);
            tokio::spawn(async move {
                let _ = sender.send("data: ".to_owned()).await;
                while sender.send("x".repeat(1024 * 1024)).await.is_ok() {}
            });
            Response::events(pieces)
        }
        _ => Response { status: 500, ..Response::text("text/plain", "broken".to_owned()) },
    }
}

trait Remotely {
    fn remote(self, name: &str, url: String, headers: &[(&str, &str)]) -> Self;
    /// The addresses that the user was asked to open.
    fn addresses(&self) -> Vec<String>;
    async fn address(&self, count: usize) -> String;
}

impl Remotely for Setup {
    fn remote(mut self, name: &str, url: String, headers: &[(&str, &str)]) -> Self {
        let headers = headers.iter().map(|(name, value)| ((*name).to_owned(), Secret::new(*value))).collect();
        let shown = ShownServer { url: Some("${env:URL}".to_owned()), ..ShownServer::default() };
        let server = McpServerConfig { url: Some(url), headers, shown, ..McpServerConfig::default() };
        self.config.mcp.servers.insert(name.to_owned(), server);
        self
    }

    fn addresses(&self) -> Vec<String> {
        let address = |event| match event {
            ServerEvent::Authorize { url, .. } => Some(url),
            _ => None,
        };
        self.events().into_iter().filter_map(address).collect()
    }

    async fn address(&self, count: usize) -> String {
        wait_until("the user is shown an address", || self.addresses().len() >= count).await;
        self.addresses()[count - 1].clone()
    }
}

async fn call_tool(setup: &Setup, name: &str) -> ToolOutput {
    setup.call(name, json!({})).await
}

#[tokio::test]
async fn a_remote_server_is_used_like_a_local_one() {
    let (remote, web) = Remote::start(false).await;
    let setup = Setup::new().remote("web", web.url("/mcp"), &[("X-Key", "k3y")]).running("web").await;
    let status = setup.servers.status("web").unwrap();
    assert_eq!((status.url.as_deref(), status.command, status.has_auth), (Some("${env:URL}"), None, false));
    assert_eq!(words(&call_tool(&setup, "plain").await), "plain");
    let watcher = Watcher::new();
    assert_eq!(words(&setup.call_as("stream", json!({}), &watcher).await), "streamed");
    assert_eq!(watcher.shown(), ["1/2 half"]);
    let posts = remote.requests("POST", "/mcp");
    assert!(posts.iter().all(|post| post.header("x-key") == "k3y" && post.header("authorization").is_empty()));
    assert!(posts[1..].iter().all(|post| post.header("mcp-session-id") == "session-1"));
    assert!(posts[1..].iter().all(|post| post.header("mcp-protocol-version") == "2025-06-18"));
    setup.servers.shutdown().await;
    assert_eq!(remote.requests("DELETE", "/mcp").len(), 1, "the session is closed");
}

#[tokio::test]
async fn a_lost_session_is_replaced_and_large_answers_are_refused() {
    let (remote, web) = Remote::start(false).await;
    let setup = Setup::new().remote("web", web.url("/mcp"), &[]).running("web").await;
    remote.state.lock().unwrap().open.clear();
    assert_eq!(words(&call_tool(&setup, "plain").await), "plain");
    assert_eq!(remote.state.lock().unwrap().sessions, 2);
    for name in ["large", "endless", "break"] {
        let output = call_tool(&setup, name).await;
        assert!(output.error, "{name}: {}", words(&output).len());
        assert_eq!(words(&call_tool(&setup, "plain").await), "plain", "after {name}");
    }
    setup.servers.shutdown().await;
}

#[tokio::test]
async fn failures_say_what_is_wrong() {
    let old = Web::serve(|request| match request.method.as_str() {
        "GET" => Response::text("text/event-stream", "event: endpoint\ndata: /messages\n\n".to_owned()),
        _ => Response::empty(405),
    })
    .await;
    let page = Web::serve(|_| Response::text("text/html", "<html>hello</html>".to_owned())).await;
    let (_remote, guarded) = Remote::start(true).await;
    let setup = Setup::new()
        .remote("old", old.url("/sse"), &[])
        .remote("page", page.url("/mcp"), &[])
        .remote("key", guarded.url("/mcp"), &[("Authorization", "Bearer wr0ng-k3y")])
        .remote("header", page.url("/mcp"), &[("bad header", "x")])
        .remote("address", "ftp://x".to_owned(), &[]);
    setup.configure();
    let problem = async |name: &str| setup.until(name, Status::Failed).await.problem.unwrap_or_default();
    let said = problem("old").await;
    assert!(said.contains("HTTP 405") && said.contains("HTTP with SSE"), "{said}");
    assert!(problem("page").await.contains("no MCP server"), "{}", problem("page").await);
    assert!(problem("key").await.contains("Authorization header"), "{}", problem("key").await);
    assert!(problem("header").await.contains("bad header"), "{}", problem("header").await);
    assert!(problem("address").await.contains("http://"), "{}", problem("address").await);
    let all = format!("{:?} {:?}", setup.events(), setup.servers);
    assert!(!all.contains("wr0ng-k3y"), "no secret is shown");
    setup.servers.shutdown().await;
}

#[tokio::test]
async fn a_server_that_goes_away_is_looked_for_again() {
    let (remote, web) = Remote::start(false).await;
    let mut setup = Setup::new().remote("web", web.url("/mcp"), &[]);
    setup.config.mcp.keep_alive = Duration::from_millis(50);
    let setup = setup.running("web").await;
    let address = web.address;
    drop(web);
    setup.until("web", Status::Failed).await;
    let answering = Arc::clone(&remote);
    let _web = Web::at(address, move |request| answering.answer(request)).await;
    setup.until("web", Status::Running).await;
    assert_eq!(words(&call_tool(&setup, "plain").await), "plain");
    setup.servers.shutdown().await;
}

#[tokio::test]
async fn a_login_from_the_first_refusal_to_the_last_logout() {
    let (remote, web) = Remote::start(true).await;
    let setup = Setup::new().remote("web", web.url("/mcp"), &[]);
    setup.configure();
    let waiting = setup.until("web", Status::RequiresAuth).await;
    assert!(!waiting.has_auth && setup.addresses().is_empty(), "nobody is bothered before they ask");
    setup.servers.connect("web").unwrap();
    let address = setup.address(1).await;
    assert!(address.contains("code_challenge_method=S256") && address.contains("scope=read+write"), "{address}");
    assert_eq!(setup.servers.status("web").unwrap().status, Status::RequiresAuth);
    let (status, page) = log_in(&address).await;
    assert!(status == 200 && page.contains("logged in"), "{page}");
    assert!(setup.until("web", Status::Running).await.has_auth);
    assert_eq!(words(&call_tool(&setup, "plain").await), "plain");
    let file = setup.file("data/mcp-auth.json");
    {
        use std::os::unix::fs::PermissionsExt;
        assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    }
    assert!(std::fs::read_to_string(&file).unwrap().contains("token-1"));
    assert!(!format!("{:?}", setup.events()).contains("token-1"));
    // The token is taken back; it is replaced without a word.
    remote.state.lock().unwrap().authority.tokens.clear();
    assert_eq!(words(&call_tool(&setup, "plain").await), "plain");
    assert_eq!(remote.state.lock().unwrap().authority.refreshes, 1);
    // So is one that is about to end, and the login outlives the server.
    setup.servers.stop("web").unwrap();
    setup.until("web", Status::Stopped).await;
    let kept = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, kept.replace("\"expires_in\": 3600", "\"expires_in\": 1")).unwrap();
    setup.servers.start("web").unwrap();
    setup.until("web", Status::Running).await;
    assert_eq!(words(&call_tool(&setup, "plain").await), "plain");
    assert_eq!(remote.state.lock().unwrap().authority.refreshes, 2);
    assert_eq!(remote.requests("POST", "/register").len(), 1, "the client is registered once");
    // Nothing helps any more: the user is needed.
    remote.state.lock().unwrap().authority.refuses_refresh = true;
    remote.state.lock().unwrap().authority.tokens.clear();
    let output = call_tool(&setup, "plain").await;
    assert!(output.error && words(&output).contains("needs a login"), "{output:?}");
    setup.until("web", Status::RequiresAuth).await;
    assert!(!setup.announced("web").contains(&Status::Failed), "{:?}", setup.announced("web"));
    setup.servers.connect("web").unwrap();
    log_in(&setup.address(2).await).await;
    setup.until("web", Status::Running).await;
    setup.servers.logout("web").unwrap();
    let out = setup.until("web", Status::RequiresAuth).await;
    assert!(!out.has_auth && !std::fs::read_to_string(&file).unwrap().contains("token-"));
    setup.servers.shutdown().await;
}

#[tokio::test]
async fn a_login_can_be_refused_repeated_and_given_up() {
    let (remote, web) = Remote::start(true).await;
    let mut setup = Setup::new().remote("web", web.url("/mcp"), &[]);
    let server = setup.config.mcp.servers.get_mut("web").unwrap();
    server.client_id = Some("known-client".to_owned());
    setup.configure();
    setup.servers.connect("web").unwrap();
    let first = setup.address(1).await;
    setup.servers.connect("web").unwrap();
    let second = setup.address(2).await;
    assert_ne!(first, second, "another wish is another login");
    remote.state.lock().unwrap().authority.denies = true;
    let (_, page) = log_in(&second).await;
    assert!(page.contains("not today"), "{page}");
    wait_until("the user is told", || setup.notices().iter().any(|text| text.contains("not today"))).await;
    assert_eq!(setup.until("web", Status::RequiresAuth).await.tools, []);
    remote.state.lock().unwrap().authority.denies = false;
    setup.servers.connect("web").unwrap();
    let third = setup.address(3).await;
    setup.servers.stop("web").unwrap();
    setup.until("web", Status::Stopped).await;
    let (status, location, _) = web::get(&third).await;
    assert_eq!(status, 302);
    let host = location.unwrap().replace("localhost", "127.0.0.1");
    let host = host.strip_prefix("http://").unwrap().split('/').next().unwrap().to_owned();
    assert!(tokio::net::TcpStream::connect(host).await.is_err(), "nobody listens any more");
    setup.servers.connect("web").unwrap();
    log_in(&setup.address(4).await).await;
    setup.until("web", Status::Running).await;
    assert!(remote.requests("POST", "/register").is_empty(), "a known client is not registered");
    setup.servers.shutdown().await;
}
