//! What each method of the protocol does, one module per area.

mod chat;
mod history;
pub(super) mod jobs;
mod mcp;
mod planned;
mod providers;
mod query;
pub(super) mod selection;
mod tools;

pub use planned::PLANNED;
pub(super) use providers::provider_status;
