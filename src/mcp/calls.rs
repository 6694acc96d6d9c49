//! The calls that a server is working on: who made them, so that progress is shown and questions
//! are asked in the right chat.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rmcp::model::{ProgressToken, RequestId};
use tokio::sync::Notify;

use crate::base::text::one_line;
use crate::tool::ToolContext;

/// Progress is shown at most so often.
const SHOWN_EVERY: Duration = Duration::from_millis(100);
const SHOWN_PROGRESS: usize = 200;

#[derive(Debug, Default)]
pub(super) struct Calls {
    open: Mutex<HashMap<RequestId, Arc<Call>>>,
}

/// One call in flight.
#[derive(Debug)]
pub(super) struct Call {
    pub(super) context: ToolContext,
    token: ProgressToken,
    /// Questions to the user that wait for an answer; while there are any, the server is not slow.
    asking: AtomicUsize,
    /// Told about every sign of life.
    pub(super) alive: Notify,
    shown: Mutex<Option<Instant>>,
}

impl Calls {
    pub(super) fn open(self: &Arc<Self>, id: RequestId, token: ProgressToken, context: ToolContext) -> OpenCall {
        let call = Arc::new(Call {
            context,
            token,
            asking: AtomicUsize::new(0),
            alive: Notify::new(),
            shown: Mutex::new(None),
        });
        self.table().insert(id.clone(), Arc::clone(&call));
        OpenCall { calls: Arc::clone(self), id, call }
    }

    /// The call that a question of the server belongs to: the one it names, or the only one there is.
    pub(super) fn asking(&self, named: Option<&RequestId>) -> Option<Arc<Call>> {
        let open = self.table();
        match named {
            Some(id) => open.get(id).cloned(),
            None if open.len() == 1 => open.values().next().cloned(),
            None => None,
        }
    }

    pub(super) fn progress(&self, token: &ProgressToken, done: f64, total: Option<f64>, message: Option<&str>) {
        let call = self.table().values().find(|call| call.token == *token).cloned();
        if let Some(call) = call {
            call.alive.notify_one();
            call.show(done, total, message);
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.table().is_empty()
    }

    fn table(&self) -> MutexGuard<'_, HashMap<RequestId, Arc<Call>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Call {
    pub(super) fn is_asking(&self) -> bool {
        self.asking.load(Ordering::Relaxed) > 0
    }

    /// Held while the user is asked.
    pub(super) fn ask(self: &Arc<Self>) -> Asking {
        self.asking.fetch_add(1, Ordering::Relaxed);
        Asking(Arc::clone(self))
    }

    fn show(&self, done: f64, total: Option<f64>, message: Option<&str>) {
        let is_last = total.is_some_and(|total| done >= total);
        let mut shown = self.shown.lock().unwrap_or_else(PoisonError::into_inner);
        if !is_last && shown.is_some_and(|last| last.elapsed() < SHOWN_EVERY) {
            return;
        }
        *shown = Some(Instant::now());
        drop(shown);
        let count = match total {
            Some(total) => format!("{done}/{total}"),
            None => format!("{done}"),
        };
        let text = message.map_or(count.clone(), |message| format!("{count} {message}"));
        self.context.live.progress(&one_line(&text, SHOWN_PROGRESS));
    }
}

/// A question to the user, until it is dropped.
#[derive(Debug)]
pub(super) struct Asking(Arc<Call>);

impl Drop for Asking {
    fn drop(&mut self) {
        self.0.asking.fetch_sub(1, Ordering::Relaxed);
        self.0.alive.notify_one();
    }
}

/// A call, until it is dropped.
#[derive(Debug)]
pub(super) struct OpenCall {
    calls: Arc<Calls>,
    id: RequestId,
    pub(super) call: Arc<Call>,
}

impl Drop for OpenCall {
    fn drop(&mut self) {
        self.calls.table().remove(&self.id);
    }
}

#[cfg(test)]
mod tests {
    use rmcp::model::NumberOrString;

    use super::*;
    use crate::mcp::testing::{Watched, context};

    fn number(n: i64) -> RequestId {
        NumberOrString::Number(n)
    }

    #[test]
    fn a_question_belongs_to_the_named_call_or_to_the_only_one() {
        let calls = Arc::new(Calls::default());
        assert!(calls.asking(None).is_none() && calls.is_empty());
        let first = calls.open(number(1), ProgressToken(number(10)), context().0);
        assert!(calls.asking(None).is_some());
        let second = calls.open(number(2), ProgressToken(number(20)), context().0);
        assert!(calls.asking(None).is_none(), "nobody knows which one");
        assert!(Arc::ptr_eq(&calls.asking(Some(&number(2))).unwrap(), &second.call));
        assert!(calls.asking(Some(&number(3))).is_none());
        drop(second);
        assert!(Arc::ptr_eq(&calls.asking(None).unwrap(), &first.call));
        drop(first);
        assert!(calls.is_empty());
    }

    #[test]
    fn progress_is_shown_to_its_call_and_not_too_often() {
        let calls = Arc::new(Calls::default());
        let (context, watched): (_, Arc<Watched>) = context();
        let _open = calls.open(number(1), ProgressToken(number(10)), context);
        let token = ProgressToken(number(10));
        for step in 0..1000 {
            calls.progress(&token, f64::from(step), Some(1000.0), Some("of\nthe work"));
        }
        calls.progress(&ProgressToken(number(11)), 1.0, None, None);
        calls.progress(&token, 1000.0, Some(1000.0), None);
        let shown = watched.progress();
        assert_eq!(shown[0], "0/1000 of the work");
        assert_eq!(shown.last().unwrap(), "1000/1000");
        assert!(shown.len() < 100, "{}", shown.len());
    }

    #[test]
    fn a_call_that_asks_is_not_slow() {
        let calls = Arc::new(Calls::default());
        let open = calls.open(number(1), ProgressToken(number(10)), context().0);
        let (one, two) = (open.call.ask(), open.call.ask());
        drop(one);
        assert!(open.call.is_asking());
        drop(two);
        assert!(!open.call.is_asking());
    }
}
