//! What the tests of all dialects share.

#[path = "../../../tests/support/mock_llm.rs"]
pub(super) mod mock_llm;
