//! The tools that are built in: what a model can do without any server of the user's.

pub mod custom;
pub mod editor;
pub mod fetch;
pub mod files;
pub mod git;
pub mod jobs;
pub mod shell;
