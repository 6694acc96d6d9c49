//! The server as its clients see it, in process: every behaviour of the protocol that exists so
//! far, against a model under the test's control.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "../support/authority.rs"]
mod authority;
#[path = "../process/fake_mcp.rs"]
mod fake_mcp;
#[path = "../support/mock_llm.rs"]
mod mock_llm;
#[path = "../support/peer.rs"]
mod peer;
#[path = "../support/server.rs"]
mod server;
#[path = "../support/web.rs"]
mod web;

mod approvals;
mod chat;
mod configuration;
mod contexts;
mod copilot;
mod dialects;
mod errors;
mod framing;
mod handshake;
mod login;
mod mcp;
mod models;
mod oauth;
mod queries;
mod races;
mod slow_client;
mod stock_server;
mod stop;
mod store;
mod tools;
