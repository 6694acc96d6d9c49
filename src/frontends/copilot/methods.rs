//! Every method of the contract, once; `docs/contracts.md` is compared with this table.

use super::failure::{CUSTOMIZATION_FAILED, GENERATION_FAILED};
use crate::frontends::method::{Method, method};
use crate::transport::envelope::INTERNAL_ERROR;

/// The table.
pub const METHODS: &[Method] = &[
    method(INITIALIZE, "request", "to server"),
    method(GENERATE, "request", "to server"),
    method(CUSTOMIZE, "request", "to server"),
    method(CLARIFY, "request", "to server"),
    method(CHAT, "request", "to server"),
    method(EXIT, "either", "to server"),
    method(SHUTDOWN, "either", "to server"),
    method(CANCEL, "notification", "to server"),
    method(CANCEL_REQUEST, "notification", "to server"),
    method(STREAM_CHUNK, "notification", "to client"),
];

pub(super) const INITIALIZE: &str = "initialize";
pub(super) const GENERATE: &str = "generate";
pub(super) const CUSTOMIZE: &str = "customize";
pub(super) const CLARIFY: &str = "clarify";
pub(super) const CHAT: &str = "chat";
pub(super) const EXIT: &str = "exit";
pub(super) const SHUTDOWN: &str = "shutdown";
pub(super) const CANCEL: &str = "cancel";
pub(super) const CANCEL_REQUEST: &str = "$/cancelRequest";
pub(super) const STREAM_CHUNK: &str = "stream/chunk";

/// What a request asks to be done, as far as errors and deadlines differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Work {
    Generate,
    Customize,
    Chat,
}

impl Work {
    /// For people.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Generate => "Generating the interface",
            Self::Customize => "Changing the interface",
            Self::Chat => "Answering",
        }
    }

    /// What is answered when it could not be done.
    pub(super) fn failed_code(self) -> i64 {
        match self {
            Self::Generate => GENERATION_FAILED,
            Self::Customize => CUSTOMIZATION_FAILED,
            // The contract has no code of its own for this.
            Self::Chat => INTERNAL_ERROR,
        }
    }
}
