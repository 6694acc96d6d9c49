//! The tools that are built in.

pub mod custom;
pub mod git;
pub mod jobs;
pub mod shell;
