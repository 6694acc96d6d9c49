//! Frames on their way out together, in order, at once as long as there is room.

use futures_util::future::BoxFuture;

use crate::transport::{Frame, Outbox, PushError};

/// Queues what there is room for. What must be awaited queues the rest; dropping it gives the rest
/// up.
#[must_use]
pub(super) fn queue(outbox: &Outbox, frames: Vec<Frame>) -> Option<BoxFuture<'static, ()>> {
    let mut frames = frames.into_iter();
    while let Some(frame) = frames.next() {
        match outbox.try_push(frame) {
            Ok(()) => {}
            Err(PushError::Closed) => return None,
            Err(PushError::Full(frame)) => {
                let outbox = outbox.clone();
                return Some(Box::pin(async move {
                    for frame in std::iter::once(frame).chain(frames) {
                        if outbox.push(frame).await.is_err() {
                            return;
                        }
                    }
                }));
            }
        }
    }
    None
}
