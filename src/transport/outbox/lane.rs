//! A queue of outgoing frames that can grow the last text of a chat in place.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

/// What a plain frame is; while the outbox is held, only responses go out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Response,
    Notification,
    Request,
}

/// One message on its way out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Frame {
    /// A finished body. With a chat, later texts of that chat are not merged into earlier ones.
    Plain {
        body: Vec<u8>,
        chat: Option<Arc<str>>,
        kind: Kind,
    },
    Text(TextFrame),
}

/// A piece of streamed text: the body is `head + text + tail`. Pieces with equal head, tail and key
/// may become one frame when the client reads slowly.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TextFrame {
    /// The chat inside which order counts.
    pub key: Arc<str>,
    pub head: Arc<str>,
    /// Already escaped for the inside of a JSON string.
    pub text: String,
    pub tail: &'static str,
}

/// How much the outbox keeps, and from when on it merges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    pub frames: usize,
    /// Body bytes in the queue. A larger frame is taken when nothing else is queued.
    pub bytes: usize,
    /// The queue length from which on texts merge.
    pub merge_from: usize,
    /// The longest text that merging makes.
    pub merged_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { frames: 1024, bytes: 4 * 1024 * 1024, merge_from: 64, merged_bytes: 32 * 1024 }
    }
}

impl Frame {
    /// The length of the body on the wire.
    pub fn body_len(&self) -> usize {
        match self {
            Self::Plain { body, .. } => body.len(),
            Self::Text(text) => text.head.len() + text.text.len() + text.tail.len(),
        }
    }

    /// The body as it goes over the wire.
    pub fn body(&self) -> Vec<u8> {
        let mut body = Vec::with_capacity(self.body_len());
        self.append_to(&mut body);
        body
    }

    /// Whether the frame has to wait while the outbox is held.
    pub(super) fn waits_for_release(&self) -> bool {
        !matches!(self, Self::Plain { kind: Kind::Response, .. })
    }

    pub(super) fn append_to(&self, buffer: &mut Vec<u8>) {
        match self {
            Self::Plain { body, .. } => buffer.extend_from_slice(body),
            Self::Text(text) => {
                for part in [&*text.head, &*text.text, text.tail] {
                    buffer.extend_from_slice(part.as_bytes());
                }
            }
        }
    }
}

/// A queued frame and the room it took, which is given back when the frame leaves.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) frame: Frame,
    pub(super) bytes: usize,
    pub(super) slots: usize,
}

#[derive(Debug, Default)]
pub(super) struct Lane {
    entries: VecDeque<Entry>,
    /// How many entries ever left; the front entry has this number.
    left: u64,
    /// For each chat whose last queued frame is a text: the number of that entry.
    pub(super) open_texts: HashMap<Arc<str>, u64>,
}

impl Lane {
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// How many entries were ever queued.
    pub(super) fn entered(&self) -> u64 {
        self.left + self.len() as u64
    }

    pub(super) fn push_back(&mut self, entry: Entry) {
        let number = self.entered();
        match &entry.frame {
            Frame::Text(text) => {
                self.open_texts.insert(Arc::clone(&text.key), number);
            }
            Frame::Plain { chat: Some(chat), .. } => {
                self.open_texts.remove(chat);
            }
            Frame::Plain { chat: None, .. } => {}
        }
        self.entries.push_back(entry);
    }

    pub(super) fn pop_front(&mut self) -> Option<Entry> {
        let entry = self.entries.pop_front()?;
        if let Frame::Text(text) = &entry.frame
            && self.open_texts.get(&text.key) == Some(&self.left)
        {
            self.open_texts.remove(&text.key);
        }
        self.left += 1;
        Some(entry)
    }

    /// Drops everything that is queued, as if it had left.
    pub(super) fn clear(&mut self) {
        self.left = self.entered();
        self.entries = VecDeque::new();
        self.open_texts = HashMap::new();
    }

    /// The index of the last text of the chat, if `text` may be merged into it.
    pub(super) fn merge_target(&self, text: &TextFrame, limits: &Limits) -> Option<usize> {
        if self.len() < limits.merge_from {
            return None;
        }
        let number = self.open_texts.get(&text.key)?;
        let index = usize::try_from(number.checked_sub(self.left)?).ok()?;
        match &self.entries.get(index)?.frame {
            Frame::Text(target)
                if target.head == text.head
                    && target.tail == text.tail
                    && target.text.len() + text.text.len() <= limits.merged_bytes =>
            {
                Some(index)
            }
            _ => None,
        }
    }

    /// Appends a text to the entry that [`merge_target`](Self::merge_target) found.
    pub(super) fn merge_into(&mut self, index: usize, added: &str, bytes: usize) {
        if let Some(Entry { frame: Frame::Text(target), bytes: taken, .. }) = self.entries.get_mut(index) {
            target.text.push_str(added);
            *taken += bytes;
        }
    }
}
