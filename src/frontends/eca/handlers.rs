//! What each method of the protocol does, one module per area.

pub(super) mod assist;
mod chat;
mod history;
pub(super) mod jobs;
mod mcp;
mod providers;
mod query;
pub(super) mod selection;
mod tools;

pub(super) use providers::provider_status;
