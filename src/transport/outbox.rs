//! The only way out: one ordered queue, bounded by frames and bytes, and one writer thread.
//!
//! Responses, notifications and requests share the queue, so nothing overtakes anything. When the
//! client reads slowly and the queue grows, texts of the same chat are merged instead of being
//! dropped; when it is full, pushing waits, which slows the producers down to the client's pace.
//! Until the client is initialised the outbox is *held*: responses go out, all else is parked.

mod lane;
mod room;
mod writer;

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use tokio::sync::{Notify, SemaphorePermit};
use tokio_util::sync::CancellationToken;

pub use lane::{Frame, Kind, Limits, TextFrame};
pub use writer::{Framing, WriterHandle};

use lane::{Entry, Lane};
use room::Room;

/// A handle on the queue; clones share it. When the last handle is dropped the outbox closes itself.
#[derive(Clone, Debug)]
pub struct Outbox {
    handles: Arc<Handles>,
}

/// The outbox takes nothing any more: it was closed, or the client stopped reading for good.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the connection to the client is closed")]
pub struct Closed;

/// Why a frame was not taken.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum PushError {
    #[error("the queue to the client is full")]
    Full(Frame),
    #[error("the connection to the client is closed")]
    Closed,
}

impl Outbox {
    /// An outbox that sends from the start.
    pub fn new(limits: Limits) -> Self {
        Self::with_hold(limits, false)
    }

    /// An outbox that sends only responses until [`release`](Self::release) is called.
    pub fn held(limits: Limits) -> Self {
        Self::with_hold(limits, true)
    }

    /// Queues a frame if there is room for it now.
    pub fn try_push(&self, frame: Frame) -> Result<(), PushError> {
        let shared = self.shared();
        let state = shared.lock();
        if state.closed {
            return Err(PushError::Closed);
        }
        let parks = state.parks(&frame);
        let room = shared.room(parks);
        let Some(bytes) = room.try_take_bytes(frame.body_len()) else { return Err(PushError::Full(frame)) };
        match shared.place(state, frame, Ticket { parks, bytes, slot: None }) {
            Placed::Done => Ok(()),
            Placed::NeedsSlot(frame, _) | Placed::Elsewhere(frame) => Err(PushError::Full(frame)),
            Placed::Closed => Err(PushError::Closed),
        }
    }

    /// Queues a frame, waiting for room in the order of arrival. Dropping the future is safe: the
    /// frame is then not sent, and the next waiter gets the room.
    pub async fn push(&self, frame: Frame) -> Result<(), Closed> {
        let mut frame = match self.try_push(frame) {
            Ok(()) => return Ok(()),
            Err(PushError::Closed) => return Err(Closed),
            Err(PushError::Full(frame)) => frame,
        };
        let shared = self.shared();
        loop {
            let parks = {
                let state = shared.lock();
                if state.closed {
                    return Err(Closed);
                }
                state.parks(&frame)
            };
            let room = shared.room(parks);
            // A room is shut by closing or by releasing; the next round finds out which it was.
            let Some(bytes) = room.take_bytes(frame.body_len()).await else { continue };
            let ticket = Ticket { parks, bytes, slot: None };
            let (unplaced, mut ticket) = match shared.place(shared.lock(), frame, ticket) {
                Placed::Done => return Ok(()),
                Placed::Closed => return Err(Closed),
                Placed::Elsewhere(unplaced) => {
                    frame = unplaced;
                    continue;
                }
                Placed::NeedsSlot(unplaced, ticket) => (unplaced, ticket),
            };
            frame = unplaced;
            ticket.slot = room.take_slot().await;
            match shared.place(shared.lock(), frame, ticket) {
                Placed::Done => return Ok(()),
                Placed::Closed => return Err(Closed),
                Placed::Elsewhere(unplaced) | Placed::NeedsSlot(unplaced, _) => frame = unplaced,
            }
        }
    }

    /// Sends what was parked, in order, and parks nothing any more. The parked frames come on top of
    /// the limits, once.
    pub fn release(&self) {
        let shared = self.shared();
        let mut state = shared.lock();
        if !std::mem::replace(&mut state.held, false) {
            return;
        }
        while let Some(entry) = state.parked.pop_front() {
            state.queue.push_back(Entry { bytes: 0, slots: 0, ..entry });
        }
        let wake = state.writer_to_wake();
        drop(state);
        shared.parked_room.shut();
        shared.wake_writer(wake);
    }

    /// Takes no further frames; the writer sends what is queued and ends. Parked frames are dropped.
    pub fn close(&self) {
        self.shared().close();
    }

    pub fn is_closed(&self) -> bool {
        self.shared().lock().closed
    }

    /// Cancelled when writing failed, that is when the client is gone.
    pub fn broken(&self) -> CancellationToken {
        self.shared().broken.clone()
    }

    /// Waits until everything queued before this call is written; false when it never will be.
    /// A client that does not read makes this wait for ever, so give it a deadline.
    pub async fn flushed(&self) -> bool {
        let shared = self.shared();
        let waiter = FlushWaiter::register(shared);
        loop {
            let mut progress = std::pin::pin!(shared.progress.notified());
            progress.as_mut().enable();
            if let Some(written) = shared.lock().is_written(waiter.target) {
                return written;
            }
            progress.await;
        }
    }

    /// As [`flushed`](Self::flushed), blocking the thread, and false at the deadline.
    pub fn wait_flushed(&self, deadline: Instant) -> bool {
        let shared = self.shared();
        let waiter = FlushWaiter::register(shared);
        let mut state = shared.lock();
        loop {
            if let Some(written) = state.is_written(waiter.target) {
                // The waiter locks again when it is dropped.
                drop(state);
                return written;
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                drop(state);
                return false;
            }
            state = shared.progress_blocking.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    fn with_hold(limits: Limits, held: bool) -> Self {
        let shared = Shared {
            room: Room::new(&limits),
            parked_room: Room::new(&limits),
            limits,
            state: Mutex::new(State { held, ..State::default() }),
            work: Condvar::new(),
            progress: Notify::new(),
            progress_blocking: Condvar::new(),
            broken: CancellationToken::new(),
        };
        Self { handles: Arc::new(Handles { shared: Arc::new(shared) }) }
    }

    fn shared(&self) -> &Arc<Shared> {
        &self.handles.shared
    }
}

/// The writer thread holds `Shared`, everybody else holds this, so the last one out can close.
#[derive(Debug)]
struct Handles {
    shared: Arc<Shared>,
}

impl Drop for Handles {
    fn drop(&mut self) {
        self.shared.close();
    }
}

#[derive(Debug)]
struct Shared {
    limits: Limits,
    state: Mutex<State>,
    room: Room,
    parked_room: Room,
    /// The writer waits here for frames.
    work: Condvar,
    /// Those who wait for the writer wait here.
    progress: Notify,
    progress_blocking: Condvar,
    broken: CancellationToken,
}

#[derive(Debug, Default)]
struct State {
    queue: Lane,
    parked: Lane,
    held: bool,
    closed: bool,
    broken: bool,
    writer_waits: bool,
    /// The writer has taken a frame and not yet come back.
    writing: bool,
    written: u64,
    flush_waiters: usize,
}

/// Room that was taken for one frame; it is given back when the ticket is dropped unused.
struct Ticket<'a> {
    parks: bool,
    bytes: SemaphorePermit<'a>,
    slot: Option<SemaphorePermit<'a>>,
}

enum Placed<'a> {
    Done,
    NeedsSlot(Frame, Ticket<'a>),
    /// The outbox was released meanwhile, so the frame belongs into the other lane.
    Elsewhere(Frame),
    Closed,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn room(&self, parks: bool) -> &Room {
        if parks { &self.parked_room } else { &self.room }
    }

    fn place<'a>(&'a self, mut state: MutexGuard<'_, State>, frame: Frame, mut ticket: Ticket<'a>) -> Placed<'a> {
        if state.closed {
            return Placed::Closed;
        }
        let parks = state.parks(&frame);
        if ticket.parks != parks {
            return Placed::Elsewhere(frame);
        }
        let lane = if parks { &mut state.parked } else { &mut state.queue };
        if let Frame::Text(text) = &frame
            && let Some(index) = lane.merge_target(text, &self.limits)
        {
            // Head and tail are already in the queue; their share of the room goes back with the ticket.
            let kept = ticket.bytes.split(text.text.len().min(ticket.bytes.num_permits()));
            lane.merge_into(index, &text.text, kept.map_or(0, forget));
            return Placed::Done;
        }
        let Some(slot) = ticket.slot.take().or_else(|| self.room(parks).try_take_slot()) else {
            return Placed::NeedsSlot(frame, ticket);
        };
        lane.push_back(Entry { frame, bytes: forget(ticket.bytes), slots: forget(slot) });
        let wake = !parks && state.writer_to_wake();
        drop(state);
        self.wake_writer(wake);
        Placed::Done
    }

    fn wake_writer(&self, wake: bool) {
        if wake {
            self.work.notify_one();
        }
    }

    fn close(&self) {
        let mut state = self.lock();
        state.closed = true;
        state.parked.clear();
        let wake = state.writer_to_wake();
        drop(state);
        self.room.shut();
        self.parked_room.shut();
        self.wake_writer(wake);
    }

    /// Writing failed: nothing that is queued will ever be read.
    fn break_off(&self) {
        let mut state = self.lock();
        state.broken = true;
        state.closed = true;
        state.queue.clear();
        drop(state);
        self.close();
        self.broken.cancel();
        self.tell_progress();
    }

    fn tell_progress(&self) {
        self.progress.notify_waiters();
        self.progress_blocking.notify_all();
    }

    /// Blocks until there is a frame to write; `None` when the outbox is closed and drained.
    fn wait_for_frame(&self) -> Option<Frame> {
        let mut state = self.lock();
        if std::mem::replace(&mut state.writing, false) {
            state.written += 1;
            if state.flush_waiters > 0 {
                self.tell_progress();
            }
        }
        loop {
            if let Some(Entry { frame, bytes, slots }) = state.queue.pop_front() {
                state.writing = true;
                drop(state);
                self.room.give_back(bytes, slots);
                return Some(frame);
            }
            if state.closed {
                return None;
            }
            state.writer_waits = true;
            state = self.work.wait(state).unwrap_or_else(PoisonError::into_inner);
            state.writer_waits = false;
        }
    }
}

impl State {
    fn parks(&self, frame: &Frame) -> bool {
        self.held && frame.waits_for_release()
    }

    /// Whether the writer sleeps and is to be woken; says so once per sleep.
    fn writer_to_wake(&mut self) -> bool {
        std::mem::replace(&mut self.writer_waits, false)
    }

    fn is_written(&self, target: u64) -> Option<bool> {
        if self.broken {
            return Some(false);
        }
        (self.written >= target).then_some(true)
    }
}

/// Counts those who want to know about the writer's progress, so that nobody is told when nobody asks.
struct FlushWaiter<'a> {
    shared: &'a Shared,
    target: u64,
}

impl<'a> FlushWaiter<'a> {
    fn register(shared: &'a Shared) -> Self {
        let mut state = shared.lock();
        state.flush_waiters += 1;
        Self { shared, target: state.queue.entered() }
    }
}

impl Drop for FlushWaiter<'_> {
    fn drop(&mut self) {
        self.shared.lock().flush_waiters -= 1;
    }
}

/// Keeps the room taken beyond the permit's life and says how much it was.
fn forget(permit: SemaphorePermit<'_>) -> usize {
    let taken = permit.num_permits();
    permit.forget();
    taken
}

#[cfg(test)]
mod tests {
    // Most tests take frames out with `wait_for_frame` themselves, which is what the writer does, so a
    // stalled client is simply a test that does not take any.

    use std::collections::HashMap;
    use std::io::{self, ErrorKind, Write};
    use std::sync::mpsc;
    use std::time::Duration;

    use futures_util::FutureExt;
    use proptest::prelude::*;

    use super::*;

    const TAIL: &str = "\"}";
    const HANG_GUARD: Duration = Duration::from_secs(20);

    fn limits(frames: usize, bytes: usize, merge_from: usize) -> Limits {
        Limits { frames, bytes, merge_from, merged_bytes: 20 }
    }

    fn plain(body: &str, kind: Kind) -> Frame {
        Frame::Plain { body: body.into(), chat: None, kind }
    }

    fn response(body: &str) -> Frame {
        plain(body, Kind::Response)
    }

    fn notification(body: &str) -> Frame {
        plain(body, Kind::Notification)
    }

    fn of_chat(body: &str, chat: &str) -> Frame {
        Frame::Plain { body: body.into(), chat: Some(chat.into()), kind: Kind::Notification }
    }

    fn text(key: &str, head: &str, text: &str) -> Frame {
        Frame::Text(TextFrame { key: key.into(), head: head.into(), text: text.into(), tail: TAIL })
    }

    fn body(frame: &Frame) -> String {
        let mut bytes = Vec::new();
        frame.append_to(&mut bytes);
        assert_eq!(bytes.len(), frame.body_len());
        String::from_utf8(bytes).unwrap()
    }

    /// Takes everything that is queued, as the writer would.
    fn drain(outbox: &Outbox) -> Vec<String> {
        let queued = outbox.shared().lock().queue.len();
        (0..queued).map(|_| body(&outbox.shared().wait_for_frame().unwrap())).collect()
    }

    /// The slots and bytes that are taken in the queue.
    fn taken(outbox: &Outbox) -> (usize, usize) {
        let (room, limits) = (&outbox.shared().room, outbox.shared().limits);
        (limits.frames - room.slots.available_permits(), limits.bytes - room.bytes.available_permits())
    }

    fn push_all(outbox: &Outbox, frames: impl IntoIterator<Item = Frame>) {
        for frame in frames {
            outbox.try_push(frame).unwrap();
        }
    }

    /// Records each `write`; takes at most `most` bytes at once and fails when told to.
    #[derive(Clone, Default)]
    struct Sink {
        writes: Arc<Mutex<Vec<Vec<u8>>>>,
        most: Option<usize>,
        fail_after: Option<usize>,
        interrupt: Arc<Mutex<Vec<ErrorKind>>>,
    }

    impl Sink {
        fn bytes(&self) -> String {
            String::from_utf8(self.writes.lock().unwrap().concat()).unwrap()
        }
    }

    impl Write for Sink {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            if let Some(kind) = self.interrupt.lock().unwrap().pop() {
                return Err(kind.into());
            }
            let mut writes = self.writes.lock().unwrap();
            if self.fail_after.is_some_and(|count| writes.len() >= count) {
                return Err(ErrorKind::BrokenPipe.into());
            }
            let taken = self.most.unwrap_or(bytes.len()).min(bytes.len());
            writes.push(bytes[..taken].to_vec());
            Ok(taken)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn everything_leaves_in_the_order_of_pushing() {
        let outbox = Outbox::new(Limits::default());
        push_all(&outbox, [notification("1"), text("c", "{", "2"), response("3"), plain("4", Kind::Request)]);
        assert_eq!(drain(&outbox), ["1", "{2\"}", "3", "4"]);
    }

    #[test]
    fn texts_merge_only_from_the_threshold_on() {
        let outbox = Outbox::new(limits(100, 10_000, 3));
        push_all(&outbox, ["a", "b", "c", "d", "e"].map(|piece| text("k", "h", piece)));
        assert_eq!(drain(&outbox), ["ha\"}", "hb\"}", "hcde\"}"]);
        push_all(&outbox, ["f", "g"].map(|piece| text("k", "h", piece)));
        assert_eq!(drain(&outbox), ["hf\"}", "hg\"}"], "what has left is never merged into");
    }

    #[test]
    fn texts_merge_inside_their_chat_only_and_never_past_anything_of_it() {
        let outbox = Outbox::new(limits(100, 10_000, 0));
        push_all(
            &outbox,
            [
                text("k", "h", "1"),
                text("other", "h", "x"),
                notification("no chat"),
                text("k", "h", "2"),
                text("k", "other head", "3"),
                text("k", "h", "4"),
                of_chat("other chat", "third"),
                text("k", "h", "5"),
                of_chat("closes", "k"),
                text("k", "h", "6"),
                text("other", "h", "y"),
            ],
        );
        let expected = ["h12\"}", "hxy\"}", "no chat", "other head3\"}", "h45\"}", "other chat", "closes", "h6\"}"];
        assert_eq!(drain(&outbox), expected);
        let other_tail = TextFrame { key: "k".into(), head: "h".into(), text: "2".into(), tail: "}" };
        push_all(&outbox, [text("k", "h", "1"), Frame::Text(other_tail)]);
        assert_eq!(drain(&outbox), ["h1\"}", "h2}"]);
    }

    #[test]
    fn a_merged_text_stays_below_its_limit() {
        let outbox = Outbox::new(limits(100, 10_000, 0));
        push_all(&outbox, (0..5).map(|_| text("k", "", "12345678")));
        assert_eq!(drain(&outbox), ["1234567812345678\"}", "1234567812345678\"}", "12345678\"}"]);
    }

    #[test]
    fn both_limits_hold_and_all_room_comes_back() {
        let by_count = Outbox::new(limits(2, 100, 64));
        push_all(&by_count, [notification("a"), notification("b")]);
        assert_eq!(by_count.try_push(notification("c")), Err(PushError::Full(notification("c"))));
        let by_bytes = Outbox::new(limits(100, 10, 64));
        push_all(&by_bytes, [notification("12345"), notification("1234")]);
        assert_eq!(by_bytes.try_push(notification("12")), Err(PushError::Full(notification("12"))));
        push_all(&by_bytes, [notification("1")]);
        drain(&by_bytes);
        assert_eq!(taken(&by_bytes), (0, 0));
    }

    #[test]
    fn a_frame_larger_than_the_limit_is_taken_when_it_is_alone() {
        let outbox = Outbox::new(limits(10, 5, 64));
        let large = || notification("larger than five");
        push_all(&outbox, [notification("1")]);
        assert!(matches!(outbox.try_push(large()), Err(PushError::Full(_))));
        drain(&outbox);
        push_all(&outbox, [large()]);
        assert!(matches!(outbox.try_push(notification("1")), Err(PushError::Full(_))));
        assert_eq!(drain(&outbox), ["larger than five"]);
        push_all(&outbox, [notification("1")]);
    }

    #[test]
    fn merging_counts_only_what_it_adds() {
        let limits = limits(1, 30, 0);
        let outbox = Outbox::new(limits);
        push_all(&outbox, [text("k", "headhead", "1"), text("k", "headhead", "2"), text("k", "headhead", "3")]);
        assert_eq!(taken(&outbox), (1, "headhead123\"}".len()), "one slot, no head twice");
        drain(&outbox);
        assert_eq!(taken(&outbox), (0, 0));
    }

    #[test]
    fn waiting_pushes_resume_in_order_as_room_is_freed() {
        let outbox = Outbox::new(limits(1, 100, 64));
        push_all(&outbox, [notification("0")]);
        let mut waiting: Vec<_> = ["1", "2", "3"].map(|name| Box::pin(outbox.push(notification(name)))).into();
        for push in &mut waiting {
            assert_eq!(push.as_mut().now_or_never(), None);
        }
        for expected in ["0", "1", "2", "3"] {
            assert_eq!(drain(&outbox), [expected]);
            if !waiting.is_empty() {
                let next = waiting.remove(0);
                assert!(
                    waiting.iter_mut().all(|push| push.as_mut().now_or_never().is_none()),
                    "first come, first served"
                );
                assert_eq!(next.now_or_never(), Some(Ok(())));
            }
        }
    }

    #[test]
    fn a_waiting_push_that_is_dropped_hands_its_wake_up_on() {
        let outbox = Outbox::new(limits(1, 10, 64));
        push_all(&outbox, [notification("0")]);
        let mut dropped = Box::pin(outbox.push(notification("dropped")));
        let mut large = Box::pin(outbox.push(notification("larger than all")));
        let mut next = Box::pin(outbox.push(notification("next")));
        assert!(dropped.as_mut().now_or_never().is_none());
        assert!(large.as_mut().now_or_never().is_none());
        assert!(next.as_mut().now_or_never().is_none());
        // Now the first waiter owns the freed room, without having been polled again.
        assert_eq!(drain(&outbox), ["0"]);
        drop(dropped);
        drop(large);
        assert_eq!(next.as_mut().now_or_never(), Some(Ok(())));
        assert_eq!(drain(&outbox), ["next"]);
        assert_eq!(taken(&outbox), (0, 0));
    }

    #[test]
    fn closing_wakes_the_waiting_and_refuses_the_late() {
        let outbox = Outbox::new(limits(1, 100, 64));
        push_all(&outbox, [notification("0")]);
        let mut waiting = Box::pin(outbox.push(notification("1")));
        assert!(waiting.as_mut().now_or_never().is_none());
        outbox.close();
        assert_eq!(waiting.now_or_never(), Some(Err(Closed)));
        assert_eq!(outbox.try_push(notification("2")), Err(PushError::Closed));
        assert_eq!(outbox.push(notification("3")).now_or_never(), Some(Err(Closed)));
        assert!(outbox.is_closed());
        assert_eq!(drain(&outbox), ["0"], "what was queued is still sent");
        assert_eq!(outbox.shared().wait_for_frame(), None);
    }

    #[test]
    fn while_held_only_responses_go_out_and_the_rest_follows_in_order() {
        let outbox = Outbox::held(Limits::default());
        push_all(
            &outbox,
            [notification("1"), response("r1"), plain("2", Kind::Request), text("k", "", "3"), response("r2")],
        );
        assert_eq!(drain(&outbox), ["r1", "r2"]);
        push_all(&outbox, [response("r3")]);
        outbox.release();
        push_all(&outbox, [notification("4"), response("r4")]);
        outbox.release();
        assert_eq!(drain(&outbox), ["r3", "1", "2", "3\"}", "4", "r4"]);
    }

    #[test]
    fn what_is_parked_is_bounded_and_whoever_waits_goes_on_after_the_release() {
        let limits = limits(1, 100, 64);
        let outbox = Outbox::held(limits);
        push_all(&outbox, [notification("1")]);
        assert!(matches!(outbox.try_push(notification("2")), Err(PushError::Full(_))));
        push_all(&outbox, [response("r")]);
        let mut waiting = Box::pin(outbox.push(notification("2")));
        assert!(waiting.as_mut().now_or_never().is_none());
        outbox.release();
        assert!(waiting.as_mut().now_or_never().is_none(), "the response still takes the only slot");
        assert_eq!(drain(&outbox), ["r", "1"]);
        assert_eq!(waiting.now_or_never(), Some(Ok(())));
        assert_eq!(drain(&outbox), ["2"]);
        assert_eq!(taken(&outbox), (0, 0));
    }

    #[test]
    fn room_taken_for_parking_is_not_counted_as_room_in_the_queue() {
        let limits = limits(1, 10, 64);
        let outbox = Outbox::held(limits);
        push_all(&outbox, [notification("1")]);
        let mut has_bytes = Box::pin(outbox.push(notification("123456789")));
        let mut waiting = Box::pin(outbox.push(notification("ab")));
        assert!(has_bytes.as_mut().now_or_never().is_none());
        assert!(waiting.as_mut().now_or_never().is_none());
        // The dropped push hands its parking room on; then the release makes that room worthless.
        drop(has_bytes);
        outbox.release();
        assert_eq!(waiting.now_or_never(), Some(Ok(())));
        assert_eq!(taken(&outbox), (1, 2));
        assert_eq!(drain(&outbox), ["1", "ab"]);
        assert_eq!(taken(&outbox), (0, 0));
    }

    #[test]
    fn a_release_between_taking_room_and_placing_is_noticed() {
        let outbox = Outbox::held(limits(1, 10, 64));
        let shared = outbox.shared();
        let bytes = shared.parked_room.try_take_bytes(1).unwrap();
        outbox.release();
        let placed = shared.place(shared.lock(), notification("1"), Ticket { parks: true, bytes, slot: None });
        assert!(matches!(placed, Placed::Elsewhere(frame) if frame == notification("1")));
        assert_eq!(drain(&outbox), [""; 0]);
    }

    #[test]
    fn chats_that_have_left_leave_nothing_behind() {
        let outbox = Outbox::new(limits(100, 10_000, 0));
        for number in 0..50 {
            let key = format!("chat{number}");
            push_all(
                &outbox,
                [text(&key, "h", "1"), text(&key, "other", "2"), of_chat("3", &key), text(&key, "h", "4")],
            );
            drain(&outbox);
        }
        assert_eq!(outbox.shared().lock().queue.open_texts.len(), 0);
    }

    #[test]
    fn closing_drops_what_is_parked() {
        let outbox = Outbox::held(Limits::default());
        push_all(&outbox, [notification("1"), response("r")]);
        outbox.close();
        outbox.release();
        assert_eq!(drain(&outbox), ["r"]);
    }

    #[test]
    fn each_frame_is_one_write() {
        let sink = Sink::default();
        let outbox = Outbox::new(Limits::default());
        push_all(&outbox, [notification("{}"), text("k", "{\"", "é"), response(&"x".repeat(100_000))]);
        let writer = outbox.clone().spawn_writer(Framing::ContentLength, sink.clone()).unwrap();
        outbox.close();
        writer.join();
        let writes: Vec<_> =
            sink.writes.lock().unwrap().iter().map(|write| String::from_utf8(write.clone()).unwrap()).collect();
        assert_eq!(writes.len(), 3);
        assert_eq!(writes[0], "Content-Length: 2\r\n\r\n{}");
        assert_eq!(writes[1], "Content-Length: 6\r\n\r\n{\"é\"}");
        assert!(writes[2].starts_with("Content-Length: 100000\r\n\r\nxxx") && writes[2].len() == 100_000 + 26);
    }

    #[test]
    fn newline_framing_ends_each_body_with_a_line_break() {
        let sink = Sink::default();
        let outbox = Outbox::new(Limits::default());
        push_all(&outbox, [notification("{}"), response("[]")]);
        let writer = outbox.clone().spawn_writer(Framing::Newline, sink.clone()).unwrap();
        drop(outbox);
        writer.join();
        assert_eq!(*sink.writes.lock().unwrap(), [b"{}\n".to_vec(), b"[]\n".to_vec()]);
    }

    #[test]
    fn short_and_interrupted_writes_are_continued() {
        let interrupt =
            Arc::new(Mutex::new(vec![ErrorKind::Interrupted, ErrorKind::WouldBlock, ErrorKind::Interrupted]));
        let sink = Sink { most: Some(3), interrupt, ..Sink::default() };
        let outbox = Outbox::new(Limits::default());
        let writer = outbox.clone().spawn_writer(Framing::ContentLength, sink.clone()).unwrap();
        push_all(&outbox, [notification("one"), notification("two")]);
        outbox.close();
        writer.join();
        assert_eq!(sink.bytes(), "Content-Length: 3\r\n\r\noneContent-Length: 3\r\n\r\ntwo");
        assert!(!outbox.broken().is_cancelled());
    }

    #[tokio::test]
    async fn a_client_that_is_gone_closes_the_outbox_and_tells_everybody() {
        let outbox = Outbox::new(limits(1, 100, 64));
        push_all(&outbox, [notification("1")]);
        let mut waiting = Box::pin(outbox.push(notification("2")));
        assert!(waiting.as_mut().now_or_never().is_none());
        let sink = Sink { fail_after: Some(0), ..Sink::default() };
        let writer = outbox.clone().spawn_writer(Framing::ContentLength, sink).unwrap();
        tokio::time::timeout(HANG_GUARD, outbox.broken().cancelled()).await.unwrap();
        // The push may have found room before the failure; the next one must not.
        let _ = waiting.await;
        assert_eq!(outbox.push(notification("3")).await, Err(Closed));
        assert!(!outbox.flushed().await);
        assert!(!outbox.wait_flushed(Instant::now() + HANG_GUARD));
        writer.join();
    }

    #[test]
    fn a_sink_that_panics_breaks_the_outbox() {
        struct Panicking;
        impl Write for Panicking {
            fn write(&mut self, _: &[u8]) -> io::Result<usize> {
                panic!("a test panics here on purpose")
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let outbox = Outbox::new(Limits::default());
        push_all(&outbox, [notification("1")]);
        outbox.clone().spawn_writer(Framing::ContentLength, Panicking).unwrap().join();
        assert!(outbox.is_closed() && outbox.broken().is_cancelled());
    }

    #[test]
    fn dropping_the_last_handle_ends_the_writer_after_draining() {
        let sink = Sink::default();
        let outbox = Outbox::new(Limits::default());
        push_all(&outbox, [notification("1")]);
        let other = outbox.clone();
        let writer = outbox.spawn_writer(Framing::Newline, sink.clone()).unwrap();
        push_all(&other, [notification("2")]);
        drop(other);
        writer.join();
        assert_eq!(sink.bytes(), "1\n2\n");
    }

    /// Blocks each write until the test allows it.
    struct GatedSink {
        gate: mpsc::Receiver<()>,
    }

    impl Write for GatedSink {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.gate.recv().map_err(|_| ErrorKind::BrokenPipe)?;
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[tokio::test]
    async fn flushed_waits_for_the_write_and_only_for_what_was_there_before() {
        let (open, gate) = mpsc::channel();
        let outbox = Outbox::new(Limits::default());
        assert!(outbox.flushed().await, "nothing was queued");
        let writer = outbox.clone().spawn_writer(Framing::ContentLength, GatedSink { gate }).unwrap();
        push_all(&outbox, [notification("1")]);
        assert!(!outbox.wait_flushed(Instant::now()), "the write is still blocked");
        let mut flushed = Box::pin(outbox.flushed());
        assert!(flushed.as_mut().now_or_never().is_none());
        push_all(&outbox, [notification("2")]);
        open.send(()).unwrap();
        assert!(tokio::time::timeout(HANG_GUARD, flushed).await.unwrap(), "the second frame is not waited for");
        let blocking = outbox.clone();
        let waiter = std::thread::spawn(move || blocking.wait_flushed(Instant::now() + HANG_GUARD));
        open.send(()).unwrap();
        assert!(waiter.join().unwrap());
        assert_eq!(outbox.shared().lock().flush_waiters, 0);
        outbox.close();
        writer.join();
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn many_producers_through_a_tiny_queue_lose_nothing() {
        let sink = Sink::default();
        let outbox = Outbox::new(limits(2, 40, 1));
        let writer = outbox.clone().spawn_writer(Framing::Newline, sink.clone()).unwrap();
        let producers: Vec<_> = (0..8)
            .map(|producer| {
                let outbox = outbox.clone();
                tokio::spawn(async move {
                    for number in 0..500 {
                        let push =
                            outbox.push(text(&format!("k{producer}"), &format!("{producer}:"), &format!("{number},")));
                        push.await.unwrap();
                    }
                })
            })
            .collect();
        for producer in producers {
            tokio::time::timeout(HANG_GUARD, producer).await.expect("a wake-up was lost").unwrap();
        }
        outbox.close();
        writer.join();
        let mut texts: HashMap<String, String> = HashMap::new();
        for line in sink.bytes().lines() {
            let (producer, text) = line.strip_suffix(TAIL).unwrap().split_once(':').unwrap();
            texts.entry(producer.into()).or_default().push_str(text);
        }
        let expected: String = (0..500).map(|number| format!("{number},")).collect();
        assert_eq!(texts.len(), 8);
        assert!(texts.values().all(|text| *text == expected));
    }

    #[derive(Clone, Debug)]
    enum Action {
        Text { key: usize, head: usize, length: usize },
        OfChat(usize),
        NoChat,
        Take(usize),
    }

    fn action() -> impl Strategy<Value = Action> {
        prop_oneof![
            6 => (0..3usize, 0..2usize, 0..9usize).prop_map(|(key, head, length)| Action::Text { key, head, length }),
            1 => (0..3usize).prop_map(Action::OfChat),
            1 => Just(Action::NoChat),
            1 => (0..6usize).prop_map(Action::Take),
        ]
    }

    /// Per chat, what was said in which order: plain frames as they are, texts joined while the head stays.
    type Story = HashMap<String, Vec<(String, String)>>;

    fn tell(story: &mut Story, frame: &Frame) {
        let (key, head, said) = match frame {
            Frame::Text(text) => (text.key.to_string(), text.head.to_string(), text.text.clone()),
            Frame::Plain { body, chat, .. } => (
                chat.as_deref().unwrap_or_default().to_owned(),
                "plain".to_owned(),
                String::from_utf8(body.clone()).unwrap(),
            ),
        };
        let lines = story.entry(key).or_default();
        match lines.last_mut() {
            Some((last, joined)) if *last == head && head != "plain" => joined.push_str(&said),
            _ => lines.push((head, said)),
        }
    }

    proptest! {
        #[test]
        fn merging_never_loses_reorders_or_exceeds(actions in prop::collection::vec(action(), 0..200), merge_from in 0..8usize) {
            let limits = limits(12, 200, merge_from);
            let outbox = Outbox::new(limits);
            let (mut pushed, mut left) = (Story::new(), Story::new());
            let mut frames_left = Vec::new();
            for (number, action) in actions.into_iter().enumerate() {
                let frame = match action {
                    Action::Text { key, head, length } => {
                        let piece: String = number.to_string().chars().cycle().take(length).collect();
                        text(&format!("chat{key}"), &format!("head{head}"), &piece)
                    }
                    Action::OfChat(key) => of_chat(&format!("of chat {number}"), &format!("chat{key}")),
                    Action::NoChat => notification(&format!("no chat {number}")),
                    Action::Take(count) => {
                        let queued = outbox.shared().lock().queue.len();
                        frames_left.extend((0..count.min(queued)).filter_map(|_| outbox.shared().wait_for_frame()));
                        continue;
                    }
                };
                match outbox.try_push(frame.clone()) {
                    Ok(()) => tell(&mut pushed, &frame),
                    Err(PushError::Full(refused)) => prop_assert_eq!(refused, frame),
                    Err(PushError::Closed) => prop_assert!(false, "nobody closed it"),
                }
                let (slots, bytes) = taken(&outbox);
                prop_assert_eq!(slots, outbox.shared().lock().queue.len());
                prop_assert!(slots <= 12 && bytes <= 200);
            }
            let queued = outbox.shared().lock().queue.len();
            frames_left.extend((0..queued).filter_map(|_| outbox.shared().wait_for_frame()));
            for frame in &frames_left {
                tell(&mut left, frame);
                if let Frame::Text(text) = frame {
                    prop_assert!(text.text.len() <= limits.merged_bytes);
                }
            }
            prop_assert_eq!(left, pushed);
            prop_assert_eq!(taken(&outbox), (0, 0));
        }
    }
}
