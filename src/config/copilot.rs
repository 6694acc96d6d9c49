//! What may be set for `eca copilot`. Its client passes no arguments and a bare environment, so a
//! file is the only place where a user can say something.

use std::time::Duration;

/// The section `copilot`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CopilotConfig {
    /// The model; the default one when absent.
    pub model: Option<String>,
    /// How long one request may take from its arrival on; `None` for as long as it takes.
    pub generate_timeout: Option<Duration>,
    pub customize_timeout: Option<Duration>,
    pub chat_timeout: Option<Duration>,
    /// How many requests talk to a model at the same time.
    pub parallel_requests: u32,
}

impl Default for CopilotConfig {
    /// The times are a little below those after which the client of the contract gives up.
    fn default() -> Self {
        Self {
            model: None,
            generate_timeout: Some(Duration::from_secs(58)),
            customize_timeout: Some(Duration::from_secs(28)),
            chat_timeout: Some(Duration::from_secs(14)),
            parallel_requests: 4,
        }
    }
}
