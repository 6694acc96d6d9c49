//! How fast a server may talk. What comes faster waits in the server's own pipe, so a flood costs
//! neither memory nor a processor.

use std::time::Duration;

use tokio::time::Instant;

const MESSAGES_PER_SECOND: f64 = 500.0;
const MOST_MESSAGES_AT_ONCE: f64 = 5_000.0;
const BYTES_PER_SECOND: f64 = 16.0 * 1024.0 * 1024.0;
const MOST_BYTES_AT_ONCE: f64 = 96.0 * 1024.0 * 1024.0;

/// One direction of one connection.
#[derive(Debug)]
pub(super) struct Pace {
    messages: Bucket,
    bytes: Bucket,
}

#[derive(Debug)]
struct Bucket {
    most: f64,
    per_second: f64,
    /// May be below zero: then somebody waits.
    level: f64,
    since: Instant,
}

impl Pace {
    pub(super) fn new() -> Self {
        Self {
            messages: Bucket::new(MOST_MESSAGES_AT_ONCE, MESSAGES_PER_SECOND),
            bytes: Bucket::new(MOST_BYTES_AT_ONCE, BYTES_PER_SECOND),
        }
    }

    /// Returns when this much may be taken in.
    pub(super) async fn admit(&mut self, messages: usize, bytes: usize) {
        let now = Instant::now();
        let wait = self.messages.take(messages as f64, now).max(self.bytes.take(bytes as f64, now));
        if !wait.is_zero() {
            tokio::time::sleep(wait).await;
        }
    }
}

impl Bucket {
    fn new(most: f64, per_second: f64) -> Self {
        Self { most, per_second, level: most, since: Instant::now() }
    }

    /// How long to wait for `amount`.
    fn take(&mut self, amount: f64, now: Instant) -> Duration {
        let gained = now.saturating_duration_since(self.since).as_secs_f64() * self.per_second;
        self.level = (self.level + gained).min(self.most) - amount;
        self.since = now;
        Duration::from_secs_f64((-self.level / self.per_second).max(0.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bursts_pass_and_floods_wait() {
        let start = Instant::now();
        let mut bucket = Bucket::new(100.0, 10.0);
        let at = |seconds| start + Duration::from_secs(seconds);
        assert_eq!(bucket.take(100.0, at(0)), Duration::ZERO);
        assert_eq!(bucket.take(10.0, at(0)), Duration::from_secs(1));
        assert_eq!(bucket.take(20.0, at(1)), Duration::from_secs(2));
        assert_eq!(bucket.take(100.0, at(3600)), Duration::ZERO, "silence is saved up, but no more than a burst");
        assert_eq!(bucket.take(1.0, at(3600)), Duration::from_millis(100));
        assert_eq!(bucket.take(0.0, at(3601)), Duration::ZERO);
    }

    #[tokio::test]
    async fn the_first_messages_pass_at_once() {
        let mut pace = Pace::new();
        for _ in 0..1000 {
            pace.admit(1, 1000).await;
        }
        assert!(pace.messages.level > 0.0 && pace.bytes.level > 0.0);
    }
}
