//! The ECA wire protocol as types, and nothing else.
//!
//! Editors speak to the server in JSON-RPC messages whose shapes grew over three generations of the protocol. This
//! crate is the one place that knows those shapes: it has no I/O, no runtime and no opinion about which generation a
//! peer speaks. Whoever uses it decides which optional fields to fill in; the types only guarantee that what is written
//! can be read by every generation, and that what real clients are known to send can be read here.
//!
//! Reading order: [`methods`] lists every method once, with its parameters and result; the area modules below hold
//! those types; the remaining modules are the tools they are built from.
//!
//! Rules that hold everywhere:
//!
//! - An unknown field is ignored, and `null` means the same as an absent field.
//! - An optional field that is `None` is left out when written. The few fields where `null` carries a meaning say so.
//! - A union keeps a member it does not know as raw JSON; in a member it knows, it names the field that is wrong.

#[macro_use]
mod macros;

pub mod methods;

pub mod chat;
pub mod completion;
pub mod config;
pub mod editor;
pub mod general;
pub mod jobs;
pub mod lifecycle;
pub mod mcp;
pub mod providers;
pub mod rewrite;
pub mod tools;

pub mod common;
pub mod ids;
pub mod keys;
pub mod tagged;
mod tolerant;

pub use common::{Empty, LineSpan, Position, Range, ResultError};
pub use ids::{ChatId, ContentId, JobId, ReasonId, RewriteId, ToolCallId};
pub use keys::normalise_keys;
pub use methods::{Direction, FRAMEWORK_METHODS, METHODS, MethodInfo, MethodKind};
