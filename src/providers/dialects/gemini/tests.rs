//! The dialect against tables and any history, and the provider against a mock server.

mod bodies;
mod decoding;
mod provider;
