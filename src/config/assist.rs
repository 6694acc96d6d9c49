//! What may be set for completion at the cursor and for rewriting a selection.

/// The sections `completion` and `rewrite`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AssistConfig {
    /// The model that completes; the default one when absent.
    pub completion_model: Option<String>,
    /// The model that rewrites; the default one when absent.
    pub rewrite_model: Option<String>,
    /// A longer file is shown to the model in part, around the selection.
    pub full_file_max_lines: usize,
}

impl Default for AssistConfig {
    fn default() -> Self {
        Self { completion_model: None, rewrite_model: None, full_file_max_lines: 2_000 }
    }
}
