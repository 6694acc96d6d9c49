//! What is measured, one file per question.

pub(crate) mod acp;
pub(crate) mod chats;
pub(crate) mod files;
pub(crate) mod history;
pub(crate) mod idle;
pub(crate) mod latency;
pub(crate) mod mcp;
pub(crate) mod prompt;
pub(crate) mod stall;
pub(crate) mod start;
pub(crate) mod stream;
pub(crate) mod tools;
