//! Messages of the user that come in pieces. The contract has no last piece, so a message is complete
//! when no further one comes for a while.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio::time::Instant;

use crate::base::ChatId;
use crate::base::task;

/// Threads whose messages may be incomplete at a time, and the bytes of all of them.
const MOST_THREADS: usize = 256;
const MOST_BYTES: usize = 16 * 1024 * 1024;

/// Takes a message that is complete; the next one of its thread comes when it is done.
pub(super) type Deliver = Arc<dyn Fn(ChatId, String) -> BoxFuture<'static, ()> + Send + Sync>;

/// Cheap to clone.
#[derive(Clone)]
pub(super) struct Streams {
    messages: Arc<Mutex<Messages>>,
    deliver: Deliver,
}

impl Streams {
    pub(super) fn new(deliver: Deliver) -> Self {
        Self { messages: Arc::default(), deliver }
    }

    /// Adds a piece; `pause` is how long to wait for the next one.
    pub(super) fn add(&self, thread: ChatId, piece: &str, pause: Duration) -> Result<(), &'static str> {
        let is_new = self.messages().add(&thread, piece, Instant::now() + pause)?;
        if is_new {
            task::spawn(self.clone().complete(thread));
        }
        Ok(())
    }

    /// Hands over what is complete until nothing more has come.
    async fn complete(self, thread: ChatId) {
        while let Some(due) = self.due(&thread) {
            tokio::time::sleep_until(due).await;
            let text = self.messages().take(&thread, Instant::now());
            if let Some(text) = text.filter(|text| !text.trim().is_empty()) {
                (self.deliver)(thread.clone(), text).await;
            }
        }
    }

    fn due(&self, thread: &ChatId) -> Option<Instant> {
        self.messages().due(thread)
    }

    fn messages(&self) -> MutexGuard<'_, Messages> {
        self.messages.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Messages that are being put together. There is one task for each.
#[derive(Debug, Default)]
struct Messages(HashMap<ChatId, Growing>);

#[derive(Debug)]
struct Growing {
    text: String,
    /// When it is complete, unless more comes.
    due: Instant,
}

impl Messages {
    /// Whether this is the first piece of a message that nobody looks after yet.
    fn add(&mut self, thread: &ChatId, piece: &str, due: Instant) -> Result<bool, &'static str> {
        let bytes: usize = self.0.values().map(|message| message.text.len()).sum();
        if bytes + piece.len() > MOST_BYTES {
            return Err("the message is too long");
        }
        if let Some(message) = self.0.get_mut(thread) {
            message.text.push_str(piece);
            message.due = due;
            return Ok(false);
        }
        if self.0.len() >= MOST_THREADS {
            return Err("too many messages are incomplete");
        }
        self.0.insert(thread.clone(), Growing { text: piece.to_owned(), due });
        Ok(true)
    }

    /// When to look again. A message to which nothing has come since it was taken is forgotten.
    fn due(&mut self, thread: &ChatId) -> Option<Instant> {
        let message = self.0.get(thread)?;
        let due = message.due;
        if message.text.is_empty() {
            self.0.remove(thread);
            return None;
        }
        Some(due)
    }

    /// The text, if it is complete by now.
    fn take(&mut self, thread: &ChatId, now: Instant) -> Option<String> {
        let message = self.0.get_mut(thread).filter(|message| message.due <= now)?;
        Some(std::mem::take(&mut message.text))
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::{Semaphore, mpsc};

    use super::*;

    const MS: Duration = Duration::from_millis(1);

    fn thread(id: &str) -> ChatId {
        ChatId::new(id)
    }

    #[test]
    fn a_message_is_complete_when_nothing_comes_any_more() {
        let mut messages = Messages::default();
        let (a, b, start) = (thread("a"), thread("b"), Instant::now());
        assert_eq!(messages.add(&a, "one ", start + MS * 300), Ok(true));
        assert_eq!(messages.take(&a, start + MS * 299), None);
        assert_eq!(messages.add(&a, "two", start + MS * 599), Ok(false));
        assert_eq!(messages.add(&b, "other", start + MS * 600), Ok(true));
        assert_eq!(messages.take(&a, start + MS * 300), None, "more came");
        assert_eq!(messages.due(&a), Some(start + MS * 599));
        assert_eq!(messages.take(&a, start + MS * 599).as_deref(), Some("one two"));
        // What comes while that one is delivered is the next one, for the same task.
        assert_eq!(messages.add(&a, "next", start + MS * 900), Ok(false));
        assert_eq!(messages.due(&a), Some(start + MS * 900));
        assert_eq!(messages.take(&a, start + MS * 900).as_deref(), Some("next"));
        assert_eq!(messages.due(&a), None);
        assert_eq!(messages.0.len(), 1, "only the other one is left");
        assert_eq!(messages.add(&a, "", start), Ok(true));
        assert_eq!(messages.due(&a), None, "nothing is not a message");
    }

    #[test]
    fn what_is_kept_is_bounded() {
        let mut messages = Messages::default();
        let now = Instant::now();
        for number in 0..MOST_THREADS {
            assert_eq!(messages.add(&thread(&number.to_string()), "x", now), Ok(true));
        }
        assert!(messages.add(&thread("one more"), "x", now).is_err());
        assert!(messages.add(&thread("0"), &"x".repeat(MOST_BYTES), now).is_err());
        assert_eq!(messages.add(&thread("0"), "x", now), Ok(false));
    }

    #[tokio::test]
    async fn messages_of_one_thread_are_delivered_one_after_the_other() {
        let (sender, mut delivered) = mpsc::unbounded_channel();
        let gate = Arc::new(Semaphore::new(0));
        let held = Arc::clone(&gate);
        let deliver: Deliver = Arc::new(move |thread, text| {
            let (sender, gate) = (sender.clone(), Arc::clone(&held));
            Box::pin(async move {
                let _ = sender.send((thread, text));
                gate.acquire().await.unwrap().forget();
            })
        });
        let streams = Streams::new(deliver);
        streams.add(thread("a"), "one", MS).unwrap();
        streams.add(thread("blank"), " \n", MS).unwrap();
        assert_eq!(delivered.recv().await, Some((thread("a"), "one".into())));
        streams.add(thread("a"), "two", MS).unwrap();
        streams.add(thread("b"), "beside", MS).unwrap();
        assert_eq!(delivered.recv().await, Some((thread("b"), "beside".into())), "the first is still being delivered");
        gate.add_permits(3);
        assert_eq!(delivered.recv().await, Some((thread("a"), "two".into())));
    }
}
