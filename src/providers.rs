//! Where models come from: the registry of providers, the catalogue of their models, retry rules,
//! and the offline guide that answers when there is nothing else.
//!
//! The engine asks the [`Registry`] for a model and a [`crate::llm::Provider`]; it does not know
//! which dialect answers. A dialect joins by implementing [`Upstream`] and by one line in
//! [`registry`]'s wiring.

pub mod discovery;
pub mod guide;
pub mod registry;
pub mod retry;

pub use discovery::{ListedModel, LocalServer, Upstream};
pub use guide::{Guide, GuideView};
pub use registry::{Environment, KeySource, ProviderView, Registry, UnknownModel, Wiring};
