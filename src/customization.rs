//! What users write to customise the assistant.

mod front_matter;
mod pattern;
pub mod prompt;
pub mod template;
