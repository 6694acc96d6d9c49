//! Placeholder for now.
