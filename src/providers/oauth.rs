//! Logging in at a provider with a client that the user has registered there, and the tokens that
//! come of it.
//!
//! There is no client id in this program. A provider gets a login by what the user writes under
//! `providers.<id>.oauth`: [`Client`] is that, checked; [`flow`] takes the user through the browser
//! or through a code on another device; [`Session`] keeps the tokens fresh, one renewal at a time;
//! [`upstream`] puts them on a dialect's requests, which know nothing of all this.

mod client;
mod exchange;
mod flow;
mod session;
mod tokens;
pub(super) mod upstream;

pub use client::{Client, Way};
pub use flow::{Authorization, DeviceCode, Opened, Paste};
pub use session::{Session, Sessions};
pub use tokens::Tokens;

#[cfg(test)]
mod tests;
