//! (contract placeholder)
