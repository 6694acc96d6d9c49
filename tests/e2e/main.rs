//! The server as its clients see it, in process: every behaviour of the protocol that exists so
//! far, against a model under the test's control.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "../support/mock_llm.rs"]
mod mock_llm;
#[path = "../support/peer.rs"]
mod peer;
#[path = "../support/server.rs"]
mod server;

mod chat;
mod configuration;
mod contexts;
mod copilot;
mod dialects;
mod errors;
mod framing;
mod handshake;
mod login;
mod models;
mod races;
mod slow_client;
mod stock_server;
mod stop;
mod store;
mod tools;
