//! Requests to the client that wait for their answer.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};
use std::task::{Context, Poll};

use dashmap::DashMap;
use tokio::sync::oneshot;

use super::envelope::{Id, Outcome};
use crate::base::shared_map;

/// More than this many unanswered requests mean that the client does not answer at all.
const MOST_OUTSTANDING: usize = 1024;

/// The table of unanswered requests; clones share it. Ids count from 1 and are never used again.
#[derive(Clone, Debug, Default)]
pub struct Pending {
    table: Arc<Table>,
}

/// The client leaves too many requests unanswered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the client has left {MOST_OUTSTANDING} requests unanswered")]
pub struct TooManyPending;

/// One unanswered request. Await it for the answer; `None` means that there will be none. Dropping it
/// forgets the request, so a deadline around the await leaves nothing behind.
#[derive(Debug)]
pub struct PendingCall {
    id: i64,
    table: Arc<Table>,
    answer: oneshot::Receiver<Outcome>,
}

#[derive(Debug)]
struct Table {
    waiting: DashMap<i64, oneshot::Sender<Outcome>>,
    /// Counted apart, because the map would lock all its shards to count.
    outstanding: AtomicUsize,
    last_id: AtomicI64,
}

impl Default for Table {
    fn default() -> Self {
        Self { waiting: shared_map(), outstanding: AtomicUsize::new(0), last_id: AtomicI64::new(0) }
    }
}

impl Pending {
    pub fn new() -> Self {
        Self::default()
    }

    /// A fresh id and what to await under it.
    pub fn register(&self) -> Result<(i64, PendingCall), TooManyPending> {
        let table = &self.table;
        let more = |count: usize| (count < MOST_OUTSTANDING).then_some(count + 1);
        table.outstanding.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).map_err(|_| TooManyPending)?;
        let id = self.fresh_id();
        let (sender, answer) = oneshot::channel();
        table.waiting.insert(id, sender);
        Ok((id, PendingCall { id, table: Arc::clone(table), answer }))
    }

    /// An id for a request whose answer nobody waits for.
    pub fn fresh_id(&self) -> i64 {
        self.table.last_id.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Hands an answer to whoever waits for it; false when nobody does. Some clients send the number
    /// back as a string.
    pub fn resolve(&self, id: &Id, outcome: Outcome) -> bool {
        let number = match id {
            Id::Number(number) => *number,
            Id::String(text) => match text.parse() {
                Ok(number) => number,
                Err(_) => return false,
            },
            Id::Null => return false,
        };
        self.table.remove(number).is_some_and(|sender| sender.send(outcome).is_ok())
    }

    /// The connection is over: all who wait learn that no answer will come.
    pub fn abandon_all(&self) {
        let ids: Vec<i64> = self.table.waiting.iter().map(|entry| *entry.key()).collect();
        for id in ids {
            self.table.remove(id);
        }
    }

    pub fn outstanding(&self) -> usize {
        self.table.outstanding.load(Ordering::Relaxed)
    }
}

impl PendingCall {
    pub fn id(&self) -> i64 {
        self.id
    }
}

impl Future for PendingCall {
    type Output = Option<Outcome>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Outcome>> {
        Pin::new(&mut self.answer).poll(context).map(Result::ok)
    }
}

impl Drop for PendingCall {
    fn drop(&mut self) {
        self.table.remove(self.id);
    }
}

impl Table {
    fn remove(&self, id: i64) -> Option<oneshot::Sender<Outcome>> {
        let (_, sender) = self.waiting.remove(&id)?;
        self.outstanding.fetch_sub(1, Ordering::Relaxed);
        Some(sender)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    #[tokio::test]
    async fn an_answer_reaches_the_call_it_belongs_to() {
        let pending = Pending::new();
        let (first_id, first) = pending.register().unwrap();
        let (second_id, second) = pending.register().unwrap();
        assert_eq!((first_id, second_id, second.id()), (1, 2, 2));
        assert!(pending.resolve(&Id::String("2".into()), Ok(json!("b"))));
        assert!(pending.resolve(&Id::Number(1), Ok(json!("a"))));
        assert_eq!(first.await, Some(Ok(json!("a"))));
        assert_eq!(second.await, Some(Ok(json!("b"))));
        assert_eq!(pending.outstanding(), 0);
    }

    #[test]
    fn answers_to_nothing_are_refused() {
        let pending = Pending::new();
        let (_, call) = pending.register().unwrap();
        for id in [Id::Null, Id::Number(7), Id::String("x".into()), Id::Number(0)] {
            assert!(!pending.resolve(&id, Ok(Value::Null)), "{id}");
        }
        assert!(pending.resolve(&Id::Number(1), Ok(Value::Null)));
        assert!(!pending.resolve(&Id::Number(1), Ok(Value::Null)), "an answer counts once");
        drop(call);
        assert_eq!(pending.outstanding(), 0);
    }

    #[test]
    fn a_dropped_call_leaves_nothing_behind() {
        let pending = Pending::new();
        drop(pending.register().unwrap());
        assert_eq!(pending.outstanding(), 0);
        assert!(pending.table.waiting.is_empty());
        assert!(!pending.resolve(&Id::Number(1), Ok(Value::Null)));
    }

    #[test]
    fn the_number_of_unanswered_requests_is_bounded() {
        let pending = Pending::new();
        let mut calls: Vec<_> = (0..MOST_OUTSTANDING).map(|_| pending.register().unwrap()).collect();
        assert_eq!(pending.register().unwrap_err(), TooManyPending);
        calls.pop();
        assert_eq!(pending.register().unwrap().0, 1025);
    }

    #[tokio::test]
    async fn the_end_of_the_connection_ends_the_waiting() {
        let pending = Pending::new();
        let (_, call) = pending.register().unwrap();
        pending.abandon_all();
        assert_eq!(call.await, None);
        assert_eq!(pending.outstanding(), 0);
    }
}
