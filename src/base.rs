//! What every layer may use: identifiers, time, small text helpers. Knows no other module.

pub mod ids;
pub mod map;
pub mod private;
pub mod task;
pub mod text;
pub mod time;
pub mod transit;

pub use ids::{ChatId, ContentId, ModelId, ToolCallId};
pub use map::shared_map;
