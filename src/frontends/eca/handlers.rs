//! What each method of the protocol does, one module per area.

mod chat;
mod jobs;
mod mcp;
mod planned;
mod providers;
pub(super) mod selection;

pub use planned::PLANNED;
pub(super) use providers::provider_status;
