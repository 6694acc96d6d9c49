//! The dialect against tables, and the provider against a mock server.

mod bodies;
mod decoding;
#[path = "../../../../tests/support/mock_llm.rs"]
mod mock_llm;
mod provider;
