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

mod acp;
mod acp_draft;
mod approvals;
mod assist;
mod chat;
mod commands;
mod configuration;
mod contexts;
mod copilot;
mod dialects;
mod documents;
mod errors;
mod framing;
mod front_ends;
mod handshake;
mod interleavings;
mod lines;
mod login;
mod mcp;
mod models;
mod oauth;
mod queries;
mod races;
mod rollback;
mod slow_client;
mod stock_server;
mod stop;
mod store;
mod subagents;
mod tool_kinds;
mod tools;
