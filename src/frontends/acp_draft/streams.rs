//! Messages of the user that come in pieces. The contract has no last piece, so a message is complete
//! when no further one comes for a while.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio::time::Instant;

use crate::base::ChatId;

/// Threads whose messages may be incomplete at a time, and the bytes of all of them.
const MOST_THREADS: usize = 256;
const MOST_BYTES: usize = 16 * 1024 * 1024;

/// Takes a message that is complete; the next one of its thread comes when it is done.
pub(super) type Deliver = Arc<dyn Fn(ChatId, String) -> BoxFuture<'static, ()> + Send + Sync>;

/// Cheap to clone.
#[derive(Clone)]
pub(super) struct Streams {
    growing: Arc<Mutex<HashMap<ChatId, Growing>>>,
    deliver: Deliver,
}

/// A message that is being put together. There is one task for each.
struct Growing {
    text: String,
    /// When it is complete, unless more comes.
    due: Instant,
}

impl Streams {
    pub(super) fn new(deliver: Deliver) -> Self {
        Self { growing: Arc::default(), deliver }
    }

    /// Adds a piece; `pause` is how long to wait for the next one.
    pub(super) fn add(&self, thread: ChatId, piece: &str, pause: Duration) -> Result<(), &'static str> {
        let mut growing = self.growing();
        let bytes: usize = growing.values().map(|message| message.text.len()).sum();
        if bytes + piece.len() > MOST_BYTES {
            return Err("the message is too long");
        }
        let threads = growing.len();
        let due = Instant::now() + pause;
        match growing.entry(thread.clone()) {
            Entry::Occupied(mut entry) => {
                let message = entry.get_mut();
                message.text.push_str(piece);
                message.due = due;
            }
            Entry::Vacant(_) if threads >= MOST_THREADS => return Err("too many messages are incomplete"),
            Entry::Vacant(entry) => {
                entry.insert(Growing { text: piece.to_owned(), due });
                tokio::spawn(self.clone().complete(thread));
            }
        }
        Ok(())
    }

    /// Hands over what is complete until nothing more has come.
    async fn complete(self, thread: ChatId) {
        while let Some(due) = self.due(&thread) {
            tokio::time::sleep_until(due).await;
            if let Some(text) = self.take_complete(&thread).filter(|text| !text.trim().is_empty()) {
                (self.deliver)(thread.clone(), text).await;
            }
        }
    }

    /// When to look again; a message in which nothing has come since it was taken is forgotten.
    fn due(&self, thread: &ChatId) -> Option<Instant> {
        let mut growing = self.growing();
        let message = growing.get(thread)?;
        if message.text.is_empty() {
            growing.remove(thread);
            return None;
        }
        Some(message.due)
    }

    fn take_complete(&self, thread: &ChatId) -> Option<String> {
        let mut growing = self.growing();
        let message = growing.get_mut(thread).filter(|message| message.due <= Instant::now())?;
        Some(std::mem::take(&mut message.text))
    }

    fn growing(&self) -> MutexGuard<'_, HashMap<ChatId, Growing>> {
        self.growing.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::mpsc;

    use super::*;

    const PAUSE: Duration = Duration::from_millis(300);

    fn streams() -> (Streams, mpsc::UnboundedReceiver<(ChatId, String)>) {
        let (sender, delivered) = mpsc::unbounded_channel();
        let deliver: Deliver = Arc::new(move |thread, text| {
            let _ = sender.send((thread, text));
            Box::pin(std::future::ready(()))
        });
        (Streams::new(deliver), delivered)
    }

    fn thread(id: &str) -> ChatId {
        ChatId::new(id)
    }

    #[tokio::test(start_paused = true)]
    async fn a_message_is_complete_when_nothing_comes_any_more() {
        let (streams, mut delivered) = streams();
        for piece in ["one ", "", "two ", "three"] {
            streams.add(thread("a"), piece, PAUSE).unwrap();
            tokio::time::sleep(Duration::from_millis(299)).await;
            assert!(delivered.try_recv().is_err());
        }
        streams.add(thread("b"), "other", PAUSE).unwrap();
        assert_eq!(delivered.recv().await, Some((thread("a"), "one two three".into())));
        assert_eq!(delivered.recv().await, Some((thread("b"), "other".into())));
        streams.add(thread("a"), "next", PAUSE).unwrap();
        assert_eq!(delivered.recv().await, Some((thread("a"), "next".into())));
        tokio::time::sleep(PAUSE).await;
        assert!(streams.growing().is_empty(), "nothing is left behind");
    }

    #[tokio::test(start_paused = true)]
    async fn blank_messages_are_not_delivered() {
        let (streams, mut delivered) = streams();
        streams.add(thread("a"), "", PAUSE).unwrap();
        streams.add(thread("b"), " \n", PAUSE).unwrap();
        tokio::time::sleep(PAUSE * 3).await;
        assert!(delivered.try_recv().is_err() && streams.growing().is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn what_comes_while_a_message_is_delivered_is_the_next_one() {
        let (sender, mut delivered) = mpsc::unbounded_channel();
        let deliver: Deliver = Arc::new(move |_, text| {
            let sender = sender.clone();
            Box::pin(async move {
                let _ = sender.send(text);
                tokio::time::sleep(PAUSE * 4).await;
            })
        });
        let streams = Streams::new(deliver);
        streams.add(thread("a"), "one", PAUSE).unwrap();
        assert_eq!(delivered.recv().await.as_deref(), Some("one"));
        streams.add(thread("a"), "two", PAUSE).unwrap();
        let before = Instant::now();
        assert_eq!(delivered.recv().await.as_deref(), Some("two"));
        assert!(before.elapsed() >= PAUSE * 3, "in order");
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_kept_is_bounded() {
        let (streams, _delivered) = streams();
        for number in 0..MOST_THREADS {
            streams.add(thread(&number.to_string()), "x", PAUSE).unwrap();
        }
        assert!(streams.add(thread("one more"), "x", PAUSE).is_err());
        assert!(streams.add(thread("0"), &"x".repeat(MOST_BYTES), PAUSE).is_err());
        streams.add(thread("0"), "x", PAUSE).unwrap();
    }
}
