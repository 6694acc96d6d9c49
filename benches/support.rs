//! What the benchmarks share: a model that floods, a client that counts, and the kernel's books.

pub(crate) mod client;
pub(crate) mod mcp_server;
pub(crate) mod mock;
pub(crate) mod numbers;
pub(crate) mod proc;
pub(crate) mod relay;
pub(crate) mod report;
pub(crate) mod tree;

/// A benchmark fails only when it could not run or when the server lost or reordered something.
pub(crate) type Outcome<T> = Result<T, Box<dyn std::error::Error + Send + Sync>>;
