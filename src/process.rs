//! This process and its surroundings: limits, signals, and the editor that started it.
//!
//! Children will be started here too, and nowhere else.

pub mod limits;
pub mod parent;
pub mod signals;
