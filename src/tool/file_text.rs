//! The text of a file, held once for all who need it: the journal, what the model has seen, the
//! client and the disk. A large file is not copied for each of them.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use bytes::Bytes;

const MARK: &str = "\u{FEFF}";

/// Reads as the text without its byte order mark, if it has one. Clones share it.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct FileText {
    /// With the mark. Not an `Arc<str>`, which would be a copy of what was read or made.
    whole: Arc<String>,
    is_marked: bool,
}

impl FileText {
    /// All of a file; one mark at its start is no part of the text.
    pub fn of(whole: String) -> Self {
        Self { is_marked: whole.starts_with(MARK), whole: Arc::new(whole) }
    }

    /// A text without a mark, and whether the file has one before it.
    pub fn with_mark(mut text: String, is_marked: bool) -> Self {
        if is_marked {
            text.insert_str(0, MARK);
        }
        Self { whole: Arc::new(text), is_marked }
    }

    pub fn is_marked(&self) -> bool {
        self.is_marked
    }

    /// What is in the file, the mark included.
    pub fn whole(&self) -> &str {
        &self.whole
    }

    /// What is in the file, shared.
    pub fn bytes(&self) -> Bytes {
        Bytes::from_owner(Whole(Arc::clone(&self.whole)))
    }
}

impl Deref for FileText {
    type Target = str;

    fn deref(&self) -> &str {
        let start = if self.is_marked { MARK.len() } else { 0 };
        self.whole.get(start..).unwrap_or_default()
    }
}

impl From<&str> for FileText {
    fn from(whole: &str) -> Self {
        Self::of(whole.to_owned())
    }
}

impl From<Arc<str>> for FileText {
    fn from(whole: Arc<str>) -> Self {
        Self::from(&*whole)
    }
}

impl From<String> for FileText {
    fn from(whole: String) -> Self {
        Self::of(whole)
    }
}

impl fmt::Display for FileText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self)
    }
}

impl fmt::Debug for FileText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.whole(), f)
    }
}

struct Whole(Arc<String>);

impl AsRef<[u8]> for Whole {
    fn as_ref(&self) -> &[u8] {
        self.0.as_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mark_belongs_to_the_file_and_not_to_the_text() {
        for (whole, text, is_marked) in [
            ("", "", false),
            ("a", "a", false),
            ("\u{FEFF}", "", true),
            ("\u{FEFF}a\u{FEFF}", "a\u{FEFF}", true),
            ("\u{FEFF}\u{FEFF}", "\u{FEFF}", true),
            ("a\u{FEFF}", "a\u{FEFF}", false),
        ] {
            let read = FileText::from(whole);
            assert_eq!((&*read, read.is_marked()), (text, is_marked), "{whole:?}");
            assert_eq!((read.whole(), &read.bytes()[..]), (whole, whole.as_bytes()));
            assert_eq!(FileText::with_mark(text.to_owned(), is_marked), read);
        }
        assert_ne!(FileText::from("a"), FileText::from("\u{FEFF}a"));
    }

    #[test]
    fn nothing_is_copied_on_the_way() {
        let text = "x".repeat(100);
        let place = text.as_ptr();
        let shared = FileText::of(text);
        assert_eq!(shared.clone().bytes().as_ptr(), place);
        assert_eq!(shared.as_ptr(), place);
    }
}
