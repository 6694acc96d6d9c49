//! Where models come from: the registry of providers, the catalogue of their models, retry rules,
//! and the offline guide that answers when there is nothing else.
//!
//! The engine asks the [`Registry`] for a model and a [`crate::llm::Provider`]; it does not know
//! which dialect answers. A dialect joins by implementing [`Upstream`] and by one line in
//! [`registry`]'s wiring, a vendor by one row in [`vendors`]. [`oauth`] stands between the two where
//! the user logs in instead of having a key.

pub mod catalog;
pub mod dialects;
pub mod discovery;
pub mod errors;
pub mod guide;
pub mod oauth;
pub mod registry;
pub mod retry;
pub mod sse;
pub mod variants;
pub mod vendors;

pub use dialects::ListedModel;
pub use discovery::{LocalServer, Upstream};
pub use guide::{Guide, GuideView};
pub use registry::{
    Environment, KeySource, ProviderState, ProviderView, Registry, UnknownModel, VariantChoice, Wiring,
};
