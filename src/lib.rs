//! The ECA server: one engine, several front ends.
//!
//! Reading order, from the edge inwards: [`frontends`] speak a wire contract or a terminal,
//! [`transport`] moves frames, [`engine`] owns chats, [`providers`] reach models, [`mcp`] runs servers
//! that offer tools, [`store`] keeps chats, [`approval`] decides what may run, [`config`] says what the
//! user wants, [`llm`] is the vocabulary between engine and
//! providers, [`process`], [`http`] and [`base`] carry them all. `docs/architecture.md` has the
//! map and the rules; `tests/tidy.rs` enforces them.

pub mod approval;
pub mod base;
pub mod cli;
pub mod config;
pub mod context;
pub mod customization;
pub mod engine;
pub mod frontends;
pub mod host;
pub mod http;
pub mod llm;
pub mod logging;
pub mod mcp;
pub mod process;
pub mod providers;
pub mod state;
pub mod store;
pub mod tool;
pub mod tools;
pub mod transport;
pub mod workspace;

mod run;

pub use run::run;
