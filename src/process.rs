//! This process, its surroundings and its children: limits, signals, the editor that started it,
//! and the one place that starts other programs.

pub mod guard;
pub mod home;
pub mod limits;
pub mod parent;
pub mod piped;
pub mod program;
pub mod sandbox;
pub mod signals;
pub mod spawn;
