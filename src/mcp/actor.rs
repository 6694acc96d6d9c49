//! One task per server: starts it, keeps what it offers, starts it again when it dies, and does what
//! it is ordered. Nothing that a server does holds up another server or a chat.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::connection::{Connection, connect};
use super::failure::Failure;
use super::handler::Signals;
use super::lists::refresh;
use super::live::Live;
use super::oauth::{self, Login};
use super::orders::{Orders, Wish};
use super::shared::Shared;
use super::status::{NoticeLevel, ServerEvent, Status};
use super::tool;
use crate::base::text::prefix;
use crate::http::redact;

/// The first wait before another try; each further one is twice as long.
const FIRST_WAIT: Duration = Duration::from_secs(1);
/// How often a server is tried that ran, that never did, and that is somewhere else: a network comes
/// back by itself more often than a program.
const TRIES: u32 = 5;
const FIRST_TRIES: u32 = 3;
const REMOTE_TRIES: u32 = 8;
/// Who ran for so long has a clean slate.
const HEALTHY: Duration = Duration::from_secs(60);
/// Lists are fetched at most so often, whatever the server announces.
const REFRESH_PAUSE: Duration = Duration::from_millis(500);
/// A server that ends in order does so within this.
const END_PATIENCE: Duration = Duration::from_millis(350);
const MOST_INSTRUCTIONS: usize = 16 * 1024;
const MOST_TEXT: usize = 2 * 1024;

pub(super) struct Actor {
    shared: Arc<Shared>,
    orders: Arc<Orders>,
    /// The wish that is being carried out.
    wish: Wish,
    /// How often in a row it failed.
    failures: u32,
    /// How many of the wished logins and logouts are done.
    logins: u64,
    logouts: u64,
}

impl Actor {
    pub(super) fn new(shared: Arc<Shared>, orders: Arc<Orders>) -> Self {
        let wish = orders.now();
        Self { shared, orders, wish, failures: 0, logins: 0, logouts: 0 }
    }

    /// Until it is told to quit.
    pub(super) async fn run(mut self) {
        self.shared.announce();
        loop {
            self.wish = self.orders.now();
            if self.wish.quit {
                return;
            }
            if self.logouts != self.wish.logouts {
                self.forget_login().await;
            }
            if !self.wish.run {
                self.rest().await;
                continue;
            }
            match self.once().await {
                None => self.failures = 0,
                Some(failure) => Box::pin(self.after(failure)).await,
            }
        }
    }

    async fn rest(&mut self) {
        self.failures = 0;
        let config = self.wish.definition.config.clone();
        self.shared.change(|state| {
            state.status = if config.disabled { Status::Disabled } else { Status::Stopped };
            state.config = config;
            state.problem = None;
            state.returning = false;
            state.about_to_be_ready = false;
            state.clear();
        });
        self.orders.differ(&self.wish).await;
    }

    /// One connection, from its making to its end. Nothing when it ended by order.
    async fn once(&mut self) -> Option<Failure> {
        let login = self.login();
        let has_auth = match &login {
            Some(login) => login.exists().await,
            None => false,
        };
        let definition = Arc::clone(&self.wish.definition);
        let is_first = self.failures == 0;
        self.shared.change(|state| {
            state.config = definition.config.clone();
            state.status = Status::Starting;
            state.has_auth = has_auth;
            state.about_to_be_ready = is_first;
            if is_first {
                state.problem = None;
            }
            if !state.returning {
                state.clear();
            }
        });
        // What takes a moment lies apart, so that a server that runs does not keep room for it.
        let connecting = Box::pin(connect(&self.shared, &definition, login.as_ref()));
        let connection = tokio::select! {
            connection = connecting => connection,
            () = self.orders.ended(&self.wish) => {
                self.note_end(Status::Stopping, None);
                return None;
            }
        };
        let mut connection = match connection {
            Ok(connection) => connection,
            Err(failure) => return Some(self.explain(failure)),
        };
        let started = Instant::now();
        self.take_up(&mut connection, has_auth);
        let failure = self.stay(&mut connection).await;
        if started.elapsed() >= HEALTHY {
            self.failures = 0;
        }
        match &failure {
            None => self.note_end(Status::Stopping, None),
            Some(failure @ Failure::NeedsLogin(_)) => self.note_end(Status::RequiresAuth, Some(failure.text())),
            Some(failure) => self.note_end(Status::Failed, Some(failure.text())),
        }
        Box::pin(connection.end(END_PATIENCE)).await;
        failure
    }

    /// It runs: what it offers is there.
    fn take_up(&mut self, connection: &mut Connection, has_auth: bool) {
        let tools = tool::offered(&self.shared, std::mem::take(&mut connection.tools));
        let instructions = connection.info.instructions.as_deref().map(str::trim).filter(|text| !text.is_empty());
        let instructions = instructions.map(|text| prefix(text, MOST_INSTRUCTIONS).to_owned());
        tracing::info!(server = self.shared.name(), tools = tools.len(), "an MCP server runs");
        self.logins = self.wish.logins;
        // Prompts and resources follow; nobody waits for them.
        let capabilities = connection.capabilities();
        for (is_there, signal) in
            [(capabilities.prompts.is_some(), Signals::PROMPTS), (capabilities.resources.is_some(), Signals::RESOURCES)]
        {
            if is_there {
                connection.signals.raise(signal);
            }
        }
        self.shared.change(|state| {
            state.status = Status::Running;
            state.problem = None;
            state.has_auth = has_auth;
            state.tools = tools;
            state.instructions = instructions;
            state.live = Some(connection.live.clone());
            state.returning = true;
            state.about_to_be_ready = false;
        });
    }

    /// It does not run any more; whether it comes back decides what becomes of its tools.
    fn note_end(&self, status: Status, problem: Option<&str>) {
        self.shared.change(|state| {
            state.live = None;
            state.about_to_be_ready = false;
            state.status = status;
            state.problem = problem.map(str::to_owned);
            if status == Status::Stopping {
                state.returning = false;
            }
        });
    }

    async fn stay(&mut self, connection: &mut Connection) -> Option<Failure> {
        let keep_alive = self.wish.definition.keep_alive;
        let is_remote = connection.process.is_none();
        let live = connection.live.clone();
        let mut next_ping = Instant::now() + keep_alive;
        let mut next_refresh = Instant::now();
        let mut missed = 0;
        loop {
            let Connection { signals, closed, process, serving, .. } = &mut *connection;
            let signal = async {
                tokio::time::sleep_until(next_refresh).await;
                signals.next().await
            };
            let process_end = async {
                match process {
                    Some(process) => process.program.ended().await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = self.orders.changed(&self.wish) => {
                    if self.follow(&live).await {
                        return None;
                    }
                }
                bits = signal => {
                    next_refresh = Instant::now() + REFRESH_PAUSE;
                    let work = tokio::select! {
                        work = Box::pin(refresh(&self.shared, &live, bits)) => work,
                        () = self.orders.ended(&self.wish) => return None,
                    };
                    if let Err(failure) = work {
                        return Some(failure);
                    }
                }
                _ = process_end => return Some(connection.why().await),
                () = closed.cancelled() => return Some(connection.why().await),
                () = serving => return Some(connection.why().await),
                () = tokio::time::sleep_until(next_ping), if is_remote => {
                    next_ping = Instant::now() + keep_alive;
                    if live.is_busy() {
                        continue;
                    }
                    let is_alive = tokio::select! {
                        is_alive = live.is_alive() => is_alive,
                        () = self.orders.ended(&self.wish) => return None,
                    };
                    missed = if is_alive { 0 } else { missed + 1 };
                    if missed == 2 {
                        return Some(Failure::Passing("it does not answer any more".to_owned()));
                    }
                }
            }
        }
    }

    /// Looks at new orders while it runs. Returns whether the connection must end.
    async fn follow(&mut self, live: &Live) -> bool {
        let new = self.orders.now();
        if self.wish.ends_with(&new) {
            return true;
        }
        if new.roots != self.wish.roots {
            live.roots_changed().await;
        }
        let config = new.definition.config.clone();
        self.shared.change(|state| state.config = config);
        self.logins = new.logins;
        self.wish = new;
        false
    }

    async fn after(&mut self, failure: Failure) {
        match failure {
            Failure::NeedsLogin(challenge) => {
                self.failures = 0;
                if self.logins == self.wish.logins {
                    self.wait_for_login(None).await;
                } else {
                    self.log_in(&challenge).await;
                }
            }
            Failure::Lasting(text) => self.give_up(&text).await,
            Failure::Passing(text) => self.try_again(&text).await,
        }
    }

    async fn try_again(&mut self, text: &str) {
        self.failures += 1;
        let most = match self.shared.is_returning() {
            _ if self.wish.definition.config.url.is_some() => REMOTE_TRIES,
            true => TRIES,
            false => FIRST_TRIES,
        };
        if self.failures >= most {
            return self.give_up(&format!("{text} ({} tries)", self.failures)).await;
        }
        let wait = FIRST_WAIT * 2_u32.saturating_pow(self.failures - 1);
        let problem = format!("{text}; next try in {} s", wait.as_secs());
        tracing::warn!(server = self.shared.name(), problem, "an MCP server failed");
        if self.failures == 1 {
            self.notice(NoticeLevel::Warning, &problem);
        }
        self.fail(&problem, true);
        tokio::select! {
            () = tokio::time::sleep(wait) => {}
            () = self.orders.differ(&self.wish) => {}
        }
    }

    async fn give_up(&mut self, text: &str) {
        tracing::warn!(server = self.shared.name(), text, "an MCP server is given up");
        self.notice(NoticeLevel::Warning, &format!("{text}. It stays off until it is started again."));
        self.failures = 0;
        self.logins = self.wish.logins;
        self.fail(text, false);
        self.orders.differ(&self.wish).await;
    }

    fn fail(&self, problem: &str, comes_back: bool) {
        self.shared.change(|state| {
            state.status = Status::Failed;
            state.problem = Some(problem.to_owned());
            state.live = None;
            state.about_to_be_ready = false;
            state.returning &= comes_back;
            if !state.returning {
                state.clear();
            }
        });
    }

    async fn wait_for_login(&mut self, problem: Option<String>) {
        let problem = problem.unwrap_or_else(|| "it needs a login".to_owned());
        self.logins = self.wish.logins;
        self.notice(NoticeLevel::Info, &format!("{problem}. Connect it in your editor's list of MCP servers."));
        self.require_login(problem);
        self.orders.differ(&self.wish).await;
    }

    fn require_login(&self, problem: String) {
        self.shared.change(|state| {
            state.status = Status::RequiresAuth;
            state.problem = Some(problem);
            state.live = None;
            state.returning = false;
            state.about_to_be_ready = false;
            state.clear();
        });
    }

    async fn log_in(&mut self, challenge: &str) {
        self.logins = self.wish.logins;
        let (Some(login), definition) = (self.login(), Arc::clone(&self.wish.definition)) else { return };
        let Some(url) = &definition.config.url else { return };
        self.require_login("waiting for the login".to_owned());
        let shared = Arc::clone(&self.shared);
        let show = |address: &str| {
            shared.tell(ServerEvent::Authorize { server: shared.name().to_owned(), url: address.to_owned() });
        };
        let logged_in = tokio::select! {
            logged_in = oauth::log_in(url, &definition.client, &login, &definition.config, challenge, show) => logged_in,
            // Another wish, also that for another login, ends this one.
            () = self.orders.differ(&self.wish) => return,
        };
        if let Err(reason) = logged_in {
            let reason = redact(&reason, definition.secrets().iter().map(String::as_str));
            self.wait_for_login(Some(format!("the login failed: {}", prefix(&reason, MOST_TEXT)))).await;
        }
    }

    async fn forget_login(&mut self) {
        self.logouts = self.wish.logouts;
        let Some(login) = self.login() else { return };
        if let Err(error) = login.forget().await {
            self.notice(NoticeLevel::Warning, &format!("its login cannot be forgotten: {error}"));
        }
        self.shared.change(|state| state.has_auth = false);
    }

    /// The login of a server behind an address.
    fn login(&self) -> Option<Login> {
        let definition = &self.wish.definition;
        let url = definition.config.url.as_deref()?;
        let (data, scope) = (&self.shared.world().data, &definition.config.auth_scope);
        Some(Login::new(data, self.shared.name(), scope, url, &definition.workspace))
    }

    /// Says more about a failure where more is known.
    fn explain(&self, failure: Failure) -> Failure {
        let definition = &self.wish.definition;
        let hide = |text: &str| redact(text, definition.secrets().iter().map(String::as_str));
        let url = definition.config.url.as_deref().unwrap_or_default();
        let path = url.split(['?', '#']).next().unwrap_or_default().trim_end_matches('/');
        match failure {
            Failure::Passing(text) | Failure::Lasting(text) if path.ends_with("/sse") => Failure::Lasting(format!(
                "{}. An address that ends in /sse is mostly one of the old transport (HTTP with SSE), which this server \
                 does not speak; ask for the address of the streamable one, often /mcp",
                hide(&text)
            )),
            Failure::Passing(text) => Failure::Passing(hide(&text)),
            Failure::Lasting(text) => Failure::Lasting(hide(&text)),
            login @ Failure::NeedsLogin(_) => login,
        }
    }

    fn notice(&self, level: NoticeLevel, text: &str) {
        let server = self.shared.name().to_owned();
        let text = format!("MCP server {server}: {}", prefix(text, MOST_TEXT));
        self.shared.tell(ServerEvent::Notice { server, level, text });
    }
}
