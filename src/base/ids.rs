//! Identifiers as types, so that a chat id can never be passed where a tool-call id belongs.

use std::fmt;
use std::sync::Arc;

macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(Arc<str>);

        impl $name {
            pub fn new(text: impl Into<Arc<str>>) -> Self {
                Self(text.into())
            }

            /// A fresh random identifier.
            pub fn random() -> Self {
                Self::new(uuid::Uuid::new_v4().to_string())
            }

            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Debug::fmt(&*self.0, f)
            }
        }

        impl From<&str> for $name {
            fn from(text: &str) -> Self {
                Self::new(text)
            }
        }
    };
}

id! {
    /// One chat, as the client sees it.
    ChatId
}
id! {
    /// One message of the user inside a chat; rollback, flags and forks point at it.
    ContentId
}
id! {
    /// One tool call, unique inside its chat.
    ToolCallId
}

/// Why a client's chat id was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BadChatId {
    #[error("the chat id is blank")]
    Blank,
    #[error("the chat id is longer than {MAX_CHAT_ID_CHARS} characters")]
    TooLong,
    #[error("the chat id contains white space or control characters")]
    BadCharacter,
    #[error("chat ids that start with \"subagent-\" are reserved")]
    Reserved,
}

const MAX_CHAT_ID_CHARS: usize = 256;

impl ChatId {
    /// Accepts what a client may choose as the id of its own chat.
    pub fn from_client(text: &str) -> Result<Self, BadChatId> {
        if text.trim().is_empty() {
            Err(BadChatId::Blank)
        } else if text.chars().count() > MAX_CHAT_ID_CHARS {
            Err(BadChatId::TooLong)
        } else if text.chars().any(|c| c.is_whitespace() || c.is_control()) {
            Err(BadChatId::BadCharacter)
        } else if text.starts_with("subagent-") {
            Err(BadChatId::Reserved)
        } else {
            Ok(Self::new(text))
        }
    }
}

/// `provider/model`, split at the first slash: `openrouter/openai/gpt-5` is the model
/// `openai/gpt-5` of `openrouter`.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ModelId {
    full: Arc<str>,
    slash: usize,
}

impl ModelId {
    pub fn new(provider: &str, model: &str) -> Self {
        Self { full: format!("{provider}/{model}").into(), slash: provider.len() }
    }

    /// `None` when there is no provider part.
    pub fn parse(full: &str) -> Option<Self> {
        let slash = full.find('/')?;
        (slash > 0 && slash + 1 < full.len()).then(|| Self { full: full.into(), slash })
    }

    pub fn as_str(&self) -> &str {
        &self.full
    }

    pub fn provider(&self) -> &str {
        &self.full[..self.slash]
    }

    pub fn model(&self) -> &str {
        &self.full[self.slash + 1..]
    }
}

impl fmt::Display for ModelId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.full)
    }
}

impl fmt::Debug for ModelId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&*self.full, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn model_ids_split_at_the_first_slash() {
        let id = ModelId::parse("openrouter/openai/gpt-5").map(|m| (m.provider().to_owned(), m.model().to_owned()));
        assert_eq!(id, Some(("openrouter".into(), "openai/gpt-5".into())));
        assert_eq!(ModelId::parse("gpt-5"), None);
        assert_eq!(ModelId::parse("/gpt-5"), None);
        assert_eq!(ModelId::parse("openai/"), None);
    }

    #[test]
    fn client_chat_ids_are_checked() {
        assert_eq!(ChatId::from_client(" "), Err(BadChatId::Blank));
        assert_eq!(ChatId::from_client(&"x".repeat(257)), Err(BadChatId::TooLong));
        assert_eq!(ChatId::from_client("a b"), Err(BadChatId::BadCharacter));
        assert_eq!(ChatId::from_client("a\u{7}"), Err(BadChatId::BadCharacter));
        assert_eq!(ChatId::from_client("subagent-1"), Err(BadChatId::Reserved));
        assert_eq!(ChatId::from_client("1"), Ok(ChatId::new("1")));
    }
}
