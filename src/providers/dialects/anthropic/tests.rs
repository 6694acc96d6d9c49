//! The dialect against tables, and the provider against a mock server.

mod bodies;
mod decoding;
mod provider;
