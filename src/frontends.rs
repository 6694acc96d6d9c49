//! One module per contract. Each turns its wire (or a person's typing) into engine calls, and
//! engine events into its own messages; none of them holds logic that another would need.

pub mod acp;
pub mod acp_draft;
pub mod chats;
pub mod copilot;
pub mod eca;
pub mod manage;
pub mod stdio;
pub mod terminal;

mod answers;
mod assemble;
mod method;
mod queue;
mod traffic;

use std::time::Duration;

pub use assemble::Surroundings;
pub use method::Method;

/// What is queued for the client when we leave gets so much time to be written.
const FLUSH_DEADLINE: Duration = Duration::from_millis(300);
