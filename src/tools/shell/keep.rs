//! Keeps the beginning and the end of an output of any length.

use std::collections::VecDeque;

/// What a stream printed, bounded: errors stand at the end, what they are about at the beginning.
#[derive(Debug)]
pub(crate) struct HeadTail {
    head: Vec<u8>,
    tail: VecDeque<u8>,
    head_limit: usize,
    tail_limit: usize,
    dropped: usize,
}

impl Default for HeadTail {
    fn default() -> Self {
        Self::with_limits(32 * 1024, 224 * 1024)
    }
}

impl HeadTail {
    fn with_limits(head_limit: usize, tail_limit: usize) -> Self {
        Self { head: Vec::new(), tail: VecDeque::new(), head_limit, tail_limit, dropped: 0 }
    }

    pub(crate) fn push(&mut self, text: &str) {
        let bytes = text.as_bytes();
        let room = (self.head_limit - self.head.len()).min(bytes.len());
        let (first, rest) = bytes.split_at(room);
        self.head.extend_from_slice(first);
        // Of a piece that is longer than the tail, the beginning need not be stored at all.
        let (skipped, rest) = rest.split_at(rest.len().saturating_sub(self.tail_limit));
        let over = (self.tail.len() + rest.len()).saturating_sub(self.tail_limit);
        let gone = if skipped.is_empty() { over } else { self.tail.len() };
        self.tail.drain(..gone);
        self.dropped += gone + skipped.len();
        self.tail.extend(rest);
    }

    /// The whole, with a note where something is missing.
    pub(crate) fn into_text(self) -> String {
        let mut tail: Vec<u8> = self.tail.into();
        if self.dropped == 0 {
            let mut all = self.head;
            all.append(&mut tail);
            return String::from_utf8_lossy(&all).into_owned();
        }
        // Characters that were cut through are left out whole.
        let head = self.head.utf8_chunks().next().map(|chunk| chunk.valid()).unwrap_or_default();
        let cut = tail.iter().take_while(|byte| (0x80..0xc0).contains(*byte)).count();
        let dropped = self.dropped + (self.head.len() - head.len()) + cut;
        let tail = String::from_utf8_lossy(&tail[cut..]);
        format!("{head}\n[{dropped} bytes are left out here]\n{tail}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keep(pieces: &[&str], head: usize, tail: usize) -> String {
        let mut kept = HeadTail::with_limits(head, tail);
        for piece in pieces {
            kept.push(piece);
            assert!(kept.head.len() <= head && kept.tail.len() <= tail);
        }
        kept.into_text()
    }

    #[test]
    fn the_middle_is_dropped_and_counted() {
        for (pieces, expected) in [
            (&["abc"][..], "abc"),
            (&["abcdefgh"], "abcdefgh"),
            (&["abcd", "efgh"], "abcdefgh"),
            (&["abcdefghi"], "abc\n[1 bytes are left out here]\nefghi"),
            (&["a", "b", "c", "d", "e", "f", "g", "h", "i", "j"], "abc\n[2 bytes are left out here]\nfghij"),
            (&["abcdefgh", "0123456789"], "abc\n[10 bytes are left out here]\n56789"),
            (&["ab", "é", "xé", "éé"], "ab\n[5 bytes are left out here]\néé"),
        ] {
            assert_eq!(keep(pieces, 3, 5), expected, "{pieces:?}");
        }
        assert_eq!(keep(&[], 3, 5), "");
    }

    proptest::proptest! {
        #[test]
        fn no_byte_is_lost_uncounted(pieces in proptest::collection::vec("[a-zé€]{0,12}", 0..12)) {
            let whole = pieces.concat();
            let text = keep(&pieces.iter().map(String::as_str).collect::<Vec<_>>(), 7, 11);
            match text.split_once("\n[") {
                None => proptest::prop_assert_eq!(text, whole),
                Some((head, rest)) => {
                    let (note, tail) = rest.split_once("]\n").unwrap();
                    let dropped: usize = note.split(' ').next().unwrap().parse().unwrap();
                    proptest::prop_assert!(whole.starts_with(head) && whole.ends_with(tail));
                    proptest::prop_assert_eq!(head.len() + dropped + tail.len(), whole.len());
                }
            }
        }
    }
}
