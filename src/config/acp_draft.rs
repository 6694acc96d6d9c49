//! What may be set for `eca acp --draft`. Its client cannot say any of it: the contract has no place
//! for it.

use std::time::Duration;

/// The section `acpDraft`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AcpDraftConfig {
    /// Who answers. Nobody can be asked for consent, so by default it is one who changes nothing.
    pub agent: String,
    /// A message that comes in pieces is complete when no further piece came for so long.
    pub message_pause: Duration,
}

impl Default for AcpDraftConfig {
    fn default() -> Self {
        Self { agent: "plan".to_owned(), message_pause: Duration::from_millis(300) }
    }
}
