//! Bounds how many questions of a server can be open: the library starts a task for each, and keeps
//! the answers of a server that does not take them.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rmcp::RoleClient;
use rmcp::model::{ClientJsonRpcMessage, JsonRpcMessage, RequestId, ServerJsonRpcMessage, ServerNotification};
use rmcp::transport::Transport;

/// More than any server asks at once.
const MOST_OPEN: usize = 32;

/// Any transport with that bound. A question beyond it is dropped.
pub(super) struct Limited<T> {
    inner: T,
    open: Open,
    dropped: u64,
}

/// The questions of the server that are not answered yet.
#[derive(Debug, Clone, Default)]
struct Open(Arc<Mutex<HashSet<RequestId>>>);

impl Open {
    fn ids(&self) -> MutexGuard<'_, HashSet<RequestId>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T> Limited<T> {
    pub(super) fn new(inner: T) -> Self {
        Self { inner, open: Open::default(), dropped: 0 }
    }

    /// Whether a message may pass.
    fn admit(&mut self, message: &ServerJsonRpcMessage) -> bool {
        match message {
            JsonRpcMessage::Request(request) => {
                let mut open = self.open.ids();
                if open.len() >= MOST_OPEN && !open.contains(&request.id) {
                    drop(open);
                    self.dropped += 1;
                    if self.dropped.is_power_of_two() {
                        tracing::warn!(dropped = self.dropped, "an MCP server asks more than can be answered");
                    }
                    return false;
                }
                open.insert(request.id.clone());
            }
            // What the server takes back is not answered.
            JsonRpcMessage::Notification(notification) => {
                if let ServerNotification::CancelledNotification(cancelled) = &notification.notification
                    && let Some(id) = &cancelled.params.request_id
                {
                    self.open.ids().remove(id);
                }
            }
            JsonRpcMessage::Response(_) | JsonRpcMessage::Error(_) => {}
        }
        true
    }
}

impl<T: Transport<RoleClient>> Transport<RoleClient> for Limited<T> {
    type Error = T::Error;

    fn send(&mut self, item: ClientJsonRpcMessage) -> impl Future<Output = Result<(), T::Error>> + Send + 'static {
        let answered = match &item {
            JsonRpcMessage::Response(response) => Some(response.id.clone()),
            JsonRpcMessage::Error(error) => error.id.clone(),
            JsonRpcMessage::Request(_) | JsonRpcMessage::Notification(_) => None,
        };
        let open = self.open.clone();
        let sending = self.inner.send(item);
        async move {
            let sent = sending.await;
            if let Some(id) = answered {
                open.ids().remove(&id);
            }
            sent
        }
    }

    async fn receive(&mut self) -> Option<ServerJsonRpcMessage> {
        loop {
            let message = self.inner.receive().await?;
            if self.admit(&message) {
                return Some(message);
            }
        }
    }

    async fn close(&mut self) -> Result<(), T::Error> {
        self.inner.close().await
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use serde_json::{Value, json};

    use super::*;

    /// Gives what it was made with, and takes everything.
    struct Scripted(std::vec::IntoIter<Value>);

    impl Transport<RoleClient> for Scripted {
        type Error = Infallible;

        fn send(&mut self, _: ClientJsonRpcMessage) -> impl Future<Output = Result<(), Infallible>> + Send + 'static {
            std::future::ready(Ok(()))
        }

        async fn receive(&mut self) -> Option<ServerJsonRpcMessage> {
            self.0.next().map(|value| serde_json::from_value(value).unwrap())
        }

        async fn close(&mut self) -> Result<(), Infallible> {
            Ok(())
        }
    }

    fn ping(id: usize) -> Value {
        json!({"jsonrpc": "2.0", "id": id, "method": "ping"})
    }

    async fn received(limited: &mut Limited<Scripted>, count: usize) -> Vec<ServerJsonRpcMessage> {
        let mut messages = Vec::new();
        for _ in 0..count {
            messages.push(limited.receive().await.unwrap());
        }
        messages
    }

    #[tokio::test]
    async fn only_so_many_questions_are_open() {
        let mut script: Vec<Value> = (0..100).map(ping).collect();
        script.push(json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 5}}));
        script.extend([ping(200), ping(201), json!({"jsonrpc": "2.0", "id": 1, "result": {}})]);
        let mut limited = Limited::new(Scripted(script.into_iter()));
        // The first ones, the cancellation, and the place that it made free.
        let messages = received(&mut limited, MOST_OPEN + 2).await;
        assert_eq!(limited.open.ids().len(), MOST_OPEN);
        let JsonRpcMessage::Request(last) = messages.last().unwrap() else { panic!("{messages:?}") };
        assert_eq!(last.id, RequestId::Number(200));
        let response = json!({"jsonrpc": "2.0", "id": 0, "result": {}});
        limited.send(serde_json::from_value(response).unwrap()).await.unwrap();
        assert_eq!(limited.open.ids().len(), MOST_OPEN - 1);
        assert!(matches!(limited.receive().await, Some(JsonRpcMessage::Request(_))));
        assert!(matches!(limited.receive().await, Some(JsonRpcMessage::Response(_))));
        assert!(limited.receive().await.is_none());
    }
}
