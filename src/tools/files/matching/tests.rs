//! Placeholder tests for now.
