//! An application of the Copilot CLI contract in the scenarios: its `chat`, in one tab.

use std::collections::VecDeque;
use std::path::PathBuf;

use serde_json::{Value, json};

use super::{FrontEnd, Outcome, broken_lines};
use crate::copilot;
use crate::peer::Peer;
use crate::server::Builder;

pub(super) struct Copilot {
    client: copilot::Copilot,
    /// Requests that are not answered.
    requests: VecDeque<i64>,
}

impl FrontEnd for Copilot {
    async fn start(home: Builder) -> Self {
        Self { client: copilot::Copilot::at_home(home), requests: VecDeque::new() }
    }

    fn peer(&mut self) -> &mut Peer {
        &mut self.client
    }

    fn workspace(&self) -> PathBuf {
        self.client.home.folders().workspace.clone()
    }

    async fn prompt(&mut self, text: &str) {
        let params = json!({"message": text, "context": {"tabId": "t"}, "stream": true});
        self.requests.push_back(self.client.start_raw("chat", Some(params)));
    }

    async fn first_words(&mut self) {
        self.client.find("the first words", |message| message["method"] == "stream/chunk").await;
    }

    async fn outcome(&mut self) -> Outcome {
        let id = self.requests.pop_front().expect("a request");
        let answered = self.client.answered(id).await;
        let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        Outcome {
            said: word(&answered.response["result"]["message"]),
            noted: word(&answered.response["error"]["message"]),
        }
    }

    fn stop(&mut self) {
        let id = *self.requests.front().expect("a request");
        self.client.notify_raw("cancel", Some(json!({"id": id})));
    }

    fn garbage() -> Vec<(&'static [u8], usize)> {
        let mut garbage = broken_lines();
        garbage.push((b"{\"id\":79,\"method\":\"chat\",\"params\":{\"message\":\"no version\"}}\n", 1));
        garbage
    }

    async fn leave(mut self) {
        self.client.notify_raw("exit", None);
        self.client.end_of_output().await;
        let _: Vec<Value> = self.client.take_unread();
        self.client.wait_for_end().await;
    }
}
