//! The system prompt: draft in progress.

/// The machine, as prompts may know it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Environment {
    pub os: String,
    pub shell: String,
    pub user: String,
    pub home: String,
}
