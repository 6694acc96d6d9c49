//! MCP servers: programs and addresses that offer tools, prompts and resources.
//!
//! ```text
//! Servers ─ one actor per server ─ connection ─ rmcp ─┬─ lines over the pipes of a guarded process
//!    │            │ shared state                      └─ streamable HTTP, with a login
//!    └ tools, prompts, resources, statuses: read from the shared state, without waiting
//! ```
//!
//! Only this module knows the library. Calls go from the tool straight to the connection; the actor
//! starts, restarts and ends it, so that no server can hold up another one or a chat.

mod actor;
mod calls;
mod child;
mod connection;
mod content;
mod elicitation;
mod failure;
mod handler;
mod http;
mod limited;
mod lines;
mod lists;
mod live;
mod oauth;
mod orders;
mod pace;
mod pipe;
mod shared;
mod status;
#[cfg(test)]
mod testing;
mod tool;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::base::task;
use crate::config::Config;
use crate::http::Client;
use crate::tool::{Content, Tool};
use crate::workspace::Workspace;
use actor::Actor;
use handler::Roots;
use orders::Orders;
use shared::{Definition, Shared, World};
pub use status::{
    McpError, NoticeLevel, PromptArgument, PromptInfo, PromptMessage, ResourceInfo, ServerEvent, ServerStatus, Status,
    ToolInfo,
};

/// All servers end within this, or are killed.
const SHUTDOWN_PATIENCE: Duration = Duration::from_millis(900);

/// What servers need besides their configuration.
pub struct Options {
    /// Where logins are kept.
    pub data: PathBuf,
    /// Whether servers may ask the user: whether the client of the calls can show a question.
    pub can_ask: bool,
    /// Where news goes. Must not block.
    pub events: Arc<dyn Fn(ServerEvent) + Send + Sync>,
}

impl std::fmt::Debug for Options {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Options").field("data", &self.data).field("can_ask", &self.can_ask).finish_non_exhaustive()
    }
}

/// The servers of one client and its workspace. Cheap to clone; they end with the last clone.
#[derive(Clone)]
pub struct Servers {
    inner: Arc<Inner>,
}

struct Inner {
    world: Arc<World>,
    state: Mutex<Known>,
}

#[derive(Default)]
struct Known {
    servers: BTreeMap<String, Entry>,
    /// Servers that are not configured any more and about to end.
    ending: BTreeMap<String, JoinHandle<()>>,
    /// Whether it is known which servers there are.
    configured: bool,
    closed: bool,
}

struct Entry {
    shared: Arc<Shared>,
    orders: Arc<Orders>,
    task: JoinHandle<()>,
}

impl Drop for Inner {
    fn drop(&mut self) {
        let known = self.state.get_mut().unwrap_or_else(PoisonError::into_inner);
        known.servers.values().for_each(|entry| entry.orders.give(|wish| wish.quit = true));
    }
}

impl std::fmt::Debug for Servers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Servers").field("names", &self.known().servers.keys().collect::<Vec<_>>()).finish()
    }
}

impl Default for Servers {
    /// Nothing is configured, and nobody hears of it.
    fn default() -> Self {
        let servers = Self::new(Options { data: PathBuf::new(), can_ask: false, events: Arc::new(drop) });
        servers.known().configured = true;
        servers
    }
}

impl Servers {
    pub fn new(options: Options) -> Self {
        let world = World {
            events: options.events,
            changed: watch::Sender::new(0),
            data: options.data,
            can_ask: options.can_ask,
            roots: Arc::new(Roots::default()),
        };
        Self { inner: Arc::new(Inner { world: Arc::new(world), state: Mutex::default() }) }
    }

    /// Starts what is new, ends what is gone, and starts anew what has changed. Returns at once; must
    /// be called inside a runtime.
    pub fn configure(&self, config: &Config, workspace: &Workspace) {
        self.set_roots(workspace);
        let mut known = self.known();
        if known.closed {
            return;
        }
        let client = Client::configured(config);
        let gone: Vec<String> =
            known.servers.keys().filter(|name| !config.mcp.servers.contains_key(*name)).cloned().collect();
        for name in gone {
            self.remove(&mut known, &name);
        }
        for (name, server) in &config.mcp.servers {
            let definition = Arc::new(Definition {
                config: server.clone(),
                timeout: config.mcp.timeout,
                keep_alive: config.mcp.keep_alive,
                client: client.clone(),
                network: (config.network.clone(), config.connect_timeout),
                directory: workspace.roots().first().map(|root| root.path.clone()),
                workspace: workspace.key(),
            });
            match known.servers.get(name) {
                Some(entry) => redefine(entry, definition),
                None => self.add(&mut known, name, definition),
            }
        }
        known.configured = true;
        drop(known);
        self.inner.world.changed.send_modify(|count| *count += 1);
    }

    /// Tells the servers which folders there are.
    pub fn set_roots(&self, workspace: &Workspace) {
        let roots = workspace.roots().iter().map(|root| (file_uri(&root.path), root.name.clone())).collect();
        if self.inner.world.roots.set(roots) {
            self.known().servers.values().for_each(|entry| entry.orders.give(|wish| wish.roots += 1));
        }
    }

    /// Starts a server that is stopped, has failed or waits for a login; in this session only.
    pub fn start(&self, name: &str) -> Result<(), McpError> {
        let is_on = |status: ServerStatus| matches!(status.status, Status::Running | Status::Starting);
        let is_on = self.status(name).is_some_and(is_on);
        self.order(name, |wish| {
            wish.restarts += u64::from(!is_on);
            wish.run = true;
        })
    }

    /// Stops a server, in this session only.
    pub fn stop(&self, name: &str) -> Result<(), McpError> {
        self.order(name, |wish| wish.run = false)
    }

    /// Starts a server and, if it asks who is there, takes the user through a login.
    pub fn connect(&self, name: &str) -> Result<(), McpError> {
        let is_running = self.status(name).is_some_and(|status| status.status == Status::Running);
        self.order(name, |wish| {
            wish.run = true;
            wish.logins += u64::from(!is_running);
        })
    }

    /// Forgets the login of a server.
    pub fn logout(&self, name: &str) -> Result<(), McpError> {
        self.order(name, |wish| wish.logouts += 1)
    }

    pub fn status(&self, name: &str) -> Option<ServerStatus> {
        self.known().servers.get(name).map(|entry| entry.shared.status())
    }

    pub fn statuses(&self) -> Vec<ServerStatus> {
        self.all().iter().map(|server| server.status()).collect()
    }

    /// Everything that can be called, now or as soon as a server is back.
    pub fn tools(&self) -> Vec<Arc<dyn Tool>> {
        self.all().iter().flat_map(|server| server.tools()).map(|tool| tool as Arc<dyn Tool>).collect()
    }

    pub fn prompts(&self) -> Vec<PromptInfo> {
        self.all().iter().flat_map(|server| server.prompts()).collect()
    }

    pub fn resources(&self) -> Vec<ResourceInfo> {
        self.all().iter().flat_map(|server| server.resources()).collect()
    }

    /// What servers want the model to know, with their names.
    pub fn instructions(&self) -> Vec<(String, String)> {
        let named = |server: &Arc<Shared>| Some((server.name().to_owned(), server.instructions()?));
        self.all().iter().filter_map(named).collect()
    }

    /// What a prompt says with these arguments. Ends when dropped.
    pub async fn get_prompt(
        &self,
        server: &str,
        name: &str,
        arguments: Vec<(String, String)>,
        sees_images: bool,
    ) -> Result<Vec<PromptMessage>, McpError> {
        let live = self.server(server)?.live(&CancellationToken::new()).await?;
        live.prompt(name, arguments, sees_images).await
    }

    pub async fn read_resource(&self, server: &str, uri: &str, sees_images: bool) -> Result<Vec<Content>, McpError> {
        let live = self.server(server)?.live(&CancellationToken::new()).await?;
        live.resource(uri, sees_images).await
    }

    /// Waits until it is known which servers there are and none of them is about to be ready, but no
    /// longer than `patience`. Returns the names of those that are not. One that has failed is not
    /// waited for.
    pub async fn ready_within(&self, patience: Duration) -> Vec<String> {
        let mut changes = self.inner.world.changed.subscribe();
        let pending = || {
            let all = self.all();
            let names =
                all.iter().filter(|server| server.is_about_to_be_ready()).map(|server| server.name().to_owned());
            names.collect::<Vec<_>>()
        };
        let waiting = async {
            loop {
                changes.borrow_and_update();
                let is_ready = self.known().configured && pending().is_empty();
                if is_ready || changes.changed().await.is_err() {
                    return;
                }
            }
        };
        if tokio::time::timeout(patience, waiting).await.is_err() {
            // Where nobody configures them, one prompt has waited in vain; that is enough.
            self.known().configured = true;
        }
        pending()
    }

    /// Ends all servers, within a second. Nothing starts again afterwards.
    pub async fn shutdown(&self) {
        let tasks: Vec<JoinHandle<()>> = {
            let mut known = self.known();
            known.closed = true;
            let servers = std::mem::take(&mut known.servers);
            let quit = servers.into_values().map(|entry| {
                entry.orders.give(|wish| wish.quit = true);
                entry.task
            });
            quit.collect::<Vec<_>>().into_iter().chain(std::mem::take(&mut known.ending).into_values()).collect()
        };
        let deadline = tokio::time::Instant::now() + SHUTDOWN_PATIENCE;
        for mut task in tasks {
            if tokio::time::timeout_at(deadline, &mut task).await.is_err() {
                // Dropping a process ends it.
                task.abort();
            }
        }
    }

    fn add(&self, known: &mut Known, name: &str, definition: Arc<Definition>) {
        let shared = Arc::new(Shared::new(name, Arc::clone(&self.inner.world), definition.config.clone()));
        let orders = Arc::new(Orders::new(definition));
        let actor = Actor::new(Arc::clone(&shared), Arc::clone(&orders));
        // One process at a time: an older one of the same name ends first.
        let before = known.ending.remove(name);
        let task = task::spawn(async move {
            if let Some(before) = before {
                let _ = before.await;
            }
            actor.run().await;
        });
        known.servers.insert(name.to_owned(), Entry { shared, orders, task });
    }

    fn remove(&self, known: &mut Known, name: &str) {
        let Some(entry) = known.servers.remove(name) else { return };
        entry.shared.silence();
        entry.orders.give(|wish| wish.quit = true);
        known.ending.retain(|_, task| !task.is_finished());
        known.ending.insert(name.to_owned(), entry.task);
        (self.inner.world.events)(ServerEvent::Removed { name: name.to_owned() });
    }

    fn order(&self, name: &str, change: impl FnOnce(&mut orders::Wish)) -> Result<(), McpError> {
        let known = self.known();
        let entry = known.servers.get(name).ok_or_else(|| McpError::Unknown(name.to_owned()))?;
        entry.orders.give(change);
        Ok(())
    }

    fn server(&self, name: &str) -> Result<Arc<Shared>, McpError> {
        let known = self.known();
        let entry = known.servers.get(name).ok_or_else(|| McpError::Unknown(name.to_owned()))?;
        Ok(Arc::clone(&entry.shared))
    }

    fn all(&self) -> Vec<Arc<Shared>> {
        self.known().servers.values().map(|entry| Arc::clone(&entry.shared)).collect()
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.inner.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Gives a server its new definition, if it is one. Whether it runs changes only with the switch that
/// says so, or with what would be run.
fn redefine(entry: &Entry, definition: Arc<Definition>) {
    let old = entry.orders.now();
    let (before, after) = (&old.definition, &definition);
    let is_same = before.config == after.config
        && before.timeout == after.timeout
        && before.keep_alive == after.keep_alive
        && before.network == after.network
        && before.workspace == after.workspace
        && before.directory == after.directory;
    if is_same {
        return;
    }
    entry.orders.give(|wish| {
        let is_switched = wish.definition.config.disabled != definition.config.disabled;
        if is_switched || !wish.definition.config.runs_like(&definition.config) {
            wish.run = !definition.config.disabled;
        }
        wish.definition = definition;
    });
}

/// A path as servers want it.
fn file_uri(path: &Path) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~' | b'/' | b':');
    let mut uri = String::from("file://");
    let text = path.to_string_lossy().replace('\\', "/");
    #[cfg(unix)]
    let bytes = std::os::unix::ffi::OsStrExt::as_bytes(path.as_os_str());
    #[cfg(not(unix))]
    let bytes = text.as_bytes();
    if !text.starts_with('/') {
        uri.push('/');
    }
    for byte in bytes {
        if is_plain(*byte) {
            uri.push(char::from(*byte));
        } else {
            uri.push_str(&format!("%{byte:02X}"));
        }
    }
    uri
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_become_uris() {
        assert_eq!(file_uri(Path::new("/a/b c/é")), "file:///a/b%20c/%C3%A9");
        assert_eq!(file_uri(Path::new("/100%/#?")), "file:///100%25/%23%3F");
    }
}
