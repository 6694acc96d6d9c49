//! Logging in by chat: a conversation of a few fixed questions that ends with a key being kept, or
//! with the user in front of a page of the provider's.
//!
//! Pure: what to say next follows from what was said. The chat echoes, keeps and emits.

use crate::config::Secret;
use crate::providers::oauth::Way;
use crate::providers::{KeySource, ProviderState, ProviderView};

/// Why a login or logout did not happen.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LoginError {
    #[error("There is no provider named {0:?} that can be logged into.")]
    UnknownProvider(String),
    #[error("{provider} cannot be logged into from here: {reason}")]
    NoWayIn { provider: String, reason: String },
    #[error("The key could not be kept: {0}")]
    NotKept(String),
    #[error("{provider} cannot be logged into in that way.")]
    NoSuchMethod { provider: String },
    #[error("The login at {provider} did not succeed: {reason}.")]
    Failed { provider: String, reason: String },
    #[error("No login at {0} is waiting for anything. Begin again.")]
    NotBegun(String),
}

/// How a provider can be logged into.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LoginMethod {
    Browser,
    Device,
    ApiKey,
}

/// What the user has to do next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LoginStep {
    EnterKey,
    /// Open a page; the login goes on by itself when the browser comes back.
    Open {
        url: String,
    },
    /// Open a page on any device and type in a code; the login goes on by itself then.
    TypeCode {
        url: String,
        code: String,
    },
}

/// A provider that can be logged into, or the reason why it cannot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoginOption {
    pub id: String,
    pub label: String,
    /// Why there is no way in.
    pub unavailable: Option<String>,
    /// The ways in, the preferred one first.
    pub methods: Vec<LoginMethod>,
}

/// Where a login stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Login {
    ChoosingProvider,
    ChoosingMethod {
        provider: String,
    },
    EnteringKey {
        provider: String,
    },
    /// The user is in front of a page of the provider's.
    Waiting {
        provider: String,
    },
}

/// What a message of the user does to a login.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Say this and wait for the next message.
    Ask { login: Login, text: String },
    /// Keep this key.
    Finish { provider: String, key: Secret },
    /// Begin a login in this way.
    Begin { provider: String, method: LoginMethod },
    /// The user copied this out of the browser.
    Pasted { provider: String, text: String },
    /// Nothing was kept. The login at this provider, if any, is not waited for any more.
    Cancelled { text: String, waited_for: Option<String> },
}

impl Login {
    /// `/login`, with or without the name of a provider.
    pub(super) fn start(name: &str, options: &[LoginOption]) -> Step {
        if name.is_empty() {
            return Step::Ask { login: Self::ChoosingProvider, text: which_provider(options) };
        }
        Self::ChoosingProvider.answer(name, options)
    }

    /// Whether what the user types now must not be shown.
    pub(super) fn is_secret(&self) -> bool {
        matches!(self, Self::EnteringKey { .. } | Self::Waiting { .. })
    }

    pub(super) fn answer(self, text: &str, options: &[LoginOption]) -> Step {
        let text = text.trim();
        if text.eq_ignore_ascii_case("cancel") {
            let waited_for = match self {
                Self::Waiting { provider } => Some(provider),
                _ => None,
            };
            return Step::Cancelled { text: "The login was cancelled; nothing has changed.".into(), waited_for };
        }
        match self {
            Self::ChoosingProvider => match options.iter().find(|option| option.id.eq_ignore_ascii_case(text)) {
                Some(LoginOption { label, unavailable: Some(reason), .. }) => Step::Ask {
                    login: Self::ChoosingProvider,
                    text: format!("{label} cannot be logged into from here: {reason}\n\n{}", which_provider(options)),
                },
                Some(option) => match option.methods[..] {
                    [] | [LoginMethod::ApiKey] => ask_for_key(option),
                    [method] => Step::Begin { provider: option.id.clone(), method },
                    _ => ask_for_method(option),
                },
                None => Step::Ask {
                    login: Self::ChoosingProvider,
                    text: format!("There is no provider named {text:?}.\n\n{}", which_provider(options)),
                },
            },
            Self::ChoosingMethod { provider } => {
                let Some(option) = options.iter().find(|option| option.id == provider) else {
                    return Self::start("", options);
                };
                match option.methods.iter().find(|method| method.word().eq_ignore_ascii_case(text)) {
                    Some(LoginMethod::ApiKey) => ask_for_key(option),
                    Some(method) => Step::Begin { provider, method: *method },
                    None => ask_for_method(option),
                }
            }
            Self::Waiting { provider } if text.is_empty() || text.contains(char::is_whitespace) => Step::Ask {
                text: "The login is still waiting for you in the browser. If the browser cannot come back by itself, \
                       paste the address that it ended at (or `cancel`):"
                    .into(),
                login: Self::Waiting { provider },
            },
            Self::Waiting { provider } => Step::Pasted { provider, text: text.to_owned() },
            Self::EnteringKey { provider } if text.is_empty() || text.contains(char::is_whitespace) => Step::Ask {
                text: "That is not a key: it must be one word. Paste the key again (or `cancel`):".into(),
                login: Self::EnteringKey { provider },
            },
            Self::EnteringKey { provider } => Step::Finish { provider, key: Secret::new(text) },
        }
    }
}

impl LoginMethod {
    /// What a user writes to choose it.
    fn word(self) -> &'static str {
        match self {
            Self::Browser => "browser",
            Self::Device => "device",
            Self::ApiKey => "key",
        }
    }
}

impl LoginStep {
    /// What a user reads, in a chat.
    pub(super) fn text(&self) -> String {
        match self {
            Self::EnterKey => "Paste the API key (or `cancel`):".to_owned(),
            Self::Open { url } => format!(
                "Open this page and log in there:\n\n<{url}>\n\nThe login goes on here when you are done. If the browser \
                 runs on another machine, paste the address that it ends at (or `cancel`)."
            ),
            Self::TypeCode { url, code } => format!(
                "Open <{url}> on any device and type in this code:\n\n`{code}`\n\nThe login goes on here when you are \
                 done (or `cancel`)."
            ),
        }
    }
}

fn ask_for_key(option: &LoginOption) -> Step {
    Step::Ask {
        text: format!("Paste the API key of {} (or `cancel`):", option.label),
        login: Login::EnteringKey { provider: option.id.clone() },
    }
}

fn ask_for_method(option: &LoginOption) -> Step {
    let line = |method: &LoginMethod| {
        let what = match method {
            LoginMethod::Browser => "log in with a browser on this machine",
            LoginMethod::Device => "log in on any device, by a code",
            LoginMethod::ApiKey => "enter an API key",
        };
        format!("- `{}`: {what}", method.word())
    };
    let lines: Vec<String> = option.methods.iter().map(line).collect();
    Step::Ask {
        text: format!(
            "How do you want to log in at {}? Write one of these (or `cancel`):\n\n{}",
            option.label,
            lines.join("\n")
        ),
        login: Login::ChoosingMethod { provider: option.id.clone() },
    }
}

/// The ways into a provider.
pub fn methods(view: &ProviderView) -> Vec<LoginMethod> {
    let way = |way: &Way| match way {
        Way::Browser => LoginMethod::Browser,
        Way::Device => LoginMethod::Device,
    };
    view.ways.iter().map(way).chain([LoginMethod::ApiKey]).collect()
}

/// What a provider is to someone who wants to log in; `None` for those that need no key.
pub(super) fn option(view: ProviderView) -> Option<LoginOption> {
    let unavailable = match view.state {
        // One that was configured without a key may still want one.
        ProviderState::Authenticated
        | ProviderState::Expiring
        | ProviderState::Expired
        | ProviderState::Unauthenticated
        | ProviderState::Local => None,
        ProviderState::NoLogin(reason) => Some(reason.to_owned()),
        ProviderState::NotRunning => return None,
    };
    let label = view.label.map_or_else(|| view.id.clone(), str::to_owned);
    Some(LoginOption { label, unavailable, methods: methods(&view), id: view.id })
}

/// What became of a provider's login.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Change {
    KeyEntered,
    LoggedIn,
    Forgotten,
}

/// What has come of it, for the user. `used` is where the provider's key comes from now.
pub(super) fn outcome(label: &str, change: Change, used: Option<KeySource>) -> String {
    let entered = match change {
        Change::LoggedIn if used == Some(KeySource::OAuth) => return format!("You are logged in at {label}."),
        Change::LoggedIn => {
            return format!(
                "You are logged in at {label}, but the configuration names a key for this provider, which comes first. \
                 Remove it there to use the login."
            );
        }
        Change::KeyEntered => true,
        Change::Forgotten => false,
    };
    match (entered, used) {
        (true, Some(KeySource::Login)) => format!("The key of {label} is kept and in use."),
        (true, _) => format!(
            "The key of {label} is kept, but another one comes first: the configuration names a key for this \
             provider. Remove it there to use the one you entered."
        ),
        (false, None | Some(KeySource::None)) => format!("The key of {label} is forgotten."),
        (false, Some(_)) => format!("The key of {label} that was entered is forgotten; another one is still in use."),
    }
}

fn which_provider(options: &[LoginOption]) -> String {
    let names: Vec<String> = options
        .iter()
        .filter(|option| option.unavailable.is_none())
        .map(|option| format!("- `{}` ({})", option.id, option.label))
        .collect();
    format!("Which provider? Write its id (or `cancel`):\n\n{}", names.join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options() -> Vec<LoginOption> {
        let option = |id: &str, unavailable: Option<&str>| LoginOption {
            id: id.into(),
            label: id.to_uppercase(),
            unavailable: unavailable.map(str::to_owned),
            methods: vec![LoginMethod::ApiKey],
        };
        let mine = LoginOption {
            methods: vec![LoginMethod::Browser, LoginMethod::Device, LoginMethod::ApiKey],
            ..option("mine", None)
        };
        let only = LoginOption { methods: vec![LoginMethod::Device], ..option("only", None) };
        vec![option("openai", None), option("github-copilot", Some("it wants another program's name")), mine, only]
    }

    #[test]
    fn a_login_asks_for_the_provider_and_then_for_the_key() {
        let Step::Ask { login, text } = Login::start("", &options()) else { panic!("a question") };
        assert!(text.contains("`openai`") && !text.contains("`github-copilot`"), "{text}");
        assert!(!login.is_secret());
        let Step::Ask { login, .. } = login.answer(" OpenAI\n", &options()) else { panic!("a question") };
        assert!(login.is_secret());
        assert_eq!(
            login.answer("sk-1\n", &options()),
            Step::Finish { provider: "openai".into(), key: Secret::new("sk-1") }
        );
    }

    #[test]
    fn what_makes_no_sense_is_asked_again() {
        for name in ["nobody", "github-copilot"] {
            let Step::Ask { login, text } = Login::start(name, &options()) else { panic!("a question") };
            assert_eq!(login, Login::ChoosingProvider);
            assert!(text.contains("Which provider?"), "{text}");
        }
        let entering = Login::EnteringKey { provider: "openai".into() };
        assert!(matches!(entering.clone().answer("two words", &options()), Step::Ask { .. }));
        assert!(matches!(entering.answer("", &options()), Step::Ask { .. }));
    }

    #[test]
    fn a_login_with_several_ways_asks_for_one() {
        let Step::Ask { login, text } = Login::start("mine", &options()) else { panic!("a question") };
        assert!(["`browser`", "`device`", "`key`"].iter().all(|word| text.contains(word)), "{text}");
        let begin = |provider: &str, method| Step::Begin { provider: provider.into(), method };
        assert_eq!(login.clone().answer("Browser", &options()), begin("mine", LoginMethod::Browser));
        assert!(matches!(
            login.clone().answer("pigeon", &options()),
            Step::Ask { login: Login::ChoosingMethod { .. }, .. }
        ));
        assert!(matches!(login.answer("key", &options()), Step::Ask { login: Login::EnteringKey { .. }, .. }));
        assert_eq!(Login::start("only", &options()), begin("only", LoginMethod::Device));
        let waiting = Login::Waiting { provider: "mine".into() };
        assert!(waiting.is_secret());
        assert!(matches!(
            waiting.clone().answer("are you there", &options()),
            Step::Ask { login: Login::Waiting { .. }, .. }
        ));
        let pasted = Step::Pasted { provider: "mine".into(), text: "http://x/?code=1".into() };
        assert_eq!(waiting.answer(" http://x/?code=1\n", &options()), pasted);
    }

    #[test]
    fn cancel_ends_it_anywhere() {
        let provider = || "openai".to_owned();
        for login in [
            Login::ChoosingProvider,
            Login::ChoosingMethod { provider: provider() },
            Login::EnteringKey { provider: provider() },
            Login::Waiting { provider: provider() },
        ] {
            let waits = matches!(login, Login::Waiting { .. });
            let Step::Cancelled { waited_for, .. } = login.answer(" Cancel ", &options()) else { panic!("the end") };
            assert_eq!(waited_for, waits.then(provider));
        }
    }
}
