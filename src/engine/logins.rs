//! Keeps a key that a user entered, or takes the user through a login, puts what comes of it to use,
//! and tells the client.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::chat::Command;
use super::login::{self, Change, LoginError, LoginMethod, LoginOption, LoginStep};
use super::{Engine, Event, NoticeLevel, Settings, Shared, emitter};
use crate::base::ChatId;
use crate::base::task;
use crate::config::Secret;
use crate::providers::oauth::{Opened, Paste, Way};

/// Clients wait about ten seconds for the answer to a login.
const LIST_AFTER_LOGIN: Duration = Duration::from_secs(4);
/// A login that is cancelled ends at once, unless it is being kept right now.
const CANCEL_PATIENCE: Duration = Duration::from_secs(1);

/// What a login came to, in words; nothing as long as it waits.
type Outcome = Option<Result<String, LoginError>>;

/// Who is told how a login went.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Whom {
    Client,
    Chat(ChatId),
}

/// Logins that wait for the user; one for each provider.
#[derive(Debug, Default)]
pub(super) struct Waiting {
    logins: Mutex<HashMap<String, WaitingLogin>>,
}

#[derive(Debug, Clone)]
struct WaitingLogin {
    stop: CancellationToken,
    paste: Option<Paste>,
    outcome: watch::Receiver<Outcome>,
}

impl Waiting {
    /// Ends the login at a provider that nobody waits for any more. Its port is free afterwards.
    pub(super) async fn cancel(&self, provider: &str) {
        let login = self.lock().remove(provider);
        if let Some(mut login) = login {
            login.stop.cancel();
            // It ends by letting go of this.
            let _ = tokio::time::timeout(CANCEL_PATIENCE, login.outcome.wait_for(|_| false)).await;
        }
    }

    pub(super) fn cancel_all(&self) {
        self.lock().drain().for_each(|(_, login)| login.stop.cancel());
    }

    fn put(&self, provider: &str, login: WaitingLogin) {
        if let Some(other) = self.lock().insert(provider.to_owned(), login) {
            other.stop.cancel();
        }
    }

    pub(super) fn has(&self, provider: &str) -> bool {
        self.lock().contains_key(provider)
    }

    fn get(&self, provider: &str) -> Option<WaitingLogin> {
        self.lock().get(provider).cloned()
    }

    /// Forgets a login that is over, unless another one has taken its place.
    fn forget(&self, provider: &str, stop: &CancellationToken) {
        if !stop.is_cancelled() {
            self.lock().remove(provider);
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<String, WaitingLogin>> {
        self.logins.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Engine {
    /// The providers a user may log into, and those that cannot be, with the reason.
    pub fn login_options(&self) -> Vec<LoginOption> {
        self.shared.login_options()
    }

    /// Keeps a key and puts it to use; the client hears of the models and of the provider before
    /// this returns. The text says what that means.
    pub async fn log_in(&self, provider: &str, key: Secret) -> Result<String, LoginError> {
        self.shared.log_in(provider, Some(key)).await
    }

    /// Begins a login and says what the user has to do; the client hears of the provider when it is
    /// complete, or of what went wrong.
    pub async fn begin_login(&self, provider: &str, method: LoginMethod) -> Result<LoginStep, LoginError> {
        self.shared.begin_login(provider, method, Whom::Client).await
    }

    /// Goes on with what a user copied out of the browser, when that could not come back by itself.
    pub async fn paste_login(&self, provider: &str, text: &str) -> Result<String, LoginError> {
        self.shared.paste_login(provider, text).await
    }

    /// Forgets a key that was entered, or a login; keys from elsewhere stay.
    pub async fn log_out(&self, provider: &str) -> Result<String, LoginError> {
        self.shared.log_in(provider, None).await
    }
}

impl Shared {
    pub(super) fn login_options(&self) -> Vec<LoginOption> {
        let views = self.settings().registry.with_keys();
        views.into_iter().filter_map(login::option).collect()
    }

    /// Keeps a key, or forgets whatever a login left when there is none, and goes on with the
    /// providers that follow.
    pub(super) async fn log_in(&self, provider: &str, key: Option<Secret>) -> Result<String, LoginError> {
        let option = self.login_option(provider)?;
        if let (Some(reason), true) = (&option.unavailable, key.is_some()) {
            return Err(LoginError::NoWayIn { provider: option.label, reason: reason.clone() });
        }
        self.waiting_logins.cancel(provider).await;
        // The key takes the place of a login, and a logout ends both.
        if let Some(session) = self.settings().registry.session(provider) {
            session.forget().await.map_err(LoginError::NotKept)?;
        }
        self.keep_key(provider, key.clone()).await?;
        let change = if key.is_some() { Change::KeyEntered } else { Change::Forgotten };
        Ok(self.use_login(&option, key, change).await)
    }

    /// Begins a login. What has come of it is told to `whom` when the user is done.
    pub(super) async fn begin_login(
        self: &Arc<Self>,
        provider: &str,
        method: LoginMethod,
        whom: Whom,
    ) -> Result<LoginStep, LoginError> {
        let option = self.login_option(provider)?;
        if let Some(reason) = option.unavailable {
            return Err(LoginError::NoWayIn { provider: option.label, reason });
        }
        let way = match method {
            _ if !option.methods.contains(&method) => {
                return Err(LoginError::NoSuchMethod { provider: option.label });
            }
            LoginMethod::ApiKey => return Ok(LoginStep::EnterKey),
            LoginMethod::Browser => Way::Browser,
            LoginMethod::Device => Way::Device,
        };
        let session = self.settings().registry.session(provider);
        let session = session.ok_or_else(|| LoginError::NoSuchMethod { provider: option.label.clone() })?;
        // A fixed port is free again before the next login wants it.
        self.waiting_logins.cancel(provider).await;
        let failed = |reason| LoginError::Failed { provider: option.label.clone(), reason };
        let opened = session.open(way).await.map_err(failed)?;
        let (step, paste) = match &opened {
            Opened::Browser(page) => (LoginStep::Open { url: page.url().to_owned() }, Some(page.paste())),
            Opened::Device(device) => {
                let (url, code) = (device.url().to_owned(), device.code().to_owned());
                (LoginStep::TypeCode { url, code }, None)
            }
        };
        let (sender, outcome) = watch::channel(None);
        let stop = CancellationToken::new();
        self.waiting_logins.put(provider, WaitingLogin { stop: stop.clone(), paste, outcome });
        task::spawn(Arc::clone(self).wait_for_login(option, opened, stop, sender, whom));
        Ok(step)
    }

    /// Goes on with what the user copied out of a browser, and waits until the login is over.
    pub(super) async fn paste_login(&self, provider: &str, text: &str) -> Result<String, LoginError> {
        let not_begun = || LoginError::NotBegun(provider.to_owned());
        let mut login = self.waiting_logins.get(provider).ok_or_else(not_begun)?;
        let failed = |reason| LoginError::Failed { provider: provider.to_owned(), reason };
        let pasted = match &login.paste {
            Some(paste) => paste.paste(text),
            None => Err("the code is to be typed in on the page, not here".to_owned()),
        };
        pasted.map_err(failed)?;
        let outcome = login.outcome.wait_for(Option::is_some).await.map_err(|_| not_begun())?.clone();
        outcome.unwrap_or_else(|| Err(not_begun()))
    }

    async fn wait_for_login(
        self: Arc<Self>,
        option: LoginOption,
        opened: Opened,
        stop: CancellationToken,
        sender: watch::Sender<Outcome>,
        whom: Whom,
    ) {
        let finish = async {
            match opened {
                Opened::Browser(page) => page.finish().await,
                Opened::Device(device) => device.finish().await,
            }
        };
        let finished = tokio::select! {
            biased;
            () = stop.cancelled() => return,
            finished = finish => finished,
        };
        let outcome = match finished {
            Ok(()) => self.take_login(&option).await,
            Err(reason) => Err(LoginError::Failed { provider: option.label.clone(), reason }),
        };
        self.waiting_logins.forget(&option.id, &stop);
        let text = outcome.clone().unwrap_or_else(|error| error.to_string());
        match whom {
            Whom::Chat(chat) => {
                if let Some(handle) = self.chats.get(&chat) {
                    // A chat with so much in its inbox has other worries.
                    let _ = handle.send(Command::LoginOver { provider: option.id, text });
                }
            }
            Whom::Client if outcome.is_err() => {
                emitter::say(&*self.sink, Event::Notice { level: NoticeLevel::Warning, text }).await;
            }
            Whom::Client => {}
        }
        let _ = sender.send(Some(outcome));
    }

    /// Goes on with a login that is complete; it takes the place of a key.
    async fn take_login(&self, option: &LoginOption) -> Result<String, LoginError> {
        self.keep_key(&option.id, None).await?;
        if let Some(session) = self.settings().registry.session(&option.id) {
            session.look_again().await.map_err(LoginError::NotKept)?;
        }
        Ok(self.use_login(option, None, Change::LoggedIn).await)
    }

    fn login_option(&self, provider: &str) -> Result<LoginOption, LoginError> {
        let option = self.login_options().into_iter().find(|option| option.id == provider);
        option.ok_or_else(|| LoginError::UnknownProvider(provider.to_owned()))
    }

    async fn keep_key(&self, provider: &str, key: Option<Secret>) -> Result<(), LoginError> {
        let (secrets, id) = (self.secrets.clone(), provider.to_owned());
        let keeping = task::blocking(move || match &key {
            Some(key) => secrets.set_api_key(&id, key),
            None => secrets.remove_api_key(&id).map(drop),
        });
        let failed = |error: std::io::Error| LoginError::NotKept(error.to_string());
        keeping.await.map_err(|error| failed(error.into()))?.map_err(failed)
    }

    /// Goes on with what is kept now, and tells the client; the text says what that means.
    async fn use_login(&self, option: &LoginOption, key: Option<Secret>, change: Change) -> String {
        let provider = option.id.as_str();
        let settings = self.settings();
        let registry = settings.registry.with_login(provider, key);
        // What the key opens is what the user wants to see; a slow provider is asked in the background.
        registry.adopt(&settings.registry);
        let listed = tokio::time::timeout(LIST_AFTER_LOGIN, registry.refresh()).await.is_ok();
        let used = registry.describe().into_iter().find(|view| view.id == provider).map(|view| view.key_source);
        let changed = Settings::new(registry, Arc::clone(&settings.loaded));
        self.reconfigure(changed).await;
        emitter::say(&*self.sink, Event::ProviderChanged { id: provider.to_owned() }).await;
        if !listed {
            let (registry, sink) = (self.settings().registry.clone(), Arc::clone(&self.sink));
            task::spawn(async move {
                if registry.refresh().await {
                    emitter::say(&*sink, Event::ModelsChanged).await;
                }
            });
        }
        login::outcome(&option.label, change, used)
    }
}
