//! The tools that are built in.

pub mod editor;
pub mod fetch;
