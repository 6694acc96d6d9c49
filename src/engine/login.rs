//! Logging in by chat: a conversation of a few fixed questions that ends with a key being kept.
//!
//! Pure: what to say next follows from what was said. The chat echoes, keeps and emits.

use crate::config::Secret;
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
}

/// A provider that can be logged into, or the reason why it cannot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoginOption {
    pub id: String,
    pub label: String,
    /// Why there is no way in.
    pub unavailable: Option<String>,
}

/// Where a login stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Login {
    ChoosingProvider,
    EnteringKey { provider: String },
}

/// What a message of the user does to a login.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Say this and wait for the next message.
    Ask { login: Login, text: String },
    /// Keep this key.
    Finish { provider: String, key: Secret },
    /// Nothing was kept.
    Cancelled { text: String },
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
        matches!(self, Self::EnteringKey { .. })
    }

    pub(super) fn answer(self, text: &str, options: &[LoginOption]) -> Step {
        let text = text.trim();
        if text.eq_ignore_ascii_case("cancel") {
            return Step::Cancelled { text: "The login was cancelled; nothing has changed.".into() };
        }
        match self {
            Self::ChoosingProvider => match options.iter().find(|option| option.id.eq_ignore_ascii_case(text)) {
                Some(LoginOption { label, unavailable: Some(reason), .. }) => Step::Ask {
                    login: Self::ChoosingProvider,
                    text: format!("{label} cannot be logged into from here: {reason}\n\n{}", which_provider(options)),
                },
                Some(option) => Step::Ask {
                    text: format!("Paste the API key of {} (or `cancel`):", option.label),
                    login: Self::EnteringKey { provider: option.id.clone() },
                },
                None => Step::Ask {
                    login: Self::ChoosingProvider,
                    text: format!("There is no provider named {text:?}.\n\n{}", which_provider(options)),
                },
            },
            Self::EnteringKey { provider } if text.is_empty() || text.contains(char::is_whitespace) => Step::Ask {
                text: "That is not a key: it must be one word. Paste the key again (or `cancel`):".into(),
                login: Self::EnteringKey { provider },
            },
            Self::EnteringKey { provider } => Step::Finish { provider, key: Secret::new(text) },
        }
    }
}

/// What a provider is to someone who wants to log in; `None` for those that need no key.
pub(super) fn option(view: ProviderView) -> Option<LoginOption> {
    let unavailable = match view.state {
        // One that was configured without a key may still want one.
        ProviderState::Authenticated | ProviderState::Unauthenticated | ProviderState::Local => None,
        ProviderState::NoLogin(reason) => Some(reason.to_owned()),
        ProviderState::NotRunning => return None,
    };
    let label = view.label.map_or_else(|| view.id.clone(), str::to_owned);
    Some(LoginOption { id: view.id, label, unavailable })
}

/// What has come of it, for the user. `used` is where the provider's key comes from now.
pub(super) fn outcome(label: &str, entered: bool, used: Option<KeySource>) -> String {
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
        };
        vec![option("openai", None), option("github-copilot", Some("it wants another program's name"))]
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
    fn cancel_ends_it_anywhere() {
        for login in [Login::ChoosingProvider, Login::EnteringKey { provider: "openai".into() }] {
            assert!(matches!(login.answer(" Cancel ", &options()), Step::Cancelled { .. }));
        }
    }
}
