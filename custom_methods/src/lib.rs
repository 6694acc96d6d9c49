//! The ECA wire protocol as types.
