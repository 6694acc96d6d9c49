//! What a front end submits to a chat, and what it gets back.

use std::sync::Arc;

use tokio::sync::oneshot;

use crate::base::ChatId;
pub use crate::context::render::Context;
use crate::workspace::Workspace;

/// One message of the user.
#[derive(Debug, Clone)]
pub struct Prompt {
    /// `None` asks for a new chat with an id of ours.
    pub chat: Option<ChatId>,
    pub text: String,
    /// As the client wrote it: a full id, a bare name, `auto`, or nothing.
    pub model: Option<String>,
    /// A variant of that model; what is unknown is ignored with a note.
    pub variant: Option<String>,
    pub agent: Option<String>,
    /// Whether tools may run without questions from now on; `None` leaves it as it is.
    pub trust: Option<bool>,
    pub contexts: Vec<Context>,
    pub workspace: Arc<Workspace>,
    pub reply: ReplyWhen,
}

/// When a prompt counts as accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReplyWhen {
    /// As soon as the message is recorded and echoed.
    Recorded,
    /// Once the model's provider took the request or refused it; bounded in time.
    Connected,
}

/// The answer to a prompt.
#[derive(Debug)]
pub struct Accepted {
    pub chat: ChatId,
    /// The model that answers, or what was asked for when it is unknown.
    pub model: String,
    pub status: AcceptedStatus,
    /// One sentence for clients that show it.
    pub message: String,
    /// The chat says nothing more until this is dropped: drop it when the response is queued.
    pub hold: Hold,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AcceptedStatus {
    Prompting,
    /// Nothing runs; the reason follows as chat text, or stands in `message` when there is no chat.
    Error,
    /// Only with [`ReplyWhen::Connected`].
    ConnectionError,
    /// The message was an answer to a question of a login.
    Login,
    /// A login was cancelled.
    Idle,
}

/// Keeps a chat silent while it lives.
#[derive(Debug)]
pub struct Hold {
    // Dropping the sender is the signal; nothing is ever sent.
    _released: oneshot::Sender<std::convert::Infallible>,
}

/// The chat's end of a [`Hold`].
#[derive(Debug)]
pub(super) struct Held(oneshot::Receiver<std::convert::Infallible>);

impl Hold {
    pub(super) fn new() -> (Self, Held) {
        let (sender, receiver) = oneshot::channel();
        (Self { _released: sender }, Held(receiver))
    }
}

impl Held {
    pub(super) async fn released(self) {
        let _ = self.0.await;
    }
}

/// Why a prompt never reached a chat.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SubmitError {
    #[error("the server is shutting down")]
    ShuttingDown,
    #[error("chat {0} has too many messages waiting; try again when it has caught up")]
    Busy(ChatId),
}
