//! The tools that are built in: what a model can do without any server of the user's.

pub mod files;
