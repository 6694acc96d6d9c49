//! Starting work beside the current task.
//!
//! Tokio's own functions are compiled anew for every piece of work that is given to them, a few
//! kilobytes each time. These give it one kind of work per result.

use std::pin::Pin;

use tokio::task::JoinHandle;

/// [`tokio::spawn`], small.
pub fn spawn<T: Send + 'static>(work: impl Future<Output = T> + Send + 'static) -> JoinHandle<T> {
    let work: Pin<Box<dyn Future<Output = T> + Send>> = Box::pin(work);
    tokio::spawn(work)
}

/// [`tokio::task::spawn_blocking`], small: work that may take long, or wait for a disk.
pub fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> JoinHandle<T> {
    let work: Box<dyn FnOnce() -> T + Send> = Box::new(work);
    tokio::task::spawn_blocking(work)
}
