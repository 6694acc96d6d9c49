//! Gives up on a silent provider, but never blames it for our own pauses.
//!
//! The consumer of a stream stops polling while a slow editor takes its time. A plain timeout
//! goes on counting then and fires as soon as the consumer comes back. This one notices that
//! nobody was there to see the limit pass and starts over.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use tokio::time::{Instant, sleep};

/// The output of `future`, or `None` when it stayed pending for `limit` while being polled.
pub(super) async fn unless_silent<F: Future>(limit: Duration, future: F) -> Option<F::Output> {
    let mut future = pin!(future);
    // In a fast stream the next piece is usually there already, and then no clock is asked.
    if let Poll::Ready(output) = poll_fn(|context| Poll::Ready(future.as_mut().poll(context))).await {
        return Some(output);
    }
    let mut alarm = pin!(sleep(limit));
    poll_fn(|context| {
        if let Poll::Ready(output) = future.as_mut().poll(context) {
            return Poll::Ready(Some(output));
        }
        while alarm.as_mut().poll(context).is_ready() {
            let now = Instant::now();
            if now.saturating_duration_since(alarm.deadline()) <= slack(limit) {
                return Poll::Ready(None);
            }
            alarm.as_mut().reset(now + limit);
        }
        Poll::Pending
    })
    .await
}

/// An awaited alarm wakes its task at once; a poll that comes later than this was not woken by it.
fn slack(limit: Duration) -> Duration {
    (limit / 4).min(Duration::from_secs(5))
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt;
    use futures_util::task::noop_waker;
    use std::task::Context;
    use tokio::sync::oneshot;

    const LIMIT: Duration = Duration::from_millis(20);

    #[tokio::test]
    async fn silence_while_awaited_ends_the_wait() {
        assert_eq!(unless_silent(LIMIT, std::future::pending::<()>()).await, None);
        assert_eq!(unless_silent(Duration::ZERO, async { 1 }).await, Some(1));
    }

    #[tokio::test]
    async fn time_in_which_nobody_polled_does_not_count() {
        let (sender, receiver) = oneshot::channel();
        let mut watched = Box::pin(unless_silent(LIMIT, receiver));
        let waker = noop_waker();
        assert!(watched.poll_unpin(&mut Context::from_waker(&waker)).is_pending());
        let start = Instant::now();
        while start.elapsed() < LIMIT * 3 {
            tokio::task::yield_now().await;
        }
        assert!(watched.poll_unpin(&mut Context::from_waker(&waker)).is_pending(), "the watchdog fired for our pause");
        sender.send(7).unwrap();
        assert_eq!(watched.await, Some(Ok(7)));
    }

    #[tokio::test]
    async fn after_a_pause_silence_still_ends_the_wait() {
        let mut watched = Box::pin(unless_silent(LIMIT, std::future::pending::<()>()));
        let waker = noop_waker();
        assert!(watched.poll_unpin(&mut Context::from_waker(&waker)).is_pending());
        let start = Instant::now();
        while start.elapsed() < LIMIT * 3 {
            tokio::task::yield_now().await;
        }
        assert_eq!(watched.await, None);
    }
}
