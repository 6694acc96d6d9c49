//! Tests to be written.
