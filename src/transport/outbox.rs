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
mod tests;
