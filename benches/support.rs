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

/// The program that is measured: the one in `ECA_PROGRAM`, such as `.ci/release` leaves, else the one
/// that was built with this benchmark.
pub(crate) fn program() -> std::path::PathBuf {
    let given = std::env::var_os("ECA_PROGRAM").map(std::path::PathBuf::from);
    let given = given.and_then(|path| std::path::absolute(path).ok());
    given.unwrap_or_else(|| env!("CARGO_BIN_EXE_eca").into())
}
