//! Room in a queue, counted in frames and in bytes.
//!
//! Tokio's semaphores give what a waiting push needs: first come first served, one wake-up per freed
//! room, and a waiter that is dropped hands its wake-up on.

use tokio::sync::{Semaphore, SemaphorePermit};

use super::lane::Limits;

#[derive(Debug)]
pub(super) struct Room {
    pub(super) bytes: Semaphore,
    pub(super) slots: Semaphore,
    capacity: u32,
}

impl Room {
    pub(super) fn new(limits: &Limits) -> Self {
        let capacity = u32::try_from(limits.bytes.clamp(1, Semaphore::MAX_PERMITS)).unwrap_or(u32::MAX);
        let slots = limits.frames.clamp(1, Semaphore::MAX_PERMITS);
        Self { bytes: Semaphore::new(capacity as usize), slots: Semaphore::new(slots), capacity }
    }

    /// A frame larger than the whole room takes all of it, so it can leave when nothing else is queued.
    fn cost(&self, bytes: usize) -> u32 {
        u32::try_from(bytes).unwrap_or(u32::MAX).min(self.capacity)
    }

    pub(super) fn try_take_bytes(&self, bytes: usize) -> Option<SemaphorePermit<'_>> {
        self.bytes.try_acquire_many(self.cost(bytes)).ok()
    }

    pub(super) fn try_take_slot(&self) -> Option<SemaphorePermit<'_>> {
        self.slots.try_acquire().ok()
    }

    /// Waits for room; `None` when the room was shut meanwhile.
    pub(super) async fn take_bytes(&self, bytes: usize) -> Option<SemaphorePermit<'_>> {
        self.bytes.acquire_many(self.cost(bytes)).await.ok()
    }

    pub(super) async fn take_slot(&self) -> Option<SemaphorePermit<'_>> {
        self.slots.acquire().await.ok()
    }

    pub(super) fn give_back(&self, bytes: usize, slots: usize) {
        if slots > 0 {
            self.slots.add_permits(slots);
        }
        if bytes > 0 {
            self.bytes.add_permits(bytes);
        }
    }

    /// Wakes everybody who waits for room here; nobody gets room any more.
    pub(super) fn shut(&self) {
        self.bytes.close();
        self.slots.close();
    }
}
