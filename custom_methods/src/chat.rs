//! Chats: asking, being answered, tools on the way, and looking after what was said.

mod content;
mod context;
mod details;
mod prompt;
mod query;
mod question;
mod session;
mod tool_call;

pub use content::*;
pub use context::*;
pub use details::*;
pub use prompt::*;
pub use query::*;
pub use question::*;
pub use session::*;
pub use tool_call::*;
