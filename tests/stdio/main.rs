//! The real executable over pipes: what only a process can show. Broken input, the ends of a
//! process and their exit codes, signals, and streams that nobody reads.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
#![cfg(unix)]

#[path = "../support/mock_llm.rs"]
mod mock_llm;
#[path = "../support/peer.rs"]
mod peer;
#[path = "../support/server.rs"]
mod server;

mod ends;
mod frames;
mod kills;
mod lines;
mod process;
mod proxy;
mod streams;
