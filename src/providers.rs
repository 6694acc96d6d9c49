//! (contract placeholder)
pub mod dialects;
pub mod errors;
pub mod sse;
